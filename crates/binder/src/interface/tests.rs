//! Interfaces that the macro makes, called and served in one process.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

use crate::{Binder, CallError, Caller, Object, Parcel, Process, ShellCommand, Status, StatusCode};

crate::interface! {
    /// Every form of a method.
    mod forms = "example.IForms" {
        /// Nothing either way.
        fn nothing();
        /// Several arguments.
        fn join(words: Vec<String>, between: String, end: Option<String>) -> String;
        /// No answer.
        oneway note(text: String);
        fn object(object: Binder) -> Option<Binder>;
    }
}

crate::parcelable! {
    #[derive(Clone, Debug, PartialEq)]
    struct Point = "example.Point" {
        x: i32,
        y: i32,
    }
}

crate::interface! {
    /// Every way of an argument, numbers of its own, and other interfaces.
    mod ways = "example.IWays" {
        fn fill(#[out] numbers: Vec<i32>, #[inout] point: Point, #[out] text: Point, by: i32) -> String = 6;
        fn back(forms: super::forms::Client, others: Vec<super::forms::Client>) -> Option<super::forms::Client> = 2;
        fn who() -> i32 = 0;
    } {
        pub const BY: i32 = 3;
    }
}

struct Ways;

impl ways::Service for Ways {
    fn fill(
        &self,
        numbers: &mut Vec<i32>,
        point: &mut Point,
        text: &mut Point,
        by: i32,
    ) -> Result<String, Status> {
        numbers.fill(by);
        numbers.push(-1);
        point.x += by;
        text.y = by;
        Ok("filled".to_owned())
    }

    fn back(
        &self,
        forms: forms::Client,
        others: Vec<forms::Client>,
    ) -> Result<Option<forms::Client>, Status> {
        forms.note("from there")?;
        Ok(others.into_iter().next())
    }

    fn who(&self) -> Result<i32, Status> {
        Ok(Caller::current().map_or(-1, |caller| caller.pid))
    }

    fn dump(&self, to: &mut dyn io::Write, arguments: &[String]) -> io::Result<()> {
        writeln!(to, "ways {arguments:?}")
    }

    fn shell_command(&self, mut command: ShellCommand) -> Result<i32, StatusCode> {
        writeln!(command.output, "ran {:?}", command.arguments).map_err(|_| StatusCode::UNKNOWN_ERROR)?;
        Ok(7)
    }

    fn extension(&self) -> Option<Binder> {
        None
    }
}

struct Forms(Mutex<Vec<String>>);

impl forms::Service for Forms {
    fn admit(&self, call: &crate::Incoming<'_>) -> Result<(), Status> {
        if call.code() == 4 { Err(Status::illegal_argument("not you")) } else { Ok(()) }
    }

    fn nothing(&self) -> Result<(), Status> {
        Ok(())
    }

    fn join(&self, words: Vec<String>, between: String, end: Option<String>) -> Result<String, Status> {
        Ok(words.join(&between) + &end.ok_or_else(|| Status::illegal_argument("no end"))?)
    }

    fn note(&self, text: String) -> Result<(), Status> {
        self.0.lock().expect("no panic").push(text);
        Ok(())
    }

    fn object(&self, object: Binder) -> Result<Option<Binder>, Status> {
        Ok(Some(object))
    }
}

/// Methods are numbered as they stand: a caller that types the numbers by hand is understood.
#[test]
fn numbers_and_bytes_are_those_of_aidl() {
    let context = crate::find("embedded:private", "binder").expect("the embedded driver");
    let process = crate::Process::open(&context, crate::ProcessOptions::default()).expect("it opens");
    let object = process.publish(forms::Served(Forms(Mutex::default())));
    let mut request = object.request("example.IForms");
    request.write_str_slice(&["a", "b"]);
    request.write_str("-");
    request.write_nullable_str(Some("!"));
    let reply = object.call(2, request).expect("join");
    assert_eq!(reply.reader().read_str().expect("a string"), "a-b!");

    let client = forms::Client::from(object.clone());
    client.nothing().expect("it does nothing");
    let words = ["x".to_owned(), "y".to_owned()];
    assert_eq!(client.join(&words, "+", Some(".")).expect("joined"), "x+y.");
    let refused = client.join(&words, "+", None).expect_err("no end");
    assert!(refused.to_string().contains("no end"), "{refused}");
    client.note("one").expect("taken");
    let refused = client.object(&object).expect_err("not admitted");
    assert!(refused.to_string().contains("not you"), "{refused}");
    let unknown = object.call(5, object.request("example.IForms"));
    assert!(matches!(unknown, Err(CallError::Status(Status::UNKNOWN_TRANSACTION))), "{unknown:?}");
}

fn process() -> Process {
    let context = crate::find("embedded:private", "binder").expect("the embedded driver");
    Process::open(&context, crate::ProcessOptions::default()).expect("it opens")
}

#[test]
fn arguments_go_both_ways_and_numbers_are_the_files() {
    let process = process();
    let ways = ways::Client::publish(&process, Ways);
    let (mut numbers, mut point, mut text) = (vec![9; 2], Point { x: 1, y: 2 }, Point { x: 5, y: 5 });
    let said = ways.fill(&mut numbers, &mut point, &mut text, ways::BY).expect("filled");
    assert_eq!(said, "filled");
    assert_eq!((numbers, point, text), (vec![3, 3, -1], Point { x: 4, y: 2 }, Point { x: 0, y: 3 }));
    let heard = Arc::new(Forms(Mutex::default()));
    let forms = forms::Client::publish(&process, heard.clone());
    let other = forms::Client::publish(&process, Forms(Mutex::default()));
    assert_eq!(ways.back(&forms, std::slice::from_ref(&other)).expect("back"), Some(other));
    assert_eq!(*heard.0.lock().expect("no panic"), ["from there"]);
    assert_eq!(ways.back(&forms, &[]).expect("none"), None);
    let object = ways.as_binder();
    let reply = object.call(1, object.request(ways::DESCRIPTOR)).expect("number 0 is code 1");
    assert_eq!(reply.reader().read_i32(), Ok(i32::try_from(std::process::id()).expect("a pid")));
    assert_eq!(Caller::current(), None, "this thread runs no method");
}

#[test]
fn a_person_can_dump_it_and_give_it_commands() {
    let ways = ways::Client::publish(&process(), Ways);
    let (mut reads, output) = io::pipe().expect("a pipe");
    let words = ["a".to_owned(), "b".to_owned()];
    ways.as_binder().dump(output.try_clone().expect("a duplicate"), &words).expect("dumped");
    let mut request = ways.as_binder().bare_request();
    let file = || File::from(OwnedFd::from(output.try_clone().expect("a duplicate")));
    let command = ShellCommand { input: file(), output: file(), error: file(), arguments: words.to_vec() };
    command.write(None, &mut request).expect("written");
    ways.as_binder().transact(u32::from_be_bytes(*b"_CMD"), &request).expect("it runs");
    drop((command, request, output));
    let mut text = String::new();
    reads.read_to_string(&mut text).expect("a text");
    assert_eq!(text, "ways [\"a\", \"b\"]\nran [\"a\", \"b\"]\n");
}

#[test]
fn a_oneway_method_is_served() {
    let forms = std::sync::Arc::new(forms::Served(Forms(Mutex::default())));
    assert_eq!(forms.descriptor(), forms::DESCRIPTOR);
    let context = crate::find("embedded:private", "binder").expect("the embedded driver");
    let process = crate::Process::open(&context, crate::ProcessOptions::default()).expect("it opens");
    let client = forms::Client::from(process.publish(forms.clone()));
    client.note("heard").expect("taken");
    assert_eq!(*forms.0.0.lock().expect("no panic"), ["heard"]);
    assert_eq!(Parcel::new().data(), [0; 0]);
}
