//! Priority inheritance, hop by hop, as a table and as JSON.
//! Not here: times of the calls, the verdict on a test (`verdict`).

use serde_json::json;

use crate::render::printable;
use crate::render::table::{Row, Table, cells};
use crate::schema::{Driver, Hop, Inheritance, Level, Sched};

/// The result and its driver as JSON, on one line.
pub fn json(flavour: &str, driver: &Driver, found: &Inheritance) -> String {
    format!("{:#}\n", json!({ "flavour": flavour, "driver": driver, "inheritance": found }))
}

/// Measured and expected level, then one row for each hop.
pub fn table(flavour: &str, found: &Inheritance) -> String {
    let level = |level: Option<Level>| level.map_or("unknown", Level::name);
    let mut text = format!(
        "Priority inheritance of {}: measured {}, expected {}: {}.\n",
        printable(flavour),
        level(found.measured),
        level(found.expected),
        printable(&found.expected_reason)
    );
    let heads = ["hop", "caller", "idle", "served", "expected", "as expected"];
    text += &Table::new(heads).rows(found.hops.iter().map(row)).text();
    for hop in found.hops.iter().filter(|hop| !hop.note.is_empty()) {
        text += &format!("{}: {}\n", printable(&hop.scene), printable(&hop.note));
    }
    text
}

fn row(hop: &Hop) -> Row {
    let known = |sched: Option<Sched>| sched.map_or("?".to_owned(), short);
    let verdict = match hop.as_expected() {
        Some(true) => "yes",
        Some(false) => "NO",
        None if hop.is_broken() => "NO",
        None => "unknown",
    };
    cells![&hop.scene, short(hop.caller), short(hop.idle), known(hop.served), known(hop.expected), verdict]
}

/// The effective parameters of a policy: `fifo 99`, `nice -5`.
pub fn short(sched: Sched) -> String {
    match sched.policy_name() {
        Some("SCHED_OTHER") => format!("nice {}", sched.nice),
        Some("SCHED_FIFO") => format!("fifo {}", sched.priority),
        Some("SCHED_RR") => format!("rr {}", sched.priority),
        Some(name) => format!("{name} nice {}", sched.nice),
        None => format!("policy {} nice {}", sched.policy, sched.nice),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measured_and_expected_stand_side_by_side() {
        let hop = |scene: &str, served, expected, note: &str| Hop {
            scene: scene.to_owned(),
            caller: Sched::fifo(99),
            idle: Sched::other(4),
            served,
            expected,
            note: note.to_owned(),
        };
        let found = Inheritance {
            measured: Some(Level::Nice),
            expected: Some(Level::Rt),
            expected_reason: "because".to_owned(),
            hops: vec![
                hop("call", Some(Sched::other(0)), Some(Sched::fifo(99)), ""),
                hop("queued", Some(Sched::fifo(99)), Some(Sched::fifo(99)), ""),
                hop("oneway", None, Some(Sched::other(0)), "it hung\u{1b}"),
                hop("after", None, None, "no right"),
            ],
            ..Inheritance::default()
        };
        let want = "\
Priority inheritance of hwbinder: measured nice, expected rt: because.
hop      caller    idle   served  expected  as expected
-------------------------------------------------------
call    fifo 99  nice 4   nice 0   fifo 99           NO
queued  fifo 99  nice 4  fifo 99   fifo 99          yes
oneway  fifo 99  nice 4        ?    nice 0           NO
after   fifo 99  nice 4        ?         ?      unknown
oneway: it hung\\u001b
after: no right
";
        assert_eq!(table("hwbinder", &found), want);
    }

    #[test]
    fn a_schedule_is_named_by_what_counts() {
        assert_eq!(short(Sched::other(-5)), "nice -5");
        assert_eq!(short(Sched { policy: 2, ..Sched::fifo(3) }), "rr 3");
        assert_eq!(short(Sched { policy: 5, ..Sched::other(0) }), "SCHED_IDLE nice 0");
        assert_eq!(short(Sched { policy: 42, ..Sched::other(1) }), "policy 42 nice 1");
    }
}
