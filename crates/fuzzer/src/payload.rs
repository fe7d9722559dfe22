//! Bytes of a step's commands, with the memory that they point to.
//! Not here: what came back (`outcome`).

use std::os::fd::RawFd;

use abi::codes::{CommandWord, bc, flat, object};
use abi::layout::{BufferObject, FdArrayObject, FdObject, FlatBinderObject, TransactionData};
use abi::{BufferAddress, Commands};
use zerocopy::IntoBytes;

use crate::program::{Command, Object, Transaction, cookie_of, fields};
use crate::state::Belongings;

/// A number that is no open descriptor.
const NOT_OPEN: RawFd = 9999;

/// A stream of commands. It points into `parts`, which must live until the stream was written.
#[derive(Debug, Default)]
pub(crate) struct Encoded {
    pub(crate) commands: Commands,
    /// The end of each command, and the buffer that it frees.
    pub(crate) ends: Vec<(usize, Option<u64>)>,
    parts: Vec<Vec<u8>>,
}

impl Encoded {
    /// Encodes commands in order; `files`: descriptors of `/dev/null` and `/dev/zero`. A buffer that one of them frees is not there
    /// for the next.
    pub(crate) fn of(commands: &[Command], kept: &Belongings, files: [RawFd; 2]) -> Self {
        let mut made = Self::default();
        let (mut held, mut freed) = (kept.held.clone(), kept.freed);
        for command in commands {
            let mut frees = None;
            match command {
                Command::Transaction(target, what) => made.transaction(*target, what, files),
                Command::Free(at) => {
                    if *at < held.len() {
                        freed = held.remove(*at);
                        frees = Some(freed);
                    }
                    made.commands.free_buffer(BufferAddress(freed));
                }
                Command::Plain(code, numbers) => {
                    made.word(*code);
                    for (number, size) in fields(*code, *numbers) {
                        let half = (number as u32).to_ne_bytes();
                        made.commands.append(if size == 4 { &half } else { number.as_bytes() });
                    }
                }
                Command::Word(word) => {
                    made.word(*word);
                    // Room for what the word says follows it, so that no driver reads beyond the stream.
                    made.commands.append(&vec![0; CommandWord(*word).payload_len()]);
                }
            }
            made.ends.push((made.commands.as_bytes().len(), frees));
        }
        made
    }

    fn keep(&mut self, part: Vec<u8>) -> u64 {
        let address = part.as_ptr() as u64;
        self.parts.push(part);
        address
    }

    fn transaction(&mut self, target: Option<u32>, what: &Transaction, files: [RawFd; 2]) {
        let mut data = pattern(what.code, what.plain as usize);
        let mut offsets: Vec<u64> = Vec::new();
        let mut size = 0_u64;
        for (object, buffer) in what.objects.iter().zip(buffers(what, files[0])) {
            data.resize(data.len().next_multiple_of(8), 0);
            offsets.push(data.len() as u64);
            size += (buffer.len() as u64).next_multiple_of(8);
            data.extend_from_slice(&bytes_of(object, files, self.keep(buffer)));
        }
        if let Some(last) = offsets.last_mut() {
            *last += u64::from(what.skew);
        }
        let command = TransactionData {
            target: target.unwrap_or_default().into(),
            code: what.code,
            flags: what.flags,
            data_size: (data.len() as u64).saturating_sub(what.cut.into()),
            offsets_size: (8 * offsets.len() as u64).saturating_sub(what.clip.into()),
            buffer: self.keep(data),
            offsets: self.keep(offsets.as_bytes().to_vec()),
            ..TransactionData::default()
        };
        let [plain, scattered] = match target {
            Some(_) => [bc::TRANSACTION, bc::TRANSACTION_SG],
            None => [bc::REPLY, bc::REPLY_SG],
        };
        self.word(if what.is_scattered() { scattered } else { plain });
        self.commands.append(command.as_bytes());
        if what.is_scattered() {
            self.commands.append(size.saturating_sub(what.short.into()).as_bytes());
        }
    }

    fn word(&mut self, word: u32) {
        self.commands.append(&word.to_ne_bytes());
    }
}

/// Bytes that tell a wrong place and a wrong sender.
pub(crate) fn pattern(code: u32, len: usize) -> Vec<u8> {
    (0..len).map(|at| (code as usize * 31 + at) as u8).collect()
}

/// The scattered buffer of each object, empty if it has none, with the descriptors of arrays in it.
fn buffers(what: &Transaction, file: RawFd) -> Vec<Vec<u8>> {
    let buffer = |object: &Object| match object {
        Object::Buffer { len, .. } => pattern(what.code.wrapping_add(1), *len as usize),
        _ => Vec::new(),
    };
    let mut buffers: Vec<Vec<u8>> = what.objects.iter().map(buffer).collect();
    for object in &what.objects {
        let Object::Fds { count, parent: (parent, at) } = *object else { continue };
        let Some(buffer) = buffers.get_mut(parent as usize) else { continue };
        let places = buffer.get_mut(at as usize..).unwrap_or_default().chunks_exact_mut(4);
        places.take(count as usize).for_each(|place| place.copy_from_slice(&file.to_ne_bytes()));
    }
    buffers
}

/// `buffer`: the address of its scattered buffer.
fn bytes_of(what: &Object, files: [RawFd; 2], buffer: u64) -> Vec<u8> {
    match *what {
        Object::Node { ptr, weak } => {
            let kind = if weak { object::WEAK_BINDER } else { object::BINDER };
            let flags = if ptr == 3 { 0 } else { flat::ACCEPTS_FDS };
            FlatBinderObject { kind, flags, binder: ptr, cookie: cookie_of(ptr) }.as_bytes().to_vec()
        }
        Object::Handle { handle, weak } => {
            let kind = if weak { object::WEAK_HANDLE } else { object::HANDLE };
            FlatBinderObject { kind, binder: handle.into(), ..FlatBinderObject::default() }
                .as_bytes()
                .to_vec()
        }
        Object::Fd(number) => {
            let fd = files.get(usize::from(number)).copied().unwrap_or(NOT_OPEN);
            FdObject { kind: object::FD, fd: fd as u64, ..FdObject::default() }.as_bytes().to_vec()
        }
        Object::Fds { count, parent: (parent, at) } => {
            let (parent, parent_offset) = (parent.into(), at.into());
            let made =
                FdArrayObject { kind: object::FDA, num_fds: count.into(), parent, parent_offset, pad: 0 };
            made.as_bytes().to_vec()
        }
        Object::Buffer { len, parent } => {
            let flags = if parent.is_some() { object::BUFFER_FLAG_HAS_PARENT } else { 0 };
            let (parent, at) = parent.unwrap_or_default();
            let (parent, parent_offset) = (parent.into(), at.into());
            BufferObject { kind: object::PTR, flags, buffer, length: len.into(), parent, parent_offset }
                .as_bytes()
                .to_vec()
        }
    }
}
