//! Outgoing calls: each has a watchdog, refusals are reported, replies are checked.
//! Not here: choosing the calls (`traffic`).

use std::sync::atomic::Ordering;

use ipc::binder::{CallError, Incoming, Object, Parcel};
use ipc::{Binder, Refusal, StatusCode};

use super::streams::{Sender, Sent};
use super::token::Token;
use super::wire::{
    ASK, ClaimedObject, ECHO, FILE, GIVE, KEEP, NEST, NOTE, SEEN, SERVICE, TOKEN, TestFile, WHO, service_name,
};
use super::{Member, Peer, Reporter, SERVICES};
use crate::content::{content, sum};
use crate::fault::Fault;
use crate::instance::Instance;
use crate::messages::{Report, Target};
use crate::monitored;
use crate::tally::Count;

impl Member {
    /// Makes a call, again and again while `target` is frozen. Another refusal is allowed only if it has died.
    fn attempt<T>(
        &self,
        what: &str,
        target: Target,
        mut call: impl FnMut() -> Result<T, CallError>,
    ) -> Option<T> {
        let _wait = self.reporter.wait(format!("{} for {what} of {target}", self.me));
        self.reporter.counters.add(Count::Calls);
        let mut answer = call();
        while let Err(CallError::Transact(error)) = &answer
            && error.refusal() == Some(Refusal::Frozen)
        {
            self.reporter.counters.add(Count::Frozen);
            std::thread::sleep(std::time::Duration::from_millis(2));
            answer = call();
        }
        match answer {
            Ok(answer) => Some(answer),
            Err(CallError::Transact(error))
                if matches!(error.refusal(), Some(Refusal::Dead | Refusal::Failed(_))) =>
            {
                self.reporter.counters.add(Count::Refused);
                Reporter::say(&Report::Refused(target, format!("{target} {what}: {error}")));
                None
            }
            Err(error) => {
                let recent = monitored::recent();
                self.reporter
                    .fail(format_args!("{what} of {target}, called by {}: {error}{recent}", self.me));
                None
            }
        }
    }

    /// Makes a call to a peer's service, which is forgotten if the call is refused.
    fn at<T>(&self, peer: &Peer, what: &str, call: impl FnMut() -> Result<T, CallError>) -> Option<T> {
        let answer = self.attempt(what, Target::Member(peer.instance), call);
        if answer.is_none() {
            let is_stale = |_: &_, known: &mut Peer| known.instance == peer.instance;
            let stale: Vec<_> = self.peers().extract_if(.., is_stale).collect();
            // Without the lock.
            drop(stale);
        }
        answer
    }

    fn complain_unless(&self, right: bool, what: &str, peer: &Peer) {
        if !right {
            self.reporter
                .fail(format_args!("{what} of {} answered {} something wrong", peer.instance, self.me));
        }
    }

    /// The service of a member, if there is one now.
    pub(super) fn peer(&self, index: usize, service: usize) -> Option<Peer> {
        let at = (index, service % SERVICES);
        if let Some(known) = self.peers().get(&at) {
            return Some(known.clone());
        }
        let name = service_name(index, at.1);
        let binder = self.attempt("look-up", Target::Manager, || self.services.check(&name))??;
        // If the call is refused, the process that had this index must have died.
        let instance = self.attempt("introduction", Target::Index(index), || {
            let reply = binder.call(WHO, binder.request(SERVICE))?;
            Ok(Instance::read(&mut reply.reader())?)
        })?;
        if instance.index != index {
            self.reporter.fail(format_args!("{name} is answered by {instance}"));
        }
        let peer = Peer { instance, binder };
        let previous = self.peers().insert(at, peer.clone());
        drop(previous);
        Some(peer)
    }

    pub(super) fn echo(&self, peer: &Peer, key: u64, len: usize, wanted: usize) {
        let bytes = content(key, len);
        let right = self.at(peer, "echo", || {
            let mut request = peer.binder.request(SERVICE);
            request.write_u64(key);
            request.write_u64(wanted as u64);
            request.write_byte_slice(&bytes);
            let reply = peer.binder.call(ECHO, request)?;
            let mut reader = reply.reader();
            let (from, got) = (Instance::read(&mut reader)?, reader.read_u64()?);
            let right = from == peer.instance && got == sum(key, &bytes);
            let right = right && reader.read_byte_slice()? == content(got, wanted);
            if self.commits(Fault::LeakBuffer) {
                std::mem::forget(reply);
            }
            Ok(right)
        });
        self.complain_unless(right.unwrap_or(true), "echo", peer);
    }

