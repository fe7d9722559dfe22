//! The Binder driver alone, built as a module for a fetched kernel with its headers.
//! Not here: whole kernels (`build`), the headers (`kernel::headers`), loading the module (`guest::machine`).

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::arch::Arch;
use crate::error::VmError;
use crate::kernel::{self, Cache, Choice, Headers, headers};

use super::error::BuildError;
use super::make::without_variables;
use super::name::hash;
use super::source::{DRIVER, android_of};
use super::step::Steps;
use super::workshop::{Objects, Workshop, removed, room};
use super::{News, copy};

/// The module's file.
const MODULE: &str = "binder_linux.ko";
/// Bytes of headers, sources and objects.
const SPACE: u64 = 700_000_000;
/// Times that make begins anew without options that this machine's compiler lacks.
const MOST_ATTEMPTS: usize = 8;
/// Make's variables: no debug information and no BTF, which needs `pahole`.
const VARIABLES: [&str; 2] = ["CONFIG_DEBUG_INFO_BTF_MODULES=", "KCFLAGS=-g0 -Wno-attributes"];

/// A module to build.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WantedModule {
    /// The kernel: a name of a fetched one; `None`: the newest.
    pub kernel: Option<String>,
    /// A kernel's tree, or a folder with the driver's files; `None`: the source of that kernel's version.
    pub source: Option<PathBuf>,
    /// Patches, as `patch -p1` takes them in a kernel's tree.
    pub patches: Vec<PathBuf>,
    /// Compile even what was compiled before.
    pub refresh: bool,
}

/// A module that is there.
#[derive(Clone, Debug)]
pub struct BuiltModule {
    /// The module's file.
    pub file: PathBuf,
    /// The release of its kernel.
    pub release: String,
    /// The build's log.
    pub log: PathBuf,
    /// How long the build took; `None`: it was there.
    pub took: Option<Duration>,
}

