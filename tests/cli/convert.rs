//! `binderperf convert` as the programs see it that these formats are of, and files of every format as they are to
//! stay: `BINDERPERF_GOLDEN=write` writes them anew where a change is meant.
//! Not here: what stands where in each format (`record::formats::convert`'s tests).
//! Facts: kcidb-io 141 has KCIDB's schema; the XML schema is Jenkins' junit-10.xsd, as pytest's source carries it; `prove`
//! reads TAP and passes over the line by which KTAP differs; Otava 0.8 reads CSV by a configuration.

use std::path::Path;

use crate::support::{Called, Folder, binderperf, call, contents, without_checksum, words};

/// A program of `target/tools/formats`, which `tools/install-deps test` makes.
fn tool(name: &str) -> String {
    let path = format!("{}/target/tools/formats/{name}", env!("CARGO_MANIFEST_DIR"));
    let there = Path::new(&path).exists();
    assert!(there, "{path} is missing and this cannot be tested: tools/install-deps test installs it");
    path
}

fn taken(kind: &str, file: &str) -> Result<(), String> {
    tool("installed");
    let script = format!("{}/tests/support/formats.py", env!("CARGO_MANIFEST_DIR"));
    let called = call(&tool("bin/python"), &[&script, kind, file], &[]);
    if called.code == Some(0) { Ok(()) } else { Err(called.stderr) }
}

/// The records of a guest with Debian's 7.2 that every later version must read, each with what it becomes.
const GOLDEN: [&str; 2] = ["throughput", "latency"];
const FORMATS: [(&str, &str); 6] = [
    ("gbench", "gbench.json"),
    ("junit", "junit.xml"),
    ("ktap", "tap"),
    ("lava", "lava.txt"),
    ("kcidb", "kcidb.json"),
    ("csv", "csv"),
];

fn golden(name: &str, end: &str) -> String {
    format!("{}/tests/golden/{name}.{end}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn what_consumers_have_read_stays_as_it_was() {
    for name in GOLDEN {
        for (format, end) in FORMATS {
            let called = binderperf(&["convert", "--to", format, &golden(name, "json")]);
            assert_eq!(called.code, Some(0), "{name} as {format}: {}", called.stderr);
            let file = golden(name, end);
            if std::env::var_os("BINDERPERF_GOLDEN").is_some_and(|wanted| wanted == "write") {
                std::fs::write(&file, &called.stdout).expect("the tree is ours");
            }
            let want = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file}: {error}"));
            let apart = want.lines().zip(called.stdout.lines()).find(|(was, is)| was != is);
            assert!(want == called.stdout, "{file} and what is written now are apart: {apart:?}");
        }
    }
}

fn converted(record: &str, to: &str, out: &str) -> Called {
    binderperf(&["convert", "--to", to, record, "-o", out])
}

/// Records of several tests, and one with a case that failed, one that was skipped, and no end.
fn records(folder: &Folder) -> Vec<String> {
    let mut records = Vec::new();
    let tests: [(&str, &[&str]); 3] = [
        (
            "throughput.json",
            &["throughput", "binder", "--benchmark_filter=/(4|64)$", "--benchmark_min_time=20x"],
        ),
        ("latency.json", &["latency", "hwbinder", "-i", "20", "-pair", "1", "--no-scenes"]),
        (
            "repeated.json",
            &[
                "throughput",
                "binder",
                "--benchmark_filter=/4$",
                "--benchmark_min_time=20x",
                "--benchmark_repetitions=3",
            ],
        ),
    ];
    for (name, words) in tests {
        let path = folder.path(name);
        let record = format!("--record={path}");
        let called = binderperf(&[words, &["--driver", "embedded", &record]].concat());
        assert!(matches!(called.code, Some(0 | 1)), "{name}: {}", called.stderr);
        records.push(path);
    }
    let mut json = without_checksum(&records[0]);
    json["cases"][0]["repetitions"][0]["outcome"] = serde_json::json!({ "failed": { "reason": "it <broke> & \"hung\" \u{1b}[31m # SKIP", "partial": null } });
    json["cases"][1]["repetitions"][0]["outcome"] =
        serde_json::json!({ "skipped": { "reason": "]]> no driver" } });
    json["complete"] = false.into();
    json["incomplete_reason"] = "stopped by SIGINT".into();
    let path = folder.write("troubled.json", json.to_string());
    records.push(path);
    records.extend(GOLDEN.map(|name| golden(name, "json")));
    records
}

