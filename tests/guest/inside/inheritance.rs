//! Whose priority serving threads take over on the kernel's driver.
//! Not here: the embedded driver (`inheritance` of `tests/cli`).

use crate::support::binderperf;
use record::{Inheritance, Level};

/// Debian's kernel has the C driver of mainline: nice passes, real-time policies do not.
#[test]
#[ignore = "for the guest of `session`"]
fn mainlines_c_driver_hands_on_nice() {
    for flavour in ["hwbinder", "binder"] {
        let called = binderperf(&["inheritance", "--flavour", flavour, "--format=json"]).ended(0);
        let mut document: serde_json::Value =
            serde_json::from_str(&called.stdout).unwrap_or_else(|error| panic!("{error}: {}", called.stdout));
        assert_eq!(document["driver"]["kind"], "kernel-c", "{}", called.stdout);
        let found: Inheritance =
            serde_json::from_value(document["inheritance"].take()).expect("an inheritance");
        assert_eq!((found.measured, found.expected), (Some(Level::Nice), Some(Level::Nice)), "{flavour}");
        assert!(found.expected_reason.contains("mainline"), "{}", found.expected_reason);
        let calls = found.hops.iter().filter(|hop| hop.scene == "call");
        let seen: Vec<_> = calls.map(|hop| (hop.caller.is_realtime(), hop.served)).collect();
        let other = |nice| Some(record::Sched::other(nice));
        assert_eq!(seen, [(true, other(0)), (false, other(-5))], "{flavour}");
        for hop in &found.hops {
            assert_eq!(hop.as_expected(), Some(true), "{flavour}: {hop:?}");
        }
    }
}
