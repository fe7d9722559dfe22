//! Share of a case's calls with both sides on one CPU, by looks between calls.
//! Not here: placing the sides (`crate::servers`).
//! Facts: field 39 of `/proc/PID/stat` is the CPU that the process's first thread last ran on; a server serves on
//! its first thread. The measuring thread looks itself: another thread's wake-ups would move both sides.

use std::cell::Cell;
use std::fs::File;
use std::os::unix::fs::FileExt;

use record::CpuLooks;

use super::Pulse;

/// Interval of the looks in ns: each costs some microseconds, outside of every sample.
const INTERVAL_NS: u64 = 4_000_000;

/// Looks at the CPUs of both sides while a [`Pulse`] beats.
pub(crate) struct Watched<'p, P> {
    pulse: &'p P,
    /// The server's `/proc/PID/stat`; `None` without a server or without /proc.
    server: Option<File>,
    due_ns: Cell<u64>,
    looks: Cell<CpuLooks>,
}

impl<'p, P: Pulse> Watched<'p, P> {
    /// Watches the process `server`.
    pub(crate) fn new(pulse: &'p P, server: Option<u32>) -> Self {
        let server = server.and_then(|pid| File::open(format!("/proc/{pid}/stat")).ok());
        Self { pulse, server, due_ns: Cell::new(0), looks: Cell::default() }
    }

    /// Returns the looks, and forgets them; `None` if none could be taken.
    pub(crate) fn take(&self) -> Option<CpuLooks> {
        Some(self.looks.take()).filter(|looks| looks.taken > 0)
    }

    fn look(&self, now_ns: u64) {
        self.due_ns.set(now_ns + INTERVAL_NS);
        let Some(server) = self.server.as_ref().and_then(last_cpu) else { return };
        let CpuLooks { taken, together } = self.looks.get();
        let same = server == sys::sched::current_cpu();
        self.looks.set(CpuLooks { taken: taken + 1, together: together + u64::from(same) });
    }
}

impl<P: Pulse> Pulse for Watched<'_, P> {
    fn beat(&self, now_ns: u64) {
        self.pulse.beat(now_ns);
        if now_ns >= self.due_ns.get() {
            self.look(now_ns);
        }
    }

    fn stop(&self) -> bool {
        self.pulse.stop()
    }
}

/// Reads the CPU from a process's `stat` file.
fn last_cpu(stat: &File) -> Option<u32> {
    let mut text = [0; 1024];
    let len = stat.read_at(&mut text, 0).ok()?;
    cpu_in(std::str::from_utf8(text.get(..len)?).ok()?)
}

/// Finds the CPU in the text of a `stat` file, whose second field may contain spaces and parentheses.
fn cpu_in(text: &str) -> Option<u32> {
    let (_, rest) = text.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(36)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_is_found_behind_any_name() {
        let numbers: Vec<String> = (3..=52).map(|field| field.to_string()).collect();
        for name in ["server", "a b", ") 1 2 ("] {
            assert_eq!(cpu_in(&format!("1 ({name}) {}\n", numbers.join(" "))), Some(39), "{name}");
        }
        for broken in ["", "1 (x)", "1 (x) S 1 2 3", "1 x S"] {
            assert_eq!(cpu_in(broken), None, "{broken}");
        }
    }

    struct Idle;

    impl Pulse for Idle {
        fn beat(&self, _now_ns: u64) {}

        fn stop(&self) -> bool {
            false
        }
    }

    #[test]
    fn a_thread_is_always_on_its_own_cpu_and_looks_are_apart() {
        let cpus = sys::sched::affinity().expect("CPUs");
        sys::sched::set_affinity(&cpus[..1]).expect("permitted before");
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("sleep");
        let watched = Watched::new(&Idle, Some(child.id()));
        for now_ns in [5, 6, INTERVAL_NS, INTERVAL_NS + 5, 9 * INTERVAL_NS] {
            watched.beat(now_ns);
        }
        child.kill().expect("runs");
        child.wait().expect("ends");
        // A child inherits the one CPU; the second and third beats came before the next look.
        assert_eq!(watched.take(), Some(CpuLooks { taken: 3, together: 3 }));
        assert_eq!(watched.take(), None);
        sys::sched::set_affinity(&cpus).expect("permitted before");
    }

    #[test]
    fn without_a_server_nothing_is_told() {
        let watched = Watched::new(&Idle, None);
        watched.beat(INTERVAL_NS);
        assert_eq!(watched.take(), None);
    }
}
