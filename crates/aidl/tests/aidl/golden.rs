//! The Rust of files with every construct (`every.golden`) compiles, and its calls go there and back.
//! Not here: that it is what the generator makes of them (`src/build.rs`).

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::Command;
use std::sync::Arc;

use binder::{Binder, ParcelFileDescriptor, Process, ProcessOptions, Status};
use binderperf_aidl::Build;

use example::IEcho;
use example::i_echo::{IListener, Level};
use example::parts::{Colour, Shape};
use example::point::Tag;
use example::{Owned, Point};

include!("every.golden");

/// The test runs once more as the build script.
#[test]
fn a_build_script_writes_the_rust_and_names_what_it_read() {
    if std::env::var_os("OUT_DIR").is_some() {
        let build = Build::new().include("tests/aidl").file("tests/aidl/example/IEcho.aidl");
        return build.write("written.rs").unwrap_or_else(|error| panic!("{error}"));
    }
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let mut script = Command::new(std::env::current_exe().expect("a path"));
    script.args(["--exact", "--nocapture", "golden::a_build_script_writes_the_rust_and_names_what_it_read"]);
    let output = script.env("OUT_DIR", folder).output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout);
    for path in ["tests/aidl", "tests/aidl/example/IEcho.aidl", "tests/aidl/example/parts/Shape.aidl"] {
        assert!(text.contains(&format!("cargo::rerun-if-changed={path}\n")), "{text}");
    }
    let written = std::fs::read_to_string(folder.join("written.rs")).expect("it is written");
    assert_eq!(written, include_str!("every.golden"));
}

struct Echo;

impl IEcho::Service for Echo {
    fn echo(&self, text: String) -> Result<String, Status> {
        Ok(text)
    }

    fn note(&self, _text: String) -> Result<(), Status> {
        Ok(())
    }

    fn fill(
        &self,
        size: i32,
        values: &mut Vec<i32>,
        point: &mut Point,
        copy: &mut Point,
    ) -> Result<bool, Status> {
        values.fill(size);
        point.x += 1;
        copy.clone_from(point);
        Ok(true)
    }

    fn words(
        &self,
        words: Option<Vec<Option<String>>>,
        shape: Option<Shape>,
    ) -> Result<Option<Vec<Option<String>>>, Status> {
        Ok(words.filter(|_| shape != Some(Shape::default())))
    }

    fn bytes(&self, bytes: Vec<u8>, table: [[u8; 3]; 2]) -> Result<Vec<u8>, Status> {
        Ok([&bytes[..], table.as_flattened()].concat())
    }

    fn pair(&self, wide: i64, exact: f64, rough: f32, letter: u16, small: i8) -> Result<[i32; 2], Status> {
        let is_same = (wide, exact, rough) == (i64::MAX, 0.1, -0.5);
        Ok([i32::from(letter) * i32::from(is_same), i32::from(small)])
    }

    fn paint(&self, colour: Colour, more: Vec<Colour>, level: Level) -> Result<(), Status> {
        let is_same = (colour, &more[..], level) == (Colour::GREEN, &[Colour::RED, Colour(9)], Level::LOUD);
        if is_same { Ok(()) } else { Err(Status::illegal_argument("other colours")) }
    }

    fn file(
        &self,
        one: ParcelFileDescriptor,
        other: OwnedFd,
        none: Option<ParcelFileDescriptor>,
    ) -> Result<ParcelFileDescriptor, Status> {
        assert!(none.is_none());
        write!(File::from(other), "other").map_err(|_| Status::illegal_argument("closed"))?;
        Ok(one)
    }

    fn object(
        &self,
        object: Binder,
        none: Option<Binder>,
        several: Option<Vec<Option<Binder>>>,
    ) -> Result<Binder, Status> {
        let is_same = none.is_none() && several == Some(vec![None, Some(object.clone())]);
        if is_same { Ok(object) } else { Err(Status::illegal_argument("other objects")) }
    }

    fn follow(&self, listener: IListener::Client, tag: Tag) -> Result<Option<IListener::Client>, Status> {
        listener.on_echo("followed")?;
        Ok((tag.number > 0).then_some(listener))
    }

