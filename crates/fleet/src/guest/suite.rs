//! `vm -- conformance`: where the guest goes down, the item that ran has failed, and the run goes on in a new guest.
//! Not here: booting (crate `vm`), the results (`conformance::Follower`).

use std::io::Write;

use conformance::{Follower, Item, Totals};
use vm::{Options, Outcome, VmError};

use console::{complain, exit};

/// Guests that may go down in one run. A driver that takes down more has shown what it is.
const MOST_LOST: usize = 30;
/// Times that one item is run again after a fault of the emulator.
const MOST_SLIPS: usize = 2;

/// How a run ended.
pub(super) enum End {
    /// End in a guest.
    InGuest(Outcome),
    /// End here, after the last guest had gone down, with this exit status.
    Here(u8),
}

/// The word for a complete plan: here this side completes it, and has to see where a guest's results end.
const COMPLETE: &str = "--for-ci";

/// A run of the suite.
pub struct Plan {
    /// The items in the order of the run.
    pub items: Vec<&'static Item>,
    /// Whether it ends behind the first item that fails.
    pub stops_at_failure: bool,
}

/// Runs the command in as many guests as it takes.
///
/// # Errors
/// Those of [`vm::run`] that say nothing of an item.
pub(super) fn run(
    options: &Options,
    plan: Plan,
    out: impl Write,
    boot: &mut dyn FnMut(&Options, &mut dyn Write) -> Result<Outcome, VmError>,
) -> Result<End, VmError> {
    let mut options = options.clone();
    if !plan.stops_at_failure {
        options.commands.iter_mut().for_each(|words| words.retain(|word| word != COMPLETE));
    }
    let mut follower = Follower::new(out, plan.items);
    let (mut lost, mut slips) = (0, (None, 0));
    loop {
        let next = resumed(&options, follower.has_begun().then(|| follower.totals()));
        let before = follower.totals().all();
        let ended = boot(&next, &mut follower);
        let stopped = sys::stop_signal::received().is_some();
        let Some(item) = follower.current().filter(|_| follower.has_begun() && !stopped) else {
            return ended.map(End::InGuest);
        };
        match ended {
            // It stopped early, because the item before hangs in the guest's kernel.
            Ok(outcome) if follower.totals().all() == before => return Ok(End::InGuest(outcome)),
            Ok(outcome) if plan.stops_at_failure && follower.totals().failed > 0 => {
                return Ok(End::InGuest(outcome));
            }
            Ok(_) => {}
            Err(error) if error.is_guest_down() => {
                slips = if slips.0 == Some(item.id) { (slips.0, slips.1 + 1) } else { (Some(item.id), 1) };
                let told = if error.is_emulators() && slips.1 <= MOST_SLIPS {
                    follower.remark(&format!(
                        "{} is run again in a new guest: {}",
                        item.id,
                        first_line(&error)
                    ))
                } else {
                    follower.lost(&error.to_string())
                };
                told.map_err(VmError::Output)?;
            }
            Err(error) => return Err(error),
        }
        lost += 1;
        let why = match follower.current() {
            Some(_) if plan.stops_at_failure && follower.totals().failed > 0 => {
                format!("{} failed", item.id)
            }
            Some(_) if lost < MOST_LOST => {
                complain(format_args!("the run goes on behind {} in a new guest", item.id));
                continue;
            }
            Some(_) => format!("not run: {lost} guests had gone down before"),
            None => String::new(),
        };
        let totals = follower.end(&why).map_err(VmError::Output)?;
        return Ok(End::Here(if totals.failed == 0 { exit::FINE } else { exit::FAILED }));
    }
}

fn first_line(error: &VmError) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

/// The guest that goes on after these results.
fn resumed(options: &Options, totals: Option<Totals>) -> Options {
    let mut options = options.clone();
    if let Some(totals) = totals {
        options.commands.iter_mut().for_each(|words| words.push(format!("--resume={totals}")));
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn options(words: &[&str]) -> Options {
        Options::new(PathBuf::from("binderperf"), words.iter().map(|word| (*word).to_owned()).collect())
    }

    fn plan(filter: &str) -> Plan {
        Plan { items: conformance::select(filter), stops_at_failure: false }
    }

    /// Runs three items in guests that end as these texts and errors say; returns the words of each and the results.
    fn through(guests: Vec<(&str, VmError)>) -> (Vec<String>, String, bool) {
        let (mut words, mut out) = (Vec::new(), Vec::new());
        let mut guests = guests.into_iter();
        let options = options(&["conformance", "--filter", "WR-01,WR-02,WR-03"]);
        let end = run(&options, plan("WR-01,WR-02,WR-03"), &mut out, &mut |options, out| {
            words.push(options.commands[0].join(" "));
            let (text, error) = guests.next().expect("a guest");
            out.write_all(text.as_bytes()).expect("memory");
            Err(error)
        });
        (words, String::from_utf8(out).expect("text"), matches!(end, Ok(End::Here(exit::FAILED))))
    }

    fn panicked(what: &str) -> VmError {
        VmError::Panic { what: what.to_owned(), console: "BUG: x".to_owned() }
    }

    #[test]
    fn an_item_that_takes_the_guest_down_has_failed_and_the_next_runs_in_a_new_one() {
        let head = "KTAP version 1\n1..3\n";
        let (words, text, failed) = through(vec![
            (&format!("{head}ok 1 WR-01 x\n"), panicked("Fatal")),
            ("", panicked("a stray breakpoint")),
            ("", panicked("Fatal")),
        ]);
        assert!(failed, "{text}");
        assert!(words[1].ends_with(" --resume=1,1,0,0") && words[2] == words[1], "{words:?}");
        assert!(text.contains("\nnot ok 2 WR-02 ") && text.contains("# WR-02: console: BUG: x\n"), "{text}");
        assert!(text.contains("# WR-03 is run again in a new guest: "), "{text}");
        assert!(text.contains("\nnot ok 3 WR-03 ") && text.contains("# Totals: pass:1 fail:2 "), "{text}");
    }

    #[test]
    fn only_a_guest_that_began_says_something_of_an_item() {
        let options = options(&["conformance", "--filter", "WR-01"]);
        let end = run(&options, plan("WR-01"), Vec::new(), &mut |_, _| Err(panicked("at boot")));
        assert!(matches!(end, Err(VmError::Panic { .. })));
    }
}
