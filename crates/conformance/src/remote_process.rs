//! A binder process in another OS process, controlled by lines over pipes: one command, one answer. For promises
//! about whole OS processes: freezing (by pid) and dying.
//! Not here: helpers with a single step (`helper`).

use std::collections::BTreeMap;
use std::io;

use abi::{Delivery, Handle};
use procgroup::WorkerProcess;

use super::check::{PATIENCE, Stop, Verdict, done, expect, required};
use super::kit::Kit;
use super::numbered_calls;
use super::raw_process::{Node, RawProcess};
use super::subject::Subject;

/// The controlling end of a remote process, which is killed on drop.
pub(super) struct RemoteProcess(WorkerProcess);

impl RemoteProcess {
    /// Starts an OS process with one connection, whose only thread is a looper.
    pub(super) fn start(kit: &Kit) -> Result<Self, Stop> {
        kit.serving_helper("remote", &[]).map(Self)
    }

    /// Starts a remote process that owns this node, and gets `client` a strong handle to it.
    pub(super) fn owning(kit: &Kit, client: &RawProcess, number: u64) -> Result<(Self, Handle), Stop> {
        let remote = Self::start(kit)?;
        let handle = remote.give(kit, client, number)?;
        Ok((remote, handle))
    }

    /// The remote process leaves its node of this number in the test manager; fetches it for `client`.
    pub(super) fn give(&self, kit: &Kit, client: &RawProcess, number: u64) -> Result<Handle, Stop> {
        self.tell(&format!("own {number}"))?;
        let handle = kit.fetch(client, number)?;
        kit.forget(client, number)?;
        Ok(handle)
    }

    /// Passes it a node of `server`, which it then knows by the node's ptr.
    pub(super) fn take(&self, kit: &Kit, server: &RawProcess, node: Node) -> Verdict {
        kit.leave(server, node, node.ptr)?;
        self.tell(&format!("hold {}", node.ptr)).map(drop)
    }

    /// Its pid.
    pub(super) fn pid(&self) -> u32 {
        self.0.pid()
    }

    /// Executes a command in it; returns the result.
    pub(super) fn tell(&self, words: &str) -> Result<String, Stop> {
        self.command(words)?;
        self.answer(words)
    }

    /// Sends a command without waiting for the result.
    pub(super) fn command(&self, words: &str) -> Verdict {
        done("writing to a helper process", self.0.write_line(words))
    }

    fn answer(&self, what: &str) -> Result<String, Stop> {
        // Longer than the remote process itself waits for anything.
        let line = self.0.line(2 * PATIENCE).map_err(|why| Stop::Fail(format!("a helper process: {why}")))?;
        match line.split_once(' ') {
            Some(("ok", rest)) => Ok(rest.to_owned()),
            Some(("skip", why)) => Err(Stop::Skip(why.to_owned())),
            _ => Err(Stop::Fail(format!("a helper process told to {what:?} said {line:?}"))),
        }
    }

    /// The remote process reads once, which must give this.
    pub(super) fn expect_read(&self, what: &str, want: &str) -> Verdict {
        expect(what, self.tell("read")?.as_str(), want)
    }

    /// The remote process answers the call that it serves, and frees its buffer.
    pub(super) fn reply(&self) -> Verdict {
        expect("a helper's reply", self.tell("reply")?.as_str(), "COMPLETE")
    }
}

/// State of the remote process itself.
struct Inside {
    kit: Kit,
    process: RawProcess,
    held: BTreeMap<u64, Handle>,
    /// Delivered buffers that were not freed.
    lent: Vec<Delivery>,
}

/// Executes commands from standard input until it ends.
///
/// # Errors
/// The context cannot be opened, or standard output is closed.
pub(super) fn serve(subject: Subject) -> Verdict {
    let kit = Kit::new(subject)?;
    let process = kit.server()?;
    let mut inside = Inside { kit, process, held: BTreeMap::new(), lent: Vec::new() };
    println!("ready");
    for line in io::stdin().lines() {
        let line = done("reading standard input", line)?;
        match inside.act(&line) {
            Ok(said) => println!("ok {said}"),
            Err(Stop::Skip(why)) => println!("skip {why}"),
            Err(stop) => println!("fail {}", stop.why()),
        }
    }
    Ok(())
}

impl Inside {
    fn act(&mut self, line: &str) -> Result<String, Stop> {
        let (verb, number) = line.split_once(' ').unwrap_or((line, "0"));
        let number = required(number.parse().ok(), || format!("{number:?} is not a number"))?;
        match verb {
            "own" => self.kit.leave(&self.process, Node::number(number), number)?,
            "hold" => {
                let handle = self.kit.fetch(&self.process, number)?;
                self.kit.forget(&self.process, number)?;
                self.held.insert(number, handle);
            }
            "read" => return self.read(),
            "reply" => {
                let got = self.process.answer(b"")?;
                self.free()?;
                return Ok(got.work());
            }
            "free" => self.free()?,
            "call" => self.process.start_call(self.handle(number)?, 1, b"")?,
            "oneway" => self.process.send_oneway(self.handle(number)?, 1, b"")?,
            "flood" => numbered_calls::flood(&self.process, self.handle(number)?)?,
            "answer-all" => numbered_calls::answer_all(&self.process)?,
            other => return Err(Stop::Fail(format!("no remote knows how to {other:?}"))),
        }
        Ok("done".into())
    }

    fn handle(&self, number: u64) -> Result<Handle, Stop> {
        required(self.held.get(&number).copied(), || format!("it holds no node {number:#x}"))
    }

    fn read(&mut self) -> Result<String, Stop> {
        let got = self.process.read()?;
        for delivery in [got.call(), got.reply()] {
            self.lent.extend(delivery);
        }
        Ok(got.work())
    }

    /// Frees all buffers.
    fn free(&mut self) -> Verdict {
        self.lent.drain(..).try_for_each(|delivery| self.process.free(&delivery))
    }
}
