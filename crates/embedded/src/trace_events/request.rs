//! Request for trace events: by the environment, or by an announcement for all processes of the user.
//! Not here: writing them (`super`).

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::{Amount, MARKER};
use crate::directory;
use driver::error::OpenError;

/// Environment variable with a tracefs directory, of an instance or the top level. Empty: no marks, even if
/// announced.
pub const TRACING: &str = "BINDERPERF_TRACING";

/// Environment variable with the tracefs directory for marks, where that is not the one of [`TRACING`].
pub const MARKS: &str = "BINDERPERF_MARKS";

/// Name of the announcement's file in the user's directory.
const FILE: &str = "tracing";

/// Longest path that is accepted.
const LONGEST: u64 = 4096;

/// End of an announcement that asks for [`Amount::Figures`]; no path has a NUL.
const FIGURES: &[u8] = b"\0figures";

/// Makes every process of this user that opens an embedded context, in any directory, write these marks into this tracefs
/// directory, until [`withdraw`]. [`Amount::CallsOnly`] cannot be announced, and means [`Amount::Figures`].
///
/// # Errors
/// The directory accepts no marks, or the user's directory cannot be used.
pub fn announce(folder: &Path, amount: Amount) -> Result<(), OpenError> {
    announce_in(&directory::of_user(), folder, amount)
}

fn os(path: &Path, call: &'static str) -> impl FnOnce(io::Error) -> OpenError {
    let path = path.to_owned();
    move |source| OpenError::Os { path, call, source }
}

fn announce_in(place: &Path, folder: &Path, amount: Amount) -> Result<(), OpenError> {
    let marker = folder.join(MARKER);
    File::options().write(true).open(&marker).map_err(os(&marker, "opening the marker of a trace"))?;
    if let Some(parent) = place.parent() {
        fs::create_dir_all(parent).map_err(os(parent, "making the directory for the announcement"))?;
    }
    let there = directory::ensure(place)?;
    let end = if amount == Amount::All { &[][..] } else { FIGURES };
    let text = [folder.as_os_str().as_bytes(), end].concat();
    there.replace_file(OsStr::new(FILE), &text, 0o600).map_err(os(&place.join(FILE), "announcing a trace"))
}

/// Withdraws an announcement. Processes that have opened a context keep writing marks, which are lost once tracing
/// is off.
///
/// # Errors
/// The file cannot be removed; a missing file is no error, nor a directory that is not this user's alone.
pub fn withdraw() -> io::Result<()> {
    let Ok(Some(place)) = directory::opened(&directory::of_user()) else { return Ok(()) };
    match place.remove_file(OsStr::new(FILE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// The tracefs directory for a process that opens a context now, if any.
#[must_use]
pub fn requested() -> Option<PathBuf> {
    wanted().map(|(folder, _)| folder)
}

/// Tracefs directory that is requested, and which marks are wanted.
pub(super) fn wanted() -> Option<(PathBuf, Amount)> {
    if let Some(folder) = marks() {
        return Some((folder, Amount::All));
    }
    match std::env::var_os(TRACING) {
        Some(folder) => (!folder.is_empty()).then(|| (folder.into(), Amount::All)),
        None => announced_in(&directory::of_user()),
    }
}

/// The tracefs directory of [`MARKS`], if any.
#[must_use]
pub fn marks() -> Option<PathBuf> {
    std::env::var_os(MARKS).filter(|folder| !folder.is_empty()).map(PathBuf::from)
}

/// The announced directory, if the file belongs to this user alone and the directory still exists.
fn announced_in(place: &Path) -> Option<(PathBuf, Amount)> {
    let place = directory::opened(place).ok()??;
    let file = place.read_file(OsStr::new(FILE)).ok()?;
    let found = file.metadata().ok()?;
    if found.uid() != sys::identity::effective_uid() || found.mode() & 0o022 != 0 {
        return None;
    }
    let mut folder = Vec::new();
    file.take(LONGEST).read_to_end(&mut folder).ok()?;
    let (end, amount) = match folder.ends_with(FIGURES) {
        true => (folder.len() - FIGURES.len(), Amount::Figures),
        false => (folder.len(), Amount::All),
    };
    folder.truncate(end);
    let folder = PathBuf::from(OsString::from_vec(folder));
    // The announcement may be left over from a trace whose instance was removed.
    (folder.is_absolute() && folder.join(MARKER).is_file()).then_some((folder, amount))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn an_announcement_counts_if_it_is_this_users_own_and_stands() {
        let own = sys::private_folder::PrivateFolder::new("announced").expect("a directory");
        let (place, folder) = (own.path().to_owned(), own.path().join("instance"));
        fs::create_dir(&folder).expect("a folder");
        let write = |text: &[u8]| fs::write(place.join(FILE), text).expect("a file");
        let mode = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("one's own");
        };
        assert_eq!(announced_in(&place), None, "nothing announced");
        let refused = announce_in(&place, &folder, Amount::All).expect_err("no marker there");
        assert!(refused.to_string().contains("opening the marker of a trace"), "{refused}");
        fs::write(folder.join(MARKER), "").expect("a marker");
        for amount in [Amount::Figures, Amount::All] {
            announce_in(&place, &folder, amount).expect("a marker and a directory");
            assert_eq!(announced_in(&place), Some((folder.clone(), amount)));
        }
        fs::remove_file(folder.join(MARKER)).expect("there");
        assert_eq!(announced_in(&place), None, "no marker there any more: it is over");
        fs::write(folder.join(MARKER), "").expect("a marker");
        mode(&place.join(FILE), 0o622);
        assert_eq!(announced_in(&place), None, "others may have written it");
        mode(&place.join(FILE), 0o600);
        mode(&place, 0o755);
        assert_eq!(announced_in(&place), None, "others can reach into the directory");
        mode(&place, 0o700);
        write(b"instance");
        assert_eq!(announced_in(&place), None, "no whole path");
        fs::remove_file(place.join(FILE)).expect("there");
        sys::kernel::make_fifo(&place.join(FILE)).expect("made");
        assert_eq!(announced_in(&place), None, "a FIFO is not waited for");
    }
}
