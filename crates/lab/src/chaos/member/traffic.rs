//! Room: what one thread of a process does until it is told to stop, decided by dice.
//! Not here: the single calls and their checks (`calls`).

use std::collections::BTreeMap;
use std::sync::Arc;

use super::streams::{Sender, Sent};
use super::{DOORS, Member, Peer};
use crate::dice::{Dice, content};

/// The longest request or reply, in bytes.
const LONGEST: usize = 100 << 10;
/// The longest nested request.
const LONGEST_NESTED: usize = 16 << 10;
/// The longest oneway call: all that may be under way to one process must fit its area's half.
const LONGEST_ONEWAY: usize = 2 << 10;
/// Oneway calls of one stream under way.
const OPEN: u64 = 16;
/// Deaths that a process asks for at a time.
const LINKS: usize = 40;

/// One thread of traffic.
pub(super) struct Traffic {
    member: Arc<Member>,
    thread: u64,
    dice: Dice,
    sent: BTreeMap<(usize, usize), Sent>,
}

impl Traffic {
    pub(super) fn new(member: &Arc<Member>, thread: u64, seed: u64) -> Self {
        Self { member: member.clone(), thread, dice: Dice::new(seed), sent: BTreeMap::new() }
    }

    /// Runs until the process is told to stop, then until what was sent has arrived.
    pub(super) fn run(mut self) {
        while !self.member.is_stopping() {
            self.step();
        }
        for (place, door) in self.sent.keys().copied().collect::<Vec<_>>() {
            if let Some(peer) = self.member.peer(place, door) {
                self.drain(&peer, (place, door), 0);
            }
        }
    }

    /// A place other than these.
    fn place(&mut self, other_than: usize) -> usize {
        let step = 1 + self.dice.below(self.member.places - 1);
        (other_than + step) % self.member.places
    }

    fn step(&mut self) {
        let (place, door) = (self.place(self.member.me.place), self.dice.below(DOORS));
        let Some(peer) = self.member.peer(place, door) else {
            // Nobody is there yet.
            std::thread::sleep(std::time::Duration::from_millis(1));
            return;
        };
        let member = self.member.clone();
        member.lie(&peer);
        let key = self.dice.next();
        match self.dice.below(100) {
            0..40 => {
                let (len, wanted) = (self.dice.length(LONGEST), self.dice.length(LONGEST));
                member.echo(&peer, key, len, wanted);
            }
            40..55 => self.nest(place, key),
            55..75 => self.note(&peer, (place, door)),
            75..80 => member.keep_at(&peer),
            80..85 => member.take_from(&peer),
            85..90 => self.with_claim(|traffic, claim| traffic.member.ask(claim)),
            90..94 => member.file_at(&peer, key),
            94..96 => member.link(peer.instance, &peer.binder),
            96..97 => self.with_claim(|traffic, claim| traffic.member.link(claim.owner, &claim.binder)),
            _ => self.let_go(),
        }
        member.links.limit(LINKS);
    }

    fn nest(&mut self, first: usize, key: u64) {
        let mut route = vec![first];
        for _ in 0..1 + self.dice.below(3) {
            let last = route[route.len() - 1];
            let home = self.member.me.place;
            // Back to where it came from, or on.
            let next = if last != home && self.dice.below(2) == 0 { home } else { self.place(last) };
            route.push(next);
        }
        let bytes = content(key, self.dice.length(LONGEST_NESTED));
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
        for _ in 0..1 + self.dice.below(4) {
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
            let len = self.dice.length(LONGEST_ONEWAY);
            if !self.member.note(peer, self.thread, number, len) {
                self.sent.remove(&at);
                return;
            }
        }
    }

    fn with_claim(&mut self, act: impl FnOnce(&Self, &super::Claim)) {
        let claim = {
            let bag = self.member.bag();
            if bag.is_empty() { None } else { bag.get(self.dice.below(bag.len())).cloned() }
        };
        if let Some(claim) = claim {
            act(self, &claim);
        }
    }

    /// Drops an object, or forgets a door.
    fn let_go(&mut self) {
        let claim = {
            let mut bag = self.member.bag();
            let at = self.dice.below(bag.len().max(1));
            if bag.is_empty() { None } else { Some(bag.swap_remove(at)) }
        };
        drop(claim);
        if self.dice.below(4) == 0 {
            let door = {
                let mut peers = self.member.peers();
                let at = peers.keys().nth(self.dice.below(peers.len().max(1))).copied();
                at.and_then(|at| peers.remove(&at))
            };
            drop(door);
        }
    }
}
