//! Next steps after a test in a guest of `binderperf vm` or on a machine of `--on`: the reader sits at another machine, so
//! commands boot the guest again, or name that machine.
//! Not here: what the next step is (the verdicts).

use super::judged::Verdict;
use crate::schema::{Host, HostClass};

/// Folder on the host for files that a command leaves in a guest.
const FILES: &str = "from-guest";

/// The verdict with a next step that runs on the host.
pub(crate) fn runnable(verdict: Verdict, host: &Host) -> Verdict {
    let next = verdict.next.map(|next| match &host.on {
        Some(target) => each(&next, |step| there(step, target)),
        None if host.class.is_own_guest() => each(&next, |step| one(step, host)),
        None => next,
    });
    Verdict { next, ..verdict }
}

/// Rewrites the commands of a next step; words that are no command stay as they are.
fn each(next: &str, rewrite: impl Fn(&str) -> String) -> String {
    next.split(", then ").map(rewrite).collect::<Vec<_>>().join(", then ")
}

/// Commands that take `--on`, by their first words; those below them do, too. The longest stand first.
pub const ON_COMMANDS: [&str; 13] = [
    "trace record",
    "run",
    "throughput",
    "latency",
    "inheritance",
    "conformance",
    "chaos",
    "doctor",
    "state",
    "services",
    "explain",
    "watch",
    "top",
];

/// Has a command run on the machine that was measured; others, and what every machine shows, stay as they are.
fn there(step: &str, target: &str) -> String {
    // Over there it is as whom the target says.
    let step_there = step.strip_prefix("sudo ").unwrap_or(step);
    let Some(command) = step_there.strip_prefix("binderperf ") else { return step.to_owned() };
    if command.contains("--driver embedded") || command.contains(" --on ") {
        return step.to_owned();
    }
    let is_end = |rest: &str| rest.chars().next().is_none_or(|next| !next.is_alphanumeric() && next != '-');
    let named = ON_COMMANDS.iter().find_map(|name| {
        let rest = command.strip_prefix(name)?;
        is_end(rest).then_some((name, rest))
    });
    match named {
        Some((name, rest)) => format!("binderperf {name} --on {}{rest}", quoted(target)),
        None => step.to_owned(),
    }
}

/// Has a command run in the guest.
fn one(step: &str, host: &Host) -> String {
    // The guest's commands run as root.
    let step_as_root = step.strip_prefix("sudo ").unwrap_or(step);
    let Some(command) = step_as_root.strip_prefix("binderperf ") else { return step.to_owned() };
    // The embedded driver and the analyser do not need the guest.
    if ["vm ", "trace analyze "].iter().any(|word| command.starts_with(word))
        || command.contains("--driver embedded")
    {
        return step.to_owned();
    }
    let mut words = "binderperf vm".to_owned();
    for kernel in &host.guest_kernel {
        words += &format!(" --kernel {}", quoted(kernel));
    }
    if host.class == HostClass::Icount {
        words += " --icount";
    }
    if command.contains("--html ") {
        words += &format!(" --out {FILES}");
    }
    format!("{words} -- {command}")
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./+:=,@%~".contains(letter);
    match word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::latency_run;

    fn after(class: HostClass, kernel: &[&str], next: &str) -> String {
        let mut host = latency_run(&[]).host;
        host.class = class;
        host.guest_kernel = kernel.iter().map(|name| (*name).to_owned()).collect();
        runnable(Verdict::good("calls", "FAILED").then(next), &host).next.expect("a next step")
    }

    #[test]
    fn a_command_after_a_guest_boots_it_again() {
        let latency = "binderperf latency hwbinder --cpus 0,0 shows both sides on one CPU";
        for (class, kernel, next, expected) in [
            (HostClass::Tcg, &[][..], latency, "binderperf vm -- latency hwbinder --cpus 0,0 shows"),
            (HostClass::Kvm, &["6.12"], latency, "binderperf vm --kernel 6.12 -- latency hwbinder"),
            (HostClass::Icount, &["a b"], latency, "binderperf vm --kernel 'a b' --icount -- latency"),
            (HostClass::Tcg, &[], "sudo binderperf overload", "binderperf vm -- overload"),
            (
                HostClass::Tcg,
                &[],
                "binderperf trace record --html miss.html -- latency binder",
                "binderperf vm --out from-guest -- trace record --html miss.html -- latency binder",
            ),
            (
                HostClass::Tcg,
                &[],
                "binderperf doctor, then binderperf overload",
                "binderperf vm -- doctor, then binderperf vm -- overload",
            ),
        ] {
            let told = after(class, kernel, next);
            assert!(told.starts_with(expected), "{told}");
            assert_eq!(after(class, kernel, &told), told, "once is enough");
        }
    }

    #[test]
    fn a_command_after_another_machine_names_it() {
        let told = |next: &str| {
            let mut host = latency_run(&[]).host;
            host.on = Some("adb:127.0.0.1:5557".to_owned());
            // A guest behind adb is a device.
            host.class = HostClass::Tcg;
            runnable(Verdict::good("calls", "FAILED").then(next), &host).next.expect("a next step")
        };
        for (next, expected) in [
            (
                "binderperf latency hwbinder --cpus 0,0 shows both sides on one CPU",
                "binderperf latency --on adb:127.0.0.1:5557 hwbinder --cpus 0,0 shows both sides on one CPU",
            ),
            ("sudo binderperf inheritance", "binderperf inheritance --on adb:127.0.0.1:5557"),
            (
                "binderperf doctor, which says what disturbs this machine",
                "binderperf doctor --on adb:127.0.0.1:5557, which says what disturbs this machine",
            ),
            (
                "binderperf trace record --html miss.html -- latency binder, then binderperf state",
                "binderperf trace record --on adb:127.0.0.1:5557 --html miss.html -- latency binder, then binderperf \
                 state --on adb:127.0.0.1:5557",
            ),
            ("binderperf trace analyze a.bptrace", "binderperf trace analyze a.bptrace"),
            ("binderperf latency binder --driver embedded", "binderperf latency binder --driver embedded"),
            ("binderperf overload", "binderperf overload"),
            ("run it again", "run it again"),
        ] {
            assert_eq!(told(next), expected);
            assert_eq!(told(expected), expected, "once is enough");
        }
    }

    #[test]
    fn what_needs_no_guest_stays_as_it_is() {
        for (class, next) in [
            (HostClass::Bare, "binderperf inheritance --flavour binder"),
            (HostClass::Virtual, "sudo binderperf overload"),
            (HostClass::Tcg, "binderperf latency binder --driver embedded --inherit rt"),
            (HostClass::Tcg, "binderperf trace analyze a.bptrace --html miss.html"),
            (HostClass::Tcg, "run it again"),
        ] {
            assert_eq!(after(class, &[], next), next);
        }
    }
}
