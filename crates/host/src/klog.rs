//! Kernel log messages written during a run: warnings, and messages of the binder driver.
//! Not here: the run itself; a guest's boot log (`vm`); which messages report a fault of the kernel ([`alarm`]).
//! Facts: `Documentation/ABI/testing/dev-kmsg`: a record is `PRIORITY,SEQUENCE,USECONDS,FLAGS[,...];TEXT`, then lines
//! that start with a blank; priority is 8 times the facility plus the level, 4 is a warning; a read returns one
//! record, or `EPIPE` when records were overwritten. Messages of binder.c begin with `binder`, those of the Rust
//! driver with `rust_binder`; most have level 6.

mod alarm;

use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::Path;

/// A kernel message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// 0 (the system is unusable) to 7 (debugging).
    pub level: u8,
    /// Time in us since boot.
    pub time_us: u64,
    /// Text.
    pub text: String,
}

/// Levels up to this one are warnings or worse.
const WARNING: u8 = 4;
/// Longest record in bytes, with its continuation lines.
const LONGEST_RECORD: usize = 8192;
/// Most records that are read; a log flood needs no more.
const MOST_RECORDS: usize = 100_000;

impl Message {
    /// Parses a record of `/dev/kmsg`; `None` if it is malformed, or not from the kernel.
    #[must_use]
    pub fn parse(record: &str) -> Option<Self> {
        Self::parse_of(record, false)
    }

    /// Parses a record, also one from user space if asked for.
    fn parse_of(record: &str, from_users: bool) -> Option<Self> {
        let (head, rest) = record.split_once(';')?;
        let mut fields = head.split(',');
        let priority: u32 = fields.next()?.parse().ok()?;
        let _sequence: u64 = fields.next()?.parse().ok()?;
        let time_us = fields.next()?.parse().ok()?;
        // Messages from user space have another facility.
        if priority >> 3 != 0 && !from_users {
            return None;
        }
        let text = rest.lines().next().unwrap_or_default().to_owned();
        Some(Self { level: (priority & 7) as u8, time_us, text })
    }

    /// Whether it is a warning or worse, or any message of the binder driver.
    #[must_use]
    pub fn is_complaint(&self) -> bool {
        let start = self.text.trim_start();
        self.level <= WARNING
            || ["binder:", "binder_", "rust_binder"].iter().any(|word| start.starts_with(word))
    }

    /// Whether the kernel reports a fault of itself: a BUG, a warning with a stack, a report of one of its checkers.
    #[must_use]
    pub fn is_alarm(&self) -> bool {
        alarm::is_alarm(&self.text)
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.time_us as f64 / 1e6;
        write!(f, "[{seconds:.6}] <{}> {}", self.level, self.text)
    }
}

/// The messages of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogReport {
    /// Warnings, and messages of the binder driver, in order.
    pub complaints: Vec<Message>,
    /// Whether messages were overwritten before they could be read.
    pub lost: bool,
}

impl LogReport {
    /// Whether the log is complete and has no complaints.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.complaints.is_empty() && !self.lost
    }
}

impl fmt::Display for LogReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 20;
        for message in self.complaints.iter().take(SHOWN) {
            writeln!(f, "{message}")?;
        }
        if let Some(more) = self.complaints.len().checked_sub(SHOWN).filter(|more| *more > 0) {
            writeln!(f, "... and {more} more: dmesg")?;
        }
        if self.lost {
            writeln!(f, "some messages were overwritten before they could be read")?;
        }
        Ok(())
    }
}

/// Why the log cannot be read.
#[derive(Debug)]
pub struct KernelLogError(io::Error);

