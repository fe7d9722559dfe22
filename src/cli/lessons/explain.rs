//! Room: lessons of the commands that find out why numbers are what they are.
//! Not here: what a lesson is (`super`).

use super::{Lesson, NOTHING, Variable};

const SHARED: Variable = (
    "XDG_RUNTIME_DIR",
    "What was changed in the trace buffer that all share is kept in it, or in /tmp, until it is put back",
);

pub(super) const LESSONS: &[Lesson] = &[
    Lesson {
        command: "doctor",
        examples: &[
            ("The worst first", "binderperf doctor"),
            ("Everything, with evidence and the commands that show it", "binderperf doctor --all"),
            ("Copy what it looks at", "binderperf doctor --save phone"),
            ("Look at that elsewhere", "binderperf doctor --from phone"),
        ],
        statuses: &[
            (0, "nothing that spoils numbers"),
            (
                1,
                "numbers taken now are not to be trusted; with --strict: anything worse than a remark; with --klog-check: the kernel complained",
            ),
            (2, "bad words, or --from names no snapshot"),
            (3, "the kernel's log cannot be read"),
            (4, "the result could not be written"),
        ],
        docs: &["doctor"],
        see: &["run", "state"],
        ..NOTHING
    },
    Lesson {
        command: "trace",
        examples: &[
            (
                "Record, analyse and draw",
                "binderperf trace record --html slow.html -- libhwbinder_latency -i 1000 -pair 3",
            ),
            ("What did the slow calls of any trace wait for?", "binderperf trace analyze binderperf.trace"),
        ],
        docs: &["reading-the-numbers", "figures"],
        see: &["latency"],
        ..NOTHING
    },
    Lesson {
        command: "trace record",
        examples: &[
            (
                "A test, with a page of its slow calls",
                "binderperf trace record --html slow.html -- libhwbinder_latency -i 1000 -pair 3",
            ),
            ("Whatever happens in five seconds", "binderperf trace record -t 5 sched irq binder_driver"),
            (
                "Only what led to the first call over 5 ms",
                "binderperf trace record --circular -o miss.trace -- schd-dbg -deadline_us 5000 -trace -i 5000",
            ),
        ],
        statuses: &[
            (0, "recorded; with a command its own status, or 128 and the signal that ended it"),
            (2, "bad words, no such command or category"),
            (3, "no tracing to be had"),
            (4, "the file or the page could not be written"),
        ],
        variables: &[
            (
                "BINDERPERF_TRACING",
                "Set for the command: the folder whose tracing_on a test writes at a miss",
            ),
            ("BINDERPERF_TRACE_LOG", "Set for the command: the file of this recording"),
        ],
        files: &[("binderperf.trace", "the recording, if no other file is named")],
        docs: &["reading-the-numbers", "figures"],
        see: &["trace analyze", "trace info", "latency"],
    },
    Lesson {
        command: "trace info",
        examples: &[("What is in it, what was lost?", "binderperf trace info binderperf.trace")],
        statuses: super::OF_FILES,
        docs: &["reading-the-numbers"],
        see: &["trace record", "trace analyze"],
        ..NOTHING
    },
    Lesson {
        command: "trace analyze",
        examples: &[
            ("The five slowest calls, and what they waited for", "binderperf trace analyze binderperf.trace"),
            (
                "Every call over 2.5 ms in a phone's trace, as a page",
                "binderperf trace analyze phone.atrace --deadline-us 2500 --html slow.html",
            ),
            ("For ui.perfetto.dev", "binderperf trace analyze binderperf.trace --perfetto slow.pftrace"),
        ],
        statuses: &[
            (0, "no miss"),
            (1, "a test marked a miss in it, or a call took longer than --deadline-us"),
            (2, "bad words, a file that is no trace, or no such transaction in it"),
            (4, "the result could not be written"),
        ],
        docs: &["reading-the-numbers", "figures"],
        see: &["trace record", "trace info"],
        ..NOTHING
    },
    Lesson {
        command: "trace accuracy",
        examples: &[(
            "Is a hog of the CPU named as the cause?",
            "binderperf trace accuracy --causes rt-hog -i 100",
        )],
        statuses: &[
            (0, "causes are named as they should be"),
            (
                1,
                "fewer than 95 % of the calls with a cause have it named, or more than 2 % of the others, or a signal \
                 ended it: what was found until then is told",
            ),
            (2, "bad words"),
            (3, "no tracing or no driver to be had"),
            (4, "the result could not be written"),
        ],
        docs: &["reading-the-numbers"],
        see: &["latency accuracy", "trace analyze"],
        ..NOTHING
    },
    Lesson {
        command: "trace overhead",
        examples: &[("With fewer round trips", "binderperf trace overhead -i 1000 --rounds 3")],
        statuses: &[
            (0, "it was measured"),
            (1, "a signal ended it: the whole rounds until then are told"),
            (2, "bad words"),
            (3, "no tracing or no driver to be had"),
            (4, "the result could not be written"),
        ],
        docs: &["reading-the-numbers"],
        see: &["trace record"],
        ..NOTHING
    },
    Lesson {
        command: "trace restore",
        examples: &[("After a crash of atrace", "binderperf trace restore")],
        variables: &[SHARED],
        see: &["applet atrace"],
        ..NOTHING
    },
    Lesson {
        command: "state",
        examples: &[
            ("Processes, threads, nodes, references, buffers", "binderperf state"),
            ("The counters of the embedded driver", "binderperf state stats --driver embedded"),
        ],
        docs: &["doctor"],
        see: &["doctor", "broker"],
        ..NOTHING
    },
];
