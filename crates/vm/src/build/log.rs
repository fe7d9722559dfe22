//! A build's output: its first error, and the file that is being made.
//! Not here: running the build (`step`).

/// Lines shown of an error: compilers point at the place in the lines behind it.
const SHOWN: usize = 5;

/// The log's first error, with the lines behind it; the last line of a log without one.
pub(super) fn first_error(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    match lines.iter().position(|line| is_error(line)) {
        Some(at) => {
            let end = lines.len().min(at + SHOWN);
            lines[at..end].join("\n")
        }
        None => {
            let last = lines.iter().rev().find(|line| !line.trim().is_empty());
            last.map_or_else(|| "the log is empty".to_owned(), |line| (*line).to_owned())
        }
    }
}

/// Whether the file system was full.
pub(super) fn is_full(log: &str) -> bool {
    log.contains("No space left on device")
}

fn is_error(line: &str) -> bool {
    let contains = [": error:", ": fatal error:", "undefined reference", "ld.lld: error", "ERROR:"];
    let starts = ["error:", "error[", "E: "];
    contains.iter().any(|part| line.contains(part))
        || starts.iter().any(|part| line.starts_with(part))
        || (line.starts_with("make") && line.contains("*** "))
}

/// The file that a line of make's output says it makes: `  CC      kernel/fork.o`.
pub(super) fn made(line: &str) -> Option<&str> {
    let (word, rest) = line.strip_prefix("  ")?.split_once(' ')?;
    let (word, file) = match word {
        // `  RUSTC L rust/core.o`, `  CC [M]  x.o`
        "RUSTC" | "CC" | "LD" => (word, rest.trim_start().trim_start_matches("L ").trim_start_matches("[M]")),
        _ => (word, rest),
    };
    let is_step = !word.is_empty() && word.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit());
    let file = file.trim();
    (is_step && !file.is_empty()).then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_error_comes_with_the_lines_behind_it() {
        let log = "  CC      a.o\nwarning: unused\nb.c:3:1: error: unknown type name 'x'\n    3 | x y;\n      | ^\n\
                   make[3]: *** [scripts/Makefile.build:289: b.o] Error 1\nmake: *** [Makefile:248: sub] Error 2\nend\n";
        let first = first_error(log);
        assert!(first.starts_with("b.c:3:1: error:") && first.lines().count() == 5, "{first}");
        for (log, want) in [
            ("x\nmake[1]: *** No rule to make target 'y'.  Stop.\n", "make[1]: *** No rule"),
            ("ld.lld: error: duplicate symbol: a\n", "ld.lld: error"),
            ("vmlinux.o: in function `a':\na.c:(.text+0x5): undefined reference to `b'\n", "a.c:(.text"),
            ("error[E0425]: cannot find value\n", "error[E0425]"),
            ("E: mmdebstrap failed to run\n", "E: mmdebstrap"),
            ("only this\n\n", "only this"),
            ("", "the log is empty"),
        ] {
            assert!(first_error(log).starts_with(want), "{log}");
        }
        assert!(is_full("as: a.o: No space left on device\n") && !is_full("fine\n"));
    }

    #[test]
    fn a_line_of_make_names_a_file() {
        for (line, want) in [
            ("  CC      kernel/fork.o", Some("kernel/fork.o")),
            ("  CC [M]  drivers/x.o", Some("drivers/x.o")),
            ("  RUSTC L rust/core.o", Some("rust/core.o")),
            ("  VDSO2C  arch/x86/vdso.c", Some("arch/x86/vdso.c")),
            ("  GEN     ", None),
            ("make[1]: Entering directory '/o'", None),
            ("kernel: error", None),
        ] {
            assert_eq!(made(line), want, "{line}");
        }
    }
}