impl fmt::Display for KernelLogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the kernel's log /dev/kmsg cannot be read: {}", sys::errno::describe(&self.0))?;
        match self.0.kind() {
            ErrorKind::PermissionDenied => {
                f.write_str("; run as root, with CAP_SYSLOG, or with kernel.dmesg_restrict=0")
            }
            ErrorKind::NotFound => f.write_str("; in a container, hand in the device"),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for KernelLogError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

/// Reads the kernel log from a given moment on.
#[derive(Debug)]
pub struct Watch<R = File> {
    log: R,
    /// Whether messages from user space count.
    from_users: bool,
}

impl Watch {
    /// Starts at the current end of the log.
    ///
    /// # Errors
    /// [`KernelLogError`]: no permission, or no such device.
    pub fn begin() -> Result<Self, KernelLogError> {
        let mut log = sys::descriptor::open_nonblocking(Path::new("/dev/kmsg")).map_err(KernelLogError)?;
        log.seek(SeekFrom::End(0)).map_err(KernelLogError)?;
        Ok(Self { log, from_users: false })
    }

    /// Starts at the oldest message that the kernel has kept.
    ///
    /// # Errors
    /// Fails as [`Watch::begin`] does.
    pub fn whole() -> Result<Self, KernelLogError> {
        let log = sys::descriptor::open_nonblocking(Path::new("/dev/kmsg")).map_err(KernelLogError)?;
        Ok(Self { log, from_users: false })
    }
}

impl<R: Read> Watch<R> {
    /// Also takes messages that user space wrote, such as [`plant_alarm`]'s.
    #[must_use]
    pub fn with_planted(self) -> Self {
        Self { from_users: true, ..self }
    }

    /// The faults that the kernel reported of itself since its start, or since this was last asked.
    ///
    /// # Errors
    /// [`KernelLogError`].
    pub fn alarms(&mut self) -> Result<Vec<Message>, KernelLogError> {
        let mut alarms = Vec::new();
        self.each(|message| alarms.extend(Some(message).filter(Message::is_alarm)))?;
        Ok(alarms)
    }

    /// The messages since its start.
    ///
    /// # Errors
    /// [`KernelLogError`].
    pub fn end(mut self) -> Result<LogReport, KernelLogError> {
        self.news()
    }

    /// The messages since its start, or since this was last asked.
    ///
    /// # Errors
    /// [`KernelLogError`].
    pub fn news(&mut self) -> Result<LogReport, KernelLogError> {
        let mut account = LogReport::default();
        account.lost =
            self.each(|message| account.complaints.extend(Some(message).filter(Message::is_complaint)))?;
        Ok(account)
    }

    /// The texts of all messages since its start.
    ///
    /// # Errors
    /// [`KernelLogError`].
    pub fn texts(mut self) -> Result<Vec<String>, KernelLogError> {
        let mut texts = Vec::new();
        self.each(|message| texts.push(message.text))?;
        Ok(texts)
    }

    /// Passes each message on; returns whether some are missing.
    fn each(&mut self, mut take: impl FnMut(Message)) -> Result<bool, KernelLogError> {
        let mut record = vec![0; LONGEST_RECORD];
        let mut lost = false;
        for _ in 0..MOST_RECORDS {
            match self.log.read(&mut record) {
                Ok(0) => return Ok(lost),
                Ok(length) => {
                    Message::parse_of(&String::from_utf8_lossy(&record[..length]), self.from_users)
                        .into_iter()
                        .for_each(&mut take);
                }
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => return Ok(lost),
                    ErrorKind::Interrupted => {}
                    ErrorKind::BrokenPipe => lost = true,
                    _ => return Err(KernelLogError(error)),
                },
            }
        }
        Ok(true)
    }
}

