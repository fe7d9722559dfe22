//! The suite of the contract on one driver: its results as KTAP, and an exit status.
//! Not here: the tests, the lines they are reported in (crate `conformance`), guests that go down (`fleet::guest::suite`).

use std::io;

use conformance::{Drivers, Ended, Item, Ktap, Options, Outcome, Totals, Wanted};
use console::{CommandResult, Failure, OrExit, exit, terminal};

/// A run of the suite.
#[derive(Debug)]
pub struct Job {
    /// The driver.
    pub wanted: Wanted,
    /// The items in their order.
    pub items: Vec<&'static Item>,
    /// Words about that order.
    pub order: Option<String>,
    /// How each is run.
    pub options: Options,
    /// Results that were written before.
    pub resume: Option<Totals>,
    /// Whether it behaves as kselftest does.
    pub for_ci: bool,
}

/// The exit status by which kselftest knows a test that could not run.
const KSELFTEST_SKIP: u8 = 4;

/// Why not all items were tested.
enum Stop {
    /// Nobody reads the results any more.
    Unread,
    /// This error.
    Because(Failure),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::Unread;
        }
        let what = sys::errno::describe(&error);
        let why = format!("could not write all of the result to standard output: {what}");
        Failure::new(exit::INTERNAL, why).into()
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Because(failure)
    }
}

/// A line about an item.
pub fn listed(item: &Item) -> String {
    let drivers = match item.drivers {
        Drivers::Both => "both",
        Drivers::C => "C",
        Drivers::Rust => "Rust",
    };
    format!("{:7} {drivers:5} {}\n", item.id, item.title)
}

impl Job {
    /// Runs it; the exit status is 1 if an item failed.
    ///
    /// # Errors
    /// The driver cannot be tested, or not all items were.
    pub fn run(&self) -> CommandResult {
        match self.test() {
            Ok(Totals { failed: 1.., .. }) => Ok(exit::FAILED),
            Ok(Totals { passed: 0, differing: 0, .. }) if self.for_ci => Ok(KSELFTEST_SKIP),
            Ok(_) => Ok(exit::FINE),
            // A reader that closed the pipe, as `head` does, is no error.
            Err(Stop::Unread) => Ok(exit::FINE),
            Err(Stop::Because(failure)) if self.for_ci && failure.status == exit::UNABLE => {
                Err(Failure { status: KSELFTEST_SKIP, ..failure })
            }
            Err(Stop::Because(failure)) => Err(failure),
        }
    }

    fn test(&self) -> Result<Totals, Stop> {
        let items = &self.items;
        // Before the first process is started. Without the handlers a signal kills this process, and nothing worse.
        let _ = sys::stop_signal::catch();
        let located = conformance::find(&self.wanted).or_exit(exit::UNABLE)?;
        let context = conformance::Subject::from(located.context);
        let mut evidence = conformance::examine(&context).or_exit(exit::UNABLE)?;
        evidence.findings.push(format!("why this driver: {}", located.reason));
        conformance::check_unmanaged(&context).or_exit(exit::UNABLE)?;
        let about = context.describe();
        evidence.findings.extend(self.order.clone());
        let mut ktap = match self.resume {
            Some(totals) => Ktap::resume(terminal::own(), &evidence, totals),
            None => Ktap::begin(terminal::own(), items.len(), &about, &evidence)?,
        };
        let rest = &items[self.resume.map_or(0, Totals::all).min(items.len())..];
        let mut broken = None;
        let mut ran = 0;
        let mut report = |item: &Item, outcome: &Outcome, notes: &[String]| {
            if broken.is_none() {
                broken = ktap.item(item, outcome, notes).err();
                ran += 1;
            }
            broken.is_none()
        };
        let ended = conformance::run(&context, rest, &self.options, &mut report);
        if let Some(error) = broken {
            return Err(error.into());
        }
        let why = match ended {
            Ended::Done => return Ok(ktap.end()?),
            Ended::Failed(id) => format!("{id} failed"),
            Ended::Stuck(id) => format!("{id} hangs in the kernel"),
            Ended::Stopped(signal) => format!("stopped by {signal}"),
        };
        if self.for_ci {
            ktap.skip(&rest[ran..], &why)?;
        }
        // Who follows a run in a guest takes the totals for its end.
        if self.for_ci || !matches!(ended, Ended::Stuck(_)) {
            ktap.end()?;
        }
        let why = format!("{why}: not all of the {} items were tested", items.len());
        Err(Failure::new(exit::FAILED, why).into())
    }
}
