//! The folder of what a watch caught: one folder per catch, whole and on the disk, within a number per hour and a size.
//! Not here: what is written into one, who locks the folder.
//! Facts: `fsync(2)`: a name is on the disk once its folder is synced.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sys::disk::bytes_below;
use sys::draft::PARTIAL;
use sys::local_time::LocalTime;

const HOUR: Duration = Duration::from_secs(3600);
/// Maximum number of catches of one second.
const MOST_ALIKE: u32 = 1000;

/// The folder, and how often something was caught.
#[derive(Debug)]
pub struct Catches {
    folder: PathBuf,
    most_per_hour: usize,
    keep_bytes: u64,
    /// Time and trigger of each catch of the last hour.
    times: VecDeque<(Instant, String)>,
    left_out: u64,
}

impl Catches {
    /// For this folder, which is there.
    #[must_use]
    pub fn new(folder: &Path, most_per_hour: usize, keep_bytes: u64) -> Self {
        Self { folder: folder.to_owned(), most_per_hour, keep_bytes, times: VecDeque::new(), left_out: 0 }
    }

    /// True if there may be one more catch now. Triggers with one word get half of an hour's catches, so that a frequent fault
    /// leaves room for a rare one.
    pub fn has_room(&mut self, now: Instant, word: &str) -> bool {
        let is_past = |time: &Instant| now.saturating_duration_since(*time) >= HOUR;
        while self.times.front().is_some_and(|(time, _)| is_past(time)) {
            self.times.pop_front();
        }
        let alike = self.times.iter().filter(|(_, other)| other == word).count();
        self.times.len() < self.most_per_hour && alike < self.most_per_hour.div_ceil(2)
    }

    /// [`Self::has_room`] for a catch that is made if so, of the first of these words that has room; otherwise it is counted.
    pub fn admits<'w>(&mut self, now: Instant, mut words: impl Iterator<Item = &'w str>) -> bool {
        let admitted = words.find(|word| self.has_room(now, word)).map(str::to_owned);
        let admits = admitted.is_some();
        match admitted {
            Some(word) => self.times.push_back((now, word)),
            None => self.left_out += 1,
        }
        admits
    }

    /// Number of catches that there were too many of.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Begins a catch. `trigger` is a word for its name.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn begin(&self, at: LocalTime, trigger: &str) -> io::Result<Catch> {
        let is_plain = |letter: &char| letter.is_ascii_alphanumeric() || *letter == '_';
        let name = format!("{}-{}", at.compact(), trigger.chars().filter(is_plain).collect::<String>());
        let numbered = (2..MOST_ALIKE).map(|number| format!("{name}.{number}"));
        for name in std::iter::once(name.clone()).chain(numbered) {
            let (whole, part) = (self.folder.join(&name), self.folder.join(format!("{name}{PARTIAL}")));
            if whole.exists() {
                continue;
            }
            match fs::create_dir(&part) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => return made.map(|()| Catch { part, whole, is_whole: false }),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Deletes the oldest catches until all fit, but never `newest`. Returns the number of deleted ones.
    ///
    /// # Errors
    /// The folder cannot be read, or a catch not be deleted.
    pub fn make_room(&self, newest: &Path) -> io::Result<u64> {
        let mut all = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            if is_catch(&entry.file_name().to_string_lossy()) && entry.file_type()?.is_dir() {
                all.push((entry.path(), bytes_below(&entry.path())?));
            }
        }
        all.sort();
        let mut total: u64 = all.iter().map(|(_, bytes)| bytes).sum();
        let mut deleted = 0;
        for (path, bytes) in all.iter().filter(|(path, _)| path != newest) {
            if total <= self.keep_bytes {
                break;
            }
            fs::remove_dir_all(path)?;
            total -= bytes;
            deleted += 1;
        }
        Ok(deleted)
    }
}

/// True for a name that [`Catches::begin`] gives; others in that folder are left alone.
fn is_catch(name: &str) -> bool {
    let form = b"00000000T000000Z-";
    let fits =
        |(letter, form): (u8, &u8)| if *form == b'0' { letter.is_ascii_digit() } else { letter == *form };
    name.len() > form.len() && name.bytes().zip(form).all(fits)
}

