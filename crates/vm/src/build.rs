//! Kernels for guests, built from source: what is wanted in, a kernel in the cache out.
//! Not here: booting it (`session`), kernels that are fetched (`kernel::fetch`).
//!
//! `module` builds the driver alone.
//! The plan is pure: options (`options`, `config`), the name (`name`), command lines (`make`, `debian`). `source`, `copy`
//! and `workshop` prepare folders, `step` runs programs, `dropped` says what Kconfig left out, `list` finds what is in
//! the cache, `table` shows it, `on_driver` names a kernel with another driver.

mod config;
mod copy;
mod debian;
mod dropped;
mod error;
mod expression;
#[cfg(test)]
mod fixtures;
mod kconfig;
mod list;
mod log;
mod make;
mod module;
mod name;
mod on_driver;
mod options;
mod recipe;
mod source;
mod step;
mod table;
mod tools;
mod workshop;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

pub use error::BuildError;
pub use list::{Explained, Kept, clean, kept, remove};
pub use module::{BuiltModule, WantedModule, build_module};
pub use on_driver::{Module, OnDriver};
pub use options::{Check, Driver, Preempt, Setting, Tools, Wanted};
pub use table::table;

use crate::error::VmError;
use crate::kernel::{self, Cache, built};

use config::Fragment;
use kconfig::Kconfig;
use make::{Make, without_variables};
use name::Facts;
use recipe::Recipe;
use source::Source;
use step::Steps;
use tools::{Builder, Here};
use workshop::{Objects, Workshop, removed, room};

/// Bytes of the objects of one kernel.
const OBJECTS: u64 = 1_500_000_000;
/// Bytes that a build of what is nearly there may take.
const AGAIN: u64 = 300_000_000;
/// Bytes of a copy of a source.
const COPY: u64 = 2_000_000_000;

