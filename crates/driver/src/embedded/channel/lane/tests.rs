//! Room: a lane's rules, and that no bytes in it make either side panic.
//! Not here: its orders of memory (`models`).

use std::ops::Range;
use std::sync::Mutex;

use super::place::REQUEST_WRITTEN;
use super::*;
use crate::embedded::channel::heap::HeapMemory;
use crate::embedded::protocol::{Lineage, Link, ProcId, Sched, ThreadKey};

fn lanes() -> Lanes<HeapMemory> {
    Lanes::new(HeapMemory::new(SIZE)).expect("room")
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
        lineage: (waiting > 0).then(|| {
            let links: Vec<_> = (0..waiting).map(link).collect();
            Box::new(Lineage::from_links(&links).expect("not too many"))
        }),
    }
}

fn payload(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + at / 251) as u8).collect()
}

/// Sizes around every edge of the layout.
const SIZES: [usize; 12] = [0, 1, 4, 272, 273, 464, 465, 489, 4096, CUT_FROM - 1, CUT_FROM, LARGEST];

#[test]
fn calls_and_replies_of_all_sizes_arrive_as_they_were_sent() {
    let lanes = lanes();
    for (lane, waiting) in [(0, 0), (15, 1), (7, 16)] {
        for size in SIZES {
            let sent = payload(size);
            let header = RequestHeader { shape: Shape::plain(size).expect("fits"), ..header(waiting) };
            let call = lanes.publish(lane, &header, &sent).expect("idle");
            lanes.pour_request(call, &sent);
            assert!(lanes.any_called() && lanes.has_call(lane) && lanes.is_waiting(call));
            assert!(!lanes.is_answered(call) && !lanes.is_idle());
            let request = lanes.take_next().expect("sane").expect("published");
            assert_eq!((request.lane, &request.header), (lane, &header));
            assert!(!lanes.any_called() && lanes.take_next().expect("sane").is_none());
            assert!(!lanes.has_call(lane) && !lanes.is_waiting(call));
            let mut got = vec![0; size];
            lanes.copy_request(&request, &mut got, || false).expect("all written");
            assert!(got == sent, "{size} bytes");
            let answer = ReplyHeader {
                code: 9,
                flags: 8,
                shape: Shape::plain(size).expect("fits"),
                cpu: 1,
                watching: lane == 7,
            };
            lanes.reply(request.taken(), &answer, &got).expect("fits");
            lanes.pour_reply(request.taken(), &got);
            assert_eq!(lanes.poll_reply(call), Ok(Some(Outcome::Replied(answer))));
            let mut back = vec![0; size];
            lanes.copy_reply(call, &mut back, || false).expect("all written");
            assert!(back == sent, "{size} bytes back");
            assert!(!lanes.is_idle());
            lanes.release(call);
            assert!(lanes.is_idle());
        }
    }
}

/// Memory that notes what is expected to be written.
struct Noting {
    memory: HeapMemory,
    expected: Mutex<Vec<Range<usize>>>,
}

impl Memory for Noting {
    fn len(&self) -> usize {
        self.memory.len()
    }
    fn word(&self, offset: usize) -> &AtomicU32 {
        self.memory.word(offset)
    }
    fn copy_in(&self, offset: usize, bytes: &[u8]) {
        self.memory.copy_in(offset, bytes);
    }
    fn copy_out(&self, offset: usize, bytes: &mut [u8]) {
        self.memory.copy_out(offset, bytes);
    }
    fn expect_writes(&self, offset: usize, len: usize) {
        self.expected.lock().expect("no panic inside").push(offset..offset + len);
    }
}

/// What is expected to be written, in one piece.
fn expected(lanes: &Lanes<Noting>, mut ahead: Ahead) -> Range<usize> {
    while ahead.step(lanes) {}
    let ranges = std::mem::take(&mut *lanes.memory.expected.lock().expect("no panic inside"));
    assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start), "{ranges:?}");
    ranges.first().map_or(0, |first| first.start)..ranges.last().map_or(0, |last| last.end)
}

