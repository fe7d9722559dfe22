//! Names of processes and threads, and processes of threads, from `/proc`.
//! Facts: `proc_pid_status(5)`: `/proc/TID/status` is of any thread; `proc_pid_cmdline(5)`.

use std::collections::HashMap;
use std::fs;

use trace::hash::FastHash;
use units::visible::printable;

/// Tasks that are remembered, of each kind.
const MOST: usize = 1 << 14;

/// Spans after which what is known is asked again: numbers are used again, and processes take other names.
const OLD: u32 = 30;

/// Names and processes of tasks.
#[derive(Debug, Default)]
pub struct Tasks {
    processes: HashMap<i32, Option<i32>, FastHash>,
    names: HashMap<i32, Box<str>, FastHash>,
    threads: HashMap<i32, Box<str>, FastHash>,
    age: u32,
}

impl Tasks {
    /// The process of a thread; `None` if it is gone.
    pub fn process_of(&mut self, tid: i32) -> Option<i32> {
        make_room(&mut self.processes);
        *self.processes.entry(tid).or_insert_with(|| {
            let status = fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
            status.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok())
        })
    }

    /// A process's name: the file of its command line, or as the kernel calls it; empty if it is gone. It steers no terminal.
    pub fn name(&mut self, pid: i32) -> &str {
        make_room(&mut self.names);
        self.names.entry(pid).or_insert_with(|| name_of(pid).into())
    }

    /// A thread's name; empty if it is not known.
    pub fn thread(&mut self, tid: i32) -> &str {
        make_room(&mut self.threads);
        self.threads.entry(tid).or_insert_with(|| kernel_name(tid).into())
    }

    /// A span has ended.
    pub fn age(&mut self) {
        self.age += 1;
        if self.age >= OLD {
            *self = Self::default();
        }
    }
}

fn make_room<T>(of: &mut HashMap<i32, T, FastHash>) {
    if of.len() >= MOST {
        of.clear();
    }
}

fn kernel_name(tid: i32) -> String {
    let name = fs::read_to_string(format!("/proc/{tid}/comm")).unwrap_or_default();
    printable(name.trim_end()).into_owned()
}

fn name_of(pid: i32) -> String {
    let command_line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    match explain::process_name(&String::from_utf8_lossy(&command_line)) {
        "" => kernel_name(pid),
        name => printable(name).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_known_and_one_that_is_not_there_is_not() {
        let mut tasks = Tasks::default();
        let own = std::process::id().cast_signed();
        assert_eq!((tasks.process_of(own), tasks.process_of(-7)), (Some(own), None));
        assert!(!tasks.name(own).is_empty() && tasks.name(-7).is_empty());
        assert!(!tasks.thread(own).is_empty() && tasks.thread(-7).is_empty());
    }

    #[test]
    fn memory_is_bounded() {
        let mut tasks = Tasks::default();
        (1..=2 * MOST as i32).for_each(|tid| _ = tasks.thread(-tid));
        assert!(tasks.threads.len() <= MOST, "{}", tasks.threads.len());
    }
}
