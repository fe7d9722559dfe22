//! Kind of a program: whether the dynamic loader would preload a library into it.
//! Not here: what is made of it (`shim`, in the program).
//! Facts: `elf(5)`, `execve(2)` on interpreter scripts, `ld.so(8)` on secure-execution mode.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Kind of a program.
#[derive(Debug, PartialEq, Eq)]
pub enum Program {
    /// The C library's loader starts it.
    Dynamic,
    /// Built with AddressSanitizer, whose own library must be loaded before all others.
    Sanitized,
    /// Nothing can be preloaded into it: no loader starts it, or musl's.
    Static,
    /// It runs with other rights than its starter's.
    Privileged,
    /// For another machine.
    Foreign,
}

/// Scripts that name scripts as their interpreters, at most (`execve(2)`).
const SCRIPTS: usize = 4;
/// Most program headers of an ELF file that are looked at.
const HEADERS: u64 = 256;

/// The file that would be run for a name: a path, or a name to be looked up in `$PATH`.
///
/// # Errors
/// Text for the user: there is no such file, or none in `$PATH`.
pub fn find(name: &OsStr) -> Result<PathBuf, String> {
    if name.as_bytes().contains(&b'/') {
        let path = PathBuf::from(name);
        let missing = |error| format!("cannot run {}: {}", path.display(), sys::errno::describe(&error));
        return path.metadata().map_err(missing).map(|_| path.clone());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let runnable = |file: &PathBuf| {
        file.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    };
    let found = std::env::split_paths(&path).map(|folder| folder.join(name)).find(runnable);
    found.ok_or_else(|| format!("no program {:?} in $PATH", name.to_string_lossy()))
}

impl Program {
    /// The kind of the program in a file.
    ///
    /// # Errors
    /// Text for the user: the file cannot be read, or is no program.
    pub fn of(path: &Path) -> Result<Self, String> {
        let mut path = path.to_owned();
        for _ in 0..=SCRIPTS {
            let file = File::open(&path).map_err(|error| sys::errno::describe(&error))?;
            let data = file.metadata().map_err(|error| sys::errno::describe(&error))?;
            if !data.is_file() {
                return Err("it is no program".to_owned());
            }
            if let Some(interpreter) = interpreter(&file) {
                path = interpreter;
                continue;
            }
            if sys::file_rights::are_raised(&path).map_err(|error| sys::errno::describe(&error))? {
                return Ok(Self::Privileged);
            }
            return of_elf(&file).map_err(|_| "it is no program".to_owned());
        }
        Err("its interpreter is a script of a script, too many times".to_owned())
    }
}

/// The interpreter that a script's first line names.
fn interpreter(file: &File) -> Option<PathBuf> {
    let mut line = [0; 256];
    let count = file.read_at(&mut line, 0).ok()?;
    let line = line.get(..count)?.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let word = line.split(u8::is_ascii_whitespace).find(|word| !word.is_empty())?;
    Some(PathBuf::from(OsStr::from_bytes(word)))
}

fn of_elf(file: &File) -> io::Result<Program> {
    let mut head = [0; 64];
    (&*file).read_exact(&mut head)?;
    let half = |at: usize| u16::from_ne_bytes([head[at], head[at + 1]]);
    if &head[..4] != b"\x7fELF" {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let own = [
        if cfg!(target_pointer_width = "64") { 2 } else { 1 },
        if cfg!(target_endian = "little") { 1 } else { 2 },
    ];
    if head[4..6] != own || half(18) != MACHINE {
        return Ok(Program::Foreign);
    }
    let word = |at: usize| -> u64 {
        match cfg!(target_pointer_width = "64") {
            true => u64::from_ne_bytes(std::array::from_fn(|byte| head[at + byte])),
            false => u32::from_ne_bytes(std::array::from_fn(|byte| head[at + byte])).into(),
        }
    };
    let (start, sizes) = if cfg!(target_pointer_width = "64") { (word(32), 54) } else { (word(28), 42) };
    let (size, count) = (u64::from(half(sizes)), u64::from(half(sizes + 2)));
    let at = |index| start.saturating_add(index * size);
    let segments = (0..count.min(HEADERS)).map(|index| Segment::read(file, at(index)));
    let segments = segments.collect::<io::Result<Vec<_>>>()?;
    let Some(loader) = segments.iter().find(|segment| segment.kind == INTERPRETER) else {
        return Ok(Program::Static);
    };
    // What glibc's loader would ignore with a message, musl's would refuse.
    if loader.text(file)?.contains("ld-musl") {
        return Ok(Program::Static);
    }
    let is_sanitizer = |name: &String| name.starts_with("libasan.") || name.starts_with("libclang_rt.asan");
    Ok(if needed(file, &segments)?.iter().any(is_sanitizer) { Program::Sanitized } else { Program::Dynamic })
}

/// This machine, as ELF numbers it.
const MACHINE: u16 = match () {
    () if cfg!(target_arch = "x86_64") => 62,
    () if cfg!(target_arch = "aarch64") => 183,
    () if cfg!(target_arch = "arm") => 40,
    () if cfg!(target_arch = "riscv64") => 243,
    () => 0,
};

/// Kinds of segments.
const LOADED: u32 = 1;
const DYNAMIC: u32 = 2;
const INTERPRETER: u32 = 3;

/// A part of a program, as a program header names it.
struct Segment {
    kind: u32,
    offset: u64,
    address: u64,
    size: u64,
}

/// A number of this machine's size.
fn number(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

/// Bytes of a number of this machine's size.
const WORD: usize = size_of::<usize>();

impl Segment {
    fn read(file: &File, at: u64) -> io::Result<Self> {
        let mut header = [0; 7 * WORD];
        file.read_exact_at(&mut header, at)?;
        let kind = number(&header[..4]) as u32;
        // Its second word is that of flags on a 64-bit machine only, and the fourth another address.
        let [offset, address, _, size] =
            std::array::from_fn(|index| number(&header[(index + 1) * WORD..(index + 2) * WORD]));
        Ok(Self { kind, offset, address, size })
    }

    /// Its bytes, a megabyte at most.
    fn bytes(&self, file: &File) -> io::Result<Vec<u8>> {
        const MOST: u64 = 1 << 20;
        let mut bytes = vec![0; self.size.min(MOST) as usize];
        file.read_exact_at(&mut bytes, self.offset)?;
        Ok(bytes)
    }

    fn text(&self, file: &File) -> io::Result<String> {
        Ok(String::from_utf8_lossy(&self.bytes(file)?).into_owned())
    }
}

/// The libraries that a program needs.
fn needed(file: &File, segments: &[Segment]) -> io::Result<Vec<String>> {
    const NEEDED: u64 = 1;
    const NAMES: u64 = 5;
    let Some(dynamic) = segments.iter().find(|segment| segment.kind == DYNAMIC) else {
        return Ok(Vec::new());
    };
    let bytes = dynamic.bytes(file)?;
    let entries = bytes.chunks_exact(2 * WORD).map(|entry| (number(&entry[..WORD]), number(&entry[WORD..])));
    let entries: Vec<_> = entries.take_while(|(tag, _)| *tag != 0).collect();
    let names = entries.iter().find(|(tag, _)| *tag == NAMES).map(|(_, address)| *address);
    let holds = |address: &u64| {
        let of = |segment: &&Segment| {
            segment.kind == LOADED
                && (segment.address..segment.address.saturating_add(segment.size)).contains(address)
        };
        segments.iter().find(of).and_then(|segment| (address - segment.address).checked_add(segment.offset))
    };
    let Some(start) = names.and_then(|address| holds(&address)) else { return Ok(Vec::new()) };
    let name = |offset: u64| {
        let mut bytes = [0; 256];
        let count = file.read_at(&mut bytes, start.saturating_add(offset)).unwrap_or(0);
        let name = bytes[..count].split(|byte| *byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(name).into_owned()
    };
    Ok(entries.iter().filter(|(tag, _)| *tag == NEEDED).map(|(_, offset)| name(*offset)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(bytes: &[u8]) -> Result<Program, String> {
        let folder = sys::private_folder::PrivateFolder::new("test").expect("a folder");
        let path = folder.path().join("program");
        std::fs::write(&path, bytes).expect("written");
        Program::of(&path)
    }

    #[test]
    fn what_is_no_program_is_refused() {
        for bytes in [&b""[..], b"text", b"\x7fELF", &[0; 100]] {
            assert_eq!(kind(bytes), Err("it is no program".to_owned()));
        }
        assert!(Program::of(Path::new("/")).is_err());
        assert!(Program::of(Path::new("/no/such/file")).expect_err("none").contains("ENOENT"));
    }

    #[test]
    fn a_script_is_its_interpreters_kind() {
        let shell = Program::of(Path::new("/bin/sh")).expect("a program");
        assert_eq!(kind(b"#! /bin/sh -e\n").expect("a script"), shell);
        assert!(kind(b"#!/no/such/file\n").is_err());
    }

    /// A program with an interpreter whose dynamic section names an address of its only loaded segment, which begins at `offset`
    /// in the file.
    fn with_segment_at(offset: usize) -> Vec<u8> {
        let (head, header) = if WORD == 8 { (64, 56) } else { (52, 32) };
        let mut bytes = vec![0; head];
        let words =
            |numbers: &[usize]| numbers.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<_>>();
        let class = if WORD == 8 { 2 } else { 1 };
        bytes[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', class, 1]);
        bytes[18..20].copy_from_slice(&MACHINE.to_ne_bytes());
        // Where the headers are, their size, and their number.
        let (start, sizes) = if WORD == 8 { (32, 54) } else { (28, 42) };
        bytes[start..start + WORD].copy_from_slice(&head.to_ne_bytes());
        bytes[sizes..sizes + 4].copy_from_slice(&[header as u8, 0, 3, 0]);
        let dynamic = words(&[5, 16, 1, 0, 0, 0]);
        let end = head + 3 * header;
        for (kind, offset, size) in
            [(INTERPRETER, 0, 4), (DYNAMIC, end, dynamic.len()), (LOADED, offset, usize::MAX)]
        {
            let mut segment = words(&[0, offset, 0, 0, size, 0, 0]);
            segment[..4].copy_from_slice(&kind.to_ne_bytes());
            segment.truncate(header);
            bytes.extend(segment);
        }
        bytes.extend(dynamic);
        bytes
    }

    #[test]
    fn an_offset_beyond_all_files_is_no_overflow() {
        for offset in [0, 1 << 20, usize::MAX >> 1, usize::MAX - 15, usize::MAX] {
            assert_eq!(kind(&with_segment_at(offset)), Ok(Program::Dynamic), "{offset:#x}");
        }
    }
}