/// A catch under construction; it is deleted on drop if it did not become whole.
#[derive(Debug)]
pub struct Catch {
    part: PathBuf,
    whole: PathBuf,
    is_whole: bool,
}

impl Catch {
    /// The folder of its files until it is whole.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.part
    }

    /// Writes a file; the name may have a folder in front.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, name: &str, content: &[u8]) -> io::Result<()> {
        let path = self.part.join(name);
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        File::create(&path)?.write_all(content)
    }

    /// Syncs everything and gives it its name. Returns the folder.
    ///
    /// # Errors
    /// A file cannot be synced, or the folder not be renamed.
    pub fn finish(mut self) -> io::Result<PathBuf> {
        sync(&self.part)?;
        fs::rename(&self.part, &self.whole)?;
        self.is_whole = true;
        self.whole.parent().map_or(Ok(()), |parent| File::open(parent)?.sync_all())?;
        Ok(self.whole.clone())
    }
}

/// Syncs all files of a folder, and it.
///
/// # Errors
/// One cannot be synced.
fn sync(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => sync(&entry.path())?,
            false => File::open(entry.path())?.sync_all()?,
        }
    }
    File::open(folder)?.sync_all()
}

impl Drop for Catch {
    fn drop(&mut self) {
        if !self.is_whole {
            let _ = fs::remove_dir_all(&self.part);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use sys::private_folder::PrivateFolder;

    use super::*;

    fn at(seconds: u64) -> LocalTime {
        LocalTime::utc(UNIX_EPOCH + Duration::from_secs(seconds))
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a folder").flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn only_so_many_are_admitted_in_an_hour() {
        let mut catches = Catches::new(Path::new("/none"), 2, 0);
        let begin = Instant::now();
        let minute = |number: u64| begin + Duration::from_secs(60 * number);
        let admitted = [0, 30, 31, 59, 60, 89, 90]
            .map(|number| catches.admits(minute(number), ["failed", "dead"].into_iter()));
        assert_eq!(admitted, [true, true, false, false, true, false, true]);
        assert_eq!(catches.left_out(), 3);
        assert!(!Catches::new(Path::new("/none"), 0, 0).admits(begin, ["dead"].into_iter()));
    }

    #[test]
    fn a_catch_is_whole_or_not_there() {
        let folder = PrivateFolder::new("catches").expect("a folder");
        let catches = Catches::new(folder.path(), 1, 0);
        drop(catches.begin(at(0), "p99").expect("begun"));
        assert!(names(folder.path()).is_empty());
        for _ in 0..2 {
            let catch = catches.begin(at(86_400), "../p99 x").expect("begun");
            catch.write("before/state", b"text").expect("written");
            assert!(
                catch.folder().ends_with("19700102T000000Z-p99x.partial")
                    || catch.folder().ends_with("19700102T000000Z-p99x.2.partial")
            );
            let whole = catch.finish().expect("whole");
            assert_eq!(fs::read(whole.join("before/state")).expect("a file"), b"text");
        }
        assert_eq!(names(folder.path()), ["19700102T000000Z-p99x", "19700102T000000Z-p99x.2"]);
    }

    #[test]
    fn the_oldest_leave_and_what_is_no_catch_stays() {
        let folder = PrivateFolder::new("catches").expect("a folder");
        let catches = Catches::new(folder.path(), 9, 250);
        let kept = |seconds| {
            let catch = catches.begin(at(seconds), "x").expect("begun");
            catch.write("y", &[0; 100]).expect("written");
            catch.finish().expect("whole")
        };
        fs::create_dir(folder.path().join("mine")).expect("made");
        fs::write(folder.path().join("mine/z"), [0; 1000]).expect("written");
        kept(0);
        assert_eq!(catches.make_room(&kept(1)).expect("room"), 0);
        assert_eq!(catches.make_room(&kept(2)).expect("room"), 1);
        assert_eq!(names(folder.path()), ["19700101T000001Z-x", "19700101T000002Z-x", "mine"]);
        // A clock that was set back makes the newest the first by name.
        let newest = catches.begin(at(0), "x").expect("begun");
        newest.write("y", &[0; 300]).expect("written");
        assert_eq!(catches.make_room(&newest.finish().expect("whole")).expect("room"), 2);
        assert_eq!(names(folder.path()), ["19700101T000000Z-x", "mine"]);
    }
}
