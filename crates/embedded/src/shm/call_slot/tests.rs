//! Tests of call slots: their rules, and that no content of them makes either side panic.
//! Not here: memory ordering (`models`).

use super::*;
use crate::rpc::protocol::{Lineage, Link, ProcId, Sched, ThreadKey};
use crate::shm::heap::HeapMemory;

fn call_slots() -> CallSlots<HeapMemory> {
    CallSlots::new(HeapMemory::new(SIZE)).expect("room")
}

impl<M: Memory> CallSlots<M> {
    /// Whether a call waits in this call slot.
    fn has_call(&self, call_slot: u32) -> bool {
        let word = self.request_word(call_slot).load(Ordering::Acquire);
        word != 0 && self.is_unclaimed(call_slot, word & !STATE)
    }

    fn any_called(&self) -> bool {
        (0..CALL_SLOTS).any(|call_slot| self.has_call(call_slot))
    }
}

fn header(waiting: u32) -> RequestHeader {
    let link = |n| Link { proc: ProcId(n), thread: ThreadKey { slot: n + 1, generation: n + 2 } };
    RequestHeader {
        binding: 1,
        code: 2,
        flags: 0x10,
        shape: Shape::default(),
        thread: ThreadKey { slot: 5, generation: 6 },
        cpu: 7,
        sched: Sched { policy: 1, priority: 99, nice: -20 },
        mark: 12,
        behind: u32::MAX,
        lineage: (waiting > 0).then(|| {
            let links: Vec<_> = (0..waiting).map(link).collect();
            Box::new(Lineage::from_links(&links).expect("not too many"))
        }),
    }
}

fn payload(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + at / 251) as u8).collect()
}

/// Sizes around each limit of the layout.
const SIZES: [usize; 10] = [0, 1, 4, 272, 273, 464, 465, 489, 4096, LARGEST];

#[test]
fn a_call_under_way_is_seen_with_the_thread_that_serves_it() {
    let call_slots = call_slots();
    let seen = || call_slots.under_way().collect::<Vec<_>>();
    let servers = || seen().iter().map(|call| call.server).collect::<Vec<_>>();
    assert_eq!(seen(), []);
    for server in [1023, 0] {
        let call = call_slots.publish(3, &header(2), &[1u8, 2, 3][..]).expect("idle");
        let [waiting] = &seen()[..] else { panic!("one call: {:?}", seen()) };
        assert_eq!((waiting.call_slot, waiting.server, waiting.header.code), (3, None, 2));
        assert_eq!((waiting.header.thread, waiting.header.lineage.as_ref()), (header(2).thread, None));
        let request = call_slots.take(3).expect("sane").expect("published");
        assert_eq!(servers(), [None], "taken, and no thread has it: not that of the call before");
        call_slots.note_server(request.taken(), server);
        assert_eq!(servers(), [Some(server)]);
        call_slots.reply(request.taken(), &ReplyHeader::default(), &[][..] as &[u8]).expect("fits");
        assert_eq!(seen(), [], "it is answered");
        call_slots.release(call);
        assert_eq!(seen(), []);
    }
    let call = call_slots.publish(3, &header(0), &[][..] as &[u8]).expect("idle");
    assert!(call_slots.back_out(call));
    assert_eq!(seen(), [], "it was taken back");
}

