//! Programs that build a kernel: which this machine has, and who builds.
//! Not here: their command lines (`make`), Debian's file tree (`debian`).

use std::path::Path;
use std::process::{Command, Stdio};

use crate::arch::Arch;

use super::error::BuildError;
use super::make::{Compiler, Make, without_variables};
use super::options::{Driver, Tools, Wanted};

/// Who builds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Builder {
    /// This machine's tools.
    Machine(Compiler),
    /// Debian's, with LLVM.
    Debian,
}

impl Builder {
    /// The compiler.
    pub(super) fn compiler(self) -> Compiler {
        match self {
            Self::Machine(compiler) => compiler,
            Self::Debian => Compiler::Llvm,
        }
    }

    /// The word for it in names of folders.
    pub(super) fn word(self) -> String {
        match self {
            Self::Machine(compiler) => compiler.word().to_owned(),
            Self::Debian => "debian-llvm".to_owned(),
        }
    }
}

/// Programs besides the compiler, with Debian's packages of them.
const COMMON: [(&str, &str); 4] = [("make", "make"), ("flex", "flex"), ("bison", "bison"), ("bc", "bc")];
const LLVM: [(&str, &str); 4] =
    [("clang", "clang"), ("ld.lld", "lld"), ("llvm-ar", "llvm"), ("llvm-objcopy", "llvm")];
/// The header that x86's objtool is compiled with, and its package.
const LIBELF: (&str, &str) = ("gelf.h", "libelf-dev");

/// The tools of a machine.
pub(super) trait Machine {
    /// Whether a program is in `PATH`.
    fn has(&self, program: &str) -> bool;
    /// Whether this compiler finds a header.
    fn has_header(&self, compiler: &str, header: &str) -> bool;
    /// Whether the Rust tools suffice for this source.
    fn rust_suffices(&self, wanted: &Wanted, source: &Path) -> bool;
}

/// This machine.
pub(super) struct Here;

impl Machine for Here {
    fn has(&self, program: &str) -> bool {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
    }

