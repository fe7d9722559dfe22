//! Facts of a process from procfs: the process of a thread, where a file is mapped, what an epoll instance holds.
//! Facts: `proc(5)`.

use std::fs;
use std::io;

use sys::file_key::FileKey;

/// The process that a thread belongs to.
pub(crate) fn process_of(thread: i32) -> io::Result<u32> {
    let status = fs::read_to_string(format!("/proc/{thread}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"));
    line.and_then(|number| number.trim().parse().ok()).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// The address at which a process has mapped a file's first byte.
pub(crate) fn mapped_at(process: u32, file: FileKey) -> Option<u64> {
    mapping_in(&fs::read_to_string(format!("/proc/{process}/maps")).ok()?, file.inode)
}

/// `7f0000000000-7f0000100000 r--s 00000000 00:01 1234 /memfd:...`
fn mapping_in(maps: &str, inode: u64) -> Option<u64> {
    maps.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let range = words.next()?;
        let offset = u64::from_str_radix(words.nth(1)?, 16).ok()?;
        let found: u64 = words.nth(1)?.parse().ok()?;
        // Other files may have that number; a memory file has this name.
        let is_memory = words.next().is_some_and(|name| name.starts_with("/memfd:"));
        let start = u64::from_str_radix(range.split_once('-')?.0, 16).ok()?;
        (found == inode && is_memory).then(|| start.checked_sub(offset))?
    })
}

/// Most epoll instances inside of each other, as in the kernel.
const NESTED: u32 = 5;

/// Inodes of the files in an epoll instance, and in those inside of it.
pub(crate) fn waited_for(process: u32, epoll: i32) -> Vec<u64> {
    let mut found = Vec::new();
    let mut instances = vec![epoll];
    for _ in 0..NESTED {
        let inside: Vec<_> = instances.iter().flat_map(|number| entries_of(process, *number)).collect();
        found.extend(inside.iter().map(|(_, inode)| *inode));
        instances = inside
            .into_iter()
            .map(|(number, _)| number)
            .filter(|number| is_epoll(process, *number))
            .collect();
    }
    found
}

/// True if a descriptor is an epoll instance.
pub(crate) fn is_epoll(process: u32, number: i32) -> bool {
    let name = fs::read_link(format!("/proc/{process}/fd/{number}"));
    name.is_ok_and(|name| name.as_os_str() == "anon_inode:[eventpoll]")
}

fn entries_of(process: u32, epoll: i32) -> Vec<(i32, u64)> {
    entries_in(&fs::read_to_string(format!("/proc/{process}/fdinfo/{epoll}")).unwrap_or_default())
}

/// Number and inode of each: `tfd:        5 events:       19 data:                5  pos:0 ino:2af1 sdev:f`
fn entries_in(text: &str) -> Vec<(i32, u64)> {
    let entry = |line: &str| {
        let mut words = line.strip_prefix("tfd:")?.split_whitespace();
        let number = words.next()?.parse().ok()?;
        let inode = words.find_map(|word| word.strip_prefix("ino:"))?;
        Some((number, u64::from_str_radix(inode, 16).ok()?))
    };
    text.lines().filter_map(entry).collect()
}

/// The system call that a thread sleeps in; `None` if it runs, or may not be looked at.
pub(crate) fn sleeps_in(thread: i32) -> Option<sys::call::Number> {
    let text = fs::read_to_string(format!("/proc/{thread}/syscall")).ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// True if a process has a thread of this number.
pub(crate) fn has_thread(process: u32, thread: i32) -> bool {
    std::path::Path::new(&format!("/proc/{process}/task/{thread}")).exists()
}

/// True if a descriptor is closed on exec.
pub(crate) fn closes_on_exec(process: u32, number: i32) -> bool {
    let text = fs::read_to_string(format!("/proc/{process}/fdinfo/{number}")).unwrap_or_default();
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|octal| u32::from_str_radix(octal.trim(), 8).ok());
    flags.is_some_and(|flags| flags & sys::call::O_CLOEXEC as u32 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memory_file_is_found_among_mappings() {
        let maps = "55d0-55d1 r--p 00000000 fe:00 77 /bin/x\n\
                    7f00-7f10 r--s 00000000 00:01 77 /memfd:binderperf (deleted)\n\
                    7f20-7f30 r--p 00001000 00:01 78 /memfd:binderperf (deleted)\n\
                    7fff-8000 rw-p 00000000 00:00 0 [stack]\n";
        assert_eq!(mapping_in(maps, 77), Some(0x7f00));
        assert_eq!(mapping_in(maps, 78), Some(0x6f20));
        assert_eq!(mapping_in(maps, 79), None);
    }

    #[test]
    fn the_files_of_an_epoll_instance_are_found() {
        let text = "pos:\t0\nflags:\t02\ntfd:        5 events:       19 data:  5  pos:0 ino:2af1 sdev:f\n";
        assert_eq!(entries_in(text), [(5, 0x2af1)]);
        assert_eq!(entries_in(""), []);
    }

    #[test]
    fn facts_of_this_process() {
        let own = std::process::id();
        assert_eq!(process_of(own as i32).expect("it lives"), own);
        assert!(process_of(i32::MAX).is_err());
        assert_eq!(sleeps_in(i32::MAX), None);
        let file = fs::File::open("/dev/null").expect("/dev/null");
        assert!(closes_on_exec(own, std::os::fd::AsRawFd::as_raw_fd(&file)));
        assert!(!closes_on_exec(own, -1));
    }
}
