//! Threads that wait for threads: circles, and processes at whose doors others wait long.
//! Not here: the graph (`graph`).

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

use super::graph::{Door, Graph};
use super::{OLD_MS, VERY_OLD_MS, age_or_unknown, calls_of, code};
use crate::finding::{Finding, Grade, Kind, Wait};
use crate::system::{Call, Id, System, Way};

/// Number of threads before a door from which it is worth a word, if each waits long.
const CROWD: usize = 3;
/// Maximum number of doors, and of circles, that are shown.
const MOST: usize = 20;
/// Maximum number of waits that are listed.
const MOST_WAITS: usize = 100;

pub(super) fn find(system: &System) -> Vec<Finding> {
    let Some(dump) = calls_of(system) else { return Vec::new() };
    let graph = Graph::of(system, dump);
    let stuck = graph.stuck();
    let mut found = deadlocks(system, &graph, &stuck);
    let circles = circles(&graph);
    let named: HashSet<i64> =
        circles.values().flatten().flat_map(|circle| &circle.calls).map(|call| call.id).collect();
    found.extend(circles.values().map(|circles| came_back(system, &graph, circles)).take(MOST));
    found.extend(doors(system, &graph, &stuck, &named));
    found
}

/// All waits that are old, the oldest first.
pub(super) fn all(system: &System) -> Vec<Wait> {
    let Some(dump) = calls_of(system) else { return Vec::new() };
    let graph = Graph::of(system, dump);
    let stuck = graph.stuck();
    let circles = circles(&graph);
    let in_circles: HashSet<i64> =
        circles.values().flatten().flat_map(|circle| &circle.calls).map(|call| call.id).collect();
    let mut calls: Vec<(Id, &Call)> = graph
        .threads()
        .into_iter()
        .flat_map(|id| graph.stack(id).iter().map(move |call| (id, *call)))
        .collect();
    calls.retain(|(_, call)| call.way == Way::Outgoing && call.age_ms.is_none_or(|age| age >= OLD_MS));
    calls.sort_by_key(|(_, call)| (Reverse(call.age_ms), call.id));
    let wait = |(id, call): (Id, &Call)| Wait {
        from: system.thread(id),
        to: match (graph.door(call), graph.next_stuck(id, &stuck).filter(|_| stuck.contains(&id))) {
            (Door::Thread(server), _) | (Door::Pool(_), Some(server)) => system.thread(server),
            (Door::Pool(pid), None) => format!("any thread of {}", system.process(pid)),
        },
        call: call.id,
        code: call.code,
        age_ms: call.age_ms,
        in_circle: in_circles.contains(&call.id) || stuck.contains(&id),
    };
    calls.into_iter().take(MOST_WAITS).map(wait).collect()
}

/// Circles of threads that cannot go on.
fn deadlocks(system: &System, graph: &Graph<'_>, stuck: &HashSet<Id>) -> Vec<Finding> {
    let mut named: HashSet<Id> = HashSet::new();
    let mut found = Vec::new();
    let mut threads: Vec<Id> = stuck.iter().copied().collect();
    threads.sort_unstable();
    for start in threads {
        let (mut walk, mut at) = (Vec::new(), start);
        while !walk.contains(&at) && !named.contains(&at) {
            walk.push(at);
            match graph.next_stuck(at, stuck) {
                Some(next) => at = next,
                None => break,
            }
        }
        let Some(begin) = walk.iter().position(|id| *id == at) else {
            named.extend(walk);
            continue;
        };
        named.extend(walk.iter().copied());
        found.push(deadlock(system, graph, &walk[begin..], stuck.len()));
    }
    found.truncate(MOST);
    found
}

fn deadlock(system: &System, graph: &Graph<'_>, circle: &[Id], stuck: usize) -> Finding {
    let calls: Vec<&Call> = circle.iter().filter_map(|id| graph.wait(*id)).collect();
    let youngest = calls.iter().map(|call| call.age_ms).min().flatten();
    let is_young = youngest.is_some_and(|age| age < OLD_MS);
    let (grade, word) = if is_young { (Grade::Note, "perhaps a deadlock") } else { (Grade::Bad, "deadlock") };
    let names: Vec<String> = circle.iter().chain(circle.first()).map(|id| system.thread(*id)).collect();
    let what = format!(
        "{word}: {} wait for each other: {}",
        units::counted(circle.len() as u64, "thread"),
        names.join(" -> ")
    );
    let mut sorted = circle.to_vec();
    sorted.sort_unstable();
    let mut finding = Finding::new(grade, Kind::Deadlock, format!("{word} {sorted:?}"), what)
        .when(format!("the youngest call for {}", age_or_unknown(youngest)))
        .pids(circle.iter().map(|id| id.pid))
        .why(picture(system, graph, &calls))
        .evidence(calls.iter().map(|call| system.evidence(call.at)));
    if stuck > circle.len() {
        let more = stuck - circle.len();
        let threads = if more == 1 { "thread waits" } else { "threads wait" };
        finding = finding.why(format!("{more} more {threads} behind them"));
    }
    if is_young {
        finding = finding
            .why("they are young: while calls go on a dump can show a circle that is none; look again");
    }
    finding
        .next("call one of the two ways oneway, or allow the pools more threads (BINDER_SET_MAX_THREADS); no lock may be held during a call")
        .contract(&["LP-09", "TX-06"])
}

