//! Decodes a stream of `BC_*` commands, for a driver in user space.
//! Not here: encoding it (`command`), carrying a command out (`driver`).
//! Facts: `enum binder_driver_command_protocol` in `linux/android/binder.h`; contract WR-11, WR-14.

use zerocopy::FromBytes;

use crate::codes::{CommandWord, bc};
use crate::ids::{BufferAddress, Cookie, Handle, NodePtr};
use crate::layout::{HandleCookie, PtrCookie, TransactionData, TransactionDataSg};

/// One command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// `BC_TRANSACTION`, `BC_TRANSACTION_SG` (then with the total size of scattered buffers).
    Transaction(TransactionData, Option<u64>),
    /// `BC_REPLY`, `BC_REPLY_SG`.
    Reply(TransactionData, Option<u64>),
    /// `BC_FREE_BUFFER`
    FreeBuffer(BufferAddress),
    /// `BC_INCREFS`, `BC_ACQUIRE`, `BC_RELEASE`, `BC_DECREFS`, as the word says.
    Count(CommandWord, Handle),
    /// `BC_INCREFS_DONE`, `BC_ACQUIRE_DONE`, as the word says.
    CountDone(CommandWord, NodePtr, Cookie),
    /// `BC_REGISTER_LOOPER`
    RegisterLooper,
    /// `BC_ENTER_LOOPER`
    EnterLooper,
    /// `BC_EXIT_LOOPER`
    ExitLooper,
    /// `BC_REQUEST_DEATH_NOTIFICATION`
    RequestDeath(Handle, Cookie),
    /// `BC_CLEAR_DEATH_NOTIFICATION`
    ClearDeath(Handle, Cookie),
    /// `BC_DEAD_BINDER_DONE`
    DeathDone(Cookie),
    /// `BC_REQUEST_FREEZE_NOTIFICATION`
    RequestFreeze(Handle, Cookie),
    /// `BC_CLEAR_FREEZE_NOTIFICATION`
    ClearFreeze(Handle, Cookie),
    /// `BC_FREEZE_NOTIFICATION_DONE`
    FreezeDone(Cookie),
}

/// Why a stream has no next command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadCommand {
    /// The stream ends inside the word or its payload (`EFAULT`).
    Truncated,
    /// A word that no driver supports (`EINVAL`).
    Unsupported(CommandWord),
}

/// Decodes the command that a stream begins with, and gives its word, which says how long it is.
///
/// # Errors
/// See [`BadCommand`].
#[inline]
pub fn first(stream: &[u8]) -> Result<(CommandWord, Command), BadCommand> {
    let (word, payload) = stream.split_first_chunk::<4>().ok_or(BadCommand::Truncated)?;
    let word = CommandWord(u32::from_ne_bytes(*word));
    match payload.get(..word.payload_len()).map(|payload| decode(word, payload)) {
        Some(Some(command)) => Ok((word, command)),
        None if is_supported(word) => Err(BadCommand::Truncated),
        _ => Err(BadCommand::Unsupported(word)),
    }
}

/// The structure after `word`, if the stream begins with `word` and is long enough.
#[inline]
fn behind<const N: usize>(stream: &[u8], word: u32) -> Option<&[u8; N]> {
    let (first, payload) = stream.split_first_chunk::<4>()?;
    if u32::from_ne_bytes(*first) == word { payload.first_chunk() } else { None }
}

/// The `BC_TRANSACTION` that a stream begins with, for callers that expect one: no more than a look at the word, and
/// [`first`] for anything else.
#[must_use]
#[inline]
pub fn transaction(stream: &[u8]) -> Option<TransactionData> {
    behind::<{ size_of::<TransactionData>() }>(stream, bc::TRANSACTION)
        .map(|data| zerocopy::transmute!(*data))
}

/// The `BC_REPLY` that a stream begins with.
#[must_use]
#[inline]
pub fn reply(stream: &[u8]) -> Option<TransactionData> {
    behind::<{ size_of::<TransactionData>() }>(stream, bc::REPLY).map(|data| zerocopy::transmute!(*data))
}

/// The `BC_FREE_BUFFER` that a stream begins with.
#[must_use]
#[inline]
pub fn free_buffer(stream: &[u8]) -> Option<BufferAddress> {
    behind(stream, bc::FREE_BUFFER).map(|address| BufferAddress(u64::from_ne_bytes(*address)))
}

fn is_supported(word: CommandWord) -> bool {
    !matches!(word.0, bc::ACQUIRE_RESULT | bc::ATTEMPT_ACQUIRE) && word.name().is_some()
}

