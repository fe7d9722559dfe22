//! A built kernel's recipe, kept beside it: from what, with what, and how it differs from the usual kernel.
//! Not here: the cache (`kernel::cache`).

use std::io;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::config::Fragment;
use super::name::hash;
use super::options::{Setting, Wanted};
use super::source::Source;
use super::tools::Builder;

/// The file beside the image.
pub(super) const FILE: &str = "build.json";

/// The ingredients of a kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Recipe {
    /// The source as the user gave it.
    pub(super) source: String,
    /// The source itself.
    id: String,
    mark: Option<String>,
    version: String,
    pub(super) driver: String,
    pub(super) arch: String,
    /// Who built: `gcc`, `llvm` or `debian-llvm`.
    pub(super) tools: String,
    /// The patches' files.
    pub(super) patches: Vec<String>,
    patches_hash: String,
    /// All options that were asked of Kconfig.
    options: Vec<String>,
    /// Options that the usual kernel of this driver and architecture has not; `-LINE`: what only that one has.
    pub(super) differs: Vec<String>,
    /// Time of the build in seconds.
    #[serde(default)]
    pub(super) seconds: u64,
}

impl Recipe {
    /// The recipe of a kernel that is to be built.
    pub(super) fn of(
        wanted: &Wanted,
        source: &Source,
        builder: Builder,
        patches: &[Vec<u8>],
        fragment: &Fragment,
    ) -> Self {
        let none: Vec<Setting> = Vec::new();
        let usual = Wanted { preempt: None, checks: Vec::new(), settings: none, ..wanted.clone() };
        Self {
            source: wanted.source.clone(),
            id: source.id.clone(),
            mark: source.mark.clone(),
            version: source.version.clone(),
            driver: wanted.driver.to_string(),
            arch: wanted.arch.to_string(),
            tools: builder.word(),
            patches: wanted.patches.iter().map(|file| file.display().to_string()).collect(),
            patches_hash: hash(patches.iter().map(Vec::as_slice)),
            options: fragment.entries.iter().map(super::config::Entry::line).collect(),
            differs: fragment.beyond(&Fragment::of(&usual, "")),
            seconds: 0,
        }
    }

    /// The recipe beside an image.
    pub(super) fn read(place: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(place.join(FILE)).ok()?).ok()
    }

    /// Whether the kernel in a folder has this recipe, in whatever words source and patches were given.
    pub(super) fn is_of(&self, place: &Path) -> bool {
        let Some(found) = Self::read(place) else { return false };
        let source = self.source.clone();
        Self { seconds: 0, source, patches: self.patches.clone(), ..found } == *self
    }

    /// The file's text for a build that took this long.
    pub(super) fn text(&self, took: Duration) -> io::Result<String> {
        Ok(serde_json::to_string_pretty(&Self { seconds: took.as_secs(), ..self.clone() })?)
    }
}
