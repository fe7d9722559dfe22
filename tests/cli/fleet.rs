//! `fleet tradefed`: its modules, read as tradefed reads them, and their commands run as tradefed runs them.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use crate::support::{BINARY, Folder, binderperf};

/// Class, option, key and value of each option of a configuration, by an XML parser.
const OPTIONS: &str = "import sys, xml.etree.ElementTree as tree
for element in tree.parse(sys.argv[1]).getroot():
    for option in element.findall('option'):
        print(element.get('class'), option.get('name'), option.get('key') or '', option.get('value'), sep='|')";

fn options(file: &str) -> Vec<[String; 4]> {
    let read = Command::new("python3").args(["-c", OPTIONS, file]).output().expect("python3");
    assert!(read.status.success(), "{file}: {}", String::from_utf8_lossy(&read.stderr));
    let text = String::from_utf8(read.stdout).expect("UTF-8");
    text.lines()
        .map(|line| {
            let words: Vec<String> = line.split('|').map(ToOwned::to_owned).collect();
            words.try_into().expect("four words")
        })
        .collect()
}

fn values<'o>(options: &'o [[String; 4]], name: &str) -> Vec<&'o [String; 4]> {
    options.iter().filter(|option| option[1] == name).collect()
}

/// The device's path of a pushed file, below this folder.
fn pushed(folder: &Folder, module: &str, options: &[[String; 4]]) -> String {
    let [push] = values(options, "push-file")[..] else { panic!("one file is pushed: {options:?}") };
    let [_, _, key, place] = push;
    let arch = if cfg!(target_arch = "x86_64") { "x86_64" } else { "arm64" };
    let source = fs::canonicalize(folder.path(&format!("out/{module}/{arch}/{key}"))).expect("the program");
    let place = folder.path(&format!("device{place}"));
    fs::create_dir_all(std::path::Path::new(&place).parent().expect("a folder")).expect("created");
    symlink(source, &place).expect("pushed");
    place
}

#[test]
fn tradefed_runs_the_benchmarks() {
    let folder = Folder::new("fleet-benchmark");
    binderperf(&["fleet", "tradefed", "--out", &folder.path("out")]).ended(0);
    let module = "binderperf-benchmark";
    let read = options(&folder.path(&format!("out/{module}/AndroidTest.xml")));
    assert_eq!(read, options(&folder.path(&format!("out/{module}/{module}.config"))));
    let place = pushed(&folder, module, &read);
    // The runner walks this folder.
    let path = &values(&read, "native-benchmark-device-path")[0][3];
    let name = &values(&read, "benchmark-module-name")[0][3];
    assert!(place.contains(&format!("{path}/{name}/")), "{place}");

    let listed = Command::new(&place).arg("--benchmark_list_tests=true").output().expect("started");
    let listed = String::from_utf8(listed.stdout).expect("UTF-8");
    let first = listed.lines().next().expect("a benchmark");
    assert!(!first.contains(' '), "tradefed takes a blank to mean that nothing matched: {first}");
    let filter = format!("--benchmark_filter=^{first}$");
    let words = [&filter, "--benchmark_format=json"];
    let ran = Command::new(&place).args(words).env("BENCHMARK_MIN_TIME", "20x").output().expect("started");
    let json: serde_json::Value = serde_json::from_slice(&ran.stdout).expect("JSON and nothing before it");
    assert_eq!(json["benchmarks"][0]["name"], first);
    assert!(json["benchmarks"][0]["real_time"].as_f64().is_some_and(|time| time > 0.0), "{json}");
}

#[test]
fn tradefed_runs_the_commands() {
    let folder = Folder::new("fleet-tests");
    binderperf(&["fleet", "tradefed", "--out", &folder.path("out"), "--binary", BINARY]).ended(0);
    let read = options(&folder.path("out/binderperf-tests/AndroidTest.xml"));
    let place = pushed(&folder, "binderperf-tests", &read);
    let records = &values(&read, "directory-keys")[0][3];
    assert!(values(&read, "run-command")[0][3].ends_with(records), "made before, fetched afterwards");
    let lines = values(&read, "test-command-line");
    assert_eq!(
        lines.iter().map(|line| line[2].as_str()).collect::<Vec<_>>(),
        ["binder-latency", "hwbinder-latency", "inheritance", "conformance"]
    );
    fs::create_dir_all(folder.path(&format!("device{records}"))).expect("created");
    for line in lines.iter().filter(|line| line[2].contains("latency")) {
        // The runner wants a word of the line that is an executable, and status 0.
        let here = line[3].replace("/data/", &folder.path("device/data/"));
        assert!(here.split(' ').any(|word| word == place), "{here}");
        let ran =
            Command::new("sh").args(["-c", &(here + " -i 20 --driver embedded")]).output().expect("a shell");
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        let record = folder.path(&format!("device{records}/{}.json", line[2]));
        binderperf(&["show", &record]).ended(0);
    }
    for line in lines {
        let words: Vec<&str> = line[3].split(' ').skip(1).collect();
        binderperf(&[&words[..1], &["--help"]].concat()).ended(0);
    }
}

#[test]
fn production_builds_get_pings_only_and_wrong_programs_are_refused() {
    let folder = Folder::new("fleet-no-root");
    let out = folder.path("out");
    binderperf(&["fleet", "tradefed", "--no-root", "--out", &out]).ended(0);
    let text = fs::read_to_string(format!("{out}/binderperf-tests/AndroidTest.xml")).expect("written");
    assert!(!text.contains("RootTargetPreparer") && text.contains("throughput ping"), "{text}");
    assert!(!fs::exists(format!("{out}/binderperf-benchmark")).expect("looked"));
    let called = binderperf(&["fleet", "tradefed", "--out", &out, "--binary", "/etc/passwd"]).ended(2);
    assert!(called.stderr.contains("no program for a device's architecture"), "{}", called.stderr);
    let called = binderperf(&["fleet", "tradefed", "--out", "/proc/nowhere"]).ended(4);
    assert!(called.stderr.contains("cannot make"), "{}", called.stderr);
}
