//! The interface of `../aidl` by rsbinder: `pairs-rsbinder service|client NAME`. The client prints a line for each call; those of
//! `../ours` must be the same, whichever of the two serves.

use std::fs::File;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rsbinder::{
    BinderResult, DeathRecipient, ExceptionCode, Interface, ParcelFileDescriptor, ProcessState, SIBinder,
    Status, StatusCode, Strong, WIBinder, hub,
};

include!(concat!(env!("OUT_DIR"), "/pairs.rs"));

use pairs::Big::Big;
use pairs::Colour::Colour;
use pairs::ICallback::{BnCallback, ICallback};
use pairs::IPairs::{BnPairs, IPairs};
use pairs::Level::Level;
use pairs::Outer::{Inner::Inner, Kind::Kind, Outer};
use pairs::Point::Point;
use pairs::Shape::Shape;
use pairs::Tree::Tree;

/// Time limit of any step, on an emulated machine too.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Default)]
struct Service {
    notes: Mutex<Vec<String>>,
}

impl Interface for Service {}

/// Methods that return what they get.
macro_rules! same {
    ($($name:ident($ty:ty) -> $result:ty, |$value:ident| $returned:expr;)*) => {$(
        fn $name(&self, $value: $ty) -> BinderResult<$result> {
            Ok($returned)
        }
    )*};
}

fn copy(point: &Point) -> Point {
    Point {
        x: point.x,
        y: point.y,
        name: point.name.clone(),
        note: point.note.clone(),
        weights: point.weights.clone(),
    }
}

fn copied(shape: &Shape) -> Shape {
    match shape {
        Shape::Side(side) => Shape::Side(*side),
        Shape::Name(name) => Shape::Name(name.clone()),
        Shape::Centre(centre) => Shape::Centre(copy(centre)),
        Shape::Corners(corners) => Shape::Corners(corners.clone()),
    }
}

fn tree(given: &Tree) -> Tree {
    Tree { value: given.value, next: given.next.as_ref().map(|next| Box::new(tree(next))) }
}

fn inner(given: &Inner) -> Inner {
    Inner { number: given.number, colour: given.colour }
}

impl IPairs for Service {
    same! {
        sameBoolean(bool) -> bool, |value| value;
        sameByte(i8) -> i8, |value| value;
        sameChar(u16) -> u16, |value| value;
        sameInt(i32) -> i32, |value| value;
        sameLong(i64) -> i64, |value| value;
        sameFloat(f32) -> f32, |value| value;
        sameDouble(f64) -> f64, |value| value;
        sameString(&str) -> String, |value| value.to_owned();
        sameUtf8(&str) -> String, |value| value.to_owned();
        sameBooleans(&[bool]) -> Vec<bool>, |value| value.to_vec();
        sameBytes(&[u8]) -> Vec<u8>, |value| value.to_vec();
        sameChars(&[u16]) -> Vec<u16>, |value| value.to_vec();
        sameInts(&[i32]) -> Vec<i32>, |value| value.to_vec();
        sameLongs(&[i64]) -> Vec<i64>, |value| value.to_vec();
        sameFloats(&[f32]) -> Vec<f32>, |value| value.to_vec();
        sameDoubles(&[f64]) -> Vec<f64>, |value| value.to_vec();
        sameStrings(&[String]) -> Vec<String>, |value| value.to_vec();
        sameList(&[String]) -> Vec<String>, |value| value.to_vec();
        sameFixed(&[[i32; 3]; 2]) -> [[i32; 3]; 2], |value| *value;
        nullableString(Option<&str>) -> Option<String>, |value| value.map(str::to_owned);
        nullableInts(Option<&[i32]>) -> Option<Vec<i32>>, |value| value.map(<[i32]>::to_vec);
        nullableStrings(Option<&[Option<String>]>) -> Option<Vec<Option<String>>>, |value| value.map(<[_]>::to_vec);
        nullablePoint(Option<&Point>) -> Option<Point>, |value| value.map(copy);
        nullablePoints(Option<&[Option<Point>]>) -> Option<Vec<Option<Point>>>,
            |value| value.map(|points| points.iter().map(|point| point.as_ref().map(copy)).collect());
        nullableBinder(Option<&SIBinder>) -> Option<SIBinder>, |value| value.cloned();
        sameColour(Colour) -> Colour, |value| value;
        sameLevel(Level) -> Level, |value| value;
        sameBig(Big) -> Big, |value| value;
        sameColours(&[Colour]) -> Vec<Colour>, |value| value.to_vec();
        sameLevels(&[Level]) -> Vec<Level>, |value| value.to_vec();
        sameBigs(&[Big]) -> Vec<Big>, |value| value.to_vec();
        samePoint(&Point) -> Point, |value| copy(value);
        samePoints(&[Point]) -> Vec<Point>, |value| value.iter().map(copy).collect();
        sameShape(&Shape) -> Shape, |value| copied(value);
        sameShapes(&[Shape]) -> Vec<Shape>, |value| value.iter().map(copied).collect();
        sameTree(&Tree) -> Tree, |value| tree(value);
        sameInner(&Inner) -> Inner, |value| inner(value);
        sameOuter(&Outer) -> Outer, |value| Outer {
            inner: inner(&value.inner), kind: value.kind, more: value.more.iter().map(inner).collect(),
        };
        sameBinder(&SIBinder) -> SIBinder, |value| value.clone();
        keep(Option<&Strong<dyn ICallback>>) -> Option<Strong<dyn ICallback>>, |value| value.cloned();
    }

