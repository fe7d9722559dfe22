//! One process of the background experiment: a server, or the caller.
//! Not here: starting it (`super`), the service (`crate::inversion::service`), the background (`super::group`).

use backend::{AnyContext, on_context};
use procgroup::{READY, Role, SERVING, SlotAddress, WorkerSlot};
use record::Ground as Who;
use serde::{Deserialize, Serialize};
use sys::clock::{monotonic_ns, sleep_until};

use super::group::Ground;
use super::options::settings;
use crate::endpoint::Endpoint;
use crate::inversion::service::{self, Around, Callee};
use crate::scheduling;

/// Words of a sample: duration of the call, and of both moves, in ns.
pub(super) const WORDS: usize = 2;
/// The servers: in the foreground, in the background, and moving.
pub(super) const SERVERS: [Who; 3] = [Who::Foreground, Who::Background, Who::Moves];
/// Real-time CPU time limit in us, which nobody here needs.
const RUNAWAY: (u64, u64) = (500_000, 1_000_000);
/// Pause between calls in us, and what is added in turns, so that calls do not follow the scheduler's tick.
const PAUSE_US: (u64, u64, u64) = (1000, 370, 11);
/// Number of uncounted first calls, which contain setup costs.
const REHEARSALS: u32 = 3;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct BackgroundRole {
    pub(super) slot: SlotAddress,
    /// Address of the context.
    pub(super) address: String,
    pub(super) dialect: String,
    /// The CPU of all processes.
    pub(super) cpu: u32,
    pub(super) ground: Ground,
    /// Names of the servers.
    pub(super) names: [String; 3],
    /// CPU time of each call, in ns.
    pub(super) work_ns: u64,
    /// Calls of each step.
    pub(super) iterations: u32,
}

impl Role for BackgroundRole {
    const NAME: &'static str = "background";

    fn title(&self) -> String {
        match self.server() {
            Some(Who::Background) => "bg server",
            Some(Who::Moves) => "moving server",
            Some(_) => "fg server",
            None => "caller",
        }
        .to_owned()
    }

    fn run(self) -> Result<(), String> {
        self.slot.work(|slot| act(&self, slot))
    }
}

impl BackgroundRole {
    /// Returns which server this is; `None` for the caller.
    fn server(&self) -> Option<Who> {
        SERVERS.get(self.slot.number as usize).copied()
    }

    fn enter(&self, background: bool) -> Result<(), String> {
        let into = if background { "entering" } else { "leaving" };
        let moved = self.ground.enter(background);
        moved.map_err(|error| format!("{into} the background: {}", sys::errno::describe(&error)))
    }

    /// Returns what the server does around its work.
    fn around(&self, server: Who) -> Option<Around> {
        let ground = self.ground.clone();
        // The experiment tried both moves before; one that fails now shows in the times.
        (server == Who::Moves).then(|| Box::new(move |before: bool| drop(ground.enter(!before))) as Around)
    }
}

fn act(role: &BackgroundRole, slot: &mut WorkerSlot) -> Result<(), String> {
    scheduling::prepare(RUNAWAY, Some(&[role.cpu]))?;
    let dialect = role.dialect.parse()?;
    on_context!(&AnyContext::parse(&role.address), |context| {
        let endpoint = Endpoint::open(context, dialect, 0).map_err(|error| error.to_string())?;
        match role.server() {
            Some(server) => {
                let name = &role.names[slot_index(server)];
                let service =
                    service::offer_around(&endpoint, name, false, (role.work_ns, role.around(server)));
                let _service = service.map_err(|error| error.to_string())?;
                if server != Who::Foreground {
                    role.enter(true)?;
                }
                slot.finish(READY);
                endpoint.serve().map_err(|error| error.to_string())
            }
            None => {
                slot.finish(SERVING);
                slot.wait_for(READY);
                let find = |name| Callee::find(&endpoint, name).map_err(|error| error.to_string());
                let callees = [find(&role.names[0])?, find(&role.names[1])?, find(&role.names[2])?];
                slot.touch(role.iterations as usize);
                slot.finish(READY);
                call_all(role, &callees, slot)
            }
        }
    })
}

/// Returns the number of the server that a setting calls.
pub(super) fn slot_index(who: Who) -> usize {
    match who {
        Who::Foreground | Who::Caller => 0,
        Who::Background => 1,
        Who::Moves => 2,
    }
}

/// Makes the calls of all rounds, until a call breaks or the parent kills the process.
fn call_all(role: &BackgroundRole, callees: &[Callee; 3], slot: &mut WorkerSlot) -> Result<(), String> {
    let steps = std::iter::repeat_with(settings).flatten();
    for (step, (who, _)) in (READY + 1..).zip(steps) {
        slot.wait_for(step);
        slot.clear();
        let number = slot_index(who);
        if who == Who::Caller {
            role.enter(true)?;
        }
        let made = calls((&callees[number], number as u32), role.iterations, slot);
        if who == Who::Caller {
            role.enter(false)?;
        }
        made?;
        slot.finish(step);
    }
    Ok(())
}

fn calls((callee, number): (&Callee, u32), most: u32, slot: &mut WorkerSlot) -> Result<(), String> {
    for turn in 0..u64::from(most + REHEARSALS) {
        if slot.is_stopped() {
            break;
        }
        let (pause, step, turns) = PAUSE_US;
        sleep_until(monotonic_ns() + (pause + turn % turns * step) * 1000);
        slot.call(number);
        let start = monotonic_ns();
        let result = callee.call();
        let end = monotonic_ns();
        let served = result.map_err(|error| error.to_string())?;
        if turn >= u64::from(REHEARSALS) {
            slot.keep_words(start, end, &[end - start, served.around_ns]);
        }
    }
    Ok(())
}
