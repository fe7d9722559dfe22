//! A connection that counts its exchanges, per thread.

use std::cell::Cell;
use std::io;

use abi::CommandWord;
use abi::codes::bc;
use backend::{AnyConnection, AnyContext};
use driver::{Connection, Context, Exchange, OpenError, OpenOptions};
use sys::counting_alloc::CountingAlloc;

thread_local! {
    static EXCHANGES: Cell<u64> = const { Cell::new(0) };
    static REPLIES_WITH_FREE: Cell<u64> = const { Cell::new(0) };
}

/// What a thread has done so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counts {
    pub(crate) exchanges: u64,
    pub(crate) replies_with_free: u64,
    pub(crate) allocations: u64,
}

impl Counts {
    pub(crate) fn of_this_thread() -> Self {
        Self {
            exchanges: EXCHANGES.get(),
            replies_with_free: REPLIES_WITH_FREE.get(),
            allocations: CountingAlloc::allocations_of_this_thread(),
        }
    }

    pub(crate) fn numbers(self) -> [i64; 3] {
        [self.exchanges, self.replies_with_free, self.allocations].map(|n| i64::try_from(n).expect("few"))
    }

    pub(crate) fn from_numbers(numbers: &[i64]) -> Self {
        let number = |at: usize| u64::try_from(numbers[at]).expect("a count");
        Self { exchanges: number(0), replies_with_free: number(1), allocations: number(2) }
    }

    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            exchanges: self.exchanges - before.exchanges,
            replies_with_free: self.replies_with_free - before.replies_with_free,
            allocations: self.allocations - before.allocations,
        }
    }
}

/// The command words of a write.
fn words(mut bytes: &[u8]) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let (word, rest) = bytes.split_first_chunk::<4>()?;
        let word = CommandWord(u32::from_ne_bytes(*word));
        bytes = rest.get(word.payload_len()..)?;
        Some(word.0)
    })
}

pub(crate) struct CountingContext(pub(crate) AnyContext);

impl Context for CountingContext {
    type Connection = CountingConnection;

    fn open(&self, options: OpenOptions) -> Result<CountingConnection, OpenError> {
        self.0.open(options).map(CountingConnection)
    }

    fn describe(&self) -> String {
        self.0.describe()
    }

    fn options(&self) -> String {
        self.0.options()
    }
}

pub(crate) struct CountingConnection(AnyConnection);

impl Connection for CountingConnection {
    fn write_read(&self, exchange: &mut Exchange<'_>) -> io::Result<()> {
        EXCHANGES.set(EXCHANGES.get() + 1);
        if words(exchange.write).any(|word| matches!(word, bc::REPLY | bc::REPLY_SG))
            && words(exchange.write).any(|word| word == bc::FREE_BUFFER)
        {
            REPLIES_WITH_FREE.set(REPLIES_WITH_FREE.get() + 1);
        }
        self.0.write_read(exchange)
    }

    fn poll_readable(&self, timeout_ms: i32) -> io::Result<bool> {
        self.0.poll_readable(timeout_ms)
    }

    fn thread_exit(&self) -> io::Result<()> {
        self.0.thread_exit()
    }

    driver::forward_connection!(0);
}
