//! Rules for every command: it is listed, has a help text, and its examples parse.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command as Process;

use manual::help_text;
use sys::private_folder::PrivateFolder;

use super::*;

/// Every command that is shown, by its words.
fn paths(definition: &Definition, path: &str, found: &mut Vec<(String, Definition)>) {
    for command in definition.get_subcommands() {
        let below = format!("{path} {}", command.get_name()).trim_start().to_owned();
        found.push((below.clone(), command.clone()));
        paths(command, &below, found);
    }
}

fn every_command() -> Vec<(String, Definition)> {
    let mut found = Vec::new();
    paths(&shown(), "", &mut found);
    assert!(found.len() > 40, "{} commands", found.len());
    found
}

#[test]
fn every_command_has_a_help_text_and_every_help_text_a_command() {
    let commands: BTreeSet<String> = every_command().into_iter().map(|(path, _)| path).collect();
    let described: Vec<String> = help_text::all().map(|text| text.command.to_owned()).collect();
    let once: BTreeSet<String> = described.iter().cloned().collect();
    assert_eq!(once.len(), described.len(), "a text twice");
    assert_eq!(once, commands);
    for text in help_text::all() {
        let name = text.command;
        assert!(!text.examples.is_empty() && text.statuses[0].0 == 0, "{name}");
        assert!(text.statuses.is_sorted_by_key(|(status, _)| *status), "{name}");
        for see in &text.see {
            assert!(commands.contains(*see), "{name}: no command {see:?} to see");
        }
        for page in &text.docs {
            let path = format!("{}/docs/{page}.md", env!("CARGO_MANIFEST_DIR"));
            assert!(Path::new(&path).is_file(), "{name}: {path}");
        }
    }
}

#[test]
fn every_command_says_what_it_is_for_and_no_help_is_a_wall() {
    let whole = shown();
    for (path, command) in every_command() {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        assert!(about.len() > 10 && !about.contains('\n') && !about.ends_with('.'), "{path}: {about:?}");
        let options: Vec<_> = command.get_arguments().filter(|argument| !argument.is_positional()).collect();
        let loose = options.iter().filter(|option| option.get_help_heading().is_none()).count();
        assert!(loose <= 10, "{path}: {loose} options in no group");
        for option in options {
            assert!(option.get_help().is_some(), "{path}: {option}");
        }
        assert!(!command.get_arguments().any(clap::Arg::is_hide_set), "{path} shows what is hidden");
    }
    let text = whole.clone().render_long_help().to_string();
    for command in whole.get_subcommands().map(Definition::get_name) {
        let lines = text.lines().filter(|line| line.starts_with(&format!("  {command} "))).count();
        assert_eq!(lines, 1, "{command} in one group of\n{text}");
    }
    assert!(!text.contains("guest-probe") && whole.find_subcommand("guest-probe").is_none());
    assert!(whole.find_subcommand(::conformance::HELPER_COMMAND).is_none());
}

/// The words of each call of this program in what a shell is told, by a shell.
fn calls(line: &str) -> Vec<Vec<String>> {
    const STUBS: &str = "set -u
        binderperf() { { for word in \"$@\"; do printf '%s\\037' \"$word\"; done; printf '\\036'; } >> \"$CALLS\"; }
        git() { [ \"$1 $2\" = 'bisect run' ] && shift 2 && \"$@\"; }
        ln() { :; }
        man() { cat > /dev/null; }
        mkdir -p \"$HOME/.config/fish/completions\"\n";
    let private = PrivateFolder::new("examples").expect("a folder");
    let folder = private.path();
    let log = folder.join("calls");
    let mut shell = Process::new("bash");
    shell.args(["-c", &format!("{STUBS}{line}")]).current_dir(folder).env("HOME", folder).env("CALLS", &log);
    let output = shell.output().expect("bash");
    assert!(output.status.success() && output.stderr.is_empty(), "{line}: {output:?}");
    let text = std::fs::read_to_string(&log).unwrap_or_default();
    let words = |call: &str| call.split_terminator('\u{1f}').map(str::to_owned).collect();
    text.split_terminator('\u{1e}').map(words).collect()
}

#[test]
fn every_example_is_understood() {
    let mut seen = 0;
    for text in help_text::all() {
        let mut own = 0;
        for (what, line) in &text.examples {
            assert!(!what.ends_with('.'), "{what}");
            for words in calls(line) {
                understood(&words).unwrap_or_else(|why| panic!("{line}\n{words:?}: {why}"));
                seen += 1;
                own += usize::from(words.join(" ").contains(text.command));
            }
        }
        assert!(own > 0, "no example of {:?} calls it", text.command);
    }
    assert!(seen > 70, "{seen} calls");
}

#[test]
fn an_example_that_is_wrong_is_noticed() {
    for wrong in [
        "binderperf throughput binder --benchmark_filtre='/4$'",
        "binderperf latency hwbinder -paar 3",
        "binderperf vm -- throughput bynder",
        "binderperf trace record -- binderperf latency binder --no-such",
        "binderperf schd-dbg -w",
        "binderperf applet atrace -b many",
        "binderperf --benchmark_format=xml",
    ] {
        let calls = calls(wrong);
        assert_eq!(calls.len(), 1, "{calls:?}");
        assert!(understood(&calls[0]).is_err(), "{wrong}");
    }
}

#[test]
fn slips_of_the_pen_are_met_with_what_was_meant() {
    let said = |line: &str| {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        parse(&words).map(|_| ()).expect_err("wrong").to_string()
    };
    for (line, meant) in [
        ("thruput binder", "'throughput'"),
        ("trace recrod", "'record'"),
        ("latency hwbinder --deadlin_us 3", "--deadline-us"),
        ("run --driver kernle", "'kernel'"),
        ("completions bsh", "'bash'"),
    ] {
        let text = said(line);
        assert!(text.contains("similar") && text.contains(meant), "{line}: {text}");
    }
}
