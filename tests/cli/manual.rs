//! The manual and the completions as those read them whom they are for: mandoc, groff, shells.
//! Not here: that every command is explained and every example understood (`src/cli/tree/tests.rs`).

use std::path::Path;
use std::process::Command;

use crate::support::{BINARY, Folder, binderperf, contents, with_full_stdout};

fn output(program: &str, words: &[&str]) -> (bool, String) {
    let output = Command::new(program).args(words).env("PATH", path()).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}; tools/install-deps test"));
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

/// Where programs are, this one first.
fn path() -> String {
    let own = Path::new(BINARY).parent().expect("a folder").display().to_string();
    format!("{own}:{}", std::env::var("PATH").unwrap_or_default())
}

fn script(shell: &str, program: &str) -> String {
    let called = binderperf(&["completions", shell, program]).ended(0);
    called.stdout
}

#[test]
fn every_page_is_clean() {
    let folder = Folder::new("manual");
    let place = folder.path("share/man1");
    binderperf(&["man", "--out", &place]).ended(0);
    let mut pages = 0;
    for page in std::fs::read_dir(&place).expect("the folder").flatten() {
        let (path, name) = (page.path().display().to_string(), page.file_name());
        let (fine, said) = output("mandoc", &["-T", "lint", "-W", "warning", &path]);
        assert!(fine && said.is_empty(), "{said}");
        let text = contents(&path);
        for section in ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "\"EXIT STATUS\""] {
            assert!(text.contains(&format!("\n.SH {section}\n")), "{name:?}: no {section}");
        }
        let of_all = name == "binderperf.1";
        assert_eq!(text.contains(".SH COMMANDS"), of_all || parent(&name.to_string_lossy()));
        assert!(of_all || text.contains(".SH EXAMPLES") && text.contains(".SH \"SEE ALSO\""), "{name:?}");
        pages += 1;
    }
    assert!(pages > 45, "{pages} pages");
    for (page, has) in [
        ("binderperf-throughput-binder.1", "benchmark_filter"),
        ("binderperf-latency-hwbinder.1", "deadline\\-us"),
        ("binderperf-applet-schd-dbg.1", "schd\\-dbg, binderperf\\-applet\\-schd\\-dbg"),
        ("binderperf-gate.1", "an interval contains the limit"),
        ("binderperf-bisect-step.1", "\\fB125\\fR"),
        ("binderperf-history.1", "XDG_STATE_HOME"),
        ("binderperf.1", "BINDERPERF_DRIVER"),
    ] {
        let text = std::fs::read_to_string(Path::new(&place).join(page)).expect(page);
        assert!(text.contains(has), "{page}: no {has:?}");
        assert!(!text.contains("guest\\-probe") || page == "binderperf-vm.1");
    }
}

/// Pages of what has commands below it.
fn parent(page: &str) -> bool {
    ["throughput", "latency", "trace", "applet", "fleet", "vm", "workload"]
        .iter()
        .any(|name| page == format!("binderperf-{name}.1"))
}

#[test]
fn a_page_that_is_wrong_is_noticed() {
    let folder = Folder::new("manual-wrong");
    let page = folder.write("wrong.1", ".TH X 1\n.SH NAME\n.nosuch\n");
    let (fine, said) = output("mandoc", &["-T", "lint", "-W", "warning", &page]);
    assert!(!fine && said.contains("nosuch"), "{said}");
}

#[test]
fn one_page_goes_to_the_standard_output_and_no_page_is_told() {
    for (words, name) in [
        (&["man"][..], "binderperf"),
        (&["man", "throughput", "binder"], "binderperf\\-throughput\\-binder"),
        (&["man", "trace-record"], "binderperf\\-trace\\-record"),
        (&["man", "binderperf-bisect-step"], "binderperf\\-bisect\\-step"),
    ] {
        binderperf(words).ended(0).printed(format!(".SH NAME\n{name} \\-"));
    }
    binderperf(&["man", "trouble"]).ended(2).complained("binderperf-trouble");
    assert_eq!(with_full_stdout(&["man"]), Some(4));
    assert_eq!(with_full_stdout(&["completions", "bash"]), Some(4));
}

#[test]
fn a_folder_that_takes_no_pages_is_named() {
    let folder = Folder::new("manual-nowhere");
    let file = folder.write("file", "");
    for place in [file.clone(), format!("{file}/below"), "/proc/manual".to_owned()] {
        binderperf(&["man", "--out", &place]).ended(4).complained(&place);
    }
}

