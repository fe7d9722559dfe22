//! The page `docs/field-cases.md`: inputs after reports from the field, each with what the program answers now.
//! Not here: whether the answers are true (`crates/trace/tests/files/cases.rs`, `crates/explain/tests/cases.rs`, the doctor's
//! `tests/field.rs`, `others`).

use std::fmt::Write;

use crate::support::{Called, binderperf};

/// Folders of the inputs.
const TRACES: &str = "crates/trace/fixtures/cases";
const EXPLAINED: &str = "crates/explain/fixtures";
const SYSTEMS: &str = "crates/doctor/src/tests/field";
const IMPORTED: &str = "crates/record/src/import/tests";

/// The page before its table.
const HEAD: &str = "\
# Inputs from the field

Small files after public reports of people who do this job, written anew without personal details, each with lines of what binderperf prints of
it now. A test (`tests/cli/field_cases.rs`) asks again and compares; `BINDERPERF_GOLDEN=write cargo test --test cli field_cases` writes this page anew where
a change is meant. Whether the answers are true is held by tests beside the code.

| input | asked | right | now |
|---|---|---|---|
";

/// An input, and what of the answer the page shows.
struct Case {
    folder: &'static str,
    files: &'static [&'static str],
    /// The kind of input.
    is: &'static str,
    /// The right answer.
    right: &'static str,
    asked: Asked,
}

enum Asked {
    /// A command with these words, and what the shown lines have.
    Command(&'static str, &'static [&'static str]),
    /// The doctor's check of this name.
    Doctor(&'static str),
}

const ANALYZE: &str = "trace analyze";

const fn trace(
    file: &'static [&'static str],
    is: &'static str,
    right: &'static str,
    lines: &'static [&'static str],
) -> Case {
    Case { folder: TRACES, files: file, is, right, asked: Asked::Command(ANALYZE, lines) }
}

const fn explained(
    file: &'static [&'static str],
    is: &'static str,
    right: &'static str,
    lines: &'static [&'static str],
) -> Case {
    Case { folder: EXPLAINED, files: file, is, right, asked: Asked::Command("explain", lines) }
}

const fn system(
    file: &'static [&'static str],
    is: &'static str,
    right: &'static str,
    check: &'static str,
) -> Case {
    Case { folder: SYSTEMS, files: file, is, right, asked: Asked::Doctor(check) }
}

const fn imported(
    files: &'static [&'static str],
    is: &'static str,
    right: &'static str,
    lines: &'static [&'static str],
) -> Case {
    Case { folder: IMPORTED, files, is, right, asked: Asked::Command("compare", lines) }
}

