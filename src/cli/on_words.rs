//! The options behind `--on`, of each command that takes them.
//! Not here: reading them (`fleet::on::words`).

use clap::{Arg, ArgAction, Command, ValueHint};
use fleet::on::words::takes_on;

/// Adds the options to the definition of a command that takes them.
pub(super) fn with_flags(command: Command, path: &str) -> Command {
    if !takes_on(path) || command.has_subcommands() {
        return command;
    }
    let arg = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help).help_heading("Another machine")
    };
    command
        .arg(
            arg("on", "TARGET", "Run it on adb[:SERIAL], ssh:[USER@]HOST[:PORT], vm[:KERNEL] or local, and bring back its files; may be repeated")
                .action(ArgAction::Append),
        )
        .arg(
            arg("binary", "FILE", "This program for that machine [default: binderperf-TARGET beside this one, or in $XDG_DATA_HOME/binderperf]")
                .value_hint(ValueHint::FilePath),
        )
        .arg(arg("reconnect", "S", "How long to wait for a machine whose connection was lost, in seconds [default: 600]"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_that_takes_it_says_so() {
        for path in [
            "run",
            "throughput binder",
            "trace record",
            "state",
            "services",
            "explain",
            "top",
            "latency sweep",
        ] {
            assert!(
                with_flags(Command::new("x"), path).get_arguments().any(|arg| arg.get_id() == "on"),
                "{path}"
            );
        }
        for path in ["compare", "trace", "trace info", "runs", "vm"] {
            assert!(with_flags(Command::new("x"), path).get_arguments().next().is_none(), "{path}");
        }
    }
}
