//! Reads architecture and release from a kernel image.
//! Facts: kernel `Documentation/arch/x86/boot.rst`: magic at 0x202, version string pointer at 0x20e, sectors of
//! set-up code at 0x1f1, 16-byte paragraphs of the rest at 0x1f4. `Documentation/arch/arm64/booting.rst`: magic at
//! 0x38; the image has no version field, so the release is read from the banner that the kernel prints.
//! `drivers/firmware/efi/libstub/zboot-header.S`: "zimg" at 4, payload offset, size and compression from 8.

use std::io::ErrorKind;
use std::path::Path;

use crate::arch::Arch;
use crate::error::VmError;

/// What an image says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) arch: Arch,
    /// `uname -r`.
    pub(super) release: String,
}

/// A kernel image that a loader has to unpack first, which QEMU before 8.1 does not.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Packed<'a> {
    /// The compression's name, e.g. "gzip".
    pub(super) compression: &'a str,
    pub(super) payload: &'a [u8],
}

/// Reads an image.
///
/// # Errors
/// [`VmError::BadKernel`]: no such file.
pub(super) fn read(image: &Path) -> Result<Vec<u8>, VmError> {
    std::fs::read(image).map_err(|error| VmError::BadKernel {
        given: image.display().to_string(),
        why: match error.kind() {
            ErrorKind::NotFound => "there is no such file".into(),
            _ => format!("reading it: {}", sys::errno::describe(&error)),
        },
    })
}

/// Architecture and release of an image of this content.
///
/// # Errors
/// It is none, or it is cut off; the text is a clause about it.
pub(super) fn facts(image: &[u8]) -> Result<Facts, String> {
    if image.get(0x38..0x3c) == Some(b"ARM\x64") {
        let release = banner(image).ok_or("it is an arm64 image that names no release, so it is cut off")?;
        return Ok(Facts { arch: Arch::Arm, release });
    }
    let no_header = "it is neither a bzImage nor an arm64 Image (no such header)";
    let release = version(image).ok_or(no_header)?;
    let whole = whole_length(image).ok_or(no_header)?;
    if (image.len() as u64) < whole {
        return Err(format!("it is cut off: {} of {whole} bytes are there", image.len()));
    }
    Ok(Facts { arch: Arch::X86, release })
}

/// The payload of an EFI zboot image; `None` for any other.
pub(super) fn packed(image: &[u8]) -> Option<Packed<'_>> {
    if image.get(..2)? != b"MZ" || image.get(4..8)? != b"zimg" {
        return None;
    }
    let word = |at: usize| Some(u32::from_le_bytes(image.get(at..at + 4)?.try_into().ok()?) as usize);
    let (offset, size) = (word(8)?, word(12)?);
    let name = image.get(24..56)?.split(|byte| *byte == 0).next()?;
    let compression = std::str::from_utf8(name).ok()?;
    Some(Packed { compression, payload: image.get(offset..offset.checked_add(size)?)? })
}

/// The release in the banner "Linux version RELEASE (".
fn banner(image: &[u8]) -> Option<String> {
    let key = b"Linux version ";
    // Each "L" is a candidate; a search by windows of 48 MB would take a second in a debug build.
    let mut from = 0;
    while let Some(at) = image[from..].iter().position(|byte| *byte == b'L').map(|at| from + at) {
        let text = image[at..].strip_prefix(key).and_then(|rest| rest.split(|byte| *byte == b' ').next());
        let release = text.filter(|word| word.len() < 128).and_then(|word| std::str::from_utf8(word).ok());
        // The format string of the same banner comes first in some kernels.
        if let Some(release) = release.filter(|word| word.starts_with(|c: char| c.is_ascii_digit())) {
            return Some(release.to_owned());
        }
        from = at + 1;
    }
    None
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
        let error = read(Path::new("/no/such/bzImage")).expect_err("not there");
        assert!(error.to_string().contains("no such file"), "{error}");
        assert_eq!(error.exit_code(), 2);
        assert!(facts(b"\x7fELF").expect_err("a program").contains("neither a bzImage"));
    }

    #[test]
    fn an_arm64_image_is_told_by_its_magic_and_its_banner() {
        let mut image = vec![0; 0x100];
        image[0x38..0x3c].copy_from_slice(b"ARM\x64");
        assert!(facts(&image).expect_err("no banner").contains("cut off"));
        image.extend(b"LLinux version %s (%s)\0..Linux version 6.12.117+deb13-arm64 (debian");
        let want = Facts { arch: Arch::Arm, release: "6.12.117+deb13-arm64".into() };
        assert_eq!(facts(&image), Ok(want));
    }

    #[test]
    fn a_packed_image_gives_its_payload() {
        let mut image = b"MZ\0\0zimg".to_vec();
        image.extend(64u32.to_le_bytes());
        image.extend(3u32.to_le_bytes());
        image.resize(24, 0);
        image.extend(b"gzip\0");
        image.resize(64, 0);
        assert_eq!(packed(&image), None, "its payload is cut off");
        image.extend(b"abc");
        assert_eq!(packed(&image), Some(Packed { compression: "gzip", payload: b"abc" }));
        assert_eq!(packed(b"MZ"), None);
    }
}
