//! A build with Debian's tools, in a file tree that mmdebstrap makes and throws away.
//! Not here: command lines of make (`make`), this machine's tools (`tools`).
//! Facts: `mmdebstrap(1)`: hooks run in order; `sync-in`, `sync-out`, `upload` and `download` copy between the two trees.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::kernel;

use super::error::BuildError;
use super::make::{Make, without_variables};
use super::options::Driver;
use super::workshop::removed;

/// Bytes that the tree, with packages, source and objects, may take.
pub(super) const TREE: u64 = 6_000_000_000;

/// Packages that build with LLVM, for any architecture.
const PACKAGES: [&str; 13] = [
    "bc",
    "bison",
    "clang",
    "cpio",
    "flex",
    "gcc",
    "libc6-dev",
    "libelf-dev",
    "lld",
    "llvm",
    "make",
    "perl",
    "xz-utils",
];
/// Packages for the driver in Rust.
const RUST: [&str; 4] = ["bindgen", "rust-src", "rustc", "rustfmt"];

/// Files of one build, on this machine's side.
#[derive(Clone, Debug)]
pub(super) struct Files<'a> {
    /// Empty folder for mmdebstrap and for what passes between the trees.
    pub(super) folder: &'a Path,
    /// The options for Kconfig.
    pub(super) options: &'a Path,
    /// Lines that must be in the configuration.
    pub(super) required: &'a str,
}

/// Writes what the tree needs into the folder, and returns the program that builds there. It leaves `config`, the objects
/// with `status`, and after success `image`.
///
/// # Errors
/// [`BuildError::Vm`]: there is no Debian archive among apt's sources, or a file cannot be written.
pub(super) fn command(make: &Make, driver: Driver, files: &Files<'_>) -> Result<Command, BuildError> {
    let sources = kernel::sid_sources()?;
    let doing = || BuildError::host(format!("writing into {}", files.folder.display()));
    let write = |name: &str, text: &str| std::fs::write(files.folder.join(name), text).map_err(doing());
    let inside = Make { source: "/source".into(), objects: "/objects".into(), ..make.clone() };
    write("debian.sources", &sources)?;
    write("required", files.required)?;
    write("configure", &configure(&inside))?;
    write("build", &build(&inside))?;
    write("config", "")?;
    write("image", "")?;
    write("status", "")?;
    std::fs::create_dir_all(&make.objects).map_err(doing())?;
    for name in ["tmp", "objects"] {
        std::fs::create_dir_all(files.folder.join(name)).map_err(doing())?;
    }
    let mut command = Command::new("mmdebstrap");
    command.args(words(make, driver, files));
    without_variables(&mut command);
    // As root the tree is in a folder that the next build can remove; others have no such folder that mmdebstrap's own
    // users may enter.
    if sys::identity::effective_uid() == 0 {
        command.env("TMPDIR", files.folder.join("tmp"));
    }
    Ok(command)
}

/// Arguments of mmdebstrap.
fn words(make: &Make, driver: Driver, files: &Files<'_>) -> Vec<String> {
    let own = |name: &str| quoted(&files.folder.join(name));
    let rust: &[&str] = if driver == Driver::Rust { &RUST } else { &[] };
    let packages = [&PACKAGES[..], rust].concat().join(",");
    let hook = |text: String| format!("--customize-hook={text}");
    vec![
        "--variant=apt".to_owned(),
        "--format=null".to_owned(),
        // Signatures are checked; the age of the package lists is not, because a mirror may be a snapshot.
        "--aptopt=Acquire::Check-Valid-Until \"false\"".to_owned(),
        format!("--include={packages}"),
        hook("mkdir -p \"$1/source\" \"$1/objects\"".to_owned()),
        hook(format!("sync-in {} /source", quoted(&make.source))),
        hook(format!("sync-in {} /objects", quoted(&make.objects))),
        hook(format!("upload {} /wanted", quoted(files.options))),
        hook(format!("upload {} /required", own("required"))),
        hook(format!("upload {} /configure", own("configure"))),
        hook(format!("upload {} /build", own("build"))),
        hook("chroot \"$1\" sh /configure".to_owned()),
        hook(format!("download /objects/.config {}", own("config"))),
        hook("chroot \"$1\" sh /build; echo $? >\"$1/status\"".to_owned()),
        hook(format!("sync-out /objects {}", own("objects"))),
        // Behind the objects: where it came, they are whole.
        hook(format!("download /status {}", own("status"))),
        hook("grep -qx 0 \"$1/status\"".to_owned()),
        hook(format!("download /image {}", own("image"))),
        "sid".to_owned(),
        "-".to_owned(),
        files.folder.join("debian.sources").display().to_string(),
    ]
}