    fn has_header(&self, compiler: &str, header: &str) -> bool {
        let include = format!("#include <{header}>\n");
        let child = Command::new(compiler)
            .args(["-E", "-x", "c", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let Ok(mut child) = child else { return false };
        if let Some(mut input) = child.stdin.take() {
            // A compiler that does not read says so by its status.
            let _ = std::io::Write::write_all(&mut input, include.as_bytes());
        }
        child.wait().is_ok_and(|status| status.success())
    }

    fn rust_suffices(&self, wanted: &Wanted, source: &Path) -> bool {
        let make = Make {
            source: source.to_path_buf(),
            objects: std::env::temp_dir(),
            arch: wanted.arch,
            compiler: Compiler::Llvm,
            jobs: 1,
        };
        let mut command = Command::new("make");
        without_variables(&mut command);
        // The question needs no output folder, and leaves nothing.
        let words = make.rust_available().into_iter().filter(|word| !word.starts_with("O="));
        command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    }
}

/// Who builds this kernel.
///
/// # Errors
/// [`BuildError::Missing`]: nobody can; the text names each program and its package.
pub(super) fn choose(wanted: &Wanted, source: &Path, machine: &dyn Machine) -> Result<Builder, BuildError> {
    let here = own(wanted, source, machine);
    let debian = if machine.has("mmdebstrap") { Ok(Builder::Debian) } else { Err(()) };
    let install = |programs: &[(String, &str)]| {
        let mut packages: Vec<&str> = programs.iter().map(|(_, package)| *package).collect();
        packages.sort_unstable();
        packages.dedup();
        format!("apt-get install {}", packages.join(" "))
    };
    let missing = |programs: Vec<(String, &str)>, remedy: String| BuildError::Missing {
        who: "this machine".to_owned(),
        programs: programs.into_iter().map(|(name, package)| format!("{name} (package {package})")).collect(),
        remedy,
    };
    let debians = "or mmdebstrap, which builds with Debian's tools in a file tree that is thrown away: apt-get install \
                   mmdebstrap";
    match (wanted.tools, here, debian) {
        (Tools::Machine, here, _) => here.map(Builder::Machine).map_err(|programs| {
            let remedy = format!("install them: {}", install(&programs));
            missing(programs, remedy)
        }),
        (Tools::Debian, _, debian) => debian.map_err(|()| BuildError::Missing {
            who: "--tools debian".to_owned(),
            programs: vec!["mmdebstrap (package mmdebstrap)".to_owned()],
            remedy: "install it: apt-get install mmdebstrap".to_owned(),
        }),
        (Tools::Auto, Ok(compiler), _) => Ok(Builder::Machine(compiler)),
        (Tools::Auto, Err(_), Ok(debian)) => Ok(debian),
        (Tools::Auto, Err(programs), Err(())) => {
            let remedy = format!("install them: {}\n{debians}", install(&programs));
            Err(missing(programs, remedy))
        }
    }
}

/// The compiler of this machine that can build, or the programs that are missing for the usual one.
fn own(
    wanted: &Wanted,
    source: &Path,
    machine: &dyn Machine,
) -> Result<Compiler, Vec<(String, &'static str)>> {
    let lacks = |programs: &[(&'static str, &'static str)]| -> Vec<(String, &'static str)> {
        let gone = programs.iter().filter(|(program, _)| !machine.has(program));
        gone.map(|(program, package)| ((*program).to_owned(), *package)).collect()
    };
    let mut missing = lacks(&COMMON);
    if wanted.driver == Driver::Rust {
        let rust = [("rustc", "rustc"), ("bindgen", "bindgen")];
        missing.extend(lacks(&[&LLVM[..], &rust[..]].concat()));
        if missing.is_empty() && !machine.rust_suffices(wanted, source) {
            missing.push((
                "a rustc, its source and a bindgen that this source accepts".to_owned(),
                "rustc, rust-src and bindgen",
            ));
        }
        return if missing.is_empty() { Ok(Compiler::Llvm) } else { Err(missing) };
    }
    let (gnu, program, package) = match (wanted.arch == Arch::own(), wanted.arch) {
        (true, _) => (Compiler::Gnu, "gcc".to_owned(), "gcc"),
        (false, Arch::Arm) => {
            (Compiler::GnuCross, format!("{}gcc", wanted.arch.facts().gnu), "gcc-aarch64-linux-gnu")
        }
        (false, Arch::X86) => {
            (Compiler::GnuCross, format!("{}gcc", wanted.arch.facts().gnu), "gcc-x86-64-linux-gnu")
        }
    };
    // Programs that run during the build are compiled by the machine's own compiler.
    let for_itself = ["gcc", "clang"].into_iter().find(|compiler| machine.has(compiler));
    let compiler = match (machine.has(&program), lacks(&LLVM).is_empty()) {
        (true, _) if gnu == Compiler::Gnu || machine.has("gcc") => Some(gnu),
        (_, true) => Some(Compiler::Llvm),
        _ => None,
    };
    if compiler.is_none() {
        if !machine.has(&program) {
            missing.push((program, package));
        }
        if gnu == Compiler::GnuCross && !machine.has("gcc") {
            missing.push(("gcc".to_owned(), "gcc"));
        }
    }
    let has_elf = for_itself.is_some_and(|compiler| machine.has_header(compiler, LIBELF.0));
    if wanted.arch == Arch::X86 && !has_elf {
        missing.push((LIBELF.0.to_owned(), LIBELF.1));
    }
    compiler.filter(|_| missing.is_empty()).ok_or(missing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::fixtures::wanted;

    /// A machine with these programs; with headers and Rust tools or not.
    struct Fake(&'static str, bool);

    impl Machine for Fake {
        fn has(&self, program: &str) -> bool {
            self.0.split(' ').any(|one| one == program)
        }
        fn has_header(&self, _compiler: &str, _header: &str) -> bool {
            self.1
        }
        fn rust_suffices(&self, _wanted: &Wanted, _source: &Path) -> bool {
            self.1
        }
    }

    const GNU: &str = "make flex bison bc gcc";
    const CLANG: &str = "make flex bison bc clang ld.lld llvm-ar llvm-objcopy rustc bindgen mmdebstrap";

    #[test]
    fn the_machines_tools_are_taken_where_they_suffice() {
        let chosen = |driver, arch, tools, machine: Fake| {
            let wish = Wanted { driver, arch, tools, ..wanted() };
            choose(&wish, Path::new("/"), &machine).map_err(|error| error.to_string())
        };
        let other = Arch::ALL.into_iter().find(|arch| *arch != Arch::own()).expect("there are two");
        let cross = if other == Arch::Arm {
            "make flex bison bc gcc aarch64-linux-gnu-gcc"
        } else {
            "make flex bison bc gcc x86_64-linux-gnu-gcc"
        };
        for (driver, arch, tools, machine, want) in [
            (Driver::C, Arch::own(), Tools::Auto, Fake(GNU, true), Builder::Machine(Compiler::Gnu)),
            (Driver::C, other, Tools::Auto, Fake(cross, true), Builder::Machine(Compiler::GnuCross)),
            (Driver::C, other, Tools::Auto, Fake(CLANG, true), Builder::Machine(Compiler::Llvm)),
            (Driver::C, Arch::own(), Tools::Debian, Fake(CLANG, true), Builder::Debian),
            (Driver::Rust, Arch::own(), Tools::Auto, Fake(CLANG, true), Builder::Machine(Compiler::Llvm)),
            (Driver::Rust, Arch::own(), Tools::Auto, Fake(CLANG, false), Builder::Debian),
            (Driver::C, Arch::X86, Tools::Auto, Fake("mmdebstrap", false), Builder::Debian),
        ] {
            assert_eq!(chosen(driver, arch, tools, machine), Ok(want), "{driver} {arch} {tools}");
        }
    }

    #[test]
    fn each_missing_program_is_named_with_its_package() {
        let refused = |driver, arch, tools, machine: Fake| {
            let wish = Wanted { driver, arch, tools, ..wanted() };
            let error = choose(&wish, Path::new("/"), &machine).expect_err("it cannot build");
            assert_eq!(error.exit_code(), 3);
            error.to_string()
        };
        let said = refused(Driver::C, Arch::X86, Tools::Auto, Fake("make bc gcc", false));
        if Arch::own() == Arch::X86 {
            assert_eq!(
                said.lines().take(5).collect::<Vec<_>>(),
                [
                    "this machine cannot build this kernel; missing:",
                    "  - flex (package flex)",
                    "  - bison (package bison)",
                    "  - gelf.h (package libelf-dev)",
                    "install them: apt-get install bison flex libelf-dev",
                ]
            );
        }
        assert!(said.contains("apt-get install mmdebstrap"), "{said}");
        let said = refused(Driver::C, Arch::own(), Tools::Debian, Fake(GNU, true));
        assert!(said.contains("mmdebstrap"), "{said}");
        let said = refused(Driver::Rust, Arch::own(), Tools::Machine, Fake(CLANG, false));
        assert!(said.contains("that this source accepts (package rustc, rust-src and bindgen)"), "{said}");
        let other = Arch::ALL.into_iter().find(|arch| *arch != Arch::own()).expect("there are two");
        let said = refused(Driver::C, other, Tools::Machine, Fake(GNU, true));
        assert!(said.contains("-linux-gnu-gcc (package gcc-"), "{said}");
    }
}
