//! A program as C that needs nothing but the kernel's header, so that anybody can compile and run it.
//! Not here: the programs (`program`). Each step prints its errno and the words that it read.

use std::fmt::Write as _;

use abi::codes::CommandWord;

use crate::program::{Action, Command, Object, Program, Read, Transaction, cookie_of, fields};

/// Helpers of each program: `S` takes turns; `P` and those behind it append to the thread's commands and payload; `go` is the ioctl.
const HEAD: &str = include_str!("c_form/head.c");
/// Longest line of several steps, in bytes.
const LINE: usize = 130;
const TAIL: &str = include_str!("c_form/tail.c");

/// Whether a program can be written as C: not one whose threads run side by side, or that runs another program.
#[must_use]
pub fn has_c_form(program: &Program) -> bool {
    !program.steps.iter().any(|step| matches!(step.action, Action::Exec | Action::Schedule(_)))
}

/// The program as C. `what`: one line about it.
#[must_use]
pub fn c_program(program: &Program, what: &str) -> String {
    let steps: Vec<String> = program
        .steps
        .iter()
        .enumerate()
        .map(|(number, step)| {
            format!("S({number}, {}, {}) {}", step.proc, step.thread, action(number, &step.action))
        })
        .collect();
    let steps = packed(&steps);
    // Helpers that no step uses are left out.
    let used = |line: &&str| {
        let name = line.strip_prefix("#define ").and_then(|rest| rest.split_once('(')).map(|(name, _)| name);
        name.is_none_or(|name| matches!(name, "S" | "P" | "C" | "D") || steps.contains(&format!("{name}(")))
    };
    let head: String = HEAD.lines().filter(used).map(|line| format!("{line}\n")).collect();
    let what = what.replace("*/", "* /");
    let how = "gcc -pthread FILE && ./a.out /dev/binderfs/DEVICE, a device without a context manager";
    let text = format!("/* {what}\n   {how} */\n{head}{steps}");
    let last = program.steps.len();
    let procs = program.steps.iter().map(|step| step.proc + 1).max().unwrap_or(1);
    text + &TAIL.replace("PROCS", &procs.to_string()).replace("STEPS", &last.to_string())
}

/// Short steps share a line.
fn packed(steps: &[String]) -> String {
    let (mut text, mut line) = (String::new(), String::new());
    for step in steps {
        if !line.is_empty() && line.len() + step.len() > LINE {
            text += &format!("\t{line}\n");
            line.clear();
        }
        let blank = if line.is_empty() { "" } else { " " };
        line += &format!("{blank}{step}");
    }
    if line.is_empty() { text } else { format!("{text}\t{line}\n") }
}

fn action(number: usize, action: &Action) -> String {
    let ioctl = |name: &str, kind: &str, begin: String| {
        format!("{{ struct binder_{kind} x = {{ {begin} }}; R({number}, BINDER_{name}, &x); }}")
    };
    let plain = |name: &str, value: u32| format!("{{ __u32 x = {value}; R({number}, BINDER_{name}, &x); }}");
    match action {
        Action::Open(0) => "{ fd = open(dev, O_RDWR | O_CLOEXEC); }".to_owned(),
        Action::Open(size) => {
            format!(
                "{{ fd = open(dev, O_RDWR | O_CLOEXEC); m = mmap(0, l = {size}, PROT_READ, MAP_PRIVATE, fd, 0); }}"
            )
        }
        Action::Close => "{ munmap(m, l); close(fd); }".to_owned(),
        Action::Kill => format!("{{ *turn = {}; kill(getpid(), SIGKILL); }}", number + 1),
        Action::Manager => plain("SET_CONTEXT_MGR", 0),
        Action::MaxThreads(count) => plain("SET_MAX_THREADS", *count),
        Action::ThreadExit => plain("THREAD_EXIT", 0),
        Action::Version => ioctl("VERSION", "version", "0".to_owned()),
        Action::Freeze(proc, on) => {
            ioctl("FREEZE", "freeze_info", format!("pids[{proc}], {}, 0", u8::from(*on)))
        }
        Action::FrozenInfo(proc) => ioctl("GET_FROZEN_INFO", "frozen_status_info", format!("pids[{proc}]")),
        Action::NodeInfo(handle) => ioctl("GET_NODE_INFO_FOR_REF", "node_info_for_ref", handle.to_string()),
        Action::NodeDebug(above) => ioctl("GET_NODE_DEBUG_INFO", "node_debug_info", above.to_string()),
        Action::ExtendedError => ioctl("GET_EXTENDED_ERROR", "extended_error", "0".to_owned()),
        Action::Spam(on) => plain("ENABLE_ONEWAY_SPAM_DETECTION", u32::from(*on)),
        Action::Poll => format!(
            "{{ struct pollfd x = {{ fd, POLLIN }}; printf(\"{number}: poll %d\\n\", poll(&x, 1, 0)); }}"
        ),
        Action::Signal(thread) => format!("{{ pthread_kill(threads[{thread}], SIGUSR1); }}"),
        Action::Fork(inner) => {
            format!("{{ if (!fork()) {{ {} _exit(0); }} wait(0); }}", self::action(number, inner))
        }
        // Programs with these have no C form.
        Action::Exec | Action::Schedule(_) => "{ }".to_owned(),
        Action::Exchange(commands, read) => {
            let commands: String = commands.iter().map(|one| format!("{} ", command(one))).collect();
            let (room, wait) = read.map_or((0, 0), |Read { room, waits }| (room, u8::from(waits)));
            format!("{{ {commands}go({number}, {room}, {wait}); }}")
        }
    }
}

