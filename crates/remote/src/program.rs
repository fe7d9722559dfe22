//! This program as another machine needs it: which architecture that is, and where its build lies.
//! Not here: building it (`make release`), pushing it (`device`).
//! Facts: `elf(5)`: byte 4 is the class, bytes 18 and 19 are `e_machine`.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::error::RemoteError;

/// An architecture with a build of this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arch {
    X86,
    Arm64,
    Arm32,
}

impl Arch {
    const ALL: [Self; 3] = [Self::X86, Self::Arm64, Self::Arm32];

    fn name(self) -> &'static str {
        match self {
            Self::X86 => "x86_64",
            Self::Arm64 => "aarch64",
            Self::Arm32 => "armv7",
        }
    }

    /// Rust's targets of static builds, that of `make release` first.
    fn targets(self) -> [&'static str; 2] {
        match self {
            Self::X86 => ["x86_64-unknown-linux-gnu", "x86_64-unknown-linux-musl"],
            Self::Arm64 => ["aarch64-unknown-linux-musl", "aarch64-unknown-linux-gnu"],
            Self::Arm32 => ["armv7-unknown-linux-gnueabihf", "armv7-unknown-linux-musleabihf"],
        }
    }

    /// `e_machine` and class of its programs.
    fn elf(self) -> (u16, u8) {
        match self {
            Self::X86 => (62, 2),
            Self::Arm64 => (183, 2),
            Self::Arm32 => (40, 1),
        }
    }

    const fn own() -> Option<Self> {
        if cfg!(target_arch = "x86_64") {
            Some(Self::X86)
        } else if cfg!(target_arch = "aarch64") {
            Some(Self::Arm64)
        } else if cfg!(target_arch = "arm") {
            Some(Self::Arm32)
        } else {
            None
        }
    }
}

/// Facts that another machine tells about itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct Machine {
    /// `uname -m`: the kernel's.
    pub(crate) kernel: String,
    /// `ro.product.cpu.abi` of an Android device: the system's.
    pub(crate) abi: Option<String>,
    /// Class of its shell: 1 for 32 bits, 2 for 64.
    pub(crate) elf: Option<u8>,
}

impl Machine {
    /// Architectures that run there, that of its own programs first: on a 64-bit kernel both of ARM's do.
    fn archs(&self) -> &'static [Arch] {
        let is_short = match self.abi.as_deref() {
            Some(abi) => abi.starts_with("armeabi") || abi == "x86",
            None => self.elf == Some(1),
        };
        match self.kernel.as_str() {
            "x86_64" | "amd64" => &[Arch::X86],
            "aarch64" | "arm64" if is_short => &[Arch::Arm32, Arch::Arm64],
            "aarch64" | "arm64" => &[Arch::Arm64],
            // What a 32-bit shell on a 64-bit kernel sees.
            "armv8l" | "armv7l" | "armv8" | "armv7" => &[Arch::Arm32],
            _ => &[],
        }
    }
}

/// Where builds of this program are.
#[derive(Clone, Debug)]
pub struct Programs {
    /// The file of this program.
    pub own: PathBuf,
    /// The file to take, if the user named one.
    pub named: Option<PathBuf>,
    /// The folder for builds of other architectures.
    pub data: Option<PathBuf>,
}

impl Programs {
    /// The program for a machine.
    ///
    /// # Errors
    /// There is no build for such machines, or none here, or the named one is for others.
    pub(crate) fn for_machine(&self, machine: &Machine) -> Result<PathBuf, RemoteError> {
        let archs = machine.archs();
        if let Some(path) = &self.named {
            let arch = arch_of(path)?;
            // Of a machine that is unknown here, the user knows better.
            if !archs.is_empty() && !archs.contains(&arch) {
                let why = format!("it is for {}, and that machine is {}", arch.name(), machine.kernel);
                return Err(RemoteError::BadProgram { path: path.clone(), why });
            }
            return Ok(path.clone());
        }
        let first = *archs.first().ok_or_else(|| RemoteError::UnknownMachine(machine.kernel.clone()))?;
        let usable = |arch: &Arch| {
            let places = self.places(*arch);
            places.into_iter().find(|path| arch_of(path).is_ok_and(|found| found == *arch))
        };
        archs.iter().find_map(usable).ok_or_else(|| RemoteError::NoProgram {
            arch: first.name(),
            target: first.targets()[0],
            looked: self.places(first),
        })
    }

    /// Where a build for an architecture may be: this program, beside it, in the folder for them, and where cargo and
    /// `make release` put it.
    fn places(&self, arch: Arch) -> Vec<PathBuf> {
        let mut places: Vec<PathBuf> =
            (Arch::own() == Some(arch)).then(|| self.own.clone()).into_iter().collect();
        let folder = self.own.parent().unwrap_or(Path::new("."));
        let short = [arch.name()];
        let names = || arch.targets().into_iter().chain(short).map(|name| format!("binderperf-{name}"));
        for folder in [Some(folder), self.data.as_deref()].into_iter().flatten() {
            places.extend(names().map(|name| folder.join(name)));
        }
        // target/HOST/release/binderperf
        let way = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if let Some(targets) = folder.parent().and_then(Path::parent)
            && ["debug", "release"].contains(&way)
        {
            places.extend(names().map(|name| targets.join("dist").join(name)));
            let built = |way: &str, target: &str| targets.join(target).join(way).join("binderperf");
            places.extend(
                arch.targets().into_iter().flat_map(|target| ["release", way].map(|way| built(way, target))),
            );
            places.dedup();
        }
        places
    }
}

