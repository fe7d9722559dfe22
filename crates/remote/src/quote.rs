//! Words for a POSIX shell.

/// The word in single quotes, which every POSIX shell takes apart into the same word.
pub fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use proptest::prelude::*;

    use super::quoted;

    fn echoed(shell: &[&str], words: &[String]) -> Vec<String> {
        let line: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        let text = format!("set -- {}\nfor word; do printf '%s\\0' \"$word\"; done", line.join(" "));
        let output = Command::new(shell[0]).args(&shell[1..]).args(["-c", &text]).output().expect("a shell");
        assert!(output.status.success() && output.stderr.is_empty(), "{text}: {output:?}");
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        text.split_terminator('\0').map(str::to_owned).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        #[test]
        fn a_shell_reads_each_word_back(words in proptest::collection::vec("[^\0]{0,12}", 1..6)) {
            prop_assert_eq!(echoed(&["sh"], &words), words);
        }
    }

    #[test]
    fn each_shell_reads_awkward_words_back() {
        let words =
            ["", "a b", "it's", "'", "''\"", "$HOME `id` \\", "*", "~", "#x", "-n", "a\nb\t", "ü!", "\\n"];
        let words = words.map(str::to_owned);
        for shell in [&["sh"][..], &["mksh"], &["busybox", "sh"]] {
            assert_eq!(echoed(shell, &words), words, "{shell:?}");
        }
    }
}