/// Puts the objects into their place if they came back, as they do of a build that failed, too.
///
/// # Errors
/// [`BuildError::Vm`].
pub(super) fn take_objects(make: &Make, files: &Files<'_>) -> Result<(), BuildError> {
    if std::fs::read(files.folder.join("status")).is_ok_and(|status| status.is_empty()) {
        return Ok(());
    }
    removed(&make.objects)?;
    std::fs::rename(files.folder.join("objects"), &make.objects)
        .map_err(BuildError::host(format!("keeping the objects in {}", make.objects.display())))
}

/// The image, where the build leaves it.
pub(super) fn product(files: &Files<'_>) -> PathBuf {
    files.folder.join("image")
}

/// The script that makes the configuration.
fn configure(make: &Make) -> String {
    format!("set -eu\nmake {}\n", line(&make.configure(Path::new("/wanted"))))
}

/// The script that makes the image, if the configuration is as it must be: what Kconfig dropped is explained outside.
fn build(make: &Make) -> String {
    format!(
        "set -eu\nif grep -vxFf /objects/.config /required; then\n    echo 'ERROR: this source does not take these options'\n\
         \x20   make {} || true\n    exit 1\nfi\nmake {}\ncp {} /image\n",
        line(&make.rust_available()),
        line(&make.image()),
        make.product().display()
    )
}

/// Words for a shell; none of ours has anything but plain letters.
fn line(words: &[String]) -> String {
    words.join(" ")
}

/// A path in a hook.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Arch;
    use crate::build::make::Compiler;

    #[test]
    fn the_tree_gets_source_options_and_objects_and_gives_config_image_and_objects() {
        let make = Make {
            source: "/my source".into(),
            objects: "/o/key".into(),
            arch: Arch::Arm,
            compiler: Compiler::Llvm,
            jobs: 2,
        };
        let files = Files { folder: Path::new("/d"), options: Path::new("/w"), required: "" };
        let words = words(&make, Driver::Rust, &files);
        let at = |part: &str| {
            words.iter().position(|word| word.contains(part)).unwrap_or_else(|| panic!("{part}"))
        };
        let order = [
            "sync-in '/my source' /source",
            "sync-in '/o/key'",
            "upload '/w' /wanted",
            "sh /configure",
            "download /objects/.config '/d/config'",
            "sh /build",
            "sync-out /objects '/d/objects'",
            "download /status '/d/status'",
            "grep -qx 0",
            "download /image '/d/image'",
        ];
        assert!(order.windows(2).all(|two| at(two[0]) < at(two[1])), "{words:?}");
        assert!(words[at("--include=")].contains("rustc") && words[at("--include=")].contains("clang"));
        assert_eq!(words.last().map(String::as_str), Some("/d/debian.sources"));
        let without = super::words(&make, Driver::C, &files).concat();
        assert!(!without.contains("rust"), "{without}");
    }

    #[test]
    fn the_scripts_build_with_llvm_and_stop_at_an_option_that_is_not_taken() {
        let make = Make {
            source: "/source".into(),
            objects: "/objects".into(),
            arch: Arch::X86,
            compiler: Compiler::Llvm,
            jobs: 2,
        };
        assert!(configure(&make).contains("LLVM=1 KCONFIG_ALLCONFIG=/wanted allnoconfig\n"));
        let text = build(&make);
        let check = text.find("grep -vxFf /objects/.config /required").expect("the check");
        assert!(check < text.find("-j2 bzImage").expect("the image"), "{text}");
        assert!(text.ends_with("cp /objects/arch/x86/boot/bzImage /image\n"), "{text}");
    }
}
