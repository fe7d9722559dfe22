//! Tests of the client's core, driven by synthetic events of the broker, of call slots and of threads.
//! Not here: the node pins alone (`node_pins`), calls between real connections (`client::tests`).

use std::sync::Arc;

use abi::codes::{bc, br, tf};
use abi::layout::ExtendedError;
use abi::stream::Command;
use sys::fixed_memory::FixedMemory;
use sys::sealed_memory::SealedMemory;

use super::slot_call::{BoxedCall, SlotCall, SlotEnd, SlotTicket};
use super::thread::{Awaited, BrokerCall, Frame, NO_ERROR, Pending, Served};
use super::{Core, Effect, Todo, looper};
use crate::client::channel::Channel;
use crate::priority::Restore;
use crate::rpc::protocol::{
    Answers, Delivery, Item, Lineage, Link, ProcId, Request, Returns, Sched, ThreadKey,
};
use crate::shm::call_slot::{self, CallSlots, ReplyHeader, RequestHeader};
use crate::shm::doorbell::{self, Doorbells};
use crate::trace_events::CodeAndFlags;

const ME: ProcId = ProcId(1);
const PEER: ProcId = ProcId(2);

fn key(slot: u32) -> ThreadKey {
    ThreadKey { slot, generation: 1 }
}

/// A core with this many threads.
fn core(threads: u32) -> Core {
    let mut core = Core::new(ME);
    for slot in 0..threads {
        assert_eq!(core.vacant_slot(), Some(slot));
        core.add_thread(key(slot), 100 + slot as i32);
    }
    core
}

fn channel(id: u32) -> Arc<Channel> {
    let memory = |size| SealedMemory::create(size).expect("memory");
    let call_slots = CallSlots::new(FixedMemory::new(memory(call_slot::SIZE)).expect("room")).expect("room");
    let bells = Doorbells::new(FixedMemory::new(memory(doorbell::SIZE)).expect("room")).expect("room");
    Arc::new(Channel::new((id, id), (PEER, 20, 0), (call_slots, bells)))
}

/// A core with one thread and one channel in each direction; handle 5 and node 0x10 may use binding 1.
fn core_with_channels() -> (Core, Arc<Channel>) {
    let mut core = core(2);
    let (out, inbound) = (channel(7), channel(8));
    core.channels.add_outbound(out.clone());
    core.channels.add_inbound(inbound);
    core.accept(Item::BindHandle { channel: 7, binding: 1, handle: 5, flags: 0, node: 3 });
    core.accept(Item::BindNode { channel: 8, binding: 1, ptr: 0x10, cookie: 0x11, flags: 0, tag: 0 });
    (core, out)
}

/// Makes a thread call handle 5 in the first call slot.
fn call(core: &mut Core, channel: &Arc<Channel>, slot: u32) -> (SlotTicket, usize) {
    let call = channel.call_slots.publish(slot, &RequestHeader::default(), b"").expect("idle");
    let ticket =
        SlotTicket { channel: channel.clone(), call, handle: 5, flags: 0, by_broker: false, trace_number: 0 };
    let acknowledgement = core.begin_slot_call(slot, ticket.clone());
    (ticket, acknowledgement)
}

/// An incoming call with this binding.
fn incoming(core: &Core, binding: u32, lineage: Option<Lineage>) -> BoxedCall {
    let mut call = SlotCall::new(core.channels.inbound(8).expect("open").clone());
    call.request.header.binding = binding;
    call.request.header.lineage = lineage.map(Box::new);
    Box::new(call)
}

/// An incoming call that counts this many records.
fn behind(core: &Core, records: u32) -> BoxedCall {
    let mut call = incoming(core, 1, None);
    call.request.header.behind = records;
    call
}

fn delivery(transaction: u32, to_thread: Option<ThreadKey>) -> Delivery {
    Delivery {
        transaction,
        to_thread,
        from: Link { proc: PEER, thread: key(0) },
        ptr: 0,
        cookie: 0,
        node_flags: 0,
        code: 1,
        flags: 0,
        sender_pid: 0,
        sender_euid: 0,
        buffer: 0,
        data_size: 0,
        offsets_size: 0,
        extra_size: 0,
        security_context: None,
        fds: 0,
        sched: Sched::default(),
        lineage: Lineage::EMPTY,
    }
}

