//! Compares `abi`'s numbers with the system's C header: each test generates, compiles and runs a C program.
//! Facts: `linux/android/binder.h` and `binderfs.h` of the machine that runs the test (package
//! linux-libc-dev); the versions in [`NEWER`] are the Linux releases that brought the names.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::mem::offset_of;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use abi::codes::{bc, br, flat, ioctl, object, tf};
use abi::layout as l;

/// Names that a header as old as Linux 6.1 may lack, and the release that brought each.
const NEWER: &[(&str, &str)] = &[
    ("BR_TRANSACTION_PENDING_FROZEN", "6.2"),
    ("BC_REQUEST_FREEZE_NOTIFICATION", "6.12"),
    ("BC_CLEAR_FREEZE_NOTIFICATION", "6.12"),
    ("BC_FREEZE_NOTIFICATION_DONE", "6.12"),
    ("BR_FROZEN_BINDER", "6.12"),
    ("BR_CLEAR_FREEZE_NOTIFICATION_DONE", "6.12"),
    ("binder_frozen_state_info", "6.12"),
];

/// One number to compare: the C expression, the identifier that must be in the header for the
/// expression to compile, and what `abi` says.
struct Fact {
    c: String,
    needs: &'static str,
    abi: u64,
}

/// Lists a structure's size and the offsets of its fields, each with its C name where that differs.
macro_rules! structure {
    ($facts:ident, $c:literal, $rust:ty { $($field:ident $(as $c_field:literal)?),* $(,)? }) => {
        $facts.push(Fact { c: concat!("sizeof(struct ", $c, ")").into(), needs: $c, abi: size_of::<$rust>() as u64 });
        $($facts.push(Fact {
            c: format!("offsetof(struct {}, {})", $c, [$($c_field,)? stringify!($field)][0]),
            needs: $c,
            abi: offset_of!($rust, $field) as u64,
        });)*
    };
}

fn words() -> Vec<Fact> {
    let tables = [ioctl::ALL, bc::ALL, br::ALL, object::ALL, flat::ALL, tf::ALL];
    let mut facts: Vec<Fact> = tables
        .into_iter()
        .flatten()
        .map(|(name, value)| Fact { c: (*name).into(), needs: name, abi: u64::from(*value) })
        .collect();
    for (name, value) in [
        ("BINDER_BUFFER_FLAG_HAS_PARENT", u64::from(object::BUFFER_FLAG_HAS_PARENT)),
        ("BINDER_CURRENT_PROTOCOL_VERSION", abi::PROTOCOL_VERSION as u64),
        ("BINDERFS_MAX_NAME", l::BINDERFS_MAX_NAME as u64),
    ] {
        facts.push(Fact { c: name.into(), needs: name, abi: value });
    }
    facts
}

fn facts() -> Vec<Fact> {
    let mut facts = words();
    structure!(
        facts,
        "binder_write_read",
        l::WriteRead { write_size, write_consumed, write_buffer, read_size, read_consumed, read_buffer }
    );
    structure!(facts, "binder_version", l::Version { protocol_version });
    structure!(facts, "binder_transaction_data", l::TransactionData {
        target, target as "target.handle", cookie, code, flags, sender_pid, sender_euid, data_size,
        offsets_size, buffer as "data.ptr.buffer", offsets as "data.ptr.offsets",
    });
    structure!(facts, "binder_transaction_data_sg", l::TransactionDataSg { transaction_data, buffers_size });
    structure!(
        facts,
        "binder_transaction_data_secctx",
        l::TransactionDataSecctx { transaction_data, secctx }
    );
    structure!(facts, "flat_binder_object", l::FlatBinderObject {
        kind as "hdr.type", flags, binder, binder as "handle", cookie,
    });
    structure!(facts, "binder_fd_object", l::FdObject { kind as "hdr.type", pad_flags, fd, cookie });
    structure!(facts, "binder_buffer_object", l::BufferObject {
        kind as "hdr.type", flags, buffer, length, parent, parent_offset,
    });
    structure!(facts, "binder_fd_array_object", l::FdArrayObject {
        kind as "hdr.type", pad, num_fds, parent, parent_offset,
    });
    structure!(facts, "binder_ptr_cookie", l::PtrCookie { ptr, cookie });
    structure!(facts, "binder_handle_cookie", l::HandleCookie { handle, cookie });
    structure!(facts, "binder_pri_desc", l::PriDesc { priority, desc });
    structure!(facts, "binder_pri_ptr_cookie", l::PriPtrCookie { priority, ptr, cookie });
    structure!(
        facts,
        "binder_node_debug_info",
        l::NodeDebugInfo { ptr, cookie, has_strong_ref, has_weak_ref }
    );
    structure!(
        facts,
        "binder_node_info_for_ref",
        l::NodeInfoForRef { handle, strong_count, weak_count, reserved1, reserved2, reserved3 }
    );
    structure!(facts, "binder_freeze_info", l::FreezeInfo { pid, enable, timeout_ms });
    structure!(facts, "binder_frozen_status_info", l::FrozenStatusInfo { pid, sync_recv, async_recv });
    structure!(facts, "binder_frozen_state_info", l::FrozenStateInfo { cookie, is_frozen, reserved });
    structure!(facts, "binder_extended_error", l::ExtendedError { id, command, param });
    structure!(facts, "binderfs_device", l::BinderfsDevice { name, major, minor });
    facts
}

