//! Room: reads a trace to its end and says how fast that went: `cargo run --release -p trace --example read FILE`.

use std::collections::BTreeMap;
use std::fs::File;
use std::process::ExitCode;
use std::time::Instant;
use trace::event::Kind;

fn main() -> ExitCode {
    let Some(path) = std::env::args_os().nth(1) else {
        eprintln!("which trace? give a file as the only argument");
        return ExitCode::from(2);
    };
    let began = Instant::now();
    let opened = File::open(&path).map_err(trace::OpenError::Io).and_then(trace::open);
    let mut reader = match opened {
        Ok(reader) => reader,
        Err(error) => {
            eprintln!("{}: {error}", path.display());
            return ExitCode::from(2);
        }
    };
    let mut kinds = BTreeMap::new();
    for event in reader.by_ref() {
        let kind = match event.kind {
            Kind::Binder(..) => "binder",
            Kind::Switch { .. } => "switch",
            Kind::Other { .. } => "other",
            Kind::Lost { .. } => "lost",
            _ => "more",
        };
        *kinds.entry(kind).or_insert(0_u64) += 1;
    }
    let seconds = began.elapsed().as_secs_f64();
    let report = reader.report();
    println!("{report}\n{kinds:?}");
    println!("{seconds:.3} s, {:.0} events/s", report.events as f64 / seconds);
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if let Some(peak) = status.lines().find_map(|line| line.strip_prefix("VmHWM:")) {
        println!("peak memory {}", peak.trim());
    }
    ExitCode::SUCCESS
}