fn deliver(core: &mut Core, transaction: u32, to_thread: Option<ThreadKey>) {
    core.accept(Item::Deliver { delivery: delivery(transaction, to_thread) });
}

fn serve(core: &mut Core, slot: u32, transaction: u32) {
    let lineage = Lineage::EMPTY;
    let call =
        BrokerCall { transaction, lineage, what: CodeAndFlags::default(), restore: Restore::default() };
    core.thread(slot).stack.push(Frame::Serving(Served::Broker(Box::new(call))));
}

fn wait_for(core: &mut Core, slot: u32, transaction: u32) {
    core.thread(slot).stack.push(Frame::Calling(Awaited::Broker(transaction)));
}

fn answer(core: &mut Core, slot: u32, seq: u32, errno: i32, outcome: u32, sender_stops: bool) {
    core.accept(Item::Answer {
        thread: key(slot),
        seq,
        errno,
        outcome,
        sender_stops,
        transaction: 77,
        error: NO_ERROR,
        words: [0; 4],
        returns: Returns::default(),
    });
}

fn refuse(core: &mut Core, slot: u32, transaction: u32) {
    let error = ExtendedError { id: 0, command: br::FAILED_REPLY, param: -5 };
    let answers = Answers::Transaction { number: transaction };
    core.accept(Item::Refused { thread: key(slot), answers, outcome: br::FAILED_REPLY, error });
}

/// Reads everything for a thread, as one word per item.
fn read(core: &mut Core, slot: u32, takes_any: bool) -> Vec<String> {
    std::iter::from_fn(|| core.take(slot, takes_any))
        .map(|todo| match todo {
            Todo::Word(br::TRANSACTION_COMPLETE) => "complete".to_owned(),
            Todo::Word(br::DEAD_REPLY) => "dead".to_owned(),
            Todo::Word(br::FAILED_REPLY) => "failed".to_owned(),
            Todo::Refusal(word) => format!("refusal {word:#x}"),
            Todo::Small(word, payload) => format!("small {word:#x} {payload:x?}"),
            Todo::Work(work) => format!("work {work}"),
            Todo::Call(delivery) => format!("call {}", delivery.transaction),
            Todo::SlotCall(call) => format!("slot call {:#x}", call.node.ptr),
            Todo::SlotReply(_) => "slot reply".to_owned(),
            other => format!("{other:?}"),
        })
        .collect()
}

/// The effects so far: the threads to wake, and the requests to send.
fn effects(core: &mut Core) -> (Vec<u32>, Vec<Request>) {
    let (mut woken, mut sent) = (Vec::new(), Vec::new());
    for effect in core.effects.drain(..) {
        match effect {
            Effect::Changed { slot, wake: true } => woken.push(slot),
            Effect::Send(request) => sent.push(*request),
            _ => {}
        }
    }
    (woken, sent)
}

#[test]
fn lp_08_work_goes_to_the_thread_that_became_idle_last() {
    let mut core = core(3);
    core.offer(0);
    core.offer(1);
    assert_eq!(core.listener(), Some(1));
    deliver(&mut core, 1, None);
    assert_eq!((core.listener(), effects(&mut core).0), (Some(0), vec![1]));
    assert_eq!(read(&mut core, 1, true), ["call 1"]);
    core.withdraw(0);
    core.add_poller(2);
    assert_eq!(core.listener(), Some(2));
    deliver(&mut core, 2, None);
    assert_eq!(effects(&mut core).0, [2], "a poller learns of it");
    assert!(read(&mut core, 2, false).is_empty(), "but is given none (contract POL-03)");
    assert!(core.queue_changed);
    assert_eq!((core.queued(), read(&mut core, 0, true)), ((1, 0), vec!["call 2".to_owned()]));
}

