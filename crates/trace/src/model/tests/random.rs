//! Room: streams of events that make no sense: the parts are the whole all the same, and memory is bounded.

use super::*;

/// xorshift: the same streams on every machine.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }
}

fn random_line(dice: &mut Dice, ts: u64) -> String {
    let (cpu, tid) = (dice.below(3), dice.below(7));
    let (other, id, proc) = (dice.below(7), dice.below(12), dice.below(4));
    let letter = ["S", "R", "D", "T", "X", "?"][dice.below(6) as usize];
    let what = match dice.below(30) {
        0..=4 => format!("switch {letter} {other}"),
        5 | 6 => format!("waking {other} {proc}"),
        7 | 8 => format!("wakeup {other} {proc}"),
        9 => format!("migrate {other} 0 {proc}"),
        10..=12 => format!("send {id} {proc}"),
        13 => format!("back {id} {proc} {other}"),
        14 => format!("oneway {id} {proc}"),
        15..=17 => format!("reply {id} {proc} {other}"),
        18..=21 => format!("recv {id}"),
        22 => ["wait", "ioctl", "done", "alloc 1", "lost"][dice.below(5) as usize].to_owned(),
        23 => format!("return {}", ["7211", "7205", "7212", "7214", "1"][dice.below(5) as usize]),
        24 => format!("boost {other} {}", dice.below(140)),
        25 => format!("idle {cpu} {}", dice.below(3) as i64 - 1),
        26 => format!("{} 3", ["irq+", "irq-", "soft+", "soft-"][dice.below(4) as usize]),
        27 => ["reclaim+", "reclaim-"][dice.below(2) as usize].to_owned(),
        28 => format!("blocked {other} futex_wait"),
        _ => format!("khz {cpu} {}", dice.below(9)),
    };
    format!("{ts} {cpu} {tid} {what}")
}

#[test]
fn the_parts_are_the_whole_whatever_the_stream() {
    let mut calls = 0;
    for seed in 1..400_u64 {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut script = Script::new(&[(1, 0), (2, 50), (3, 100)]);
        let mut model = Model::new();
        let mut ts = 1000_u64;
        let mut check = |call: Transaction| {
            whole(&call);
            calls += 1;
        };
        for _ in 0..500 {
            // Now and then a clock goes backwards.
            ts = if dice.below(50) == 0 { ts - dice.below(100).min(ts) } else { ts + dice.below(20) };
            let event = script.event(&random_line(&mut dice, ts));
            model.take(&event, &script.names, &mut check);
        }
        model.finish(&mut check);
    }
    assert!(calls > 10_000, "only {calls} transactions came of it");
}

#[test]
fn a_call_that_stays_open_does_not_keep_everything() {
    let mut script = Script::new(&[]);
    let mut model = Model::new();
    let mut found = Vec::new();
    let open = script.event("1 0 10 send 1 20");
    model.take(&open, &script.names, &mut |call| found.push(call));
    let mut away = script.event("2 1 30 switch R 31");
    let mut back = script.event("2 1 31 switch R 30");
    for ts in (64..40_000_000_u64).step_by(8) {
        for event in [&mut away, &mut back] {
            event.ts = ts;
            model.take(event, &script.names, &mut |call| found.push(call));
        }
    }
    assert!(model.world.steps() <= (1 << 22) + 1000, "{} steps are kept", model.world.steps());
    model.finish(&mut |call| found.push(call));
    assert_eq!((found.len(), found[0].begin), (1, 1));
    whole(&found[0]);
}
