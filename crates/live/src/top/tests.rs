//! Tests of figures and rows by calls that are made up.

use std::time::Duration;

use explain::Load;
use trace::event::{Binder, Context, Event, Flavour, Kind, Name, Names, Transaction as Sent};
use trace::model::Model;

use super::column::Column;
use super::figures::LATENCY_ERROR;
use super::rows::{self, State};
use super::*;

/// Plays a call that takes this long: the events that the embedded driver writes.
fn call(model: &mut Model, top: &mut Top, (from, to): (i32, i32), begin: u64, ns: u64) {
    let names = Names::default();
    let number = begin as i32;
    let sent = |debug_id, reply, to_proc| {
        let sent = Sent { debug_id, target_node: to, to_proc, to_thread: 0, reply, code: 3, flags: 0x10 };
        Binder::Transaction(sent)
    };
    let events = [
        (begin, from, sent(number, false, to)),
        (begin + ns / 4, to, Binder::Received { debug_id: number }),
        (begin + ns / 2, to, sent(number + 1, true, from)),
        (begin + ns, from, Binder::Received { debug_id: number + 1 }),
    ];
    for (ts, tid, binder) in events {
        let kind = Kind::Binder(Flavour::Embedded, binder);
        let event =
            Event { ts, cpu: 0, tid, tgid: Some(tid), comm: Name::NONE, context: Context::default(), kind };
        model.take(&event, &names, &mut |call| top.ended(&call, &names));
    }
}

fn state<'s>(loads: Option<&'s [Load]>) -> State<'s> {
    State { loads, before: None, open: Some(&[]), now: 0, span: Duration::from_secs(2) }
}

#[test]
fn calls_are_exact_and_percentiles_within_the_error() {
    let (mut model, mut top) = (Model::new(), Top::default());
    let (from, to) = (1_000_000_001, 1_000_000_002);
    for number in 1..=1000 {
        call(&mut model, &mut top, (from, to), number * 2_000_000, number * 1000);
    }
    for by in By::ALL {
        let mut rows = rows::rows(&mut top, by, &state(None));
        Column::Calls.sort(&mut rows);
        let served = &rows[0];
        assert_eq!(
            (served.calls, served.calls_per_s, served.failed),
            (Some(1000), Some(500.0), Some(0)),
            "{by:?}"
        );
        for (found, want) in [(served.p50_ns, 500_000.0), (served.p99_ns, 990_000.0)] {
            let off = (found.expect("calls") as f64 - want).abs() / want;
            assert!(off <= LATENCY_ERROR, "{by:?}: {off}");
        }
    }
    let mut rows = rows::rows(&mut top, By::Processes, &state(None));
    Column::Made.sort(&mut rows);
    assert_eq!(
        (rows[0].pid, rows[0].made, rows[0].calls, rows[0].p99_ns),
        (Some(from), Some(1000), Some(0), None)
    );
    top.next_span();
    assert!(top.all().is_idle() && top.worst().of(to).is_empty());
}

#[test]
fn memory_is_bounded_for_any_number_of_processes_and_no_call_is_lost() {
    let (mut model, mut top) = (Model::new(), Top::default());
    for number in 0..5000 {
        call(
            &mut model,
            &mut top,
            (1_000_000_000 + number, 1_100_000_000 + number),
            number as u64 * 4000 + 2,
            1000,
        );
    }
    for by in By::ALL {
        let rows = rows::rows(&mut top, by, &state(None));
        assert!(rows.len() <= MOST + 1, "{by:?}: {}", rows.len());
        assert_eq!(rows.iter().filter_map(|row| row.calls).sum::<u64>(), 5000, "{by:?}");
        assert!(rows.iter().any(|row| row.name == "others"), "{by:?}");
    }
    // One that is called, but has no row, and one that is not called: the table cannot tell them apart.
    let loads = [1_100_004_999, 1_200_000_000].map(|pid| Load { pid, busy: 3, ..Load::default() });
    let rows = rows::rows(&mut top, By::Processes, &state(Some(&loads)));
    for load in &loads {
        let row = rows.iter().find(|row| row.pid == Some(load.pid)).expect("the driver knows it");
        assert_eq!(
            (row.calls, row.calls_per_s, row.failed, row.busy),
            (None, None, None, Some(3)),
            "{row:?}"
        );
    }
    top.next_span();
    top.next_span();
    assert_eq!(top.figures(By::Processes).count(), 0, "idle ones are forgotten");
}

