//! Finds for each call the call that its thread served when it made it.
//! Not here: pairing events (`trace::model`).

use std::collections::BTreeMap;

use super::Call;

/// Event of a thread at a time; the order counts where a clock is coarse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Did {
    Received,
    Sent,
}

/// Sets `parent`, `back` and `orphan` of calls that are in order of their sending.
pub(super) fn nest(calls: &mut [Call]) {
    let mut threads: BTreeMap<i32, Vec<(u64, Did, usize)>> = BTreeMap::new();
    for (at, call) in calls.iter().enumerate() {
        threads.entry(call.client).or_default().push((call.sent, Did::Sent, at));
        if let Some(server) = call.server {
            threads.entry(server).or_default().push((call.received, Did::Received, at));
        }
    }
    for mut did in threads.into_values() {
        did.sort_unstable();
        // Calls that it serves, the innermost last, and when the last answer comes that it waits for.
        let (mut serving, mut waits): (Vec<usize>, u64) = (Vec::new(), 0);
        for (ts, did, at) in did {
            match did {
                Did::Received => {
                    serving.retain(|served| calls[*served].done > ts);
                    calls[at].back = ts < waits;
                    if !calls[at].back {
                        // A thread takes work of its process only with nothing else to serve.
                        serving.clear();
                    }
                    serving.push(at);
                }
                Did::Sent => {
                    while serving.pop_if(|served| calls[*served].done < ts).is_some() {}
                    let parent = serving.last().copied().filter(|parent| *parent < at);
                    calls[at].orphan &= parent.is_none();
                    calls[at].parent = parent;
                    if !calls[at].oneway {
                        waits = waits.max(calls[at].end);
                    }
                }
            }
        }
    }
}
