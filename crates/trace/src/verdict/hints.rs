//! Warning about kinds of events that a trace lacks, and how to record them.
//! Not here: what each kind proves (`cause`).

use crate::cause::{Evidence, Shown};

/// What a trace with calls lacks to tell causes; `None` if it has what every cause rests on.
pub(super) fn missing(shown: Shown) -> Option<String> {
    if !shown.has(Evidence::Calls) || shown.schedules() {
        return None;
    }
    let lacks = [Evidence::Switches, Evidence::Wakeups].into_iter().filter(|one| !shown.has(*one));
    let lacks: Vec<&str> = lacks.map(Evidence::event).collect();
    let (some, dark) = match shown.has(Evidence::Switches) {
        true => ("some ", "it is not shown who woke whom, nor who got a CPU late"),
        false => ("", "most of the calls' time is not shown"),
    };
    Some(format!(
        "{some}causes cannot be told: the trace has no {}, so {dark}. Record the category sched, too: \
         `binderperf trace record -- COMMAND` does, and `binderperf trace config sched binder_driver` writes the configuration \
         for a phone's perfetto",
        lacks.join(" and no ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_told_what_it_lacks() {
        use Evidence::{Calls, Switches, Wakeups};
        let of = |shown: &[Evidence]| missing(Shown::of(shown));
        assert_eq!((of(&[]), of(&[Calls, Switches, Wakeups])), (None, None));
        assert!(of(&[Calls]).is_some_and(|text| text.contains("no sched_switch and no sched_waking, so")));
        assert!(
            of(&[Calls, Switches])
                .is_some_and(|text| text.contains("has no sched_waking, so it is not shown who woke whom"))
        );
    }
}
