//! Room: what this program does when another copy of it started it as a helper of the table: one busy
//! pair of many, or one idle client of many.
//! Not here: starting it (`helper`), the server of a pair (`crate::stage`).

use std::io::{self, BufRead, Write};
use std::time::Instant;

use driver::{AnyContext, on_context};

use super::trip;
use crate::measure::echo::raw;
use crate::measure::echo::rendezvous::Rendezvous;
use crate::measure::{Pulse, RoundTrip};
use crate::plan::{Dialect, Family, Placement, Release, Waiting};
use crate::stage::{Stage, Watch, on_subject};

/// The hidden command that makes this program a helper.
pub const COMMAND: &str = "__speed";

/// It is ready for the first word.
pub(super) const STARTED: &str = "started";
/// It did what it was told; a pair adds its round trips in each slice of the time.
pub(super) const DONE: &str = "done";

/// Length of a slice in ns: some ticks of a scheduler, of which a process that spins for another on its
/// own CPU loses whole ones.
pub(super) const SLICE_NS: u128 = 20_000_000;

/// In place of a context.
const NO_CONTEXT: &str = "-";

/// The words of a pair that makes round trips of 4 B for so many slices of time.
pub(super) fn pair(
    family: Family,
    placement: Placement,
    slices: usize,
    context: Option<&str>,
) -> Vec<String> {
    let context = context.unwrap_or(NO_CONTEXT).to_owned();
    vec!["pair".to_owned(), family.word().to_owned(), placement.to_string(), slices.to_string(), context]
}

/// The words of a client that makes one call of this service and is idle then.
pub(super) fn idle(context: &str, service: &str) -> Vec<String> {
    ["idle", context, service].map(str::to_owned).to_vec()
}

/// Plays the role that the words behind [`COMMAND`] name. Returns the exit code: 0, 2 for words that make
/// no sense, 4 when something broke.
#[must_use]
pub fn play(words: &[String]) -> u8 {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let played = match words[..] {
        ["idle", context, service] => be_idle(&AnyContext::parse(context), service),
        ["pair", family, placement, slices, context] => {
            match (Family::control(family), placement.parse(), slices.parse::<u16>()) {
                (Some(family), Ok(placement), Ok(slices)) => {
                    let context = (context != NO_CONTEXT).then(|| AnyContext::parse(context));
                    be_busy(family, placement, slices.into(), context)
                }
                _ => return nonsense(),
            }
        }
        _ => return nonsense(),
    };
    match played {
        Ok(()) => 0,
        Err(why) => {
            // Whoever still listens learns the reason.
            let _ = writeln!(io::stdout(), "{why}");
            4
        }
    }
}

fn nonsense() -> u8 {
    eprintln!("binderperf: {COMMAND} is started by binderperf itself");
    2
}

/// Says a line and waits for the next word; an end of the input is one, too.
fn say_and_wait(line: &str) -> Result<(), String> {
    let mut stdout = io::stdout();
    let said = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
    let heard = said.and_then(|()| io::stdin().lock().read_line(&mut String::new()));
    heard.map(drop).map_err(|error| format!("talking to the table: {}", sys::errno::describe(&error)))
}

fn be_idle(any: &AnyContext, service: &str) -> Result<(), String> {
    say_and_wait(STARTED)?;
    on_context!(any, |context| {
        let place = Rendezvous { context, dialect: Dialect::Binder(Release::default()), name: service };
        let mut client = raw::Client::find(place, 4).map_err(|error| error.to_string())?;
        client.call().and_then(|()| client.check()).map_err(|error| error.to_string())?;
        say_and_wait(DONE)
    })
}

fn be_busy(
    family: Family,
    placement: Placement,
    slices: usize,
    context: Option<AnyContext>,
) -> Result<(), String> {
    // How the driver waits is part of the context's address.
    let plan = trip::plan(&[family], 4, placement, Waiting::default())?;
    let program = std::env::current_exe().map_err(|error| sys::errno::describe(&error))?;
    let planned = plan.cases().into_iter().find(|planned| planned.family == family);
    let planned = planned.ok_or("the pair is not planned")?;
    let mut stage = Stage::new(&plan, &program, context, crate::host::class());
    let subject = stage.enter(&planned).map_err(|error| error.to_string())?;
    let counted = on_subject!(subject, |mut client| count(&mut client, slices, stage.watch()))?;
    let words: Vec<String> = counted.iter().map(u64::to_string).collect();
    say_and_wait(&format!("{DONE} {}", words.join(" ")))
}

/// Makes round trips for so many slices of time, once it is told to; returns how many in each.
fn count<R: RoundTrip>(client: &mut R, slices: usize, watch: &Watch) -> Result<Vec<u64>, String> {
    client.stamp(0);
    watch.during(|| client.call().and_then(|()| client.check())).map_err(|error| error.to_string())?;
    let mut counted = vec![0; slices];
    say_and_wait(STARTED)?;
    watch.during(|| {
        let (begun, mut calls) = (Instant::now(), 0_u32);
        loop {
            calls = calls.wrapping_add(1);
            client.stamp(calls);
            client.call().map_err(|error| error.to_string())?;
            watch.beat();
            let slice = usize::try_from(begun.elapsed().as_nanos() / SLICE_NS).unwrap_or(usize::MAX);
            match counted.get_mut(slice) {
                Some(count) => *count += 1,
                None => break,
            }
        }
        client.check().map_err(|error| error.to_string())
    })?;
    Ok(counted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsense_is_refused() {
        for bad in
            [&[][..], &["pair"], &["pair", "cook", "same", "1", "-"], &["pair", "pipe", "same", "x", "-"]]
        {
            let words: Vec<String> = bad.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(play(&words), 2, "{bad:?}");
        }
    }
}
