//! The kernels of a matrix: from words or a preset to sides that can be measured, built where they must be.
//! Not here: building (`vm::build`), the presets (`presets`), measuring them (`super`).

use std::path::{Path, PathBuf};

use record::compare::Group;
use record::matrix::Kernel;
use vm::build::{BuildError, Built, BuiltModule, Module, OnDriver, Wanted, WantedModule};

use crate::ab::Side;

/// A kernel of a preset.
#[derive(Clone, Debug)]
pub enum Source {
    /// A kernel as `--kernels` takes it.
    Given(String),
    /// A kernel as `--kernels` takes it, booted with a preemption model.
    Preempted(String, &'static str),
    /// A kernel as `--kernels` takes it, whose tests have a further flag.
    Flagged(String, &'static str),
    /// One that is built, unless it is in the cache, and a word of its command line.
    Built(Box<Wanted>, Option<&'static str>),
}

/// Builds what is missing.
pub trait Builder {
    /// Builds a kernel, unless it is in the cache.
    ///
    /// # Errors
    /// [`BuildError`].
    fn kernel(&mut self, wanted: &Wanted) -> Result<Built, BuildError>;

    /// Builds a driver's module, unless it is in the cache.
    ///
    /// # Errors
    /// [`BuildError`].
    fn module(&mut self, wanted: &WantedModule) -> Result<BuiltModule, BuildError>;
}

/// A kernel's name, and its words for `vm --kernel`.
pub type Named = (String, String);

/// A kernel that can be booted.
#[derive(Clone, Debug)]
struct Ready {
    name: String,
    /// Its words for `vm --kernel`.
    kernel: String,
    /// Its driver's module, if that is another one.
    driver: Option<PathBuf>,
    /// The preemption model with which it is booted, if not with its own.
    model: Option<&'static str>,
    /// Another word of the kernel's command line.
    append: Option<&'static str>,
    /// A further flag of its tests.
    flag: Option<&'static str>,
}

/// Name and kernel; without a name the kernel's own words, of a path its last part.
///
/// # Errors
/// The text has no kernel, or an empty name.
pub fn named(text: &str) -> Result<Named, String> {
    // The names of built kernels, and paths, may have one of their own.
    let named = text.split_once('=').filter(|(name, _)| !name.starts_with("built:") && !name.contains('/'));
    let (name, kernel) = match named {
        Some((name, kernel)) => (name.trim(), kernel.trim()),
        None => {
            let last = Path::new(text).file_name().and_then(|name| name.to_str());
            (last.unwrap_or(text).trim(), text.trim())
        }
    };
    if name.is_empty() || kernel.is_empty() {
        return Err(format!("{text:?} is no KERNEL and no NAME=KERNEL"));
    }
    Ok((name.to_owned(), kernel.to_owned()))
}

/// The words of a test.
///
/// # Errors
/// The text is not one line of words.
pub fn words(text: &str) -> Result<Vec<String>, String> {
    let mut commands = vm::script::parse(text)?;
    if commands.len() > 1 {
        return Err("a test is one line; repeat --tests for more".to_owned());
    }
    Ok(commands.remove(0))
}

/// Both flavours at a small, a medium and a large payload, beside a pipe and bare ioctls.
#[must_use]
pub fn usual_tests() -> Vec<Vec<String>> {
    let test = |flavour: &str| {
        let filter = "--benchmark_filter=/(4|4096|65536)$";
        ["throughput", flavour, "--driver", "kernel", "--controls", "pipe,raw", filter]
            .map(str::to_owned)
            .to_vec()
    };
    vec![test("binder"), test("hwbinder")]
}

/// The kernels of a matrix.
#[derive(Clone, Debug)]
pub struct Kernels {
    ready: Vec<Ready>,
    unbuilt: Vec<Unbuilt>,
}

impl Kernels {
    /// Builds those that must be built; `broken` takes the name of each that cannot be, and why. It becomes a row that says so.
    ///
    /// # Errors
    /// Two have one name.
    pub fn prepare(
        all: Vec<(String, Source)>,
        builder: &mut dyn Builder,
        broken: &mut dyn FnMut(&str, &BuildError),
    ) -> Result<Self, String> {
        for (at, (name, _)) in all.iter().enumerate() {
            if all[..at].iter().any(|(known, _)| known == name) {
                return Err(format!("two kernels are called {name}: give one another name, NAME=KERNEL"));
            }
        }
        let mut kernels = Self { ready: Vec::new(), unbuilt: Vec::new() };
        for (at, (name, source)) in all.into_iter().enumerate() {
            match ready(source, builder) {
                Ok(found) => kernels.ready.push(Ready { name, ..found }),
                Err(error) => {
                    broken(&name, &error);
                    kernels.unbuilt.push(Unbuilt { at, name, why: error.to_string() });
                }
            }
        }
        Ok(kernels)
    }

    /// Those that can be booted, as sides, with further flags of `vm` without their dashes.
    #[must_use]
    pub fn sides(&self, vm_flags: &[String]) -> Vec<(String, Side)> {
        let side = |ready: &Ready| {
            let model = ready.model.map(|model| format!("append=preempt={model}"));
            let append = ready.append.map(|word| format!("append={word}"));
            let flags: Vec<String> = vm_flags.iter().cloned().chain(model).chain(append).collect();
            let side = Side::of_kernel(&ready.kernel, ready.driver.as_deref(), &flags);
            (ready.name.clone(), ready.flag.iter().fold(side, |side, flag| side.with_flag(flag)))
        };
        self.ready.iter().map(side).collect()
    }

    /// Results of so many tests, with a row for each kernel that could not be built, or ran with another
    /// preemption model than its own.
    #[must_use]
    pub fn judged(&self, measured: Vec<Kernel>, tests: usize) -> Vec<Kernel> {
        let models: Vec<_> =
            self.ready.iter().filter_map(|ready| Some((ready.name.clone(), ready.model?))).collect();
        let mut kernels: Vec<Kernel> = measured.into_iter().map(|kernel| obedient(kernel, &models)).collect();
        for Unbuilt { at, name, why } in self.unbuilt.iter().cloned() {
            let row = Kernel { name, tests: vec![Err(why); tests] };
            kernels.insert(at.min(kernels.len()), row);
        }
        kernels
    }
}

/// A kernel of this source, which is built where it must be; without a name.
fn ready(source: Source, builder: &mut dyn Builder) -> Result<Ready, BuildError> {
    let plain = |kernel: String| Ready {
        name: String::new(),
        kernel,
        driver: None,
        model: None,
        append: None,
        flag: None,
    };
    match source {
        Source::Given(word) => match OnDriver::parse(&word) {
            Some(on) => {
                let kernel = plain(on.kernel.clone());
                let module = match on.module {
                    Module::There(file) => file,
                    Module::Wanted(wanted) => builder.module(&wanted)?.file,
                };
                Ok(Ready { driver: Some(module), ..kernel })
            }
            None => Ok(plain(word)),
        },
        Source::Preempted(word, model) => Ok(Ready { model: Some(model), ..plain(word) }),
        Source::Flagged(word, flag) => Ok(Ready { flag: Some(flag), ..plain(word) }),
        Source::Built(wanted, append) => {
            Ok(Ready { append, ..plain(format!("built:{}", builder.kernel(&wanted)?.name)) })
        }
    }
}

/// The runs of a kernel if it ran with the preemption model that was asked for; else the reason. A kernel ignores a
/// model that it does not know.
fn obedient(kernel: Kernel, models: &[(String, &'static str)]) -> Kernel {
    let Some((_, model)) = models.iter().find(|(name, _)| *name == kernel.name) else { return kernel };
    let obeyed = |group: Group| {
        let other = group.members.iter().find_map(|member| {
            let kernel = &member.run.host.kernel;
            let in_force = kernel.preemption.as_deref().unwrap_or("an unknown model");
            (in_force != *model)
                .then(|| format!("Linux {} has no preempt={model}: it ran with {in_force}", kernel.release))
        });
        other.map_or(Ok(group), Err)
    };
    Kernel { tests: kernel.tests.into_iter().map(|test| test.and_then(obeyed)).collect(), ..kernel }
}

/// A kernel that could not be built.
#[derive(Clone, Debug)]
struct Unbuilt {
    /// Its place among all.
    at: usize,
    name: String,
    why: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_have_names() {
        let called = |text: &str| named(text).expect("fine");
        assert_eq!(called("6.1"), ("6.1".to_owned(), "6.1".to_owned()));
        assert_eq!(
            called("/b/arch/x86/boot/bzImage"),
            ("bzImage".to_owned(), "/b/arch/x86/boot/bzImage".to_owned())
        );
        assert_eq!(called("plain=built:7.2-c"), ("plain".to_owned(), "built:7.2-c".to_owned()));
        let odd = "built:7.2.13-c-full-hz=250";
        assert_eq!(called(odd), (odd.to_owned(), odd.to_owned()));
        assert_eq!(called(&format!("a={odd}")), ("a".to_owned(), odd.to_owned()));
        assert_eq!(called("/x=y/bzImage"), ("bzImage".to_owned(), "/x=y/bzImage".to_owned()));
        for bad in ["", "=", "a=", "=b"] {
            assert!(named(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_kernel_without_the_model_is_a_row_that_says_so() {
        let ran_with = |model: Option<&str>| {
            let text = include_bytes!("../../../../tests/golden/throughput.json");
            let mut run = record::Run::from_json(text).expect("a record");
            run.host.kernel.preemption = model.map(str::to_owned);
            let member = record::compare::Member { file: String::new(), run };
            let group = Group { name: "none".to_owned(), members: vec![member] };
            let kernel = Kernel { name: "none".to_owned(), tests: vec![Ok(group)] };
            obedient(kernel, &[("none".to_owned(), "none")]).tests.remove(0).err()
        };
        assert_eq!(ran_with(Some("none")), None);
        assert!(ran_with(Some("full")).expect("refused").ends_with("has no preempt=none: it ran with full"));
        assert!(ran_with(None).expect("refused").ends_with("it ran with an unknown model"));
    }

    #[test]
    fn a_test_is_one_line_of_words() {
        assert_eq!(
            words("throughput binder --benchmark_filter='/4$'"),
            Ok(vec!["throughput".to_owned(), "binder".to_owned(), "--benchmark_filter=/4$".to_owned()])
        );
        assert!(words("a\nb").is_err() && words("").is_err() && words("a 'b").is_err());
    }
}
