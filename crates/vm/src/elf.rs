//! Checks of ELF files before they go into a guest.
//! Not here: loading them, which the guest's kernel does.
//! Own code: only four header fields are read; a parser crate would save about 20 lines.
//! Facts: `elf(5)`; kernel modules keep `name=value` strings in `.modinfo`.

use std::path::Path;

use super::arch::Arch;
use super::error::VmError;

const INTERPRETER: u32 = 3;

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at.checked_add(2)?)?.try_into().ok().map(u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at.checked_add(4)?)?.try_into().ok().map(u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at.checked_add(8)?)?.try_into().ok().map(u64::from_le_bytes)
}

/// What a program's ELF header says.
#[derive(Debug, PartialEq, Eq)]
struct Program {
    /// `e_machine`.
    machine: u16,
    /// Whether it needs a dynamic loader.
    wants_loader: bool,
}

/// Where the fields of the header are.
struct Places {
    table: fn(&[u8]) -> Option<u64>,
    entry_size: usize,
    entries: usize,
}

const LONG: Places = Places { table: |elf| u64_at(elf, 32), entry_size: 54, entries: 56 };
const SHORT: Places = Places { table: |elf| u32_at(elf, 28).map(u64::from), entry_size: 42, entries: 44 };

/// Reads a little-endian program of 64 or 32 bits.
///
/// # Errors
/// It is none; the text is a clause about it.
fn program(elf: &[u8]) -> Result<Program, &'static str> {
    let places = match elf.get(..6) {
        Some(b"\x7fELF\x02\x01") => LONG,
        Some(b"\x7fELF\x01\x01") => SHORT,
        _ => return Err("it is not a little-endian ELF program (a guest has no interpreter for scripts)"),
    };
    let read = || {
        let table = usize::try_from((places.table)(elf)?).ok()?;
        let (size, count) = (u16_at(elf, places.entry_size)?, u16_at(elf, places.entries)?);
        let mut kinds =
            (0..usize::from(count)).map(|entry| u32_at(elf, table.checked_add(entry * usize::from(size))?));
        let wants_loader = kinds.try_fold(false, |seen, kind| Some(seen || kind? == INTERPRETER))?;
        Some(Program { machine: u16_at(elf, 18)?, wants_loader })
    };
    read().ok_or("its program headers are cut off")
}

/// Rejects a program that cannot start in a guest, which has no shared libraries.
///
/// # Errors
/// [`VmError::BadProgram`].
pub(super) fn check_program(path: &Path, arch: Arch) -> Result<(), VmError> {
    let bad = |why: String| VmError::BadProgram { path: path.to_path_buf(), why };
    let bytes =
        std::fs::read(path).map_err(|error| bad(format!("reading it: {}", sys::errno::describe(&error))))?;
    let program = program(&bytes).map_err(|why| bad(why.into()))?;
    if !arch.facts().elf_machines.contains(&program.machine) {
        let known = Arch::ALL.into_iter().find(|arch| arch.facts().elf_machines.contains(&program.machine));
        let found = known.map_or_else(|| format!("ELF machine {}", program.machine), |arch| arch.to_string());
        return Err(bad(format!("it is built for {found}, and the guest is {arch}")));
    }
    if program.wants_loader {
        return Err(bad("it is linked dynamically; build it with -C target-feature=+crt-static".into()));
    }
    Ok(())
}

/// The kernel's release that a module was built for, from its `vermagic=` string.
pub(super) fn module_release(module: &[u8]) -> Option<String> {
    let key = b"vermagic=";
    let start = module.windows(key.len()).position(|bytes| bytes == key)? + key.len();
    let end = module[start..].iter().position(|byte| matches!(byte, b' ' | 0))?;
    String::from_utf8(module[start..start + end].to_vec()).ok()
}

/// The modules that a module depends on, from its `depends=` string.
pub(super) fn module_needs(module: &[u8]) -> Vec<String> {
    let key = b"depends=";
    let found = module.windows(key.len() + 1).position(|window| window[0] == 0 && &window[1..] == key);
    let Some(start) = found.map(|at| at + 1 + key.len()) else { return Vec::new() };
    let value = module[start..].split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(value).split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(machine: u16, kinds: &[u32]) -> Vec<u8> {
        let mut elf = vec![0u8; 64];
        elf[..6].copy_from_slice(b"\x7fELF\x02\x01");
        elf[18..20].copy_from_slice(&machine.to_le_bytes());
        elf[32] = 64;
        elf[54] = 56;
        elf[56] = kinds.len() as u8;
        for kind in kinds {
            elf.extend(kind.to_le_bytes());
            elf.extend([0; 52]);
        }
        elf
    }

    #[test]
    fn only_a_program_that_needs_no_loader_is_sound() {
        let wants = |elf: &[u8]| super::program(elf).map(|program| program.wants_loader);
        assert_eq!(wants(&program(62, &[1, 2, 1])), Ok(false));
        assert_eq!(wants(&program(62, &[6, 3, 1])), Ok(true));
        let mut cut = program(62, &[1, 1]);
        cut.truncate(100);
        assert!(wants(&cut).is_err());
        assert!(wants(b"\x7fELF").is_err());
    }

    #[test]
    fn a_program_of_32_bits_has_its_fields_elsewhere() {
        let mut elf = vec![0u8; 52];
        elf[..6].copy_from_slice(b"\x7fELF\x01\x01");
        elf[18] = 40;
        elf[28] = 52;
        elf[42] = 32;
        elf[44] = 1;
        elf.extend(INTERPRETER.to_le_bytes());
        assert_eq!(super::program(&elf), Ok(Program { machine: 40, wants_loader: true }));
    }

    #[test]
    fn a_modules_needs_are_read_from_its_own_strings() {
        let module = b"..\0license=GPL\0depends=virtio,virtio_ring\0intree=Y\0";
        assert_eq!(module_needs(module), ["virtio", "virtio_ring"]);
        assert!(module_needs(b"\0depends=\0x").is_empty());
        let built = b"\0intree=Y\0vermagic=7.2.13+deb14-amd64 SMP preempt mod_unload \0";
        assert_eq!(module_release(built).as_deref(), Some("7.2.13+deb14-amd64"));
        assert_eq!(module_release(module), None);
        assert!(module_needs(b"depends").is_empty());
    }
}
