//! Fixtures of the crate's integration tests.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use flate2::read::GzDecoder;

/// The bytes of a fixture, unpacked if its name ends in `.gz`.
pub(crate) fn fixture(folder: &str, name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(folder).join(name);
    let mut file = File::open(&path).expect("a fixture");
    let mut bytes = Vec::new();
    if name.ends_with(".gz") {
        GzDecoder::new(file).read_to_end(&mut bytes).expect("gzip");
    } else {
        file.read_to_end(&mut bytes).expect("a file");
    }
    bytes
}
