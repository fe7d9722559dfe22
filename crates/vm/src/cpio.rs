//! Writer of "newc" cpio archives, the kernel's initramfs format.
//! Not here: the archive's content (`initramfs`).
//! Own code: the crate `cpio` would replace only the 15 lines that write a header.
//! Facts: kernel `Documentation/driver-api/early-userspace/buffer-format.rst`.

use std::io::{self, Read, Write};

const FOLDER: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;
const SYMLINK: u32 = 0o120_000;
const CHARACTER: u32 = 0o020_000;

/// Writes an archive entry by entry; [`Self::finish`] completes it.
#[derive(Debug)]
pub(super) struct Writer<W> {
    sink: W,
    inode: u32,
}

impl<W: Write> Writer<W> {
    /// Starts an archive in `sink`.
    pub(super) fn new(sink: W) -> Self {
        Self { sink, inode: 0 }
    }

    /// Writes a header and the name, padded to four bytes. Times are 0, so equal content gives equal bytes.
    fn header(&mut self, name: &str, mode: u32, len: u32, device: (u32, u32)) -> io::Result<()> {
        self.inode += 1;
        let name_len = name.len() as u32 + 1;
        let fields = [self.inode, mode, 0, 0, 1, 0, len, 0, 0, device.0, device.1, name_len, 0];
        write!(self.sink, "070701")?;
        fields.iter().try_for_each(|field| write!(self.sink, "{field:08x}"))?;
        self.sink.write_all(name.as_bytes())?;
        self.sink.write_all(&[0])?;
        // The header is 110 bytes long.
        self.pad(110 + u64::from(name_len))
    }

    fn pad(&mut self, len: u64) -> io::Result<()> {
        self.sink.write_all(&[0u8; 3][..(len.wrapping_neg() % 4) as usize])
    }

    /// Adds a folder; its parent must come first.
    ///
    /// # Errors
    /// The sink's error.
    pub(super) fn folder(&mut self, name: &str) -> io::Result<()> {
        self.header(name, FOLDER | 0o755, 0, (0, 0))
    }

    /// Adds a character device node with mode 0600.
    ///
    /// # Errors
    /// The sink's error.
    pub(super) fn character(&mut self, name: &str, major: u32, minor: u32) -> io::Result<()> {
        self.header(name, CHARACTER | 0o600, 0, (major, minor))
    }

    /// Adds a symbolic link.
    ///
    /// # Errors
    /// The sink's error.
    pub(super) fn symlink(&mut self, name: &str, target: &str) -> io::Result<()> {
        self.header(name, SYMLINK | 0o777, target.len() as u32, (0, 0))?;
        self.sink.write_all(target.as_bytes())?;
        self.pad(target.len() as u64)
    }

    /// Adds a regular file of exactly `len` bytes from `content`.
    ///
    /// # Errors
    /// `InvalidInput`: 4 GiB or more. `UnexpectedEof`: `content` is shorter. Else the sink's error.
    pub(super) fn file(
        &mut self,
        name: &str,
        permissions: u32,
        len: u64,
        content: impl Read,
    ) -> io::Result<()> {
        let size = u32::try_from(len).map_err(|_| {
            io::Error::new(io::ErrorKind::InvalidInput, "over 4 GiB, too large for an initramfs")
        })?;
        self.header(name, REGULAR | (permissions & 0o7777), size, (0, 0))?;
        if io::copy(&mut content.take(len), &mut self.sink)? != len {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it shrank while it was read"));
        }
        self.pad(len)
    }

    /// Writes the end mark and returns the sink.
    ///
    /// # Errors
    /// The sink's error.
    pub(super) fn finish(mut self) -> io::Result<W> {
        self.header("TRAILER!!!", 0, 0, (0, 0))?;
        self.sink.flush()?;
        Ok(self.sink)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_is_these_bytes() {
        let mut writer = Writer::new(Vec::new());
        writer.folder("dev").expect("a Vec takes it");
        writer.character("dev/console", 5, 1).expect("a Vec takes it");
        writer.symlink("b", "init").expect("a Vec takes it");
        writer.file("init", 0o755, 5, &b"hello"[..]).expect("a Vec takes it");
        let bytes = writer.finish().expect("a Vec takes it");
        let zero = "00000000";
        let line = |inode: u32, mode: &str, len: u32, device: &str, name: &str| {
            let name_len = name.len() + 1;
            let head =
                format!("070701{inode:08x}{mode}{zero}{zero}00000001{zero}{len:08x}{zero}{zero}{device}");
            format!("{head}{name_len:08x}{zero}{name}")
        };
        let none = "0000000000000000";
        let want = [
            line(1, "000041ed", 0, none, "dev") + "\0\0\0",
            line(2, "00002180", 0, "0000000500000001", "dev/console") + "\0\0\0",
            line(3, "0000a1ff", 4, none, "b") + "\0init",
            line(4, "000081ed", 5, none, "init") + "\0\0hello\0\0\0",
            line(5, zero, 0, none, "TRAILER!!!") + "\0\0\0\0",
        ];
        assert_eq!(String::from_utf8_lossy(&bytes), want.concat());
    }

    #[test]
    fn a_file_that_shrinks_is_an_error_and_not_a_broken_archive() {
        let mut writer = Writer::new(Vec::new());
        let error = writer.file("short", 0o644, 9, &b"hello"[..]).expect_err("4 bytes are missing");
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}
