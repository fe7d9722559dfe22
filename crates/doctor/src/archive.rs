//! Unpacks the archive of the collecting script (`collect`): regular files and folders of a `tar`, nothing else.
//! Facts: `tar(5)`: blocks of 512 bytes; name at 0, octal size at 124, type at 156, magic at 257, prefix at 345; GNU's
//! type `L` holds the long name of the next entry.
//! The archive is from another machine: links and paths that lead out of the folder are refused.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use sys::private_folder::PrivateFolder;

/// Size of a block in bytes.
const BLOCK: usize = 512;
/// Longest archive that is read, in bytes.
const LONGEST: u64 = 64 << 20;
/// Most entries that are unpacked.
const MOST_ENTRIES: usize = 20_000;

/// Unpacks an archive into a folder that goes with its value.
///
/// # Errors
/// It cannot be read or written, or is not an archive (`InvalidData`).
pub(super) fn unpack(archive: &Path) -> io::Result<PrivateFolder> {
    let mut bytes = Vec::new();
    File::open(archive)?.take(LONGEST).read_to_end(&mut bytes)?;
    let folder = PrivateFolder::new("unpacked")?;
    let mut rest = &bytes[..];
    let mut long_name = None;
    for _ in 0..MOST_ENTRIES {
        // Two empty blocks are the end; some writers end without.
        let Some((head, after)) = rest.split_at_checked(BLOCK).filter(|(head, _)| head[0] != 0) else {
            return Ok(folder);
        };
        let (kind, size) = kind_and_size(head)?;
        let (content, after) =
            after.split_at_checked(size).ok_or_else(|| bad("it ends in the middle of a file"))?;
        let name = long_name.take().unwrap_or_else(|| name_of(head));
        match kind {
            b'L' => long_name = Some(text(content)),
            b'0' | 0 => put(folder.path(), &name, content)?,
            b'5' => fs::create_dir_all(folder.path().join(inside(&name)?))?,
            _ => {}
        }
        rest = after.get(size.next_multiple_of(BLOCK) - size..).unwrap_or_default();
    }
    Err(bad("it has too many files"))
}

fn bad(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// An entry's type and size in bytes.
fn kind_and_size(head: &[u8]) -> io::Result<(u8, usize)> {
    if &head[257..262] != b"ustar" {
        return Err(bad("it is not a tar archive"));
    }
    let size =
        usize::from_str_radix(text(&head[124..136]).trim(), 8).map_err(|_| bad("an entry has no size"))?;
    Ok((head[156], size))
}

fn name_of(head: &[u8]) -> String {
    // GNU's format has other fields in place of the prefix.
    let prefix = if head[262] == 0 { text(&head[345..500]) } else { String::new() };
    format!("{prefix}{}{}", if prefix.is_empty() { "" } else { "/" }, text(&head[..100]))
}

/// A path that stays in the folder.
fn inside(name: &str) -> io::Result<PathBuf> {
    let mut path = PathBuf::new();
    for part in Path::new(name).components() {
        match part {
            Component::Normal(part) => path.push(part),
            Component::CurDir => {}
            _ => return Err(bad("a path leads out of it")),
        }
    }
    Ok(path)
}

fn put(folder: &Path, name: &str, content: &[u8]) -> io::Result<()> {
    let path = folder.join(inside(name)?);
    fs::create_dir_all(path.parent().unwrap_or(folder))?;
    fs::write(path, content)
}
