//! What a hostile machine sends, and what becomes of it here.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use sys::private_folder::PrivateFolder;

use super::*;

/// A folder with the user's `here` and with `else`, which nothing may change.
struct Desk(PrivateFolder);

impl Desk {
    fn new(name: &str) -> Self {
        let private = PrivateFolder::new(name).expect("made");
        let folder = private.path();
        fs::create_dir_all(folder.join("else")).expect("made");
        fs::write(folder.join("else/kept"), "kept").expect("written");
        fs::create_dir(folder.join("here")).expect("made");
        Self(private)
    }

    fn here(&self, path: &str) -> PathBuf {
        self.0.path().join("here").join(path)
    }

    /// Takes a file into `here`.
    fn take(&self, arrivals: &mut Arrivals, name: &str, content: &str) -> Result<(), IntakeError> {
        let root = self.here("");
        let mut place = |name: &Name| Ok(Place::below(&root, name));
        arrivals.begin(name, 0o4777, Some(content.len() as u64), &mut place)?;
        arrivals.append(content.as_bytes())
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.here("")).expect("there").flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// Nothing happened outside.
    fn is_intact(&self) -> bool {
        fs::read_to_string(self.0.path().join("else/kept")).is_ok_and(|text| text == "kept")
            && fs::read_dir(self.0.path().join("else")).is_ok_and(|entries| entries.count() == 1)
    }
}

#[test]
fn files_are_whole_and_inside() {
    let desk = Desk::new("whole");
    let mut arrivals = Arrivals::new(Limits::USUAL);
    let root = desk.here("");
    let mut place = |name: &Name| Ok(Place::below(&root, name));
    arrivals.begin("a/b.txt", 0o4755, Some(7), &mut place).expect("inside");
    arrivals.append(b"one ").expect("written");
    assert!(!desk.here("a/b.txt").exists());
    arrivals.append(b"two").expect("written");
    assert_eq!(fs::read_to_string(desk.here("a/b.txt")).expect("whole"), "one two");
    let mode = fs::metadata(desk.here("a/b.txt")).expect("there").permissions().mode();
    assert_eq!(mode & 0o7000, 0, "a program of another machine is nobody's here");
    arrivals.begin("empty", 0o644, Some(0), &mut place).expect("inside");
    arrivals.folder("c/d", &mut place).expect("inside");
    arrivals.begin("until", 0o644, None, &mut place).expect("inside");
    arrivals.append(b"x").expect("written");
    arrivals.end().expect("whole");
    arrivals.begin("cut", 0o644, Some(9), &mut place).expect("inside");
    arrivals.append(b"x").expect("written");
    let (written, refused) = arrivals.into_parts();
    assert_eq!(written, [desk.here("a/b.txt"), desk.here("empty"), desk.here("until")]);
    assert!(refused.is_empty());
    assert_eq!(desk.names(), ["a", "c", "empty", "until"], "no part is left");
}

#[test]
fn names_that_lead_out_or_hide_are_passed_over() {
    let desk = Desk::new("names");
    let mut arrivals = Arrivals::new(Limits::USUAL);
    for name in
        ["../else/new", "/tmp/x", "a/../../else/new", ".bashrc", "a/.git/hooks/pre-commit", "a\u{1b}", ""]
    {
        desk.take(&mut arrivals, name, "planted").expect("passed over");
    }
    desk.take(&mut arrivals, "r.json", "{}").expect("the others come");
    let (written, refused) = arrivals.into_parts();
    assert_eq!((written.len(), refused.len()), (1, 7));
    assert!(refused[5].contains("\\u{1b}") && !refused[5].contains('\u{1b}'), "{refused:?}");
    assert_eq!(desk.names(), ["r.json"]);
    assert!(desk.is_intact());
}

#[test]
fn links_on_the_way_are_not_followed() {
    let desk = Desk::new("links");
    symlink(desk.0.path().join("else"), desk.here("way")).expect("a link");
    symlink(desk.0.path().join("else/kept"), desk.here("end")).expect("a link");
    let mut arrivals = Arrivals::new(Limits::USUAL);
    let why = desk.take(&mut arrivals, "way/kept", "planted").expect_err("a link");
    assert!(matches!(&why, IntakeError::Here { .. }), "{why}");
    desk.take(&mut arrivals, "end", "new").expect("the link is replaced");
    assert_eq!(fs::read_to_string(desk.here("end")).expect("a file"), "new");
    assert!(desk.is_intact());
}

#[test]
fn number_size_and_output_have_limits() {
    let desk = Desk::new("limits");
    let limits = Limits { entries: 3, bytes: 10, output: 5 };
    let mut arrivals = Arrivals::new(limits);
    let why = desk.take(&mut arrivals, "large", "more than ten bytes").expect_err("too large");
    assert!(matches!(why, IntakeError::Bytes(10)), "{why}");
    assert!(desk.names().is_empty(), "refused by its length, before its first byte");
    let mut arrivals = Arrivals::new(limits);
    let root = desk.here("");
    let mut place = |name: &Name| Ok(Place::below(&root, name));
    arrivals.begin("unknown", 0o644, None, &mut place).expect("begun");
    arrivals.append(b"12345678").expect("enough room");
    assert!(matches!(arrivals.append(b"90ab"), Err(IntakeError::Bytes(10))));
    let mut arrivals = Arrivals::new(limits);
    for name in ["a", "..", "b"] {
        desk.take(&mut arrivals, name, "x").expect("few");
    }
    assert!(matches!(desk.take(&mut arrivals, "c", "x"), Err(IntakeError::Entries(3))));
    assert!(limits.check_output(5).is_ok() && limits.check_output(6).is_err());
}
