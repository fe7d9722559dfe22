//! Critical path of a slow transaction: whom its threads waited for, link by link, and the heaviest chain of each reason.
//! Not here: following the waits (`follow` of `model`), sentences (`text`).

use serde::{Deserialize, Serialize};

use super::detail::{Details, Doing, InterruptName};
use super::who::ThreadInfo;
use crate::cause::{Cause, Label};
use crate::model::chain::{How, Link, Next, Stop, Tie};
use crate::model::{Owner, Transaction};

/// Stretch of a thread on the path of a call.
///
/// The steps behind one with `waits_for`, one deeper, divide its time; those without it add up to the waits of the call, each
/// nanosecond once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathStep {
    /// Nanoseconds from the transaction's begin.
    pub at_ns: u64,
    /// Duration in nanoseconds.
    pub ns: u64,
    /// 0 for a wait of the call itself, 1 for whom it waited for, and so on.
    pub depth: u8,
    /// Thread ID.
    pub tid: i32,
    /// Name of the thread at that time.
    pub comm: String,
    /// The cause.
    pub cause: Label,
    /// Further detail, as in `reasons`; the work item of a kernel worker, the task that a runnable thread waited behind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Slice that it was in, or the method that it called or served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doing: Option<String>,
    /// Thread that it waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<i32>,
    /// How that is known, or why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub how: Option<How>,
}

/// Link of the heaviest chain of a reason: a thread that was waited for, and what it did most of that time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainLink {
    /// The thread.
    pub who: ThreadInfo,
    /// How it is known that it was waited for, as in [`PathStep::how`].
    pub how: How,
    /// The waiter's call that it served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<i32>,
    /// What the waiter's slice calls the lock that it owned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock: Option<String>,
    /// Where it took that lock, `CLASS.METHOD`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// Nanoseconds for which it was waited for.
    pub ns: u64,
    /// What it did for most of them.
    pub cause: Label,
    /// Nanoseconds of that.
    pub cause_ns: u64,
    /// Further detail of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Slice that it was in, or the method that it called or served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doing: Option<String>,
    /// What ended its wait or why the chain stops, if no further link follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<End>,
}

/// End of a chain. In JSON a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum End {
    /// It stops there.
    Stopped(Stop),
    /// This interrupt ended the last wait.
    Woken(InterruptName),
}

fn detail(details: &Details<'_>, link: &Link) -> Option<String> {
    match link.cause {
        // The next link says it.
        Cause::ThreadWait { .. } | Cause::Sleeping { .. } if link.waits_for().is_some() => None,
        Cause::Sleeping { place, .. } => details.place(&place),
        Cause::Running => details.place(&link.work).map(|function| format!("work item {function}")),
        cause => match cause.behind().filter(|behind| behind.tid > 0) {
            Some(behind) => Some(details.thread(behind.tid, behind.comm)),
            None => details.of(&cause),
        },
    }
}

fn doing(details: &Details<'_>, link: &Link) -> Option<String> {
    details.doing(link.slice).map(|doing| match doing {
        Doing::Method(name) | Doing::Slice(name) => name,
    })
}

/// All links of a call, as steps.
pub(super) fn steps(details: &Details<'_>, call: &Transaction) -> Vec<PathStep> {
    let step = |link: &Link| PathStep {
        at_ns: link.begin.saturating_sub(call.begin),
        ns: link.ns(),
        depth: link.depth,
        tid: link.tid,
        comm: details.people().comm(link.tid, link.comm),
        cause: link.cause.label(),
        detail: detail(details, link),
        doing: doing(details, link),
        waits_for: link.waits_for(),
        how: link.next.how(),
    };
    call.links.iter().map(step).collect()
}

/// The interrupt that ended the longest of some waits of a call, which begin at these times.
pub(super) fn ended_by(details: &Details<'_>, links: &[Link], begins: &[u64]) -> Option<InterruptName> {
    let heads = links.iter().filter(|link| link.depth == 0 && begins.binary_search(&link.begin).is_ok());
    match heads.max_by_key(|link| link.ns())?.next {
        Next::Interrupt(waker) => Some(details.interrupt_name(waker)),
        _ => None,
    }
}

