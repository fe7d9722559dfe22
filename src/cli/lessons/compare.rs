//! Room: lessons of the commands that show stored records and compare them.
//! Not here: what a lesson is (`super`).

use super::{CACHE, CACHED, Lesson, NOTHING, OF_FILES};

const COMPARING: &[&str] = &["comparing"];

pub(super) const LESSONS: &[Lesson] = &[
    Lesson {
        command: "show",
        examples: &[
            ("As a table", "binderperf show before.json"),
            ("As Google Benchmark's JSON", "binderperf show before.json --format gbench-json"),
        ],
        statuses: OF_FILES,
        docs: &["reading-the-numbers"],
        see: &["report", "convert", "compare"],
        ..NOTHING
    },
    Lesson {
        command: "report",
        examples: &[
            ("A page of what run left", "binderperf report before -o before.html"),
            ("For a pull request", "binderperf report before --format markdown"),
        ],
        statuses: OF_FILES,
        files: &[("binderperf-report.html", "the page, if no other file is named")],
        docs: &["reading-the-numbers"],
        see: &["run", "show", "compare"],
        ..NOTHING
    },
    Lesson {
        command: "compare",
        examples: &[
            ("Two records", "binderperf compare before.json after.json"),
            ("Folders of records, for a pull request", "binderperf compare before/ after/ --format markdown"),
            ("Their tails", "binderperf compare before/ after/ --metric p99"),
        ],
        statuses: &[
            (0, "compared, whatever came of it"),
            (2, "bad words, or they cannot be compared"),
            (4, "the result could not be written"),
        ],
        docs: COMPARING,
        see: &["gate", "ab", "history"],
        ..NOTHING
    },
    Lesson {
        command: "gate",
        examples: &[
            ("At most 5 % slower", "binderperf gate --baseline before/ --max-regress 5% after/"),
            ("Doubt is no reason to fail", "binderperf gate --baseline before/ --cannot-tell pass after/"),
        ],
        statuses: &[
            (0, "every case keeps the limit"),
            (1, "a case exceeds it beyond doubt, no longer runs, or is gone"),
            (2, "bad words, or they cannot be compared"),
            (3, "it cannot be told, as an interval holds the limit; --cannot-tell makes that 0 or 1"),
            (4, "the result could not be written"),
        ],
        docs: COMPARING,
        see: &["compare", "bisect-step", "ab"],
        ..NOTHING
    },
    Lesson {
        command: "ab",
        examples: &[
            (
                "Does spinning pay?",
                "binderperf ab --a wait=sleep --b wait=spin -- throughput binder --driver embedded --benchmark_filter='/4$'",
            ),
            (
                "Two kernels",
                "binderperf ab --a kernel=6.12 --b kernel=arch/x86/boot/bzImage --budget 20m -- latency binder -i 500",
            ),
            (
                "Two builds of binderperf, with a limit",
                "binderperf ab --a '' --b binary=target/release/binderperf --max-regress 3% -- throughput all",
            ),
            (
                "Instructions instead of time",
                "binderperf ab --icount --a kernel=old.bzImage --b kernel=new.bzImage -- throughput binder",
            ),
        ],
        statuses: &[
            (0, "compared, whatever came of it"),
            (1, "B exceeds --max-regress, or failed; or it was stopped"),
            (2, "bad words"),
            (3, "a side cannot be measured or, with --max-regress, it cannot be told"),
            (4, "an output could not be written"),
        ],
        files: &[("binderperf-ab-SEED/", "the records, if no other folder is named"), CACHED],
        variables: &[CACHE],
        docs: COMPARING,
        see: &["compare", "gate", "bisect-step", "vm"],
    },
    Lesson {
        command: "bisect-step",
        examples: &[
            (
                "Records of a good commit, then the search",
                "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do binderperf throughput binder --record good/$i.json; done",
            ),
            (
                "This commit's build",
                "git bisect run binderperf bisect-step --baseline good/ --side binary=target/release/binderperf -- throughput binder",
            ),
            ("Records that are there", "binderperf bisect-step --baseline good/ step/"),
        ],
        statuses: &[
            (0, "good: the limit is kept"),
            (1, "bad: it is exceeded beyond doubt"),
            (125, "skip: it could not be measured, or cannot be told"),
            (128, "stop: the words or the baseline are wrong, as they would be at every step"),
        ],
        variables: &[CACHE],
        docs: COMPARING,
        see: &["gate", "ab"],
        ..NOTHING
    },
    Lesson {
        command: "history",
        examples: &[
            ("Keep the numbers of a run", "binderperf history --add before"),
            ("See where they changed", "binderperf history"),
            ("For Apache Otava", "binderperf history --csv --out history.csv"),
        ],
        statuses: &[
            (0, "done, also when something changed"),
            (2, "bad words, records or file"),
            (4, "it could not be written"),
        ],
        files: &[(
            "$XDG_STATE_HOME/binderperf/history.jsonl",
            "a line of JSON for each number, only ever appended to",
        )],
        variables: &[(
            "XDG_STATE_HOME",
            "The history is in its folder binderperf; without it, below ~/.local/state",
        )],
        docs: COMPARING,
        see: &["compare", "convert"],
    },
    Lesson {
        command: "convert",
        examples: &[
            (
                "For Google Benchmark's compare.py",
                "binderperf convert --to gbench before.json -o gbench.json",
            ),
            ("For continuous integration", "binderperf convert --to junit before.json -o junit.xml"),
            ("A row for each run", "binderperf convert --to csv before.json after.json"),
        ],
        statuses: &[
            (0, "converted, whatever the record's verdict is: the file says it"),
            (2, "bad words, no record, or one that lacks what the format needs"),
            (4, "the result could not be written"),
        ],
        docs: &["formats"],
        see: &["show", "report"],
        ..NOTHING
    },
];