#[test]
fn the_slowest_calls_are_kept_with_where_their_time_went() {
    let (mut model, mut top) = (Model::new(), Top::default());
    let pair = (1_000_000_001, 1_000_000_002);
    for (at, ns) in [4000, 9000, 1000, 7000, 3000, 8000, 2000].into_iter().enumerate() {
        call(&mut model, &mut top, pair, at as u64 * 100_000 + 2, ns);
    }
    let worst = top.worst().of(pair.1);
    let times: Vec<u64> = worst.iter().map(|call| call.ns).collect();
    assert_eq!(times, [9000, 8000, 7000, 4000, 3000]);
    assert!(worst.iter().all(|call| call.from == pair.0), "{worst:?}");
    assert_eq!((worst[3].taken_ns, worst[3].served_ns), (Some(1000), Some(1000)));
}

#[test]
fn of_many_processes_those_with_the_slowest_calls_are_kept() {
    let (mut model, mut top) = (Model::new(), Top::default());
    let (from, first) = (1_000_000_001, 1_100_000_000);
    let mut begin = 2;
    for (number, ns) in
        (0..64).map(|number| (number, 4000 + 4 * number as u64)).chain([(64, 3996), (65, 9000)])
    {
        call(&mut model, &mut top, (from, first + number), begin, ns);
        begin += 100_000;
    }
    let times = |number: i32| top.worst().of(first + number).iter().map(|call| call.ns).collect::<Vec<_>>();
    assert_eq!([0, 1, 64, 65].map(times), [vec![], vec![4004], vec![], vec![9000]]);
}

#[test]
fn the_drivers_state_joins_and_counters_replace_what_is_not_traced() {
    let mut top = Top::default();
    let load = Load { pid: 1_000_000_007, busy: 2, pool: Some(4), deaths_waiting: 1, ..Load::default() };
    let mut now = [load.clone(), Load { context: "hwbinder".to_owned(), ..load.clone() }];
    now[0].received = Some(150);
    let rows = rows::rows(&mut top, By::Processes, &state(Some(&now)));
    let row = &rows[0];
    assert_eq!((rows.len(), row.busy, row.pool, row.deaths), (1, Some(4), Some(8), Some(2)));
    assert_eq!((row.calls, Column::Threads.text(row).as_str()), (Some(0), "4/8"));
    let mut before = now.clone();
    before[0].received = Some(50);
    let untraced = State { before: Some(&before), open: None, ..state(Some(&now)) };
    let rows = rows::rows(&mut top, By::Processes, &untraced);
    assert_eq!((rows[0].calls_per_s, rows[0].made, rows[0].p99_ns), (Some(50.0), None, None));
    assert_eq!(Column::P99.text(&rows[0]), "", "what no source tells is blank");
}

#[test]
fn a_narrow_terminal_has_fewer_columns_and_each_word_names_one() {
    for width in [20, 40, 60, 80, 120, 300] {
        let columns = Column::fitting(width);
        let used: usize = columns.iter().map(|(_, width)| width + 1).sum::<usize>() - 1;
        assert!(used <= width || columns.len() == 3, "{width}: {columns:?}");
        assert!(columns.iter().any(|(column, _)| *column == Column::Name));
    }
    for (rate, text) in
        [(0.5, "0.5"), (999_999.94, "999999.9"), (999_999.96, "1000000"), (12_345_678.9, "12345679")]
    {
        assert_eq!(Column::Calls.text(&rows::Row { calls_per_s: Some(rate), ..rows::Row::default() }), text);
    }
    assert_eq!(Column::fitting(300).len(), Column::ALL.len());
    for column in Column::ALL {
        assert_eq!(column.title().to_lowercase().parse(), Ok(column));
    }
    assert!("nothing".parse::<Column>().is_err_and(|error| error.contains("calls/s")));
}
