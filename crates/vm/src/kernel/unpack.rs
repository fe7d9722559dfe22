//! Decompresses kernel modules and packed images with the system's tools, and runs those that unpack packages and archives.
//! Not here: finding them (`modules`, `image`).

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use super::image::Packed;
use crate::error::VmError;

/// A module file's content, decompressed if its name says so.
///
/// # Errors
/// [`VmError::Host`], [`VmError::Tool`].
pub(super) fn module(path: &Path) -> Result<Vec<u8>, VmError> {
    let content = std::fs::read(path).map_err(VmError::host(format!("reading {}", path.display())))?;
    let kind = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let Some((tool, package)) = tool_of(kind) else { return Ok(content) };
    piped(tool, package, &content)
        .map_err(|why| VmError::Tool { command: format!("{tool} -dc <{}", path.display()), why })
}

/// The image inside an EFI zboot image.
///
/// # Errors
/// An unknown compression, or the tool's error; the text is a clause about the image.
pub(super) fn zboot(packed: &Packed<'_>) -> Result<Vec<u8>, String> {
    let unknown = || format!("it is packed with {}, which cannot be unpacked here", packed.compression);
    let (tool, package) = tool_of(packed.compression).ok_or_else(unknown)?;
    piped(tool, package, packed.payload).map_err(|why| format!("unpacking it with {tool}: {why}"))
}

/// Runs a program that unpacks; `package`: what to install if it is not there.
///
/// # Errors
/// [`VmError::Tool`] with its first complaint.
pub(crate) fn tool(command: &mut Command, package: &str) -> Result<(), VmError> {
    let words = [command.get_program()].into_iter().chain(command.get_args());
    let shown = words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
    let failed = |why: String| VmError::Tool { command: shown.clone(), why };
    sys::child::die_with_parent(command);
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| failed(format!("{error}; install it: apt-get install {package}")))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(failed(said.lines().next().unwrap_or("it failed and said nothing").to_owned()))
}

/// Program and Debian package for a compression by its usual names.
fn tool_of(kind: &str) -> Option<(&'static str, &'static str)> {
    match kind {
        "xz" | "xzkern" => Some(("xz", "xz-utils")),
        "zst" | "zstd" | "zstd22" => Some(("zstd", "zstd")),
        "gz" | "gzip" => Some(("gzip", "gzip")),
        _ => None,
    }
}

/// `TOOL -dc` of these bytes. gzip's remark about bytes behind the end, where an image has its length, is no error.
fn piped(tool: &str, package: &str, packed: &[u8]) -> Result<Vec<u8>, String> {
    let mut child = Command::new(tool)
        .arg("-dc")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{error}; install it: apt-get install {package}"))?;
    let input = child.stdin.take();
    let output = std::thread::scope(|scope| {
        // A tool that gives up early closes its input; its own error says why.
        scope.spawn(move || input.map(|mut input| input.write_all(packed)));
        child.wait_with_output()
    });
    let output = output.map_err(|error| error.to_string())?;
    let trailing = output.status.code() == Some(2) && tool == "gzip" && !output.stdout.is_empty();
    if output.status.success() || trailing {
        Ok(output.stdout)
    } else {
        Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packed_image_is_unpacked_or_refused_with_the_reason() {
        // printf kernel | gzip -n
        let gz = b"\x1f\x8b\x08\0\0\0\0\0\0\x03\xcbN-\xcaK\xcd\x01\0\xab\x9a\xd2\x5d\x06\0\0\0";
        let unpacked = zboot(&Packed { compression: "gzip", payload: gz });
        assert_eq!(unpacked.as_deref(), Ok(&b"kernel"[..]));
        let odd = zboot(&Packed { compression: "rle", payload: gz });
        assert!(odd.expect_err("no such tool").contains("packed with rle"));
        assert!(zboot(&Packed { compression: "gzip", payload: b"no" }).is_err());
    }
}
