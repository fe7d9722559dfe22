//! A load as typed: `KIND[:COUNT[:CLASS]]`.
//! Not here: its process (`role`).
//! Facts: real-time callers of the latency test have priority 99; load has less, so that it delays all
//! threads but them.

use std::fmt;
use std::str::FromStr;

use sys::sched::Policy;

/// Maximum number of processes of all loads together; more are taken for a typing error.
pub const MOST_PROCESSES: u32 = 256;
/// The highest real-time priority of a load.
const MOST_PRIORITY: u8 = 98;

/// Work of a load process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LoadKind {
    /// Computes, without touching memory.
    Cpu,
    /// Copies through buffers larger than the caches.
    Memory,
    /// Sleeps until a timer's interrupt, 10,000 times a second.
    Irq,
    /// Writes a small temporary file to its device, and reads it.
    Io,
}

impl LoadKind {
    const ALL: [Self; 4] = [Self::Cpu, Self::Memory, Self::Irq, Self::Io];

    fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Irq => "irq",
            Self::Io => "io",
        }
    }
}

impl fmt::Display for LoadKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Scheduling of a load process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LoadClass {
    /// `SCHED_OTHER` with the nice of this program.
    #[default]
    Other,
    /// `SCHED_BATCH`
    Batch,
    /// `SCHED_IDLE`
    Idle,
    /// `SCHED_OTHER` with this nice, -20 to 19.
    Nice(i8),
    /// `SCHED_FIFO` with this priority, 1 to 98.
    Fifo(u8),
    /// `SCHED_RR` with this priority, 1 to 98.
    Rr(u8),
}

impl LoadClass {
    /// Returns true if it precedes every thread that shares the CPU by nice.
    #[must_use]
    pub fn is_realtime(self) -> bool {
        self.policy().is_realtime()
    }

    /// Returns the kernel's policy.
    #[must_use]
    pub fn policy(self) -> Policy {
        match self {
            Self::Other | Self::Nice(_) => Policy::Other,
            Self::Batch => Policy::Batch,
            Self::Idle => Policy::Idle,
            Self::Fifo(priority) => Policy::Fifo(priority),
            Self::Rr(priority) => Policy::Rr(priority),
        }
    }

    /// Returns the nice to set; `None` if this program's own applies.
    #[must_use]
    pub fn nice(self) -> Option<i32> {
        match self {
            Self::Nice(nice) => Some(nice.into()),
            _ => None,
        }
    }
}

impl fmt::Display for LoadClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Other => f.write_str("other"),
            Self::Batch => f.write_str("batch"),
            Self::Idle => f.write_str("idle"),
            Self::Nice(nice) => write!(f, "nice{nice}"),
            Self::Fifo(priority) => write!(f, "fifo{priority}"),
            Self::Rr(priority) => write!(f, "rr{priority}"),
        }
    }
}

/// Parses a number in its canonical form: no sign but a minus, no leading zero.
fn number<T: FromStr + fmt::Display>(text: &str) -> Option<T> {
    let number: T = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

impl FromStr for LoadClass {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let priority = |text| number::<u8>(text).filter(|priority| (1..=MOST_PRIORITY).contains(priority));
        let class = match text {
            "other" => Some(Self::Other),
            "batch" => Some(Self::Batch),
            "idle" => Some(Self::Idle),
            _ => {
                let nice =
                    || number::<i8>(text.strip_prefix("nice")?).filter(|nice| (-20..=19).contains(nice));
                let fifo = || priority(text.strip_prefix("fifo")?).map(Self::Fifo);
                let rr = || priority(text.strip_prefix("rr")?).map(Self::Rr);
                nice().map(Self::Nice).or_else(fifo).or_else(rr)
            }
        };
        class.ok_or_else(|| {
            format!(
                "its CLASS is {text:?}; allowed are other, batch, idle, niceN with N from -20 to 19, fifoN and rrN \
                 with N from 1 to {MOST_PRIORITY}"
            )
        })
    }
}

/// A load: a number of processes that do the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LoadSpec {
    /// Their work.
    pub kind: LoadKind,
    /// Number of processes, 1 to [`MOST_PROCESSES`].
    pub count: u32,
    /// Their scheduling.
    pub class: LoadClass,
}

