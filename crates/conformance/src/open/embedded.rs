//! Contract section 1 where there is no device: what of it holds, and what holds instead
//! (docs/differences.md).

use std::fs;

use driver::Context;

use crate::prelude::*;

/// What the driver's memory is called where the kernel lists mappings and descriptors.
const MEMORY: &str = "/memfd:binderperf";

/// `O_CLOEXEC`, as `fdinfo` prints it in octal.
const CLOSE_ON_EXEC: u32 = 0o2_000_000;

/// The line of `/proc/self/maps` for the receiving area.
pub(super) fn the_mapping_is_read_only(kit: &Kit) -> Verdict {
    let process = kit.open()?;
    let base = required(process.conn.map_base(), || "nothing is mapped".into())?;
    let maps = done("reading /proc/self/maps", fs::read_to_string("/proc/self/maps"))?;
    let line = maps.lines().find(|line| line.starts_with(&format!("{base:x}-"))).unwrap_or_default();
    let mode = line.split_whitespace().nth(1);
    expect("how the mapping is mapped that deliveries are read in", mode, Some("r--s"))?;
    kit.differs("the mapping that deliveries are read in is read-only, and is the driver's to map otherwise")
}

pub(super) fn one_mapping_per_open(kit: &Kit) -> Verdict {
    let options = OpenOptions { map_size: 0, nonblocking: true };
    let connection = context(kit)?.open(options).map_err(|error| Stop::Fail(error.to_string()))?;
    expect("the area of an open that maps nothing", connection.map_base(), None)?;
    expect_errno("mapping it", &connection.map(default_map_size()), "OK")?;
    expect_errno("a second mapping", &connection.map(default_map_size()), "EBUSY")?;
    connection.unmap();
    expect_errno("a mapping after unmapping", &connection.map(default_map_size()), "EBUSY")
}

/// This process's descriptors and what they are.
fn descriptors() -> Result<Vec<(String, String)>, Stop> {
    let entries = done("listing /proc/self/fd", fs::read_dir("/proc/self/fd"))?;
    let name = |entry: fs::DirEntry| {
        let target = fs::read_link(entry.path()).ok()?;
        Some((entry.file_name().to_string_lossy().into_owned(), target.display().to_string()))
    };
    Ok(entries.flatten().filter_map(name).collect())
}

pub(super) fn nothing_survives_exec(kit: &Kit) -> Verdict {
    let before = descriptors()?;
    let _process = kit.open()?;
    let made: Vec<_> = descriptors()?.into_iter().filter(|made| !before.contains(made)).collect();
    let memories = made.iter().filter(|(_, what)| what.starts_with(MEMORY)).count();
    ensure(memories > 0, || format!("the memory of a connection is not among {made:?}"))?;
    for (number, what) in made {
        // The one with which the list was made is gone.
        let Ok(info) = fs::read_to_string(format!("/proc/self/fdinfo/{number}")) else { continue };
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).unwrap_or_default();
        let flags = u32::from_str_radix(flags.trim(), 8).unwrap_or(0);
        ensure(flags & CLOSE_ON_EXEC != 0, || format!("{what} stays open after exec"))?;
    }
    kit.differs("no descriptor of an open context survives exec, so no other program can map it")
}

/// Fails unless every mapping of the driver's is left out of children.
pub(super) fn fork_copies_no_mapping(kit: &Kit) -> Verdict {
    let _process = kit.open()?;
    let smaps = super::smaps()?;
    let mut lines = smaps.lines();
    let mut seen = 0;
    while let Some(line) = lines.next() {
        if line.contains(MEMORY) {
            let flags = lines.find_map(|line| line.strip_prefix("VmFlags:")).unwrap_or_default();
            ensure(flags.split_whitespace().any(|flag| flag == "dc"), || {
                format!("expected the flag dc (do not copy on fork) on {line}, it has{flags}")
            })?;
            seen += 1;
        }
    }
    ensure(seen > 0, || "no mapping of the driver's is listed".into())
}

pub(super) fn a_fresh_page_is_zero(kit: &Kit) -> Verdict {
    let said = kit.run_helper(kit.helper("touch-fresh-page", &[]))?;
    expect("reading a fresh page", said.as_str(), "survived, and read 0")?;
    kit.differs("a page that never held a buffer reads as zeroes")
}

pub(super) fn a_child_is_a_process_of_its_own(kit: &Kit) -> Verdict {
    let Pair { server, client: _client, handle: Handle(handle), .. } = kit.pair()?;
    let said = kit.run_helper(kit.helper("use-handle", &[&handle.to_string()]))?;
    expect("a child that calls its parent's handle", said.as_str(), "FAILED_REPLY")?;
    server.expect_silence("no call was made")?;
    kit.differs("no connection can be inherited: a child opens its own, without its parent's handles")
}

pub(super) fn a_context_is_there_when_it_is_opened(kit: &Kit) -> Verdict {
    let own = context(kit)?;
    for name in ["binder", "hwbinder", "vndbinder", "any.name of-mine"] {
        let other = EmbeddedContext::at(own.directory(), name, own.settings());
        let process = kit.on(other.into()).open_with(OpenOptions::default())?;
        expect(name, process.version()?, 8)?;
        let manager = process.conn.become_context_manager(None);
        let want = if name == own.name() { "EBUSY" } else { "OK" };
        expect_errno(&format!("managing {name}"), &manager, want)?;
    }
    kit.differs("no list names the contexts: a context is there when it is opened")
}

/// The context under test, by what another process would know of it.
pub(in super::super) fn context(kit: &Kit) -> Result<EmbeddedContext, Stop> {
    let address = kit.subject.address();
    required(EmbeddedContext::parse(&address), || format!("{address} is no embedded context"))
}
