//! `binderperf trace compare` as its users meet it: two traces of calls whose difference is known, and traces that cannot be compared.
//! Not here: how often its verdicts are right (`crates/trace-compare`).

use std::fmt::Write;

use crate::support::{Called, Folder, binderperf, fixture, refused};

/// Text of ftrace in the making: an application on cpu0 that calls a service on cpu1.
struct Trace {
    text: String,
    us: u64,
    id: u32,
}

impl Trace {
    fn new() -> Self {
        Self { text: "# tracer: nop\n#\n".to_owned(), us: 1_000_000, id: 1 }
    }

    fn event(&mut self, after_us: u64, cpu: u32, who: &str, event: &str) {
        self.us += after_us;
        let (seconds, rest) = (self.us / 1_000_000, self.us % 1_000_000);
        let _ = writeln!(self.text, "  {who} [{cpu:03}] d..2. {seconds}.{rest:06}: {event}");
    }

    fn switch(&mut self, after_us: u64, cpu: u32, from: (&str, u32), state: &str, to: (&str, u32)) {
        let event = format!(
            "sched_switch: prev_comm={} prev_pid={} prev_prio=120 prev_state={state} ==> next_comm={} next_pid={} next_prio=120",
            from.0, from.1, to.0, to.1
        );
        self.event(after_us, cpu, &format!("{}-{}", from.0, from.1), &event);
    }

    fn waking(&mut self, cpu: u32, who: &str, woken: (&str, u32), on: u32) {
        let event = format!("sched_waking: comm={} pid={} prio=120 target_cpu={on:03}", woken.0, woken.1);
        self.event(1, cpu, who, &event);
    }

    fn mark(&mut self, cpu: u32, who: &str, mark: &str) {
        self.event(1, cpu, who, &format!("tracing_mark_write: {mark}"));
    }

