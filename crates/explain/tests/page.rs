//! The pages docs/explain.md and docs/explain-failures.md: what they show is what the program answers.
//! `BINDERPERF_GOLDEN=write cargo test -p explain --test page` writes the answers anew; look at the difference.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use explain::{Explainer, Explanation};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The answer about inputs among the fixtures.
fn answer(files: &str) -> String {
    let mut explainer = Explainer::new();
    for name in files.split_whitespace() {
        let file = fs::File::open(repository().join("crates/explain/fixtures").join(name)).expect(name);
        explainer.read(name, file, &mut || Err(io::ErrorKind::Unsupported.into())).expect(name);
    }
    explainer.explain(None).to_string()
}

#[test]
fn the_page_shows_what_the_program_answers() {
    let path = repository().join("docs/explain.md");
    let page = fs::read_to_string(&path).expect("the page");
    let (mut made, mut rest, mut shown) = (String::new(), page.as_str(), 0);
    while let Some((before, after)) = rest.split_once("$ binderperf explain ") {
        let (files, after) = after.split_once('\n').expect("a command");
        let (_, behind) = after.split_once("```\n").expect("a block ends");
        made += &format!("{before}$ binderperf explain {files}\n{}```\n", answer(files));
        (rest, shown) = (behind, shown + 1);
    }
    made += rest;
    assert!(shown >= 5, "{shown} answers");
    same(&path, &page, &made);
}

/// The page is as it is made, or is written.
fn same(path: &Path, page: &str, made: &str) {
    if std::env::var_os("BINDERPERF_GOLDEN").is_some() {
        fs::write(path, made).expect("the page can be written");
        return;
    }
    let differs = page.lines().zip(made.lines()).find(|(page, made)| page != made);
    assert!(
        page == made,
        "the page shows {:?} where the program answers {:?}",
        differs.map(|d| d.0),
        differs.map(|d| d.1)
    );
}

#[test]
fn an_input_that_the_page_shows_is_the_one_that_was_read() {
    let page = fs::read_to_string(repository().join("docs/explain.md")).expect("the page");
    for name in ["dmesg.txt", "transactions_deadlock.txt", "bugreport.txt"] {
        let input = fs::read_to_string(repository().join("crates/explain/fixtures").join(name)).expect(name);
        assert!(page.contains(&format!("```\n{}\n```", input.trim_end())), "{name}");
    }
}

#[test]
fn the_table_of_failures_is_the_programs() {
    let path = repository().join("docs/explain-failures.md");
    let page = fs::read_to_string(&path).expect("the page");
    let (before, _) = page.split_once("\n| item |").expect("a table");
    let mut made = format!(
        "{before}\n| item | the driver's word, or its line | explanation | next |\n|---|---|---|---|\n"
    );
    for Explanation { item, sign, why, next } in explain::explanations() {
        let line = format!("| {item} | {sign} | {why} | {next} |\n");
        assert_eq!(line.matches('|').count(), 5, "{line}");
        made += &line;
    }
    same(&path, &page, &made);
}
