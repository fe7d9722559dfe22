//! Contract section 8: descriptor arrays in scatter-gather buffers, and the descriptors that `BC_FREE_BUFFER` closes.

use crate::objects::fds::{Marked, OpenFile, taken};
use crate::prelude::*;

/// Offset of the first object; a parent cannot be at 0 (contract OBJ-18).
const AT: u64 = 8;

/// A payload whose only scatter-gather buffer is `memory`.
fn over(memory: &[u32]) -> Draft {
    Draft::with(&[0; AT as usize]).object(&ptr(memory)).room(size_of_val(memory) as u64)
}

/// The words of a delivered scatter-gather buffer.
fn words(process: &RawProcess, call: &Delivery) -> Result<Vec<u32>, Stop> {
    let parent: BufferObject = process.arrived(call, AT)?;
    let bytes = process.lent(parent.buffer, parent.length)?;
    Ok(bytes.chunks_exact(4).map(|word| u32::from_ne_bytes([word[0], word[1], word[2], word[3]])).collect())
}

pub(super) fn obj_19_arrays_of_descriptors(kit: &Kit) -> Verdict {
    let pair = kit.pair()?;
    let (mut one, mut two) = (Marked::new(10)?, Marked::new(20)?);
    let memory = [7, one.number() as u32, two.number() as u32, 9];
    let call = pair.deliver(&over(&memory).object(&fda(2, 0, 4)))?;
    let got = words(&pair.server, &call)?;
    expect("the words around the array", (got[0], got[3]), (7, 9))?;
    one.expect_same("the array's first", got[1].into())?;
    two.expect_same("the array's second", got[2].into())?;
    pair.conclude(&call)?;
    let call = pair.deliver(&over(&memory).object(&fda(1, 0, 4)).object(&fda(1, 0, 8)))?;
    two.expect_same("the second array's", words(&pair.server, &call)?[2].into())?;
    pair.conclude(&call)?;
    let call = pair.deliver(&over(&memory).object(&fda(0, 0, 4)))?;
    expect("the buffer with an empty array", words(&pair.server, &call)?, memory.to_vec())?;
    pair.conclude(&call)?;

    let (last, not_one) = (memory, [0u64; 2]);
    for (what, draft) in [
        ("a parent that is the array itself", over(&memory).object(&fda(1, 1, 4))),
        ("a parent that is not listed", over(&memory).object(&fda(1, 7, 4))),
        ("an array at offset 2", over(&memory).object(&fda(1, 0, 2))),
        ("an array longer than its parent", over(&memory).object(&fda(4, 0, 4))),
        ("an array behind its parent", over(&memory).object(&fda(1, 0, 16))),
        ("an array of too many", over(&memory).object(&fda(u64::MAX / 2, 0, 4))),
        ("arrays in descending order", over(&memory).object(&fda(1, 0, 8)).object(&fda(1, 0, 4))),
        ("arrays that overlap", over(&memory).object(&fda(2, 0, 4)).object(&fda(1, 0, 8))),
        (
            "an array in a buffer that is neither the last nor its ancestor",
            over(&memory).object(&ptr(&last)).object(&fda(1, 0, 4)).room(32),
        ),
        (
            "an array in front of a pointer that was patched already",
            over(&memory).object(&child(&not_one, 0, 8)).object(&fda(1, 0, 4)).room(32),
        ),
    ] {
        pair.refused(kit, what, &draft, "EINVAL", None)?;
    }
    let closed = [0, 9999];
    pair.refused(kit, "an array of closed ones", &over(&closed).object(&fda(1, 0, 4)), "EBADF", None)?;
    without_leave(kit, &memory)
}

/// Arrays sent to a node that accepts no descriptors.
fn without_leave(kit: &Kit, memory: &[u32]) -> Verdict {
    let pair = kit.pair_of(kit.server()?, kit.open()?, Node::number(1).flags(0))?;
    let some = over(memory).object(&fda(1, 0, 4));
    pair.refused(kit, "an array for a node that takes none", &some, "EPERM", Some("EPERM"))?;
    let none = over(memory).object(&fda(0, 0, 4));
    if kit.is_rust() {
        return pair.refused(kit, "an empty array for such a node", &none, "", Some("EPERM"));
    }
    let call = pair.deliver(&none)?;
    expect("the buffer with an empty array for such a node", words(&pair.server, &call)?, memory.to_vec())?;
    pair.conclude(&call)
}

/// Frees a buffer and continues with a blocking read in the same ioctl.
fn free_and_read(process: &RawProcess, call: &Delivery) -> Result<Got, Stop> {
    let (mut commands, mut room) = (Commands::default(), [0; ROOM]);
    commands.free_buffer(call.buffer);
    let mut exchange = Exchange::new(commands.as_bytes(), &mut room);
    done("FREE_BUFFER, then reading", process.conn.write_read_uninterrupted(&mut exchange))?;
    Got::decode(exchange.returned())
}

pub(super) fn obj_13_only_arrays_are_closed_by_free(kit: &Kit) -> Verdict {
    let pair = kit.pair()?;
    let server = &pair.server;
    let mut file = Marked::new(10)?;
    let answered = |draft: &Draft| {
        let call = pair.deliver(draft)?;
        server.finish_call()?;
        pair.client.take_reply().map(|()| call)
    };
    let worker = Worker::new()?;
    server.on(&worker, RawProcess::enter_looper)?;
    let free = |call: Delivery| server.start_on(&worker, move |server| free_and_read(server, &call));
    let single = answered(&Draft::of(&fd(file.number())))?;
    let received = taken(server, &single, 0)?;
    let memory = [file.number() as u32; 2];
    let array = answered(&over(&memory).object(&fda(2, 0, 0)))?;
    let numbers = words(server, &array)?;
    for number in &numbers {
        file.expect_same("a descriptor of the array", u64::from(*number))?;
    }
    done("fcntl", server.conn.set_nonblocking(false))?;
    let got = free(array)?.wait("a read behind the FREE_BUFFER of an array")??;
    expect("that read", got.shape().as_str(), "NOOP")?;
    for number in numbers {
        let closed = OpenFile::of(number.into()).is_none();
        ensure(closed, || format!("FREE_BUFFER left {number}, of an array, open"))?;
    }
    let mut task = free(single)?;
    task.expect_asleep("a read behind any other FREE_BUFFER")?;
    let number = std::os::fd::AsRawFd::as_raw_fd(&received) as u64;
    file.expect_same("a single descriptor after FREE_BUFFER", number)?;
    pair.client.send_oneway(pair.handle, 1, b"")?;
    expect_work("the read", &task.wait("the read")??, "TRANSACTION")
}