    fn fill(
        &self,
        numbers: &mut Vec<i32>,
        point: &mut Point,
        named: &mut Point,
        by: i32,
        words: &mut Vec<String>,
    ) -> BinderResult<i32> {
        let count = numbers.len() as i32;
        numbers.fill(by);
        numbers.push(-1);
        point.x += by;
        named.name = format!("by {by}");
        words.push("end".to_owned());
        Ok(count)
    }

    fn list(&self, words: &mut Vec<String>, count: i32) -> BinderResult<i32> {
        let before = words.len() as i32;
        words.extend((0..count).map(|number| number.to_string()));
        Ok(before)
    }

    fn callTwice(&self, callback: &Strong<dyn ICallback>) -> BinderResult<i32> {
        Ok(callback.answer(1)? + callback.answer(2)?)
    }

    fn readAll(&self, file: &ParcelFileDescriptor) -> BinderResult<String> {
        let mut text = String::new();
        file.try_clone()?.read_to_string(&mut text).map_err(|_| StatusCode::BadValue)?;
        Ok(text)
    }

    fn written(&self, text: &str) -> BinderResult<ParcelFileDescriptor> {
        let (from, mut into) = ParcelFileDescriptor::pipe()?;
        into.write_all(text.as_bytes()).map_err(|_| StatusCode::BadValue)?;
        Ok(from)
    }

    fn fail(&self, way: i32) -> BinderResult<()> {
        Err(match way {
            0 => Status::from((ExceptionCode::IllegalArgument, "not that")),
            1 => Status::new_service_specific_error(42, Some("mine".to_owned())),
            2 => Status::from(ExceptionCode::Security),
            3 => StatusCode::UnknownTransaction.into(),
            _ => StatusCode::NameNotFound.into(),
        })
    }

