//! Google's own `compare.py` on what our programs write with `--benchmark_format=json`.
//! Not here: the JSON's shape by itself (`throughput`).
//! Facts: `compare.py` of Google Benchmark 1.7.1, as Debian packages it (libbenchmark-tools, with
//! python3-scipy for its U test): `benchmarks OLD NEW` prints a row per name with the relative changes
//! `Time` and `CPU`, then times and CPU times of both, p-values from two repetitions on, and the
//! geometric mean. Its exit status is 0 unless it cannot read its input, however much slower NEW is.

use crate::support::{Called, Folder, binderperf, call, contents};

/// Programs whose JSON it must read, by their Android names, and the cases to run.
const PROGRAMS: [(&str, &[&str]); 2] = [
    ("libbinder_benchmark", &["BM_sendVec_binder/4", "BM_sendVec_binder/4096"]),
    ("libhwbinder_benchmark", &["BM_sendVec_binderize/4", "BM_sendVec_binderize/4096"]),
];

/// Debian's interpreter: its modules are not for another.
const PYTHON: &str = "/usr/bin/python3";
const COMPARE: &str = "/usr/share/benchmark/compare.py";
const COLUMNS: [&str; 7] = ["Benchmark", "Time", "CPU", "Time Old", "Time New", "CPU Old", "CPU New"];

/// Calls it, or fails where it cannot be had.
fn compare(words: &[&str]) -> Called {
    for file in [PYTHON, COMPARE] {
        let there = std::path::Path::new(file).exists();
        assert!(there, "{file} is missing and this cannot be tested: tools/install-deps test installs it");
    }
    call(PYTHON, &[&[COMPARE, "--no-color"], words].concat(), &[])
}

/// What a program writes of these cases, in a file.
fn measured(folder: &Folder, file: &str, program: &str, cases: &[&str]) -> String {
    let filter = format!("--benchmark_filter=^({})$", cases.join("|"));
    let words = ["applet", program, "--benchmark_format=json", "--benchmark_min_time=50x", &filter];
    let called = binderperf(&[&words[..], &["--benchmark_repetitions=9"]].concat()).ended(0);
    folder.write(file, called.stdout)
}

/// The same document with every time so many times as long, as if it came from a slower machine.
fn slower(folder: &Folder, path: &str, factor: f64) -> String {
    let text = contents(path);
    let mut json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    for row in json["benchmarks"].as_array_mut().expect("rows") {
        for key in ["real_time", "cpu_time"] {
            let time = row[key].as_f64().expect(key);
            row[key] = (time * factor).into();
        }
    }
    folder.write("slower.json", json.to_string())
}

/// The row of a name: its six figures.
fn figures(output: &str, name: &str) -> Vec<f64> {
    let row = output.lines().find(|line| line.split_whitespace().next() == Some(name));
    let row = row.unwrap_or_else(|| panic!("no row {name} in\n{output}"));
    let words = row.split_whitespace().skip(1);
    words.map(|word| word.parse().unwrap_or_else(|_| panic!("{word} in {row}"))).collect()
}

fn p_values(output: &str, name: &str) -> Vec<f64> {
    let row = output.lines().find(|line| line.starts_with(&format!("{name}_pvalue ")));
    let row = row.unwrap_or_else(|| panic!("no U test of {name} in\n{output}"));
    row.split_whitespace().skip(1).take(2).map(|word| word.parse().expect(row)).collect()
}

#[test]
fn two_runs_are_compared_case_by_case() {
    for (program, cases) in PROGRAMS {
        let folder = Folder::new(&format!("compare-{program}"));
        let old = measured(&folder, "old.json", program, cases);
        let new = measured(&folder, "new.json", program, cases);
        let called = compare(&["benchmarks", &old, &new]).ended(0);
        let head = called.stdout.lines().find(|line| line.starts_with("Benchmark ")).expect("a head");
        for column in COLUMNS {
            assert!(head.contains(column), "{column} in {head}");
        }
        for case in cases {
            let figures = figures(&called.stdout, case);
            assert_eq!(figures.len(), 6, "{case}: {figures:?}");
            assert!(figures[2..].iter().all(|time| *time > 0.0), "{case}: {figures:?}");
            assert!(
                p_values(&called.stdout, case).iter().all(|p| (0.0..=1.0).contains(p)),
                "{}",
                called.stdout
            );
        }
        called.printed("OVERALL_GEOMEAN");
    }
}

#[test]
fn a_run_that_is_half_as_fast_is_seen_as_that() {
    for (program, cases) in PROGRAMS {
        let folder = Folder::new(&format!("compare-slower-{program}"));
        let old = measured(&folder, "old.json", program, cases);
        let new = slower(&folder, &old, 2.0);
        let called = compare(&["benchmarks", &old, &new]);
        assert_eq!(called.code, Some(0), "never for a regression: {}", called.stderr);
        for case in cases {
            let figures = figures(&called.stdout, case);
            assert_eq!(figures[..2], [1.0, 1.0], "{case} costs 100 % more: {figures:?}");
            assert!(figures[3] > figures[2] && figures[5] > figures[4], "{case}: {figures:?}");
        }
    }
}

#[test]
fn two_cases_of_one_run_are_compared_by_filters() {
    for (program, cases) in PROGRAMS {
        let folder = Folder::new(&format!("compare-filters-{program}"));
        let file = measured(&folder, "run.json", program, cases);
        let called =
            compare(&["filters", &file, &format!("{}$", cases[0]), &format!("{}$", cases[1])]).ended(0);
        let both = format!("[{}$ vs. {}$]", cases[0], cases[1]);
        called.printed(&both);
    }
}

/// So that exit status 0 above says something.
#[test]
fn what_is_no_result_is_refused() {
    let folder = Folder::new("compare-broken");
    let broken = folder.write("broken.json", "{\"context\": {}, \"benchm");
    assert_ne!(compare(&["benchmarks", &broken, &broken]).code, Some(0));
}