    fn dump_(&self, r#type: i32, self_: IEcho::Client) -> Result<(), Status> {
        self_.note(&r#type.to_string())?;
        Ok(())
    }

    fn own(&self, owned: Owned) -> Result<Owned, Status> {
        Ok(owned)
    }

    fn copy(
        &self,
        files: Vec<ParcelFileDescriptor>,
        copies: &mut Vec<Option<ParcelFileDescriptor>>,
        echoes: &mut Vec<IEcho::Client>,
    ) -> Result<(), Status> {
        copies.iter_mut().zip(files).for_each(|(copy, file)| *copy = Some(file));
        echoes.extend_from_within(..);
        Ok(())
    }

    fn split(
        &self,
        text: String,
        words: &mut Vec<String>,
        none: &mut Vec<IEcho::Client>,
        lengths: &mut Vec<i32>,
    ) -> Result<(), Status> {
        assert!(words.is_empty() && none.is_empty(), "a list begins empty");
        words.extend(text.split(' ').map(str::to_owned));
        lengths.extend(words.iter().map(|word| word.len() as i32));
        Ok(())
    }
}

struct Listener(std::sync::Mutex<Vec<String>>);

impl IListener::Service for Listener {
    fn on_echo(&self, text: String) -> Result<(), Status> {
        self.0.lock().expect("no panic").push(text);
        Ok(())
    }
}

/// A point whose fields have other values than they begin with.
fn point() -> Point {
    let last = Box::new(Point { label: Some("last".to_owned()), ..Point::default() });
    let mut point = Point { x: -7, next: Some(last), remark: None, colour: Colour(100), ..Point::default() };
    point.more.push(Point::default());
    point.large[39] = i64::MIN;
    point.tag = Tag { number: 3, name: [1, 2, 3, 0xd83d] };
    point
}

#[test]
fn every_value_goes_there_and_back() {
    let context = binder::find("embedded:private", "binder").expect("the embedded driver");
    let process = Process::open(&context, ProcessOptions::default()).expect("it opens");
    let echo = IEcho::Client::publish(&process, Echo);
    assert_eq!((IEcho::LIMIT, IEcho::GREETING, IEcho::PRIMES), (1023, "hello, world", &[2, 3, 5][..]));
    assert_eq!(echo.echo("näh").expect("an echo"), "näh");
    echo.note("noted").expect("taken");

    let (mut values, mut moved, mut copy) = (vec![0; 3], point(), Point::default());
    assert!(echo.fill(8, &mut values, &mut moved, &mut copy).expect("filled"));
    assert_eq!((values, &moved, &copy), (vec![8; 3], &Point { x: -6, ..point() }, &moved));

    let words = vec![None, Some("word".to_owned())];
    let shape = Shape::Polygon(vec![point()]);
    assert_eq!(echo.words(Some(&words), Some(&shape)).expect("words"), Some(words.clone()));
    assert_eq!(echo.words(Some(&words), Some(&Shape::Circle(1.0))).expect("the default"), None);
    assert_eq!(echo.words(None, None).expect("nothing"), None);
    assert_eq!(echo.bytes(&[0, 255], &[[1, 2, 3], [4, 5, 6]]).expect("bytes"), [0, 255, 1, 2, 3, 4, 5, 6]);
    assert_eq!(echo.pair(i64::MAX, 0.1, -0.5, 0xd83d, -3).expect("a pair"), [0xd83d, -3]);
    echo.paint(Colour::GREEN, &[Colour::RED, Colour(9)], Level::LOUD).expect("the same colours");

    let (mut reads, writes) = std::io::pipe().expect("a pipe");
    let one = ParcelFileDescriptor::from(writes.try_clone().expect("a duplicate"));
    let other = OwnedFd::from(writes);
    let back = echo.file(one.as_fd(), other.as_fd(), None).expect("a file");
    write!(File::from(back.into_fd()), " and one").expect("open");
    drop((one, other));
    let mut text = String::new();
    reads.read_to_string(&mut text).expect("a text");
    assert_eq!(text, "other and one");

    let object = echo.as_binder();
    assert_eq!(&echo.object(object, None, Some(&[None, Some(object.clone())])).expect("the object"), object);
    let heard = Arc::new(Listener(Default::default()));
    let listener = IListener::Client::publish(&process, heard.clone());
    assert_eq!(echo.follow(&listener, &Tag::default()).expect("followed"), None);
    assert_eq!(echo.follow(&listener, &point().tag).expect("followed"), Some(listener));
    assert_eq!(*heard.0.lock().expect("no panic"), ["followed"; 2]);
    echo.dump_(5, &echo).expect("noted");

    let (mut words, mut none, mut lengths) = (vec!["old".to_owned(); 2], vec![echo.clone()], vec![9]);
    echo.split("one three", &mut words, &mut none, &mut lengths).expect("split");
    assert_eq!((words.join("|").as_str(), none.len(), lengths), ("one|three", 0, vec![9, 3, 5]));

    let owned = Owned { object: Some(object.clone()), echo: Some(echo.clone()), ..Owned::default() };
    assert!(echo.own(&owned).is_err(), "a required file is missing");
    let file = || Some(ParcelFileDescriptor::from(File::open("/dev/null").expect("it is there")));
    let files: Vec<_> = std::iter::repeat_with(file).flatten().take(2).collect();
    let (mut copies, mut echoes) = (vec![None, None, None], vec![echo.clone()]);
    echo.copy(&files, &mut copies, &mut echoes).expect("copied");
    assert_eq!((echoes, copies.iter().flatten().count()), (vec![echo.clone(); 2], 2));
    let owned = echo.own(&Owned { file: file(), files: Some(vec![None, file()]), ..owned }).expect("owned");
    assert_eq!((owned.object.as_ref(), owned.none.as_ref()), (Some(object), None));
    assert!(
        owned.echo == Some(echo) && owned.files.is_some_and(|files| files[0].is_none() && files[1].is_some())
    );
}
