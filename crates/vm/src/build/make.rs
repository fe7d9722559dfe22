//! Command lines of make for one kernel.
//! Not here: running them (`step`), the options (`config`).
//! Facts: kernel `Documentation/kbuild/kbuild.rst`, `Documentation/kbuild/llvm.rst`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::arch::Arch;

/// The compiler of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compiler {
    /// `gcc`, for this machine's architecture.
    Gnu,
    /// `gcc` for another architecture, by its prefix.
    GnuCross,
    /// Clang, lld and their tools, for any.
    Llvm,
}

impl Compiler {
    /// The word for it in names of folders.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Gnu | Self::GnuCross => "gcc",
            Self::Llvm => "llvm",
        }
    }
}

/// Variables of the environment that would change a build.
const NOT_PASSED: [&str; 14] = [
    "ARCH",
    "CROSS_COMPILE",
    "LLVM",
    "LLVM_IAS",
    "CC",
    "LD",
    "HOSTCC",
    "KBUILD_OUTPUT",
    "KCONFIG_CONFIG",
    "KCFLAGS",
    "MAKEFLAGS",
    "MFLAGS",
    "MAKELEVEL",
    "O",
];

/// Keeps those variables from a program.
pub(super) fn without_variables(command: &mut Command) {
    for name in NOT_PASSED {
        command.env_remove(name);
    }
}

/// One kernel for make.
#[derive(Clone, Debug)]
pub(super) struct Make {
    pub(super) source: PathBuf,
    pub(super) objects: PathBuf,
    pub(super) arch: Arch,
    pub(super) compiler: Compiler,
    pub(super) jobs: usize,
}

impl Make {
    /// Words that all calls have. The build's user and machine are no part of the image, nor is the plus that git's state
    /// would add to its name.
    fn words(&self) -> Vec<String> {
        let [arch, _] = self.arch.facts().kbuild;
        let mut words = vec![
            "-C".to_owned(),
            self.source.display().to_string(),
            format!("O={}", self.objects.display()),
            format!("ARCH={arch}"),
            "KBUILD_BUILD_USER=binderperf".to_owned(),
            "KBUILD_BUILD_HOST=binderperf".to_owned(),
            "LOCALVERSION=".to_owned(),
        ];
        match self.compiler {
            Compiler::Gnu => {}
            Compiler::GnuCross => words.push(format!("CROSS_COMPILE={}", self.arch.facts().gnu)),
            Compiler::Llvm => words.push("LLVM=1".to_owned()),
        }
        words
    }

    /// Makes the configuration from a file of options.
    pub(super) fn configure(&self, options: &Path) -> Vec<String> {
        let more = [format!("KCONFIG_ALLCONFIG={}", options.display()), "allnoconfig".to_owned()];
        [self.words(), more.to_vec()].concat()
    }

    /// Makes the image.
    pub(super) fn image(&self) -> Vec<String> {
        let [target, _] = self.arch.facts().kernel_image;
        [self.words(), vec![format!("-j{}", self.jobs), target.to_owned()]].concat()
    }

    /// Asks whether the Rust tools suffice.
    pub(super) fn rust_available(&self) -> Vec<String> {
        [self.words(), vec!["-s".to_owned(), "rustavailable".to_owned()]].concat()
    }

    /// The image that make leaves.
    pub(super) fn product(&self) -> PathBuf {
        let [_, file] = self.arch.facts().kernel_image;
        self.objects.join(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_lines_name_source_objects_architecture_and_compiler() {
        let mut make = Make {
            source: "/src".into(),
            objects: "/obj".into(),
            arch: Arch::X86,
            compiler: Compiler::Gnu,
            jobs: 3,
        };
        let common = "-C /src O=/obj ARCH=x86_64 KBUILD_BUILD_USER=binderperf KBUILD_BUILD_HOST=binderperf LOCALVERSION=";
        assert_eq!(
            make.configure(Path::new("/wanted")).join(" "),
            format!("{common} KCONFIG_ALLCONFIG=/wanted allnoconfig")
        );
        assert_eq!(make.image().join(" "), format!("{common} -j3 bzImage"));
        assert_eq!(make.product(), Path::new("/obj/arch/x86/boot/bzImage"));
        make.arch = Arch::Arm;
        make.compiler = Compiler::GnuCross;
        let line = make.image().join(" ");
        assert!(
            line.contains("ARCH=arm64") && line.contains("CROSS_COMPILE=aarch64-linux-gnu- -j3 Image"),
            "{line}"
        );
        make.compiler = Compiler::Llvm;
        let line = make.rust_available().join(" ");
        assert!(line.ends_with("LLVM=1 -s rustavailable") && !line.contains("CROSS"), "{line}");
    }
}
