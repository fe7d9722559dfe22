//! Reads the release from a kernel image.
//! Facts: kernel `Documentation/arch/x86/boot.rst`: magic at 0x202, version string pointer at 0x20e, sectors of
//! set-up code at 0x1f1, 16-byte paragraphs of the rest at 0x1f4.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use crate::error::VmError;

/// Upper bound of the set-up code's length; it contains the header and the version string.
const HEAD: u64 = 64 * 1024;

/// The release (`uname -r`) of a bzImage.
///
/// # Errors
/// [`VmError::BadKernel`]: no such file, or not a bzImage.
pub(super) fn release(image: &Path) -> Result<String, VmError> {
    let bad = |why: String| VmError::BadKernel { given: image.display().to_string(), why };
    let mut head = Vec::new();
    let read = File::open(image).and_then(|file| {
        let length = file.metadata()?.len();
        file.take(HEAD).read_to_end(&mut head)?;
        Ok(length)
    });
    let length = read.map_err(|error| match error.kind() {
        ErrorKind::NotFound => bad("there is no such file".into()),
        _ => bad(format!("reading it: {}", sys::errno::describe(&error))),
    })?;
    let no_header = || bad("it is not a bzImage (no boot header in its first 64 KiB)".into());
    let release = version(&head).ok_or_else(no_header)?;
    let whole = whole_length(&head).ok_or_else(no_header)?;
    if length < whole {
        return Err(bad(format!("it is cut off: {length} of {whole} bytes are there")));
    }
    Ok(release)
}

/// Minimum length in bytes of a bzImage with this header.
fn whole_length(head: &[u8]) -> Option<u64> {
    // 0, in old images, means the default.
    let sectors = match *head.get(0x1f1)? {
        0 => 4,
        sectors => u64::from(sectors),
    };
    let paragraphs = u32::from_le_bytes(head.get(0x1f4..0x1f8)?.try_into().ok()?);
    Some((sectors + 1) * 512 + u64::from(paragraphs) * 16)
}

/// The first word of the version string.
fn version(head: &[u8]) -> Option<String> {
    if head.get(0x202..0x206)? != b"HdrS" {
        return None;
    }
    let pointer = u16::from_le_bytes(head.get(0x20e..0x210)?.try_into().ok()?);
    let text = head.get(usize::from(pointer) + 0x200..)?;
    let end = text.iter().position(|byte| *byte == 0 || *byte == b' ')?;
    let word = std::str::from_utf8(&text[..end]).ok()?;
    (!word.is_empty()).then(|| word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_read_where_the_boot_protocol_puts_it() {
        let mut head = vec![0; 0x400];
        head[0x202..0x206].copy_from_slice(b"HdrS");
        head[0x20e..0x210].copy_from_slice(&0x100u16.to_le_bytes());
        head[0x300..0x316].copy_from_slice(b"6.1.0-50-amd64 (debian");
        assert_eq!(version(&head).as_deref(), Some("6.1.0-50-amd64"));
        head[0x20e..0x210].copy_from_slice(&0xffffu16.to_le_bytes());
        assert_eq!(version(&head), None, "a pointer past the end");
        assert_eq!(version(b"MZ"), None);
    }

    #[test]
    fn a_length_is_set_up_code_and_the_rest() {
        let mut head = vec![0; 0x400];
        head[0x1f1] = 3;
        head[0x1f4..0x1f8].copy_from_slice(&10u32.to_le_bytes());
        assert_eq!(whole_length(&head), Some(4 * 512 + 160));
        head[0x1f1] = 0;
        assert_eq!(whole_length(&head), Some(5 * 512 + 160));
        assert_eq!(whole_length(b"MZ"), None);
    }

    #[test]
    fn what_is_no_kernel_is_refused_with_the_reason() {
        let error = release(Path::new("/no/such/bzImage")).expect_err("not there");
        assert!(error.to_string().contains("no such file"), "{error}");
        assert_eq!(error.exit_code(), 2);
        let this = std::env::current_exe().expect("own executable");
        assert!(release(&this).expect_err("a program").to_string().contains("not a bzImage"));
    }
}
