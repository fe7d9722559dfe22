//! Marks that processes wrote into memory of their own: a text of the file, one line for each.
//! Not here: what a mark says (`fields`).

use super::threads::Threads;
use crate::event::{Context, Event, Names};
use crate::fields;
use crate::file::MOST_CPUS;
use crate::report::{ProblemKind, Report};

/// A line whose words are sound.
#[derive(Debug)]
struct Line {
    ts: u64,
    cpu: u32,
    what: What,
}

#[derive(Debug)]
enum What {
    Mark { tid: i32, tgid: i32, text: Box<str> },
    Lost { count: u64 },
}

impl Line {
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.splitn(5, ' ');
        let (ts, cpu) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let what = match words.next()? {
            "lost" => What::Lost { count: words.next()?.parse().ok()? },
            tid => {
                let (tid, tgid) = (tid.parse().ok()?, words.next()?.parse().ok()?);
                What::Mark { tid, tgid, text: words.next()?.into() }
            }
        };
        let sound = match what {
            What::Mark { tid, tgid, .. } => tid > 0 && tgid > 0,
            What::Lost { .. } => true,
        };
        (cpu < MOST_CPUS && sound).then_some(Self { ts, cpu, what })
    }
}

/// The marks, in the order of time.
#[derive(Debug)]
pub(super) struct Marks {
    /// Newest first.
    left: Vec<Line>,
}

impl Marks {
    pub(super) fn new(text: &[u8], report: &mut Report) -> Self {
        let mut left = Vec::new();
        for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            match std::str::from_utf8(line).ok().and_then(Line::parse) {
                Some(line) => left.push(line),
                None => report.note(ProblemKind::Corrupt, || {
                    format!("a process's mark: {:?}", String::from_utf8_lossy(line))
                }),
            }
        }
        // Stable: what is equally old stays in its order.
        left.sort_by_key(|line| line.ts);
        left.reverse();
        Self { left }
    }

    /// Time of the next one.
    pub(super) fn ts(&self) -> Option<u64> {
        self.left.last().map(|line| line.ts)
    }

    /// The next one.
    pub(super) fn next(&mut self, threads: &Threads, names: &mut Names) -> Option<Event> {
        let Line { ts, cpu, what } = self.left.pop()?;
        Some(match what {
            What::Lost { count } => Event::lost(ts, cpu, Some(count)),
            What::Mark { tid, tgid, text } => {
                let (comm, _) = threads.of(tid);
                let kind = fields::mark(text.as_bytes(), names);
                Event { ts, cpu, tid, tgid: Some(tgid), comm, context: Context::default(), kind }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Binder, Flavour, Kind};

    #[test]
    fn lines_come_by_time_and_damaged_ones_are_counted() {
        let text = b"30 1 lost 4\n10 0 7 6 binder_transaction_received: transaction=5\n20 0 7 6 a b\n\n\
                     x\n1 2 3\n1 99999 7 6 text\n1 0 -7 6 text\n1 0 0 6 text\n1 0 lost x\n\xff\n";
        let (mut names, mut report) = (Names::default(), Report::default());
        let threads = Threads::new(b"7 caller\n", b"", &mut names);
        let mut marks = Marks::new(text, &mut report);
        let mut events = Vec::new();
        while let Some(ts) = marks.ts() {
            events.push(marks.next(&threads, &mut names).expect("it has a time"));
            assert_eq!(events.last().map(|event| event.ts), Some(ts));
        }
        let [received, print, lost] = &events[..] else { panic!("{events:?}") };
        let want = Kind::Binder(Flavour::Embedded, Binder::Received { debug_id: 5 });
        assert_eq!((&received.kind, received.tid, received.tgid), (&want, 7, Some(6)));
        assert_eq!(names.text(received.comm), "caller");
        assert_eq!(print.kind, Kind::Print("a b".into()));
        assert_eq!((&lost.kind, lost.ts, lost.cpu), (&Kind::Lost { count: Some(4) }, 30, 1));
        assert!(report.to_string().contains("a process's mark: \"x\" (and 6 more)"), "{report}");
    }
}
