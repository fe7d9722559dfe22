//! Tests of many kernels beside the first, as figures, text and page.

use super::*;
use crate::compare::{Group, Member, Options};
use crate::fixtures::{self, case, measured};
use crate::matrix::{Kernel, matrix};
use crate::schema::{Clock, HostClass};

/// A kernel with a run for each of these times of a 4 B call.
fn kernel(name: &str, times: &[u64]) -> Kernel {
    let member = |(at, took): (usize, &u64)| {
        let mut run = fixtures::run();
        run.cases = vec![
            case("BM_sendVec_binder", 4, 0, vec![measured(1000, took * 1000, 1000)]),
            case("BM_sendVec_binder", 64, 0, vec![measured(1000, took * 2000, 1000)]),
        ];
        Member { file: format!("{name}-{at}.json"), run }
    };
    let members = times.iter().enumerate().map(member).collect();
    Kernel { name: name.to_owned(), tests: vec![Ok(Group { name: name.to_owned(), members })] }
}

fn counted(mut kernel: Kernel) -> Kernel {
    let runs = kernel.tests.iter_mut().flatten().flat_map(|group| &mut group.members);
    runs.for_each(|member| {
        member.run.host.class = HostClass::Icount;
        member.run.clock = Clock { unit: ClockUnit::Instructions, ..member.run.clock.clone() };
    });
    kernel
}

fn found(kernels: &[Kernel]) -> Matrix {
    matrix(&["throughput binder".to_owned()], kernels, &Options::default())
}

#[test]
fn each_kernel_is_held_against_the_first() {
    let broken = Kernel {
        name: "b".to_owned(),
        tests: vec![Err("vm --kernel=b\n    vm: the kernel panicked\n".to_owned())],
    };
    let found = found(&[counted(kernel("a", &[5000])), broken, counted(kernel("c", &[6000]))]);
    assert!(!found.is_whole());
    let text = text(&found);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "throughput binder: median of a call, relative to a", "{text}");
    let row = |name: &str| {
        let line = lines.iter().find(|line| line.starts_with(name)).expect("a row");
        line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(row("a "), "5003 insns 10007 insns", "{text}");
    assert_eq!(row("b "), "vm: the kernel panicked", "{text}");
    assert_eq!(row("c "), "+20.0 % +20.0 %", "{text}");
    assert!(text.contains("Counted guest instructions"), "{text}");
    assert!(markdown(&found).contains("| `c` | +20.0 % | +20.0 % |"), "{}", markdown(&found));
}

#[test]
fn times_have_intervals_and_what_is_not_told_has_a_mark() {
    let spread: Vec<u64> = (0..12).map(|at| 5000 + 10 * at).collect();
    let slower: Vec<u64> = spread.iter().map(|took| took * 3 / 2).collect();
    let text = text(&found(&[kernel("a", &spread), kernel("b", &slower), kernel("c", &[5600, 5000])]));
    assert!(text.contains("+50.0 % (+4") && text.contains("%..+5"), "{text}");
    let unsure = text.lines().find(|line| line.starts_with("c ")).expect("a row");
    assert!(unsure.ends_with('?'), "{text}");
}

#[test]
fn the_first_that_ran_is_the_baseline_and_without_any_there_are_reasons() {
    let broken =
        |name: &str| Kernel { name: name.to_owned(), tests: vec![Err("it did not boot".to_owned())] };
    let found = found(&[broken("a"), kernel("b", &[5000]), kernel("c", &[5000])]);
    assert_eq!(found.tests[0].baseline.as_deref(), Some("b"));
    let none = super::super::matrix::text(&self::found(&[broken("a"), broken("b")]));
    assert!(none.starts_with("throughput binder: no kernel has a result"), "{none}");
    assert_eq!(none.matches("it did not boot").count(), 2, "{none}");
}

#[test]
fn runs_that_mean_something_else_are_a_row_and_do_not_lose_the_others() {
    let found = found(&[kernel("a", &[5000]), counted(kernel("b", &[5000])), kernel("c", &[5000; 1])]);
    assert_eq!(found.tests[0].rows.len(), 3);
    let text = text(&found);
    let row = text.lines().find(|line| line.starts_with("b ")).expect("a row");
    assert!(row.contains("instructions"), "{text}");
    assert!(!found.is_whole());
}

#[test]
fn no_difference_has_a_mark_and_a_pipe_is_escaped() {
    let found = found(&[counted(kernel("a", &[5000])), counted(kernel("b|c", &[5001]))]);
    assert!(markdown(&found).contains("| `b\\|c` | +0.0 % = | +0.0 % = |"), "{}", markdown(&found));
}

#[test]
fn the_page_shows_the_same_and_escapes_names() {
    let page = html(&found(&[kernel("<b>", &[5000]), kernel("c", &[6000, 6001, 6002, 6003, 6004, 6005])]))
        .expect("a sound template");
    assert!(page.contains("&lt;b&gt;") && !page.contains("<b>"), "{page}");
    assert!(page.contains("+20.0 %"), "{page}");
    let document: serde_json::Value =
        serde_json::from_str(&json(&found(&[kernel("a", &[1])]))).expect("JSON");
    assert_eq!(document["schema"], SCHEMA);
    assert_eq!(document["matrix"]["tests"][0]["rows"][0]["cells"][0]["value"], 1.0);
}