#[test]
fn calls_and_replies_of_all_sizes_arrive_as_they_were_sent() {
    let call_slots = call_slots();
    for (call_slot, waiting) in [(0, 0), (15, 1), (7, 16)] {
        for size in SIZES {
            let sent = payload(size);
            let header = RequestHeader { shape: Shape::plain(size).expect("fits"), ..header(waiting) };
            let call = call_slots.publish(call_slot, &header, &sent).expect("idle");
            assert!(call_slots.any_called() && call_slots.has_call(call_slot));
            assert!(!call_slots.is_answered(call) && !call_slots.is_idle());
            let request = call_slots.take_next().expect("sane").expect("published");
            assert_eq!((request.call_slot, &request.header), (call_slot, &header));
            assert!(!call_slots.any_called() && call_slots.take_next().expect("sane").is_none());
            assert!(!call_slots.has_call(call_slot));
            let mut got = vec![0; size];
            call_slots.copy_out(request.payload_range(), &mut got);
            assert!(got == sent, "{size} bytes");
            let answer = ReplyHeader { code: 9, flags: 8, shape: Shape::plain(size).expect("fits"), cpu: 1 };
            call_slots.reply(request.taken(), &answer, &got).expect("fits");
            assert_eq!(call_slots.poll_reply(call), Ok(Some(Outcome::Replied(answer))));
            let mut back = vec![0; size];
            call_slots.copy_out(call.reply_range(size), &mut back);
            assert!(back == sent, "{size} bytes back");
            assert!(!call_slots.is_idle());
            call_slots.release(call);
            assert!(call_slots.is_idle());
        }
    }
}

/// Memory in which the first call slot's claim changes at each look.
struct Restless(HeapMemory);

impl Memory for Restless {
    fn len(&self) -> usize {
        self.0.len()
    }
    fn word(&self, offset: usize) -> &AtomicU32 {
        let word = self.0.word(offset);
        if offset == base(0) + CLAIM {
            word.fetch_xor(HELD, Ordering::Relaxed);
        }
        word
    }
    fn copy_in(&self, offset: usize, bytes: &[u8]) {
        self.0.copy_in(offset, bytes);
    }
    fn copy_out(&self, offset: usize, bytes: &mut [u8]) {
        self.0.copy_out(offset, bytes);
    }
}

#[test]
fn an_answer_belongs_to_one_call() {
    let call_slots = call_slots();
    let taken = |call| {
        let request = call_slots.take(0).expect("sane").expect("published");
        assert_eq!(call_slots.poll_reply(call), Ok(None));
        request.taken()
    };
    let first = call_slots.publish(0, &header(0), b"1").expect("idle");
    assert_eq!(call_slots.publish(0, &header(0), b"2"), Err(Corrupt::SlotBusy));
    call_slots.fail(taken(first), 32);
    assert_eq!(call_slots.poll_reply(first), Ok(Some(Outcome::Failed(32))));
    call_slots.release(first);
    let second = call_slots.publish(0, &header(0), b"2").expect("idle");
    assert!(!call_slots.is_answered(second), "the first one's answer is still there");
    call_slots.replied_by_broker(taken(second));
    assert_eq!(call_slots.poll_reply(second), Ok(Some(Outcome::RepliedByBroker)));
    assert!(!call_slots.back_out(second), "served");
    call_slots.release(second);
    let third = call_slots.publish(0, &header(0), b"3").expect("idle");
    assert!(call_slots.back_out(third), "nobody took it");
    assert!(call_slots.is_idle() && call_slots.take_next().expect("sane").is_none());
}

#[test]
fn no_caller_is_passed_over_for_ever() {
    let call_slots = call_slots();
    for call_slot in 0..3 {
        call_slots.publish(call_slot, &header(0), b"").expect("idle");
    }
    let mut served = Vec::new();
    for _ in 0..6 {
        let request = call_slots.take_next().expect("sane").expect("a call");
        let (call_slot, number) = (request.call_slot, request.number);
        served.push(call_slot);
        call_slots.reply(request.taken(), &ReplyHeader::default(), b"").expect("fits");
        call_slots.release(Call { call_slot, number });
        call_slots.publish(call_slot, &header(0), b"").expect("idle");
    }
    assert_eq!(served, [0, 1, 2, 0, 1, 2]);
}

#[test]
fn the_gate_says_why() {
    let call_slots = call_slots();
    call_slots.shut(FROZEN);
    assert_eq!(call_slots.gate(), FROZEN);
    call_slots.close_as(Corrupt::SlotSize);
    call_slots.open(FROZEN);
    assert_eq!((call_slots.gate(), call_slots.reason()), (CLOSED, Corrupt::SlotSize.code()));
}

/// Freezes the callee; returns whether no call slot has a call.
fn freeze<M: Memory>(call_slots: &CallSlots<M>) -> bool {
    call_slots.shut(FROZEN);
    call_slots.hold()
}

