//! Google Benchmark's JSON document, written row by row.
//! Not here: the record as JSON (`crate::render::json`).
//! Rules of Android's tradefed: only the keys `real_time` and `cpu_time` end in `time`; a case that did not run has 0
//! iterations. Rules of JSON: no NaN, no infinity.

use super::line::{Line, Place, Statistic, Status};
use super::{FOLLOWED_VERSION, Printer, context};
use crate::number;
use crate::schema::Run;

#[derive(Default)]
pub(super) struct Json {
    any_row: bool,
}

impl Printer for Json {
    fn header(&mut self, run: &Run) -> String {
        format!("{{\n  \"context\": {{\n{}\n  }},\n  \"benchmarks\": [\n", context_entries(run))
    }

    fn line(&mut self, line: &Line<'_>) -> String {
        let separator = if std::mem::replace(&mut self.any_row, true) { ",\n" } else { "" };
        format!("{separator}    {{\n{}\n    }}", row_entries(line))
    }

    fn finish(&mut self) -> String {
        "\n  ]\n}\n".to_owned()
    }
}

/// Entries of one object, in order.
struct Entries {
    indent: &'static str,
    list: Vec<String>,
}

impl Entries {
    fn new(indent: &'static str) -> Entries {
        Entries { indent, list: Vec::new() }
    }

    fn raw(&mut self, key: &str, value: impl std::fmt::Display) {
        self.list.push(format!("{}{}: {value}", self.indent, quoted(key)));
    }

    fn text(&mut self, key: &str, value: &str) {
        self.raw(key, quoted(value));
    }

    fn real(&mut self, key: &str, value: f64) {
        self.raw(key, number::exact(value));
    }

    fn join(self) -> String {
        self.list.join(",\n")
    }
}

fn context_entries(run: &Run) -> String {
    let mut entries = Entries::new("    ");
    entries.text("date", &run.started);
    entries.text("host_name", &run.host.host_name);
    entries.text("executable", &run.tool.executable);
    entries.raw("num_cpus", run.host.cpu.count);
    if let Some(mhz) = run.host.cpu.mhz {
        entries.raw("mhz_per_cpu", format_args!("{mhz:.0}"));
    }
    if let Some(enabled) = run.host.cpu.scaling_enabled {
        entries.raw("cpu_scaling_enabled", enabled);
    }
    if let Some(enabled) = run.host.aslr_enabled {
        entries.raw("aslr_enabled", enabled);
    }
    entries.raw("caches", caches(run));
    let load: Vec<String> = run.host.load_avg.iter().map(|&load| number::general(load)).collect();
    entries.raw("load_avg", format_args!("[{}]", load.join(",")));
    entries.text("library_version", FOLLOWED_VERSION);
    let build = if run.tool.debug_assertions { "debug" } else { "release" };
    entries.text("library_build_type", build);
    entries.raw("json_schema_version", 1);
    for (key, value) in context::custom(run) {
        entries.text(&key, &value);
    }
    entries.join()
}

fn caches(run: &Run) -> String {
    let objects: Vec<String> = (run.host.cpu.caches.iter())
        .map(|cache| {
            let mut entries = Entries::new("        ");
            entries.text("type", &cache.kind);
            entries.raw("level", cache.level);
            entries.raw("size", cache.size);
            entries.raw("num_sharing", cache.num_sharing);
            format!("      {{\n{}\n      }}", entries.join())
        })
        .collect();
    let end = if objects.is_empty() { "" } else { "\n" };
    format!("[\n{}{end}    ]", objects.join(",\n"))
}

fn row_entries(line: &Line<'_>) -> String {
    let mut entries = Entries::new("      ");
    entries.text("name", &line.name());
    entries.raw("family_index", line.case.family_index);
    entries.raw("per_family_instance_index", line.case.per_family_instance_index);
    entries.text("run_name", &line.case.name);
    let aggregate = match line.place {
        Place::Repetition(_) => None,
        Place::Aggregate(statistic) => Some(statistic),
    };
    entries.text("run_type", if aggregate.is_some() { "aggregate" } else { "iteration" });
    entries.raw("repetitions", line.repetitions);
    if let Place::Repetition(index) = line.place {
        entries.raw("repetition_index", index);
    }
    entries.raw("threads", line.case.threads);
    if let Some(statistic) = aggregate {
        entries.text("aggregate_name", statistic.name());
        let unit = match statistic {
            Statistic::Cv => "percentage",
            _ if line.scale.is_time => "time",
            _ => line.scale.unit,
        };
        entries.text("aggregate_unit", unit);
    }
    match line.status {
        Status::Measured => {}
        Status::Failed(reason) => {
            entries.raw("error_occurred", true);
            entries.text("error_message", reason);
        }
        Status::Skipped(reason) => {
            entries.raw("skipped", true);
            entries.text("skip_message", reason);
        }
    }
    entries.raw("iterations", line.iterations);
    entries.real("real_time", line.real);
    entries.real("cpu_time", line.cpu);
    entries.text("time_unit", line.scale.unit);
    for (name, value) in &line.counters {
        entries.real(name, value.number);
    }
    if let Some(label) = line.label() {
        entries.text("label", label);
    }
    entries.join()
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
