//! Tests of the validation.

use super::*;

fn group(shape: Shape, workers: u32, payload: u32) -> Group {
    Group { shape, workers, payload }
}

fn services(count: u32) -> Shape {
    Shape::Services { count, more_threads: 0 }
}

#[test]
fn what_cannot_be_done_says_the_limit() {
    for (bad, says) in [
        (group(Shape::Random, 0, 0), "must be a worker"),
        (group(Shape::Random, 1, 0), "2 or more"),
        (group(Shape::Random, 513, 0), "limit is 512"),
        (group(services(u32::MAX), u32::MAX, 0), "limit is 512"),
        (group(services(0), 2, 0), "service to call"),
        (group(Shape::Pairs, 3, 0), "even number"),
        (group(Shape::Pairs, 2, 345_425), "limit is 345424 B"),
        (group(Shape::Random, 5, 86_353), "limit is 86352 B"),
    ] {
        let error = bad.check(Flavour::Binder).expect_err(says);
        assert!(error.contains(says), "{error}");
    }
    for good in [
        group(Shape::Random, 2, 0),
        group(Shape::Pairs, 2, 345_424),
        group(Shape::Random, 5, 86_352),
        group(services(1), 511, 0),
        group(Shape::Named("x".to_owned()), 1, 0),
    ] {
        assert_eq!(good.check(Flavour::Binder), Ok(()), "{good:?}");
    }
}

fn options(group: Group, length: MinTime) -> WorkersOptions {
    WorkersOptions {
        test: "test".to_owned(),
        flavour: Flavour::Binder,
        groups: vec![group],
        length,
        rounds: 1,
        training: false,
        as_android: false,
        expected_max_ns: None,
        seed: 1,
        wanted: Wanted::default(),
        android: Release::default(),
        faults: Vec::new(),
        patience_s: 1,
        command_line: Vec::new(),
    }
}

#[test]
fn every_process_can_have_a_channel_to_every_other_and_back() {
    let options = options(group(Shape::Random, MOST_WORKERS, 0), MinTime::Iterations(1));
    let channels = 2 * (MOST_WORKERS - 1);
    assert!(options.descriptors() > u64::from(2 * channels) + 100, "{}", options.descriptors());
}

#[test]
fn memory_is_there_ahead_for_all_samples_or_for_a_bounded_part_of_all_workers() {
    let ready = |workers, length| {
        let group = group(services(1), workers, 0);
        options(group.clone(), length).ready_samples(&group)
    };
    assert_eq!(ready(511, MinTime::Iterations(1 << 30)), usize::MAX);
    let (one, many) = (ready(1, MinTime::Seconds(60.0)), ready(500, MinTime::Seconds(60.0)));
    assert!(one > 1000 && one as u64 * SAMPLE_BYTES <= READY_BYTES, "{one}");
    assert!(many > 0 && many * 500 <= one, "{many}");
}

#[test]
fn what_surrounds_a_payload_takes_space_too() {
    let group = group(services(1), 4, 129_536);
    assert_eq!(group.check(Flavour::Binder), Ok(()));
    assert!(group.check(Flavour::Hwbinder).is_err_and(|error| error.contains("limit is 129280 B")));
}

#[test]
fn names_tell_cases_apart_and_fit_a_regular_expression() {
    let names = [
        group(Shape::Random, 4, 0),
        group(Shape::Pairs, 4, 0),
        group(services(2), 4, 0),
        group(services(1), 4, 64),
    ]
    .map(|group| group.case_name(Flavour::Hwbinder));
    assert_eq!(
        names,
        [
            "workers_hwbinder/random:4/payload:0",
            "workers_hwbinder/pairs:2/payload:0",
            "workers_hwbinder/services:2/clients:4/payload:0",
            "workers_hwbinder/services:1/clients:4/payload:64",
        ]
    );
}