/// The architecture of a program's file.
fn arch_of(path: &Path) -> Result<Arch, RemoteError> {
    let mut head = [0; 20];
    File::open(path)
        .and_then(|mut file| file.read_exact(&mut head))
        .map_err(RemoteError::here(format!("reading the program {}", path.display())))?;
    let machine = u16::from_le_bytes([head[18], head[19]]);
    let found = Arch::ALL.into_iter().find(|arch| arch.elf() == (machine, head[4]));
    found.filter(|_| head.starts_with(b"\x7fELF")).ok_or_else(|| RemoteError::BadProgram {
        path: path.to_owned(),
        why: "it is no program for x86_64, aarch64 or armv7".to_owned(),
    })
}

/// The hash of a file's content (FNV-1a, 64 bits), in hexadecimal digits, and its length.
pub(crate) fn hashed(path: &Path) -> std::io::Result<(String, u64)> {
    let (mut hash, mut length) = (0xcbf2_9ce4_8422_2325_u64, 0);
    let mut file = File::open(path)?;
    let mut piece = vec![0; 1 << 16];
    loop {
        let got = file.read(&mut piece)?;
        if got == 0 {
            return Ok((format!("{hash:016x}"), length));
        }
        length += got as u64;
        for byte in &piece[..got] {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use sys::private_folder::PrivateFolder;

    use super::*;

    struct Folder(PrivateFolder);

    impl Folder {
        fn new(name: &str) -> Self {
            Self(PrivateFolder::new(name).expect("a folder"))
        }

        fn program(&self, name: &str, arch: Arch) -> PathBuf {
            let (machine, class) = arch.elf();
            let mut head = [0; 64];
            head[..5].copy_from_slice(&[0x7f, b'E', b'L', b'F', class]);
            head[18..20].copy_from_slice(&machine.to_le_bytes());
            let path = self.0.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(&path, head).expect("written");
            path
        }
    }

    fn machine(kernel: &str, abi: Option<&str>, elf: u8) -> Machine {
        Machine { kernel: kernel.to_owned(), abi: abi.map(str::to_owned), elf: Some(elf) }
    }

    #[test]
    fn a_machine_gets_the_program_of_its_own_programs_width() {
        for (kernel, abi, elf, archs) in [
            ("x86_64", None, 2, &[Arch::X86][..]),
            ("x86_64", Some("x86"), 1, &[Arch::X86]),
            ("aarch64", Some("arm64-v8a"), 2, &[Arch::Arm64]),
            ("aarch64", Some("armeabi-v7a"), 1, &[Arch::Arm32, Arch::Arm64]),
            ("aarch64", None, 1, &[Arch::Arm32, Arch::Arm64]),
            ("aarch64", None, 2, &[Arch::Arm64]),
            ("armv8l", Some("armeabi-v7a"), 1, &[Arch::Arm32]),
            ("armv7l", None, 1, &[Arch::Arm32]),
            ("riscv64", Some("riscv64"), 2, &[]),
        ] {
            assert_eq!(machine(kernel, abi, elf).archs(), archs, "{kernel} {abi:?} {elf}");
        }
    }

    #[test]
    fn builds_of_other_architectures_are_found_where_they_are_put() {
        let folder = Folder::new("on-programs");
        let own = folder.program("target/host/release/binderperf", Arch::own().expect("one of them"));
        let data = Some(folder.0.path().join("data"));
        let programs = Programs { own: own.clone(), named: None, data };
        let find = |kernel: &str, elf| programs.for_machine(&machine(kernel, None, elf));
        if Arch::own() == Some(Arch::X86) {
            assert_eq!(find("x86_64", 2).expect("this one"), own);
        }
        let missing = find("armv7l", 1).expect_err("nowhere").to_string();
        assert!(
            missing.contains("make release") && missing.contains("binderperf-armv7-unknown"),
            "{missing}"
        );
        assert!(missing.contains("data/binderperf-armv7") && missing.contains("--binary"), "{missing}");
        let wrong = folder.program("data/binderperf-armv7", Arch::X86);
        assert!(find("armv7l", 1).is_err(), "{wrong:?} is for another one");
        for name in [
            "target/armv7-unknown-linux-gnueabihf/release/binderperf",
            "target/dist/binderperf-armv7-unknown-linux-gnueabihf",
            "data/binderperf-armv7",
            "target/host/release/binderperf-armv7-unknown-linux-gnueabihf",
        ] {
            let path = folder.program(name, Arch::Arm32);
            assert_eq!(find("armv7l", 1).expect(name), path);
        }
        let wide = folder.program("data/binderperf-aarch64", Arch::Arm64);
        assert_eq!(find("aarch64", 2).expect("wide"), wide);
        assert!(matches!(find("riscv64", 2), Err(RemoteError::UnknownMachine(_))));
    }

    #[test]
    fn a_named_program_for_another_machine_is_refused() {
        let folder = Folder::new("on-named");
        let path = folder.program("some", Arch::Arm64);
        let named = |path: &Path| Programs { own: PathBuf::new(), named: Some(path.to_owned()), data: None };
        assert_eq!(named(&path).for_machine(&machine("aarch64", None, 2)).expect("fits"), path);
        let why = named(&path).for_machine(&machine("x86_64", None, 2)).expect_err("other").to_string();
        assert!(why.contains("it is for aarch64, and that machine is x86_64"), "{why}");
        std::fs::write(&path, "#!/bin/sh\nexit 0 # long enough\n").expect("written");
        assert!(named(&path).for_machine(&machine("aarch64", None, 2)).is_err());
        assert!(named(Path::new("/nonexistent")).for_machine(&machine("aarch64", None, 2)).is_err());
    }

    #[test]
    fn a_hash_is_of_the_content() {
        let folder = Folder::new("on-hash");
        let path = folder.0.path().join("a");
        std::fs::write(&path, "a").expect("written");
        assert_eq!(hashed(&path).expect("read"), ("af63dc4c8601ec8c".to_owned(), 1));
    }
}
