//! The interface of `../aidl` by our library: `pairs-ours service|client NAME`. The client prints a line for each call; those of
//! `../rsbinder` must be the same, whichever of the two serves.

use std::fs::File;
use std::io::{Read, Write};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use binder::{
    Binder, CallError, ExceptionKind, ParcelFileDescriptor, Process, ProcessOptions, Status, StatusCode,
};

include!(concat!(env!("OUT_DIR"), "/pairs.rs"));

use pairs::outer::{Inner, Kind};
use pairs::{Big, Colour, ICallback, IPairs, Level, Outer, Point, Shape, Tree};

/// Time limit of any step, on an emulated machine too.
const PATIENCE: Duration = Duration::from_secs(60);

binder::errors! {
    enum OwnError {
        Mine = 42: "mine",
    }
}

#[derive(Default)]
struct Service {
    notes: Mutex<Vec<String>>,
}

/// Methods that return what they get.
macro_rules! same {
    ($($name:ident($ty:ty);)*) => {$(
        fn $name(&self, value: $ty) -> Result<$ty, Status> {
            Ok(value)
        }
    )*};
}

impl IPairs::Service for Service {
    same! {
        same_boolean(bool);
        same_byte(i8);
        same_char(u16);
        same_int(i32);
        same_long(i64);
        same_float(f32);
        same_double(f64);
        same_string(String);
        same_utf8(String);
        same_booleans(Vec<bool>);
        same_bytes(Vec<u8>);
        same_chars(Vec<u16>);
        same_ints(Vec<i32>);
        same_longs(Vec<i64>);
        same_floats(Vec<f32>);
        same_doubles(Vec<f64>);
        same_strings(Vec<String>);
        same_list(Vec<String>);
        same_fixed([[i32; 3]; 2]);
        nullable_string(Option<String>);
        nullable_ints(Option<Vec<i32>>);
        nullable_strings(Option<Vec<Option<String>>>);
        nullable_point(Option<Point>);
        nullable_points(Option<Vec<Option<Point>>>);
        nullable_binder(Option<Binder>);
        same_colour(Colour);
        same_level(Level);
        same_big(Big);
        same_colours(Vec<Colour>);
        same_levels(Vec<Level>);
        same_bigs(Vec<Big>);
        same_point(Point);
        same_points(Vec<Point>);
        same_shape(Shape);
        same_shapes(Vec<Shape>);
        same_tree(Tree);
        same_inner(Inner);
        same_outer(Outer);
        same_binder(Binder);
        keep(Option<ICallback::Client>);
    }

    fn fill(
        &self,
        numbers: &mut Vec<i32>,
        point: &mut Point,
        named: &mut Point,
        by: i32,
        words: &mut Vec<String>,
    ) -> Result<i32, Status> {
        let count = numbers.len() as i32;
        numbers.fill(by);
        numbers.push(-1);
        point.x += by;
        named.name = format!("by {by}");
        words.push("end".to_owned());
        Ok(count)
    }

    fn list(&self, words: &mut Vec<String>, count: i32) -> Result<i32, Status> {
        let before = words.len() as i32;
        words.extend((0..count).map(|number| number.to_string()));
        Ok(before)
    }

    fn call_twice(&self, callback: ICallback::Client) -> Result<i32, Status> {
        Ok(callback.answer(1)? + callback.answer(2)?)
    }

    fn read_all(&self, file: ParcelFileDescriptor) -> Result<String, Status> {
        let mut text = String::new();
        File::from(file.into_fd()).read_to_string(&mut text).map_err(|_| StatusCode::BAD_VALUE)?;
        Ok(text)
    }

    fn written(&self, text: String) -> Result<ParcelFileDescriptor, Status> {
        let (from, mut into) = std::io::pipe().map_err(|_| StatusCode::NO_MEMORY)?;
        into.write_all(text.as_bytes()).map_err(|_| StatusCode::BAD_VALUE)?;
        Ok(from.into())
    }

    fn fail(&self, way: i32) -> Result<(), Status> {
        Err(match way {
            0 => Status::illegal_argument("not that"),
            1 => OwnError::Mine.into(),
            2 => ExceptionKind::SECURITY.into(),
            3 => Status::UNKNOWN_TRANSACTION,
            _ => StatusCode::NAME_NOT_FOUND.into(),
        })
    }