    /// A call of `IFoo.METHOD`: so long on the service's CPU, and so long asleep for a monitor.
    fn call(&mut self, method: &str, works_us: u64, monitor_us: u64) {
        let (app, service, idle) = (("app", 100), ("service", 200), |cpu: &'static str| (cpu, 0));
        let id = self.id;
        self.id += 2;
        self.mark(0, "app-100", &format!("B|100|AIDL::java::IFoo::{method}::client"));
        let transaction = |id: u32, to: u32, thread: u32, reply: u32| {
            format!(
                "binder_transaction: transaction={id} dest_node={} dest_proc={to} dest_thread={thread} reply={reply} flags=0x10 code=0x1",
                5 * (1 - reply)
            )
        };
        self.event(1, 0, "app-100", &transaction(id, 200, 0, 0));
        self.waking(0, "app-100", service, 1);
        self.switch(1, 0, app, "S", idle("swapper/0"));
        self.switch(2, 1, idle("swapper/1"), "R", service);
        self.event(1, 1, "service-200", &format!("binder_transaction_received: transaction={id}"));
        self.mark(1, "service-200", &format!("B|200|AIDL::java::IFoo::{method}::server"));
        if monitor_us > 0 {
            self.mark(
                1,
                "service-200",
                "B|200|monitor contention with owner main (201) at void Foo.bar()(Foo.java:1) waiters=0",
            );
            self.switch(1, 1, service, "S", idle("swapper/1"));
            self.event(
                monitor_us,
                0,
                "main-201",
                "sched_waking: comm=service pid=200 prio=120 target_cpu=001",
            );
            self.switch(2, 1, idle("swapper/1"), "R", service);
            self.mark(1, "service-200", "E|200");
        }
        self.us += works_us;
        self.mark(1, "service-200", "E|200");
        self.event(1, 1, "service-200", &transaction(id + 1, 100, 100, 1));
        self.waking(1, "service-200", app, 0);
        self.switch(1, 1, service, "S", idle("swapper/1"));
        self.switch(2, 0, idle("swapper/0"), "R", app);
        self.event(1, 0, "app-100", &format!("binder_transaction_received: transaction={}", id + 1));
        self.mark(0, "app-100", "E|100");
        self.us += 100;
    }
}

/// Calls of two methods in turns; every third call of one waits so long for a monitor.
fn trace(folder: &Folder, name: &str, calls: u64, monitor_us: u64) -> String {
    let mut trace = Trace::new();
    for call in 0..calls {
        trace.call("get", 300 + call % 13, 0);
        trace.call("put", 500 + call % 7, if call % 3 == 0 { monitor_us } else { 0 });
    }
    folder.write(name, trace.text)
}

fn compare(a: &str, b: &str, words: &[&str]) -> Called {
    binderperf(&[&["trace", "compare", a, b], words].concat())
}

#[test]
fn the_slowed_method_is_named_with_its_cause() {
    let folder = Folder::new("trace-compare");
    let (a, b) = (trace(&folder, "a.txt", 90, 0), trace(&folder, "b.txt", 120, 600));
    let called = compare(&a, &b, &[]).ended(0);
    called
        .printed("slower in B")
        .printed("IFoo.put: +20")
        .printed("monitor_contention: 0 ns -> 20")
        .printed("1 slower, 0 faster, 1 without");
    let json = compare(&a, &b, &["--format", "json"]).ended(0).json();
    let row = &json["rows"][0];
    assert_eq!((row["name"].as_str(), row["verdict"].as_str()), (Some("IFoo.put"), Some("slower")));
    assert_eq!((&row["a"]["calls"], &row["b"]["calls"]), (&90.into(), &120.into()));
    let cause = &row["causes"][0];
    let number = |key: &str| cause[key].as_f64().expect("a number");
    assert_eq!(
        (cause["cause"].as_str(), cause["direction"].as_str()),
        (Some("monitor_contention"), Some("slower"))
    );
    // A third of the calls waits for 600 us and the microsecond until it is woken.
    assert!(number("low_ns") < 200_500.0 && number("high_ns") > 199_500.0, "{cause}");
    compare(&b, &a, &[]).ended(0).printed("faster in B").printed("0 slower, 1 faster");
    // The whole interface, and the pair of processes.
    compare(&a, &b, &["--by", "interface"]).ended(0).printed("IFoo: +10");
    compare(&a, &b, &["--by", "pair"]).ended(0).printed("app -> service: +10");
    let out = folder.path("out.json");
    compare(&a, &b, &["--format=json", "--out", &out]).ended(0).printed_nothing();
    assert!(crate::support::contents(&out).contains("binderperf.trace-comparison"));
}

#[test]
fn equals_and_more_calls_are_no_difference() {
    let folder = Folder::new("trace-compare-equal");
    let (a, b) = (trace(&folder, "a.txt", 91, 600), trace(&folder, "b.txt", 273, 600));
    compare(&a, &a, &[]).ended(0).printed("both traces have the same calls").printed("0 slower, 0 faster");
    compare(&a, &b, &[]).ended(0).printed("0 slower, 0 faster");
    // Traces of other forms, without methods: by the names of processes.
    let other = fixture("binder-c.bptrace");
    compare(&other, &fixture("binder-c.txt"), &[]).ended(0).printed("0 slower, 0 faster");
}

#[test]
fn what_cannot_be_compared_is_refused_with_the_reason() {
    let folder = Folder::new("trace-compare-refused");
    let (a, few) = (trace(&folder, "a.txt", 40, 0), trace(&folder, "few.txt", 5, 0));
    let (empty, text) = (folder.write("empty", ""), folder.write("text", "no trace\n"));
    compare(&a, &few, &[])
        .ended(0)
        .printed("2 rows cannot be told: fewer than 30 calls")
        .printed("too few calls");
    refused(
        binderperf,
        &[
            (&["trace", "compare", &a, "/no/such/file"], "/no/such/file: "),
            (&["trace", "compare", &empty, &a], "empty"),
            (&["trace", "compare", &a, &text], "none of its first lines is an event"),
            (&["trace", "compare", &a, &fixture("binder-c.txt")], "no calls in common"),
            (&["trace", "compare", &a, &a, "--comm", "nobody"], "was asked for"),
            (&["trace", "compare", &a, &a, "--resolution", "0"], "above 0%"),
            (&["trace", "compare", &a], "<B>"),
        ],
    );
    compare(&a, &a, &["--out", "/no/such/folder/out"]).ended(4).complained("/no/such/folder/out");
}