/// One line for each call: who waits for whom.
fn picture(system: &System, graph: &Graph<'_>, calls: &[&Call]) -> String {
    let line = |call: &&Call| {
        let whom = match graph.door(call) {
            Door::Thread(id) => system.thread(id),
            Door::Pool(pid) => format!("any free thread of {}", system.process(pid)),
        };
        let node = if call.node != 0 { format!(" of node {}", call.node) } else { String::new() };
        let from = system.thread(call.from);
        format!(
            "{from} waits {} in call {} ({}{node}) for {whom}",
            age_or_unknown(call.age_ms),
            call.id,
            code(call.code)
        )
    };
    calls.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Calls that went in a circle back into the thread that waits, which is right, and whose innermost does not end; by the
/// processes in them.
fn circles<'s>(graph: &Graph<'s>) -> BTreeMap<Vec<i32>, Vec<Circle<'s>>> {
    let mut by_processes: BTreeMap<Vec<i32>, Vec<Circle<'s>>> = BTreeMap::new();
    for id in graph.threads() {
        if let Some(circle) =
            circle_into(graph, id).filter(|circle| circle.age_ms().is_none_or(|age| age >= OLD_MS))
        {
            by_processes.entry(circle.processes()).or_default().push(circle);
        }
    }
    by_processes
}

/// Threads of a chain that ends in the thread where it began.
struct Circle<'s> {
    /// Threads in the order of their calls; the first serves the innermost call.
    threads: Vec<Id>,
    /// Its calls, the innermost last.
    calls: Vec<&'s Call>,
}

impl Circle<'_> {
    fn processes(&self) -> Vec<i32> {
        let mut pids: Vec<i32> = self.threads.iter().map(|id| id.pid).collect();
        pids.sort_unstable();
        pids.dedup();
        pids
    }

    /// Age of the innermost call, in ms.
    fn age_ms(&self) -> Option<u64> {
        self.calls.last().and_then(|call| call.age_ms)
    }
}

/// The circle whose innermost call a thread serves while it waits for an outer one of the same chain.
fn circle_into<'s>(graph: &Graph<'s>, id: Id) -> Option<Circle<'s>> {
    let inner = graph.top(id).filter(|call| call.way == Way::Incoming)?;
    let outer = graph.stack(id).iter().rev().find(|call| call.way == Way::Outgoing)?;
    let (mut threads, mut calls) = (vec![id], vec![*outer]);
    let mut call = *outer;
    while let Door::Thread(server) = graph.door(call) {
        if server == id {
            break;
        }
        if threads.contains(&server) {
            return None;
        }
        threads.push(server);
        call =
            graph.stack(server).iter().rev().find(|next| next.way == Way::Outgoing && next.id > call.id)?;
        calls.push(call);
    }
    (call.id == inner.id).then_some(Circle { threads, calls })
}

fn came_back(system: &System, graph: &Graph<'_>, circles: &[Circle<'_>]) -> Finding {
    let several = circles.len() > 1;
    let path = |circle: &Circle<'_>| {
        let ids = circle.threads.iter().chain(circle.threads.first());
        ids.map(|id| system.thread(*id)).collect::<Vec<_>>().join(" -> ")
    };
    let paths: Vec<String> = circles.iter().map(path).collect();
    let youngest = circles.iter().map(Circle::age_ms).min().flatten();
    let is_old = youngest.is_none_or(|age| age >= VERY_OLD_MS);
    let grade = if several && is_old { Grade::Bad } else { Grade::Warning };
    let what = match several {
        true => format!("{} circles of calls that do not end: {}", circles.len(), paths.join(" and ")),
        false => format!("a circle of calls that does not end: {}", paths.join("")),
    };
    let servers: Vec<String> =
        circles.iter().filter_map(|circle| circle.threads.first()).map(|id| system.thread(*id)).collect();
    let all: Vec<&Call> = circles.iter().flat_map(|circle| circle.calls.iter().copied()).collect();
    let mut finding = Finding::new(grade, Kind::Deadlock, format!("{paths:?}"), what)
        .when(format!("all for over {}", age_or_unknown(youngest)))
        .pids(circles.iter().flat_map(Circle::processes))
        .why(picture(system, graph, &all))
        .why(format!(
            "each call came back into the thread that waits in its chain, which the driver permits; so Binder holds up none of \
             them: {} {} the innermost calls and wait for something else",
            servers.join(" and "),
            if several { "serve" } else { "serves" }
        ));
    if several {
        finding = finding.why("circles between the same processes that stop together: most likely each thread holds a lock that another one wants");
    }
    finding
        .next(format!("look at the stacks of {}: which lock each wants and which it holds; no lock may be held during a call", servers.join(" and ")))
        .contract(&["TX-06"])
        .evidence(all.iter().map(|call| system.evidence(call.at)))
}

