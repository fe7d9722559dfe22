//! Room: lessons of the commands that measure.
//! Not here: what a lesson is (`super`).

use super::{CACHE, CACHED, Lesson, NOTHING, Variable};

/// Exit statuses of a measurement without a verdict of its own.
const MEASURED: &[(u8, &str)] = &[
    (0, "measured to the end"),
    (1, "something failed, or it was stopped; what was measured until then is kept"),
    (2, "bad words"),
    (3, "no driver that it can use, or no permission"),
    (4, "a result could not be written"),
];

const GBENCH_STATUSES: &[(u8, &str)] = &[
    (0, "measured to the end; or 0 and 1 as Google Benchmark has them, with --gbench-compat"),
    (
        1,
        "a case failed, a limit of --max is exceeded, or it was stopped; what was measured until then is kept",
    ),
    (2, "bad words, or no case matches"),
    (3, "no driver that it can use, or no permission"),
    (4, "a result could not be written"),
];

const STRICT: &[(u8, &str)] = &[
    (0, "measured to the end"),
    (1, "something failed or, with --strict, a limit is missed"),
    (2, "bad words"),
    (3, "no driver that it can use, or no permission"),
    (4, "a result could not be written"),
];

const INHERITED: &[(u8, &str)] = &[
    (0, "every call inherited its caller's priority, as far as --expect says"),
    (1, "one did not, a pair failed, or the test was stopped; what was measured until then is kept"),
    (2, "bad words"),
    (3, "no driver that it can use, or no real-time caller is allowed"),
    (4, "a result could not be written"),
];

const GBENCH_VARIABLES: &[Variable] = &[(
    "BENCHMARK_FILTER, BENCHMARK_FORMAT, ...",
    "Google Benchmark's flags by their names in capitals; what is typed wins",
)];

const TRACED: &[Variable] = &[
    (
        "BINDERPERF_TRACING",
        "The tracing folder whose recording --trace stops, in place of the one that all share",
    ),
    ("BINDERPERF_TRACE_LOG", "The file that is said to hold that recording"),
];

const READING: &[&str] = &["reading-the-numbers"];

