//! Reads what gzip packed, and names gzip where that breaks off or is damaged.
//! Not here: files that are unpacked before they are read (`unpack`).

use std::io::{self, ErrorKind, Read};

use flate2::read::MultiGzDecoder;

/// Content of a file that gzip packed, of all its members. Its errors say whether the packed file breaks off or is damaged.
#[derive(Debug)]
pub struct Gunzip<R>(MultiGzDecoder<R>);

impl<R: Read> Gunzip<R> {
    /// Takes the packed bytes.
    pub fn new(packed: R) -> Self {
        Self(MultiGzDecoder::new(packed))
    }
}

impl<R: Read> Read for Gunzip<R> {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        self.0.read(space).map_err(fault)
    }
}

/// The error of a decoder, in words about the packed file; an error of the system is left alone.
fn fault(error: io::Error) -> io::Error {
    match error.kind() {
        _ if error.raw_os_error().is_some() => error,
        ErrorKind::Interrupted | ErrorKind::WouldBlock => error,
        kind @ ErrorKind::UnexpectedEof => io::Error::new(kind, "the file that gzip packed breaks off"),
        kind => io::Error::new(kind, format!("the file that gzip packed is damaged: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    #[test]
    fn a_packed_file_that_is_not_whole_is_named() {
        let mut packer = GzEncoder::new(Vec::new(), Compression::default());
        packer.write_all(b"what is packed").expect("memory");
        let whole = packer.finish().expect("memory");
        let read = |packed: &[u8]| {
            let mut content = Vec::new();
            Gunzip::new(packed).read_to_end(&mut content).map(|_| content).map_err(|error| error.to_string())
        };
        assert_eq!(read(&whole).expect("whole"), b"what is packed");
        assert_eq!(read(&[&whole[..], &whole].concat()).expect("two members").len(), 28);
        for length in 1..whole.len() {
            let error = read(&whole[..length]).expect_err("cut");
            assert_eq!(error, "the file that gzip packed breaks off", "{length} bytes");
        }
        let mut damaged = whole.clone();
        damaged[whole.len() - 8] ^= 1;
        let error = read(&damaged).expect_err("another checksum");
        assert!(error.starts_with("the file that gzip packed is damaged: "), "{error}");
    }

    #[test]
    fn an_error_of_the_system_stays() {
        struct Gone;
        impl Read for Gone {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::from_raw_os_error(5))
            }
        }
        let error = Gunzip::new(Gone).read(&mut [0]).expect_err("no disk");
        assert_eq!(error.raw_os_error(), Some(5));
    }
}
