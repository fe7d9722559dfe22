//! Room: binder's events, whichever driver wrote them, as the C driver's that Perfetto knows.
//! Not here: the other events (`ftrace`).
//! Facts: `protos/perfetto/trace/ftrace/binder.proto`; Perfetto knows nothing of the group `rust_binder`, and
//! its `binder_tracker.cc` makes slices and flows of these.

use super::ftrace::{Value, generic};
use super::wire::Message;
use crate::event::{Binder, Buffer, Name, Names};

/// Writes one. What Perfetto has no message for goes by its name, with its fields.
pub(super) fn write(out: &mut Message, binder: &Binder, names: &Names) {
    match *binder {
        Binder::Transaction(sent) => out.nested(50, |out| {
            out.signed(1, sent.debug_id);
            out.signed(2, sent.target_node);
            out.signed(3, sent.to_proc);
            out.signed(4, sent.to_thread);
            out.signed(5, i32::from(sent.reply));
            out.unsigned(6, sent.code);
            out.unsigned(7, sent.flags);
        }),
        Binder::Received { debug_id } => out.nested(51, |out| out.signed(1, debug_id)),
        Binder::SetPriority { proc, thread, old, new, desired } => out.nested(52, |out| {
            out.signed(1, proc);
            out.signed(2, thread);
            for (field, prio) in [(3, old), (4, new), (5, desired)] {
                out.unsigned(field, prio.0.cast_unsigned());
            }
        }),
        Binder::Lock { tag } => lock(out, 53, tag, names),
        Binder::Locked { tag } => lock(out, 54, tag, names),
        Binder::Unlock { tag } => lock(out, 55, tag, names),
        Binder::AllocBuf(buffer) => out.nested(323, |out| {
            out.unsigned(1, buffer.data_size);
            out.signed(2, buffer.debug_id);
            out.unsigned(3, buffer.offsets_size);
            out.unsigned(4, buffer.extra_size);
        }),
        Binder::Command { cmd } => out.nested(485, |out| out.unsigned(1, cmd)),
        Binder::Return { cmd } => out.nested(486, |out| out.unsigned(1, cmd)),
        _ => unknown(out, binder),
    }
}

fn lock(out: &mut Message, field: u32, tag: Name, names: &Names) {
    out.nested(field, |out| out.text(1, names.text(tag)));
}

/// Those that Perfetto has no message for.
fn unknown(out: &mut Message, binder: &Binder) {
    use Value::{Signed, Unsigned};
    let number = |value: i32| Signed(i64::from(value));
    match *binder {
        Binder::BufferRelease(of) => buffer(out, "binder_transaction_buffer_release", of),
        Binder::FailedBufferRelease(of) => buffer(out, "binder_transaction_failed_buffer_release", of),
        Binder::UpdateBufferRelease(of) => buffer(out, "binder_transaction_update_buffer_release", of),
        Binder::WaitForWork { proc_work, transaction_stack, thread_todo } => generic(
            out,
            "binder_wait_for_work",
            &[
                ("proc_work", Signed(proc_work.into())),
                ("transaction_stack", Signed(transaction_stack.into())),
                ("thread_todo", Signed(thread_todo.into())),
            ],
        ),
        Binder::Ioctl { cmd, arg } => {
            generic(out, "binder_ioctl", &[("cmd", Unsigned(cmd.into())), ("arg", Unsigned(arg))]);
        }
        Binder::IoctlDone { ret } => generic(out, "binder_ioctl_done", &[("ret", number(ret))]),
        Binder::WriteDone { ret } => generic(out, "binder_write_done", &[("ret", number(ret))]),
        Binder::ReadDone { ret } => generic(out, "binder_read_done", &[("ret", number(ret))]),
        Binder::LatencyFree(ended) => generic(
            out,
            "binder_txn_latency_free",
            &[
                ("debug_id", number(ended.debug_id)),
                ("from_proc", number(ended.from_proc)),
                ("from_thread", number(ended.from_thread)),
                ("to_proc", number(ended.to_proc)),
                ("to_thread", number(ended.to_thread)),
                ("code", Unsigned(ended.code.into())),
                ("flags", Unsigned(ended.flags.into())),
            ],
        ),
        Binder::FdSend { debug_id, fd, offset } => {
            descriptor(out, "binder_transaction_fd_send", debug_id, fd, offset);
        }
        Binder::FdReceived { debug_id, fd, offset } => {
            descriptor(out, "binder_transaction_fd_recv", debug_id, fd, offset);
        }
        _ => generic(out, "binder", &[]),
    }
}

fn buffer(out: &mut Message, name: &str, buffer: Buffer) {
    let fields = [
        ("debug_id", Value::Signed(buffer.debug_id.into())),
        ("data_size", Value::Unsigned(buffer.data_size)),
        ("offsets_size", Value::Unsigned(buffer.offsets_size)),
        ("extra_buffers_size", Value::Unsigned(buffer.extra_size)),
    ];
    generic(out, name, &fields);
}

fn descriptor(out: &mut Message, name: &str, debug_id: i32, fd: i32, offset: u64) {
    let fields = [
        ("debug_id", Value::Signed(debug_id.into())),
        ("fd", Value::Signed(fd.into())),
        ("offset", Value::Unsigned(offset)),
    ];
    generic(out, name, &fields);
}