/// Runs one call through call slot 0 from beginning to end.
fn serve<M: Memory>(call_slots: &CallSlots<M>) {
    let call = call_slots.publish(0, &header(0), b"").expect("idle");
    assert!(call_slots.has_call(0) && !call_slots.is_idle());
    let taken = call_slots.take(0).expect("sane").expect("published").taken();
    assert!(!call_slots.back_out(call) && !call_slots.is_idle());
    call_slots.reply(taken, &ReplyHeader::default(), b"").expect("fits");
    assert!(matches!(call_slots.poll_reply(call), Ok(Some(Outcome::Replied(_)))));
    call_slots.release(call);
    assert!(call_slots.is_idle());
}

#[test]
fn a_frozen_callee_takes_no_call_that_the_broker_did_not_see() {
    let call_slots = call_slots();
    for used in [false, true] {
        for call_slot in [0, CALL_SLOTS - 1] {
            assert!(freeze(&call_slots), "used: {used}");
            let call = call_slots.publish(call_slot, &header(0), b"").expect("idle");
            assert!(
                !call_slots.has_call(call_slot)
                    && !call_slots.any_called()
                    && call_slots.called().next().is_none()
            );
            assert!(call_slots.take(call_slot).expect("sane").is_none());
            assert!(call_slots.is_idle() && call_slots.hold(), "it is as good as backed out");
            assert!(call_slots.back_out(call) && call_slots.is_idle() && call_slots.hold());
            call_slots.open(FROZEN);
            assert!(call_slots.take(call_slot).expect("sane").is_none(), "not after a thaw, either");
        }
        serve(&call_slots);
    }
}

/// The caller was killed before it freed the slot.
#[test]
fn a_call_that_was_backed_out_is_not_pending() {
    let call_slots = call_slots();
    call_slots.shut(FROZEN);
    let call = call_slots.publish(0, &header(0), b"").expect("idle");
    assert!(!call_slots.is_idle() && !call_slots.hold());
    call_slots.decide(0, 0, call.number | BACKED_OUT).expect("nobody else");
    assert!(call_slots.is_idle() && call_slots.hold() && call_slots.take(0).expect("sane").is_none());
}

#[test]
fn a_call_that_the_broker_saw_is_served_while_it_freezes() {
    let call_slots = call_slots();
    let call = call_slots.publish(1, &header(0), b"").expect("idle");
    assert!(!freeze(&call_slots) && !call_slots.hold());
    let taken = call_slots.take(1).expect("sane").expect("it is waited for").taken();
    assert!(!call_slots.hold());
    call_slots.reply(taken, &ReplyHeader::default(), b"").expect("fits");
    assert!(!call_slots.hold(), "its reply was not read");
    call_slots.release(call);
    assert!(call_slots.hold());
    call_slots.publish(1, &header(0), b"").expect("idle");
    assert!(call_slots.take(1).expect("sane").is_none(), "held at the last look");
}

#[test]
fn a_call_that_was_held_is_taken_after_the_thaw() {
    let call_slots = call_slots();
    assert!(freeze(&call_slots));
    let call = call_slots.publish(0, &header(0), b"").expect("idle");
    call_slots.open(FROZEN);
    // The caller checks the gate now.
    assert!(call_slots.gate() == 0 && call_slots.has_call(0) && !call_slots.is_idle());
    assert!(!freeze(&call_slots), "from now on it counts");
    assert!(call_slots.take(0).expect("sane").is_some() && !call_slots.back_out(call));
}

#[test]
fn freezes_without_calls_between_change_nothing() {
    let call_slots = call_slots();
    for _ in 0..3 {
        assert!(freeze(&call_slots) && freeze(&call_slots));
        call_slots.open(FROZEN);
        call_slots.open(FROZEN);
    }
    serve(&call_slots);
    assert!(freeze(&call_slots));
    call_slots.open(FROZEN);
    serve(&call_slots);
}