/// Writes a line to the kernel's log that reads as a fault of the kernel, for tests of those who read it.
///
/// # Errors
/// No such device, or no permission.
pub fn plant_alarm() -> io::Result<()> {
    File::options()
        .write(true)
        .open("/dev/kmsg")?
        .write_all(b"<3>BUG planted by a test: Poison overwritten\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A log of these records, one per read, as the kernel returns them; an empty one stands for overwritten records.
    struct Records<'r>(std::slice::Iter<'r, &'static str>);

    impl Read for Records<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            match self.0.next() {
                None => Err(io::Error::from(ErrorKind::WouldBlock)),
                Some(&"") => Err(io::Error::from(ErrorKind::BrokenPipe)),
                Some(record) => record.as_bytes().read(buffer),
            }
        }
    }

    fn account(records: &[&'static str]) -> LogReport {
        Watch { log: Records(records.iter()), from_users: false }.end().expect("it can be read")
    }

    #[test]
    fn records_are_read_as_the_kernel_writes_them() {
        let message = Message::parse(
            "4,1205,5300012,-;WARNING: CPU: 1 PID: 9 at kernel/x.c:1 f+0x1/0x2\n SUBSYSTEM=x\n DEVICE=y\n",
        );
        let want = "WARNING: CPU: 1 PID: 9 at kernel/x.c:1 f+0x1/0x2";
        let message = message.expect("a record");
        assert_eq!((message.level, message.time_us), (4, 5_300_012));
        assert_eq!(message.text, want);
        assert_eq!(message.to_string(), format!("[5.300012] <4> {want}"));
        assert_eq!(Message::parse("6,1,2,-,caller=T9;x").expect("with a caller").text, "x");
        for bad in ["", "x", "4,1,2", "4,x,2,-;text", "12,1,2,-;systemd[1]: from user space"] {
            assert_eq!(Message::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn warnings_and_the_drivers_messages_are_complaints() {
        for (record, want) in [
            ("6,1,1,-;binder: 12:13 ioctl 40046210 7ffd returned -22", true),
            ("6,1,1,-;binder_alloc: 12: binder_alloc_buf size 9 failed, no address space", true),
            ("6,1,1,-;rust_binder: 12: Failed to parse", true),
            ("4,1,1,-;x: module verification failed", true),
            ("3,1,1,-;BUG: unable to handle", true),
            ("6,1,1,-;usb 1-1: new device", false),
            ("5,1,1,-;binding something", false),
        ] {
            assert_eq!(Message::parse(record).expect("a record").is_complaint(), want, "{record}");
        }
    }

    #[test]
    fn an_account_has_all_that_went_wrong_and_says_what_it_missed() {
        let clean = account(&["6,1,1,-;x", "12,2,2,-;from user space"]);
        assert!(clean.is_clean() && clean.to_string().is_empty());
        let bad = account(&["4,1,1,-;first", "6,2,2,-;fine", "6,3,3,-;binder: second"]);
        let texts: Vec<&str> = bad.complaints.iter().map(|message| message.text.as_str()).collect();
        assert_eq!(texts, ["first", "binder: second"]);
        assert!(!bad.is_clean() && bad.to_string().contains("<6> binder: second"), "{bad}");
        let lost = account(&["", "6,9,9,-;x"]);
        assert!(lost.lost && !lost.is_clean() && lost.to_string().contains("overwritten"));
        let flood = account(&["4,1,1,-;w"; 30]);
        assert!(flood.to_string().contains("and 10 more"), "{flood}");
    }

    #[test]
    fn alarms_are_read_once_each() {
        let records =
            ["4,1,1,-;WARNING: at x", "6,2,2,-;fine", "12,3,3,-;BUG planted by a test: Poison overwritten"];
        let texts = |from_users| {
            let mut watch = Watch { log: Records(records.iter()), from_users };
            let alarms = watch.alarms().expect("it can be read");
            assert_eq!(watch.alarms().expect("it can be read"), [], "they were read");
            alarms.into_iter().map(|message| message.text).collect::<Vec<_>>()
        };
        assert_eq!(texts(false), ["WARNING: at x"]);
        assert_eq!(texts(true), ["WARNING: at x", "BUG planted by a test: Poison overwritten"]);
    }

    #[test]
    fn a_forbidden_log_is_told_with_the_way_to_it() {
        let text = KernelLogError(io::Error::from_raw_os_error(1)).to_string();
        assert!(text.contains("EPERM") && text.contains("root"), "{text}");
    }

    proptest! {
        #[test]
        fn any_record_is_taken(text in "(?s).{0,200}", head in "[0-9,-]{0,30}") {
            let _ = Message::parse(&text);
            let _ = Message::parse(&format!("{head};{text}"));
        }
    }
}