#[test]
fn each_format_is_taken_by_its_own_programs() {
    let folder = Folder::new("convert");
    for record in records(&folder) {
        let troubled = record.ends_with("troubled.json");
        let out = |name: &str| folder.path(name);
        for (kind, file) in [("junit", out("o.xml")), ("kcidb", out("o.kcidb"))] {
            let called = converted(&record, kind, &file);
            assert_eq!((called.code, called.stdout.as_str()), (Some(0), ""), "{record}: {}", called.stderr);
            taken(kind, &file).unwrap_or_else(|why| panic!("{record} as {kind}: {why}"));
            // They can say no.
            let text = contents(&file);
            let broken = match kind {
                "junit" => text.replacen("<testcase name=", "<testcase nam=", 1),
                _ => text.replacen("\"status\": \"", "\"status\": \"NOT", 1),
            };
            assert_ne!(broken, text);
            std::fs::write(&file, broken).expect("written");
            assert!(taken(kind, &file).is_err(), "a broken {kind} is taken");
        }
        let ktap = out("o.tap");
        assert_eq!(converted(&record, "ktap", &ktap).code, Some(0));
        let proved = call("prove", &["--exec", "cat", &ktap], &[]);
        assert_eq!(proved.code == Some(0), !troubled, "{record}: {}{}", proved.stdout, proved.stderr);
        assert_eq!(proved.stdout.contains("Failed 2/"), troubled, "{record}: {}", proved.stdout);
        let gbench = out("o.json");
        assert_eq!(converted(&record, "gbench", &gbench).code, Some(0));
        let compare = ["/usr/share/benchmark/compare.py", "--no-color", "benchmarks", &gbench, &gbench];
        call("/usr/bin/python3", &compare, &[]).ended(0);
        let lava = binderperf(&["convert", "--to", "lava", &record]);
        assert_eq!(lava.stdout.contains("RESULT=fail"), troubled && lava.code == Some(0), "{}", lava.stdout);
    }
}

#[test]
fn otava_finds_in_a_table_of_runs_where_they_became_slower() {
    let folder = Folder::new("otava");
    let first = folder.path("0.json");
    let words = ["throughput", "binder", "--benchmark_filter=/4$", "--benchmark_min_time=20x"];
    let measured =
        binderperf(&[&words[..], &["--driver", "embedded", &format!("--record={first}")]].concat());
    assert_eq!(measured.code, Some(0), "{}", measured.stderr);
    let measured = without_checksum(&first);
    let history = |slower_from: usize| {
        let mut files = Vec::new();
        for day in 0..20 {
            let mut json = measured.clone();
            json["started"] = format!("2026-01-{:02}T12:00:00+00:00", day + 1).into();
            // A little noise, and from some day on a fifth more.
            let base = 100_000 + [0, 700, 300, 900, 500][day % 5];
            let total = if day >= slower_from { base * 6 / 5 } else { base };
            json["cases"][0]["repetitions"][0]["outcome"]["measured"]["real_total"] = total.into();
            let path = folder.write(&format!("{slower_from}-{day}.json"), json.to_string());
            files.push(path);
        }
        files
    };
    for (slower_from, found) in [(12, true), (20, false)] {
        let files = history(slower_from);
        let table = folder.path("history.csv");
        let mut words = vec!["convert", "--to", "csv", "-o", &table];
        words.extend(files.iter().map(String::as_str));
        binderperf(&words).ended(0);
        let config = folder.path("otava.yaml");
        let name = contents(&table);
        let column =
            name.lines().next().expect("a heading").split(',').find(|head| head.ends_with(".mean_ns"));
        let column = column.expect("the mean");
        std::fs::write(
            &config,
            format!(
                "tests:\n  binder:\n    type: csv\n    file: {table}\n    time_column: time\n    attributes: [commit]\n    \
                 metrics:\n      mean:\n        column: {column:?}\n        direction: -1\n"
            ),
        )
        .expect("written");
        let analyze = ["analyze", "binder", "--since", "2025-12-01"];
        let called = call(&tool("bin/otava"), &analyze, &[("OTAVA_CONFIG", &config)]).ended(0);
        assert!(called.stdout.contains("2026-01-20"), "it read no rows: {}{}", called.stdout, called.stderr);
        assert_eq!(called.stdout.contains("+20."), found, "{}", called.stdout);
        assert_eq!(called.stdout.contains("·····"), found, "{}", called.stdout);
    }
}