/// Builds the driver as a module, unless it is there already.
///
/// # Errors
/// [`BuildError`].
pub fn build_module(
    wanted: &WantedModule,
    tell: &mut dyn FnMut(News<'_>),
) -> Result<BuiltModule, BuildError> {
    let begin = Instant::now();
    sys::stop_signal::catch().map_err(BuildError::host("preparing for signals"))?;
    let cache = Cache::of_user()?;
    let shop = Workshop::beside(&cache);
    let patches = super::read_patches(&wanted.patches)?;
    let own = wanted.source.as_deref().map(of_user).transpose()?;
    let release = release_of(wanted, &mut |text| tell(News::Now(text)))?;
    room(&shop.folder("logs")?, SPACE)?;
    let headers = headers_of(&cache, &shop, &release, &mut |text| tell(News::Now(text)))?;
    let (source, id) = match own {
        Some(own) => (own, "own".to_owned()),
        None => android_of(&headers.version, &cache, &shop, &mut |text| tell(News::Now(text)))?,
    };
    let key = format!("module-{release}-{id}-{}", hash([source.as_os_str().as_encoded_bytes()]));
    let objects = shop.objects(&key, &mut |text| tell(News::Now(text)))?;
    let mut files = copy::files(&source)?;
    files.retain(|name| is_source(name));
    files.sort();
    let state = hash(parts(&source, &files, &patches)?.iter().map(Vec::as_slice));
    let file = shop.folder("modules")?.join(format!("{release}-{state}")).join(MODULE);
    let log = shop.folder("logs")?.join(format!("driver-{release}.log"));
    if file.is_file() && !wanted.refresh {
        return Ok(BuiltModule { file, release, log, took: None });
    }
    tell(News::Note(&format!("building the driver for {release}; its log: {}", log.display())));
    objects.begin()?;
    let made = compiled(
        &Work { headers: &headers, source: &source, files, wanted, patches, objects: &objects, log: &log },
        tell,
    );
    objects.finish()?;
    let made = made?;
    let doing = || BuildError::host(format!("keeping {}", file.display()));
    std::fs::create_dir_all(file.parent().unwrap_or(&file)).map_err(doing())?;
    sys::draft::copy(&made, &file).map_err(doing())?;
    Ok(BuiltModule { file, release, log, took: Some(begin.elapsed()) })
}

/// The release of the chosen kernel, which is fetched if it is not there.
fn release_of(wanted: &WantedModule, progress: &mut dyn FnMut(&str)) -> Result<String, BuildError> {
    let given: Vec<String> = wanted.kernel.iter().cloned().collect();
    let bad = |why: &str| {
        let given = given.join(" ");
        BuildError::Vm(VmError::BadKernel { given, why: why.to_owned() })
    };
    if given.iter().any(|word| word.contains('/') || kernel::built::name(word).is_some()) {
        return Err(bad("a module is built for a kernel of Debian's by its name, such as 7.2 or newest"));
    }
    let choice = Choice { given: given.clone(), ..Choice::default() };
    let found = kernel::resolve(&choice, progress)?;
    if found.arch != Arch::own() {
        return Err(bad("modules are built for this machine's architecture only"));
    }
    Ok(found.release)
}

/// The kernel's headers, fetched once.
fn headers_of(
    cache: &Cache,
    shop: &Workshop,
    release: &str,
    progress: &mut dyn FnMut(&str),
) -> Result<Headers, BuildError> {
    let place = shop.folder("headers")?.join(release);
    if let Some(found) = Headers::at(&place, release) {
        return Ok(found);
    }
    let writing = cache.write(progress)?;
    if let Some(found) = Headers::at(&place, release) {
        return Ok(found);
    }
    removed(&place)?;
    Ok(headers::fetch(&writing.scratch, release, &place, progress)?)
}

/// The tree above the driver's files that the user gave.
fn of_user(given: &Path) -> Result<PathBuf, BuildError> {
    let bad = |why: &str| BuildError::Source { given: given.display().to_string(), why: why.to_owned() };
    let folder = given.canonicalize().map_err(|error| bad(&sys::errno::describe(&error)))?;
    let above = || folder.parent().and_then(Path::parent).filter(|_| folder.ends_with(DRIVER));
    let root = if folder.join(DRIVER).is_dir() { Some(folder.as_path()) } else { above() };
    let root = root.ok_or_else(|| bad("it has no drivers/android, and is none"))?;
    if !root.join(DRIVER).join("binder.c").is_file() {
        return Err(bad("there is no binder.c in its drivers/android"));
    }
    Ok(root.join(DRIVER))
}

/// All that decides how the module turns out.
fn parts(source: &Path, files: &[String], patches: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, BuildError> {
    let mut parts = Vec::new();
    for name in files {
        let path = source.join(name);
        parts.push(name.clone().into_bytes());
        parts.push(std::fs::read(&path).map_err(BuildError::host(format!("reading {}", path.display())))?);
    }
    parts.extend(patches.iter().cloned());
    Ok(parts)
}

/// Whether the C driver is made of this file, of those in its folder.
fn is_source(name: &str) -> bool {
    !name.contains('/') && [".c", ".h", "Kconfig", "Makefile"].iter().any(|end| name.ends_with(end))
}

/// One build whose parts are there.
struct Work<'a> {
    headers: &'a Headers,
    source: &'a Path,
    files: Vec<String>,
    wanted: &'a WantedModule,
    patches: Vec<Vec<u8>>,
    objects: &'a Objects,
    log: &'a Path,
}

/// Compiles; returns the module.
fn compiled(work: &Work<'_>, tell: &mut dyn FnMut(News<'_>)) -> Result<PathBuf, BuildError> {
    let tree = work.objects.folder();
    let folder = tree.join(DRIVER);
    if work.wanted.refresh {
        removed(&folder)?;
        let _ = std::fs::remove_file(folder.with_added_extension("index"));
    }
    // The patches name files from the tree's root; the copy knows them from the driver's folder.
    let inner: Vec<Vec<u8>> = work.patches.iter().map(|patch| within(patch)).collect();
    copy::refresh(work.source, &work.files, &folder, &inner)?;
    copy::apply(&work.wanted.patches, tree)?;
    let doing = || BuildError::host(format!("writing into {}", folder.display()));
    write_if_changed(&folder.join("Kbuild"), &kbuild(&objects_in(&folder).map_err(doing())?))
        .map_err(doing())?;
    let compiler = tree.join("cc");
    let mut lacking: Vec<String> = Vec::new();
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    for attempt in 1.. {
        write_if_changed(&compiler, &wrapper(&lacking)).map_err(doing())?;
        let mut command = Command::new("make");
        without_variables(&mut command);
        command.arg("-C").arg(&work.headers.folder).arg(format!("M={}", folder.display()));
        command.arg(format!("CC=sh {}", compiler.display())).args(VARIABLES);
        command.arg(format!("-j{cpus}")).arg("modules").env("LC_ALL", "C");
        let made = Steps::new(work.log, tell).and_then(|mut steps| steps.run("building the driver", command));
        let Err(error) = made else { break };
        let log = std::fs::read(work.log).unwrap_or_default();
        let mut new = refused(&String::from_utf8_lossy(&log));
        new.retain(|option| !lacking.contains(option));
        if new.is_empty() || attempt >= MOST_ATTEMPTS {
            return Err(error);
        }
        tell(News::Note(&format!("this machine's gcc lacks {}: built without", new.join(", "))));
        lacking.extend(new);
    }
    Ok(folder.join(MODULE))
}

