//! Configuration of Perfetto's recorder for the same events, as text.
//! Not here: running it; reading what it records (crate `trace`).
//! Facts: `protos/perfetto/config` of Perfetto: `TraceConfig`, `FtraceConfig`, `ProcessStatsConfig`, `TriggerConfig`. A
//! whole group is `GROUP/*`. Events that a device does not have are left out by the recorder.

use std::fmt::Write;

use crate::categories::Category;

/// Trigger that ends a recording; `trigger_perfetto NAME` sends it.
pub const TRIGGER: &str = "binderperf-miss";

/// How long a recording waits for its trigger, and how long it goes on behind it, in milliseconds.
const PATIENCE_MS: u64 = 24 * 60 * 60 * 1000;
const AFTERWARDS_MS: u64 = 100;

/// How often a recording is written to its file, and how often each source of data must give what it holds back, in milliseconds.
const WRITE_MS: u64 = 500;
const FLUSH_MS: u64 = 5000;

/// Size of the buffer of processes' names in KB. Each process is written once, so events must not overwrite them.
const PROCESSES_KB: u64 = 4096;

/// How often the kernel symbols in a ring of events are written anew, in milliseconds.
const CLEAR_MS: u64 = 5000;

/// Selection of events and the way to keep them.
#[derive(Clone, Debug)]
pub struct PerfettoConfig<'c> {
    /// Categories of kernel events.
    pub categories: &'c [&'static Category],
    /// Categories of Android's frameworks.
    pub userspace: &'c [&'c str],
    /// Applications whose sections are recorded; `*` for all.
    pub applications: &'c [&'c str],
    /// Size of the buffer of all CPUs together in KB. It keeps the newest events.
    pub buffer_kb: u64,
    /// Length of the recording; `None`: until it is stopped.
    pub seconds: Option<u64>,
    /// Whether [`TRIGGER`] ends the recording, which is written only then.
    pub until_miss: bool,
    /// Whether all events are written to the file as they arrive; otherwise the newest ones at the end.
    pub stream: bool,
    /// Size of the kernel's buffer of each CPU in KB; `None`: the recorder's choice.
    pub kernel_buffer_kb: Option<u64>,
}

impl PerfettoConfig<'_> {
    /// The configuration in protobuf's text form, for `perfetto -c - --txt`.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for kb in [self.buffer_kb, PROCESSES_KB] {
            let _ = writeln!(text, "buffers {{ size_kb: {kb} fill_policy: RING_BUFFER }}");
        }
        text += "data_sources { config { name: \"linux.ftrace\" ftrace_config {\n";
        let mut events: Vec<String> =
            self.categories.iter().flat_map(|category| category.for_perfetto()).collect();
        // Marks of tests, and events of the embedded driver.
        events.push("ftrace/print".to_owned());
        events.sort_unstable();
        events.dedup();
        let mut line = |key: &str, value: &str| {
            let _ = writeln!(text, "  {key}: \"{value}\"");
        };
        events.iter().for_each(|event| line("ftrace_events", event));
        self.userspace.iter().for_each(|name| line("atrace_categories", name));
        self.applications.iter().for_each(|name| line("atrace_apps", name));
        if let Some(kb) = self.kernel_buffer_kb {
            let _ = writeln!(text, "  buffer_size_kb: {kb}");
        }
        text += "  compact_sched { enabled: true }\n  symbolize_ksyms: true\n} } }\n\
                 data_sources { config { name: \"linux.process_stats\" target_buffer: 1 process_stats_config {\n  \
                 scan_all_processes_on_start: true\n} } }\n\
                 data_sources { config { name: \"linux.system_info\" } }\n";
        if let Some(seconds) = self.seconds {
            let _ = writeln!(text, "duration_ms: {}", seconds * 1000);
        }
        if self.stream {
            let _ = writeln!(
                text,
                "write_into_file: true\nfile_write_period_ms: {WRITE_MS}\nflush_period_ms: {FLUSH_MS}"
            );
        } else {
            let _ = writeln!(text, "incremental_state_config {{ clear_period_ms: {CLEAR_MS} }}");
        }
        if self.until_miss {
            let _ = writeln!(
                text,
                "trigger_config {{\n  trigger_mode: STOP_TRACING\n  trigger_timeout_ms: {PATIENCE_MS}\n  \
                 triggers {{ name: \"{TRIGGER}\" stop_delay_ms: {AFTERWARDS_MS} }}\n}}"
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::categories;

    #[test]
    fn a_configuration_has_each_event_once_and_both_drivers() {
        let categories: Vec<_> = ["binder_driver", "irq", "sched", "sched"]
            .iter()
            .filter_map(|name| categories::named(name))
            .collect();
        let config = PerfettoConfig {
            categories: &categories,
            userspace: &["aidl"],
            applications: &["*"],
            buffer_kb: 1024,
            seconds: Some(7),
            until_miss: true,
            stream: true,
            kernel_buffer_kb: Some(2048),
        };
        let text = config.text();
        for once in [
            "size_kb: 1024 ",
            "\"sched/sched_switch\"",
            "\"irq/*\"",
            "\"binder/binder_transaction\"",
            "\"rust_binder/binder_transaction\"",
            "atrace_categories: \"aidl\"",
            "atrace_apps: \"*\"",
            "duration_ms: 7000",
            "STOP_TRACING",
            "write_into_file: true",
            "buffer_size_kb: 2048",
            // A ring of events that goes round does not take the processes' names along.
            "name: \"linux.process_stats\" target_buffer: 1 ",
        ] {
            assert_eq!(text.matches(once).count(), 1, "{once}: {text}");
        }
        assert_eq!(text.matches('{').count(), text.matches('}').count());
        assert!(text.contains("\"ftrace/print\""), "marks of tests: {text}");
        assert_eq!(text.matches("buffers {").count(), 2, "{text}");
        // Kernel symbols are in the ring with the events, and written anew.
        let newest = PerfettoConfig { stream: false, ..config };
        for (config, want) in [(text, 0), (newest.text(), 1)] {
            assert_eq!(config.matches("clear_period_ms").count(), want, "{config}");
        }
    }
}
