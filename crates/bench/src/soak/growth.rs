//! Counts that must not grow in a soak: the driver's objects, memory and descriptors of processes, complaints of the kernel.
//! Not here: whether it grows (`record::soak::judge`), where the driver's files lie (`backend::state`).
//! Facts: contract DBG-05, DBG-06: counters of all objects, `KIND: active N`, and of each process; `proc(5)`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use backend::AnyContext;
use backend::locate::{Device, Wanted};
use backend::state::{StateError, StateFile, of_device, of_embedded};
use host::klog::{KernelLogError, Watch};
use record::soak::Turn;

/// Time limit for the driver to release what ended processes had.
const RELEASE: Duration = Duration::from_secs(2);
/// Looks in a row, a ms apart, after which nothing is being released.
const CALM: u32 = 20;
/// The count of complaints.
const COMPLAINTS: &str = "kernel log complaints";

/// Whose state is counted.
enum Whose {
    Embedded(PathBuf),
    Kernel(Device),
}

/// The counts of a soak.
pub(super) struct Growth {
    whose: Whose,
    log: Result<Watch, KernelLogError>,
    /// Complaints so far, those of earlier stretches included.
    complaints: f64,
}

impl Growth {
    /// Begins after the last turn of the stretch before.
    pub(super) fn begin(context: &AnyContext, wanted: &Wanted, last: Option<&Turn>) -> Self {
        let whose = match context {
            AnyContext::Embedded(context) => Whose::Embedded(context.directory().to_owned()),
            AnyContext::Kernel(_) => Whose::Kernel(wanted.device.clone()),
        };
        let complaints = last.and_then(|turn| turn.counts.get(COMPLAINTS)).copied().unwrap_or(0.0);
        Self { whose, log: Watch::begin(), complaints }
    }

    /// Adds the counts after a turn; `processes` are named.
    pub(super) fn count(&mut self, processes: &[(&str, u32)], turn: &mut Turn) {
        match self.settled(processes) {
            Ok(counts) => turn.counts.extend(counts),
            Err(why) => turn.missing.push(format!("the driver's counts: {why}")),
        }
        turn.counts.extend(descriptors(processes));
        for (name, pid) in processes {
            let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            match host::parse::kibibytes(&status, "VmRSS") {
                Some(bytes) => {
                    turn.counts.insert(format!("{name} memory, KiB"), (bytes / 1024) as f64);
                }
                None => turn.missing.push(format!("{name} memory, KiB: process {pid} cannot be looked at")),
            }
        }
        // The next watch begins before this one ends, so that no message is between them.
        match std::mem::replace(&mut self.log, Watch::begin()).and_then(Watch::end) {
            Ok(report) => {
                self.complaints += report.complaints.len() as f64;
                turn.counts.insert(COMPLAINTS.to_owned(), self.complaints);
                // One is enough; a trend would not show it.
                let faults = report.complaints.iter().filter(|message| message.is_alarm());
                turn.failed.extend(faults.map(|fault| format!("the kernel reports a fault: {}", fault.text)));
            }
            Err(why) => turn.missing.push(format!("{COMPLAINTS}: {why}")),
        }
    }

    /// The driver's counts once it has released the processes of the turn: so many looks in a row agree as [`CALM`] says.
    fn settled(&self, processes: &[(&str, u32)]) -> Result<BTreeMap<String, f64>, StateError> {
        let look = || self.look().map(|counts| (counts, descriptors(processes)));
        let mut before = look()?;
        let (mut ended, mut alike) = (Ok(()), 0);
        // Another program that comes and goes all the time is counted as it is.
        let _ = sys::patience::until(RELEASE, || match look() {
            Ok(now) => {
                alike = if now == before { alike + 1 } else { 0 };
                before = now;
                alike >= CALM
            }
            Err(error) => {
                ended = Err(error);
                true
            }
        });
        ended.map(|()| before.0)
    }