#[test]
fn a_thread_that_takes_work_in_keeps_one_piece_for_itself() {
    let mut core = core(1);
    core.begin_intake(0, true);
    deliver(&mut core, 1, None);
    deliver(&mut core, 2, None);
    core.end_intake();
    assert_eq!(core.queued(), (1, 0), "with the first it is not free any more");
    assert_eq!(read(&mut core, 0, false), ["call 1"]);
    assert_eq!(read(&mut core, 0, true), ["call 2"]);
}

#[test]
fn tx_06_a_nested_call_goes_to_the_thread_that_waits_further_out() {
    let mut core = core(2);
    core.offer(1);
    wait_for(&mut core, 0, 50);
    deliver(&mut core, 1, Some(key(0)));
    assert_eq!(read(&mut core, 0, false), ["call 1"]);
    core.thread(0).stack.clear();
    deliver(&mut core, 2, Some(key(0)));
    assert_eq!(read(&mut core, 1, false), ["call 2"], "it waits no more");
    deliver(&mut core, 3, Some(ThreadKey { slot: 0, generation: 9 }));
    assert_eq!(core.queued(), (1, 0), "nor does a thread of the past");
}

#[test]
fn a_call_that_comes_while_its_thread_serves_another_waits() {
    let mut core = core(1);
    wait_for(&mut core, 0, 50);
    serve(&mut core, 0, 51);
    deliver(&mut core, 1, Some(key(0)));
    assert!(read(&mut core, 0, false).is_empty());
    assert!(matches!(core.thread(0).begin_reply(), Some(Served::Broker(call)) if call.transaction == 51));
    core.release_early(0);
    assert_eq!(read(&mut core, 0, false), ["call 1"]);
}

#[test]
fn tx_19_ends_of_calls_are_read_from_the_far_end() {
    let mut core = core(1);
    wait_for(&mut core, 0, 50);
    serve(&mut core, 0, 51);
    refuse(&mut core, 0, 50);
    assert_eq!(core.depth(0), Some(1));
    assert!(read(&mut core, 0, false).is_empty(), "not while it serves a call of that chain");
    assert!(core.thread(0).begin_reply().is_some());
    assert!(core.thread(0).release_held());
    assert_eq!((read(&mut core, 0, false), core.depth(0)), (vec!["failed".to_owned()], Some(0)));
    assert_eq!(core.thread(0).extended_error.param, -5);
}

#[test]
fn tx_25_of_two_unread_failures_a_thread_reads_one() {
    let mut core = core(1);
    let fail = |core: &mut Core, transaction| {
        wait_for(core, 0, transaction);
        refuse(core, 0, transaction);
    };
    fail(&mut core, 50);
    fail(&mut core, 51);
    assert_eq!(read(&mut core, 0, false), ["failed"]);
    assert!(core.thread(0).is_free(), "both calls are over");
    fail(&mut core, 52);
    assert_eq!(read(&mut core, 0, false), ["failed"], "the one before was read");
}

#[test]
fn answers_become_what_the_request_was_for() {
    let mut core = core(1);
    let seq = core.thread(0).begin_request(Pending::Call);
    assert!(core.thread(0).is_sending());
    answer(&mut core, 0, seq.wrapping_sub(1), 0, br::TRANSACTION_COMPLETE, false);
    assert!(core.thread(0).answer.is_none(), "the answer to another request");
    answer(&mut core, 0, seq, 0, br::TRANSACTION_COMPLETE, false);
    let thread = core.thread(0);
    assert!(matches!(thread.stack[..], [Frame::Calling(Awaited::Broker(77))]));
    assert!(!thread.urgent && !thread.may_call(), "the acknowledgement of a call can wait (contract WR-15)");
    assert_eq!(read(&mut core, 0, false), ["complete"]);
    core.thread(0).stack.clear();
    let seq = core.thread(0).begin_request(Pending::Oneway);
    answer(&mut core, 0, seq, 0, br::TRANSACTION_COMPLETE, false);
    assert!(core.thread(0).urgent);
    assert_eq!(read(&mut core, 0, false), ["complete"]);
    for (pending, errno, stops, outcome) in
        [(Pending::Call, 0, true, br::FAILED_REPLY), (Pending::Reply, 3, false, br::TRANSACTION_COMPLETE)]
    {
        let seq = core.thread(0).begin_request(pending);
        answer(&mut core, 0, seq, errno, outcome, stops);
        assert!(core.thread(0).refused, "writes stop until it is read (contract WR-13)");
        assert_eq!(read(&mut core, 0, false), [format!("refusal {outcome:#x}")]);
        assert!(!core.thread(0).refused && core.thread(0).is_free());
    }
}