    /// Sends a call along a route of members; returns the number of hops, and whether one was missing.
    pub(super) fn nest(&self, next: usize, key: u64, rest: &[usize], bytes: &[u8]) -> Option<(u64, bool)> {
        let peer = self.peer(next, key as usize)?;
        let (from, got, hops, cut) = self.at(&peer, "nested call", || {
            let mut request = peer.binder.request(SERVICE);
            request.write_u64(key);
            request.write_u64(rest.len() as u64);
            for index in rest {
                request.write_u64(*index as u64);
            }
            request.write_byte_slice(bytes);
            let reply = peer.binder.call(NEST, request)?;
            let mut reader = reply.reader();
            let head = (Instance::read(&mut reader)?, reader.read_u64()?);
            Ok((head.0, head.1, reader.read_u64()?, reader.read_bool()?))
        })?;
        let most = rest.len() as u64 + 1;
        let right = from == peer.instance && got == sum(key, bytes) && (cut && hops <= most || hops == most);
        self.complain_unless(right, "nested call", &peer);
        Some((hops, cut))
    }

    /// Sends the next oneway call of a stream; false if it was refused.
    pub(super) fn note(&self, peer: &Peer, thread: u64, number: u64, len: usize) -> bool {
        let with = |bit: u64| number % 16 == bit;
        let taken = self.at(peer, "oneway call", || {
            let mut request = peer.binder.request(SERVICE);
            self.me.write(&mut request);
            request.write_u64(thread);
            request.write_u64(number);
            request.write_byte_slice(&content(number, len));
            request.write_bool(with(3));
            if with(3) {
                self.any_claim().write(&mut request);
            }
            request.write_bool(with(5));
            if with(5) {
                self.send_file(TestFile::of(number.wrapping_mul(7919)), &mut request);
            }
            Ok(peer.binder.oneway(NOTE, request)?)
        });
        self.reporter.counters.add(Count::Oneways);
        taken.is_some()
    }

    /// The last call of a stream that arrived; `None` if the receiver is gone.
    pub(super) fn seen(&self, peer: &Peer, thread: u64) -> Option<u64> {
        self.at(peer, "count of oneway calls", || {
            let mut request = peer.binder.request(SERVICE);
            self.me.write(&mut request);
            request.write_u64(thread);
            Ok(peer.binder.call(SEEN, request)?.reader().read_u64()?)
        })
    }

    /// Waits until at most `open` calls of a stream are outstanding; false if the receiver is gone.
    pub(super) fn drain(&self, peer: &Peer, sender: Sender, sent: &mut Sent, open: u64) -> bool {
        let _wait = self.reporter.wait(format!(
            "{} for the arrival of oneway call {} of its thread {} at {}",
            self.me,
            sent.last - open.min(sent.last),
            sender.thread,
            peer.instance
        ));
        while sent.last - sent.seen > open {
            match self.seen(peer, sender.thread) {
                Some(seen) if seen > sent.last => {
                    self.complain_unless(false, "count of oneway calls", peer);
                    return false;
                }
                Some(seen) if sent.last - seen > open => {
                    sent.seen = seen;
                    std::thread::sleep(std::time::Duration::from_millis(1));
                }
                Some(seen) => sent.seen = seen,
                None => return false,
            }
        }
        true
    }

    /// An object to pass on: a new one, or another process's.
    pub(super) fn any_claim(&self) -> ClaimedObject {
        self.reporter.counters.add(Count::Objects);
        let number = self.number();
        let known = {
            let bag = self.bag();
            if bag.is_empty() { None } else { bag.get(number as usize % (bag.len() * 2)).cloned() }
        };
        known.unwrap_or_else(|| {
            let token = Token::new(self.me, number, &self.tokens);
            ClaimedObject { owner: self.me, number, binder: self.publish(token) }
        })
    }

    fn publish(&self, object: impl Object) -> Binder {
        self.manager.publish_beside(object)
    }

    pub(super) fn keep_at(&self, peer: &Peer) {
        let claim = self.any_claim();
        self.at(peer, "taking an object", || {
            let mut request = peer.binder.request(SERVICE);
            claim.write(&mut request);
            peer.binder.call(KEEP, request).map(drop)
        });
    }

