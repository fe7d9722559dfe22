//! A command on "another machine" that is a shell of this one, in a temporary folder; programs are scripts.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;

use sys::private_folder::PrivateFolder;

use needs::{Lack, Need, need};

use super::*;

/// Each shell that phones and boards have.
const SHELLS: [&[&str]; 3] = [&["sh"], &["mksh"], &["busybox", "sh"]];

/// The other machine's folder, and this one's.
struct Desk {
    folder: PrivateFolder,
    out: Vec<u8>,
    err: Vec<u8>,
    notes: Vec<String>,
    is_read: bool,
}

impl Desk {
    fn new() -> Self {
        let folder = PrivateFolder::new("on").expect("a folder");
        fs::create_dir_all(folder.path().join("there")).expect("a folder");
        Self { folder, out: Vec::new(), err: Vec::new(), notes: Vec::new(), is_read: true }
    }

    fn program(&self, text: &str) -> PathBuf {
        let path = self.folder.path().join("program");
        let text = format!("#!/bin/sh\n[ \"$1\" = --version ] && exit 0\n{text}\n");
        fs::write(&path, text).expect("written");
        path
    }

    fn device(&self, shell: &'static [&'static str]) -> Device {
        let there = self.folder.path().join("there").display().to_string();
        let patience = Duration::from_secs(20);
        Device { bases: vec![there], ..Device::new(Link::shell(shell), "a shell".to_owned(), patience) }
    }

    fn run(&mut self, shell: &'static [&'static str], text: &str, job: &Job) -> Result<Outcome, RemoteError> {
        let mut device = self.device(shell);
        device.probe()?;
        let program = self.program(text);
        device.work(job, &program, self)
    }

    /// Content of the user's folder on the other machine.
    fn left(&self) -> Vec<String> {
        let home = fs::read_dir(self.folder.path().join("there"))
            .expect("there")
            .flatten()
            .next()
            .expect("the home");
        let mut names: Vec<String> = fs::read_dir(home.path())
            .expect("listed")
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

impl Sinks for Desk {
    fn stdout(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.extend_from_slice(bytes);
        if self.is_read { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
    }
    fn stderr(&mut self, bytes: &[u8]) {
        self.err.extend_from_slice(bytes);
    }
    fn progress(&mut self, _text: &str) {}
    fn note(&mut self, text: &str) {
        self.notes.push(text.to_owned());
    }
    fn place(&mut self, name: &Name) -> io::Result<Place> {
        Ok(Place::below(&self.folder.path().join("here"), name))
    }
}

fn words(words: &[&str]) -> Job {
    Job { words: words.iter().map(|word| (*word).to_owned()).collect(), ..Job::default() }
}

#[test]
fn what_a_line_announces_is_fetched_while_the_command_runs() {
    for shell in SHELLS {
        let mut desk = Desk::new();
        let here = desk.folder.path().join("here/out/one/file").display().to_string();
        let job = Job { announces: true, variables: vec![("HERE".to_owned(), here.clone())], ..words(&[]) };
        let text = "mkdir -p out/one other; echo y > out/one/file; echo z > other/file; echo 'caught it: out/one'; tries=0; \
                    until [ -s \"$HERE\" ]; do [ $tries -lt 1200 ] || exit 9; tries=$((tries + 1)); sleep 0.1; done; \
                    [ ! -e \"${HERE%/out/one/file}/other\" ] || exit 8; echo caught";
        let outcome = desk.run(shell, text, &job).expect("it runs");
        assert_eq!(outcome.status, 0, "{shell:?}");
        assert_eq!(fs::read(here).expect("fetched"), b"y\n");
        assert_eq!(outcome.files.len(), 2, "at the end all come");
    }
}

#[test]
fn a_command_runs_with_its_words_and_leaves_its_files() {
    for shell in SHELLS {
        let mut desk = Desk::new();
        let job = Job {
            variables: vec![("VALUE".to_owned(), "x 'y'".to_owned())],
            folders: vec!["deep/er".to_owned()],
            ..words(&["a b", "it's", "$HOME", "*", ""])
        };
        let text = "printf '<%s>' \"$@\" \"$VALUE\"; echo said >&2; printf 'a\\0b' > 'deep/er/f i'; echo x > plain; mkdir empty; exit 7";
        let outcome = desk.run(shell, text, &job).expect("it runs");
        assert_eq!(String::from_utf8_lossy(&desk.out), "<a b><it's><$HOME><*><><x 'y'>", "{shell:?}");
        assert_eq!((outcome.status, &desk.err[..], outcome.full), (7, &b"said\n"[..], None));
        assert_eq!(fs::read(desk.folder.path().join("here/deep/er/f i")).expect("fetched"), b"a\0b");
        assert_eq!(outcome.files.len(), 2);
        assert!(desk.folder.path().join("here/empty").is_dir());
        let left = desk.left();
        assert!(left.len() == 1 && left[0].starts_with("bin-"), "{left:?}");
        // The program is there, and is not pushed again.
        let mut device = desk.device(shell);
        device.probe().expect("there");
        let program = desk.program(text);
        let home = device.home.clone();
        let before = fs::metadata(format!("{home}/{}", left[0])).expect("there").permissions();
        fs::set_permissions(format!("{home}/{}", left[0]), fs::Permissions::from_mode(0o500)).expect("set");
        device.work(&job, &program, &mut desk).expect("it runs");
        let after = fs::metadata(format!("{home}/{}", left[0])).expect("there").permissions();
        assert_eq!((before.mode() & 0o777, after.mode() & 0o777), (0o700, 0o500), "{shell:?}");
    }
}

#[test]
fn a_part_of_a_program_is_pushed_again() {
    let mut desk = Desk::new();
    desk.run(&["sh"], "echo one", &words(&[])).expect("it runs");
    let mut device = desk.device(&["sh"]);
    device.probe().expect("there");
    let file = format!("{}/{}", device.home, desk.left()[0]);
    fs::write(&file, "#!/bin/sh\n").expect("cut");
    assert_eq!(desk.run(&["sh"], "echo one", &words(&[])).expect("it runs").status, 0);
    assert_eq!(desk.out, b"one\none\n");
}

#[test]
fn output_is_whole_however_often_the_connection_is_cut() {
    for shell in [
        &["timeout", "-s", "KILL", "0.7", "sh"][..],
        &["timeout", "-s", "KILL", "0.7", "mksh"],
        &["timeout", "-s", "KILL", "0.7", "busybox", "sh"],
    ] {
        let mut desk = Desk::new();
        let text = "for i in 1 2 3 4 5 6 7 8; do echo $i; echo e$i >&2; sleep 0.2; done; echo r > r; exit 5";
        let outcome = desk.run(shell, text, &words(&[])).expect("it runs");
        assert_eq!(String::from_utf8_lossy(&desk.out), "1\n2\n3\n4\n5\n6\n7\n8\n", "{shell:?}");
        assert_eq!((outcome.status, outcome.files.len()), (5, 1));
        assert!(desk.notes.iter().any(|note| note.contains("was lost")), "{:?}", desk.notes);
        assert_eq!(desk.left().len(), 1);
    }
}

#[test]
fn much_output_and_large_files_come_back() {
    let mut desk = Desk::new();
    let text =
        "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done; head -c 3000000 /dev/zero > big";
    let outcome = desk.run(&["sh"], text, &words(&[])).expect("it runs");
    assert_eq!(desk.out.iter().filter(|byte| **byte == b'\n').count(), 20_000);
    assert_eq!(fs::metadata(&outcome.files[0]).expect("there").len(), 3_000_000);
}

#[test]
fn a_machine_that_does_not_come_back_is_given_up_and_keeps_the_results() {
    let mut desk = Desk::new();
    let mut device = Device { patience: Duration::from_millis(10), ..desk.device(&["sh"]) };
    device.probe().expect("there");
    let program = desk.program("sleep 0.5; echo done");
    device.started(&words(&[]), &program, &mut desk).expect("started");
    device.link = Link::shell(&["sh", "-c", "echo error: device offline >&2; exit 1"]);
    let why = device.follow(&Job::default(), &mut desk).expect_err("gone");
    let folder = device.folder();
    assert!(matches!(&why, RemoteError::Lost { folder: at, .. } if *at == folder), "{why}");
    assert!(desk.notes.iter().any(|note| note.contains("was last heard of at 20")), "{:?}", desk.notes);
    assert!(why.exit_code() == 3 && why.to_string().contains("device offline"), "{why}");
    // And when it is there again, so are they.
    device.link = Link::shell(&["sh"]);
    assert_eq!(device.follow(&Job::default(), &mut desk).expect("there").0, "0");
    assert_eq!(desk.out, b"done\n");
}

#[test]
fn a_command_that_vanishes_is_told() {
    let mut desk = Desk::new();
    let text = "kill -9 $(cat ../pid | cut -d' ' -f1); sleep 0.2";
    let why = desk.run(&["sh"], text, &words(&[])).expect_err("no status");
    assert!(matches!(why, RemoteError::Died { .. }), "{why}");
}

#[test]
fn nobody_who_reads_stops_the_command() {
    let mut desk = Desk::new();
    desk.is_read = false;
    // A shell's background jobs ignore SIGINT, and a script cannot change that: perl can.
    let text =
        "exec perl -e '$SIG{INT} = sub { open F, q(>), q(told); exit 9 }; $| = 1; print qq(x\\n); sleep 100'";
    let outcome = desk.run(&["sh"], text, &words(&[])).expect("stopped");
    assert_eq!((outcome.status, outcome.files.len()), (0, 1));
}

#[test]
fn folders_that_do_not_do_are_named() {
    let mut desk = Desk::new();
    let missing = desk.folder.path().join("missing").display().to_string();
    let there = desk.folder.path().join("there").display().to_string();
    let mut device = Device { bases: vec![missing.clone()], ..desk.device(&["sh"]) };
    let why = device.probe().expect_err("none").to_string();
    assert!(why.contains(&missing), "{why}");
    // Another user could have put something there.
    let uid = sys::identity::effective_uid();
    std::os::unix::fs::symlink("/", format!("{there}/binderperf-on-{uid}")).expect("a link");
    for shell in SHELLS {
        let why = desk.device(shell).probe().expect_err("a link").to_string();
        assert!(why.contains("not this user's"), "{why}");
    }
    fs::remove_file(format!("{there}/binderperf-on-{uid}")).expect("removed");
    fs::create_dir_all(format!("{there}/a b")).expect("made");
    let bases = vec![format!("{there}/a b"), there.clone()];
    let mut device = Device { bases, ..desk.device(&["sh"]) };
    device.probe().expect("the second one");
    assert!(device.home.starts_with(&format!("{there}/binderperf-on-")), "{}", device.home);
    assert_eq!(desk.run(&["sh"], "true", &words(&[])).expect("runs").status, 0);
}

#[test]
fn a_program_that_does_not_run_there_is_told_and_removed() {
    let mut desk = Desk::new();
    let mut device = desk.device(&["sh"]);
    device.probe().expect("there");
    let program = desk.folder.path().join("program");
    fs::write(&program, "#!/nonexistent/interpreter\n").expect("written");
    let why = device.work(&words(&[]), &program, &mut desk).expect_err("no such interpreter");
    assert!(matches!(&why, RemoteError::Refused { kind: Refusal::Program, .. }), "{why}");
    assert_eq!((why.exit_code(), desk.left().len()), (3, 0));
}

/// A file system with this room below a name, unmounted on drop.
struct Mounted(PathBuf);

impl Mounted {
    fn new(desk: &Desk, options: &str) -> Result<Self, Lack> {
        let place = desk.folder.path().join("there");
        let words = ["-t", "tmpfs", "-o", options, "tmpfs"];
        let mounted = std::process::Command::new("mount").args(words).arg(&place).output().expect("mount");
        let why = String::from_utf8_lossy(&mounted.stderr);
        Need::Mount.met_if(mounted.status.success(), why)?;
        Ok(Self(place))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_is_told_wherever_it_fills() {
    for shell in SHELLS {
        let mut desk = Desk::new();
        let _disk = need!(Mounted::new(&desk, "size=64k"));
        let program = desk.program(&format!("exit 0\n#{}", "x".repeat(200_000)));
        let mut device = desk.device(shell);
        device.probe().expect("there");
        let why = device.work(&words(&[]), &program, &mut desk).expect_err("too large");
        assert!(matches!(&why, RemoteError::Refused { kind: Refusal::Space, .. }), "{shell:?} {why}");
        assert_eq!(desk.left().len(), 0, "{shell:?}");
        let text = "head -c 100000 /dev/zero > big && exit 0; echo no room >&2; exit 4";
        let outcome = desk.run(shell, text, &words(&[])).expect("it runs");
        assert_eq!((outcome.status, outcome.full.is_some()), (4, true), "{shell:?} {:?}", desk.err);
        assert_eq!(desk.left().len(), 1);
    }
}

#[test]
fn a_folder_without_permission_to_execute_is_told() {
    for shell in SHELLS {
        let desk = Desk::new();
        let _disk = need!(Mounted::new(&desk, "noexec"));
        let why = desk.device(shell).probe().expect_err("noexec").to_string();
        assert!(why.contains("is mounted noexec") && why.contains("TMPDIR"), "{shell:?} {why}");
    }
}

#[test]
fn two_desks_at_once_do_not_meet() {
    let shared = Desk::new();
    let there = shared.folder.path().join("there").display().to_string();
    let threads: Vec<_> = (0..2)
        .map(|number| {
            let there = there.clone();
            std::thread::spawn(move || {
                let mut desk = Desk::new();
                let program = desk.program("echo $1 > f; sleep 0.3; cat f");
                let mut device = Device { bases: vec![there], ..desk.device(&["sh"]) };
                device.probe().expect("there");
                device.work(&words(&[&number.to_string()]), &program, &mut desk).expect("it runs");
                String::from_utf8_lossy(&desk.out).into_owned()
            })
        })
        .collect();
    let said: Vec<String> = threads.into_iter().map(|thread| thread.join().expect("no panic")).collect();
    assert_eq!(said, ["0\n", "1\n"]);
    assert_eq!(shared.left().len(), 1, "the program");
}

#[test]
fn a_folder_that_somebody_removes_ends_the_command() {
    for shell in SHELLS {
        let mut desk = Desk::new();
        let why = desk
            .run(shell, "sleep 0.7; cd ..; rm -rf \"$PWD\"; sleep 1", &words(&[]))
            .expect_err("no status");
        let is_told = matches!(&why, RemoteError::Died { .. })
            || matches!(&why, RemoteError::Refused { kind: Refusal::Gone, .. });
        assert!(is_told && !why.to_string().contains("still there"), "{shell:?} {why}");
    }
}

#[test]
fn files_that_cannot_be_fetched_are_given_up_after_a_while() {
    let mut desk = Desk::new();
    let mut device = Device { patience: Duration::from_secs(2), ..desk.device(&["sh"]) };
    device.probe().expect("there");
    let program = desk.program("echo small > a; head -c 300000 /dev/zero > b");
    device.started(&words(&[]), &program, &mut desk).expect("started");
    device.follow(&Job::default(), &mut desk).expect("ends");
    // A connection that is always cut in the second file.
    device.link = Link::shell(&["sh", "-c", "sh | head -c 100000"]);
    let begun = Instant::now();
    let why = device.fetch(&words(&[]), &mut desk).expect_err("never whole");
    assert!(matches!(why, RemoteError::Lost { .. }), "{why}");
    assert!(begun.elapsed() < sys::patience::stretched(Duration::from_secs(20)), "it is given up");
}

#[test]
fn a_command_whose_start_is_uncertain_is_found_or_cannot_begin() {
    for shell in SHELLS {
        let mut desk = Desk::new();
        let mut device = desk.device(shell);
        device.probe().expect("there");
        let program = desk.program("echo ran");
        device.started(&words(&[]), &program, &mut desk).expect("started");
        device.uncertain = Some(("cut".to_owned(), Instant::now()));
        assert_eq!(device.follow(&Job::default(), &mut desk).expect("it had started").0, "0");
        device.refused().expect("removed");
        // As late as it comes, it finds its place taken.
        let why = device.started(&words(&[]), &program, &mut desk).expect_err("refused");
        assert!(matches!(&why, RemoteError::Refused { .. }), "{shell:?} {why}");
        assert_eq!(desk.out, b"ran\n", "{shell:?}");
    }
}

#[test]
fn names_with_blanks_come_back() {
    for shell in SHELLS {
        let mut desk = Desk::new();
        let outcome =
            desk.run(shell, "echo x > 'ends in a blank '; echo y > ' b'", &words(&[])).expect("it runs");
        assert_eq!(outcome.files.len(), 2, "{shell:?} {:?}", desk.notes);
    }
    // A name in two lines is told, and its file kept.
    let mut desk = Desk::new();
    desk.run(&["sh"], "echo x > \"two\nlines\"", &words(&[])).expect("it runs");
    assert!(desk.notes.iter().any(|note| note.contains("cannot be read")), "{:?}", desk.notes);
    assert_eq!(desk.left().len(), 2, "the program and the command's folder");
}

#[test]
fn a_program_that_leaves_a_server_with_our_pipes_costs_nothing() {
    // As adb does, whose server has the outputs of the call that started it; this one ends when the test's folder has gone.
    const SERVER: &str = "while [ -e there ]; do sleep 0.2; done & exec sh \"$@\"";
    let mut desk = Desk::new();
    let folder: &'static str =
        Box::leak(format!("cd {}; {SERVER}", desk.folder.path().display()).into_boxed_str());
    let shell: &'static [&'static str] = Box::leak(Box::new(["sh", "-c", folder, "sh"]));
    let begun = Instant::now();
    let outcome = desk.run(shell, "echo out; echo x > f; exit 3", &words(&[])).expect("it runs");
    assert_eq!((outcome.status, outcome.files.len(), &desk.out[..]), (3, 1, &b"out\n"[..]));
    // Where the answer does not come to its end, that is seen by the program's end, not by half a minute of silence.
    let cut: &'static str =
        Box::leak(folder.replace("exec sh \"$@\"", "echo why >&2; exit 1").into_boxed_str());
    let device = desk.device(Box::leak(Box::new(["sh", "-c", cut])));
    let why = device.ask("probe", &[]).expect_err("no answer").to_string();
    assert!(why.contains("why"), "{why}");
    let call = device.link.script(String::new());
    let said = perform(&device.link, call, CALL_LIMIT, || Ok(())).expect("it runs");
    assert_eq!(said, Err("why".to_owned()));
    assert!(!sys::patience::is_over(begun, Duration::from_secs(28)), "no call waits for the server");
}

#[test]
fn names_that_lead_out_or_hide_are_left_there() {
    let mut desk = Desk::new();
    let text = "echo x > .bashrc; mkdir -p .git/hooks; echo x > .git/hooks/pre-commit; echo x > \"$(printf 'a\\033')\"; echo x > r";
    let outcome = desk.run(&["sh"], text, &words(&[])).expect("it runs");
    assert_eq!(outcome.files, [desk.folder.path().join("here/r")]);
    // Two folders, and a file in each of three places.
    assert_eq!(outcome.refused.len(), 5, "{:?}", outcome.refused);
    assert_eq!(fs::read_dir(desk.folder.path().join("here")).expect("there").count(), 1);
    assert!(
        desk.notes.iter().any(|note| note.contains(".bashrc") && note.contains("left on")),
        "{:?}",
        desk.notes
    );
    assert_eq!(desk.left().len(), 2, "the program and the command's folder");
}

#[test]
fn what_never_ends_is_ended() {
    for (text, why) in [
        ("exec yes", "printed more than"),
        ("for i in 1 2 3 4 5; do : > $i; done", "sends more than 3 files"),
    ] {
        let mut desk = Desk::new();
        let limits = Limits { entries: 3, output: 1 << 20, ..Limits::USUAL };
        let mut device = Device { limits, ..desk.device(&["sh"]) };
        device.probe().expect("there");
        let program = desk.program(text);
        let said = device.work(&words(&[]), &program, &mut desk).expect_err("too much").to_string();
        assert!(said.contains(why), "{said}");
    }
}