/// The heaviest chain behind some waits of a call, which begin at these times.
pub(super) fn heaviest(details: &Details<'_>, links: &[Link], begins: &[u64]) -> Vec<ChainLink> {
    let is_head = |link: &Link| link.depth == 0 && begins.binary_search(&link.begin).is_ok();
    let mut waits: Vec<usize> =
        links.iter().enumerate().filter(|(_, link)| is_head(link)).map(|(index, _)| index).collect();
    let mut chain = Vec::new();
    loop {
        let tied = |index: usize| links.get(index).map(|link| link.next);
        let of_thread = waits.iter().copied().filter(|index| matches!(tied(*index), Some(Next::Thread(..))));
        let Some((Some(Next::Thread(tie, tid)), waiting)) = heaviest_group(links, of_thread, |index| {
            // Many calls to one thread are one reason.
            match tied(index) {
                Some(Next::Thread(Tie::Call(_), tid)) => Some(Next::Thread(Tie::Call(0), tid)),
                next => next,
            }
        }) else {
            return chain;
        };
        let did = waiting.iter().flat_map(|wait| behind(links, *wait));
        let what = |index: usize| {
            links.get(index).map(|link| (link.cause.label(), detail(details, link), link.waits_for()))
        };
        let Some((_, most)) = heaviest_group(links, did, what) else { return chain };
        let longest = |indices: &[usize]| {
            indices.iter().filter_map(|index| links.get(*index)).max_by_key(|link| link.ns())
        };
        let (Some(waiter), Some(link)) = (longest(&waiting), longest(&most)) else { return chain };
        let Some(how) = waiter.next.how() else { return chain };
        let owner = Owner::parse(details.model.slice_text(waiter.slice)).filter(|_| tie == Tie::Owner);
        let call = match waiter.next {
            Next::Thread(Tie::Call(id), _) => Some(id),
            Next::Thread(Tie::Busy(id), _) => id,
            _ => None,
        };
        chain.push(ChainLink {
            who: details.people().thread(tid, link.comm, None),
            how,
            call,
            lock: owner.map(|owner| owner.lock.to_owned()),
            place: owner.and_then(|owner| owner.place).map(str::to_owned),
            ns: sum(links, &waiting),
            cause: link.cause.label(),
            cause_ns: sum(links, &most),
            detail: detail(details, link),
            doing: doing(details, link),
            end: match link.next {
                Next::Interrupt(waker) => Some(End::Woken(details.interrupt_name(waker))),
                Next::Stopped(stop) => Some(End::Stopped(stop)),
                Next::Nothing | Next::Thread(..) => None,
            },
        });
        waits = most;
    }
}

/// The links that divide the time of this one.
fn behind(links: &[Link], wait: usize) -> impl Iterator<Item = usize> + '_ {
    let depth = links.get(wait).map_or(0, |link| link.depth);
    let deeper = links.iter().enumerate().skip(wait + 1).take_while(move |(_, link)| link.depth > depth);
    deeper.filter(move |(_, link)| link.depth == depth + 1).map(|(index, _)| index)
}

fn sum(links: &[Link], indices: &[usize]) -> u64 {
    indices.iter().filter_map(|index| links.get(*index)).map(Link::ns).sum()
}

/// The links that have in common what takes the most time.
fn heaviest_group<K: PartialEq>(
    links: &[Link],
    indices: impl Iterator<Item = usize>,
    key: impl Fn(usize) -> K,
) -> Option<(K, Vec<usize>)> {
    let mut groups: Vec<(K, Vec<usize>)> = Vec::new();
    for index in indices {
        let key = key(index);
        match groups.iter_mut().find(|group| group.0 == key) {
            Some(group) => group.1.push(index),
            None => groups.push((key, vec![index])),
        }
    }
    groups.into_iter().max_by_key(|group| sum(links, &group.1))
}