/// What bash offers for the last of these words.
fn offered(program: &str, line: &str) -> Vec<String> {
    let words: Vec<&str> = line.split(' ').collect();
    let last = words.len() - 1;
    let (current, before) = (words[last], words[last - 1]);
    let listed: String = words.iter().map(|word| format!(" '{word}'")).collect();
    let function = format!("_{}", program.replace('-', "__"));
    let told = format!(
        "{}\nCOMP_WORDS=({listed})\nCOMP_CWORD={last}\ncomplete -p '{program}' | grep -q -- '-F {function} ' || exit 9\n\
         compopt() {{ :; }}\n{function} '{program}' '{current}' '{before}'\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"\n",
        script("bash", program)
    );
    // Longer than one argument may be.
    let folder = Folder::new("completions-bash");
    let file = folder.write("told", told);
    let (fine, said) = output("bash", &["-u", &file]);
    assert!(fine, "{line}: {said}");
    said.lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_options_and_values() {
    assert_eq!(offered("binderperf", "binderperf thr"), ["throughput"]);
    assert_eq!(offered("binderperf", "binderperf throughput compare"), ["compare-flavours"]);
    assert_eq!(offered("binderperf", "binderperf throughput scaling --dri"), ["--driver"]);
    assert_eq!(
        offered("binderperf", "binderperf throughput binder --driver "),
        ["auto", "kernel", "embedded"]
    );
    assert_eq!(offered("binderperf", "binderperf throughput binder --benchmark_fi"), ["--benchmark_filter"]);
    assert_eq!(offered("binderperf", "binderperf latency hwbinder --format j"), ["json"]);
    assert_eq!(offered("binderperf", "binderperf applet schd"), ["schd-dbg"]);
    assert_eq!(offered("binderperf", "binderperf applet schd-dbg --pai"), ["--pairs"]);
    assert_eq!(offered("binderperf", "binderperf completions fi"), ["fish"]);
    assert_eq!(offered("binderperf", "binderperf guest"), [""], "hidden");
    assert_eq!(offered("schd-dbg", "schd-dbg --pai"), ["--pairs"], "a tool of Android's by its name");
    assert_eq!(offered("libhwbinder_benchmark", "libhwbinder_benchmark --mode B"), ["BINDERIZE"]);
    binderperf(&["completions", "bash", "sh"]).ended(2).complained("schd-dbg");
}

#[test]
fn every_shell_gets_a_script_that_it_reads() {
    let folder = Folder::new("completions");
    let commands = ["throughput", "bisect-step", "compare-flavours", "libhwbinder_latency", "embedded"];
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let text = script(shell, "binderperf");
        for word in commands {
            assert!(text.contains(word), "{shell}: no {word}");
        }
        for program in ["binderperf", "schd-dbg", "libbinder_benchmark", "atrace"] {
            let path = folder.write(&format!("{program}.{shell}"), script(shell, program));
            if ["bash", "zsh", "fish"].contains(&shell) {
                let (fine, said) = output(shell, &["-n", &path]);
                assert!(fine && said.is_empty(), "{shell}, {program}: {said}");
            }
        }
    }
    let (fine, said) = output(
        "fish",
        &["-c", &format!("source {}; complete -C 'binderperf thr'", folder.path("binderperf.fish"))],
    );
    assert!(fine && said.starts_with("throughput\t"), "{said}");
    let (fine, said) = output(
        "fish",
        &[
            "-c",
            &format!("source {}; complete -C 'binderperf run --driver '", folder.path("binderperf.fish")),
        ],
    );
    assert!(fine && said.contains("kernel") && said.contains("embedded"), "{said}");
}

#[test]
fn help_of_a_command_is_the_same_wherever_it_is_asked_for() {
    for command in ["run", "throughput binder", "latency hwbinder", "trace record", "applet"] {
        let words: Vec<&str> = command.split(' ').collect();
        let here = binderperf(&[&words[..], &["--help"]].concat());
        let there = binderperf(&[&["help"], &words[..]].concat());
        assert_eq!((here.code, there.code), (Some(0), Some(0)), "{command}: {}{}", here.stderr, there.stderr);
        for part in ["Examples:\n", "\nExit status:\n", "Manual: binderperf man "] {
            assert!(here.stdout.contains(part) && there.stdout.contains(part), "{command}: no {part:?}");
        }
        let short = binderperf(&[&words[..], &["-h"]].concat());
        assert!(
            short.code == Some(0) && short.stdout.len() < here.stdout.len(),
            "{command}: {}",
            short.stdout
        );
    }
    let whole = binderperf(&["help"]);
    assert_eq!((whole.code, whole.stdout.clone()), (Some(0), binderperf(&["--help"]).stdout));
    whole.printed("\nMeasure:\n").printed("\nExit status:\n  0 ");
    binderperf(&["help", "nothing"]).ended(2).complained("nothing");
    let step = binderperf(&["bisect-step", "--nonsense"]);
    assert_eq!(step.code, Some(128), "git would take any other for a bad commit");
}