const INCLUDES: &str = "#include <stddef.h>\n#include <stdio.h>\n#include <linux/android/binder.h>\n#include <linux/android/binderfs.h>\n";

/// Runs `cc` with the program on its standard input; what it printed.
fn cc(arguments: &[&str], program: &str) -> Vec<u8> {
    let mut child = Command::new("cc")
        .args(arguments)
        .args(["-x", "c", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("running cc: {error}; install the package gcc"));
    child.stdin.take().expect("stdin is a pipe").write_all(program.as_bytes()).expect("cc reads its input");
    let output = child.wait_with_output().expect("cc ends");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(
        !complaint.contains("No such file") && !complaint.contains("not found"),
        "the C headers are missing; install the packages linux-libc-dev and libc6-dev: {complaint}"
    );
    assert!(output.status.success(), "cc {arguments:?} failed: {complaint}");
    output.stdout
}

/// The identifiers of the preprocessed header, macro definitions included.
fn identifiers() -> std::collections::BTreeSet<String> {
    let text = String::from_utf8(cc(&["-E", "-dD"], INCLUDES)).expect("a header is text");
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').map(str::to_owned).collect()
}

/// Programs compiled by this process.
static PROGRAMS: AtomicU32 = AtomicU32::new(0);

/// Has the C compiler say every expression's value.
fn values_in_c(facts: &[&Fact]) -> BTreeMap<String, u64> {
    let mut program = format!("{INCLUDES}int main(void) {{\n");
    for fact in facts {
        writeln!(program, "printf(\"%s=%llu\\n\", \"{0}\", (unsigned long long)({0}));", fact.c)
            .expect("a string");
    }
    program.push_str("return 0; }\n");
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    // A name of its own: tests run side by side.
    let binary = folder.join(format!("uapi-{}-{}", std::process::id(), PROGRAMS.fetch_add(1, Relaxed)));
    cc(&["-o", binary.to_str().expect("a plain path")], &program);
    let output = Command::new(&binary).output().expect("the compiled program runs");
    let _ = std::fs::remove_file(&binary);
    assert!(output.status.success(), "the compiled program failed: {:?}", output.status);
    let text = String::from_utf8(output.stdout).expect("the program prints text");
    text.lines()
        .filter_map(|line| line.rsplit_once('='))
        .map(|(name, value)| (name.to_owned(), value.parse().expect("the program prints numbers")))
        .collect()
}

/// What differs between the two sides, one line each.
fn differences(facts: &[&Fact], c: &BTreeMap<String, u64>) -> Vec<String> {
    facts
        .iter()
        .filter_map(|fact| match c.get(&fact.c) {
            Some(value) if *value == fact.abi => None,
            Some(value) => Some(format!("{}: abi has {:#x}, the header {value:#x}", fact.c, fact.abi)),
            None => Some(format!("{}: the C program did not print it", fact.c)),
        })
        .collect()
}

#[test]
fn abi_has_the_numbers_of_the_system_header() {
    let (facts, known) = (facts(), identifiers());
    let (present, missing): (Vec<&Fact>, Vec<&Fact>) =
        facts.iter().partition(|fact| known.contains(fact.needs));
    let mut absent: Vec<&str> = missing.iter().map(|fact| fact.needs).collect();
    absent.dedup();
    for name in &absent {
        let since = NEWER.iter().find(|(newer, _)| newer == name).map(|(_, since)| *since);
        println!("not in this header: {name} (brought by Linux {})", since.unwrap_or("?"));
    }
    let strange: Vec<_> =
        absent.iter().filter(|name| !NEWER.iter().any(|(newer, _)| newer == *name)).collect();
    assert!(
        strange.is_empty(),
        "names that a header of Linux 6.1 has are missing from this one: {strange:?}"
    );
    let different = differences(&present, &values_in_c(&present));
    assert!(different.is_empty(), "{}", different.join("\n"));
    println!("{} numbers compared", present.len());
}

#[test]
fn a_wrong_or_missing_number_is_noticed() {
    let c = BTreeMap::from([("A".to_owned(), 1), ("B".to_owned(), 2)]);
    let fact = |name: &str, abi| Fact { c: name.into(), needs: "A", abi };
    let (right, wrong, silent) = (fact("A", 1), fact("B", 3), fact("C", 0));
    assert!(differences(&[&right], &c).is_empty());
    assert_eq!(
        differences(&[&right, &wrong, &silent], &c),
        ["B: abi has 0x3, the header 0x2", "C: the C program did not print it"]
    );
}

/// A release in [`NEWER`] for a name that no table has would hide a typing error.
#[test]
fn every_newer_name_is_one_of_ours() {
    let facts = facts();
    for (name, since) in NEWER {
        assert!(facts.iter().any(|fact| fact.needs == *name), "{name} (Linux {since}) is not compared");
    }
}
