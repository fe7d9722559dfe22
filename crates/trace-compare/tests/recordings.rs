//! Comparisons of recordings of Perfetto's own recorder: the same test twice, and with two hogs of the CPU beside it.
//! Facts: `tools/perfetto-fixtures` makes the recordings, in a guest whose clock counts instructions.

use std::fs::File;
use std::path::Path;

use trace::cause::Label;
use trace::verdict::{By, Filter, Sampler};
use trace_compare::{Comparison, Direction, Options, Side, Verdict, compare};

fn side(name: &str, by: By) -> Side {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../trace/fixtures/perfetto").join(name);
    let mut reader = trace::open(File::open(path).expect("a fixture")).expect("a trace of Perfetto");
    let mut sampler = Sampler::new(Filter { own: true, ..Filter::default() }, by);
    while let Some(event) = reader.next() {
        sampler.take(&event, reader.names());
    }
    Side { name: name.to_owned(), sampled: sampler.finish(reader.names(), reader.report()) }
}

fn compared(a: &str, b: &str, by: By) -> Comparison {
    compare(&side(a, by), &side(b, by), Options { by, resolution: 0.05 }).expect("the same test")
}

#[test]
fn hogs_of_the_cpu_are_named_as_what_made_the_calls_slower() {
    let found = compared("c-quiet.pftrace", "c-loaded.pftrace", By::Method);
    let [row] = &found.rows[..] else { panic!("{found}") };
    assert_eq!(
        (row.name.as_str(), row.verdict),
        ("client 0 -> server 0, code 1", Verdict::Slower),
        "{found}"
    );
    let worst = &row.causes[0];
    assert_eq!((worst.cause, worst.change.direction), (Label::Runnable, Some(Direction::Slower)), "{found}");
    assert!(worst.change.difference_ns > 0.8 * row.mean.difference_ns, "{found}");
    assert!(worst.change.low_ns.is_some_and(|low| low > 0.0), "{found}");
    let back = compared("c-loaded.pftrace", "c-quiet.pftrace", By::Pair);
    assert_eq!((back.rows[0].verdict, back.slower_and_faster()), (Verdict::Faster, (0, 1)), "{back}");
}

#[test]
fn the_same_test_twice_has_no_difference() {
    let found = compared("c-quiet.pftrace", "c-again.pftrace", By::Method);
    // A boot of its own: the mean differs by 1.6 %, which is less than the resolution.
    assert_eq!(found.slower_and_faster(), (0, 0), "{found}");
    assert!(found.notes.is_empty() && found.a.lost == 0, "{found}");
}