#[inline]
fn decode(word: CommandWord, payload: &[u8]) -> Option<Command> {
    let data = || TransactionData::read_from_bytes(payload).ok();
    let with_buffers = || {
        let with = TransactionDataSg::read_from_bytes(payload).ok()?;
        Some((with.transaction_data, Some(with.buffers_size)))
    };
    let handle = || Some(Handle(u32::from_ne_bytes(payload.try_into().ok()?)));
    let long = || Some(u64::from_ne_bytes(payload.try_into().ok()?));
    let registration = || {
        let HandleCookie { handle, cookie } = HandleCookie::read_from_bytes(payload).ok()?;
        Some((Handle(handle), Cookie(cookie)))
    };
    Some(match word.0 {
        bc::TRANSACTION => Command::Transaction(data()?, None),
        bc::REPLY => Command::Reply(data()?, None),
        bc::TRANSACTION_SG => with_buffers().map(|(data, size)| Command::Transaction(data, size))?,
        bc::REPLY_SG => with_buffers().map(|(data, size)| Command::Reply(data, size))?,
        bc::FREE_BUFFER => Command::FreeBuffer(BufferAddress(long()?)),
        bc::INCREFS | bc::ACQUIRE | bc::RELEASE | bc::DECREFS => Command::Count(word, handle()?),
        bc::INCREFS_DONE | bc::ACQUIRE_DONE => {
            let pair = PtrCookie::read_from_bytes(payload).ok()?;
            Command::CountDone(word, NodePtr(pair.ptr), Cookie(pair.cookie))
        }
        bc::REGISTER_LOOPER => Command::RegisterLooper,
        bc::ENTER_LOOPER => Command::EnterLooper,
        bc::EXIT_LOOPER => Command::ExitLooper,
        bc::REQUEST_DEATH_NOTIFICATION => {
            registration().map(|(handle, cookie)| Command::RequestDeath(handle, cookie))?
        }
        bc::CLEAR_DEATH_NOTIFICATION => {
            registration().map(|(handle, cookie)| Command::ClearDeath(handle, cookie))?
        }
        bc::DEAD_BINDER_DONE => Command::DeathDone(Cookie(long()?)),
        bc::REQUEST_FREEZE_NOTIFICATION => {
            registration().map(|(handle, cookie)| Command::RequestFreeze(handle, cookie))?
        }
        bc::CLEAR_FREEZE_NOTIFICATION => {
            registration().map(|(handle, cookie)| Command::ClearFreeze(handle, cookie))?
        }
        bc::FREEZE_NOTIFICATION_DONE => Command::FreezeDone(Cookie(long()?)),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{Commands, Payload, TransactionFlags};

    /// Whichever of the functions for one command each knows what the stream begins with.
    fn at_once(stream: &[u8]) -> Option<Command> {
        let all = [
            transaction(stream).map(|data| Command::Transaction(data, None)),
            reply(stream).map(|data| Command::Reply(data, None)),
            free_buffer(stream).map(Command::FreeBuffer),
        ];
        let mut known = all.into_iter().flatten();
        let command = known.next();
        assert_eq!(known.next(), None, "no more than one");
        command
    }

    #[test]
    fn what_is_encoded_is_decoded() {
        let mut commands = Commands::default();
        let payload =
            Payload { data: &[1, 2, 3], offsets: &[0], buffers_size: Some(16), ..Payload::default() };
        commands.transaction(Handle(7), 9, TransactionFlags::ONEWAY, payload);
        commands.reply(TransactionFlags::CALL, Payload::default());
        commands.transaction(Handle(7), 9, TransactionFlags::CALL, Payload::default());
        commands.reply(TransactionFlags::CALL, Payload { buffers_size: Some(8), ..Payload::default() });
        commands.free_buffer(BufferAddress(0x1000));
        commands.release(Handle(3));
        commands.acquire_done(NodePtr(1), Cookie(2));
        commands.enter_looper();
        commands.request_death(Handle(4), Cookie(5));
        let mut stream = commands.as_bytes();
        let mut seen = Vec::new();
        while !stream.is_empty() {
            let (word, command) = first(stream).expect("well-formed");
            let len = size_of_val(&word) + word.payload_len();
            assert_eq!(at_once(stream).unwrap_or(command), command);
            assert_eq!(at_once(&stream[..len - 1]), None, "cut");
            seen.push(command);
            stream = &stream[len..];
        }
        let Command::Transaction(data, Some(16)) = seen[0] else { panic!("{:?}", seen[0]) };
        assert_eq!((data.target, data.code, data.data_size, data.offsets_size), (7, 9, 3, 8));
        assert!(matches!(seen[1], Command::Reply(_, None)));
        assert!(matches!(seen[2], Command::Transaction(_, None)));
        assert!(matches!(seen[3], Command::Reply(_, Some(8))));
        assert_eq!(
            seen[4..],
            [
                Command::FreeBuffer(BufferAddress(0x1000)),
                Command::Count(CommandWord(bc::RELEASE), Handle(3)),
                Command::CountDone(CommandWord(bc::ACQUIRE_DONE), NodePtr(1), Cookie(2)),
                Command::EnterLooper,
                Command::RequestDeath(Handle(4), Cookie(5)),
            ]
        );
    }

    #[test]
    fn broken_streams_are_refused_and_none_panics() {
        assert_eq!(first(&[]), Err(BadCommand::Truncated));
        assert_eq!(first(&[1, 2]), Err(BadCommand::Truncated));
        let unsupported = CommandWord(bc::ATTEMPT_ACQUIRE);
        assert_eq!(first(&unsupported.0.to_ne_bytes()), Err(BadCommand::Unsupported(unsupported)));
        for (_, word) in bc::ALL {
            let mut stream = word.to_ne_bytes().to_vec();
            stream.extend(vec![0xff; CommandWord(*word).payload_len()]);
            for cut in 0..stream.len() {
                assert!(first(&stream[..cut]).is_err(), "{word:#x} cut at {cut}");
            }
            let _ = first(&stream);
        }
    }
}
