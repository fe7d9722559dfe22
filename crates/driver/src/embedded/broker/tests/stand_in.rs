//! Room: rules so simple that a test sees the transport alone.

use std::collections::HashMap;
use std::os::fd::OwnedFd;

use crate::embedded::broker::core::{Client, Outside};
use crate::embedded::broker::memory::World;
use crate::embedded::broker::serve::{Asked, Rules};
use crate::embedded::protocol::{
    Item, Lineage, ProcId, Request, Returns, Sched, StateFile, Transact, TransactKind,
};

/// Answers every transaction with what it saw of it: bytes, descriptors, fault; the bytes themselves
/// go to the sender's own area. `FreeBuffer` brings as many works as its offset says.
#[derive(Default)]
pub(super) struct StandIn {
    procs: Vec<ProcId>,
    last: u32,
    fds: HashMap<u32, Vec<OwnedFd>>,
}

/// Makes channel 1 between the first two processes.
pub(super) const CONNECT_ALL: Request = Request::MaxThreads { max: 0 };

/// A transaction of so many bytes.
pub(super) fn transact(data_size: u64, gathered: u64) -> Request {
    Request::Transact {
        transact: Transact {
            kind: TransactKind::Call { handle: 0 },
            code: 1,
            flags: 0,
            data_size,
            offsets_size: 0,
            buffers_size: 0,
            gathered,
            fault_object: u32::MAX,
            fault_errno: 0,
            data_fault: 0,
            frees: None,
            sched: Sched::default(),
            lineage: Lineage::EMPTY,
        },
    }
}

impl Rules for StandIn {
    fn open(&mut self, client: Client) -> ProcId {
        assert_eq!((client.pid, client.context.as_str()), (std::process::id(), "binder"));
        self.last += 1;
        self.procs.push(ProcId(self.last));
        ProcId(self.last)
    }

    fn close(&mut self, proc: ProcId, world: &mut World) {
        self.procs.retain(|other| *other != proc);
        for other in &self.procs {
            world.item(*other, Item::PeerGone { peer: proc });
        }
    }

    fn request(&mut self, asked: Asked<'_>, world: &mut World) {
        let Asked { from, thread, seq, request, bytes, fds } = asked;
        let words = match request {
            Request::Transact { transact } => {
                world.write(from, 0, bytes);
                [bytes.len() as u64, fds.len() as u64, transact.data_fault as u64, 0]
            }
            Request::FreeBuffer { offset } => {
                for work in 0..offset {
                    world.item(from, Item::Work { work, thread: None, deferred: false });
                }
                return;
            }
            CONNECT_ALL => [u64::from(world.make_channel(1, 0, self.procs[0], self.procs[1])), 0, 0, 0],
            other => panic!("{other:?}"),
        };
        self.last += 1;
        self.fds.insert(self.last, fds);
        let answer = Item::Answer {
            thread,
            seq,
            errno: 0,
            outcome: 0,
            sender_stops: false,
            transaction: self.last,
            error: abi::layout::ExtendedError { id: 0, command: 0, param: 0 },
            words,
            returns: Returns::default(),
        };
        world.item(from, answer);
    }

    fn take_fds(&mut self, _proc: ProcId, transaction: u32) -> Vec<OwnedFd> {
        self.fds.remove(&transaction).unwrap_or_default()
    }

    fn state(&self, which: StateFile, _world: &World) -> String {
        format!("{which:?} of {}", self.procs.len())
    }
}
