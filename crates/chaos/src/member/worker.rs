//! Main function of a member process and of the service manager.
//! Not here: the traffic (`traffic`, `service`).

use std::collections::BTreeMap;
use std::io::BufRead;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use backend::{AnyContext, on_context};
use driver::{Context, OpenOptions};
use ipc::binder::manager::{ServiceManager, Services};
use ipc::{Binder, Process, ProcessOptions};
use procgroup::Role;
use serde::{Deserialize, Serialize};

use super::descriptors::{Descriptors, resident_kib};
use super::links::Links;
use super::reporter::Reporter;
use super::service::MemberService;
use super::traffic::Traffic;
use super::wire::service_name;
use super::{Member, SERVICES};
use crate::fault::Fault;
use crate::instance::Instance;
use crate::messages::{Order, Phase, Report};
use crate::monitored::{DeathNotices, MonitoredConnection};

/// Traffic threads.
const THREADS: usize = 3;
/// Size of the receive mapping in bytes, the driver's maximum.
const MAP_SIZE: usize = 4 << 20;
/// Memory files per peer of an embedded driver: calls in both directions.
const MEMORY_PER_PEER: usize = 4;
/// Time limit for the service manager to appear.
const START: Duration = Duration::from_secs(30);

/// A process of the test.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ChaosRole {
    /// Address of the context.
    pub(crate) address: String,
    /// `None`: the service manager.
    pub(crate) member: Option<MemberOptions>,
}

/// Start parameters of a member.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct MemberOptions {
    pub(crate) me: Instance,
    /// Number of members, at least 2.
    pub(crate) members: usize,
    pub(crate) seed: u64,
    pub(crate) patience: Duration,
    pub(crate) fault: Option<Fault>,
}

impl Role for ChaosRole {
    const NAME: &'static str = "chaos";

    fn title(&self) -> String {
        match &self.member {
            None => "servicemanager".to_owned(),
            Some(member) => format!("member {}", member.me),
        }
    }

    fn run(self) -> Result<(), String> {
        let context = AnyContext::parse(&self.address);
        match self.member {
            None => on_context!(&context, |context| manage(context)),
            Some(member) => {
                let visited = context.clone();
                on_context!(&context, |context| take_part(context, member, visited))
            }
        }
    }
}

/// The controller's orders, up to the one to leave or the end of the input.
fn orders() -> impl Iterator<Item = Result<Order, String>> {
    let lines = std::io::stdin().lock().lines();
    let orders = lines.map(|line| serde_json::from_str(&line.map_err(text)?).map_err(text));
    orders.take_while(|order| *order != Ok(Order::Leave))
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// The context's service manager.
fn manage<X: Context>(context: &X) -> Result<(), String> {
    let process = Process::open(context, ProcessOptions::default()).map_err(text)?;
    let _manager = process.become_context_manager(ServiceManager::new()).map_err(text)?;
    process.start_thread_pool().map_err(text)?;
    Reporter::say(&Report::Reached(Phase::Ready));
    // It serves meanwhile.
    orders().for_each(drop);
    process.shutdown().map_err(text)
}

fn take_part<X: Context>(context: &X, start: MemberOptions, visited: AnyContext) -> Result<(), String> {
    let options = OpenOptions { map_size: MAP_SIZE, ..OpenOptions::default() };
    let notices = Arc::new(DeathNotices::default());
    let inner = context.open(options).map_err(text)?;
    let connection = MonitoredConnection { inner, notices: notices.clone() };
    // One thread per possible concurrent caller: chains of calls must never wait for a free thread.
    let max_threads = u32::try_from(start.members * THREADS + SERVICES).map_err(text)?;
    let process = Process::on(
        connection,
        ProcessOptions { max_threads, map_size: MAP_SIZE, ..ProcessOptions::default() },
    );
    let process = process.map_err(text)?;
    process.start_thread_pool().map_err(text)?;
    let services = Services::wait(&process, sys::patience::stretched(START)).map_err(text)?;
    let seed = start.seed;
    let member = Arc::new(new_member(services, &start, visited)?);
    let mut published = Vec::new();
    for number in 0..SERVICES {
        let service = process.publish(MemberService::new(&member));
        member.services.add(&service_name(start.me.index, number), &service).map_err(text)?;
        published.push(service);
    }
    let reporter = member.clone();
    sys::title::thread("reporter", move || reporter.reporter.watch()).map_err(text)?;
    let before = Descriptors::open();
    Reporter::say(&Report::Reached(Phase::Ready));
    let mut threads = (0..THREADS as u64)
        .map(|thread| {
            let traffic = Traffic::new(&member, thread, seed.wrapping_add(thread.wrapping_mul(0x5851_f42d)));
            sys::title::thread(&format!("caller {thread}"), move || traffic.run())
        })
        .collect::<Result<_, _>>()
        .map_err(text)?;
    for order in orders() {
        match order? {
            Order::Stop => {
                // On another thread: this one must answer if a join hangs.
                let (member, threads) = (member.clone(), std::mem::take(&mut threads));
                sys::title::thread("stopper", move || stop(&member, threads)).map_err(text)?;
            }
            Order::Settle(dead) => {
                member.settle(&dead);
                process.flush();
                check_descriptors(&member, &before);
                for cookie in notices.twice() {
                    member.reporter.fail(format_args!("a death was reported twice (cookie {cookie:x})"));
                }
                Reporter::say(&Report::Count(member.reporter.counters.tally()));
                Reporter::say(&Report::Reached(Phase::Settled));
            }
            Order::Rest(on) => member.rest(on),
            Order::Waits => member.reporter.tell_waits(),
            Order::Memory => Reporter::say(&Report::Memory(resident_kib())),
            Order::Leave => break,
        }
    }
    process.shutdown().map_err(text)
}

fn new_member(services: Services, start: &MemberOptions, context: AnyContext) -> Result<Member, String> {
    let Binder::Remote(manager) = services.manager().clone() else {
        return Err("this process is the service manager".to_owned());
    };
    Ok(Member {
        me: start.me,
        members: start.members,
        reporter: Reporter::new(start.patience),
        services,
        manager,
        peers: Mutex::new(BTreeMap::new()),
        bag: Mutex::default(),
        links: Links::default(),
        tokens: Arc::new(AtomicU64::new(0)),
        last_number: AtomicU64::new(0),
        stopping: AtomicBool::new(false),
        resting: AtomicBool::new(false),
        context,
        fault: start.fault,
        committed: AtomicU64::new(0),
    })
}

fn stop(member: &Member, threads: Vec<JoinHandle<()>>) {
    member.stop();
    for thread in threads {
        if thread.join().is_err() {
            member.reporter.fail(format_args!("a thread of {} panicked", member.me));
        }
    }
    Reporter::say(&Report::Reached(Phase::Stopped));
}

/// Descriptors of peers whose death was not yet reported may remain for a moment.
fn check_descriptors(member: &Member, before: &Descriptors) {
    let room = MEMORY_PER_PEER * member.members;
    if member.in_time(|| Descriptors::open().beyond(before, room).is_empty()) {
        return;
    }
    let now = Descriptors::open();
    for what in now.beyond(before, room) {
        member
            .reporter
            .fail(format_args!("{} leaks descriptors ({before} before, {now} now): {what}", member.me));
    }
}
