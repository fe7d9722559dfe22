//! The calls of a build script.

use std::path::{Path, PathBuf};

use crate::emit::emit;
use crate::error::{Error, Source};
use crate::program::Program;

/// The `.aidl` files that become one file of Rust.
///
/// The files that they import, or mean by a name of their own package, are read as well; `include` says where these are.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Build {
    includes: Vec<PathBuf>,
    files: Vec<PathBuf>,
}

impl Build {
    /// No files yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a folder of packages: `a.b.IFoo` is looked for in `a/b/IFoo.aidl` below it.
    pub fn include(mut self, folder: impl Into<PathBuf>) -> Self {
        self.includes.push(folder.into());
        self
    }

    /// Adds a file.
    pub fn file(mut self, path: impl Into<PathBuf>) -> Self {
        self.files.push(path.into());
        self
    }

    /// Makes the Rust.
    ///
    /// # Errors
    /// A file cannot be read or is wrong; each fault has its place.
    pub fn generate(&self) -> Result<String, Error> {
        self.made().map(|(text, _)| text)
    }

    /// Makes the Rust in cargo's `OUT_DIR`, for `include!(concat!(env!("OUT_DIR"), "/NAME"))`, and has cargo run the build script
    /// again when one of the files changes.
    ///
    /// # Errors
    /// A file cannot be read or is wrong; each fault has its place. The output cannot be written.
    pub fn write(&self, name: &str) -> Result<(), Error> {
        // Before the first fault, so that cargo tries again when a file is mended.
        for path in self.files.iter().chain(&self.includes) {
            println!("cargo::rerun-if-changed={}", path.display());
        }
        let (text, sources) = self.made()?;
        for source in &sources {
            println!("cargo::rerun-if-changed={}", source.path);
        }
        let folder = std::env::var_os("OUT_DIR")
            .ok_or_else(|| Error::plain("no OUT_DIR; call this in a build script".to_owned()))?;
        let path = Path::new(&folder).join(name);
        std::fs::write(&path, text).map_err(|error| Error::plain(format!("{}: {error}", path.display())))
    }

    fn made(&self) -> Result<(String, Vec<Source>), Error> {
        let sources = self.files.iter().map(|path| read(path)).collect::<Result<Vec<_>, Error>>()?;
        let find = |name: &[String]| {
            let relative = format!("{}.aidl", name.join("/"));
            let mut paths = self.includes.iter().map(|folder| folder.join(&relative));
            paths.find(|path| path.is_file()).map(|path| read(&path)).transpose()
        };
        make(sources, find)
    }
}

fn read(path: &Path) -> Result<Source, Error> {
    let contents = std::fs::read_to_string(path).and_then(|text| Ok((path.canonicalize()?, text)));
    match contents {
        Ok((identity, text)) => Ok(Source { path: path.display().to_string(), identity, text }),
        Err(error) => Err(Error::plain(format!("{}: {error}", path.display()))),
    }
}

/// Makes the Rust of sources and of what they need, and returns all that were read.
pub(crate) fn make(
    sources: Vec<Source>,
    find: impl FnMut(&[String]) -> Result<Option<Source>, Error>,
) -> Result<(String, Vec<Source>), Error> {
    let mut program = Program::read(sources, find)?;
    let faults = std::mem::take(&mut program.faults);
    if !faults.is_empty() {
        return Err(Error::of(faults, &program.sources));
    }
    let rust = emit(&program).map_err(|faults| Error::of(faults, &program.sources))?;
    let paths: Vec<&str> = program.sources.iter().map(|source| source.path.as_str()).collect();
    Ok((
        format!("// Made by binderperf-aidl; edit its sources instead: {}\n\n{rust}", paths.join(", ")),
        program.sources,
    ))
}

/// Makes the Rust of one text, for tests and fuzzing.
///
/// # Errors
/// It is wrong.
#[doc(hidden)]
pub fn generate_from_text(name: &str, text: &str) -> Result<String, Error> {
    make(vec![Source { path: name.to_owned(), identity: name.into(), text: text.to_owned() }], |_| Ok(None))
        .map(|(text, _)| text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `tests/aidl/golden.rs` compiles this output and calls it.
    #[test]
    fn every_construct_becomes_the_rust_on_record() {
        let build = Build::new().include("tests/aidl").file("tests/aidl/example/IEcho.aidl");
        let made = build.generate().unwrap_or_else(|error| panic!("{error}"));
        let path = "tests/aidl/every.golden";
        if std::env::var_os("BINDERPERF_GOLDEN").is_some_and(|value| value == "write") {
            std::fs::write(path, &made).expect("it can be written");
        }
        let want = std::fs::read_to_string(path).expect("it is there");
        assert_eq!(
            made, want,
            "BINDERPERF_GOLDEN=write cargo test -p binderperf-aidl --lib writes {path} anew"
        );
    }

    #[test]
    fn a_file_is_the_same_however_its_path_is_written() {
        let paths = ["tests/aidl/example/IEcho.aidl", "tests/aidl/example/../example/Point.aidl"];
        let build = Build::new().include("tests/../tests/aidl").file(paths[0]).file(paths[1]);
        let made = build.generate().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(made.matches("pub struct Point = ").count(), 1);
    }

    #[test]
    fn what_is_missing_is_named() {
        let error = Build::new().file("nowhere.aidl").generate().expect_err("it is not there");
        assert!(error.to_string().starts_with("nowhere.aidl: No such file"), "{error}");
        let error = Build::new().file("tests/aidl/example/IEcho.aidl").generate().expect_err("no folder");
        let want = "tests/aidl/example/IEcho.aidl:6:8: `example.parts.Colour` is not found; add the folder that has \
                    example/parts/Colour.aidl by `include`";
        assert!(error.to_string().contains(want), "{error}");
        assert_eq!(format!("{error:?}"), format!("\n{error}"), "cargo shows a build script's error by Debug");
    }
}
