//! Random traffic of one thread, until it is told to stop.
//! Not here: single calls and their checks (`calls`).

use std::collections::BTreeMap;
use std::sync::Arc;

use super::streams::{Sender, Sent};
use super::{Member, Peer, SERVICES};
use fastrand::Rng;

use crate::content::{content, length};

/// Longest request or reply, in bytes.
const LONGEST: usize = 100 << 10;
/// Longest nested request, in bytes.
const LONGEST_NESTED: usize = 16 << 10;
/// Longest oneway call, in bytes: all outstanding ones to a process must fit the oneway half of its buffer space.
const LONGEST_ONEWAY: usize = 2 << 10;
/// Outstanding oneway calls per stream.
const OPEN: u64 = 16;
/// Concurrent death registrations of a process.
const LINKS: usize = 40;

/// A traffic thread.
pub(super) struct Traffic {
    member: Arc<Member>,
    thread: u64,
    rng: Rng,
    sent: BTreeMap<(usize, usize), Sent>,
}

impl Traffic {
    pub(super) fn new(member: &Arc<Member>, thread: u64, seed: u64) -> Self {
        Self { member: member.clone(), thread, rng: Rng::with_seed(seed), sent: BTreeMap::new() }
    }

    /// Runs until the process is told to stop, then until everything sent has arrived.
    pub(super) fn run(mut self) {
        while !self.member.is_stopping() {
            if self.member.is_resting() {
                std::thread::sleep(std::time::Duration::from_millis(1));
            } else {
                self.step();
            }
        }
        for (index, service) in self.sent.keys().copied().collect::<Vec<_>>() {
            if let Some(peer) = self.member.peer(index, service) {
                self.drain(&peer, (index, service), 0);
            }
        }
    }

    /// A random index other than this one.
    fn index(&mut self, other_than: usize) -> usize {
        let step = 1 + self.rng.usize(..self.member.members - 1);
        (other_than + step) % self.member.members
    }

    fn step(&mut self) {
        let (index, service) = (self.index(self.member.me.index), self.rng.usize(..SERVICES));
        let Some(peer) = self.member.peer(index, service) else {
            // No process has that index now.
            std::thread::sleep(std::time::Duration::from_millis(1));
            return;
        };
        let member = self.member.clone();
        member.lie(&peer);
        let key = self.rng.u64(..);
        match self.rng.usize(..100) {
            0..40 => {
                let (len, wanted) = (length(&mut self.rng, LONGEST), length(&mut self.rng, LONGEST));
                member.echo(&peer, key, len, wanted);
            }
            40..55 => self.nest(index, key),
            55..75 => self.note(&peer, (index, service)),
            75..80 => member.keep_at(&peer),
            80..85 => member.take_from(&peer),
            85..90 => self.with_claim(|traffic, claim| traffic.member.ask(claim)),
            90..94 => member.file_at(&peer, key),
            94..96 => member.link(peer.instance, &peer.binder),
            96 => self.with_claim(|traffic, claim| traffic.member.link(claim.owner, &claim.binder)),
            97 => member.visit(&mut self.rng),
            _ => self.let_go(),
        }
        member.links.limit(LINKS);
    }

    fn nest(&mut self, first: usize, key: u64) {
        let mut route = vec![first];
        for _ in 0..1 + self.rng.usize(..3) {
            let last = route[route.len() - 1];
            let home = self.member.me.index;
            // Back to this member, or on to another.
            let next = if last != home && self.rng.usize(..2) == 0 { home } else { self.index(last) };
            route.push(next);
        }
        let bytes = content(key, length(&mut self.rng, LONGEST_NESTED));
        self.member.nest(route[0], key, &route[1..], &bytes);
    }

    fn drain(&mut self, peer: &Peer, at: (usize, usize), open: u64) -> bool {
        let sender = Sender { instance: self.member.me, thread: self.thread };
        let Some(sent) = self.sent.get_mut(&at) else { return true };
        if sent.to != peer.instance || self.member.drain(peer, sender, sent, open) {
            return true;
        }
        self.sent.remove(&at);
        false
    }

    fn note(&mut self, peer: &Peer, at: (usize, usize)) {
        for _ in 0..1 + self.rng.usize(..4) {
            if !self.drain(peer, at, OPEN - 1) {
                return;
            }
            let fresh = Sent { to: peer.instance, last: 0, seen: 0 };
            let sent = self.sent.entry(at).or_insert(fresh);
            if sent.to != peer.instance {
                *sent = fresh;
            }
            sent.last += 1;
            let number = sent.last;
            let len = length(&mut self.rng, LONGEST_ONEWAY);
            if !self.member.note(peer, self.thread, number, len) {
                self.sent.remove(&at);
                return;
            }
        }
    }

    fn with_claim(&mut self, act: impl FnOnce(&Self, &super::ClaimedObject)) {
        let claim = {
            let bag = self.member.bag();
            if bag.is_empty() { None } else { bag.get(self.rng.usize(..bag.len())).cloned() }
        };
        if let Some(claim) = claim {
            act(self, &claim);
        }
    }

    /// Drops an object, or forgets a peer.
    fn let_go(&mut self) {
        let claim = {
            let mut bag = self.member.bag();
            let at = self.rng.usize(..bag.len().max(1));
            if bag.is_empty() { None } else { Some(bag.swap_remove(at)) }
        };
        drop(claim);
        if self.rng.usize(..4) == 0 {
            let service = {
                let mut peers = self.member.peers();
                let at = peers.keys().nth(self.rng.usize(..peers.len().max(1))).copied();
                at.and_then(|at| peers.remove(&at))
            };
            drop(service);
        }
    }
}
