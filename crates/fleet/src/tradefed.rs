//! Modules for Android's Trade Federation: one for its Google Benchmark runner, one for its runner of executables.
//! Not here: the output that these parse (`record::formats::gbench`).
//! Facts: `GoogleBenchmarkTest` runs every file below its folder with Google Benchmark's flags, so the program goes there
//! under a name by which it knows them; `ExecutableTargetTest` runs command lines and takes a status other than 0 as a
//! failure; `PushFilePreparer` takes files from the module's folder for the device's architecture;
//! `FilePullerLogCollector` brings folders back. A source tree calls a module's file `AndroidTest.xml`, a folder of built
//! modules `MODULE.config`.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::FleetError;
use crate::program_files::{architecture, write};

/// Name by which the program acts as Google Benchmark's.
const BENCHMARK: &str = "libhwbinder_benchmark";
/// Name of the program in a module.
const PROGRAM: &str = "binderperf";
/// Folder of the program on a device.
const FOLDER: &str = "/data/local/tmp/binderperf";
/// Folder of records on a device.
const RECORDS: &str = "/data/local/tmp/binderperf-records";

/// Tests that register services of their own: names and words.
const TESTS: [(&str, &str); 4] = [
    ("binder-latency", "latency binder"),
    ("hwbinder-latency", "latency hwbinder"),
    ("inheritance", "inheritance"),
    ("conformance", "conformance"),
];
/// Tests for production builds.
const PINGS: [(&str, &str); 1] = [("ping", "throughput ping --device binder")];

#[derive(Serialize)]
struct Values {
    root: bool,
    program: &'static str,
    benchmark: &'static str,
    folder: &'static str,
    records: &'static str,
    /// Names and command lines.
    tests: Vec<(&'static str, String)>,
}

/// Writes both modules into a folder, with this program for each architecture; without root only the one that needs none.
///
/// # Errors
/// [`FleetError`].
pub fn write_modules(out: &Path, programs: &[PathBuf], root: bool) -> Result<(), FleetError> {
    let tests = if root { TESTS.as_slice() } else { PINGS.as_slice() };
    let line = |(name, words): &(&'static str, &str)| {
        // A conformance run has no record.
        let kept =
            if *words == "conformance" { String::new() } else { format!(" --record {RECORDS}/{name}.json") };
        (*name, format!("{FOLDER}/{PROGRAM} {words}{kept}"))
    };
    let values = Values {
        root,
        program: PROGRAM,
        benchmark: BENCHMARK,
        folder: FOLDER,
        records: RECORDS,
        tests: tests.iter().map(line).collect(),
    };
    let modules = [
        ("binderperf-benchmark", include_str!("tradefed/benchmark.xml")),
        ("binderperf-tests", include_str!("tradefed/tests.xml")),
    ];
    // Without services of its own there is nothing for the benchmark runner, which knows no other words than its flags.
    for (module, template) in modules.into_iter().skip(usize::from(!root)) {
        let folder = out.join(module);
        let text =
            page::render(template, &values).map_err(|error| FleetError::Template(error.to_string()))? + "\n";
        for name in ["AndroidTest.xml".to_owned(), format!("{module}.config")] {
            write(&folder, &folder.join(name), |path| sys::draft::write(path, &text))?;
        }
        for program in programs {
            let folder = folder.join(architecture(program)?);
            write(&folder, &folder.join(PROGRAM), |path| sys::draft::copy(program, path).map(drop))?;
        }
    }
    Ok(())
}