#[test]
fn an_answer_to_nobody_comes_back_and_deferred_work_wakes_nobody() {
    let mut core = core(1);
    let numbers = Item::Answer {
        thread: ThreadKey::NOBODY,
        seq: 0,
        errno: 0,
        outcome: 0,
        sender_stops: false,
        transaction: 0,
        error: NO_ERROR,
        words: [10, 20, 0, 0],
        returns: Returns::default(),
    };
    assert_eq!(core.accept(numbers).map(|answer| answer.words), Some([10, 20, 0, 0]));
    assert!(core.accept(Item::Work { work: 1, thread: Some(key(0)), deferred: true }).is_none());
    assert!(!core.has_work(0, true) && effects(&mut core).0.is_empty());
    core.accept(Item::Work { work: 2, thread: Some(key(0)), deferred: false });
    assert!(core.has_work(0, false));
    assert_eq!(
        (read(&mut core, 0, false), effects(&mut core).0),
        (vec!["work 1".into(), "work 2".into()], vec![0])
    );
}

#[test]
fn lp_03_to_06_a_thread_joins_once_and_registers_only_when_asked() {
    use Command::{EnterLooper, RegisterLooper};
    const REGISTERED: u32 = looper::REGISTERED;
    const ENTERED: u32 = looper::ENTERED;
    const INVALID: u32 = looper::INVALID;
    for (commands, requested, want, started) in [
        (&[EnterLooper][..], false, ENTERED, 0),
        (&[RegisterLooper], true, REGISTERED, 1),
        (&[RegisterLooper], false, REGISTERED | INVALID, 0),
        (&[RegisterLooper, EnterLooper], true, REGISTERED | ENTERED | INVALID, 1),
        (&[EnterLooper, RegisterLooper], true, REGISTERED | ENTERED | INVALID, 0),
        (&[EnterLooper, Command::ExitLooper], false, ENTERED | looper::EXITED, 0),
    ] {
        let mut core = core(1);
        core.pool.requested = requested;
        let bits = commands.iter().map(|command| core.become_looper(0, *command)).last();
        assert_eq!((bits, core.pool.started), (Some(want), started), "{commands:?}");
    }
}

#[test]
fn lp_01_lp_02_one_looper_is_asked_for_at_a_time_by_one_that_joined() {
    let mut core = core(2);
    core.pool.max = 1;
    assert!(!core.request_looper(0), "it has not joined");
    core.become_looper(0, Command::EnterLooper);
    core.offer(1);
    assert!(!core.request_looper(0), "another one is idle");
    core.withdraw(1);
    assert!(core.request_looper(0) && !core.request_looper(0));
    core.become_looper(1, Command::RegisterLooper);
    assert!(!core.request_looper(0), "there are as many as may be");
}

#[test]
fn a_call_in_a_call_slot_ends_with_its_reply_or_without_one() {
    let (mut core, channel) = core_with_channels();
    for (end, want) in [
        (SlotEnd::Replied(ReplyHeader::default()), "slot reply"),
        (SlotEnd::Dead, "dead"),
        (SlotEnd::Nonsense, "failed"),
        (SlotEnd::Failed(5), "failed"),
    ] {
        let (ticket, _) = call(&mut core, &channel, 0);
        assert!(!core.thread(0).may_call() && core.thread(0).awaited_slot().is_some());
        assert_eq!(read(&mut core, 0, false), ["complete"]);
        let replied = matches!(end, SlotEnd::Replied(_));
        core.end_slot_call(0, 0, end);
        assert_eq!(read(&mut core, 0, false), [want]);
        let freed = core.effects.drain(..).any(|effect| matches!(effect, Effect::FreeSlot(_)));
        assert_eq!(freed, !replied, "a reply stays in its call slot until it is read");
        if replied {
            core.slot_call_over(&ticket);
        }
        channel.free_slot(ticket.call);
    }
    let error = core.thread(0).extended_error;
    assert_eq!((error.command, error.param), (br::FAILED_REPLY, -5), "the errno of the call that had one");
}