fn command(command: &Command) -> String {
    match command {
        Command::Transaction(target, what) => transaction(*target, what),
        Command::Free(at) => format!("F({at});"),
        Command::Plain(code, numbers) => {
            let mut name = CommandWord(*code).to_string();
            if name.contains("FREEZE") {
                // Not in every kernel's header.
                name = format!("{code:#x} /* {name} */");
            }
            let fields = fields(*code, *numbers);
            let (first, size) = fields.first().copied().unwrap_or_default();
            let more =
                fields.iter().skip(1).map(|(number, size)| format!(" P(&(__u64){{ {number} }}, {size});"));
            format!("C({name}, {first}, {size});{}", more.collect::<String>())
        }
        Command::Word(word) => {
            let len = CommandWord(*word).payload_len();
            format!("C({word:#x}, 0, 0); P((char[{}]){{ 0 }}, {len});", len.max(1))
        }
    }
}

fn transaction(target: Option<u32>, what: &Transaction) -> String {
    let mut text = String::new();
    if what.plain > 0 {
        // Writing to a string cannot fail, here and below.
        let _ = write!(text, "N({}, {}); ", what.plain, what.code * 31);
    }
    let mut size = 0_u32;
    for object in &what.objects {
        let made = match *object {
            Object::Node { ptr, weak } => {
                let kind = if weak { "WEAK_BINDER" } else { "BINDER" };
                let flags = if ptr == 3 { "0" } else { "FLAT_BINDER_FLAG_ACCEPTS_FDS" };
                format!("O(BINDER_TYPE_{kind}, {flags}, {ptr}, {});", cookie_of(ptr))
            }
            Object::Handle { handle, weak } => {
                format!("O(BINDER_TYPE_{}HANDLE, 0, {handle}, 0);", if weak { "WEAK_" } else { "" })
            }
            Object::Fd(number) => {
                let fd = match number {
                    0 => "open(\"/dev/null\", 0)",
                    1 => "open(\"/dev/zero\", 0)",
                    _ => "9999",
                };
                format!("O(BINDER_TYPE_FD, 0, {fd}, 0);")
            }
            Object::Buffer { len, parent } => {
                size += len.next_multiple_of(8);
                let (index, at) = parent.unwrap_or_default();
                format!("B({len}, {index}, {at}, {});", u8::from(parent.is_some()))
            }
            Object::Fds { count, parent: (parent, at) } => format!("A({count}, {parent}, {at});"),
        };
        text += &made;
        text.push(' ');
    }
    let name = if target.is_some() { "BC_TRANSACTION" } else { "BC_REPLY" };
    let (name, size) = if what.is_scattered() {
        (format!("{name}_SG"), i64::from(size) - i64::from(what.short))
    } else {
        (name.to_owned(), -1)
    };
    let target = target.unwrap_or_default();
    let Transaction { code, flags, cut, skew, clip, .. } = what;
    let _ = write!(text, "X({name}, {target}, {code}, {flags:#x}, {cut}, {skew}, {clip}, {size});");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use needs::{Need, need};
    use std::process::Command;

    #[test]
    fn the_c_form_of_each_program_compiles() {
        let folder = sys::private_folder::PrivateFolder::new("c-form").expect("a folder");
        let forks = "p0.t0 open 4096\np0.t0 fork call 0 code=1 [node 1]; read\np0.t1 fork version";
        let programs = [3, 14, 15].map(crate::generate::program);
        for (number, program) in programs.into_iter().chain(forks.parse()).enumerate() {
            let file = folder.path().join(format!("{number}.c"));
            std::fs::write(&file, c_program(&program, "a test")).expect("written");
            let made = Command::new("gcc")
                .args(["-fsyntax-only", "-Wall", "-Werror", "-Wno-missing-braces", "-Wno-unused", "-pthread"])
                .arg(&file)
                .output();
            let made = need!(made.map_err(|why| Need::Programs.lacks(format_args!("gcc: {why}"))));
            assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        }
    }

    #[test]
    fn a_program_of_seventeen_steps_has_at_most_sixty_lines() {
        let program = Program { steps: crate::generate::acquaintance().steps[..17].to_vec() };
        let text = c_program(&program, "a test");
        assert!(text.lines().count() <= 60, "{}: {text}", text.lines().count());
        assert!(text.contains("BINDER_TYPE_BINDER") && text.contains("S(16, "), "{text}");
    }
}