/// The words of a build while it runs.
#[derive(Clone, Copy, Debug)]
pub enum News<'a> {
    /// It begins to build the kernel of this name. Sent once per build, not for a kernel that is there.
    Begins(&'a str),
    /// The step that it is at.
    Now(&'a str),
    /// Something that the user may want to know.
    Note(&'a str),
}

/// A kernel in the cache.
#[derive(Clone, Debug)]
pub struct Built {
    /// The name, for `--kernel built:NAME`.
    pub name: String,
    /// The image.
    pub image: PathBuf,
    /// How long the build took; `None`: it was there.
    pub took: Option<Duration>,
}

/// The folder of Debian's source of a version, as `debian:7.2`; it is fetched and unpacked into the cache of builds unless it is
/// there.
///
/// # Errors
/// [`BuildError`].
pub fn source(given: &str, tell: &mut dyn FnMut(News<'_>)) -> Result<PathBuf, BuildError> {
    let cache = Cache::of_user()?;
    let shop = Workshop::beside(&cache);
    Ok(source::find(given, false, &cache, &shop, &mut |text| tell(News::Now(text)))?.folder)
}

/// Builds a kernel, unless it is in the cache, and keeps it there.
///
/// # Errors
/// [`BuildError`].
pub fn build(wanted: &Wanted, tell: &mut dyn FnMut(News<'_>)) -> Result<Built, BuildError> {
    let begin = Instant::now();
    sys::stop_signal::catch().map_err(BuildError::host("preparing for signals"))?;
    let cache = Cache::of_user()?;
    let shop = Workshop::beside(&cache);
    let patches = read_patches(&wanted.patches)?;
    shop.folder("logs")?;
    let source =
        source::find(&wanted.source, wanted.refresh, &cache, &shop, &mut |text| tell(News::Now(text)))?;
    let builder = tools::choose(wanted, &source.folder, &Here)?;
    let facts = Facts {
        version: &source.version,
        mark: source.mark.as_deref(),
        llvm: builder.compiler() == make::Compiler::Llvm,
        patches: &patches,
    };
    let name = name::of(wanted, facts);
    let fragment = Fragment::of(wanted, &name::local_version(wanted, facts));
    let recipe = Recipe::of(wanted, &source, builder, &patches, &fragment);
    let key = built::key(&name).ok_or_else(|| BuildError::Source {
        given: wanted.source.clone(),
        why: format!("its version makes no name for a kernel: {name}"),
    })?;
    let place = cache.root().join(&key);
    let there = || {
        let is_same = source.is_fixed && !wanted.refresh && recipe.is_of(&place);
        is_same.then(|| Built { name: name.clone(), image: place.join("vmlinuz"), took: None })
    };
    if let Some(built) = there() {
        return Ok(built);
    }
    let is_copied = !patches.is_empty() || copy::was_built_in(&source.folder, wanted.arch.facts().kbuild[1]);
    let copied = if is_copied { "-copy" } else { "" };
    let key_of =
        |copied| format!("{}{copied}-{}-{}-{}", source.id, wanted.arch, wanted.driver, builder.word());
    let objects_key = key_of(copied);
    let objects = shop.objects(&objects_key, &mut |text| tell(News::Now(text)))?;
    // The other build may have been for the same kernel.
    if let Some(built) = there() {
        return Ok(built);
    }
    tell(News::Begins(&name));
    let folder = if is_copied { prepared(wanted, &source, &shop, &patches)? } else { source.folder.clone() };
    let make = Make {
        source: folder,
        objects: objects.folder().to_path_buf(),
        arch: wanted.arch,
        compiler: builder.compiler(),
        jobs: wanted.jobs,
    };
    if is_copied && matches!(builder, Builder::Debian) {
        // In Debian's tree a source and its copy have the same path.
        shop.seed(&objects, &key_of(""))?;
    }
    let log = shop.folder("logs")?.join(format!("{name}.log"));
    let who = match builder {
        Builder::Machine(_) => "this machine's tools",
        Builder::Debian => "Debian's tools, in a tree that is made for it",
    };
    tell(News::Note(&format!("{name} is built with {who}; log: {}", log.display())));
    let mut work = Work {
        wanted,
        name: &name,
        make: &make,
        fragment: &fragment,
        objects: &objects,
        shop: &shop,
        log: &log,
    };
    let made = match builder {
        Builder::Machine(_) => work.with_own_tools(tell)?,
        Builder::Debian => work.with_debians(&objects_key, tell)?,
    };
    let took = begin.elapsed();
    let image = keep(&cache, &key, &made, &recipe, took, &log)?;
    Ok(Built { name, image, took: Some(took) })
}

/// The files that a build left.
struct Made {
    image: PathBuf,
    config: PathBuf,
}

/// Contents of the patches.
fn read_patches(files: &[PathBuf]) -> Result<Vec<Vec<u8>>, BuildError> {
    let read = |file: &PathBuf| {
        std::fs::read(file).map_err(|error| BuildError::Patch {
            file: file.clone(),
            said: format!("reading it: {}", sys::errno::describe(&error)),
        })
    };
    files.iter().map(read).collect()
}

/// A copy of the source, with the patches.
fn prepared(
    wanted: &Wanted,
    source: &Source,
    shop: &Workshop,
    patches: &[Vec<u8>],
) -> Result<PathBuf, BuildError> {
    let copy = shop.folder("copies")?.join(&source.id);
    if !copy.exists() {
        room(shop.root(), COPY)?;
    }
    let files = copy::files(&source.folder)?;
    if copy::was_built_in(&source.folder, wanted.arch.facts().kbuild[1])
        && files.iter().any(|file| file == ".config")
    {
        return Err(BuildError::Source {
            given: wanted.source.clone(),
            why: "it was built in, and without git nobody knows which files are its source: run make mrproper there".into(),
        });
    }
    copy::refresh(&source.folder, &files, &copy, patches)?;
    copy::apply(&wanted.patches, &copy)?;
    Ok(copy)
}

/// One build with a fixed plan.
struct Work<'a> {
    wanted: &'a Wanted,
    name: &'a str,
    make: &'a Make,
    fragment: &'a Fragment,
    objects: &'a Objects,
    shop: &'a Workshop,
    log: &'a Path,
}

impl Work<'_> {
    /// Builds with this machine's tools.
    fn with_own_tools(&mut self, tell: &mut dyn FnMut(News<'_>)) -> Result<Made, BuildError> {
        room(self.shop.root(), if self.make.objects.exists() { AGAIN } else { OBJECTS })?;
        self.objects.begin()?;
        let options = self.make.objects.join("wanted");
        let writing = BuildError::host(format!("writing {}", options.display()));
        std::fs::write(&options, self.fragment.text()).map_err(writing)?;
        let result = self.own_steps(&options, tell);
        // make removes what it was making when it is asked to end, or fails.
        self.objects.finish()?;
        result
    }

    fn own_steps(&mut self, options: &Path, tell: &mut dyn FnMut(News<'_>)) -> Result<Made, BuildError> {
        let run = |words: Vec<String>| {
            let mut command = Command::new("make");
            without_variables(&mut command);
            command.args(words).env("LC_ALL", "C");
            command
        };
        let config = self.make.objects.join(".config");
        let mut steps = Steps::new(self.log, tell)?;
        steps.run(&format!("configuring {}", self.name), run(self.make.configure(options)))?;
        self.check(&config, steps.tell)?;
        steps.run(&format!("building {}", self.name), run(self.make.image()))?;
        Ok(Made { image: self.make.product(), config })
    }

    /// Builds with Debian's tools.
    fn with_debians(&mut self, key: &str, tell: &mut dyn FnMut(News<'_>)) -> Result<Made, BuildError> {
        room(self.shop.root(), debian::TREE)?;
        let folder = self.shop.folder("debian")?.join(key);
        removed(&folder)?;
        std::fs::create_dir_all(&folder).map_err(BuildError::host(format!("making {}", folder.display())))?;
        self.objects.begin()?;
        let options = folder.join("wanted");
        let writing = BuildError::host(format!("writing {}", options.display()));
        std::fs::write(&options, self.fragment.text()).map_err(writing)?;
        let required: Vec<String> =
            self.fragment.entries.iter().filter(|entry| entry.asked).map(config::Entry::line).collect();
        let files =
            debian::Files { folder: &folder, options: &options, required: &(required.join("\n") + "\n") };
        let command = debian::command(self.make, self.wanted.driver, &files)?;
        let step = format!("building {} with Debian's tools", self.name);
        let result = Steps::new(self.log, tell)?.run(&step, command);
        let config = folder.join("config");
        let is_configured = config.metadata().is_ok_and(|found| found.len() > 0);
        if is_configured && !matches!(result, Err(BuildError::Stopped(_))) {
            let checked = self.check(&config, tell);
            if checked.is_err() {
                self.objects.finish()?;
            }
            checked?;
        }
        // On a full disk they may have come as parts.
        if !matches!(result, Err(BuildError::Full { .. })) {
            debian::take_objects(self.make, &files)?;
        }
        self.objects.finish()?;
        result?;
        Ok(Made { image: debian::product(&files), config })
    }

    /// Compares the configuration with what it should be.
    fn check(&self, config: &Path, tell: &mut dyn FnMut(News<'_>)) -> Result<(), BuildError> {
        let text = std::fs::read_to_string(config)
            .map_err(BuildError::host(format!("reading {}", config.display())))?;
        let config = config::read(&text);
        let kconfig = Kconfig::read(&self.make.source, self.wanted.arch.facts().kbuild[1]);
        let outcome = dropped::outcome(self.fragment, &config, &kconfig);
        if !outcome.missing.is_empty() {
            return Err(BuildError::Options(outcome.missing));
        }
        if !outcome.unknown.is_empty() {
            tell(News::Note(&format!("this source does not know {}", outcome.unknown.join(", "))));
        }
        Ok(())
    }
}

/// Puts a kernel into the cache, with its configuration, recipe and log.
fn keep(
    cache: &Cache,
    key: &str,
    made: &Made,
    recipe: &Recipe,
    took: Duration,
    log: &Path,
) -> Result<PathBuf, BuildError> {
    let kernel = kernel::of_image(&made.image)?;
    let writing = cache.write(&mut |_| {})?;
    let described = writing.scratch.join(recipe::FILE);
    let text = recipe.text(took).map_err(VmError::host("describing the kernel"))?;
    std::fs::write(&described, text).map_err(BuildError::host(format!("writing {}", described.display())))?;
    let beside = [(recipe::FILE, described.as_path()), ("build.log", log)];
    let kept = writing.replace(key, &kernel, &made.config, &beside)?;
    // The log is beside the image now.
    let _ = std::fs::remove_file(log);
    Ok(kept.image)
}
