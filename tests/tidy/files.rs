//! Headers, sizes, names of threads and the lint against `unsafe`, file by file.

use crate::sources;

/// Longest file that is accepted.
const MAX_LINES: usize = 600;
/// Longest line of a comment, in characters.
const MAX_WIDTH: usize = 140;

/// What is wrong with one source file.
fn faults(path: &str, source: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if !source.starts_with("//! ") && !source.starts_with("#!") {
        faults.push(format!("{path} does not begin with a header (//! ...)"));
    }
    if path.contains("src/") && path.ends_with("/mod.rs") {
        faults.push(format!("{path} is named mod.rs; a module's file has the module's name"));
    }
    let lines = source.lines().count();
    if lines > MAX_LINES {
        faults.push(format!("{path} has {lines} lines, {MAX_LINES} is the limit"));
    }
    // A table's row is one line.
    let is_text = |line: &str| line.trim_start().starts_with("//") && !line.contains("/// |");
    let is_wide = |line: &str| is_text(line) && line.chars().count() > MAX_WIDTH;
    if let Some(line) = source.lines().position(is_wide) {
        faults.push(format!("{path}:{} has a comment of more than {MAX_WIDTH} characters", line + 1));
    }
    // Tests, models and fuzz targets have whatever threads they like.
    let shipped =
        path.contains("src/") && !["tests", "models", "fuzz"].iter().any(|word| path.contains(word));
    let code = source
        .split("#[cfg(test)]")
        .next()
        .and_then(|code| code.split("#[cfg(all(test").next())
        .unwrap_or_default();
    if shipped && (code.contains("thread::spawn(") || code.contains("Builder::new().spawn(")) {
        faults.push(format!("{path} starts a thread without a name; use sys::title::thread"));
    }
    // An older file would be lost if the command failed then.
    let creates = ["File::create(", "fs::write(", "fs::copy("].iter().find(|word| code.contains(**word));
    if let Some(word) = creates.filter(|_| path.starts_with("src/")) {
        faults.push(format!("{path} writes a file with {word}...), use sys::draft, which replaces an older one when it is whole"));
    }
    // Another user can make it first, and a killed test leaves it for ever.
    let is_foreseen = |line: &str| line.contains("temp_dir()") && line.contains("process::id()");
    if source.lines().any(is_foreseen) && !["/examples/", "/tidy/"].iter().any(|word| path.contains(word)) {
        faults.push(format!("{path} names a temporary file by its process, use sys::private_folder"));
    }
    let is_root = path.ends_with("src/lib.rs") || path == "src/main.rs";
    let forbids = source.lines().any(|line| line == "#![forbid(unsafe_code)]");
    let may_be_unsafe = ["crates/sys/src/lib.rs", "crates/preload/src/lib.rs"].contains(&path);
    if is_root && !may_be_unsafe && !forbids {
        faults.push(format!("{path} does not forbid unsafe code"));
    }
    // The C library's interface, and nothing behind it.
    let is_interface = path.strip_prefix("crates/preload/src/").is_some_and(|file| {
        file.starts_with("exports/") || ["exports.rs", "interface.rs", "next.rs"].contains(&file)
    });
    let is_unsafe = path.starts_with("crates/preload/") && !is_interface && code.contains("unsafe {");
    if is_unsafe {
        faults.push(format!("{path} has unsafe code, which belongs in exports.rs, interface.rs and next.rs"));
    }
    faults
}

#[test]
fn each_file_has_a_header_and_a_readable_size() {
    let faults: Vec<String> = sources().iter().flat_map(|(path, source)| faults(path, source)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_careless_file_is_noticed() {
    let fine = "//! X.\n#![forbid(unsafe_code)]\n";
    assert!(faults("crates/abi/src/lib.rs", fine).is_empty());
    assert!(faults("crates/sys/src/lib.rs", "//! X.\n").is_empty());
    let long = format!("//! X.\n{}", "\n".repeat(600));
    let wide = format!("//! X.\n//! {}\n", "y".repeat(140));
    for (path, source, want) in [
        ("src/x.rs", "use std::io;\n", "does not begin with a header"),
        ("src/x.rs", long.as_str(), "601 lines"),
        ("src/x.rs", wide.as_str(), "x.rs:2 has a comment"),
        ("crates/vm/src/x/mod.rs", "//! X.\n", "is named mod.rs"),
        ("src/x.rs", "//! X.\nlet thread = std::thread::spawn(work);\n", "without a name"),
        ("src/x.rs", "//! X.\nstd::fs::write(path, text)?;\n", "use sys::draft"),
        (
            "crates/x/tests/y.rs",
            "//! X.\nlet path = std::env::temp_dir().join(format!(\"y-{}\", std::process::id()));\n",
            "by its process",
        ),
        ("crates/preload/src/calls.rs", "//! X.\nunsafe { call() };\n", "has unsafe code"),
        ("crates/bench/src/lib.rs", "//! X.\n// #![forbid(unsafe_code)]\n", "does not forbid"),
    ] {
        let faults = faults(path, source);
        assert!(faults.len() == 1 && faults[0].contains(want), "{want}: {faults:?}");
    }
}