/// A patch whose names begin in the driver's folder.
fn within(patch: &[u8]) -> Vec<u8> {
    String::from_utf8_lossy(patch).replace(&format!("{DRIVER}/"), "").into_bytes()
}

fn write_if_changed(path: &Path, text: &str) -> std::io::Result<()> {
    if std::fs::read_to_string(path).is_ok_and(|old| old == text) {
        return Ok(());
    }
    std::fs::write(path, text)
}

/// The objects of the C files in the folder.
fn objects_in(folder: &Path) -> std::io::Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let Some(stem) = name.strip_suffix(".c") else { continue };
        // Written by make; for kernels with other options.
        if !name.ends_with(".mod.c") && !name.starts_with('.') && stem != "binder_alloc_selftest" {
            found.push(format!("{stem}.o"));
        }
    }
    found.sort();
    Ok(found)
}

/// Variables for make: the driver with binderfs, which Debian leaves out.
fn kbuild(objects: &[String]) -> String {
    format!(
        "ccflags-y += -I$(src) -DCONFIG_ANDROID_BINDERFS=1\nobj-m := binder_linux.o\nbinder_linux-y := {}\n",
        objects.join(" ")
    )
}

/// Options in the log that the compiler does not know: the kernel was built by a newer one.
fn refused(log: &str) -> Vec<String> {
    let lines = log.lines().filter(|line| {
        line.contains("unrecognized command-line option") || line.contains("unrecognized command line option")
    });
    let quoted = lines.filter_map(|line| {
        let rest = line.split(['\u{2018}', '\'']).nth(1)?;
        Some(rest.split(['\u{2019}', '\'']).next()?.to_owned())
    });
    let mut found: Vec<String> = quoted.collect();
    found.sort();
    found.dedup();
    found
}

/// A script that calls gcc without options that it lacks. The smallest alignment of functions has an older spelling.
fn wrapper(lacking: &[String]) -> String {
    let mut cases = String::new();
    for option in lacking {
        match option.split_once('=') {
            Some(("-fmin-function-alignment", _)) => {
                cases += "  -fmin-function-alignment=*) set -- \"$@\" \"-falign-functions=${word#*=}\" ;;\n";
            }
            _ => cases += &format!("  '{option}') ;;\n"),
        }
    }
    format!(
        "for word; do\n  shift\n  case $word in\n{cases}  *) set -- \"$@\" \"$word\" ;;\n  esac\ndone\nexec gcc \"$@\"\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use driver::root::Fixture;

    #[test]
    fn options_that_the_compiler_lacks_are_left_out() {
        let log = "gcc: error: unrecognized command-line option \u{2018}-fmin-function-alignment=16\u{2019}; did you mean x\n\
                   gcc: error: unrecognized command line option '-fnew'\nbinder.c:1: error: x\n";
        let lacking = refused(log);
        assert_eq!(lacking, ["-fmin-function-alignment=16", "-fnew"]);
        let script = wrapper(&lacking).replace("exec gcc", "printf '%s;'");
        let said = Command::new("sh")
            .args(["-c", &script, "cc", "-fmin-function-alignment=16", "-c", "a b.c", "-fnew"])
            .output()
            .expect("a shell");
        assert_eq!(String::from_utf8_lossy(&said.stdout), "-falign-functions=16;-c;a b.c;");
    }

    #[test]
    fn a_folder_is_a_tree_or_the_drivers_in_one() {
        let root = Fixture::new("module-source", &[("tree/drivers/android/binder.c", ""), ("other/x.c", "")]);
        let want = root.path().join("tree/drivers/android").canonicalize().expect("there");
        assert_eq!(of_user(&root.path().join("tree")).expect("a tree"), want);
        assert_eq!(of_user(&want).expect("the driver's"), want);
        for (bad, says) in [("other", "no drivers/android"), ("none", "ENOENT")] {
            let error = of_user(&root.path().join(bad)).expect_err("no driver").to_string();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn the_module_is_made_of_the_folders_files() {
        let files =
            [("binder.c", ""), ("binder_alloc.c", ""), ("binder_linux.mod.c", ""), (".module-common.c", "")];
        let root = Fixture::new("module-objects", &files);
        let objects = objects_in(root.path()).expect("a folder");
        assert_eq!(objects, ["binder.o", "binder_alloc.o"]);
        assert!(kbuild(&objects).ends_with("binder_linux-y := binder.o binder_alloc.o\n"));
        assert!(
            is_source("Kconfig") && is_source("dbitmap.h") && !is_source("tests/a.c") && !is_source("a.o")
        );
        let patch = b"--- a/drivers/android/binder.c\n+++ b/drivers/android/binder.c\n";
        assert_eq!(within(patch), b"--- a/binder.c\n+++ b/binder.c\n");
    }
}
