//! Room: a process of the test from its start to its end, as its conductor tells it.
//! Not here: what it does meanwhile (`traffic`, `door`).

use std::collections::{BTreeMap, BTreeSet};
use std::io::BufRead;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use driver::{AnyContext, Context, OpenOptions, on_context};
use ipc::binder::manager::{ServiceManager, Services};
use ipc::{Binder, Process, ProcessOptions};

use super::descriptors::{Descriptors, resident_kib};
use super::desk::Desk;
use super::door::Door;
use super::links::Links;
use super::traffic::Traffic;
use super::wire::door_name;
use super::{DOORS, Member};
use crate::chaos::fault::Fault;
use crate::chaos::instance::Instance;
use crate::chaos::watched::{Obituaries, Watched};
use crate::chaos::words;

/// Threads that make traffic.
const THREADS: usize = 3;
/// The receiving area, in bytes: the most that a driver gives.
const MAP_SIZE: usize = 4 << 20;
/// Memory that an embedded driver may keep for each peer: for its calls to us and for ours.
const MEMORY_PER_PEER: usize = 4;
/// How long the service manager may take to be there.
const START: Duration = Duration::from_secs(30);

/// What a process of the test is told at its start.
struct Orders {
    me: Instance,
    places: usize,
    seed: u64,
    patience: Duration,
    fault: Option<Fault>,
}

/// Plays the part that the words name, until the conductor ends it.
///
/// # Errors
/// What went wrong, for people.
pub(in crate::chaos) fn play(given: &[String]) -> Result<(), String> {
    let given: Vec<&str> = given.iter().map(String::as_str).collect();
    match given[..] {
        [words::MANAGER, address] => {
            on_context!(&AnyContext::parse(address), |context| manage(context))
        }
        [words::MEMBER, address, me, places, seed, patience, fault] => {
            let number = |word: &str| word.parse::<u64>().map_err(|_| format!("{word:?} is no number"));
            let orders = Orders {
                me: me.parse()?,
                places: usize::try_from(number(places)?).map_err(|error| error.to_string())?.max(2),
                seed: number(seed)?,
                patience: Duration::from_millis(number(patience)?),
                fault: if fault == words::NONE { None } else { Some(fault.parse()?) },
            };
            on_context!(&AnyContext::parse(address), |context| take_part(context, orders))
        }
        _ => Err("strange words".to_owned()),
    }
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// The context's service manager, until its input ends or says so.
fn manage<X: Context>(context: &X) -> Result<(), String> {
    let process = Process::open(context, ProcessOptions::default()).map_err(text)?;
    let _manager = process.become_context_manager(ServiceManager::new()).map_err(text)?;
    process.start_thread_pool().map_err(text)?;
    println!("{}", words::READY);
    for line in std::io::stdin().lock().lines() {
        if line.map_err(text)? == words::LEAVE {
            break;
        }
    }
    process.shutdown().map_err(text)
}

fn take_part<X: Context>(context: &X, orders: Orders) -> Result<(), String> {
    let options = OpenOptions { map_size: MAP_SIZE, ..OpenOptions::default() };
    let obituaries = Arc::new(Obituaries::default());
    let inner = context.open(options).map_err(text)?;
    let connection = Watched { inner, obituaries: obituaries.clone() };
    // A thread for each that may call at a time: chains of calls must never wait for a free one.
    let max_threads = u32::try_from(orders.places * THREADS + DOORS).map_err(text)?;
    let process = Process::on(
        connection,
        ProcessOptions { max_threads, map_size: MAP_SIZE, ..ProcessOptions::default() },
    );
    let process = process.map_err(text)?;
    process.start_thread_pool().map_err(text)?;
    let services = Services::wait(&process, START).map_err(text)?;
    let seed = orders.seed;
    let member = Arc::new(new_member(services, &orders)?);
    let mut doors = Vec::new();
    for number in 0..DOORS {
        let door = process.publish(Door::new(&member));
        member.services.add(&door_name(orders.me.place, number), &door).map_err(text)?;
        doors.push(door);
    }
    let desk = member.clone();
    std::thread::spawn(move || desk.desk.watch());
    let before = Descriptors::open();
    member.desk.say(format_args!("{}", words::READY));
    let mut threads = (0..THREADS as u64)
        .map(|thread| {
            let traffic = Traffic::new(&member, thread, seed.wrapping_add(thread.wrapping_mul(0x5851_f42d)));
            std::thread::spawn(move || traffic.run())
        })
        .collect();
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(text)?;
        let (word, rest) = line.split_once(' ').unwrap_or((&line, ""));
        match word {
            words::STOP => {
                // Beside this thread, which must answer if one of those hangs.
                let (member, threads) = (member.clone(), std::mem::take(&mut threads));
                std::thread::spawn(move || stop(&member, threads));
            }
            words::SETTLE => {
                let dead: Result<BTreeSet<Instance>, String> =
                    rest.split_whitespace().map(str::parse).collect();
                member.settle(&dead?);
                process.flush();
                check_descriptors(&member, &before);
                for cookie in obituaries.twice() {
                    member.desk.fail(format_args!("a death was told twice (cookie {cookie:x})"));
                }
                member.desk.say(format_args!("count {}", member.desk.counters.tally().words()));
                member.desk.say(format_args!("{}", words::SETTLED));
            }
            words::WAITS => member.desk.tell_waits(),
            words::MEMORY => member.desk.say(format_args!("{} {}", words::MEMORY, resident_kib())),
            _ => break,
        }
    }
    process.shutdown().map_err(text)
}

fn new_member(services: Services, orders: &Orders) -> Result<Member, String> {
    let Binder::Remote(manager) = services.manager().clone() else {
        return Err("this process is the service manager".to_owned());
    };
    Ok(Member {
        me: orders.me,
        places: orders.places,
        desk: Desk::new(orders.patience),
        services,
        manager,
        peers: Mutex::new(BTreeMap::new()),
        bag: Mutex::default(),
        links: Links::default(),
        tokens: Arc::new(AtomicU64::new(0)),
        last_number: AtomicU64::new(0),
        stopping: AtomicBool::new(false),
        fault: orders.fault,
        committed: AtomicU64::new(0),
    })
}

fn stop(member: &Member, threads: Vec<JoinHandle<()>>) {
    member.stop();
    for thread in threads {
        if thread.join().is_err() {
            member.desk.fail(format_args!("a thread of {} panicked", member.me));
        }
    }
    member.desk.say(format_args!("{}", words::STOPPED));
}

/// Descriptors may take a moment to go: those of peers whose end was not told yet.
fn check_descriptors(member: &Member, before: &Descriptors) {
    let room = MEMORY_PER_PEER * member.places;
    if member.in_time(|| Descriptors::open().beyond(before, room).is_empty()) {
        return;
    }
    let now = Descriptors::open();
    for what in now.beyond(before, room) {
        member
            .desk
            .fail(format_args!("{} leaks descriptors ({before} before, {now} now): {what}", member.me));
    }
}