impl FromStr for LoadSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut words = text.splitn(3, ':');
        let kind = words.next().unwrap_or_default();
        let kind = LoadKind::ALL.into_iter().find(|known| known.name() == kind).ok_or_else(|| {
            format!("its KIND is {kind:?}; allowed are cpu, memory, irq or io, as in KIND[:COUNT[:CLASS]]")
        })?;
        let count = match words.next() {
            None => 1,
            Some(count) => {
                number(count).filter(|count| (1..=MOST_PROCESSES).contains(count)).ok_or_else(|| {
                    format!("its COUNT is {count:?}; allowed are 1 to {MOST_PROCESSES} processes")
                })?
            }
        };
        let class = words.next().map_or(Ok(LoadClass::Other), str::parse)?;
        Ok(Self { kind, count, class })
    }
}

impl fmt::Display for LoadSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind, self.count)?;
        match self.class {
            LoadClass::Other => Ok(()),
            class => write!(f, ":{class}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_understood() {
        let spec = |kind, count, class| LoadSpec { kind, count, class };
        for (text, want) in [
            ("cpu:4", spec(LoadKind::Cpu, 4, LoadClass::Other)),
            ("memory:2:batch", spec(LoadKind::Memory, 2, LoadClass::Batch)),
            ("irq:1", spec(LoadKind::Irq, 1, LoadClass::Other)),
            ("cpu:2:fifo10", spec(LoadKind::Cpu, 2, LoadClass::Fifo(10))),
            ("cpu:1:rr98", spec(LoadKind::Cpu, 1, LoadClass::Rr(98))),
            ("io:1:nice5", spec(LoadKind::Io, 1, LoadClass::Nice(5))),
            ("io:256:nice-20", spec(LoadKind::Io, 256, LoadClass::Nice(-20))),
            ("cpu:3:idle", spec(LoadKind::Cpu, 3, LoadClass::Idle)),
        ] {
            assert_eq!(text.parse(), Ok(want));
            assert_eq!(want.to_string(), text);
        }
        assert_eq!("cpu".parse(), Ok(spec(LoadKind::Cpu, 1, LoadClass::Other)));
        assert_eq!("cpu:2:other".parse(), Ok(spec(LoadKind::Cpu, 2, LoadClass::Other)));
    }

    #[test]
    fn every_load_survives_its_words() {
        let classes = [LoadClass::Other, LoadClass::Batch, LoadClass::Idle].into_iter();
        let classes = classes.chain((-20..=19).map(LoadClass::Nice));
        let classes = classes.chain((1..=98).map(LoadClass::Fifo)).chain((1..=98).map(LoadClass::Rr));
        for class in classes {
            assert_eq!(class.to_string().parse(), Ok(class));
            for (kind, count) in LoadKind::ALL.into_iter().zip([1, 9, 10, 256]) {
                let spec = LoadSpec { kind, count, class };
                assert_eq!(spec.to_string().parse(), Ok(spec));
            }
        }
    }

    #[test]
    fn nonsense_is_refused_with_what_would_do() {
        for (bad, says) in [
            ("", "cpu, memory, irq or io"),
            ("disk:1", "cpu, memory, irq or io"),
            ("cpu:", "1 to 256"),
            ("cpu:0", "1 to 256"),
            ("cpu:-1", "1 to 256"),
            ("cpu:+1", "1 to 256"),
            ("cpu:01", "1 to 256"),
            ("cpu:257", "1 to 256"),
            ("cpu:99999999999999", "1 to 256"),
            ("cpu:fifo10", "1 to 256"),
            ("cpu:1:", "fifoN"),
            ("cpu:1:fifo", "fifoN"),
            ("cpu:1:fifo0", "1 to 98"),
            ("cpu:1:fifo99", "1 to 98"),
            ("cpu:1:rr99", "1 to 98"),
            ("cpu:1:nice20", "-20 to 19"),
            ("cpu:1:nice-21", "-20 to 19"),
            ("cpu:1:batch:2", "batch"),
            ("CPU:1", "cpu"),
        ] {
            let error = bad.parse::<LoadSpec>().expect_err(bad).to_string();
            assert!(error.contains(says), "{bad}: {error}");
        }
    }
}