const CASES: &[Case] = &[
    trace(
        &["binder_only_slow.txt"],
        "binder's events alone",
        "no cause, one warning: which events are missing and how to record them",
        &["WARNING", "- call 1 ", "%  not shown"],
    ),
    trace(
        &["oneway_failed.txt"],
        "a oneway call that failed, and spam",
        "the failure with its word, time, who called whom; the spam by name; no cause",
        &["- oneway call 5", "- oneway call 3", "ONEWAY_SPAM"],
    ),
    trace(
        &["oneway_unreceived.txt"],
        "a oneway call that nobody took",
        "a oneway call that nobody took",
        &["- oneway call"],
    ),
    trace(
        &["starved.txt"],
        "two callers of a server with one thread",
        "the second caller waited 0.8 s for a server whose only thread served the first",
        &["- call 3 "],
    ),
    Case {
        folder: TRACES,
        files: &["hang.txt"],
        is: "a call without an answer",
        right: "call 1 (`IFoo.bar`) unanswered after 8.00 s, over the deadline; its server waits for worker 210",
        asked: Asked::Command(
            "trace analyze --deadline-us 2500",
            &["over the deadline of", "- MISS IFoo.bar"],
        ),
    },
    trace(
        &["failed.txt"],
        "calls that failed",
        "FAILED after 0.4 ms, DEAD after 2.0 s, FROZEN; who called whom with which code",
        &["- call 1 ", "- call 3 ", "- call 5 "],
    ),
    trace(
        &["names.pftrace"],
        "names in packets of their own",
        "`client-main 100`, `binder:200_1 201`, `vendor.example.hardware.power-service`",
        &["- SHELL_COMMAND"],
    ),
    trace(
        &["header_zero_kept.txt"],
        "a ring's header with nothing kept: `0/14`",
        "no event lost",
        &["events in", "- call 1 "],
    ),
    trace(&["old_kernel_4.4.dat.gz"], "`trace.dat` of Linux 4.4", "1 call, 904 us", &["1 call", "- call 1 "]),
    trace(&["tracecmd_raw.txt"], "`trace-cmd report -r`", "1 call, 200 us", &["1 call", "- call 1 "]),
    trace(
        &["tracecmd_buffer.txt"],
        "`trace-cmd report` of a named buffer",
        "1 call, 200 us",
        &["1 call", "- call 1 "],
    ),
    trace(
        &["two_scripts.html"],
        "systrace's page with two scripts",
        "1 call, 140 ms, no warning of the second script",
        &["1 call", "- call 1 "],
    ),
    trace(
        &["legacy_systrace.html"],
        "an old systrace page: `linuxPerfData`",
        "1 call, 140 ms",
        &["1 call", "- call 1 "],
    ),
    trace(
        &["chrome_with_systrace.json"],
        "Chrome's JSON with `systemTraceEvents`",
        "its ftrace text is read: 1 call, 140 ms",
        &["1 call", "- call 1 "],
    ),
    trace(&["nogap.txt"], "stamps directly behind the flags", "1 call, 40 us", &["1 call", "- call 1 "]),
    trace(
        &["empty_first_packet.pftrace"],
        "an empty first packet",
        "1 call, 102 ms",
        &["1 call", "- SHELL_COMMAND"],
    ),
    trace(&["perf_script.txt"], "`perf script`", "1 call, 200 us", &["1 call", "- call 1 "]),
    trace(&["llvm_mark.txt"], "marks of a function with `.llvm.`", "the call is `IFoo.bar`", &["- IFoo.bar"]),
    trace(
        &["tsc_clock.txt"],
        "stamps of another clock",
        "the clock's unit is not known",
        &["of a clock whose unit"],
    ),
    explained(
        &["dmesg.txt"],
        "lines of the driver in the kernel's log",
        "each kind of failure in words",
        &["1. ", "2. ", "3. ", "4. ", "5. ", "6. "],
    ),
    explained(
        &["transactions_deadlock.txt"],
        "the driver's `transactions`",
        "two circles, each nested back into a waiting thread, all four over 61 s",
        &["1. ", "which the driver permits"],
    ),
    system(
        &["snap2"],
        "a snapshot with the driver's `stats`",
        "4271 has 15 of 15 threads and none ready",
        "binder-threads",
    ),
    system(&["snap2"], "the same", "6019 has 2,024 B for oneway calls: a warning", "binder-buffers"),
    system(&["wsl"], "a kernel of WSL", "a kernel of one's own by `.wslconfig`", "driver-missing"),
    system(
        &["crostini"],
        "a container of ChromeOS",
        "Google decides; `vm` or the embedded driver",
        "driver-missing",
    ),
    system(
        &["rockchip"],
        "a board vendor's kernel",
        "the vendor decides; `vm` or the embedded driver",
        "driver-missing",
    ),
    system(&["asahi"], "Asahi Linux", "Asahi decides; `vm` or the embedded driver", "driver-missing"),
    system(&["raspi"], "Ubuntu on a Raspberry Pi", "the package of this kernel's modules", "driver-missing"),
    system(&["arch"], "Arch Linux", "a kernel of the distribution that has it", "driver-missing"),
    system(&["popos"], "Pop!_OS", "a kernel of the distribution that has it", "driver-missing"),
    system(&["pve"], "Proxmox VE", "binderfs is to be mounted", "driver-missing"),
    system(&["solus"], "Solus", "a kernel that has it", "driver-missing"),
    imported(
        &["gb_kcalloc.json", "gb_kvcalloc.json"],
        "Google Benchmark, one run each",
        "the size of each difference, and that one run each proves nothing",
        &["BM_sendVec_binder/4 ", "Cannot tell in", "nothing but the size"],
    ),
    imported(
        &["btt_base.txt", "btt_patched.txt"],
        "`binderThroughputTest`, one run each",
        "the same",
        &["binderThroughputTest/rate", "Cannot tell in"],
    ),
];

