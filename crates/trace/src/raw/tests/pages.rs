//! Builder of synthetic pages and records in the layout of `kernel/trace/ring_buffer.c`.

pub(super) const SIZE: u32 = 512;

/// Event with the common fields only.
pub(super) const FORMAT: &[u8] = b"name: bare\nID: 7\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
    \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\nprint fmt: \"\"\n";

/// Page under construction.
pub(super) struct Page {
    ts: u64,
    data: Vec<u8>,
    flags: u64,
    stored: Option<u64>,
}

impl Page {
    pub(super) fn at(ts: u64) -> Self {
        Self { ts, data: Vec::new(), flags: 0, stored: None }
    }

    pub(super) fn with(mut self, record: &[u8]) -> Self {
        self.data.extend_from_slice(record);
        self
    }

    pub(super) fn missed(mut self, stored: Option<u64>) -> Self {
        self.flags = 1 << 31 | if stored.is_some() { 1 << 30 } else { 0 };
        self.stored = stored;
        self
    }

    pub(super) fn done(self) -> Vec<u8> {
        let mut page = self.ts.to_le_bytes().to_vec();
        page.extend_from_slice(&(self.data.len() as u64 | self.flags).to_le_bytes());
        page.extend_from_slice(&self.data);
        page.extend(self.stored.into_iter().flat_map(u64::to_le_bytes));
        assert!(page.len() <= SIZE as usize, "too much for a page");
        page.resize(SIZE as usize, 0);
        page
    }
}

fn header(kind: u32, delta: u64) -> [u8; 4] {
    let delta = u32::try_from(delta).expect("27 bits");
    assert!(delta < 1 << 27);
    (kind | delta << 5).to_le_bytes()
}

fn body(tid: i32) -> Vec<u8> {
    let mut body = vec![7, 0, 0, 0];
    body.extend_from_slice(&tid.to_le_bytes());
    body
}

pub(super) fn event(delta: u64, tid: i32) -> Vec<u8> {
    [header(2, delta).as_slice(), &body(tid)].concat()
}

pub(super) fn long_event(delta: u64, tid: i32, length: usize) -> Vec<u8> {
    let mut bytes = header(0, delta).to_vec();
    let whole = length.next_multiple_of(4);
    bytes.extend_from_slice(&u32::try_from(whole + 4).expect("small").to_le_bytes());
    bytes.extend_from_slice(&body(tid));
    bytes.resize(8 + whole, 0xee);
    bytes
}

pub(super) fn extend(delta: u64) -> Vec<u8> {
    word_pair(30, delta)
}

pub(super) fn stamp(ts: u64) -> Vec<u8> {
    word_pair(31, ts)
}

fn word_pair(kind: u32, value: u64) -> Vec<u8> {
    let high = u32::try_from(value >> 27).expect("59 bits");
    [header(kind, value & ((1 << 27) - 1)), high.to_le_bytes()].concat()
}

/// Event of twelve bytes that was discarded after it was reserved.
pub(super) fn discarded(delta: u64) -> Vec<u8> {
    [header(29, delta).as_slice(), &8_u32.to_le_bytes(), &[0xdd; 4]].concat()
}
