//! What the checksum sees and what it passes over.

use super::*;

fn sum(text: &str) -> String {
    of(text.as_bytes()).expect("JSON")
}

#[test]
fn layout_order_and_spelling_of_numbers_do_not_matter() {
    let table = [
        ("{\"a\": 1, \"b\": [true, null]}", "{\n \"b\":[true,null],\"a\":1 }"),
        ("{\"a\": 2}", "{\"a\": 2.0}"),
        ("{\"a\": -3}", "{\"a\": -3.0}"),
        ("{\"a\": 1e300}", "{\"a\": 1E+300}"),
        ("{\"a\": 0.1}", "{\"a\": 0.10000000000000001}"),
        ("{\"a\": \"\u{e9}\"}", "{\"a\": \"\\u00e9\"}"),
        ("{\"a\": 1}", "{\"a\": 1, \"checksum\": \"x\"}"),
    ];
    for (one, other) in table {
        assert_eq!(sum(one), sum(other), "{one} and {other}");
    }
}

#[test]
fn every_change_of_a_value_matters() {
    let texts = [
        "{}",
        "{\"a\": 1}",
        "{\"b\": 1}",
        "{\"a\": 2}",
        "{\"a\": -1}",
        "{\"a\": 1.5}",
        "{\"a\": 1.50001}",
        "{\"a\": \"1\"}",
        "{\"a\": true}",
        "{\"a\": false}",
        "{\"a\": null}",
        "{\"a\": []}",
        "{\"a\": {}}",
        "{\"a\": [1, 2]}",
        "{\"a\": [2, 1]}",
        "{\"a\": [[1], 2]}",
        "{\"a\": [[1, 2]]}",
        "{\"a\": 18446744073709551615}",
        "{\"a\": 18446744073709551614}",
        "{\"a\": 1, \"b\": 2}",
        "{\"a\": 2, \"b\": 1}",
        "{\"a\": {\"checksum\": 1}}",
        "{\"a\": {\"checksum\": 2}}",
    ];
    let sums: std::collections::HashSet<String> = texts.iter().map(|text| sum(text)).collect();
    assert_eq!(sums.len(), texts.len());
}

/// The rules of docs/formats.md, computed by another program (Python, from the same rules).
#[test]
fn the_rules_are_those_of_the_documentation() {
    assert_eq!(sum("{\"b\": [1, \"x\"], \"a\": 2.5}"), "fnv1a64:aeb0bdca5217def1");
}

#[test]
fn the_field_is_the_last_of_the_document() {
    let text = added("{\n  \"a\": [\n    {}\n  ]\n}\n");
    let of_all = sum(&text);
    assert_eq!(text, format!("{{\n  \"a\": [\n    {{}}\n  ],\n  \"checksum\": \"{of_all}\"\n}}\n"));
}