    pub(super) fn take_from(&self, peer: &Peer) {
        let claim = self.at(peer, "giving an object", || {
            let reply = peer.binder.call(GIVE, peer.binder.request(SERVICE))?;
            Ok(ClaimedObject::read(&mut reply.reader())?)
        });
        if let Some(claim) = claim {
            self.keep(claim);
        }
    }

    /// Calls an object that was passed around, and checks its identity.
    pub(super) fn ask(&self, claim: &ClaimedObject) {
        let answer = self.attempt("question to an object", Target::Member(claim.owner), || {
            let reply = claim.binder.call(ASK, claim.binder.request(TOKEN))?;
            let mut reader = reply.reader();
            Ok((Instance::read(&mut reader)?, reader.read_u64()?))
        });
        if let Some((owner, number)) = answer
            && (owner, number) != (claim.owner, claim.number)
        {
            self.reporter.fail(format_args!(
                "object {} of {}, as {} got it, is object {number} of {owner}",
                claim.number, claim.owner, self.me
            ));
        }
    }

    /// Registers for a death notification.
    pub(super) fn link(self: &std::sync::Arc<Self>, target: Instance, binder: &Binder) {
        let Binder::Remote(proxy) = binder else { return };
        let number = self.number();
        self.links.expect(number, target);
        let member = std::sync::Arc::downgrade(self);
        let made = proxy.link_to_death(move || {
            if let Some(member) = member.upgrade() {
                member.reporter.counters.add(Count::Deaths);
                Reporter::say(&Report::Died(target));
                member.links.fire(number);
            }
        });
        match made {
            // Every one is dropped: which would have mattered depends on the kills.
            Ok(link) if self.fault == Some(Fault::LoseDeath) => drop(link),
            Ok(link) => self.links.keep(number, link),
            Err(error) => {
                self.links.forget(number);
                let what = format!("{target} asking for its death: {error}");
                Reporter::say(&Report::Refused(Target::Member(target), what));
            }
        }
    }

    pub(super) fn file_at(&self, peer: &Peer, key: u64) {
        let file_spec = TestFile::of(key);
        let got = self.at(peer, "exchange of files", || {
            let mut request = peer.binder.request(SERVICE);
            self.me.write(&mut request);
            self.send_file(file_spec, &mut request);
            let reply = peer.binder.call(FILE, request)?;
            Ok(TestFile::read(&mut reply.reader())?)
        });
        let Some((described, file)) = got else { return };
        self.complain_unless(
            described == TestFile::of(file_spec.key.rotate_left(7)),
            "exchange of files",
            peer,
        );
        if let Some(complaint) = described.check(&file) {
            self.reporter.fail(format_args!("{complaint} came from {} to {}", peer.instance, self.me));
        }
    }

    /// Takes a file out of a call and checks its content.
    pub(super) fn receive(&self, from: Instance, call: &mut Incoming<'_>) -> Result<TestFile, StatusCode> {
        let (file_spec, file) = TestFile::read(call)?;
        if let Some(complaint) = file_spec.check(&file) {
            self.reporter.fail(format_args!("{complaint} came from {from} to {}", self.me));
        }
        if self.commits(Fault::LeakFd) {
            std::mem::forget(file);
        }
        Ok(file_spec)
    }

    /// Writes a file into a parcel.
    pub(super) fn send_file(&self, file_spec: TestFile, parcel: &mut Parcel) {
        self.reporter.counters.add(Count::Descriptors);
        let filled = file_spec.key ^ u64::from(self.commits(Fault::WrongFile));
        if let Err(error) = file_spec.write(parcel, filled) {
            self.reporter.fail(format_args!("{} makes no file: {error}", self.me));
        }
    }

    /// Reports something untrue, if that is the fault to commit.
    pub(super) fn lie(&self, peer: &Peer) {
        if self.commits(Fault::FalseRefusal) {
            let what = format!("{} echo: (a lie)", peer.instance);
            Reporter::say(&Report::Refused(Target::Member(peer.instance), what));
        }
        if self.commits(Fault::FalseFreeze) {
            self.reporter.counters.add(Count::Frozen);
        }
        if self.commits(Fault::FalseDeath) {
            Reporter::say(&Report::Died(peer.instance));
        }
    }

    /// Begins no steps any more, or does again.
    pub(super) fn rest(&self, on: bool) {
        self.resting.store(on, Ordering::Relaxed);
    }

    /// Whether no step should begin.
    pub(super) fn is_resting(&self) -> bool {
        self.resting.load(Ordering::Relaxed)
    }

    /// Stops the traffic.
    pub(super) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }
}
