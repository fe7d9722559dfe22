//! Another scheduler for the ordinary threads of the machine: sched_ext without any program, which makes the kernel keep them in
//! one queue, first come, first served.
//! Not here: registering a structure (`sys::bpf`).
//! Facts: `kernel/sched/ext/ext.c`, Linux 7.2: every function of `sched_ext_ops` is optional and its name is not
//! (`bpf_scx_init_member`); without `enqueue` and `dispatch` a thread goes to the queue of all CPUs (`do_enqueue_task`).
//! `include/uapi/linux/btf.h`: how the kernel describes its types.

use std::fs;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;

/// The kernel's description of its types.
const TYPES: &str = "/sys/kernel/btf/vmlinux";
/// Whether such a scheduler is in force.
const STATE: &str = "/sys/kernel/sched_ext/state";
/// The scheduler's name in the kernel.
const NAME: &str = "binderperf";
/// Name of the one that is in force.
const IN_FORCE: &str = "/sys/kernel/sched_ext/root/ops";

/// The scheduler, in force until it is dropped.
pub(super) struct Scheduler {
    _link: OwnedFd,
}

impl Scheduler {
    /// Puts it in force.
    ///
    /// # Errors
    /// The kernel cannot, or does not permit it: a message for the user.
    pub(super) fn start() -> Result<Self, String> {
        let file = |file: &str, error| format!("--sched-ext: {file}: {}", sys::errno::describe(&error));
        fs::metadata(STATE).map_err(|error| {
            file(STATE, error) + ": the kernel is without sched_ext (CONFIG_SCHED_CLASS_EXT)"
        })?;
        let types = fs::read(TYPES).map_err(|error| file(TYPES, error))?;
        let (number, value) =
            value(&types).ok_or_else(|| format!("--sched-ext: {TYPES} has no sched_ext_ops"))?;
        let registered = sys::bpf::register(number, &value);
        let _link = registered.map_err(|error| {
            let why = match error.kind() {
                ErrorKind::ResourceBusy => "another scheduler of sched_ext is in force",
                _ => "root is needed and a kernel that takes it",
            };
            format!("--sched-ext: {why}: {}", sys::errno::describe(&error))
        })?;
        let scheduler = Self { _link };
        scheduler
            .is_in_force()
            .then_some(scheduler)
            .ok_or_else(|| format!("--sched-ext: {STATE} says that it is not in force"))
    }

    /// Whether it is still in force: the kernel ends one that leaves a thread waiting for 30 s.
    pub(super) fn is_in_force(&self) -> bool {
        let says = |file, text: &str| fs::read_to_string(file).is_ok_and(|found| found.trim() == text);
        says(STATE, "enabled") && says(IN_FORCE, NAME)
    }
}

/// A structure of the kernel.
struct Structure<'t> {
    number: u32,
    size: u32,
    members: &'t [u8],
    /// Bits of a member's offset that count.
    mask: u32,
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..)?.first_chunk().copied()?))
}

/// An offset of the header.
fn place(types: &[u8], at: usize) -> Option<usize> {
    word(types, at).map(|place| place as usize)
}

/// The number of the kernel's type of a registered `sched_ext_ops`, and its value with nothing but the name.
fn value(types: &[u8]) -> Option<(u32, Vec<u8>)> {
    let outer = structure(types, "bpf_struct_ops_sched_ext_ops")?;
    let at = offset(types, &outer, "data")? + offset(types, &structure(types, "sched_ext_ops")?, "name")?;
    let mut value = vec![0; outer.size as usize];
    value.get_mut(at..)?.get_mut(..NAME.len())?.copy_from_slice(NAME.as_bytes());
    Some((outer.number, value))
}

fn text(types: &[u8], at: u32) -> Option<&[u8]> {
    let strings = place(types, 4)? + place(types, 16)?;
    types.get(strings + at as usize..)?.split(|byte| *byte == 0).next()
}

/// The first structure of this name.
fn structure<'t>(types: &'t [u8], name: &str) -> Option<Structure<'t>> {
    const MAGIC: [u8; 2] = 0xeb9f_u16.to_ne_bytes();
    const STRUCT: u32 = 4;
    if types.get(..2)? != MAGIC {
        return None;
    }
    let mut at = place(types, 4)? + place(types, 8)?;
    let end = at + place(types, 12)?;
    let mut number = 1;
    while at < end {
        let (named, info, size) = (word(types, at)?, word(types, at + 4)?, word(types, at + 8)?);
        let (kind, many) = ((info >> 24) & 0x1f, (info & 0xffff) as usize);
        at += 12;
        let more = match kind {
            // Integers, variables and tags of declarations; arrays; lists by the size of an entry.
            1 | 14 | 17 => 4,
            3 => 12,
            4 | 5 | 15 | 19 => 12 * many,
            6 | 13 => 8 * many,
            2 | 7..=12 | 16 | 18 => 0,
            _ => return None,
        };
        if kind == STRUCT && text(types, named)? == name.as_bytes() {
            let mask = if info >> 31 == 1 { 0xff_ffff } else { u32::MAX };
            return Some(Structure { number, size, members: types.get(at..at + more)?, mask });
        }
        at += more;
        number += 1;
    }
    None
}

/// Offset of a member in bytes.
fn offset(types: &[u8], structure: &Structure<'_>, name: &str) -> Option<usize> {
    structure.members.chunks_exact(12).find_map(|member| {
        let is_it = text(types, word(member, 0)?)? == name.as_bytes();
        is_it.then_some((word(member, 8)? & structure.mask) as usize / 8)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Types as the kernel describes them: an integer, and both structures, of which the first has a gap before its data.
    fn described() -> Vec<u8> {
        let strings = b"\0int\0sched_ext_ops\0flags\0name\0bpf_struct_ops_sched_ext_ops\0data\0";
        let at = |text: &str| {
            let found =
                strings.windows(text.len() + 2).position(|at| at == [b"\0", text.as_bytes(), b"\0"].concat());
            found.expect("a string") as u32 + 1
        };
        let words = [
            &[at("int"), 1 << 24, 4, 32][..],
            &[at("sched_ext_ops"), 4 << 24 | 2, 64, at("flags"), 1, 0, at("name"), 1, 8 * 16],
            &[at("bpf_struct_ops_sched_ext_ops"), 1 << 31 | 4 << 24 | 1, 192, at("data"), 2, 8 * 64],
        ]
        .concat();
        let length = 4 * words.len() as u32;
        let head = [24, 0, length, length, strings.len() as u32];
        let begin = [&0xeb9f_u16.to_ne_bytes()[..], &[1, 0]].concat();
        let numbers = head.iter().chain(&words).flat_map(|word| word.to_ne_bytes());
        begin.into_iter().chain(numbers).chain(strings.iter().copied()).collect()
    }

    #[test]
    fn the_name_is_put_where_the_kernel_has_it() {
        let (number, value) = value(&described()).expect("both structures");
        assert_eq!((number, value.len()), (3, 192));
        assert_eq!(value[64 + 16..][..NAME.len()], *NAME.as_bytes());
        assert_eq!(value.iter().filter(|byte| **byte != 0).count(), NAME.len());
    }

    #[test]
    fn a_damaged_description_does_no_harm() {
        let whole = described();
        for length in 0..whole.len() - 1 {
            // It may be whole where only the last strings are missing.
            let _ = value(&whole[..length]);
        }
        assert!(value(&whole[..60]).is_none() && value(&[]).is_none());
        let mut other = whole.clone();
        other[0] = 0;
        assert!(value(&other).is_none());
    }
}