    fn note(&self, text: String) -> Result<(), Status> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).push(text);
        Ok(())
    }

    fn notes(&self) -> Result<Vec<String>, Status> {
        Ok(self.notes.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    fn die(&self) -> Result<(), Status> {
        std::process::exit(0)
    }
}

struct Callback;

impl ICallback::Service for Callback {
    fn answer(&self, number: i32) -> Result<i32, Status> {
        if number == 2 { Ok(20) } else { Ok(number) }
    }

    fn name(&self) -> Result<String, Status> {
        Ok("the client's".to_owned())
    }
}

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// The error of a call as both programs print it.
fn shown(error: &CallError) -> String {
    match error {
        CallError::Status(Status::Exception(thrown)) => {
            let message = thrown.message.as_deref().unwrap_or_default();
            format!("exception {} {} {message:?}", thrown.kind.0, thrown.code)
        }
        CallError::Status(Status::Code(code)) => format!("status {}", code.0),
        error if error.is_dead() => format!("status {}", StatusCode::DEAD_OBJECT.0),
        error => error.to_string(),
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

fn client(process: &Process, name: &str) -> Outcome {
    let service = IPairs::Client::find(process, name)?;
    show!(service.same_boolean(true));
    show!(service.same_byte(-5));
    show!(service.same_char(0xd83d));
    show!(service.same_int(i32::MIN));
    show!(service.same_long(i64::MAX));
    show!(service.same_float(1.5));
    show!(service.same_double(-0.1));
    show!(service.same_string("Grüße, 世界 😀"));
    show!(service.same_utf8(""));
    show!(service.same_booleans(&[true, false]));
    show!(service.same_bytes(&[1, 2, 255]));
    show!(service.same_chars(&[65, 0xffff]));
    show!(service.same_ints(&[]));
    show!(service.same_ints(&[1, -1]));
    show!(service.same_longs(&[1 << 40]));
    show!(service.same_floats(&[0.5, f32::MAX]));
    show!(service.same_doubles(&[f64::MIN]));
    show!(service.same_strings(&[String::new(), "x".to_owned()]));
    show!(service.same_list(&["y".to_owned()]));
    show!(service.same_fixed(&[[1, 2, 3], [4, 5, 6]]));

    show!(service.nullable_string(None));
    show!(service.nullable_string(Some("z")));
    show!(service.nullable_ints(None));
    show!(service.nullable_ints(Some(&[7])));
    show!(service.nullable_strings(None));
    show!(service.nullable_strings(Some(&[None, Some("q".to_owned())])));
    show!(service.nullable_point(None));
    show!(service.nullable_point(Some(&point())));
    show!(service.nullable_points(None));
    show!(service.nullable_points(Some(&[None, Some(point())])));
    show!(service.nullable_binder(None), |binder| binder.is_some());

    show!(service.same_colour(Colour::BLUE), |colour| colour.0);
    show!(service.same_colour(Colour(-9)), |colour| colour.0);
    show!(service.same_level(Level::LOW), |level| level.0);
    show!(service.same_big(Big::HUGE), |big| big.0);
    show!(service.same_colours(&[Colour::GREEN, Colour::RED]), |all| all
        .iter()
        .map(|colour| colour.0)
        .collect::<Vec<_>>());
    show!(service.same_levels(&[Level::HIGH]), |all| all.iter().map(|level| level.0).collect::<Vec<_>>());
    show!(service.same_bigs(&[Big::NONE, Big::HUGE]), |all| all.iter().map(|big| big.0).collect::<Vec<_>>());

    show!(service.same_point(&Point::default()));
    show!(service.same_points(&[point(), Point::default()]));
    for shape in
        [Shape::default(), Shape::Name("n".to_owned()), Shape::Centre(point()), Shape::Corners(vec![1, 2])]
    {
        show!(service.same_shape(&shape));
    }
    show!(service.same_shapes(&[Shape::Side(1), Shape::Corners(vec![])]));
    let leaf = Tree { value: 2, next: None };
    show!(service.same_tree(&Tree { value: 1, next: Some(Box::new(leaf)) }));
    show!(service.same_inner(&Inner::default()), |inner| (inner.number, inner.colour.0));
    let outer =
        Outer { kind: Kind::ONE, more: vec![Inner { number: 3, colour: Colour::RED }], ..Outer::default() };
    show!(service.same_outer(&outer), |outer| {
        let more: Vec<_> = outer.more.iter().map(|inner| (inner.number, inner.colour.0)).collect();
        (outer.inner.number, outer.inner.colour.0, outer.kind.0, more)
    });

    let (mut numbers, mut moved, mut named) = (vec![9; 2], point(), point());
    let mut words = vec!["begin".to_owned()];
    show!(service.fill(&mut numbers, &mut moved, &mut named, 3, &mut words));
    println!("{numbers:?} {moved:?} {named:?} {words:?}");
    show!(service.list(&mut words, 3));
    println!("{words:?}");

    let callback = ICallback::Client::publish(process, Callback);
    show!(service.same_binder(callback.as_binder()), |binder| binder == *callback.as_binder());
    show!(service.call_twice(&callback));
    show!(service.keep(None), |kept| kept.is_some());
    show!(service.keep(Some(&callback)), |kept| kept.map(|kept| kept.name().map_err(|error| shown(&error))));

    let (from, mut into) = std::io::pipe()?;
    into.write_all(b"through a pipe")?;
    drop(into);
    show!(service.read_all(std::os::fd::AsFd::as_fd(&from)));
    show!(service.written("by the service"), |file| {
        let mut text = String::new();
        let read = File::from(file.into_fd()).read_to_string(&mut text);
        (read.is_ok(), text)
    });

    for way in 0..5 {
        show!(service.fail(way));
    }
    show!(service.note("first"), |_taken| ());
    show!(service.note("second"), |_taken| ());
    until(|| service.notes().is_ok_and(|notes| notes.len() == 2))?;
    show!(service.notes());
    println!("{} {:?} {}", IPairs::LIMIT, IPairs::NAME, Point::DIMENSIONS);

    let (died, hears) = mpsc::channel();
    let _link = service.as_binder().on_death(move || {
        // Nobody waits any more.
        let _ = died.send(());
    })?;
    show!(service.die(), |_taken| ());
    hears.recv_timeout(PATIENCE)?;
    println!("died");
    show!(service.same_int(1));
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

fn main() -> Outcome {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [role, name] = words.as_slice() else {
        return Err("usage: pairs-ours service|client NAME".into());
    };
    let process = Process::open(&binder::find("auto", "binder")?, ProcessOptions::default())?;
    process.start_thread_pool()?;
    if role == "client" {
        return client(&process, name);
    }
    let _kept = IPairs::Client::register(&process, name, Service::default())?;
    println!("registered");
    Ok(process.join_thread_pool()?)
}
