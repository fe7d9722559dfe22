//! This program as guests of another architecture need it.
//! Not here: building it (`make release`), checking it (`elf`).

use std::path::{Path, PathBuf};

use super::arch::Arch;
use super::error::VmError;

/// The file of this program for an architecture: this one, or one that stands where `make release` and cargo put it.
///
/// # Errors
/// [`VmError::NoProgram`]: it is in none of these places.
pub(super) fn of(own: &Path, arch: Arch) -> Result<PathBuf, VmError> {
    if arch.runs_this_program() {
        return Ok(own.to_path_buf());
    }
    let places = places(own, arch);
    let found = places.iter().find(|path| path.is_file()).cloned();
    found.ok_or(VmError::NoProgram { arch, target: arch.facts().target, looked: places })
}

/// Where the program for another architecture may be: beside this one, in cargo's folder of its target, built in the
/// same way, or built for release.
fn places(own: &Path, arch: Arch) -> Vec<PathBuf> {
    let facts = arch.facts();
    let folder = own.parent().unwrap_or(Path::new("."));
    let mut places = vec![folder.join(format!("binderperf-{}", facts.rust))];
    let way = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    // target/HOST/debug/binderperf, or target/HOST/debug/deps/TEST.
    if let Some(targets) = folder.parent().and_then(Path::parent)
        && ["debug", "release"].contains(&way)
    {
        let built = |way: &str| targets.join(facts.target).join(way).join("binderperf");
        places.extend([built(way), built("release")]);
        places.dedup();
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use driver::root::Fixture;

    fn other() -> Arch {
        Arch::ALL.into_iter().find(|arch| !arch.runs_this_program()).expect("there are two")
    }

    #[test]
    fn the_program_of_another_architecture_is_found_beside_this_one_or_where_cargo_builds_it() {
        let root = Fixture::new("program-places", &[("target/host/debug/binderperf", "")]);
        let own = root.path().join("target/host/debug/binderperf");
        assert_eq!(of(&own, Arch::own()).expect("this one"), own);
        let error = of(&own, other()).expect_err("nowhere").to_string();
        assert!(error.contains("make release") && error.contains(other().facts().target), "{error}");
        let released = format!("target/{}/release/binderperf", other().facts().target);
        root.put(&released, "");
        assert_eq!(of(&own, other()).expect("cargo's"), root.path().join(released));
        let beside = format!("target/host/debug/binderperf-{}", other().facts().rust);
        root.put(&beside, "");
        assert_eq!(of(&own, other()).expect("beside"), root.path().join(beside));
    }
}