#[test]
fn what_is_got_ready_is_what_the_next_large_payload_is_written_over() {
    let memory = Noting { memory: HeapMemory::new(SIZE), expected: Mutex::default() };
    let lanes = Lanes::new(memory).expect("room");
    // What is expected to be written next, before and after a call.
    let round_trip = |sent: &[u8], back: &[u8]| {
        let call = lanes.publish(3, &header(0), sent).expect("idle");
        lanes.pour_request(call, sent);
        let request = lanes.take(3).expect("sane").expect("published");
        lanes.reply(request.taken(), &ReplyHeader::default(), back).expect("fits");
        lanes.pour_reply(request.taken(), back);
        lanes.release(call);
        [expected(&lanes, lanes.next_request(call)), expected(&lanes, lanes.next_reply(3))]
    };
    let nothing = [0..0, 0..0];
    assert_eq!(round_trip(b"small", b"too"), nothing);
    let mut before = nothing;
    for size in [CUT_FROM, 3 * CUT_FROM + 20, 3 * CUT_FROM + 20, LARGEST, LARGEST] {
        let (sent, back) = (payload(size), payload(size + 1)[1..].to_vec());
        let after = round_trip(&sent, &back);
        for ((before, after), bytes) in before.iter().zip(&after).zip([sent, back]) {
            let mut there = vec![0; before.len()];
            lanes.memory.copy_out(before.start, &mut there);
            assert_eq!(there, bytes[..before.len()], "{size} bytes: not where they were expected");
            assert_ne!(before.start, after.start, "an area that is still being read");
            assert_eq!(after.len(), size);
        }
        before = after;
    }
}

#[test]
fn an_answer_belongs_to_one_call() {
    let lanes = lanes();
    let taken = |call| {
        let request = lanes.take(0).expect("sane").expect("published");
        assert_eq!(lanes.poll_reply(call), Ok(None));
        request.taken()
    };
    let first = lanes.publish(0, &header(0), b"1").expect("idle");
    assert_eq!(lanes.publish(0, &header(0), b"2"), Err(Corrupt::LaneBusy));
    lanes.fail(taken(first), 32);
    assert_eq!(lanes.poll_reply(first), Ok(Some(Outcome::Failed(32))));
    lanes.release(first);
    let second = lanes.publish(0, &header(0), b"2").expect("idle");
    assert!(!lanes.is_answered(second), "the first one's answer is still there");
    lanes.replied_by_broker(taken(second));
    assert_eq!(lanes.poll_reply(second), Ok(Some(Outcome::RepliedByBroker)));
    assert!(!lanes.back_out(second), "served");
    lanes.release(second);
    let third = lanes.publish(0, &header(0), b"3").expect("idle");
    assert!(lanes.back_out(third), "nobody took it");
    assert!(lanes.is_idle() && lanes.take_next().expect("sane").is_none());
}

#[test]
fn no_caller_is_passed_over_for_ever() {
    let lanes = lanes();
    for lane in 0..3 {
        lanes.publish(lane, &header(0), b"").expect("idle");
    }
    let mut served = Vec::new();
    for _ in 0..6 {
        let request = lanes.take_next().expect("sane").expect("a call");
        let (lane, number) = (request.lane, request.number);
        served.push(lane);
        lanes.reply(request.taken(), &ReplyHeader::default(), b"").expect("fits");
        lanes.release(Call { lane, number });
        lanes.publish(lane, &header(0), b"").expect("idle");
    }
    assert_eq!(served, [0, 1, 2, 0, 1, 2]);
}

#[test]
fn the_gate_says_why() {
    let lanes = lanes();
    lanes.shut(FROZEN);
    assert_eq!(lanes.gate(), FROZEN);
    lanes.close_as(Corrupt::LaneSize);
    lanes.open(FROZEN);
    assert_eq!((lanes.gate(), lanes.reason()), (CLOSED, Corrupt::LaneSize.code()));
}

/// Freezes; whether no lane has a call.
fn freeze<M: Memory>(lanes: &Lanes<M>) -> bool {
    lanes.shut(FROZEN);
    lanes.hold()
}

/// A call of lane 0 from its beginning to its end.
fn serve<M: Memory>(lanes: &Lanes<M>) {
    let call = lanes.publish(0, &header(0), b"").expect("idle");
    assert!(lanes.has_call(0) && lanes.is_waiting(call) && !lanes.is_idle());
    let taken = lanes.take(0).expect("sane").expect("published").taken();
    assert!(!lanes.back_out(call) && !lanes.is_idle());
    lanes.reply(taken, &ReplyHeader::default(), b"").expect("fits");
    assert!(matches!(lanes.poll_reply(call), Ok(Some(Outcome::Replied(_)))));
    lanes.release(call);
    assert!(lanes.is_idle());
}

