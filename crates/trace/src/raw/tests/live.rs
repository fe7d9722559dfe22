//! Pages that are pushed one after another: merged by time, and never before their time.

use super::pages::{Page, event};
use super::{file, times};
use crate::event::{Event, Kind};
use crate::file::Container;
use crate::raw::{LiveReader, RawReader};
use std::io::Cursor;

fn reader() -> LiveReader {
    LiveReader::behind(RawReader::new(Container::open(Cursor::new(file(&[]))).expect("opened")))
}

fn until(reader: &mut LiveReader, ts: u64) -> Vec<Event> {
    std::iter::from_fn(|| reader.next_until(ts)).collect()
}

#[test]
fn pages_of_cpus_are_merged_up_to_a_time_and_go_on_later() {
    let mut live = reader();
    let page = |at| Page::at(at).with(&event(1, 42)).with(&event(10, 42)).done();
    live.push(3, page(100));
    live.push(1, [page(105), page(190)].concat());
    assert_eq!(times(&until(&mut live, 110)), [(101, 3), (106, 1)]);
    live.push(3, page(120));
    assert_eq!(
        times(&until(&mut live, u64::MAX)),
        [(111, 3), (116, 1), (121, 3), (131, 3), (191, 1), (201, 1)]
    );
    assert_eq!(until(&mut live, u64::MAX), []);
    live.push(3, page(300));
    assert_eq!(times(&until(&mut live, u64::MAX)), [(301, 3), (311, 3)]);
    assert!(live.report().is_whole() && live.report().events == 10, "{}", live.report());
}

#[test]
fn what_the_kernel_overwrote_is_counted_and_half_a_page_is_left_out() {
    let mut live = reader();
    let mut page = Page::at(100).with(&event(1, 42)).done();
    // The bit of missed events in the page's size.
    page[11] |= 1 << 7;
    page.extend([1, 2, 3]);
    live.push(0, page);
    let events = until(&mut live, u64::MAX);
    assert!(matches!(events[0].kind, Kind::Lost { count: None }), "{events:?}");
    assert_eq!((events.len(), live.report().gaps), (2, 1));
    live.push(0, vec![0; 5]);
    assert_eq!(until(&mut live, u64::MAX), []);
}
