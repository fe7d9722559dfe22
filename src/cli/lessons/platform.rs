//! Room: lessons of the commands about drivers and machines, of Android's tools, and of those about this program.
//! Not here: what a lesson is (`super`).

use super::{CACHE, CACHED, Lesson, NOTHING};

const OF_A_TOOL: &[(u8, &str)] = &[
    (0, "done"),
    (1, "something failed, or it was stopped"),
    (2, "bad words"),
    (3, "no driver that it can use, or no permission"),
    (4, "a result could not be written"),
];

const READING: &[&str] = &["reading-the-numbers"];

pub(super) const LESSONS: &[Lesson] = &[
    Lesson {
        command: "vm",
        examples: &[
            ("The newest kernel of Debian's", "binderperf vm -- throughput binder"),
            ("Another one, fetched the first time", "binderperf vm --kernel 6.1 -- conformance"),
            (
                "One that was just built",
                "binderperf vm --kernel arch/x86/boot/bzImage --klog boot.log -- run --quick",
            ),
            (
                "Instructions instead of time",
                "binderperf vm --icount -- throughput binder --benchmark_filter='/4$'",
            ),
        ],
        statuses: &[
            (0, "done; if the command came to its end, this is its own status, whatever that is"),
            (1, "it was stopped"),
            (2, "bad words, or no such kernel"),
            (3, "it cannot boot here: something is missing"),
            (4, "the guest panicked, hung or was lost"),
        ],
        files: &[CACHED],
        variables: &[CACHE, ("BINDERPERF_*, BENCHMARK_*, RUST_*", "Handed on to the command in the guest")],
        docs: &["vm"],
        see: &["run", "ab"],
    },
    Lesson {
        command: "broker",
        examples: &[("Contexts of this user, until Ctrl-C", "binderperf broker")],
        statuses: &[
            (0, "ended as it was asked to"),
            (2, "bad words"),
            (3, "there is one already, or the directory cannot be used"),
        ],
        variables: super::OF_DRIVERS,
        docs: &["security", "differences"],
        see: &["state"],
        ..NOTHING
    },
    Lesson {
        command: "conformance",
        examples: &[
            ("The driver in user space", "binderperf conformance --driver embedded"),
            ("A few items", "binderperf conformance --driver embedded --filter TX-,WR-03"),
            ("Which there are", "binderperf conformance --list"),
            ("A kernel's driver", "binderperf vm --kernel arch/x86/boot/bzImage -- conformance"),
        ],
        statuses: &[
            (0, "every promise is kept"),
            (1, "one is not"),
            (2, "bad words, or no such item"),
            (3, "no driver, or none that may be tested"),
            (4, "the result could not be written"),
        ],
        docs: &["differences"],
        see: &["chaos", "vm"],
        ..NOTHING
    },
    Lesson {
        command: "chaos",
        examples: &[
            ("Ten seconds of it", "binderperf chaos --driver embedded"),
            ("The same traffic once more", "binderperf chaos --driver embedded --seed 1 --seconds 2"),
        ],
        statuses: &[
            (0, "everything is accounted for"),
            (1, "something is not"),
            (2, "bad words"),
            (3, "no driver that it can use"),
            (4, "the result could not be written"),
        ],
        docs: &["security"],
        see: &["conformance"],
        ..NOTHING
    },
    Lesson {
        command: "applet",
        examples: &[
            ("Once", "binderperf applet libhwbinder_latency -i 1000 -pair 3"),
            ("Or by the tool's name", "ln -s \"$(command -v binderperf)\" schd-dbg"),
            ("Also without the word applet", "binderperf schd-dbg -i 1000"),
        ],
        statuses: OF_A_TOOL,
        docs: READING,
        see: &["throughput", "latency", "trace"],
        ..NOTHING
    },
    Lesson {
        command: "applet libbinder_benchmark",
        examples: &[("One payload", "binderperf applet libbinder_benchmark --benchmark_filter='/4$'")],
        statuses: OF_A_TOOL,
        docs: READING,
        see: &["throughput binder"],
        ..NOTHING
    },
    Lesson {
        command: "applet libhwbinder_benchmark",
        examples: &[("One payload", "binderperf applet libhwbinder_benchmark --benchmark_filter='/4$'")],
        statuses: OF_A_TOOL,
        docs: READING,
        see: &["throughput hwbinder"],
        ..NOTHING
    },
    Lesson {
        command: "applet binderThroughputTest",
        examples: &[("Four pairs at once", "binderperf applet binderThroughputTest -w 8 -i 20000 -p")],
        statuses: OF_A_TOOL,
        docs: READING,
        see: &["throughput workers"],
        ..NOTHING
    },
    Lesson {
        command: "applet hwbinderThroughputTest",
        examples: &[(
            "Eight workers, two services",
            "binderperf applet hwbinderThroughputTest -w 8 -s 2 -i 20000",
        )],
        statuses: OF_A_TOOL,
        docs: READING,
        see: &["throughput hwbinder-workers"],
        ..NOTHING
    },
    Lesson {
        command: "applet schd-dbg",
        examples: &[("1,000 calls of each kind", "binderperf applet schd-dbg -i 1000 -pair 1")],
        statuses: OF_A_TOOL,
        docs: READING,
        see: &["latency binder"],
        ..NOTHING
    },
    Lesson {
        command: "applet libhwbinder_latency",
        examples: &[(
            "Three pairs, 1,000 calls of each kind",
            "binderperf applet libhwbinder_latency -i 1000 -pair 3",
        )],
        statuses: OF_A_TOOL,
        docs: READING,
        see: &["latency hwbinder"],
        ..NOTHING
    },
    Lesson {
        command: "applet atrace",
        examples: &[
            (
                "Begin to record",
                "binderperf applet atrace --async_start -b 8000 -c sched idle workq binder_driver sync freq",
            ),
            ("Stop, and put everything back", "binderperf applet atrace --async_stop -z -o slow.atrace"),
            ("What can be recorded here", "binderperf applet atrace --list_categories"),
        ],
        statuses: &[
            (0, "done"),
            (1, "a signal came first"),
            (2, "bad words"),
            (3, "no tracing to be had, or somebody else uses it"),
            (4, "the output could not be written"),
        ],
        files: &[(
            "$XDG_RUNTIME_DIR or /tmp",
            "what was changed, until --async_stop or `binderperf trace restore` has put it back",
        )],
        docs: READING,
        see: &["trace record", "trace restore"],
        ..NOTHING
    },
];

pub(super) const OF_THIS_PROGRAM: &[Lesson] = &[
    Lesson {
        command: "help",
        examples: &[("Of a command", "binderperf help throughput binder")],
        statuses: &[(0, "told"), (2, "no such command"), (4, "it could not be written")],
        see: &["man"],
        ..NOTHING
    },
    Lesson {
        command: "man",
        examples: &[
            ("Read a page", "binderperf man throughput binder | man -l -"),
            ("Every page, where man finds it", "binderperf man --out ~/.local/share/man/man1"),
        ],
        statuses: &[(0, "written"), (2, "no such page"), (4, "it could not be written")],
        see: &["help", "completions"],
        ..NOTHING
    },
    Lesson {
        command: "completions",
        examples: &[
            ("In this bash", ". <(binderperf completions bash)"),
            (
                "For fish, from now on",
                "binderperf completions fish > ~/.config/fish/completions/binderperf.fish",
            ),
            ("For a link to this program by a name of Android's", "binderperf completions bash schd-dbg"),
        ],
        statuses: &[(0, "written"), (2, "bad words"), (4, "it could not be written")],
        see: &["man"],
        ..NOTHING
    },
];
