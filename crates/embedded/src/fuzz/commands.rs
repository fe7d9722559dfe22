//! Fuzz entry: any bytes as commands of a connection, which must stay usable.

use abi::codes::{bc, object};
use abi::layout::{TransactionData, TransactionDataSg};
use abi::{CommandWord, Return, Returns};
use zerocopy::IntoBytes;

use super::source::Source;
use super::stage::{Pair, Stage, drain};
use driver::connection::{Connection, Exchange};

/// Number of inputs after which both connections are reopened.
const RENEW: u32 = 64;

/// A broker and two connections that serve one input after another, on the thread that made this value.
#[derive(Debug)]
pub struct Commands {
    stage: Stage,
    pair: Option<Pair>,
    inputs: u32,
}

/// Starts the broker.
impl Default for Commands {
    fn default() -> Self {
        Self { stage: Stage::inline(), pair: None, inputs: 0 }
    }
}

impl Commands {
    /// Writes the commands of an input, then calls the connection.
    ///
    /// # Panics
    /// If anything other than a refused command occurs.
    pub fn run(&mut self, input: &[u8]) {
        if self.inputs.is_multiple_of(RENEW) {
            self.pair = None;
        }
        let pair = self.pair.get_or_insert_with(|| self.stage.pair(self.inputs));
        self.inputs += 1;
        let mut source = Source::new(input);
        let mut lent = Vec::new();
        while !source.is_empty() {
            exchange(pair, &mut source, &mut lent);
            if source.byte() > 200 {
                drain(&pair.victim);
            }
        }
        pair.ping();
    }
}

/// One ioctl with a few commands.
fn exchange(pair: &Pair, source: &mut Source<'_>, lent: &mut Vec<u64>) {
    let payload = payload(source);
    let offsets: Vec<u64> = (0..source.choose(4)).map(|_| source.word() & !3).collect();
    let mut stream = Vec::new();
    for _ in 0..source.choose(6) {
        command(source, &payload, &offsets, lent, &mut stream);
    }
    let mut room = [0; 320];
    let room = &mut room[..source.choose(6) * 64];
    let mut exchange = Exchange::new(&stream, room);
    if source.byte() > 245 {
        (exchange.write_consumed, exchange.read_consumed) = (source.choose(99), source.choose(99));
    }
    let from = exchange.read_consumed;
    // Any errno is accepted.
    let refused = pair.other.write_read_uninterrupted(&mut exchange).is_err();
    if refused || from > 0 {
        return;
    }
    for item in Returns::new(exchange.returned()) {
        match item.expect("whole returns") {
            Return::Transaction(delivery) | Return::Reply(delivery) => {
                for at in (0..delivery.data_size).step_by(4) {
                    drop(pair.other.take_fd(delivery.buffer.0 + at));
                }
                lent.push(delivery.buffer.0);
            }
            _ => {}
        }
    }
}

/// Bytes that probably contain objects of all kinds.
fn payload(source: &mut Source<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..source.choose(4) {
        match source.choose(object::ALL.len() + 2) {
            0 => bytes.extend(source.bytes(24)),
            kind => {
                let kind = object::ALL.get(kind - 1).map_or(0, |(_, kind)| *kind);
                bytes.extend(kind.to_ne_bytes());
                bytes.extend((source.word() as u32).to_ne_bytes());
                (0..3).for_each(|_| bytes.extend(source.word().to_ne_bytes()));
            }
        }
    }
    bytes
}

fn command(source: &mut Source<'_>, payload: &[u8], offsets: &[u64], lent: &[u64], stream: &mut Vec<u8>) {
    let Some((_, word)) = bc::ALL.get(source.choose(bc::ALL.len() + 1)) else {
        return stream.extend(source.bytes(12));
    };
    stream.extend(word.to_ne_bytes());
    match *word {
        bc::TRANSACTION | bc::REPLY => stream.extend(transaction(source, payload, offsets).as_bytes()),
        bc::TRANSACTION_SG | bc::REPLY_SG => {
            let transaction_data = transaction(source, payload, offsets);
            let data = TransactionDataSg { transaction_data, buffers_size: source.word() };
            stream.extend(data.as_bytes());
        }
        bc::FREE_BUFFER if source.byte() < 200 => {
            let address = lent.get(source.choose(lent.len() + 1)).copied();
            stream.extend(address.unwrap_or_else(|| source.word()).to_ne_bytes());
        }
        word => {
            let end = stream.len() + CommandWord(word).payload_len();
            while stream.len() < end {
                let left = end - stream.len();
                let bytes = source.word().to_ne_bytes();
                // A handle is the first half of a word.
                let len = if left % 8 == 4 { 4 } else { left.min(8) };
                stream.extend(&bytes[..len]);
            }
        }
    }
}

fn transaction(source: &mut Source<'_>, payload: &[u8], offsets: &[u64]) -> TransactionData {
    let honest = source.byte() < 220;
    let place = |real: u64, source: &mut Source<'_>| if honest { real } else { source.word() };
    TransactionData {
        target: source.word(),
        cookie: source.word(),
        code: source.word() as u32,
        flags: u32::from(source.byte()),
        sender_pid: 0,
        sender_euid: 0,
        data_size: place(payload.len() as u64, source),
        offsets_size: place(size_of_val(offsets) as u64, source),
        buffer: place(payload.as_ptr() as u64, source),
        offsets: place(offsets.as_ptr() as u64, source),
    }
}