#[test]
fn freezes_go_on_where_numbers_begin_again() {
    let call_slots = call_slots();
    let last = 0_u32.wrapping_sub(3 * (STATE + 1));
    call_slots.request_word(0).store(last | CALLED, Ordering::Relaxed);
    call_slots.over(0).store(last, Ordering::Relaxed);
    call_slots.claim(0).store(last | TAKEN, Ordering::Relaxed);
    for _ in 0..3 {
        assert!(freeze(&call_slots));
        let call = call_slots.publish(0, &header(0), b"").expect("idle");
        assert!(call_slots.take(0).expect("sane").is_none() && call_slots.back_out(call));
        call_slots.open(FROZEN);
        assert!(freeze(&call_slots));
        call_slots.open(FROZEN);
        serve(&call_slots);
    }
    assert_eq!(call_slots.over(0).load(Ordering::Relaxed), 3 * (STATE + 1));
}

#[test]
fn a_claim_that_changes_all_the_time_keeps_nobody_busy() {
    let call_slots = CallSlots::new(Restless(HeapMemory::new(SIZE))).expect("room");
    call_slots.shut(FROZEN);
    assert!(!call_slots.hold(), "somebody else decides of that call slot");
    call_slots.open(FROZEN);
    let call = call_slots.publish(0, &header(0), b"").expect("idle");
    call_slots.shut(FROZEN);
    assert!(!call_slots.back_out(call), "who knows what came of it");
    assert!(!call_slots.hold());
    call_slots.open(FROZEN);
}

#[test]
fn what_does_not_fit_is_refused() {
    let call_slots = call_slots();
    let long = vec![0; LARGEST + 1];
    assert_eq!(call_slots.publish(CALL_SLOTS, &header(0), b""), Err(Corrupt::SlotSize));
    assert_eq!(call_slots.publish(0, &header(0), &long), Err(Corrupt::SlotSize));
    assert!(call_slots.is_idle());
    call_slots.publish(0, &header(0), b"").expect("idle");
    let taken = call_slots.take(0).expect("sane").expect("published").taken();
    assert_eq!(call_slots.reply(taken, &ReplyHeader::default(), &long), Err(Corrupt::SlotSize));
    assert!(matches!(CallSlots::new(HeapMemory::new(SIZE - 4)), Err(Corrupt::TooSmall)));
}

#[test]
fn no_bytes_make_either_side_panic() {
    let call_slots = call_slots();
    let mut corrupt = 0;
    for seed in 0..3000 {
        let mut rng = fastrand::Rng::with_seed(seed);
        // Small numbers are valid more often, and get further.
        let mut next = || if rng.bool() { rng.u32(..) } else { rng.u32(..70) };
        for offset in (0..FIRST + 2 * STRIDE).step_by(4) {
            call_slots.memory.word(offset).store(next(), Ordering::Relaxed);
        }
        for call_slot in 0..2 {
            let called = call_slots.request_word(call_slot);
            called.store((called.load(Ordering::Relaxed) & !STATE) | (next() % 4), Ordering::Relaxed);
            let has_call = call_slots.has_call(call_slot);
            match call_slots.take(call_slot) {
                Ok(None) => assert!(!has_call, "a callee would look for it for ever"),
                Ok(Some(request)) => {
                    let mut got = vec![0; request.payload_range().len];
                    call_slots.copy_out(request.payload_range(), &mut got);
                    call_slots.reply(request.taken(), &ReplyHeader::default(), &got).expect("fits");
                }
                Err(_) => corrupt += 1,
            }
            let _ =
                (call_slots.any_called(), call_slots.take_next(), call_slots.is_idle(), call_slots.hold());
            call_slots.open(FROZEN);
            let number = call_slots.reply_word(call_slot).load(Ordering::Relaxed) & !STATE;
            let call = Call { call_slot, number };
            if let Ok(Some(Outcome::Replied(reply))) = call_slots.poll_reply(call) {
                let range = call.reply_range(reply.shape.sent());
                call_slots.copy_out(range, &mut vec![0; range.len]);
            }
            let _ = call_slots.publish(call_slot, &header(3), b"bytes").map(|call| call_slots.back_out(call));
        }
    }
    assert!(corrupt > 100, "only {corrupt} were recognised as nonsense");
}
