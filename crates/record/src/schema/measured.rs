//! Results of a run besides its cases, and the fields of a document that hold it.
//! Not here: the results themselves (`latency`, `crate::experiments`).

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use super::{Background, Inversion, LatencyTest, Overload, Run};

/// The results that a run has besides its cases. A document has a field for each kind; at most one is set.
#[derive(Debug, Clone, Default, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "one for each run, which is larger")]
pub enum Measured {
    /// None, as of a throughput test.
    #[default]
    Cases,
    /// The part that all cases of a latency test share.
    Latency(LatencyTest),
    /// Results of the priority-inversion experiment.
    Inversion(Inversion),
    /// Results of the overload experiment.
    Overload(Overload),
    /// Results of the background experiment.
    Background(Background),
}

impl Measured {
    /// The latency test, to be changed; `None` for other tests.
    pub fn latency_mut(&mut self) -> Option<&mut LatencyTest> {
        if let Measured::Latency(test) = self { Some(test) } else { None }
    }
}

impl Run {
    /// The part that all cases of a latency test share; `None` for other tests.
    pub fn latency(&self) -> Option<&LatencyTest> {
        if let Measured::Latency(test) = &self.measured { Some(test) } else { None }
    }

    /// Results of the priority-inversion experiment; `None` for other tests.
    pub fn inversion(&self) -> Option<&Inversion> {
        if let Measured::Inversion(experiment) = &self.measured { Some(experiment) } else { None }
    }

    /// Results of the overload experiment; `None` for other tests.
    pub fn overload(&self) -> Option<&Overload> {
        if let Measured::Overload(experiment) = &self.measured { Some(experiment) } else { None }
    }

    /// Results of the background experiment; `None` for other tests.
    pub fn background(&self) -> Option<&Background> {
        if let Measured::Background(experiment) = &self.measured { Some(experiment) } else { None }
    }
}

impl Serialize for Measured {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_map(None)?;
        // Every record has the first two, which are older than the others.
        let (mut latency, mut inversion) = (None, None);
        match self {
            Measured::Latency(test) => latency = Some(test),
            Measured::Inversion(experiment) => inversion = Some(experiment),
            Measured::Cases | Measured::Overload(_) | Measured::Background(_) => {}
        }
        fields.serialize_entry("latency", &latency)?;
        fields.serialize_entry("inversion", &inversion)?;
        match self {
            Measured::Overload(experiment) => fields.serialize_entry("overload", experiment)?,
            Measured::Background(experiment) => fields.serialize_entry("background", experiment)?,
            Measured::Cases | Measured::Latency(_) | Measured::Inversion(_) => {}
        }
        fields.end()
    }
}

/// The fields of a document that is read.
#[derive(Deserialize)]
pub(crate) struct Fields {
    latency: Option<LatencyTest>,
    inversion: Option<Inversion>,
    overload: Option<Overload>,
    background: Option<Background>,
}

impl TryFrom<Fields> for Measured {
    type Error = String;

    fn try_from(fields: Fields) -> Result<Measured, String> {
        let all = [
            ("latency", fields.latency.map(Measured::Latency)),
            ("inversion", fields.inversion.map(Measured::Inversion)),
            ("overload", fields.overload.map(Measured::Overload)),
            ("background", fields.background.map(Measured::Background)),
        ];
        let mut set = all.into_iter().filter_map(|(field, measured)| Some((field, measured?)));
        match (set.next(), set.next()) {
            (None, _) => Ok(Measured::Cases),
            (Some((_, measured)), None) => Ok(measured),
            (Some((one, _)), Some((other, _))) => {
                Err(format!("both \"{one}\" and \"{other}\" are set, and a run is one of these tests"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{Pair, background, latency_run, overload, run};
    use crate::schema::{Cell, Class, InversionRow, Point, Sched, ServedAs, Setting, Sweep};

    /// A run of each kind, without cases.
    fn of_each_kind() -> [Run; 6] {
        let latency = latency_run(&[Pair::healthy(0)]);
        let mut sweep = latency.clone();
        let point = Point { pairs: 2, payload_bytes: 64, load: "cpu:2".to_owned(), rate_hz: Some(0.5) };
        let cell = Cell {
            point,
            class: Class::Fifo,
            calls: 7,
            misses: vec![1],
            worst: 9,
            percentiles: None,
            failed: None,
        };
        sweep.measured.latency_mut().expect("a latency test").sweep =
            Some(Sweep { deadlines: vec![5], meet: 0.99, confidence: 0.95, cells: vec![cell] });
        let row = InversionRow {
            setting: Setting::On,
            case: "inversion/on".to_owned(),
            means: "driver inherits rt".to_owned(),
            calls: 3,
            late: 2,
            bubbles: 1,
            not_inherited: 0,
            percentiles: None,
            served: vec![ServedAs { sched: Sched::fifo(99), calls: 3 }],
            inverted: Some(true),
        };
        let inversion = Inversion {
            flavour: "binder".to_owned(),
            cpu: 1,
            hogs: 2,
            hog_class: "other".to_owned(),
            caller: Sched::fifo(99),
            iterations: 3,
            rounds: 1,
            limit: Some(300_000),
            rows: vec![row],
        };
        let other = |measured| Run { measured, ..run() };
        let all = [
            run(),
            latency,
            sweep,
            other(Measured::Inversion(inversion)),
            other(Measured::Overload(overload([0, 2, 35, 50]))),
            other(Measured::Background(background(true))),
        ];
        all.map(|run| Run { cases: Vec::new(), ..run })
    }

    #[test]
    fn the_document_of_each_kind_is_written_word_for_word_as_ever_and_read_back() {
        for (run, expected) in of_each_kind().iter().zip(include_str!("measured/golden.txt").lines()) {
            let text = serde_json::to_string(run).expect("JSON");
            assert_eq!(&text[text.find("\"context\"").expect("the field before")..], expected);
            assert_eq!(Run::from_json(run.to_json().as_bytes()).expect("sound"), *run);
        }
    }

    #[test]
    fn a_document_with_two_results_is_refused_by_their_names() {
        let documents = of_each_kind().map(|run| serde_json::to_value(&run).expect("JSON"));
        for (one, other, field) in
            [(1, 3, "inversion"), (3, 4, "overload"), (4, 5, "background"), (5, 1, "latency")]
        {
            let mut both = documents[one].clone();
            both[field] = documents[other][field].clone();
            let error = Run::from_json(both.to_string().as_bytes()).expect_err("two results").to_string();
            assert!(error.contains("both") && error.contains(&format!("\"{field}\"")), "{error}");
        }
    }
}