pub(super) const LESSONS: &[Lesson] = &[
    Lesson {
        command: "run",
        examples: &[
            ("A first look, in half a minute", "binderperf run --quick"),
            ("Everything, into a folder of that name", "binderperf run --out before"),
            (
                "The same on the driver of Debian's kernel 6.12, in a VM",
                "binderperf run --vm 6.12 --out in-6.12",
            ),
        ],
        statuses: &[
            (0, "every test ran and found what its driver is known for"),
            (1, "a test failed, ended early, or found less than that"),
            (2, "bad words, or the folder cannot be used"),
            (3, "nothing could be measured here"),
            (4, "a record or the report could not be written"),
        ],
        files: &[
            (
                "binderperf-run-TIME/",
                "records, what the doctor found, a recording of slow calls, report.html",
            ),
            CACHED,
        ],
        variables: &[CACHE],
        docs: READING,
        see: &["report", "doctor", "compare", "vm"],
    },
    Lesson {
        command: "throughput",
        examples: &[
            ("What a binder call costs, 4 B to 64 KiB", "binderperf throughput binder"),
            ("What binder, hwbinder and no IPC cost, part by part", "binderperf throughput compare-flavours"),
            ("How it scales with the number of pairs", "binderperf throughput scaling"),
        ],
        statuses: MEASURED,
        docs: READING,
        see: &["latency", "compare"],
        ..NOTHING
    },
    Lesson {
        command: "throughput binder",
        examples: &[
            (
                "Two payloads, five repetitions",
                "binderperf throughput binder --benchmark_filter='/(4|4096)$' --benchmark_repetitions=5",
            ),
            (
                "Keep the record, to show and compare it later",
                "binderperf throughput binder --record before.json",
            ),
            (
                "Fail if a call costs more than 1.1 times its bare transaction",
                "binderperf throughput binder --controls raw --max x_raw=1.10 --benchmark_filter='/4$'",
            ),
            (
                "The driver in user space, as fast as it gets",
                "binderperf throughput binder --driver embedded --wait spin --placement cross",
            ),
        ],
        statuses: GBENCH_STATUSES,
        variables: GBENCH_VARIABLES,
        docs: READING,
        see: &["throughput hwbinder", "show", "compare", "gate"],
        ..NOTHING
    },
    Lesson {
        command: "throughput hwbinder",
        examples: &[
            ("Two payloads", "binderperf throughput hwbinder --benchmark_filter='/(4|4096)$'"),
            ("The same interface without IPC", "binderperf throughput hwbinder -m PASSTHROUGH"),
            (
                "A service that is registered already",
                "binderperf throughput hwbinder --device hwbinder --service default",
            ),
        ],
        statuses: GBENCH_STATUSES,
        variables: GBENCH_VARIABLES,
        docs: READING,
        see: &["throughput binder", "throughput compare-flavours"],
        ..NOTHING
    },
    Lesson {
        command: "throughput all",
        examples: &[(
            "Both flavours and no IPC, 4 B each",
            "binderperf throughput all --benchmark_filter='/4$' --record all.json",
        )],
        statuses: GBENCH_STATUSES,
        variables: GBENCH_VARIABLES,
        docs: READING,
        see: &["throughput compare-flavours"],
        ..NOTHING
    },
    Lesson {
        command: "throughput compare-flavours",
        examples: &[
            ("What each flavour costs, and what that is made of", "binderperf throughput compare-flavours"),
            (
                "Quickly, for one payload, with the record",
                "binderperf throughput compare-flavours -s 4 --rounds 3 --record flavours.json",
            ),
        ],
        statuses: STRICT,
        docs: READING,
        see: &["throughput binder", "throughput hwbinder"],
        ..NOTHING
    },
    Lesson {
        command: "throughput workers",
        examples: &[
            ("Four pairs at once", "binderperf throughput workers -w 8 -i 20000 -p"),
            (
                "Eight workers that call each other, for two seconds",
                "binderperf throughput workers -w 8 --duration 2",
            ),
        ],
        statuses: MEASURED,
        docs: READING,
        see: &["throughput hwbinder-workers", "throughput scaling"],
        ..NOTHING
    },
    Lesson {
        command: "throughput hwbinder-workers",
        examples: &[(
            "Eight workers, two services",
            "binderperf throughput hwbinder-workers -w 8 -s 2 -i 20000",
        )],
        statuses: MEASURED,
        docs: READING,
        see: &["throughput workers", "throughput scaling"],
        ..NOTHING
    },
    Lesson {
        command: "throughput scaling",
        examples: &[
            (
                "From one pair to twice the CPUs, a quarter of a second each",
                "binderperf throughput scaling --duration 0.25",
            ),
            (
                "Pairs only, hwbinder, 4 KiB",
                "binderperf throughput scaling --shape pairs --flavour hwbinder -s 4096 --record scaling.json",
            ),
        ],
        statuses: MEASURED,
        docs: READING,
        see: &["throughput workers"],
        ..NOTHING
    },
    Lesson {
        command: "throughput serialisation",
        examples: &[(
            "What writing and reading 4 KiB costs",
            "binderperf throughput serialisation --payload 4096",
        )],
        statuses: &[
            (0, "measured"),
            (1, "a limit is missed, with --strict"),
            (2, "bad words"),
            (4, "something went wrong inside"),
        ],
        docs: READING,
        see: &["throughput compare-flavours"],
        ..NOTHING
    },
    Lesson {
        command: "throughput embedded-speed",
        examples: &[(
            "Only what two sleeping threads cost, in three rounds",
            "binderperf throughput embedded-speed --only sleeping --rounds 3",
        )],
        statuses: &[
            (0, "measured"),
            (1, "it could not be measured or, with --strict, a target is missed"),
            (2, "bad words"),
            (4, "the table could not be written"),
        ],
        docs: READING,
        see: &["throughput binder"],
        ..NOTHING
    },
    Lesson {
        command: "latency",
        examples: &[
            ("Three pairs, 1,000 calls of each kind", "binderperf latency hwbinder -i 1000 -pair 3"),
            (
                "How many calls a second meet a deadline of 500 us",
                "binderperf latency sweep --deadline-us 500 --payload 0",
            ),
        ],
        statuses: INHERITED,
        docs: READING,
        see: &["throughput", "inheritance", "trace"],
        ..NOTHING
    },
    Lesson {
        command: "latency hwbinder",
        examples: &[
            (
                "Three pairs, 1,000 calls of each kind; as a table",
                "binderperf latency hwbinder -i 1000 -pair 3 --format table",
            ),
            (
                "Does only the real-time caller keep its times beside load?",
                "binderperf latency hwbinder --load cpu:4 --deadline-us 1000",
            ),
            (
                "Record, and stop at the first call over 5 ms",
                "binderperf trace record --circular -o slow.trace -- binderperf latency hwbinder -deadline_us 5000 -trace -i 5000",
            ),
        ],
        statuses: INHERITED,
        variables: TRACED,
        docs: READING,
        see: &["latency binder", "latency sweep", "trace record", "inheritance"],
        ..NOTHING
    },
    Lesson {
        command: "latency binder",
        examples: &[
            ("As schd-dbg", "binderperf latency binder -i 1000 -pair 1"),
            (
                "On a driver that passes on nice values only, that is no failure",
                "binderperf latency binder --expect driver --record latency.json",
            ),
        ],
        statuses: INHERITED,
        variables: TRACED,
        docs: READING,
        see: &["latency hwbinder", "latency sweep", "trace record", "inheritance"],
        ..NOTHING
    },
    Lesson {
        command: "latency sweep",
        examples: &[
            (
                "How many calls a second meet either deadline?",
                "binderperf latency sweep --deadline-us 500,2500 --payload 0",
            ),
            (
                "With load and without, no search for rates",
                "binderperf latency sweep --load none --load cpu:2 --rates none -i 200",
            ),
        ],
        statuses: MEASURED,
        docs: READING,
        see: &["latency hwbinder", "latency binder"],
        ..NOTHING
    },
    Lesson {
        command: "latency accuracy",
        examples: &[("Is a delay of 1 ms found?", "binderperf latency accuracy --delays 1000 --rounds 1")],
        statuses: STRICT,
        docs: READING,
        see: &["trace accuracy"],
        ..NOTHING
    },
    Lesson {
        command: "inheritance",
        examples: &[
            ("Hop by hop, on this machine's driver", "binderperf inheritance"),
            (
                "On the embedded driver, which may hand on nice values only",
                "binderperf inheritance --driver embedded --inherit nice",
            ),
            ("On the C driver of Debian's kernel", "binderperf vm --kernel 6.12 -- inheritance"),
        ],
        statuses: &[
            (0, "every hop is as expected of this driver"),
            (1, "one is not"),
            (2, "bad words"),
            (3, "it cannot be tried, or it is not known what to expect"),
            (4, "the result could not be written"),
        ],
        docs: READING,
        see: &["inversion", "latency"],
        ..NOTHING
    },
    Lesson {
        command: "inversion",
        examples: &[
            ("With inheritance and without, beside two hogs", "binderperf inversion --hogs 2 -i 50"),
            (
                "On a driver that is known not to inherit",
                "binderperf inversion --driver embedded --inherit none --expect inversion",
            ),
        ],
        statuses: &[
            (0, "no priority inversion with inheritance; with --expect inversion, there is some"),
            (1, "it is the other way round, was stopped, or nothing can be said"),
            (2, "bad words"),
            (3, "no driver that it can use, or no real-time threads are allowed"),
            (4, "a result could not be written"),
        ],
        docs: READING,
        see: &["inheritance", "latency"],
        ..NOTHING
    },
];
