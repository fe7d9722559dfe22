//! Checks of ELF files before they go into a guest.
//! Not here: loading them, which the guest's kernel does.
//! Own code: only three header fields are read; a parser crate would save about 20 lines.
//! Facts: `elf(5)`; kernel modules keep `name=value` strings in `.modinfo`.

use std::path::Path;

use super::arch;
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

/// Whether the program needs a dynamic loader; `None` if its 64-bit ELF headers are incomplete.
fn wants_loader(elf: &[u8]) -> Option<bool> {
    let table = usize::try_from(u64_at(elf, 32)?).ok()?;
    let (size, count) = (u16_at(elf, 54)?, u16_at(elf, 56)?);
    let mut kinds = (0..usize::from(count)).map(|entry| {
        let offset = table.checked_add(entry * usize::from(size))?;
        u32_at(elf, offset)
    });
    kinds.try_fold(false, |seen, kind| Some(seen || kind? == INTERPRETER))
}

/// Rejects a program that cannot start in a guest, which has no shared libraries.
///
/// # Errors
/// [`VmError::BadProgram`].
pub(super) fn check_program(path: &Path) -> Result<(), VmError> {
    let bad = |why: String| Err(VmError::BadProgram { path: path.to_path_buf(), why });
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) => return bad(format!("reading it: {}", sys::errno::describe(&error))),
    };
    if !bytes.starts_with(b"\x7fELF\x02\x01") {
        return bad(
            "it is not a 64-bit little-endian ELF program (a guest has no interpreter for scripts)".into()
        );
    }
    match u16_at(&bytes, 18) {
        Some(machine) if machine == arch::GUEST.elf_machine => {}
        other => {
            return bad(format!("it is built for ELF machine {other:?}, guests are {}", arch::GUEST.debian));
        }
    }
    match wants_loader(&bytes) {
        Some(false) => Ok(()),
        Some(true) => bad("it is linked dynamically; build it with -C target-feature=+crt-static".into()),
        None => bad("its program headers are cut off".into()),
    }
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
        assert_eq!(wants_loader(&program(62, &[1, 2, 1])), Some(false));
        assert_eq!(wants_loader(&program(62, &[6, 3, 1])), Some(true));
        let mut cut = program(62, &[1, 1]);
        cut.truncate(100);
        assert_eq!(wants_loader(&cut), None);
        assert_eq!(wants_loader(b"\x7fELF"), None);
    }

    #[test]
    fn a_modules_needs_are_read_from_its_own_strings() {
        let module = b"..\0license=GPL\0depends=virtio,virtio_ring\0intree=Y\0";
        assert_eq!(module_needs(module), ["virtio", "virtio_ring"]);
        assert!(module_needs(b"\0depends=\0x").is_empty());
        assert!(module_needs(b"depends").is_empty());
    }
}
