//! Room: the state files (contract section 19).

use abi::codes::tf;

use super::world::World;
use crate::embedded::protocol::{Request, StateFile};

#[test]
fn dbg_01_to_05_what_the_files_say() {
    let mut world = World::default();
    let server = world.manager(0);
    let client = world.open();
    world.export(client, 0, server, 0x20, 0);
    world.tell(client, Request::MaxThreads { max: 15 });
    let call = world.call(client, 0, 0, b"12345");
    world.call(client, 0, tf::ONE_WAY, b"");
    world.call(client, 0, tf::ONE_WAY, b"");
    world.call(client, 9, 0, b"");
    let text = world.core.state(StateFile::State, &world.out);
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
    let text = world.core.state(StateFile::Stats, &world.out);
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
    let text = world.core.state(StateFile::Transactions, &world.out);
    assert!(text.contains("outgoing transaction") && text.contains("pending transaction"), "{text}");
    world.out.serving[0] = call.id;
    for which in [StateFile::State, StateFile::Transactions] {
        let text = world.core.state(which, &world.out);
        let taken =
            format!("    incoming transaction {}: 0000000000000011 from 1002:77 to 1001:77 ", call.id);
        assert!(text.contains(&taken) && !text.contains("  pending transaction"), "{text}");
    }
    let text = world.core.state(StateFile::TransactionLog, &world.out);
    let first = format!(
        "{}: call  from 1002:77 to 1001:0 context binder node 1 handle 0 size 5:0 ret 0/0 l=0",
        call.id
    );
    assert!(text.contains(&first), "{text}");
    assert_eq!(text.lines().count(), 5);
    let failed = world.core.state(StateFile::FailedTransactionLog, &world.out);
    assert_eq!(failed.lines().count(), 1);
    assert!(failed.contains("handle 9 size 0:0 ret 29201/-22 l=0"), "{failed}");
    for _ in 0..40 {
        world.call(client, 9, 0, b"");
    }
    assert_eq!(world.core.state(StateFile::TransactionLog, &world.out).lines().count(), 32);
    world.core.close(client, &mut world.out);
    let text = world.core.state(StateFile::State, &world.out);
    assert!(
        text.starts_with("binder state:\ndead nodes:\n  node 3: ") && text.contains("desc 1 dead node 3 ")
    );
    world.end();
}
