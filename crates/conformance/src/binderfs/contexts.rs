//! Contract section 17 for the embedded driver: a broker's directory and its contexts take the role of an instance
//! and its devices (docs/differences.md).

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use driver::Context;

use crate::open::context;
use crate::prelude::*;

/// A connection to the context of this name, next to the one under test.
fn beside(kit: &Kit, name: &str) -> Result<RawProcess, Stop> {
    let own = context(kit)?;
    let other = EmbeddedContext::at(own.directory(), name, own.settings());
    kit.on(other.into()).open_mapped(sys::page::size())
}

pub(super) fn each_directory_is_a_world(kit: &Kit) -> Verdict {
    let own = context(kit)?;
    let there = done("the broker's directory", fs::metadata(own.directory()))?;
    let me = done("/proc/self", fs::metadata("/proc/self"))?.uid();
    expect("its mode and owner", (there.mode() & 0o7777, there.uid()), (0o700, me))?;
    let private = || done("another directory", EmbeddedContext::private(own.name(), own.settings()));
    let (one, two) = (private()?, private()?);
    let mut managers = Vec::new();
    for context in [&one, &two] {
        let process = kit.on(context.clone().into()).open()?;
        expect_errno("managing a directory's context", &process.conn.become_context_manager(None), "OK")?;
        managers.push(process);
    }
    kit.differs("each directory has a broker and contexts of its own, for its user only")
}

pub(super) fn contexts_have_names(kit: &Kit) -> Verdict {
    let longest = "x".repeat(255);
    for name in ["mine", longest.as_str(), "ä b"] {
        let process = beside(kit, name)?;
        expect_errno(name, &process.conn.become_context_manager(None), "OK")?;
    }
    let own = context(kit)?;
    let too_long = "x".repeat(256);
    for name in ["", ".", "..", "a/b", "a:b", "a\nb", "a\0b", too_long.as_str()] {
        let other = EmbeddedContext::at(own.directory(), name, own.settings());
        match other.open(OpenOptions::default()) {
            Ok(_) => return Err(Stop::Fail(format!("a context {name:?} was opened"))),
            Err(error) => ensure(error.to_string().contains("a context's name"), || {
                format!("a context {name:?} is refused with: {error}")
            })?,
        }
    }
    kit.differs(
        "opening makes a context; names are as binderfs has them, without control characters and colons",
    )
}

pub(super) fn nothing_limits_contexts(kit: &Kit) -> Verdict {
    const MANY: usize = 64;
    let open = |number| beside(kit, &format!("many-{number}"));
    let all = (0..MANY).map(open).collect::<Result<Vec<_>, _>>()?;
    expect("contexts that are open", all.len(), MANY)?;
    kit.differs("no option limits the contexts of a directory")
}

/// Whether the state text lists this context.
fn is_listed(kit: &Kit, name: &str) -> Result<bool, Stop> {
    let line = format!("context {name}");
    Ok(kit.state_text(StateFile::State)?.lines().any(|found| found == line))
}

pub(super) fn contexts_go_with_their_users(kit: &Kit) -> Verdict {
    const NAME: &str = "used-for-a-while";
    expect("listed before it is opened", is_listed(kit, NAME)?, false)?;
    let (one, two) = (beside(kit, NAME)?, beside(kit, NAME)?);
    expect("listed while it is open twice", is_listed(kit, NAME)?, true)?;
    drop(one);
    expect("listed while it is open once", is_listed(kit, NAME)?, true)?;
    expect("its version", two.version()?, 8)?;
    drop(two);
    soon(|| Ok(is_listed(kit, NAME)?.then(|| "it is listed after its last user closed it".into())))?;
    kit.differs("a context ends with its last user and cannot be removed before")
}

pub(super) fn the_account_is_always_kept(kit: &Kit) -> Verdict {
    kit.state_text(StateFile::State)?;
    kit.differs("nothing is mounted, so there are no options: the driver always tells of itself")
}

pub(super) fn every_feature_is_there(kit: &Kit) -> Verdict {
    let process = kit.server()?;
    expect_errno("extended errors", &process.conn.extended_error(), "OK")?;
    expect_errno("spam detection", &process.conn.enable_oneway_spam_detection(true), "OK")?;
    let Pair { server: _server, client, handle, .. } = kit.pair()?;
    client.write(|c| c.request_freeze(handle, Cookie(1)))?;
    client.expect_read("freeze notifications", "FROZEN_BINDER")?;
    let own = context(kit)?;
    ensure(!own.directory().join("features").exists(), || "there is a folder of features".into())?;
    kit.differs("no files tell of features: the driver has all of them")
}

pub(super) fn every_log_is_told(kit: &Kit) -> Verdict {
    for which in [
        StateFile::State,
        StateFile::Stats,
        StateFile::Transactions,
        StateFile::TransactionLog,
        StateFile::FailedTransactionLog,
    ] {
        let text = kit.state_text(which)?;
        ensure(which.file_name().ends_with("_log") || text.starts_with("binder "), || {
            format!("{} begins with {:?}", which.file_name(), text.lines().next())
        })?;
    }
    let own = context(kit)?;
    let logs: &Path = &own.directory().join("binder_logs");
    ensure(!logs.exists(), || format!("{} is there", logs.display()))?;
    kit.differs("the texts are asked for, by binderperf state for one: no files hold them")
}
