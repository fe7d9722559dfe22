//! `BINDER_WRITE_READ`: commands copied in, returns copied out.
//! Facts: contract WR-01, WR-02, WR-08, WR-11.

use std::cell::Cell;
use std::io;

use abi::codes::br;
use abi::layout::WriteRead;
use driver::connection::{Connection, Exchange};
use sys::errno::EFAULT;
use sys::own_memory::{self, ArgumentMemory};
use sys::page;
use zerocopy::IntoBytes;

/// Most bytes of commands, and of returns, that one call takes; a program that goes on where the counts say loses none.
const MOST: usize = 1 << 20;
/// Most bytes that a thread keeps for its next call.
const KEPT: usize = 64 << 10;

thread_local! {
    /// The calling thread's copies of commands and of returns, empty while a call uses them.
    static COPIES: Cell<[Vec<u8>; 2]> = const { Cell::new([Vec::new(), Vec::new()]) };
}

/// Carries one out, with its argument at an address.
///
/// # Errors
/// Those of the driver; `EFAULT`: the argument or a buffer is not there.
pub fn carry_out(connection: &impl Connection, memory: &ArgumentMemory, address: u64) -> io::Result<()> {
    let mut argument = WriteRead::default();
    own_memory::read(address, argument.as_mut_bytes())?;
    let mut copies = COPIES.take();
    let result = exchange(connection, memory, &mut argument, &mut copies);
    copies.iter_mut().filter(|copy| copy.capacity() > KEPT).for_each(|copy| *copy = Vec::new());
    COPIES.set(copies);
    memory.write(address, argument.as_bytes())?;
    result
}

fn exchange(
    connection: &impl Connection,
    memory: &ArgumentMemory,
    argument: &mut WriteRead,
    [commands, returns]: &mut [Vec<u8>; 2],
) -> io::Result<()> {
    let all_there = copy_in(argument, commands);
    // The driver only asks whether anything was returned before (contract WR-01).
    let before = argument.read_consumed.min(size_of::<u32>() as u64);
    let skipped = argument.read_consumed - before;
    let room = match all_there {
        true => argument.read_size.saturating_sub(skipped).min(MOST as u64),
        false => 0,
    };
    returns.clear();
    returns.resize(room as usize, 0);
    let mut exchange = Exchange::new(commands, returns);
    exchange.read_consumed = (before as usize).min(exchange.read.len());
    let start = exchange.read_consumed;
    let result = connection.write_read(&mut exchange);
    argument.write_consumed += exchange.write_consumed as u64;
    if !all_there {
        argument.read_consumed = 0;
        return result.and(Err(io::Error::from_raw_os_error(EFAULT)));
    }
    let end = exchange.read_consumed;
    // A read that ends with nothing has begun with its first word all the same (contract WR-04).
    let first = br::NOOP.to_ne_bytes();
    let began = start == 0 && end == 0 && result.is_err() && exchange.read.starts_with(&first);
    let shown = if began { start..first.len() } else { start..end };
    if let Some(new) = exchange.read.get(shown).filter(|new| !new.is_empty()) {
        memory.write(argument.read_buffer.wrapping_add(skipped + start as u64), new)?;
    }
    if argument.read_size > 0 || result.is_err() {
        argument.read_consumed = if end == 0 { 0 } else { skipped + end as u64 };
    }
    result
}

/// Copies the commands that are left, and returns true if all of them are there; if not, as many pages of them as there are.
fn copy_in(argument: &WriteRead, commands: &mut Vec<u8>) -> bool {
    let left = argument.write_size.saturating_sub(argument.write_consumed).min(MOST as u64);
    let from = argument.write_buffer.wrapping_add(argument.write_consumed);
    commands.resize(left as usize, 0);
    if own_memory::read(from, commands).is_ok() {
        return true;
    }
    let page = page::size();
    let mut there = 0;
    while there < commands.len() {
        let at = from.wrapping_add(there as u64);
        let end = (there + page - at as usize % page).min(commands.len());
        if own_memory::read(at, &mut commands[there..end]).is_err() {
            break;
        }
        there = end;
    }
    commands.truncate(there);
    false
}
