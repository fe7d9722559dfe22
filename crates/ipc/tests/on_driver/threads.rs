//! The thread pool: growth, thread names, shutdown.

use std::collections::BTreeSet;

use needs::need;

use ipc::Binder;
use ipc::binder::CallError;

use crate::peer::{eventually, served};
use crate::toolbox::{DESCRIPTOR, MEET, SLEEP, THREADS, plain, thread_names};

fn meet(toolbox: &Binder, callers: i32) -> Result<i32, CallError> {
    let mut request = toolbox.request(DESCRIPTOR);
    request.write_i32(callers);
    Ok(toolbox.call(MEET, request)?.reader().read_i32()?)
}

fn pool_names(names: Vec<String>) -> BTreeSet<String> {
    names.into_iter().filter(|name| name.starts_with("Binder:")).collect()
}

/// LP-02, LP-04: N calls at once are served by N threads, and never by more than asked for plus
/// the one that started the pool.
#[test]
fn lp_04_the_pool_grows_to_its_limit_and_no_further() {
    const LIMIT: u32 = 3;
    let (_bench, peer, _process, toolbox) = need!(served(LIMIT));
    let all = i32::try_from(LIMIT + 1).expect("few");
    let names = || plain(&toolbox, THREADS).expect("threads").reader().read_str_vec().expect("names");
    for _round in 0..3 {
        std::thread::scope(|scope| {
            for _ in 0..all {
                scope.spawn(|| assert_eq!(meet(&toolbox, all).expect("meet"), all));
            }
        });
        let want: BTreeSet<String> = (1..=all).map(|n| format!("Binder:{}_{n:X}", peer.pid())).collect();
        assert_eq!(pool_names(names()), want);
    }
    // Twice as many callers: the pool stays at its limit and serves them in turn.
    std::thread::scope(|scope| {
        for _ in 0..2 * all {
            scope.spawn(|| assert_eq!(meet(&toolbox, all).expect("meet"), all));
        }
    });
    assert_eq!(pool_names(names()).len(), usize::try_from(all).expect("few"));
}

/// EXT-01, EXT-02: a pool ends in order, its threads leave the driver, the process can go on calling.
#[test]
fn ext_01_shutdown_ends_every_pool_thread() {
    let (_bench, _peer, process, toolbox) = need!(served(4));
    let joined = {
        let process = process.clone();
        std::thread::spawn(move || process.join_thread_pool().map_err(|error| error.to_string()))
    };
    // The driver may have asked for a third, and that one be here before the one that joins by itself: then nobody lets
    // that one in any more.
    eventually("two loopers in the pool", || process.pool_threads() >= 2);
    process.shutdown().expect("shutdown");
    assert_eq!(process.pool_threads(), 0);
    assert_eq!(joined.join().expect("no panic"), Ok(()));
    let prefix = format!("Binder:{}_", std::process::id());
    eventually("pool threads gone", || !thread_names().iter().any(|name| name.starts_with(&prefix)));
    toolbox.ping().expect("calls need no pool");
}

/// EXT-02: a client thread that ends takes its leave; one that waits when its server dies hears it.
#[test]
fn ext_02_client_threads_come_and_go() {
    let (_bench, mut peer, _process, toolbox) = need!(served(4));
    for _ in 0..50 {
        std::thread::scope(|scope| {
            scope.spawn(|| toolbox.ping().expect("ping"));
        });
    }
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| plain(&toolbox, SLEEP).map(drop).expect_err("killed"));
        std::thread::sleep(std::time::Duration::from_millis(50));
        peer.kill();
        assert!(waiting.join().expect("no panic").is_dead());
    });
}