    fn note(&self, text: &str) -> BinderResult<()> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).push(text.to_owned());
        Ok(())
    }

    fn notes(&self) -> BinderResult<Vec<String>> {
        Ok(self.notes.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    fn die(&self) -> BinderResult<()> {
        std::process::exit(0)
    }
}

struct Callback;

impl Interface for Callback {}

impl ICallback for Callback {
    fn answer(&self, number: i32) -> BinderResult<i32> {
        if number == 2 { Ok(20) } else { Ok(number) }
    }

    fn name(&self) -> BinderResult<String> {
        Ok("the client's".to_owned())
    }
}

#[derive(Default)]
struct Died(AtomicBool);

impl DeathRecipient for Died {
    fn binder_died(&self, _who: &WIBinder) {
        self.0.store(true, Ordering::SeqCst);
    }
}

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// The error of a call as both programs print it.
fn shown(error: &Status) -> String {
    match error.exception_code() {
        ExceptionCode::TransactionFailed => format!("status {}", i32::from(error.transaction_error())),
        ExceptionCode::ServiceSpecific => {
            format!(
                "exception -8 {} {:?}",
                error.service_specific_error(),
                error.message().unwrap_or_default()
            )
        }
        code => format!("exception {} 0 {:?}", code as i32, error.message().unwrap_or_default()),
    }
}

/// Prints a call's result.
macro_rules! show {
    ($call:expr) => {
        show!($call, |value| value)
    };
    ($call:expr, |$value:ident| $printed:expr) => {
        match $call {
            Ok($value) => println!("{:?}", $printed),
            Err(error) => println!("{}", shown(&error)),
        }
    };
}

fn point() -> Point {
    Point { x: -1, note: Some("näh".to_owned()), ..Point::default() }
}

fn client(name: &str) -> Outcome {
    let service = find(name)?;
    show!(service.sameBoolean(true));
    show!(service.sameByte(-5));
    show!(service.sameChar(0xd83d));
    show!(service.sameInt(i32::MIN));
    show!(service.sameLong(i64::MAX));
    show!(service.sameFloat(1.5));
    show!(service.sameDouble(-0.1));
    show!(service.sameString("Grüße, 世界 😀"));
    show!(service.sameUtf8(""));
    show!(service.sameBooleans(&[true, false]));
    show!(service.sameBytes(&[1, 2, 255]));
    show!(service.sameChars(&[65, 0xffff]));
    show!(service.sameInts(&[]));
    show!(service.sameInts(&[1, -1]));
    show!(service.sameLongs(&[1 << 40]));
    show!(service.sameFloats(&[0.5, f32::MAX]));
    show!(service.sameDoubles(&[f64::MIN]));
    show!(service.sameStrings(&[String::new(), "x".to_owned()]));
    show!(service.sameList(&["y".to_owned()]));
    show!(service.sameFixed(&[[1, 2, 3], [4, 5, 6]]));

    show!(service.nullableString(None));
    show!(service.nullableString(Some("z")));
    show!(service.nullableInts(None));
    show!(service.nullableInts(Some(&[7])));
    show!(service.nullableStrings(None));
    show!(service.nullableStrings(Some(&[None, Some("q".to_owned())])));
    show!(service.nullablePoint(None));
    show!(service.nullablePoint(Some(&point())));
    show!(service.nullablePoints(None));
    show!(service.nullablePoints(Some(&[None, Some(point())])));
    show!(service.nullableBinder(None), |binder| binder.is_some());

    show!(service.sameColour(Colour::BLUE), |colour| colour.0);
    show!(service.sameColour(Colour(-9)), |colour| colour.0);
    show!(service.sameLevel(Level::LOW), |level| level.0);
    show!(service.sameBig(Big::HUGE), |big| big.0);
    show!(service.sameColours(&[Colour::GREEN, Colour::RED]), |all| all
        .iter()
        .map(|colour| colour.0)
        .collect::<Vec<_>>());
    show!(service.sameLevels(&[Level::HIGH]), |all| all.iter().map(|level| level.0).collect::<Vec<_>>());
    show!(service.sameBigs(&[Big::NONE, Big::HUGE]), |all| all.iter().map(|big| big.0).collect::<Vec<_>>());

    show!(service.samePoint(&Point::default()));
    show!(service.samePoints(&[point(), Point::default()]));
    for shape in
        [Shape::default(), Shape::Name("n".to_owned()), Shape::Centre(point()), Shape::Corners(vec![1, 2])]
    {
        show!(service.sameShape(&shape));
    }
    show!(service.sameShapes(&[Shape::Side(1), Shape::Corners(vec![])]));
    let leaf = Tree { value: 2, next: None };
    show!(service.sameTree(&Tree { value: 1, next: Some(Box::new(leaf)) }));
    show!(service.sameInner(&Inner::default()), |inner| (inner.number, inner.colour.0));
    let outer =
        Outer { kind: Kind::ONE, more: vec![Inner { number: 3, colour: Colour::RED }], ..Outer::default() };
    show!(service.sameOuter(&outer), |outer| {
        let more: Vec<_> = outer.more.iter().map(|inner| (inner.number, inner.colour.0)).collect();
        (outer.inner.number, outer.inner.colour.0, outer.kind.0, more)
    });

    let (mut numbers, mut moved, mut named) = (vec![9; 2], point(), point());
    let mut words = vec!["begin".to_owned()];
    show!(service.fill(&mut numbers, &mut moved, &mut named, 3, &mut words));
    println!("{numbers:?} {moved:?} {named:?} {words:?}");
    show!(service.list(&mut words, 3));
    println!("{words:?}");

    let callback = BnCallback::new_binder(Callback);
    show!(service.sameBinder(&callback.as_binder()), |binder| binder == callback.as_binder());
    show!(service.callTwice(&callback));
    show!(service.keep(None), |kept| kept.is_some());
    show!(service.keep(Some(&callback)), |kept| kept.map(|kept| kept.name().map_err(|error| shown(&error))));

    let (from, mut into) = ParcelFileDescriptor::pipe()?;
    into.write_all(b"through a pipe")?;
    drop(into);
    show!(service.readAll(&from));
    show!(service.written("by the service"), |file| {
        let mut text = String::new();
        let read = File::from(std::os::fd::OwnedFd::from(file)).read_to_string(&mut text);
        (read.is_ok(), text)
    });

    for way in 0..5 {
        show!(service.fail(way));
    }
    show!(service.note("first"));
    show!(service.note("second"));
    until(|| service.notes().is_ok_and(|notes| notes.len() == 2))?;
    show!(service.notes());
    println!("{} {:?} {}", pairs::IPairs::LIMIT, pairs::IPairs::NAME, pairs::Point::DIMENSIONS);

    let died = Arc::new(Died::default());
    service.as_binder().link_to_death_arc(&died)?;
    show!(service.die());
    until(|| died.0.load(Ordering::SeqCst))?;
    println!("died");
    show!(service.sameInt(1));
    Ok(())
}

fn until(mut holds: impl FnMut() -> bool) -> Outcome {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        if Instant::now() > end {
            return Err("it never came".into());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn find(name: &str) -> Result<Strong<dyn IPairs>, Box<dyn std::error::Error>> {
    let end = Instant::now() + PATIENCE;
    loop {
        match hub::check_interface::<dyn IPairs>(name) {
            Ok(found) => return Ok(found),
            Err(_) if Instant::now() < end => std::thread::sleep(Duration::from_millis(100)),
            Err(error) => return Err(error.into()),
        }
    }
}

fn main() -> Outcome {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [role, name] = words.as_slice() else {
        return Err("usage: pairs-rsbinder service|client NAME".into());
    };
    ProcessState::init("/dev/binder", 0)?;
    ProcessState::start_thread_pool();
    if role == "client" {
        return client(name);
    }
    hub::add_service(name, BnPairs::new_binder(Service::default()).as_binder())?;
    println!("registered");
    loop {
        std::thread::park();
    }
}
