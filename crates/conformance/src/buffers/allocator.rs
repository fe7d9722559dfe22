//! Contract section 7: the allocator of buffers by every small case, with the state file as witness (BUF-08, BUF-09).
//! Facts: the cases are those of the kernel's unit test of its allocator, `drivers/android/tests/binder_alloc_kunit.c`.

use std::fs;
use std::time::Instant;

use super::{free, keep, place};
use crate::prelude::*;
use crate::state::{counted, stats_of};

/// Buffers that lie side by side in one case.
const BUFFERS: usize = 3;
/// Pages of the receiving area.
const PAGES: usize = 8;
/// Marks the server's block in the file of counters.
const THREADS: u32 = 4711;

/// The end of a buffer, as seen from its begin.
#[derive(Clone, Copy, Debug)]
enum End {
    /// The same page.
    Within,
    /// The end of the same page.
    WithPage,
    /// The next page.
    WithinNext,
    /// The end of the next page.
    WithNext,
}

const ENDS: [End; 4] = [End::Within, End::WithPage, End::WithinNext, End::WithNext];
/// Each order of three.
const ORDERS: [[usize; BUFFERS]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

impl End {
    fn behind(self, begin: usize, page: usize) -> usize {
        let boundary = (begin + 1).next_multiple_of(page);
        match self {
            Self::Within => begin + 64,
            Self::WithPage => boundary,
            Self::WithinNext => boundary + 64,
            Self::WithNext => boundary + page,
        }
    }
}

/// How many pages these parts of the area touch.
fn pages_of(parts: &[(usize, usize)], page: usize) -> usize {
    let touches = |at: &usize| parts.iter().any(|&(begin, end)| begin < (at + 1) * page && end > at * page);
    (0..PAGES).filter(touches).count()
}

/// A server whose area has [`PAGES`] pages, with a client, and its mark for [`expect_pages`].
fn pair_of_pages(kit: &Kit) -> Result<Pair, Stop> {
    let pair = kit.pair_mapped(PAGES * sys::page::size())?;
    done("SET_MAX_THREADS", pair.server.conn.set_max_threads(THREADS))?;
    Ok(pair)
}

/// The server's pages: in use, kept for later, not there.
fn pages(kit: &Kit) -> Result<[usize; 3], Stop> {
    let stats = stats_of(kit, THREADS)?;
    let text = counted(&stats, "pages")?;
    let counts: Vec<usize> = text.split(':').filter_map(|count| count.parse().ok()).collect();
    required(counts.try_into().ok(), || format!("pages are three counts, got {text}"))
}

/// Only the C driver counts pages.
fn counts_pages(kit: &Kit) -> bool {
    kit.kind() == Kind::C
}

/// Fails if the driver counts pages and has others than these: in use, kept for later, not there.
fn expect_pages(kit: &Kit, what: &str, want: [usize; 3]) -> Verdict {
    if counts_pages(kit) { expect(&format!("pages, {what}"), pages(kit)?, want) } else { Ok(()) }
}

fn expect_in_use(kit: &Kit, what: impl Fn() -> String, want: usize) -> Verdict {
    if !counts_pages(kit) {
        return Ok(());
    }
    let [used, kept, none] = pages(kit)?;
    expect(&format!("{}: pages in use", what()), used, want)?;
    expect(&format!("{}: pages of every kind", what()), used + kept + none, PAGES)
}

pub(super) fn buf_08_every_order_of_freeing(kit: &Kit) -> Verdict {
    let page = sys::page::size();
    let pair = pair_of_pages(kit)?;
    let base = place(&pair, 8)?;
    free(&pair, &[base])?;
    for case in 0..ENDS.len().pow(BUFFERS as u32) {
        let ends = [case % 4, case / 4 % 4, case / 16].map(|at| ENDS[at]);
        for order in ORDERS {
            let what =
                |step: &str| format!("buffers that end {ends:?}, freed in the order {order:?}, {step}");
            let (mut begin, mut parts) = (0, Vec::new());
            for end in ends {
                let behind = end.behind(begin, page);
                let address = place(&pair, behind - begin)?;
                expect(&what("where one lies"), address - base, begin as u64)?;
                parts.push((begin, behind));
                begin = behind;
            }
            expect_in_use(kit, || what("all there"), pages_of(&parts, page))?;
            let mut left = parts.clone();
            for at in order {
                free(&pair, &[base + parts[at].0 as u64])?;
                left.retain(|part| *part != parts[at]);
                expect_in_use(kit, || what(&format!("{} left", left.len())), pages_of(&left, page))?;
            }
            let all = place(&pair, PAGES * page)
                .map_err(|stop| stop.during(&what("then one as large as the area")))?;
            expect(&what("where one as large as the area lies"), all, base)?;
            free(&pair, &[all])?;
        }
    }
    Ok(())
}

pub(super) fn buf_09_pages_come_back_under_pressure(kit: &Kit) -> Verdict {
    const HALF: usize = PAGES / 2;
    if kit.is_embedded() {
        return kit.differs("no pages come and go: the receiving area is memory like any other");
    }
    skip_unless(kit.is_root(), "needs root, to have the kernel look for memory")?;
    let page = sys::page::size();
    let pair = pair_of_pages(kit)?;
    let text: Vec<u8> = (0..HALF * page).map(|at| (at / 7) as u8).collect();
    let keep_text = || -> Result<Delivery, Stop> {
        let call = keep(&pair, TransactionFlags::CALL, plain(&text))?;
        ensure(pair.server.bytes(&call)? == text, || "a call came with other bytes".to_owned())?;
        Ok(call)
    };
    let (first, second) = (keep_text()?, keep_text()?);
    pair.server.free(&first)?;
    expect_pages(kit, "half of the area freed", [HALF, HALF, 0])?;
    let start = Instant::now();
    loop {
        done("asking the kernel for memory", fs::write("/proc/sys/vm/drop_caches", "2"))?;
        let kept = if counts_pages(kit) { pages(kit)?[1] } else { 0 };
        if kept == 0 || sys::patience::is_over(start, PATIENCE) {
            break;
        }
    }
    expect_pages(kit, "after the kernel took back what it could", [HALF, 0, HALF])?;
    ensure(pair.server.bytes(&second)? == text, || "a buffer in use lost its bytes".to_owned())?;
    let again = keep_text()?;
    expect("where a call lies that needs those pages again", again.buffer.0, first.buffer.0)?;
    expect_pages(kit, "the area full", [PAGES, 0, 0])
}
