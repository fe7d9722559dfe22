//! The same call as kernels of each generation write it, in raw pages and as text: both readers give the same events.
//! Not here: recordings of real kernels (`recordings`, `trace_cmd`).
//! Facts: `include/trace/events/sched.h`, `kernel/trace/trace.c` and `drivers/android/binder_trace.h` of the named releases;
//! before 3.9 binder's events are what vendors took from there. [`KERNELS`] has what differs.

use std::fmt::Write as _;
use std::io::Cursor;

use trace::event::{Event, Kind, Names, State, Wake};
use trace::verdict::{AnalysisOptions, Analyzer};

/// What differs between kernels.
struct Kernel {
    release: &'static str,
    /// Bytes of a `long`.
    long: usize,
    /// Bytes of the fields that all events have: 3.9 removed 4 of padding.
    common: usize,
    /// Letters of task states in `sched_switch`'s format.
    states: &'static [(u64, &'static str)],
    /// Bit of a preempted task; above the letters' bits there may be some without a letter.
    preempted: u64,
    /// Whether the format computes that bit, as it does since 4.14.
    computed: bool,
    /// Whether it has `sched_waking`, since 4.3.
    waking: bool,
    /// Whether wake-ups have the field `success` (until 5.13), and print it (until 4.2).
    success: (bool, bool),
    /// Whether buffers have `extra_buffers_size`, since 5.0.
    extra: bool,
    /// Columns of flags in a line of text: 5.13 added that of disabled migration.
    flags: usize,
    /// Whether lines have the process.
    process: bool,
}

const OLD: &[(u64, &str)] =
    &[(1, "S"), (2, "D"), (4, "T"), (8, "t"), (16, "Z"), (32, "X"), (64, "x"), (128, "W")];
const PARKED: &[(u64, &str)] = &[
    (1, "S"),
    (2, "D"),
    (4, "T"),
    (8, "t"),
    (16, "Z"),
    (32, "X"),
    (64, "x"),
    (128, "K"),
    (256, "W"),
    (512, "P"),
];
const NO_LOAD: &[(u64, &str)] = &[
    (1, "S"),
    (2, "D"),
    (4, "T"),
    (8, "t"),
    (16, "X"),
    (32, "Z"),
    (64, "x"),
    (128, "K"),
    (256, "W"),
    (512, "P"),
    (1024, "N"),
];
const NEW: &[(u64, &str)] =
    &[(1, "S"), (2, "D"), (4, "T"), (8, "t"), (16, "X"), (32, "Z"), (64, "P"), (128, "I")];

const LATEST: Kernel = Kernel {
    release: "7.2",
    long: 8,
    common: 8,
    states: NEW,
    preempted: 256,
    computed: true,
    waking: true,
    success: (false, false),
    extra: true,
    flags: 5,
    process: true,
};
const UNTIL_5_13: Kernel = Kernel { release: "5.10", success: (true, false), flags: 4, ..LATEST };
const UNTIL_5_0: Kernel = Kernel { release: "4.19", extra: false, ..UNTIL_5_13 };
const UNTIL_4_14: Kernel =
    Kernel { release: "4.9", states: NO_LOAD, preempted: 4096, computed: false, process: false, ..UNTIL_5_0 };
const UNTIL_4_3: Kernel = Kernel {
    release: "3.18",
    states: PARKED,
    preempted: 1024,
    waking: false,
    success: (true, true),
    ..UNTIL_4_14
};