    fn look(&self) -> Result<BTreeMap<String, f64>, StateError> {
        let text = match &self.whose {
            Whose::Embedded(directory) => of_embedded(Some(directory), StateFile::Stats)?,
            Whose::Kernel(device) => of_device(device, StateFile::Stats)?,
        };
        Ok(counts(&text))
    }
}

/// The open descriptors of processes that can be looked at.
fn descriptors(processes: &[(&str, u32)]) -> BTreeMap<String, f64> {
    let count = |pid: u32| Some(std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count() as f64);
    processes.iter().filter_map(|(name, pid)| Some((format!("{name} descriptors"), count(*pid)?))).collect()
}

/// The counts in a stats file. A kind is counted as a whole, or where the driver does not count it so, by processes.
fn counts(stats: &str) -> BTreeMap<String, f64> {
    let (mut all, mut by_process) = (BTreeMap::<&str, u64>::new(), BTreeMap::<&str, u64>::new());
    for line in stats.lines() {
        match line.split_whitespace().collect::<Vec<_>>()[..] {
            ["proc:", "active", count, ..] => add(&mut all, "driver processes", count),
            ["thread:", "active", count, ..] => add(&mut all, "driver threads", count),
            ["node:", "active", count, ..] => add(&mut all, "driver nodes", count),
            ["ref:", "active", count, ..] => add(&mut all, "driver references", count),
            ["death:", "active", count, ..] => add(&mut all, "driver death notices", count),
            ["nodes:", count, ..] => add(&mut by_process, "driver nodes", count),
            ["refs:", count, ..] => add(&mut by_process, "driver references", count),
            ["threads:", count, ..] => add(&mut by_process, "driver threads", count),
            ["buffers:", count, ..] => add(&mut by_process, "driver buffers", count),
            // Active, spare, free: those that have memory.
            ["pages:", counts] => {
                counts.split(':').take(2).for_each(|count| add(&mut by_process, "driver pages", count));
            }
            _ => {}
        }
    }
    for (kind, count) in by_process {
        all.entry(kind).and_modify(|all| *all = count.max(*all)).or_insert(count);
    }
    all.into_iter().map(|(kind, count)| (kind.to_owned(), count as f64)).collect()
}

fn add<'k>(counts: &mut BTreeMap<&'k str, u64>, kind: &'k str, count: &str) {
    if let Ok(count) = count.parse::<u64>() {
        let sum = counts.entry(kind).or_default();
        *sum = sum.saturating_add(count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_counted_as_a_whole_or_by_process() {
        let text = "binder stats:\nBC_REPLY: 3\nproc: active 2 total 9\nnode: active 7 total 8\nproc 12\ncontext binder\n  \
                    threads: 2\n  nodes: 3\n  refs: 4 s 4 w 4\n  buffers: 1\n  pages: 3:1:250\nproc 13\n  nodes: 2\n  \
                    refs: 1 s 1 w 1\n  buffers: x\n  pages: 1:0:253\n";
        let found = counts(text);
        let want = [
            ("driver buffers", 1.0),
            ("driver nodes", 7.0),
            ("driver pages", 5.0),
            ("driver processes", 2.0),
            ("driver references", 5.0),
            ("driver threads", 2.0),
        ];
        assert_eq!(found.iter().map(|(kind, count)| (kind.as_str(), *count)).collect::<Vec<_>>(), want);
        assert!(counts("\u{0}nodes: 99999999999999999999999\n").is_empty());
    }

    #[test]
    fn what_cannot_be_looked_at_is_named() {
        let wanted = Wanted { device: Device::Named("nosuch".to_owned()), ..Wanted::default() };
        let context = AnyContext::parse("/dev/nosuch");
        let mut growth = Growth::begin(&context, &wanted, None);
        let mut turn = Turn::default();
        growth.count(&[("own", std::process::id()), ("gone", u32::MAX)], &mut turn);
        assert!(turn.counts["own memory, KiB"] > 100.0 && turn.counts["own descriptors"] > 2.0, "{turn:?}");
        for missing in ["the driver's counts: ", "gone memory"] {
            assert!(turn.missing.iter().any(|why| why.starts_with(missing)), "{missing}: {turn:?}");
        }
    }
}
