//! Contract section 3: commands, returns and answers that meet memory which cannot be read or written (WR-17, WR-18, IOC-12).

use sys::binder_fd::Access;

use crate::prelude::*;
use crate::waiting::KINDS;

/// Every command with a payload that the driver of this kernel knows.
fn commands(kit: &Kit) -> impl Iterator<Item = (&'static str, u32)> {
    let unsupported = ["BC_ACQUIRE_RESULT", "BC_ATTEMPT_ACQUIRE"];
    let is_known = move |name: &str| kit.knows(name) && !unsupported.contains(&name);
    let all = bc::ALL.iter().copied();
    all.filter(move |(name, word)| CommandWord(*word).payload_len() > 0 && is_known(name))
}

pub(super) fn wr_17_a_command_that_cannot_be_read(kit: &Kit) -> Verdict {
    kit.device()?;
    let Pair { server, client, handle, .. } = kit.pair()?;
    let device = client.device()?;
    let whole = bc::ENTER_LOOPER.to_ne_bytes();
    for (name, word) in commands(kit) {
        let mut cut = [&whole[..], &word.to_ne_bytes(), handle.0.as_bytes()].concat();
        // Words that are not the handle are zeroes, so a driver that reads on takes most commands.
        cut.resize(8 + CommandWord(word).payload_len(), 0);
        for readable in (4..cut.len()).step_by(4) {
            let (result, taken) = device.write_at_end(&cut, readable);
            let what = format!("{name}, of which {} bytes can be read", readable - whole.len());
            expect(&what, (errno(&result).as_str(), taken), ("EFAULT", 4))?;
        }
    }
    client.expect_silence("commands that could not be read")?;
    server.expect_silence("commands that could not be read")?;
    client.round_trip("a call after them", handle, &server)
}

pub(super) fn wr_18_a_return_that_cannot_be_stored(kit: &Kit) -> Verdict {
    kit.device()?;
    let Pair { server, client, handle, .. } = kit.pair()?;
    client.start_call(handle, 1, b"")?;
    expect_errno("a read without room for NOOP", &server.device()?.read_at_end(0), "EFAULT")?;
    server.expect_read("the call, which that read left", "TRANSACTION")?;
    server.answer(b"")?;
    client.expect_reply("that call")?;
    for kind in KINDS.iter().filter(|kind| kit.knows(kind.name)) {
        for stored in (0..kind.len).step_by(4) {
            let waiting = (kind.prepare)(kit)?;
            let process = &waiting.process;
            let what = format!("reading {}, of which {stored} bytes can be stored", kind.name);
            // A NOOP is before it.
            expect_errno(&what, &process.device()?.read_at_end(4 + stored), "EFAULT")?;
            if kind.name == "FAILED_REPLY" {
                // Nobody can read it any more, and the C driver takes nothing before it was read (WR-13).
                let taken = process.write_some(&Commands::of(Commands::enter_looper))?;
                expect("bytes taken behind an error that was lost", taken, kit.by_driver(0, 4))?;
            }
            // It is lost, and the process can go on.
            let left = process.read_now()?.map(|got| got.work()).unwrap_or_default();
            ensure(!left.split(' ').any(|word| kind.name.split(' ').next() == Some(word)), || {
                format!("{what}: it came once more: {left:?}")
            })?;
            process.thread_exit()?;
            process.enter_looper()?;
            let node = Node::number(77);
            let back = kit.hand_over(process, &client, node)?;
            client.start_call(back, 7, b"")?;
            let got = process
                .read_on(Got::default(), |got| got.call().is_ok())
                .map_err(|stop| stop.during(&what))?;
            expect(&format!("a call to it, after {what}"), got.call()?.code, 7)?;
            process.answer(b"")?;
            client.expect_reply("that call")?;
            client.write(|c| c.release(back))?;
        }
    }
    Ok(())
}

pub(crate) fn ioc_12_an_answer_that_cannot_be_stored(kit: &Kit) -> Verdict {
    kit.device()?;
    let client = kit.open()?;
    let device = client.device()?;
    let pid = std::process::id();
    // A process in a pid namespace cannot name itself.
    let frozen_info = if kit.can_freeze().is_ok() { Release(5, 13) } else { Release(u32::MAX, 0) };
    for (name, request, argument, since) in [
        ("WRITE_READ", ioctl::WRITE_READ, vec![0; 48], Release(0, 0)),
        ("GET_NODE_DEBUG_INFO", ioctl::GET_NODE_DEBUG_INFO, vec![0; 24], Release(0, 0)),
        ("GET_FROZEN_INFO", ioctl::GET_FROZEN_INFO, [pid.as_bytes(), &[0; 8]].concat(), frozen_info),
        ("GET_EXTENDED_ERROR", ioctl::GET_EXTENDED_ERROR, vec![0; 12], Release(6, 0)),
    ] {
        if kit.evidence.release >= since {
            let what = format!("{name} into memory that cannot be written");
            expect_errno(&what, &device.raw_on_edge(request, &argument, Access::ReadOnly), "EFAULT")?;
        }
    }
    let version = device.raw_on_edge(ioctl::VERSION, &[0; 4], Access::ReadOnly);
    expect_errno("VERSION into such memory", &version, kit.by_driver("EINVAL", "EFAULT"))?;
    client.version()?;
    expect_work("a call of no handle, after them", &client.call(Handle(4000))?, "FAILED_REPLY")
}