#[test]
fn frz_03_a_call_that_found_the_gate_shut_never_was() {
    let (mut core, channel) = core_with_channels();
    core.thread(0).push(Todo::Work(1));
    let (_, acknowledgement) = call(&mut core, &channel, 0);
    core.thread(0).push(Todo::Work(2));
    core.undo_slot_call(0, acknowledgement);
    assert_eq!(read(&mut core, 0, false), ["work 1", "work 2"]);
    assert!(core.thread(0).is_free());
}

#[test]
fn ref_13_what_could_end_a_handle_waits_for_its_calls() {
    let (mut core, channel) = core_with_channels();
    assert!(!core.hold_count(bc::RELEASE, 5), "there is no call");
    let (ticket, _) = call(&mut core, &channel, 0);
    assert!(core.hold_count(bc::RELEASE, 5) && core.hold_count(bc::DECREFS, 5));
    assert!(!core.hold_count(bc::ACQUIRE, 5) && !core.hold_count(bc::RELEASE, 6));
    let (other, _) = call(&mut core, &channel, 1);
    core.slot_call_over(&other);
    assert_eq!(effects(&mut core).1, []);
    core.slot_call_over(&ticket);
    let later = [bc::RELEASE, bc::DECREFS].map(|command| Request::Count { command, handle: 5 });
    assert_eq!(effects(&mut core).1, later);
}

#[test]
fn ref_13_what_could_end_a_node_waits_for_its_calls() {
    let (mut core, _) = core_with_channels();
    let call = incoming(&core, 1, None);
    core.accept_slot_call(call);
    assert!(core.hold_return(br::RELEASE, [0x10, 0x11]));
    assert!(!core.hold_return(br::ACQUIRE, [0x10, 0x11]) && !core.hold_return(br::RELEASE, [0x20, 0]));
    let Some(Todo::SlotCall(call)) = core.take(0, true) else { panic!("a call") };
    assert_eq!((call.node.ptr, call.node.cookie), (0x10, 0x11));
    assert!(read(&mut core, 0, true).is_empty());
    core.unpin(call.node.pin);
    assert_eq!(read(&mut core, 0, true), [format!("small {:#x} [10, 11]", br::RELEASE)]);
}

#[test]
fn id_05_a_call_with_a_binding_that_nobody_was_given_fails() {
    let (mut core, _) = core_with_channels();
    let early = incoming(&core, 2, None);
    core.accept_slot_call(early);
    assert!(!core.channels.is_settled(), "its caller may have heard of the binding first");
    core.accept(Item::BindNode { channel: 8, binding: 2, ptr: 0x20, cookie: 0, flags: 0, tag: 0 });
    core.accept_early_calls();
    assert!(core.channels.is_settled());
    assert_eq!(read(&mut core, 0, true), ["slot call 0x20"]);
    core.accept(Item::Unbind { channel: 8, binding: 1 });
    let late = incoming(&core, 1, None);
    core.accept_slot_call(late);
    assert!(matches!(core.effects[..], [Effect::FailCall(_, 22)]));
}

#[test]
fn lp_08_a_call_comes_behind_the_records_that_it_counts_and_before_others() {
    let (mut core, _) = core_with_channels();
    for first in [0, u32::MAX] {
        core.set_records(first);
        let record = |core: &mut Core, transaction| {
            deliver(core, transaction, None);
            core.count_record();
        };
        for (records, at_once) in [(0, true), (2, false), (1, false), (2, false)] {
            let call = behind(&core, first.wrapping_add(records));
            core.take_in_slot_call(call);
            assert_eq!(!core.has_calls_behind_records(), at_once, "{records}");
        }
        record(&mut core, 50);
        let late = behind(&core, first.wrapping_add(1));
        core.take_in_slot_call(late);
        record(&mut core, 51);
        assert!(!core.has_calls_behind_records());
        let [call, one, two] = ["slot call 0x10", "call 50", "call 51"];
        assert_eq!(read(&mut core, 0, true), [call, one, call, call, two, call, call]);
    }
}

