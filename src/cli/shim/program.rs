//! Kind of a program: whether the dynamic loader would preload a library into it.
//! Facts: `elf(5)`, `execve(2)` on interpreter scripts, `ld.so(8)` on secure-execution mode.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Kind of a program.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Program {
    /// The C library's loader starts it.
    Dynamic,
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
pub(super) fn find(name: &OsStr) -> Result<PathBuf, String> {
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
    pub(super) fn of(path: &Path) -> Result<Self, String> {
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
    for index in 0..count.min(HEADERS) {
        if let Some(loader) = loader(file, start.saturating_add(index * size))? {
            // What glibc's loader would ignore with a message, musl's would refuse.
            let is_musl = loader.contains("ld-musl");
            return Ok(if is_musl { Program::Static } else { Program::Dynamic });
        }
    }
    Ok(Program::Static)
}

/// This machine, as ELF numbers it.
const MACHINE: u16 = match () {
    () if cfg!(target_arch = "x86_64") => 62,
    () if cfg!(target_arch = "aarch64") => 183,
    () if cfg!(target_arch = "arm") => 40,
    () if cfg!(target_arch = "riscv64") => 243,
    () => 0,
};

/// The dynamic loader that a program header names.
fn loader(file: &File, at: u64) -> io::Result<Option<String>> {
    const INTERPRETER: u32 = 3;
    const PATH_MAX: u64 = 4096;
    let mut header = [0; 56];
    let len = if cfg!(target_pointer_width = "64") { 56 } else { 32 };
    file.read_exact_at(&mut header[..len], at)?;
    if u32::from_ne_bytes([header[0], header[1], header[2], header[3]]) != INTERPRETER {
        return Ok(None);
    }
    let field = |long: usize, short: usize| -> u64 {
        match cfg!(target_pointer_width = "64") {
            true => u64::from_ne_bytes(std::array::from_fn(|byte| header[long + byte])),
            false => u32::from_ne_bytes(std::array::from_fn(|byte| header[short + byte])).into(),
        }
    };
    let mut path = vec![0; field(32, 16).min(PATH_MAX) as usize];
    file.read_exact_at(&mut path, field(8, 4))?;
    Ok(Some(String::from_utf8_lossy(&path).into_owned()))
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
}