#[test]
fn a_frozen_callee_takes_no_call_that_the_broker_did_not_see() {
    let lanes = lanes();
    for used in [false, true] {
        for lane in [0, LANES - 1] {
            assert!(freeze(&lanes), "used: {used}");
            let call = lanes.publish(lane, &header(0), b"").expect("idle");
            assert!(!lanes.has_call(lane) && !lanes.any_called() && lanes.called().next().is_none());
            assert!(lanes.take(lane).expect("sane").is_none());
            assert!(lanes.is_idle() && lanes.hold(), "it is as good as backed out");
            assert!(lanes.back_out(call) && lanes.is_idle() && lanes.hold());
            lanes.open(FROZEN);
            assert!(lanes.take(lane).expect("sane").is_none(), "not after a thaw, either");
        }
        serve(&lanes);
    }
}

/// Its caller was killed before it said that the call is over.
#[test]
fn a_call_that_was_backed_out_is_not_pending() {
    let lanes = lanes();
    lanes.shut(FROZEN);
    let call = lanes.publish(0, &header(0), b"").expect("idle");
    assert!(!lanes.is_idle() && !lanes.hold());
    lanes.decide(0, 0, call.number | BACKED_OUT).expect("nobody else");
    assert!(lanes.is_idle() && lanes.hold() && lanes.take(0).expect("sane").is_none());
}

#[test]
fn a_call_that_the_broker_saw_is_served_while_it_freezes() {
    let lanes = lanes();
    let call = lanes.publish(1, &header(0), b"").expect("idle");
    assert!(!freeze(&lanes) && !lanes.hold());
    let taken = lanes.take(1).expect("sane").expect("it is waited for").taken();
    assert!(!lanes.hold());
    lanes.reply(taken, &ReplyHeader::default(), b"").expect("fits");
    assert!(!lanes.hold(), "its reply was not read");
    lanes.release(call);
    assert!(lanes.hold());
    lanes.publish(1, &header(0), b"").expect("idle");
    assert!(lanes.take(1).expect("sane").is_none(), "held at the last look");
}

#[test]
fn a_call_that_was_held_is_taken_after_the_thaw() {
    let lanes = lanes();
    assert!(freeze(&lanes));
    let call = lanes.publish(0, &header(0), b"").expect("idle");
    lanes.open(FROZEN);
    // Its caller looks now.
    assert!(lanes.gate() == 0 && lanes.is_waiting(call) && !lanes.is_idle());
    assert!(!freeze(&lanes), "from now on it counts");
    assert!(lanes.take(0).expect("sane").is_some() && !lanes.back_out(call));
}

#[test]
fn freezes_without_calls_between_change_nothing() {
    let lanes = lanes();
    for _ in 0..3 {
        assert!(freeze(&lanes) && freeze(&lanes));
        lanes.open(FROZEN);
        lanes.open(FROZEN);
    }
    serve(&lanes);
    assert!(freeze(&lanes));
    lanes.open(FROZEN);
    serve(&lanes);
}

#[test]
fn freezes_go_on_where_numbers_begin_again() {
    let lanes = lanes();
    let last = 0_u32.wrapping_sub(3 * (STATE + 1));
    lanes.request_word(0).store(last | CALLED, Ordering::Relaxed);
    lanes.over(0).store(last, Ordering::Relaxed);
    lanes.claim(0).store(last | TAKEN, Ordering::Relaxed);
    for _ in 0..3 {
        assert!(freeze(&lanes));
        let call = lanes.publish(0, &header(0), b"").expect("idle");
        assert!(lanes.take(0).expect("sane").is_none() && lanes.back_out(call));
        lanes.open(FROZEN);
        assert!(freeze(&lanes));
        lanes.open(FROZEN);
        serve(&lanes);
    }
    assert_eq!(lanes.over(0).load(Ordering::Relaxed), 3 * (STATE + 1));
}

/// Memory of which somebody changes the first lane's claim whenever it is looked at.
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

    fn expect_writes(&self, offset: usize, len: usize) {
        self.0.expect_writes(offset, len);
    }

    fn copy_out(&self, offset: usize, bytes: &mut [u8]) {
        self.0.copy_out(offset, bytes);
    }
}

