//! Room: a party in another OS process, moved by words: one line in, one line back. For promises
//! about whole processes: freezing (by pid, which takes every party of one process) and dying.
//! Not here: helpers that take one step and end (`helper`).

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use abi::{Delivery, Handle};

use super::exit::killed;
use super::item::{Stop, Verdict, done, expect};
use super::kit::Kit;
use super::party::{Node, Party};
use super::subject::Subject;

/// The strings' end of a puppet; its process is killed when this is dropped.
pub(super) struct Puppet {
    child: Child,
    words: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Puppet {
    /// Starts a process with one party, whose only thread serves.
    pub(super) fn start(kit: &Kit) -> Result<Self, Stop> {
        let mut command = kit.helper("puppet", &[]);
        command.stdin(Stdio::piped());
        let mut child = done("starting a helper process", command.spawn())?;
        let (Some(words), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Stop::Fail("a helper process has no standard streams".into()));
        };
        let mut puppet = Self { child, words, answers: BufReader::new(answers) };
        let first = puppet.answer("starting")?;
        expect("the first word of a helper", first.as_str(), "ready")?;
        Ok(puppet)
    }

    /// A puppet that owns this node, and a strong handle to it for `client`.
    pub(super) fn owning(kit: &Kit, client: &Party, number: u64) -> Result<(Self, Handle), Stop> {
        let mut puppet = Self::start(kit)?;
        let handle = puppet.give(kit, client, number)?;
        Ok((puppet, handle))
    }

    /// Has it leave its node of this number in the lobby, and fetches that for `client`.
    pub(super) fn give(&mut self, kit: &Kit, client: &Party, number: u64) -> Result<Handle, Stop> {
        self.tell(&format!("own {number}"))?;
        let handle = kit.fetch(client, number)?;
        kit.forget(client, number)?;
        Ok(handle)
    }

    /// Hands it a node of `server`, which it then knows by the node's ptr.
    pub(super) fn take(&mut self, kit: &Kit, server: &Party, node: Node) -> Verdict {
        kit.leave(server, node, node.ptr)?;
        self.tell(&format!("hold {}", node.ptr)).map(drop)
    }

    /// Its process, by number.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Has it do something; what came of that.
    pub(super) fn tell(&mut self, words: &str) -> Result<String, Stop> {
        self.command(words)?;
        self.answer(words)
    }

    /// Has it do something that ends with its process.
    pub(super) fn command(&mut self, words: &str) -> Verdict {
        done("writing to a helper process", writeln!(self.words, "{words}"))
    }

    fn answer(&mut self, what: &str) -> Result<String, Stop> {
        let mut line = String::new();
        done("reading from a helper process", self.answers.read_line(&mut line))?;
        match line.trim_end().split_once(' ') {
            Some(("ok", rest)) => Ok(rest.to_owned()),
            Some(("skip", why)) => Err(Stop::Skip(why.to_owned())),
            _ => Err(Stop::Fail(format!("a helper process told to {what:?} said {line:?}"))),
        }
    }

    /// Has it read once, which must give this.
    pub(super) fn expect_read(&mut self, what: &str, want: &str) -> Verdict {
        expect(what, self.tell("read")?.as_str(), want)
    }

    /// Has it answer the call that it serves, and give its buffer back.
    pub(super) fn reply(&mut self) -> Verdict {
        expect("a helper's reply", self.tell("reply")?.as_str(), "COMPLETE")
    }

    /// Kills it, and waits until it is gone.
    pub(super) fn kill(mut self) -> Verdict {
        done("killing a helper process", self.child.kill())?;
        done("waiting for a helper process", self.child.wait()).map(drop)
    }
}

impl Drop for Puppet {
    fn drop(&mut self) {
        // It may have ended already; either way it is reaped.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The puppet's own side of the strings.
struct Inside {
    kit: Kit,
    party: Party,
    held: BTreeMap<u64, Handle>,
    /// Buffers delivered and not given back.
    lent: Vec<Delivery>,
}

/// Does what standard input says, line by line, until it ends.
///
/// # Errors
/// The context cannot be opened, or standard output is closed.
pub(super) fn serve(subject: Box<dyn Subject>) -> Result<(), String> {
    let evidence = super::evidence::examine(subject.as_ref()).map_err(|error| error.to_string())?;
    let kit = Kit { subject, evidence };
    let party = match kit.server() {
        Ok(party) => party,
        Err(stop) => return Err(stop.why()),
    };
    let mut inside = Inside { kit, party, held: BTreeMap::new(), lent: Vec::new() };
    println!("ok ready");
    for line in io::stdin().lines() {
        let line = line.map_err(|error| format!("standard input: {error}"))?;
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
        let number = number.parse().map_err(|_| Stop::Fail(format!("{number:?} is no number")))?;
        match verb {
            "own" => self.kit.leave(&self.party, Node::number(number), number)?,
            "hold" => {
                let handle = self.kit.fetch(&self.party, number)?;
                self.kit.forget(&self.party, number)?;
                self.held.insert(number, handle);
            }
            "read" => return self.read(),
            "reply" => {
                let got = self.party.answer(b"")?;
                self.free()?;
                return Ok(got.work());
            }
            "free" => self.free()?,
            "call" => self.party.start_call(self.handle(number)?, 1, b"")?,
            "oneway" => self.party.send_oneway(self.handle(number)?, 1, b"")?,
            "flood" => killed::flood(&self.party, self.handle(number)?)?,
            "answer-all" => killed::answer_all(&self.party)?,
            other => return Err(Stop::Fail(format!("no puppet knows how to {other:?}"))),
        }
        Ok("done".into())
    }

    fn handle(&self, number: u64) -> Result<Handle, Stop> {
        let unknown = || Stop::Fail(format!("it holds no node {number:#x}"));
        self.held.get(&number).copied().ok_or_else(unknown)
    }

    fn read(&mut self) -> Result<String, Stop> {
        let got = self.party.read()?;
        for delivery in [got.call(), got.reply()] {
            self.lent.extend(delivery);
        }
        Ok(got.work())
    }

    /// Gives back every buffer.
    fn free(&mut self) -> Verdict {
        self.lent.drain(..).try_for_each(|delivery| self.party.free(&delivery))
    }
}