#[test]
fn what_cannot_be_converted_is_said() {
    let folder = Folder::new("convert-bad");
    let record = folder.path("r.json");
    let words = words("throughput binder --benchmark_filter=/4$ --benchmark_min_time=10x --driver embedded");
    binderperf(&[&words[..], &[&format!("--record={record}")]].concat()).ended(0);
    let text = contents(&record);
    let changed = |name: &str, text: String| folder.write(name, text);
    let edited = |name: &str, edit: fn(&mut serde_json::Value)| {
        let mut json = without_checksum(&record);
        edit(&mut json);
        changed(name, json.to_string())
    };
    let newer = edited("newer.json", |json| json["version"] = 2.into());
    let cut = changed("cut.json", text[..text.len() / 2].to_owned());
    let empty = edited("empty.json", |json| json["cases"] = serde_json::json!([]));
    let nowhere = edited("nowhere.json", |json| json["host"]["kernel"]["machine"] = "".into());
    let unmeasured = edited("unmeasured.json", |json| {
        for case in json["cases"].as_array_mut().expect("a list") {
            case["repetitions"] = serde_json::json!([]);
        }
    });
    let gone = folder.path("gone.json");
    let out = folder.path("out");
    for (file, to, output, code, why) in [
        (&newer, "junit", &out, 2, "version 2"),
        (&cut, "ktap", &out, 2, "breaks off"),
        (&empty, "gbench", &out, 2, "no case that was planned"),
        (&nowhere, "kcidb", &out, 2, "no architecture, which kcidb needs"),
        (&unmeasured, "csv", &out, 2, "no measured case, which csv needs"),
        (&gone, "lava", &out, 2, "ENOENT"),
        (&record, "html", &out, 2, "html"),
        (&record, "junit", &record, 2, "the record that is read"),
        (&record, "junit", &"/dev/full".to_owned(), 4, "ENOSPC"),
        (&record, "junit", &"/nowhere/out".to_owned(), 4, "ENOENT"),
    ] {
        converted(file, to, output).ended(code).complained(why);
    }
    assert!(!Path::new(&out).exists(), "nothing is left behind of what failed");
    assert_eq!(contents(&record), text);
    binderperf(&["convert", "--to", "junit", &record, &record]).ended(2).complained("2 records are too many");
}

#[test]
fn an_edited_record_is_refused_by_every_reader() {
    let folder = Folder::new("convert-edited");
    let record = folder.path("r.json");
    let words = words("latency hwbinder -i 20 -pair 1 --driver embedded");
    let called = binderperf(&[&words[..], &[&format!("--record={record}")]].concat());
    assert!(matches!(called.code, Some(0 | 1 | 3)), "{called}");
    let text = contents(&record);
    for field in ["real_total", "sum", "not_inherited"] {
        let at = text.find(&format!("\"{field}\": ")).expect(field) + field.len() + 4;
        let edited = format!("{}1{}", &text[..at], &text[at..]);
        let edited = folder.write(&format!("{field}.json"), edited);
        let kept = folder.path("kept.jsonl");
        let readers: [&[&str]; 6] = [
            &["show", &edited],
            &["convert", "--to", "ktap", &edited],
            &["compare", &record, &edited],
            &["report", &edited, "-o", "-"],
            &["gate", "--baseline", &record, "--max-regress=5%", &edited],
            &["history", "--add", &edited, "--file", &kept],
        ];
        for words in readers {
            let called = binderperf(words).ended(2);
            called.complained(&edited).complained("was edited or is damaged").complained("measure again");
        }
    }
}
