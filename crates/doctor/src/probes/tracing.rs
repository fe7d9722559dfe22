//! Active tracing: in the buffer that all share, and in each instance.
//! Not here: the right to trace (`rights`), removing what killed recorders left (`ftrace::instances`).
//! Facts: `Documentation/trace/ftrace.rst` (`current_tracer`, `tracing_on`, instances); `Documentation/trace/events.rst`
//! (`events/enable`: `0`, `1`, `X` for some).

use record::checkup::Verdict;

use crate::probe::{Grounds, Probe, ProbeResult};
use crate::snapshot::{Snapshot, Unavailable, shorten};

pub(super) const PROBES: &[Probe] = &[Probe {
    id: "kernel-tracing",
    looks_at: "active tracers and trace events, in the shared buffer and in instances",
    proof: "cd /sys/kernel/tracing && grep . {.,instances/*}/{current_tracer,tracing_on,set_event}",
    grounds: Grounds::Measured {
        effect: "a call of the embedded driver took 5.2 times as long with the events of binder_driver on",
        command: "binderperf trace overhead -i 1000 --rounds 3",
    },
    look: tracing,
}];

/// State of a trace buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    Off,
    Events,
    Tracer,
}

/// A trace buffer: the shared one, or an instance.
struct Buffer {
    /// The instance's name; empty for the shared buffer.
    name: String,
    folder: String,
    state: State,
    tracer: String,
    events: String,
}

/// Reads a buffer; `None` if it is not there.
fn read(snapshot: &Snapshot, name: &str, folder: String) -> Result<Option<Buffer>, Unavailable> {
    let tracer = match snapshot.text(&format!("{folder}/current_tracer")) {
        Err(Unavailable::Absent(_)) => return Ok(None),
        tracer => tracer?,
    };
    let on = snapshot.maybe(&format!("{folder}/tracing_on"))?.is_none_or(|on| on != "0");
    let events = snapshot.maybe(&format!("{folder}/events/enable"))?.unwrap_or_default();
    let state = match (tracer.as_str(), events.as_str()) {
        ("nop", "0" | "?" | "") => State::Idle,
        _ if !on => State::Off,
        ("nop", _) => State::Events,
        _ => State::Tracer,
    };
    Ok(Some(Buffer { name: shorten(name, 60), folder, state, tracer, events }))
}

/// Verdict, text and remedy of one buffer.
fn judged(snapshot: &Snapshot, buffer: &Buffer) -> (Verdict, String, Option<String>) {
    let Buffer { name, folder, state, tracer, .. } = buffer;
    if let Some(pid) = ftrace::instances::recorder_pid(name) {
        return recorder(snapshot, name, pid);
    }
    let (place, fix) = match name.as_str() {
        "" => (
            "the shared trace buffer".to_owned(),
            format!("echo 0 > /{folder}/tracing_on, unless you want the trace"),
        ),
        _ => (
            format!("the trace instance {name}"),
            format!("if nobody needs the trace: echo 0 > /{folder}/tracing_on, or rmdir /{folder}"),
        ),
    };
    match state {
        State::Idle => (Verdict::Ok, format!("no tracer and no trace event is on in {place}"), None),
        State::Off => (Verdict::Ok, format!("tracing is off in {place}"), None),
        State::Events => (Verdict::Info, format!("trace events are on in {place}"), Some(fix)),
        State::Tracer => {
            let fix = format!("echo nop > /{folder}/current_tracer");
            (Verdict::Warning, format!("the tracer {tracer} is on in {place}"), Some(fix))
        }
    }
}

/// The same of the instance of a recorder of binderperf.
fn recorder(snapshot: &Snapshot, name: &str, pid: u32) -> (Verdict, String, Option<String>) {
    let runs = snapshot.facts().recorders.as_ref().and_then(|recorders| recorders.get(name));
    let (text, fix) = match runs {
        Some(true) => (format!("a recorder of binderperf is running (pid {pid})"), "wait until it has ended"),
        Some(false) => (
            format!("a recorder of binderperf (pid {pid}) was killed and left the trace instance {name}"),
            "binderperf trace restore",
        ),
        None => (
            format!(
                "a recorder of binderperf (pid {pid}) made the trace instance {name}; whether it runs is unknown"
            ),
            "binderperf trace restore, on that machine; it leaves a running recorder alone",
        ),
    };
    (Verdict::Info, text, Some(fix.to_owned()))
}

fn tracing(snapshot: &Snapshot) -> Result<ProbeResult, Unavailable> {
    let folders = ["sys/kernel/tracing", "sys/kernel/debug/tracing"];
    for folder in folders {
        let Some(shared) = read(snapshot, "", folder.to_owned())? else { continue };
        let mut buffers = vec![shared];
        for name in snapshot.root().names(format!("{folder}/instances")) {
            // One that is gone by now disturbs nothing.
            buffers.extend(read(snapshot, &name, format!("{folder}/instances/{name}"))?);
        }
        return Ok(of_buffers(snapshot, &buffers));
    }
    Err(Unavailable::absent(format!("{}/current_tracer", folders[0])))
}

/// The result for all buffers: what is on, or that nothing is.
fn of_buffers(snapshot: &Snapshot, buffers: &[Buffer]) -> ProbeResult {
    let judged: Vec<_> = buffers.iter().map(|buffer| judged(snapshot, buffer)).collect();
    let worst = judged.iter().map(|(verdict, ..)| *verdict).max().unwrap_or(Verdict::Ok);
    let said = judged.iter().filter(|(verdict, ..)| worst == Verdict::Ok || *verdict > Verdict::Ok);
    let text: Vec<&str> = said.map(|(_, text, _)| text.as_str()).collect();
    let mut result = ProbeResult::new(worst, text.join("; "));
    if worst > Verdict::Ok {
        result = result.effect(match worst {
            Verdict::Info => "each event costs a fraction of a microsecond, also in binder calls",
            _ => "a tracer records in the kernel's hot paths: calls take several times as long",
        });
        let fixes: Vec<&str> = judged.iter().filter_map(|(.., fix)| fix.as_deref()).collect();
        result = result.fix(fixes.join("; "));
    }
    for Buffer { folder, tracer, events, .. } in buffers.iter().take(MOST_SHOWN) {
        result = result
            .seen(&format!("{folder}/current_tracer"), tracer)
            .seen(&format!("{folder}/events/enable"), events);
    }
    result
}

/// Most buffers whose files are shown as evidence.
const MOST_SHOWN: usize = 8;
