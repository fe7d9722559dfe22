//! Tests of acknowledgements and ends of nested calls.

use std::sync::OnceLock;

use super::*;

#[test]
fn tx_19_a_death_notices_before_the_reply_is_acknowledged_is_the_outer_call_s() {
    let nested = complete_and_called(b"in");
    // Once with the acknowledgement in the same read, once in the next.
    for returns in [
        vec![Step::new(&[bc::REPLY, bc::FREE_BUFFER], all(&[simple(br::DEAD_REPLY), complete()]))],
        vec![Step::new(&[bc::REPLY, bc::FREE_BUFFER], simple(br::DEAD_REPLY)), Step::new(&[], complete())],
    ] {
        let again = Step::new(&[bc::TRANSACTION], all(&[complete(), reply(b"next")]));
        let steps =
            [vec![acquisition(), Step::new(&[bc::TRANSACTION], nested.clone())], returns, vec![again]];
        let process = on(steps.concat());
        let served = Arc::new(AtomicU32::new(0));
        let _node = process.publish_node(Box::new(Echo(served.clone())), NodeOptions::default());
        let proxy = proxy(&process);
        let refused = call(&proxy).expect_err("its callee died");
        assert!(matches!(refused, TransactError::Refused { by: Refusal::Dead, .. }), "{refused}");
        assert_eq!(served.load(Ordering::Relaxed), 1, "and the nested call was served");
        assert_eq!(call(&proxy).expect("the thread goes on"), b"next");
        process.connection().assert_finished();
    }
}

/// Calls its caller back before it replies, if told so.
#[derive(Default)]
struct CallsBack(Arc<(OnceLock<Proxy>, AtomicU32)>);

impl Serve for CallsBack {
    fn serve(&self, served: Transaction<'_>) {
        let (proxy, count) = &*self.0;
        if served.received().is_some_and(|received| received.data() == b"call") {
            assert_eq!(call(proxy.get().expect("set")).expect("answered"), b"inner");
        }
        count.fetch_add(1, Ordering::Relaxed);
        served.reply(TransactionFlags::default(), Payload::default()).expect("answered");
    }
}

/// Calls, is called, and is called again with `data` before it has read what became of its reply. `then`: what
/// follows. Says what came of the call.
fn called_again(data: &[u8], then: Vec<Step>) -> Result<Vec<u8>, TransactError> {
    let before = vec![
        Step::new(&[bc::TRANSACTION], complete_and_called(b"plain")),
        Step::new(&[bc::REPLY, bc::FREE_BUFFER], delivery(br::TRANSACTION, 0, NodePtr(1), 1, data)),
    ];
    let object = CallsBack::default();
    let state = object.0.clone();
    let result = one_call_serving([before, then].concat(), |process| {
        assert!(object.0.0.set(proxy(process)).is_ok(), "set once");
        Box::new(object)
    });
    assert_eq!(state.1.load(Ordering::Relaxed), 2, "both calls were served");
    result
}

#[test]
fn tx_19_replies_are_acknowledged_in_the_order_of_their_writing() {
    let second = &[bc::REPLY, bc::FREE_BUFFER];
    for then in [
        vec![Step::new(second, all(&[complete(), complete()])), Step::new(&[], reply(b"outer"))],
        vec![Step::new(second, complete()), Step::new(&[], all(&[complete(), reply(b"outer")]))],
        // The first one's was in the error slot: until it was read, nothing more was written (WR-13).
        vec![
            Step::new(&[], complete()).leaving(second),
            Step::new(second, all(&[complete(), reply(b"outer")])),
        ],
    ] {
        assert_eq!(called_again(b"plain", then).expect("answered"), b"outer");
    }
}

#[test]
fn tx_19_a_call_does_not_take_the_acknowledgement_of_the_reply_before_it() {
    let answer = &[bc::FREE_BUFFER, bc::REPLY, bc::FREE_BUFFER];
    for inner in [
        vec![Step::new(&[bc::TRANSACTION], all(&[complete(), complete(), reply(b"inner")]))],
        vec![
            Step::new(&[bc::TRANSACTION], complete()),
            Step::new(&[], complete()),
            Step::new(&[], reply(b"inner")),
        ],
    ] {
        let last = Step::new(answer, all(&[complete(), reply(b"outer")]));
        let then = [inner, vec![last]].concat();
        assert_eq!(called_again(b"call", then).expect("answered"), b"outer");
    }
}

#[test]
fn tx_19_a_death_notices_before_two_acknowledgements_is_the_outer_call_s() {
    let answer = &[bc::FREE_BUFFER, bc::REPLY, bc::FREE_BUFFER];
    let inner = all(&[simple(br::DEAD_REPLY), complete(), complete(), reply(b"inner")]);
    let then = vec![Step::new(&[bc::TRANSACTION], inner), Step::new(answer, complete())];
    let refused = called_again(b"call", then).expect_err("its callee died");
    assert!(matches!(refused, TransactError::Refused { by: Refusal::Dead, .. }), "{refused}");
}
