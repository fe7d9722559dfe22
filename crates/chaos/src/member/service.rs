//! The service of a member.
//! Not here: calls made while serving (`calls`).

use std::sync::Arc;
use std::time::Duration;

use ipc::StatusCode;
use ipc::binder::{Incoming, Object, Parcel, Status};

use super::Member;
use super::streams::{Received, Sender};
use super::wire::{ClaimedObject, ECHO, FILE, GIVE, KEEP, NEST, NOTE, SEEN, SERVICE, TestFile, WHO};
use crate::content::{content, sum};
use crate::fault::Fault;
use crate::instance::Instance;
use crate::tally::Count;

/// Limit above any reply of the test, in bytes.
const LARGEST: usize = 1 << 20;

/// A registered object of a member.
pub(super) struct MemberService {
    member: Arc<Member>,
    received: Received,
}

impl MemberService {
    pub(super) fn new(member: &Arc<Member>) -> Self {
        Self { member: member.clone(), received: Received::default() }
    }

    fn echo(&self, call: &mut Incoming<'_>, reply: &mut Parcel) -> Result<(), Status> {
        if self.member.commits(Fault::Hang) {
            std::thread::sleep(Duration::from_secs(3600));
        }
        if self.member.commits(Fault::LogABug) {
            // Where it cannot be written, the test of this fault finds no failure.
            drop(host::klog::plant_alarm());
        }
        if self.member.commits(Fault::Vanish) {
            std::process::exit(0);
        }
        let (key, wanted) = (call.read_u64()?, call.read_u64()?);
        let wanted = usize::try_from(wanted).ok().filter(|wanted| *wanted <= LARGEST);
        let wanted = wanted.ok_or(Status::Code(StatusCode::BAD_VALUE))?;
        let sum = sum(key, call.read_byte_slice()?);
        self.member.me.write(reply);
        reply.write_u64(sum);
        reply.write_byte_slice(&content(sum ^ u64::from(self.member.commits(Fault::WrongBytes)), wanted));
        Ok(())
    }

    /// Replies with the number of members on the rest of the route, and whether one was missing.
    fn nest(&self, call: &mut Incoming<'_>, reply: &mut Parcel) -> Result<(), Status> {
        let key = call.read_u64()?;
        let count = call.read_u64()?;
        let mut route = Vec::new();
        for _ in 0..count.min(8) {
            route.push(usize::try_from(call.read_u64()?).map_err(|_| StatusCode::BAD_VALUE)?);
        }
        let bytes = call.read_byte_slice()?;
        let (hops, cut) = match route.split_first() {
            None => (1, false),
            Some((next, rest)) => {
                self.member.reporter.counters.add(Count::Nested);
                let beyond = self.member.nest(*next, key, rest, bytes);
                beyond.map_or((1, true), |(hops, cut)| (hops + 1, cut))
            }
        };
        self.member.me.write(reply);
        reply.write_u64(sum(key, bytes));
        reply.write_u64(hops);
        reply.write_bool(cut);
        Ok(())
    }

    fn note(&self, call: &mut Incoming<'_>) -> Result<(), Status> {
        let sender = sender(call)?;
        let number = call.read_u64()?;
        let bytes = call.read_byte_slice()?;
        let reporter = &self.member.reporter;
        if bytes != content(number, bytes.len()) {
            reporter
                .fail(format_args!("oneway call {number} of {} arrived with other bytes", sender.instance));
        }
        if call.read_bool()? {
            self.member.keep(ClaimedObject::read(call)?);
        }
        if call.read_bool()? {
            self.member.receive(sender.instance, call)?;
        }
        if self.member.commits(Fault::DropOneway) {
            return Ok(());
        }
        let twice = self.member.commits(Fault::RepeatOneway);
        for _ in 0..=usize::from(twice) {
            if let Err(complaint) = self.received.note(sender, number) {
                reporter.fail(format_args!("{complaint} at {}", self.member.me));
            }
        }
        Ok(())
    }

    fn file(&self, call: &mut Incoming<'_>, reply: &mut Parcel) -> Result<(), Status> {
        let from = Instance::read(call)?;
        let file_spec = self.member.receive(from, call)?;
        self.member.send_file(TestFile::of(file_spec.key.rotate_left(7)), reply);
        Ok(())
    }
}

fn sender(call: &mut Incoming<'_>) -> Result<Sender, StatusCode> {
    Ok(Sender { instance: Instance::read(call)?, thread: call.read_u64()? })
}

impl Object for MemberService {
    fn descriptor(&self) -> &str {
        SERVICE
    }

    fn on_transact(&self, call: &mut Incoming<'_>, reply: &mut Parcel) -> Result<(), Status> {
        match call.code() {
            WHO => self.member.me.write(reply),
            ECHO => self.echo(call, reply)?,
            NEST => self.nest(call, reply)?,
            NOTE => self.note(call)?,
            SEEN => reply.write_u64(self.received.last(sender(call)?)),
            KEEP => self.member.keep(ClaimedObject::read(call)?),
            GIVE => self.member.any_claim().write(reply),
            FILE => self.file(call, reply)?,
            _ => return Err(Status::UNKNOWN_TRANSACTION),
        }
        Ok(())
    }
}
