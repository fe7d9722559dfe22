//! Parser of one ring-buffer page: header and records.
//! Not here: contents of a record (`decode`).
//! Facts: `struct buffer_data_page`, `rb_update_read_stamp`, `check_buffer` and `ring_buffer_read_page` of
//! `kernel/trace/ring_buffer.c`, Linux 7.2; `RB_MISSED_EVENTS` and `RB_MISSED_STORED` there.

use super::format::Field;

/// Layout of a page header, from `events/header_page`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    commit_offset: usize,
    /// Size of the kernel's `long` in bytes, 4 or 8.
    long: usize,
    data: usize,
}

impl Default for Header {
    /// Layout of a 64-bit kernel.
    fn default() -> Self {
        Self { commit_offset: 8, long: 8, data: 16 }
    }
}

impl Header {
    /// Parses `header_page`. `None` if it is malformed.
    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(text);
        let field = |name: &str| text.lines().filter_map(Field::parse).find(|field| field.name == name);
        let (commit, data) = (field("commit")?, field("data")?);
        let (commit_offset, data, long) =
            (commit.offset as usize, data.offset as usize, commit.size as usize);
        let sound = matches!(long, 4 | 8) && commit_offset >= 8 && data >= commit_offset + long && data <= 64;
        (field("timestamp")?.offset == 0 && sound).then_some(Self { commit_offset, long, data })
    }
}

const MISSED_EVENTS: u64 = 1 << 31;
const MISSED_STORED: u64 = 1 << 30;
/// Size bits of the commit word.
const SIZE: u64 = (1 << 27) - 1;

/// Bits of an absolute time stamp; the higher bits come from the previous time.
const ABSOLUTE: u64 = (1 << 59) - 1;

/// Events missing before a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missed {
    Nothing,
    Some,
    Count(u64),
}

/// Read position in a page. Borrows nothing, so that a stream can keep it beside the page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor {
    at: usize,
    end: usize,
    ts: u64,
    pub(super) missed: Missed,
}

/// Next record of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Record<'p> {
    /// Event.
    Data { ts: u64, bytes: &'p [u8] },
    /// End of the page.
    End,
    /// The rest is unreadable.
    Corrupt(&'static str),
}

fn word(page: &[u8], at: usize) -> Option<u32> {
    let bytes = page.get(at..at.checked_add(4)?)?;
    bytes.try_into().ok().map(u32::from_le_bytes)
}

fn long(page: &[u8], at: usize, size: usize) -> Option<u64> {
    let low = u64::from(word(page, at)?);
    if size == 4 { Some(low) } else { Some(low | u64::from(word(page, at.checked_add(4)?)?) << 32) }
}

impl Cursor {
    /// Cursor at the start of a page.
    pub(super) fn open(page: &[u8], header: Header) -> Result<Self, &'static str> {
        let (Some(ts), Some(commit)) = (long(page, 0, 8), long(page, header.commit_offset, header.long))
        else {
            return Err("a page shorter than its header");
        };
        let size = usize::try_from(commit & SIZE).map_err(|_| "a page with an impossible size")?;
        let end = header.data + size;
        if end > page.len() {
            return Err("a page that says more bytes than it has");
        }
        let stored = (commit & MISSED_STORED != 0).then(|| long(page, end, header.long)).flatten();
        let missed = match (commit & MISSED_EVENTS != 0, stored) {
            (false, _) => Missed::Nothing,
            (true, Some(count)) => Missed::Count(count),
            (true, None) => Missed::Some,
        };
        Ok(Self { at: header.data, end, ts, missed })
    }

    /// Current time: that of the page, then of the last record.
    pub(super) fn ts(&self) -> u64 {
        self.ts
    }

    /// Next event of this page, which must be the one that the cursor was opened on.
    pub(super) fn next<'p>(&mut self, page: &'p [u8]) -> Record<'p> {
        loop {
            if self.at >= self.end {
                return Record::End;
            }
            let page = page.get(..self.end).unwrap_or(page);
            let Some(header) = word(page, self.at) else { return self.corrupt("half a record's header") };
            let (kind, delta) = (header & 31, u64::from(header >> 5));
            let body = self.at + 4;
            let first = word(page, body);
            match (kind, first) {
                (29, _) if delta == 0 => {
                    self.at = self.end;
                    return Record::End;
                }
                (29, Some(length)) => {
                    // Discarded event. Its delta counts for the next one, except the 1 that replaces 0, because a 0
                    // would end the page.
                    self.ts = self.ts.wrapping_add(if delta == 1 { 0 } else { delta });
                    self.at = body.saturating_add(length as usize);
                }
                (30, Some(high)) => {
                    self.ts = self.ts.wrapping_add(u64::from(high) << 27 | delta);
                    self.at = body + 4;
                }
                (31, Some(high)) => {
                    let absolute = (u64::from(high) << 27 | delta) & ABSOLUTE | self.ts & !ABSOLUTE;
                    // The 59 bits overflowed since the previous time.
                    self.ts = if absolute < self.ts && self.ts & !ABSOLUTE != 0 {
                        absolute.wrapping_add(ABSOLUTE + 1)
                    } else {
                        absolute
                    };
                    self.at = body + 4;
                }
                (0, Some(length)) => {
                    return self.data(page, body + 4, (length as usize).saturating_sub(4), delta);
                }
                (1..=28, _) => return self.data(page, body, kind as usize * 4, delta),
                _ => return self.corrupt("a record longer than its page"),
            }
        }
    }

    fn data<'p>(&mut self, page: &'p [u8], start: usize, length: usize, delta: u64) -> Record<'p> {
        let Some(bytes) = page.get(start..start.saturating_add(length)) else {
            return self.corrupt("an event longer than its page");
        };
        self.ts = self.ts.wrapping_add(delta);
        self.at = start + length.next_multiple_of(4);
        Record::Data { ts: self.ts, bytes }
    }

    fn corrupt<'p>(&mut self, what: &'static str) -> Record<'p> {
        self.at = self.end;
        Record::Corrupt(what)
    }
}