#[test]
fn a_claim_that_changes_all_the_time_keeps_nobody_busy() {
    let lanes = Lanes::new(Restless(HeapMemory::new(SIZE))).expect("room");
    lanes.shut(FROZEN);
    assert!(!lanes.hold(), "somebody else decides of that lane");
    lanes.open(FROZEN);
    let call = lanes.publish(0, &header(0), b"").expect("idle");
    lanes.shut(FROZEN);
    assert!(!lanes.back_out(call), "who knows what came of it");
    assert!(!lanes.hold());
    lanes.open(FROZEN);
}

#[test]
fn what_does_not_fit_is_refused() {
    let lanes = lanes();
    let long = vec![0; LARGEST + 1];
    assert_eq!(lanes.publish(LANES, &header(0), b""), Err(Corrupt::LaneSize));
    assert_eq!(lanes.publish(0, &header(0), &long), Err(Corrupt::LaneSize));
    assert!(lanes.is_idle());
    lanes.publish(0, &header(0), b"").expect("idle");
    let taken = lanes.take(0).expect("sane").expect("published").taken();
    assert_eq!(lanes.reply(taken, &ReplyHeader::default(), &long), Err(Corrupt::LaneSize));
    assert!(matches!(Lanes::new(HeapMemory::new(SIZE - 4)), Err(Corrupt::TooSmall)));
}

#[test]
fn a_sender_that_stops_is_given_up() {
    let lanes = lanes();
    let long = payload(CUT_FROM);
    lanes.publish(0, &header(0), &long).expect("idle");
    let request = lanes.take(0).expect("sane").expect("published");
    let mut got = vec![0; CUT_FROM];
    let mut asked = 0;
    let gone = || {
        asked += 1;
        asked > 3
    };
    assert_eq!(lanes.copy_request(&request, &mut got, gone), Err(Corrupt::Stalled));
    lanes.memory.word(base(0) + REQUEST_WRITTEN + 4).store(CUT_FROM as u32 + 1, Ordering::Relaxed);
    assert_eq!(lanes.copy_request(&request, &mut got, || false), Err(Corrupt::Written));
    lanes.memory.word(base(0) + REQUEST_WRITTEN + 4).store(0, Ordering::Relaxed);
    lanes.shut(CLOSED);
    assert_eq!(lanes.copy_request(&request, &mut got, || false), Err(Corrupt::Stalled));
}

/// A small generator of bytes; the seed is in the failure.
fn bytes(seed: u64) -> impl FnMut() -> u32 {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        // Small numbers make more sense, and get further.
        if state & 1 == 0 { (state >> 32) as u32 } else { (state >> 32) as u32 % 70 }
    }
}

#[test]
fn no_bytes_make_either_side_panic() {
    let lanes = lanes();
    let mut corrupt = 0;
    for seed in 0..3000 {
        let mut next = bytes(seed);
        for offset in (0..FIRST + 2 * STRIDE).step_by(4) {
            lanes.memory.word(offset).store(next(), Ordering::Relaxed);
        }
        for lane in 0..2 {
            let called = lanes.request_word(lane);
            called.store((called.load(Ordering::Relaxed) & !STATE) | (next() % 4), Ordering::Relaxed);
            let has_call = lanes.has_call(lane);
            match lanes.take(lane) {
                Ok(None) => assert!(!has_call, "a callee would look for it for ever"),
                Ok(Some(request)) => {
                    let mut got = vec![0; request.header.shape.len()];
                    let _ = lanes.copy_request(&request, &mut got, || true);
                    lanes.reply(request.taken(), &ReplyHeader::default(), &got).expect("fits");
                }
                Err(_) => corrupt += 1,
            }
            let _ = (lanes.any_called(), lanes.take_next(), lanes.is_idle(), lanes.hold());
            lanes.open(FROZEN);
            let number = lanes.reply_word(lane).load(Ordering::Relaxed) & !STATE;
            let call = Call { lane, number };
            if let Ok(Some(Outcome::Replied(reply))) = lanes.poll_reply(call) {
                let _ = lanes.copy_reply(call, &mut vec![0; reply.shape.len()], || true);
            }
            let _ = lanes.publish(lane, &header(3), b"bytes").map(|call| lanes.back_out(call));
        }
    }
    assert!(corrupt > 100, "only {corrupt} were recognised as nonsense");
}