#[test]
fn lp_08_a_call_waits_for_no_record_that_does_not_come() {
    let (mut core, _) = core_with_channels();
    let liar = behind(&core, 1000);
    core.take_in_slot_call(liar);
    assert!(read(&mut core, 0, true).is_empty());
    core.end_waits();
    assert_eq!(read(&mut core, 0, true), ["slot call 0x10"]);
    let dead = behind(&core, 1000);
    core.take_in_slot_call(dead);
    core.peer_gone(PEER);
    assert_eq!(read(&mut core, 0, true), ["slot call 0x10"], "made before its caller's end");
}

#[test]
fn tx_10_a_peer_that_goes_ends_its_calls_and_what_waited_for_them() {
    let (mut core, channel) = core_with_channels();
    call(&mut core, &channel, 0);
    core.hold_count(bc::RELEASE, 5);
    serve(&mut core, 0, 51);
    call(&mut core, &channel, 1);
    let early = incoming(&core, 9, None);
    core.accept_slot_call(early);
    assert_eq!(core.peer_gone(PEER).len(), 2);
    assert_eq!(read(&mut core, 1, false), ["complete", "dead"]);
    assert_eq!(read(&mut core, 0, false), ["complete"], "it serves another call of the chain");
    assert!(core.thread(0).begin_reply().is_some() && core.thread(0).release_held());
    assert_eq!(read(&mut core, 0, false), ["dead"]);
    let sent = effects(&mut core).1;
    assert_eq!(sent[0], Request::Count { command: bc::RELEASE, handle: 5 });
    let dropped = |channel| sent.contains(&Request::DropChannel { channel });
    assert!(dropped(7) && dropped(8));
    assert!(core.channels.handle(5).is_none() && core.channels.inbound(8).is_none());
    assert!(core.channels.is_settled());
}

#[test]
fn tx_17_a_reply_that_fails_stops_the_write() {
    let (mut core, _) = core_with_channels();
    serve(&mut core, 0, 51);
    core.thread(0).begin_reply();
    let acknowledgement = core.begin_slot_reply(0);
    assert!(core.thread(0).urgent);
    core.refuse_slot_reply(0, acknowledgement);
    assert!(core.thread(0).refused);
    assert_eq!(read(&mut core, 0, false), [format!("refusal {:#x}", br::TRANSACTION_COMPLETE)]);
}

#[test]
fn obj_09_descriptors_are_not_given_to_a_caller_that_refuses_them() {
    let (mut core, channel) = core_with_channels();
    let (ticket, _) = call(&mut core, &channel, 0);
    let reply = |thread: ThreadKey, answers, fds| Item::Reply {
        thread,
        answers,
        code: 0,
        flags: 0,
        euid: 0,
        buffer: 64,
        data_size: 0,
        offsets_size: 0,
        extra_size: 0,
        number: 0,
        fds,
    };
    core.accept(reply(key(0), ticket.answers(), 1));
    assert_eq!(ticket.flags & tf::ACCEPT_FDS, 0);
    assert_eq!(read(&mut core, 0, false), ["complete", "failed"]);
    assert_eq!(effects(&mut core).1, [Request::FreeBuffer { offset: 64 }]);
    core.accept(reply(key(0), Answers::Transaction { number: 9 }, 0));
    assert_eq!(
        effects(&mut core).1,
        [Request::FreeBuffer { offset: 64 }],
        "its caller is gone (contract TX-18)"
    );
}

#[test]
fn ext_01_a_thread_that_exits_leaves_its_slot_and_what_it_has_not_read() {
    let mut core = core(2);
    core.offer(0);
    core.thread(0).push(Todo::Work(1));
    let gone = core.remove_thread(0).expect("there");
    assert_eq!(gone.into_unread().count(), 1);
    assert_eq!((core.listener(), core.vacant_slot(), core.slot_of(key(0))), (None, Some(0), None));
    assert_eq!((core.slot_of_tid(100), core.slot_of_tid(101), core.slots()), (None, Some(1), vec![1]));
}