/// Processes at whose doors threads wait long. `named` are calls that another finding has.
fn doors(system: &System, graph: &Graph<'_>, stuck: &HashSet<Id>, named: &HashSet<i64>) -> Vec<Finding> {
    let mut doors: BTreeMap<i32, Vec<Waiter<'_>>> = BTreeMap::new();
    for id in graph.threads().into_iter().filter(|id| !stuck.contains(id)) {
        let Some(call) = graph.wait(id).filter(|call| !named.contains(&call.id)) else { continue };
        let chain = graph.chain(call);
        let Some(door) = chain.last().copied() else { continue };
        let (Door::Thread(Id { pid, .. }) | Door::Pool(pid)) = door;
        doors.entry(pid).or_default().push(Waiter { thread: id, call, door, steps: chain.len() });
    }
    let mut found: Vec<(u64, Finding)> = Vec::new();
    for (pid, mut waiters) in doors {
        waiters.sort_by_key(|waiter| Reverse(waiter.call.age_ms));
        let oldest = waiters.first().and_then(|waiter| waiter.call.age_ms).unwrap_or(0);
        let many =
            waiters.iter().filter(|waiter| waiter.call.age_ms.is_some_and(|age| age >= OLD_MS)).count();
        // A single wait is common: some calls wait by design.
        if oldest >= VERY_OLD_MS || many >= CROWD {
            found.push((oldest, door_finding(system, graph, pid, &waiters)));
        }
    }
    found.sort_by_key(|(oldest, _)| Reverse(*oldest));
    found.into_iter().map(|(_, finding)| finding).take(MOST).collect()
}

/// A thread that waits, and for whom in the end.
struct Waiter<'s> {
    thread: Id,
    call: &'s Call,
    door: Door,
    /// Calls from it to its door.
    steps: usize,
}

/// `waiters`: the longest first.
fn door_finding(system: &System, graph: &Graph<'_>, pid: i32, waiters: &[Waiter<'_>]) -> Finding {
    let oldest = waiters.first().and_then(|waiter| waiter.call.age_ms);
    let many = units::counted(waiters.len() as u64, "thread");
    let wait = if waiters.len() == 1 { "waits" } else { "wait" };
    let who = system.process(pid);
    let shown: Vec<&Call> = waiters.iter().take(5).map(|waiter| waiter.call).collect();
    let mut finding =
        Finding::new(Grade::Warning, Kind::Wait, format!("{pid}"), format!("{many} {wait} for {who}"))
            .when(format!("the longest for {}", age_or_unknown(oldest)))
            .pids([pid].into_iter().chain(waiters.iter().map(|waiter| waiter.thread.pid)).take(8))
            .why(picture(system, graph, &shown))
            .evidence(shown.iter().take(3).map(|call| system.evidence(call.at)));
    let longest = waiters.iter().map(|waiter| waiter.steps).max().unwrap_or(0);
    if longest > 1 {
        finding = finding.why(format!("the longest chain has {longest} calls"));
    }
    let untaken = waiters.iter().filter(|waiter| matches!(waiter.door, Door::Pool(_))).count();
    if untaken > 0 {
        let calls = units::counted(untaken as u64, "call");
        finding = finding.why(format!(
            "nobody has taken {calls}: all threads of the pool are in other calls, or it is frozen or stopped"
        ));
    }
    let mut servers: BTreeMap<i32, usize> = BTreeMap::new();
    for waiter in waiters {
        if let Door::Thread(id) = waiter.door {
            *servers.entry(id.tid).or_default() += 1;
        }
    }
    let mut servers: Vec<(i32, usize)> = servers.into_iter().collect();
    servers.sort_by_key(|(_, waiters)| Reverse(*waiters));
    for (tid, waiters) in servers.iter().take(3) {
        let id = Id { pid, tid: *tid };
        finding = finding.why(served(system, graph, id, *waiters));
    }
    let stacks = match servers.first() {
        Some((tid, _)) => format!("look at the stack of thread {tid} of {who}"),
        None => format!("look at what the threads of {who} do, and whether it is frozen"),
    };
    finding.next(format!("{stacks}; a trace of it (`binderperf trace record`) shows what it waits for"))
}

/// What a thread at whose door others wait is in.
fn served(system: &System, graph: &Graph<'_>, id: Id, waiters: usize) -> String {
    let who = system.thread(id);
    let for_whom = if waiters > 1 { format!(", at whose door {waiters} wait,") } else { String::new() };
    match graph.top(id).filter(|call| call.way == Way::Incoming) {
        Some(call) => format!(
            "{who}{for_whom} serves call {} ({}) since {} and waits for nobody in Binder: it computes, or waits for something else",
            call.id,
            code(call.code),
            age_or_unknown(call.age_ms)
        ),
        None => format!("{who}{for_whom} is in no call that is listed"),
    }
}
