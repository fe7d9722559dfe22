//! Next steps after a test in a guest of `binderperf vm`: the reader sits at the host, so commands boot the guest again.
//! Not here: what the next step is (the verdicts).

use super::judged::Verdict;
use crate::schema::{Host, HostClass};

/// Folder on the host for files that a command leaves in a guest.
const FILES: &str = "from-guest";

/// The verdict with a next step that runs on the host.
pub(crate) fn runnable(verdict: Verdict, host: &Host) -> Verdict {
    let next =
        verdict.next.map(|next| if host.class.is_own_guest() { in_a_guest(&next, host) } else { next });
    Verdict { next, ..verdict }
}

/// Has the commands of a next step run in a guest; words that are no command stay as they are.
fn in_a_guest(next: &str, host: &Host) -> String {
    let steps: Vec<String> = next.split(", then ").map(|step| one(step, host)).collect();
    steps.join(", then ")
}

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
