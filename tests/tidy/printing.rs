//! Who writes to the standard streams: the command line in one place, which lets nothing steer a terminal, and few others.

use crate::sources;

/// Files that may, and why.
const ALLOWED: [(&str, &str); 14] = [
    ("crates/console/src/terminal.rs", "the one place"),
    (
        "crates/embedded/src/start.rs",
        "lines for the process that started it; a warning with a path of this program",
    ),
    ("crates/aidl/src/build.rs", "lines for cargo, of a build script"),
    ("crates/backend/src/broker.rs", "misuse of a hidden command"),
    ("crates/ipc/src/registration.rs", "a warning to the author of a service"),
    ("crates/needs/src/lib.rs", "the report of a skipped test"),
    ("crates/procgroup/src/role.rs", "lines for the process that started it"),
    ("crates/bench/src/servers/role.rs", "lines for the process that started it"),
    ("crates/conformance/src/runner.rs", "lines for the process that started it"),
    ("crates/conformance/src/helper.rs", "lines for the process that started it"),
    ("crates/conformance/src/remote_process.rs", "lines for the process that started it"),
    ("crates/vm/src/guest.rs", "the console of a guest"),
    ("crates/vm/src/guest/outbox.rs", "the console of a guest"),
    ("crates/preload/src/file.rs", "the streams of the program that it is loaded into"),
];

/// Words that write to a standard stream, or get hold of one.
const WORDS: [&str; 5] = ["print!(", "println!(", "io::stdout", "io::stderr", "/dev/stdout"];

/// The lines of a source that write there.
fn faults(path: &str, source: &str) -> Vec<String> {
    let is_ours = path.starts_with("src/") || path.starts_with("crates/") && path.contains("/src/");
    let shipped = is_ours && !path.contains("/tests");
    if !shipped || ALLOWED.iter().any(|(allowed, _)| *allowed == path) {
        return Vec::new();
    }
    let code = source.split("#[cfg(test)]").next().unwrap_or_default();
    let code = code.split("#[cfg(all(test").next().unwrap_or_default();
    let imports =
        |line: &str| line.starts_with("use std::io") && (line.contains("stdout") || line.contains("stderr"));
    let writes = |line: &&str| {
        let is_comment = line.trim_start().starts_with("//");
        !is_comment && (imports(line) || WORDS.iter().any(|word| line.contains(word)))
    };
    let told = |line: &str| {
        format!(
            "{path} writes to a standard stream, which crates/console/src/terminal.rs does: {}",
            line.trim()
        )
    };
    code.lines().filter(writes).map(told).collect()
}

#[test]
fn one_place_writes_to_terminals() {
    let found: Vec<String> = sources().iter().flat_map(|(path, source)| faults(path, source)).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
    for (path, _) in ALLOWED {
        assert!(sources().iter().any(|(there, _)| there == path), "{path} is allowed, and not there");
    }
}

#[test]
fn a_careless_print_is_noticed() {
    for line in
        ["println!(\"x\");", "eprint!(\"x\");", "io::stdout().lock();", "use std::io::{self, stderr};"]
    {
        assert_eq!(faults("src/cli/x.rs", &format!("//! X.\n{line}\n")).len(), 1, "{line}");
        assert_eq!(faults("crates/x/src/y.rs", &format!("//! X.\n{line}\n")).len(), 1, "{line}");
        assert!(
            faults("crates/console/src/terminal.rs", line).is_empty()
                && faults("tests/cli/x.rs", line).is_empty()
        );
    }
    assert!(faults("src/cli/x.rs", "let x = 1;\n#[cfg(test)]\nprintln!(\"x\");\n").is_empty());
}
