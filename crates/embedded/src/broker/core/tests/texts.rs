//! The state files (contract section 19).

use abi::codes::tf;

use super::super::test_broker::TestBroker;
use crate::rpc::protocol::{Request, StateFile};

#[test]
fn dbg_01_to_05_what_the_files_say() {
    let (mut broker, server, client) = TestBroker::pair(0);
    broker.export(client, 0, server, 0x20, 0);
    broker.tell(client, Request::MaxThreads { max: 15 });
    let call = broker.call(client, 0, 0, b"12345");
    broker.call(client, 0, tf::ONE_WAY, b"");
    broker.call(client, 0, tf::ONE_WAY, b"");
    broker.call(client, 9, 0, b"");
    let text = broker.core.state(StateFile::State, &mut broker.host);
    for line in [
        "proc 1001\ncontext binder\n  thread 77: l 02 need_return 0 tr 0\n".to_owned(),
        format!("  pending transaction {}: 0000000000000011 from 1002:77 to 1001:0 code 3 flags 0 ", call.id),
        "  node 1: u0000000000000011 c0000000000000012 hs 1 hw 1 ls 4 lw 1 is 0 iw 0 tr 0\n".to_owned(),
        "u0000000000000020 c0000000000000021 hs 1 hw 1 ls 0 lw 0 is 1 iw 1 tr 0 proc 1001\n".to_owned(),
        "desc 1 node 3 s 1 w 0 d 0000000000000000\n".to_owned(),
        format!("  buffer {}: 0 size 5:0:0 active\n", call.id),
        "    pending async transaction ".to_owned(),
    ] {
        assert!(text.contains(&line), "{line}\nis missing in\n{text}");
    }
    let text = broker.core.state(StateFile::Stats, &mut broker.host);
    for line in [
        "proc: active 2 total 2\n",
        "  requested threads: 1+2/15\n",
        "  free async space 65520\n",
        "  refs: 1 s 1 w 0\n",
        "  buffers: 3\n",
        "  ready threads 1\n",
        "thread: active 2 total 8\n",
        // One of the broker's, and three that the process itself shows.
        "  pending transactions: 4\n",
        "  pages: 1:0:31\n",
        "  pages high watermark: 1\n",
        "  BC_TRANSACTION: 5\n",
        "  BR_FAILED_REPLY: 1\n",
    ] {
        assert!(text.contains(line), "{line}\nis missing in\n{text}");
    }
    let text = broker.core.state(StateFile::Transactions, &mut broker.host);
    assert!(text.contains("outgoing transaction") && text.contains("pending transaction"), "{text}");
    broker.host.serving[0] = call.id;
    for which in [StateFile::State, StateFile::Transactions] {
        let text = broker.core.state(which, &mut broker.host);
        let taken =
            format!("    incoming transaction {}: 0000000000000011 from 1002:77 to 1001:77 ", call.id);
        assert!(text.contains(&taken) && !text.contains("  pending transaction"), "{text}");
    }
    let text = broker.core.state(StateFile::TransactionLog, &mut broker.host);
    let first = format!(
        "{}: call  from 1002:77 to 1001:0 context binder node 1 handle 0 size 5:0 ret 0/0 l=0",
        call.id
    );
    assert!(text.contains(&first), "{text}");
    assert_eq!(text.lines().count(), 5);
    let failed = broker.core.state(StateFile::FailedTransactionLog, &mut broker.host);
    assert_eq!(failed.lines().count(), 1);
    assert!(failed.contains("handle 9 size 0:0 ret 29201/-22 l=0"), "{failed}");
    for _ in 0..40 {
        broker.call(client, 9, 0, b"");
    }
    assert_eq!(broker.core.state(StateFile::TransactionLog, &mut broker.host).lines().count(), 32);
    broker.core.close(client, &mut broker.host);
    let text = broker.core.state(StateFile::State, &mut broker.host);
    assert!(
        text.starts_with("binder state:\ndead nodes:\n  node 3: ") && text.contains("desc 1 dead node 3 ")
    );
}
