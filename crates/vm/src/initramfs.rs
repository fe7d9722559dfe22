//! The guest's root file system: this binary, modules, other programs, the job.
//! Not here: the archive format (`cpio`), the reader of the job (`guest`).

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use super::added::{self, Added};
use super::cpio::Writer;
use super::error::VmError;
use super::job::{BINARY, JOB_PATH, Job};
use super::kernel::Module;
use super::tree::Tree;

/// Content of the archive.
#[derive(Debug)]
pub(super) struct Contents<'a> {
    /// This binary: the guest's first process, and `/bin/binderperf`.
    pub(super) binary: &'a Path,
    /// Other programs; each keeps its file name in `/bin`.
    pub(super) programs: &'a [&'a Path],
    /// Further names of this binary in `/bin`.
    pub(super) names: &'a [String],
    /// The file tree below all others.
    pub(super) root: Option<&'a Tree>,
    /// Files and folders of the host.
    pub(super) added: &'a [Added],
    pub(super) modules: &'a [Module],
    /// The kernel's release and configuration, placed where distributions keep it.
    pub(super) config: Option<(&'a str, &'a Path)>,
    pub(super) job: &'a Job,
}

/// Writes the archive.
///
/// # Errors
/// [`VmError::BadProgram`]: a program without a UTF-8 name; [`VmError::Host`].
pub(super) fn write(contents: &Contents<'_>, sink: impl Write) -> Result<(), VmError> {
    let mut archive = Writer::new(BufWriter::with_capacity(1 << 20, sink));
    let doing = || VmError::host("writing the guest's root filesystem");
    if let Some(tree) = contents.root {
        tree.write(&mut archive)?;
    }
    skeleton(&mut archive, contents.root).map_err(doing())?;
    program(&mut archive, BINARY, contents.binary)?;
    let folder = folder(contents.root.is_some());
    for name in [BINARY].into_iter().chain(contents.names.iter().map(String::as_str)) {
        archive.symlink(&format!("{folder}/{name}"), &format!("/{BINARY}")).map_err(doing())?;
    }
    for path in contents.programs {
        program(&mut archive, &format!("{folder}/{}", guest_name(path)?), path)?;
    }
    added::write(&mut archive, contents.added)?;
    for module in contents.modules {
        let name = format!("modules/{}", module.file_name());
        let len = module.content.len() as u64;
        archive.file(&name, 0o644, len, module.content.as_slice()).map_err(doing())?;
    }
    if let Some((release, path)) = contents.config {
        let text = std::fs::read(path).map_err(VmError::host(format!("reading {}", path.display())))?;
        archive.folder("boot").map_err(doing())?;
        let name = format!("boot/config-{release}");
        archive.file(&name, 0o644, text.len() as u64, text.as_slice()).map_err(doing())?;
    }
    let job = serde_json::to_vec(contents.job).map_err(io::Error::from).map_err(doing())?;
    archive.file(JOB_PATH, 0o644, job.len() as u64, job.as_slice()).map_err(doing())?;
    archive.finish().map_err(doing())?;
    Ok(())
}

/// A program's name in the guest's `/bin`.
///
/// # Errors
/// [`VmError::BadProgram`]: the name is not UTF-8.
pub(super) fn guest_name(path: &Path) -> Result<&str, VmError> {
    path.file_name().and_then(|name| name.to_str()).ok_or_else(|| VmError::BadProgram {
        path: path.to_path_buf(),
        why: "its file name is not UTF-8".into(),
    })
}

/// The folder of this program and those that came with it. In a tree of the user's, `/bin` may be a link.
pub(super) fn folder(has_root: bool) -> &'static str {
    if has_root { "binderperf-bin" } else { "bin" }
}

/// A path as names in the archive begin: without the slash.
pub(super) fn below_root(path: &Path) -> String {
    path.to_string_lossy().trim_start_matches('/').to_owned()
}

/// Folders, and the console device that the kernel opens for the first process.
fn skeleton(archive: &mut Writer<impl Write>, root: Option<&Tree>) -> io::Result<()> {
    [folder(root.is_some()), "dev", "modules", "proc", "root", "run", "sys", "tmp"]
        .iter()
        .filter(|name| root.is_none_or(|tree| !tree.has(name)))
        .try_for_each(|name| archive.folder(name))?;
    archive.character("dev/console", 5, 1)
}

fn program(archive: &mut Writer<impl Write>, name: &str, path: &Path) -> Result<(), VmError> {
    let doing = || VmError::host(format!("copying {} into the guest's root filesystem", path.display()));
    let file = File::open(path).map_err(doing())?;
    let len = file.metadata().map_err(doing())?.len();
    archive.file(name, 0o755, len, file).map_err(doing())
}
