//! `trace analyze --perfetto` as Perfetto itself sees it: its own trace processor is asked, in SQL.
//! Not here: the file's parts by themselves (`crates/trace/src/perfetto/tests.rs`).
//! Facts: the trace processor of Perfetto v55.3, as WebAssembly for ui.perfetto.dev; `tools/trace-processor`
//! fetches it. It reads ftrace's text by itself, too, so what it makes of a kernel's own text is what it must
//! make of ours.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{Called, Folder, binderperf, contents, fixture};
use serde_json::{Value, json};

const HERE: &str = env!("CARGO_MANIFEST_DIR");

/// Asks the trace processor; an error says what it said.
fn try_ask(trace: &str, questions: &[&str]) -> Result<Vec<Value>, String> {
    let assets = format!("{HERE}/target/tools/trace-processor");
    let there = Path::new(&assets).join("trace_processor.wasm").exists();
    assert!(there, "{assets} is missing and this cannot be tested: tools/install-deps test installs it");
    let script = format!("{HERE}/tests/support/trace_processor.mjs");
    let mut node = Command::new("node");
    node.args([&script, &assets, trace]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut node = node.spawn().expect("node is installed: tools/install-deps test");
    let mut stdin = node.stdin.take().expect("a pipe");
    stdin.write_all(json!(questions).to_string().as_bytes()).expect("it reads");
    drop(stdin);
    let output = node.wait_with_output().expect("it ends");
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let answers: Vec<Value> = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(answers.len(), questions.len());
    answers
        .into_iter()
        .map(|answer| answer.get("error").map_or(Ok(answer.clone()), |e| Err(e.to_string())))
        .collect()
}

fn ask(trace: &str, questions: &[&str]) -> Vec<Value> {
    try_ask(trace, questions).unwrap_or_else(|error| panic!("{trace}: {error}"))
}

/// Rows as lists, in the order of the columns' names.
fn rows(answer: &Value) -> Vec<Vec<Value>> {
    let rows = answer.as_array().expect("rows");
    rows.iter().map(|row| row.as_object().expect("a row").values().cloned().collect()).collect()
}

/// Compares answers, and shows the first row that differs.
fn same(ours: &[Vec<Value>], theirs: &[Vec<Value>], what: &str) {
    for (ours, theirs) in ours.iter().zip(theirs) {
        assert_eq!(ours, theirs, "{what}");
    }
    assert_eq!(ours.len(), theirs.len(), "{what}");
}

/// Writes a trace for Perfetto.
fn exported(trace: &str, out: &str, words: &[&str]) -> Called {
    binderperf(&[&["trace", "analyze", trace, "--perfetto", out], words].concat())
}

const ERRORS: &str = "select name, value from stats where value > 0 and severity in ('error', 'data_loss')";
const SCHED: &str = "select ts, dur, cpu, tid, priority from sched join thread using (utid) order by ts, cpu";
/// Text and our events tell ends of threads apart by one letter, so states of dead ones are not asked for.
const STATES: &str = "select s.ts, s.dur, s.cpu, t.tid, s.state, w.tid as waker \
    from thread_state s join thread t using (utid) left join thread w on s.waker_utid = w.utid \
    where s.state not in ('X', 'Z') order by s.ts, t.tid, s.state";
const BINDER: &str = "select s.ts, s.dur, s.name, s.depth, t.tid from slice s \
    join thread_track k on s.track_id = k.id join thread t using (utid) \
    where s.category = 'binder' order by s.ts, s.name";
const ARROWS: &str = "select a.ts as there, b.ts as here, a.name as of, b.name as to_ from flow \
    join slice a on a.id = slice_out join slice b on b.id = slice_in \
    where a.category = 'binder' order by a.ts, b.ts";
const CALLS: &str = "include perfetto module android.binder; \
    select client_ts, client_dur, client_tid, client_pid, server_ts, server_dur, server_tid, server_pid, is_sync \
    from android_binder_txns order by client_ts";
const BREAKDOWN: &str = "include perfetto module android.binder_breakdown; \
    select reason, sum(dur) as ns from (select * from android_binder_server_breakdown \
    union all select * from android_binder_client_breakdown) group by reason order by reason";

#[test]
fn perfetto_sees_in_our_file_what_it_sees_in_the_kernels_text() {
    let folder = Folder::new("perfetto-alike");
    for name in ["binder-c.txt", "inversion.txt"] {
        let (text, ours) = (fixture(name), folder.path(name));
        exported(&text, &ours, &[]);
        let questions = [SCHED, STATES, BINDER, ARROWS, CALLS, BREAKDOWN];
        let (theirs, ours) = (ask(&text, &questions), ask(&ours, &questions));
        for ((question, theirs), ours) in questions.iter().zip(theirs).zip(ours) {
            let (ours, theirs) = (rows(&ours), rows(&theirs));
            // Its table of calls needs processes, which only one of the texts has, and ours from the calls.
            if name == "binder-c.txt" || ![CALLS, BREAKDOWN].contains(question) {
                same(&ours, &theirs, &format!("{name}: {question}"));
            }
            assert!(!ours.is_empty(), "{name}: nothing: {question}");
        }
    }
}

/// Causes of each call as Perfetto has them: by the call's number, each cause's nanoseconds.
const CAUSES: &str = "select extract_arg(p.arg_set_id, 'debug.debug_id') as id, c.name, sum(c.dur) as ns, \
    p.dur as whole from slice p join slice c on c.parent_id = p.id \
    where p.category = 'binderperf' and p.depth = 0 group by p.id, c.name order by p.ts";
const OUR_ARROWS: &str = "select a.name as of, b.name as to_ from flow \
    join slice a on a.id = slice_out join slice b on b.id = slice_in where a.category = 'binderperf'";
const OUR_TRACKS: &str = "select distinct t.tid, p.pid, k.name from slice s join thread_track k on s.track_id = k.id \
    join thread t using (utid) join process p using (upid) where s.category = 'binderperf'";

#[test]
fn calls_have_their_causes_below_their_threads() {
    let folder = Folder::new("perfetto-causes");
    for name in ["inversion.txt", "binder-c.bptrace"] {
        let ours = folder.path(name);
        let words = ["--deadline-us", "2000", "--worst", "10000", "--format", "json"];
        let called = exported(&fixture(name), &ours, &words).ended(1);
        let analysis: Value = serde_json::from_str(&called.stdout).expect("JSON");
        let mut want: BTreeMap<(i64, String), i64> = BTreeMap::new();
        for slow in analysis["slow"].as_array().expect("a list") {
            let id = slow["debug_id"].as_i64().expect("a number");
            for reason in slow["reasons"].as_array().expect("a list") {
                let cause = reason["cause"].as_str().expect("a name").to_owned();
                *want.entry((id, cause)).or_default() += reason["ns"].as_i64().expect("nanoseconds");
            }
        }
        let answers = ask(&ours, &[CAUSES, OUR_ARROWS, OUR_TRACKS, ERRORS]);
        let mut found: BTreeMap<(i64, String), i64> = BTreeMap::new();
        for row in answers[0].as_array().expect("rows") {
            let cause = row["name"].as_str().expect("a name").to_owned();
            found.insert((row["id"].as_i64().expect("a number"), cause), row["ns"].as_i64().expect("a time"));
        }
        // Oneway calls and calls that the trace cut are in the file and not among the slow ones.
        found.retain(|(id, _), _| want.keys().any(|(known, _)| known == id));
        assert_eq!(found, want, "{name}");
        let arrows = |from: &str, to: &str| {
            let rows = answers[1].as_array().expect("rows").iter();
            let starts =
                |row: &Value, key: &str, with: &str| row[key].as_str().expect("a name").starts_with(with);
            rows.filter(|row| starts(row, "of", from) && starts(row, "to_", to)).count() as u64
        };
        let missed = analysis["counts"]["missed"].as_u64().expect("a number");
        assert_eq!(arrows("MISS", "MISS"), missed, "from each miss to its mark: {}", answers[1]);
        assert_eq!(arrows("MISS", "serve "), missed);
        assert!(arrows("serve ", "") >= missed, "and back: {}", answers[1]);
        let tracks = answers[2].as_array().expect("rows");
        assert!(tracks.len() >= 2 && tracks.iter().all(|row| row["name"] == "binderperf"), "{}", answers[2]);
        assert_eq!(answers[3], json!([]), "{name}");
    }
}

#[test]
fn marks_and_the_rust_drivers_events_are_binders_to_perfetto() {
    let folder = Folder::new("perfetto-flavours");
    let (c, c_out) = (fixture("binder-c.txt"), folder.path("c.pftrace"));
    exported(&c, &c_out, &[]);
    let want = ask(&c_out, &[BINDER, ARROWS, CALLS]);
    assert_eq!(rows(&want[0]).len(), 20);

    // The embedded driver's marks are the same text behind the marker's name.
    let text = contents(&c);
    let marks = folder.write("marks.txt", text.replace(": binder_", ": tracing_mark_write: binder_"));
    let out = folder.path("marks.pftrace");
    exported(&marks, &out, &[]);
    assert_eq!(ask(&out, &[BINDER, ARROWS, CALLS, ERRORS]), [&want[..], &[json!([])]].concat());

    // The Rust driver's group is another one.
    let raw = std::fs::read(fixture("binder-c.bptrace")).expect("a fixture");
    let (rust, out) = (folder.path("rust.bptrace"), folder.path("rust.pftrace"));
    std::fs::write(&rust, in_group(&raw, b"binder\n", b"rust_binder\n")).expect("written");
    exported(&rust, &out, &[]);
    let told = ask(&out, &[BINDER, ERRORS, CALLS]);
    assert_eq!((rows(&told[0]).len(), &told[1], rows(&told[2]).len()), (20, &json!([]), 10));
}

/// A trace file of ours with the formats of one group in another.
fn in_group(file: &[u8], old: &[u8], new: &[u8]) -> Vec<u8> {
    // Magic and version, then chunks: kind, CPU, length.
    let (head, mut rest) = file.split_at(12);
    let mut changed = head.to_vec();
    let mut formats = 0;
    while rest.len() >= 16 {
        let length = u64::from_le_bytes(rest[8..16].try_into().expect("eight bytes"));
        let (chunk, more) = rest.split_at(16 + length as usize);
        rest = more;
        match chunk[16..].strip_prefix(old).filter(|_| chunk[..4] == 2_u32.to_le_bytes()) {
            Some(text) => {
                formats += 1;
                changed.extend_from_slice(&chunk[..8]);
                changed.extend_from_slice(&((new.len() + text.len()) as u64).to_le_bytes());
                changed.extend_from_slice(new);
                changed.extend_from_slice(text);
            }
            None => changed.extend_from_slice(chunk),
        }
    }
    assert!(formats > 5 && rest.is_empty(), "{formats} formats of {} bytes", file.len());
    changed
}

#[test]
fn lost_events_are_data_loss_to_perfetto() {
    let folder = Folder::new("perfetto-lost");
    let text = contents(fixture("binder-c.txt"));
    let middle = text.lines().count() / 2;
    let mut lossy: Vec<&str> = text.lines().collect();
    lossy.insert(middle, "CPU:1 [LOST 5 EVENTS]");
    let (trace, out) = (folder.path("lossy.txt"), folder.path("lossy.pftrace"));
    std::fs::write(&trace, lossy.join("\n") + "\n").expect("written");
    exported(&trace, &out, &[]);
    let told = ask(
        &out,
        &[
            ERRORS,
            "select s.name from slice s join track t on s.track_id = t.id where t.name = 'Lost events'",
        ],
    );
    let losses: Vec<&str> =
        told[0].as_array().expect("rows").iter().filter_map(|row| row["name"].as_str()).collect();
    assert!(losses.iter().any(|name| name.contains("data_loss")), "{losses:?}");
    assert_eq!(told[1], json!([{"name": "cpu1: 5 events lost"}]));
}

#[test]
fn a_damaged_file_is_not_taken_for_a_sound_one() {
    let folder = Folder::new("perfetto-damaged");
    let out = folder.path("t.pftrace");
    exported(&fixture("inversion.txt"), &out, &[]);
    let questions = [SCHED, BINDER, CAUSES, OUR_ARROWS, ERRORS];
    let sound = ask(&out, &questions);
    let bytes = std::fs::read(&out).expect("written");
    let flipped = |at: usize| {
        let mut damaged = bytes.clone();
        for byte in &mut damaged[at..at + 40] {
            *byte ^= 0x55;
        }
        damaged
    };
    let damaged =
        [flipped(bytes.len() / 4), flipped(bytes.len() / 10 * 9), bytes[..bytes.len() / 2].to_vec()];
    for (index, damaged) in damaged.into_iter().enumerate() {
        let path = folder.write("damaged.pftrace", damaged);
        // Refused, or not the same.
        assert!(try_ask(&path, &questions).ok().as_ref() != Some(&sound), "damage {index} is not seen");
    }
}

#[test]
fn a_bad_place_for_the_file_is_said_and_costs_no_trace() {
    let folder = Folder::new("perfetto-bad");
    let trace = folder.path("t.txt");
    std::fs::copy(fixture("inversion.txt"), &trace).expect("copied");
    let before = std::fs::read(&trace).expect("there");
    let link = folder.path("link");
    std::os::unix::fs::symlink(&trace, &link).expect("a link");
    let text = folder.write("no-trace.txt", "nothing\n");
    let kept = folder.write("kept.pftrace", "keep me");
    for (from, out, code, why) in [
        (&trace, trace.as_str(), 2, "the trace that is read"),
        (&trace, link.as_str(), 2, "the trace that is read"),
        (&trace, "/dev/full", 4, "ENOSPC"),
        (&trace, "/nowhere/t.pftrace", 4, "ENOENT"),
        (&text, kept.as_str(), 2, "none of its first lines"),
    ] {
        exported(from, out, &[]).ended(code).complained(why);
    }
    assert_eq!(std::fs::read(&trace).expect("there"), before);
    assert_eq!(contents(&kept), "keep me");
}