const KERNELS: [Kernel; 14] = [
    Kernel { release: "3.4", common: 12, states: OLD, preempted: 512, process: true, ..UNTIL_4_3 },
    Kernel { release: "3.4, 32 bits", long: 4, common: 12, states: OLD, preempted: 512, ..UNTIL_4_3 },
    Kernel { release: "3.10", states: OLD, ..UNTIL_4_3 },
    UNTIL_4_3,
    Kernel { release: "4.4", preempted: 2048, ..UNTIL_4_14 },
    UNTIL_4_14,
    Kernel { release: "4.14", process: false, ..UNTIL_5_0 },
    UNTIL_5_0,
    Kernel { release: "5.4", ..UNTIL_5_13 },
    UNTIL_5_13,
    Kernel { release: "5.15", ..LATEST },
    Kernel { release: "6.1, 32 bits", long: 4, process: false, ..LATEST },
    Kernel { release: "6.12", process: false, ..LATEST },
    LATEST,
];

/// Value of a field.
#[derive(Clone)]
enum Value {
    Number(u64),
    Text(&'static str),
}
use Value::{Number, Text};

/// One event of the scenario: where and when, who, and its fields.
struct Happening {
    cpu: u32,
    us: u64,
    tid: i32,
    event: &'static str,
    values: Vec<Value>,
}

const CLIENT: (i32, &str) = (100, "client");
const SERVER: (i32, &str) = (201, "Binder:200_1");
/// A task of the idle loop, whose name in lines is `<idle>`.
const IDLE: (i32, &str) = (0, "swapper");
const OTHER: (i32, &str) = (7, "kworker/0:1");

/// Bits of `prev_state` that mean the same everywhere: runnable, and asleep.
const RUNNABLE: u64 = 0;
const ASLEEP: u64 = 1;

fn switch(cpu: u32, us: u64, prev: (i32, &'static str), state: u64, next: (i32, &'static str)) -> Happening {
    let number = |(tid, _): (i32, &str)| Number(u64::from(tid.cast_unsigned()));
    let values =
        vec![Text(prev.1), number(prev), Number(120), Number(state), Text(next.1), number(next), Number(97)];
    Happening { cpu, us, tid: prev.0, event: "sched_switch", values }
}

fn binder(cpu: u32, us: u64, tid: i32, event: &'static str, values: &[u64]) -> Happening {
    Happening { cpu, us, tid, event, values: values.iter().map(|value| Number(*value)).collect() }
}

/// A call of 904 us from the client on CPU 0 to the server on CPU 1, and a preemption behind it.
fn scenario(kernel: &Kernel) -> Vec<Happening> {
    let wake = |event, us| {
        let values = vec![Text(SERVER.1), Number(201), Number(120), Number(1), Number(1)];
        Happening { cpu: 0, us, tid: CLIENT.0, event, values }
    };
    let mut all = vec![
        switch(0, 0, IDLE, RUNNABLE, CLIENT),
        binder(0, 1, CLIENT.0, "binder_transaction", &[1, 5, 200, 0, 0, 3, 16]),
        binder(0, 6, CLIENT.0, "binder_transaction_alloc_buf", &[1, 96, 8, 40]),
        wake("sched_waking", 7),
        wake("sched_wakeup", 8),
        switch(0, 9, CLIENT, ASLEEP, IDLE),
        switch(0, 900, IDLE, RUNNABLE, CLIENT),
        binder(0, 905, CLIENT.0, "binder_transaction_received", &[2]),
        switch(0, 910, CLIENT, kernel.preempted, OTHER),
        switch(1, 20, IDLE, RUNNABLE, SERVER),
        binder(1, 25, SERVER.0, "binder_transaction_received", &[1]),
        binder(1, 825, SERVER.0, "binder_transaction", &[2, 0, 100, 100, 1, 0, 0]),
        binder(1, 830, SERVER.0, "binder_transaction_alloc_buf", &[2, 4, 0, 0]),
        switch(1, 840, SERVER, ASLEEP, IDLE),
    ];
    all.retain(|one| kernel.waking || one.event != "sched_waking");
    all
}

/// Declarations and sizes of an event's fields.
fn fields(kernel: &Kernel, event: &str) -> Vec<(&'static str, usize)> {
    let word = kernel.long;
    let mut fields = match event {
        "sched_switch" => vec![
            ("char prev_comm[16]", 16),
            ("pid_t prev_pid", 4),
            ("int prev_prio", 4),
            ("long prev_state", word),
            ("char next_comm[16]", 16),
            ("pid_t next_pid", 4),
            ("int next_prio", 4),
        ],
        "binder_transaction" => vec![
            ("int debug_id", 4),
            ("int target_node", 4),
            ("int to_proc", 4),
            ("int to_thread", 4),
            ("int reply", 4),
            ("unsigned int code", 4),
            ("unsigned int flags", 4),
        ],
        "binder_transaction_received" => vec![("int debug_id", 4)],
        "binder_transaction_alloc_buf" => vec![
            ("int debug_id", 4),
            ("size_t data_size", word),
            ("size_t offsets_size", word),
            ("size_t extra_buffers_size", word),
        ],
        _ => vec![
            ("char comm[16]", 16),
            ("pid_t pid", 4),
            ("int prio", 4),
            ("int success", 4),
            ("int target_cpu", 4),
        ],
    };
    let there = |name: &str| match name {
        "size_t extra_buffers_size" => kernel.extra,
        "int success" => kernel.success.0,
        _ => true,
    };
    fields.retain(|(name, _)| there(name));
    fields
}

/// Names of the events, with their numbers.
const EVENTS: [(&str, &str); 6] = [
    ("sched", "sched_switch"),
    ("sched", "sched_waking"),
    ("sched", "sched_wakeup"),
    ("binder", "binder_transaction"),
    ("binder", "binder_transaction_received"),
    ("binder", "binder_transaction_alloc_buf"),
];

fn number_of(event: &str) -> usize {
    300 + EVENTS.iter().position(|(_, name)| *name == event).expect("an event of the scenario")
}

/// Fields with their offsets: each is aligned by its size, texts by 1.
fn placed(kernel: &Kernel, event: &str) -> Vec<(&'static str, usize, usize)> {
    let mut end = kernel.common;
    let place = |(name, size): (&'static str, usize)| {
        let begin = end.next_multiple_of(if size == 16 { 1 } else { size });
        end = begin + size;
        (name, begin, size)
    };
    fields(kernel, event).into_iter().map(place).collect()
}

/// The event's `format` file.
fn format(kernel: &Kernel, event: &str) -> String {
    let mut text = format!("name: {event}\nID: {}\nformat:\n", number_of(event));
    let mut field = |name: &str, offset: usize, size: usize| {
        let signed = u8::from(!name.starts_with("unsigned") && !name.starts_with("size_t"));
        _ = writeln!(text, "\tfield:{name};\toffset:{offset};\tsize:{size};\tsigned:{signed};");
    };
    field("unsigned short common_type", 0, 2);
    field("unsigned char common_flags", 2, 1);
    field("unsigned char common_preempt_count", 3, 1);
    field("int common_pid", 4, 4);
    if kernel.common > 8 {
        field("int common_padding", 8, 4);
    }
    placed(kernel, event).into_iter().for_each(|(name, offset, size)| field(name, offset, size));
    let mut print = "\"\"".to_owned();
    if event == "sched_switch" {
        let letter = |(bit, letter): &(u64, &str)| match kernel.computed {
            true => format!("{{ 0x{bit:08x}, \"{letter}\" }}"),
            false => format!("{{ {bit}, \"{letter}\" }}"),
        };
        let letters = kernel.states.iter().map(letter).collect::<Vec<_>>().join(", ");
        let plus = match kernel.computed {
            true => "(((0x00000000 | 0x00000001 | 0x00000080) + 1) << 1)".to_owned(),
            false => kernel.preempted.to_string(),
        };
        print = format!(
            "\"prev_state=%s%s\", REC->prev_state & ({plus} - 1) ? __print_flags(REC->prev_state & ({plus} - 1), \"|\", \
             {letters}) : \"R\", REC->prev_state & {plus} ? \"+\" : \"\", REC->next_comm"
        );
    }
    text + "\nprint fmt: " + &print + "\n"
}

/// Bytes of an event.
fn bytes(kernel: &Kernel, one: &Happening) -> Vec<u8> {
    let mut bytes = vec![0; kernel.common];
    bytes[..2].copy_from_slice(&(number_of(one.event) as u16).to_le_bytes());
    // A switch comes with interrupts off.
    bytes[2] = u8::from(one.event == "sched_switch");
    bytes[4..8].copy_from_slice(&one.tid.to_le_bytes());
    for (name, offset, size) in placed(kernel, one.event) {
        bytes.resize(offset + size, 0);
        let place = whole(one.event).iter().position(|known| name.ends_with(known)).expect("a value");
        match one.values[place] {
            Number(number) => bytes[offset..].copy_from_slice(&number.to_le_bytes()[..size]),
            Text(text) => bytes[offset..offset + text.len()].copy_from_slice(text.as_bytes()),
        }
    }
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// Ends of the declarations of all fields that an event has on some kernel, in the order of the values.
fn whole(event: &str) -> Vec<&'static str> {
    fields(&Kernel { success: (true, true), ..LATEST }, event).into_iter().map(|(name, _)| name).collect()
}

/// One CPU's page.
fn page(kernel: &Kernel, happenings: &[&Happening]) -> Vec<u8> {
    let (mut body, mut last) = (Vec::new(), 0);
    for one in happenings {
        let bytes = bytes(kernel, one);
        let words = u32::try_from(bytes.len() / 4).expect("small");
        let delta = u32::try_from((one.us - last) * 1000).expect("small");
        last = one.us;
        body.extend((words | delta << 5).to_le_bytes());
        body.extend(bytes);
    }
    let mut page = (BASE_US * 1000).to_le_bytes().to_vec();
    page.extend(&(body.len() as u64).to_le_bytes()[..kernel.long]);
    page.extend(body);
    page.resize(4096, 0);
    page
}

const BASE_US: u64 = 1_000_000_000;

/// A file of trace-cmd, version 6.
fn trace_dat(kernel: &Kernel) -> Vec<u8> {
    let long = kernel.long;
    let header = format!(
        "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\tfield: local_t commit;\toffset:8;\tsize:{long};\tsigned:1;\n\
         \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\tfield: char data;\toffset:{};\tsize:{};\tsigned:1;\n",
        8 + long,
        4088 - long
    );
    let long_text = |text: &str| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
    let mut file = b"\x17\x08\x44tracing6\0\0".to_vec();
    file.push(long as u8);
    file.extend(4096_u32.to_le_bytes());
    file.extend([b"header_page\0".to_vec(), long_text(&header)].concat());
    file.extend([b"header_event\0".to_vec(), long_text("# compressed entry header\n")].concat());
    // No events of ftrace, then those of two groups; no symbols, no formats of printk.
    file.extend([0_u32.to_le_bytes(), 2_u32.to_le_bytes()].concat());
    for group in ["sched", "binder"] {
        let there = |event: &&(&str, &str)| event.0 == group && (kernel.waking || event.1 != "sched_waking");
        let events: Vec<_> = EVENTS.iter().filter(there).collect();
        file.extend([group.as_bytes(), b"\0", &(events.len() as u32).to_le_bytes()].concat());
        events.iter().for_each(|(_, event)| file.extend(long_text(&format(kernel, event))));
    }
    file.extend([0; 8]);
    file.extend(long_text("100 client\n201 Binder:200_1\n"));
    file.extend(2_u32.to_le_bytes());
    file.extend(b"options  \0");
    let clock = b"[local] global mono boot\n";
    file.extend([&4_u16.to_le_bytes()[..], &(clock.len() as u32).to_le_bytes(), clock].concat());
    file.extend([&0_u16.to_le_bytes()[..], b"flyrecord\0"].concat());
    let start = (file.len() + 32).next_multiple_of(4096);
    for at in [start, start + 4096] {
        file.extend([(at as u64).to_le_bytes(), 4096_u64.to_le_bytes()].concat());
    }
    file.resize(start, 0);
    let all = scenario(kernel);
    for cpu in 0..2 {
        let of_cpu: Vec<&Happening> = all.iter().filter(|one| one.cpu == cpu).collect();
        file.extend(page(kernel, &of_cpu));
    }
    file
}

/// The text of an event behind its name.
fn printed(kernel: &Kernel, one: &Happening) -> String {
    let text = |at: usize| match &one.values[at] {
        Number(number) => number.to_string(),
        Text(text) => (*text).to_owned(),
    };
    let v: Vec<String> = (0..one.values.len()).map(text).collect();
    match one.event {
        "sched_switch" => {
            let letter = |bits: &str| match bits.parse() {
                Ok(ASLEEP) => "S",
                Ok(RUNNABLE) => "R",
                _ => "R+",
            };
            format!(
                "prev_comm={} prev_pid={} prev_prio={} prev_state={} ==> next_comm={} next_pid={} next_prio={}",
                v[0],
                v[1],
                v[2],
                letter(&v[3]),
                v[4],
                v[5],
                v[6]
            )
        }
        "binder_transaction" => format!(
            "transaction={} dest_node={} dest_proc={} dest_thread={} reply={} flags=0x{:x} code=0x{:x}",
            v[0],
            v[1],
            v[2],
            v[3],
            v[4],
            v[6].parse::<u32>().expect("flags"),
            v[5].parse::<u32>().expect("a code")
        ),
        "binder_transaction_received" => format!("transaction={}", v[0]),
        "binder_transaction_alloc_buf" => {
            let extra = if kernel.extra { format!(" extra_buffers_size={}", v[3]) } else { String::new() };
            format!("transaction={} data_size={} offsets_size={}{extra}", v[0], v[1], v[2])
        }
        _ => {
            let success = if kernel.success.1 { " success=1" } else { "" };
            format!("comm={} pid={} prio={}{success} target_cpu=00{}", v[0], v[1], v[2], v[4])
        }
    }
}

/// The file `trace` of tracefs, with its lines in the order of time.
fn text(kernel: &Kernel) -> String {
    let mut all = scenario(kernel);
    all.sort_by_key(|one| one.us);
    let head = if kernel.process { "    TGID  " } else { "" };
    let mut text = format!(
        "# tracer: nop\n#\n# entries-in-buffer/entries-written: {count}/{count}   #P:2\n#\n\
         #           TASK-PID   {head} CPU#  ||||    TIMESTAMP  FUNCTION\n#              | |        |   ||||       |         |\n",
        count = all.len()
    );
    for one in all {
        let (comm, process) = match one.tid {
            0 => ("<idle>", "(-----) "),
            100 => ("client", "(  100) "),
            _ => ("Binder:200_1", "(  200) "),
        };
        let process = if kernel.process { process } else { "" };
        let flags = if one.event == "sched_switch" { "d..3." } else { "....." };
        let (tid, cpu, at) = (one.tid, one.cpu, BASE_US + one.us);
        _ = writeln!(
            text,
            "{comm:>16}-{tid:<5} {process}[{cpu:03}] {} {:>5}.{:06}: {}: {}",
            &flags[..kernel.flags],
            at / 1_000_000,
            at % 1_000_000,
            one.event,
            printed(kernel, &one)
        );
    }
    text
}

/// Events with the texts of their names, without what only one of the two forms has: processes, and names of idle tasks.
fn told(names: &Names, event: &Event) -> String {
    let task = |task: &trace::event::Task| format!("{} {} {:?}", names.text(task.comm), task.tid, task.prio);
    let kind = match &event.kind {
        Kind::Switch { prev, state, next } => format!("{} {state:?} {}", task(prev), task(next)),
        Kind::Waking(Wake { task: woken, target_cpu }) => format!("waking {} {target_cpu}", task(woken)),
        Kind::Wakeup(Wake { task: woken, target_cpu }) => format!("wakeup {} {target_cpu}", task(woken)),
        Kind::Binder(flavour, binder) => format!("{flavour:?} {binder:?}"),
        other => panic!("another event: {other:?}"),
    };
    format!("{} {} {} {} {:?} {kind}", event.ts, event.cpu, event.tid, names.text(event.comm), event.context)
}

/// The events of a file, and the analysis of its call.
fn read(kernel: &Kernel, form: &str, bytes: Vec<u8>) -> Vec<String> {
    let place = format!("Linux {}, {form}", kernel.release);
    let mut reader = trace::open(Cursor::new(bytes)).unwrap_or_else(|error| panic!("{place}: {error}"));
    let mut analyzer = Analyzer::new(AnalysisOptions { worst: 10, ..AnalysisOptions::default() });
    let mut events = Vec::new();
    let mut preempted = 0;
    while let Some(event) = reader.next() {
        analyzer.take(&event, reader.names());
        preempted += usize::from(matches!(event.kind, Kind::Switch { state: State::Preempted, .. }));
        events.push(told(reader.names(), &event));
    }
    assert_eq!(preempted, 1, "{place}");
    assert!(reader.report().is_whole(), "{place}: {}", reader.report());
    let found = analyzer.finish(reader.names(), reader.report());
    let [call] = found.slow.as_slice() else { panic!("{place}: {found}") };
    let server = call.server.as_ref().unwrap_or_else(|| panic!("{place}: nobody took it"));
    assert_eq!((call.ns, call.caller.tid, server.tid, call.code), (904_000, 100, 201, 3), "{place}");
    assert_eq!((call.caller.comm.as_str(), server.comm.as_str()), ("client", "Binder:200_1"), "{place}");
    events
}

#[test]
fn each_generation_of_kernels_is_read_alike_from_pages_and_from_text() {
    for kernel in &KERNELS {
        let raw = read(kernel, "trace.dat", trace_dat(kernel));
        let text = read(kernel, "text", text(kernel).into_bytes());
        assert_eq!(raw, text, "Linux {}: pages, text", kernel.release);
        let extra = raw.iter().any(|event| event.contains("extra_size: 40"));
        assert_eq!((raw.len(), extra), (scenario(kernel).len(), kernel.extra), "Linux {}", kernel.release);
    }
}

#[test]
fn a_trace_without_a_field_that_all_kernels_have_is_said() {
    let file = trace_dat(&LATEST);
    let place = file.windows(11).position(|text| text == b"target_node").expect("a format");
    let mut file = file;
    file[place] = b'x';
    let mut reader = trace::open(Cursor::new(file)).expect("a trace");
    reader.by_ref().for_each(drop);
    let report = reader.report().to_string();
    assert!(report.contains("binder/binder_transaction has no readable field target_node"), "{report}");
}

#[test]
fn clocks_that_are_not_of_nanoseconds_are_said() {
    let of = |clock: &str| {
        let mut file = trace_dat(&LATEST);
        let place = file.windows(24).position(|text| text == b"[local] global mono boot").expect("a clock");
        file[place..place + 24].copy_from_slice(format!("{:24}", format!("[{clock}]")).as_bytes());
        let mut reader = trace::open(Cursor::new(file)).expect("a trace");
        reader.by_ref().for_each(drop);
        reader.report().to_string()
    };
    for clock in ["local", "global", "perf", "mono", "mono_raw", "boot", "tai"] {
        assert!(!of(clock).contains("unit is not known"), "{clock}: {}", of(clock));
    }
    for clock in ["x86-tsc", "counter", "uptime", "ppc-tb"] {
        let report = of(clock);
        assert!(report.contains("unit is not known") && report.contains(clock), "{report}");
    }
}