impl Case {
    fn paths(&self) -> Vec<String> {
        let below = |file| format!("{}/{}/{file}", env!("CARGO_MANIFEST_DIR"), self.folder);
        self.files.iter().map(below).collect()
    }

    /// The command without its files, and the lines of the answer.
    fn answer(&self) -> (String, Vec<String>) {
        let paths = self.paths();
        let paths = paths.iter().map(String::as_str);
        match self.asked {
            Asked::Command(words, lines) => {
                let called = binderperf(&words.split(' ').chain(paths).collect::<Vec<_>>());
                let lines = lines.iter().map(|shown| line_with(&called, shown)).collect();
                (words.to_owned(), lines)
            }
            Asked::Doctor(id) => {
                let words = ["doctor", "--format", "json", "--from"];
                let called = binderperf(&words.into_iter().chain(paths).collect::<Vec<_>>());
                ("doctor --from".to_owned(), check(&called, id))
            }
        }
    }
}

/// The first line of the output that has these words, without its indent and the mark of a list.
fn line_with(called: &Called, words: &str) -> String {
    let line = called.stdout.lines().find(|line| line.contains(words));
    let line = line.unwrap_or_else(|| panic!("no line with {words:?} in {called}")).trim();
    let line = line.strip_prefix("- ").unwrap_or(line);
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn check(called: &Called, id: &str) -> Vec<String> {
    let json = called.json();
    let checks = json["checks"].as_array().expect("a list");
    let check =
        checks.iter().find(|check| check["id"] == id).unwrap_or_else(|| panic!("no {id} in {called}"));
    let part = |name: &str| check[name].as_str().map(str::to_owned);
    let (verdict, text) = (part("verdict").expect("each has one"), part("text").expect("each has one"));
    let first = format!("{verdict}: {text}");
    [Some(first), part("fix").map(|fix| format!("fix: {fix}"))].into_iter().flatten().collect()
}

fn page() -> String {
    let mut page = HEAD.to_owned();
    for case in CASES {
        let (words, lines) = case.answer();
        let files: Vec<String> = case.files.iter().map(|file| format!("`{file}`")).collect();
        let lines: Vec<String> =
            lines.iter().map(|line| line.replace('|', "\\|").replace('<', "&lt;")).collect();
        let (files, lines) = (files.join(", "), lines.join("<br>"));
        let _ = writeln!(page, "| {files}: {} | `{words}` | {} | {lines} |", case.is, case.right);
    }
    page
}

#[test]
fn the_page_of_field_cases_has_what_the_program_answers() {
    let path = format!("{}/docs/field-cases.md", env!("CARGO_MANIFEST_DIR"));
    let (page, have) = (page(), std::fs::read_to_string(&path).unwrap_or_default());
    if std::env::var_os("BINDERPERF_GOLDEN").is_some_and(|wanted| wanted == "write") {
        return std::fs::write(path, page).expect("written");
    }
    for (line, want) in have.lines().zip(page.lines()) {
        assert_eq!(line, want, "docs/field-cases.md: write it with BINDERPERF_GOLDEN=write");
    }
    assert_eq!(have.lines().count(), page.lines().count(), "docs/field-cases.md");
}
