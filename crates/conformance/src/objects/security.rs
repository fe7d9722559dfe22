//! Contract section 8: security contexts, and refusals by a security module.
//! Facts: `/proc/filesystems`, `/sys/module/apparmor`, `/proc/self/attr/current`.

use std::fs;
use std::os::fd::AsRawFd;

use crate::objects::fds::{Marked, taken};
use crate::prelude::*;

/// Sources of security contexts on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// A module that labels every process: SELinux, Smack.
    Labels,
    /// AppArmor, which the binder driver cannot query.
    AppArmor,
    /// None.
    None,
}

impl Source {
    fn find() -> Self {
        let filesystems = fs::read_to_string("/proc/filesystems").unwrap_or_default();
        let has = |name| filesystems.split_whitespace().any(|word| word == name);
        if has("selinuxfs") || has("smackfs") {
            return Self::Labels;
        }
        let apparmor = fs::read_to_string("/sys/module/apparmor/parameters/enabled").unwrap_or_default();
        if apparmor.starts_with('Y') { Self::AppArmor } else { Self::None }
    }
}

/// A node that requests its callers' security contexts, and a client.
fn asking(kit: &Kit) -> Result<Pair, Stop> {
    kit.since(5, 1, "FLAT_BINDER_FLAG_TXN_SECURITY_CTX")?;
    let flags = Node::number(1).flags | flat::TXN_SECURITY_CTX;
    kit.pair_of(kit.server()?, kit.open()?, Node::number(1).flags(flags))
}

/// Whether the driver delivers contexts. The embedded driver has those of its callers' sockets, which only a call can
/// show.
fn contexts_are_told(kit: &Kit) -> Result<bool, Stop> {
    if kit.kind() != Kind::Embedded {
        return Ok(Source::find() == Source::Labels);
    }
    let pair = asking(kit)?;
    pair.client.start_call(pair.handle, 1, b"")?;
    Ok(pair.client.read_now()?.is_none())
}

pub(super) fn obj_21_calls_carry_a_security_context(kit: &Kit) -> Verdict {
    let told = contexts_are_told(kit)?;
    skip_unless(told, "nothing here labels processes (a kernel with SELinux would)")?;
    let pair = asking(kit)?;
    let bytes = [5u8; 20];
    pair.client.start_call(pair.handle, 1, &bytes)?;
    let call = pair.server.expect_read("a node that asked for contexts", "TRANSACTION_SEC_CTX")?.call()?;
    expect("the data", pair.server.bytes(&call)?, bytes.to_vec())?;
    let address = call.security_context.unwrap_or_default();
    ensure(address >= call.buffer.0 + 24, || format!("a context at {address:#x}, before the data's end"))?;
    let own = fs::read_to_string("/proc/self/attr/current").unwrap_or_default();
    let own = own.trim_end_matches(['\0', '\n']);
    let told = pair.server.lent(address, own.len() as u64 + 1)?;
    expect("the context of who opened, with its NUL", told, format!("{own}\0").into_bytes())?;
    pair.conclude(&call)
}

pub(super) fn obj_22_without_contexts_such_calls_fail(kit: &Kit) -> Verdict {
    skip_unless(!contexts_are_told(kit)?, "a security module labels processes here")?;
    let by_apparmor = kit.kind() != Kind::Embedded && Source::find() == Source::AppArmor;
    let errno = if by_apparmor { "EINVAL" } else { "EOPNOTSUPP" };
    let pair = asking(kit)?;
    for draft in [Draft::default(), Draft::with(&[1; 40])] {
        pair.refused(kit, "a node that asked for contexts", &draft, errno, Some(errno))?;
    }
    pair.server.expect_silence("of calls that were refused")?;
    // Calls by the owner of such a node are not affected.
    pair.client.enter_looper()?;
    let other = kit.pair_of(pair.client, pair.server, Node::number(2))?;
    other.conclude(&other.deliver(&Draft::with(&[1; 40]))?)
}

pub(super) fn obj_23_a_security_module_may_refuse(kit: &Kit) -> Verdict {
    let pair = kit.pair()?;
    let mut file = Marked::new(10)?;
    let node = flat_object(object::BINDER, 0x5000, 1);
    let draft = Draft::of(&fd(file.number())).object(&node);
    let enforced = fs::read_to_string("/sys/fs/selinux/enforce").is_ok_and(|enforce| enforce.trim() == "1");
    skip_unless(!enforced, "an SELinux policy is enforced here, and the suite does not know it")?;
    let call = pair.deliver(&draft)?;
    let received = taken(&pair.server, &call, 0)?;
    file.expect_same("the file", received.as_raw_fd() as u64)?;
    let got: FlatBinderObject = pair.server.arrived(&call, draft.payload().offsets[1])?;
    expect("the node", got.kind, object::HANDLE)?;
    pair.conclude(&call)
}

pub(super) fn obj_28_a_context_has_room_to_itself(kit: &Kit) -> Verdict {
    let told = contexts_are_told(kit)?;
    skip_unless(told, "nothing here labels processes (a kernel with SELinux would)")?;
    let pair = asking(kit)?;
    let memory = [7_u64; 2];
    let draft = Draft::of(&ptr(&memory));
    pair.refused(kit, "16 bytes where 8 were asked for", &draft.clone().room(8), "EINVAL", None)?;
    let plain = Draft::with(&[1; 40]).room(u64::MAX - 7);
    pair.refused(kit, "room that overflows with the context's", &plain, "EINVAL", None)?;
    let call = pair.deliver(&draft.room(16))?;
    ensure(call.security_context.is_some(), || {
        "a call with room for both came without a context".to_owned()
    })?;
    pair.conclude(&call)
}
