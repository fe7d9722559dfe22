//! Counts instructions of a test program, which starts itself under valgrind.
//! Facts: valgrind's callgrind counts each instruction of the program it runs, with the same result every time.

use std::io;
use std::process::Command;

/// Instructions that this test program executes when it runs one of its tests alone, with an environment variable set.
///
/// # Errors
/// Valgrind does not start, the test fails under it, or no count is printed.
pub fn of_test(test: &str, variable: (&str, &str)) -> io::Result<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(std::env::current_exe()?)
        .args(["--exact", test, "--test-threads=1"])
        .env(variable.0, variable.1)
        .output()?;
    let printed = String::from_utf8_lossy(&output.stderr);
    let count = printed.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok());
    match count {
        Some(count) if output.status.success() => Ok(count),
        _ => Err(io::Error::other(format!("valgrind, of {test}: {}\n{printed}", output.status))),
    }
}

/// Instructions of one repetition: two runs with different numbers of repetitions differ by these alone.
///
/// # Errors
/// Those of `of_run`, which gets a number of repetitions.
pub fn of_one(of_run: impl Fn(u64) -> io::Result<u64>) -> io::Result<f64> {
    const FEW: u64 = 1_000;
    const MANY: u64 = 11_000;
    let (few, many) = (of_run(FEW)?, of_run(MANY)?);
    Ok((many - few) as f64 / (MANY - FEW) as f64)
}
