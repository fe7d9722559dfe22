//! Tests of the test for priority inversion, and of each cause on a stream that has it.

mod scenes;

use super::*;

#[test]
fn inversion_needs_an_urgent_caller_and_somebody_less_urgent_in_the_way() {
    let wait = |prio: i32, behind: i32| Segment {
        begin: 0,
        end: 1,
        cause: Cause::Runnable(CpuHolder { tid: 9, comm: Name::NONE, prio: Some(Prio(behind)) }),
        tid: 5,
        prio: Some(Prio(prio)),
        cpu: Some(0),
        depth: 0,
        slice: SliceName::NONE,
    };
    let (rt, low_rt, nice) = (Prio(0), Prio(89), Prio(100));
    let of = |part: Segment, caller: Prio| part.inversion(4, Some(caller));
    assert_eq!(of(wait(120, 120), rt), Some(Inversion::NotBoosted));
    assert_eq!(of(wait(0, 120), rt), Some(Inversion::LatePreemption));
    assert_eq!(of(wait(low_rt.0, 120), rt), Some(Inversion::NotBoosted));
    assert_eq!(of(wait(120, 0), rt), None, "who is as urgent as the caller may run");
    assert_eq!(of(wait(120, 120), nice), None, "nice values share a CPU");
    assert_eq!(wait(120, 120).inversion(5, Some(rt)), None, "the caller itself waits");
    assert_eq!(wait(120, 120).inversion(4, None), None);
}
