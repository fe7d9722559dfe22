//! Room: the text of binder's events.
//! Facts: `drivers/android/binder_trace.h`, Linux 7.2; contract TP-02 to TP-10; Android's kernels for
//! `binder_set_priority`, older ones for the lock events.

use super::cut::Cut;
use crate::event::{Binder, Buffer, Flavour, LatencyFree, Names, Prio, Transaction};

/// Every event that is looked into.
const KNOWN: [&[u8]; 20] = [
    b"binder_transaction",
    b"binder_transaction_received",
    b"binder_transaction_alloc_buf",
    b"binder_transaction_buffer_release",
    b"binder_transaction_failed_buffer_release",
    b"binder_transaction_update_buffer_release",
    b"binder_set_priority",
    b"binder_lock",
    b"binder_locked",
    b"binder_unlock",
    b"binder_wait_for_work",
    b"binder_ioctl",
    b"binder_ioctl_done",
    b"binder_write_done",
    b"binder_read_done",
    b"binder_command",
    b"binder_return",
    b"binder_txn_latency_free",
    b"binder_transaction_fd_send",
    b"binder_transaction_fd_recv",
];

pub(super) fn is_known(name: &[u8]) -> bool {
    KNOWN.contains(&name)
}

/// What a binder event's text says. `None` if it is none that is looked into, or not as it should be.
pub(super) fn parse(name: &[u8], text: &[u8], flavour: Flavour, names: &mut Names) -> Option<Binder> {
    let cut = &mut Cut::new(text);
    Some(match name {
        b"binder_transaction" => Binder::Transaction(transaction(cut)?),
        b"binder_transaction_received" => Binder::Received { debug_id: cut.int(b"transaction=")? },
        b"binder_transaction_alloc_buf" => Binder::AllocBuf(buffer(cut)?),
        b"binder_transaction_buffer_release" => Binder::BufferRelease(buffer(cut)?),
        b"binder_transaction_failed_buffer_release" => Binder::FailedBufferRelease(buffer(cut)?),
        b"binder_transaction_update_buffer_release" => Binder::UpdateBufferRelease(buffer(cut)?),
        b"binder_set_priority" => set_priority(cut)?,
        b"binder_lock" => Binder::Lock { tag: cut.rest(b"tag=", names)? },
        b"binder_locked" => Binder::Locked { tag: cut.rest(b"tag=", names)? },
        b"binder_unlock" => Binder::Unlock { tag: cut.rest(b"tag=", names)? },
        b"binder_wait_for_work" => Binder::WaitForWork {
            proc_work: cut.int(b"proc_work=")? != 0,
            transaction_stack: cut.int(b"transaction_stack=")? != 0,
            thread_todo: cut.int(b"thread_todo=")? != 0,
        },
        b"binder_ioctl" => Binder::Ioctl { cmd: cut.word(b"cmd=")?, arg: cut.long(b"arg=")?.cast_unsigned() },
        b"binder_ioctl_done" => Binder::IoctlDone { ret: cut.int(b"ret=")? },
        b"binder_write_done" => Binder::WriteDone { ret: cut.int(b"ret=")? },
        b"binder_read_done" => Binder::ReadDone { ret: cut.int(b"ret=")? },
        b"binder_command" => Binder::Command { cmd: cut.word(b"cmd=")? },
        b"binder_return" => Binder::Return { cmd: cut.word(b"cmd=")? },
        b"binder_txn_latency_free" => Binder::LatencyFree(latency_free(cut, flavour)?),
        b"binder_transaction_fd_send" => Binder::FdSend {
            debug_id: cut.int(b"transaction=")?,
            fd: cut.int(b"src_fd=")?,
            offset: cut.long(b"offset=")?.cast_unsigned(),
        },
        b"binder_transaction_fd_recv" => Binder::FdReceived {
            debug_id: cut.int(b"transaction=")?,
            fd: cut.int(b"dest_fd=")?,
            offset: cut.long(b"offset=")?.cast_unsigned(),
        },
        _ => return None,
    })
}

fn transaction(cut: &mut Cut<'_>) -> Option<Transaction> {
    Some(Transaction {
        debug_id: cut.int(b"transaction=")?,
        target_node: cut.int(b"dest_node=")?,
        to_proc: cut.int(b"dest_proc=")?,
        to_thread: cut.int(b"dest_thread=")?,
        reply: cut.int(b"reply=")? != 0,
        flags: cut.word(b"flags=")?,
        code: cut.word(b"code=")?,
    })
}

fn buffer(cut: &mut Cut<'_>) -> Option<Buffer> {
    Some(Buffer {
        debug_id: cut.int(b"transaction=")?,
        data_size: cut.long(b"data_size=")?.cast_unsigned(),
        offsets_size: cut.long(b"offsets_size=")?.cast_unsigned(),
        // Kernels before 5.0 do not print it.
        extra_size: cut.long(b"extra_buffers_size=").unwrap_or(0).cast_unsigned(),
    })
}

/// `proc=1 thread=2 old=120 => new=100 desired=100`.
fn set_priority(cut: &mut Cut<'_>) -> Option<Binder> {
    let (proc, thread) = (cut.int(b"proc=")?, cut.int(b"thread=")?);
    let old = Prio(cut.int(b"old=")?);
    let new = Prio(cut.int(b"new=")?);
    Some(Binder::SetPriority { proc, thread, old, new, desired: Prio(cut.int(b"desired=")?) })
}

/// `transaction=7 from 1:2 to 3:4 flags=0x1 code=0x10`, in which the kernel prints the code behind `flags=`
/// and the flags behind `code=` (contract TP-09). Our own driver's labels are right.
fn latency_free(cut: &mut Cut<'_>, flavour: Flavour) -> Option<LatencyFree> {
    let debug_id = cut.int(b"transaction=")?;
    let (from_proc, from_thread) = pair(cut.word_of(b"from ")?)?;
    let (to_proc, to_thread) = pair(cut.word_of(b"to ")?)?;
    let (first, second) = (cut.word(b"flags=")?, cut.word(b"code=")?);
    let (code, flags) = if flavour == Flavour::Embedded { (second, first) } else { (first, second) };
    Some(LatencyFree { debug_id, from_proc, from_thread, to_proc, to_thread, code, flags })
}

fn pair(text: &[u8]) -> Option<(i32, i32)> {
    let (proc, thread) = std::str::from_utf8(text).ok()?.split_once(':')?;
    Some((proc.parse().ok()?, thread.parse().ok()?))
}
