//! A script: several commands for one guest, one a line.
//! Not here: running them (`guest::command`).
//!
//! Blank lines and lines that begin with `#` are left out. Words are separated by blanks; `'...'`, `"..."` and `\` quote,
//! as in a shell. Nothing else of a shell is there, so its operators are refused rather than passed on as words.

/// Characters that mean something to a shell, outside of quotes.
const OPERATORS: &str = "|&;<>`()";

/// Splits a script into the words of its commands. A leading `binderperf` is left out.
///
/// # Errors
/// The first bad line, by its number, and what to do; or a script without a command.
pub fn parse(text: &str) -> Result<Vec<Vec<String>>, String> {
    let mut commands = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let mut words = words(line).map_err(|why| format!("line {number}: {why}"))?;
        if words.first().is_some_and(|word| word == "binderperf") {
            words.remove(0);
        }
        if !words.is_empty() {
            commands.push(words);
        }
    }
    if commands.is_empty() { Err("it has no command".to_owned()) } else { Ok(commands) }
}

fn words(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = line.chars();
    while let Some(next) = rest.next() {
        match next {
            '#' if word.is_none() => break,
            ' ' | '\t' | '\r' => words.extend(word.take()),
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match rest.next() {
                        None => return Err(format!("the quote {next} is not closed")),
                        Some(end) if end == next => break,
                        Some('\\') if next == '"' => word.extend(rest.next()),
                        Some(inside) => word.push(inside),
                    }
                }
            }
            '\\' => word.get_or_insert_default().extend(rest.next()),
            _ if OPERATORS.contains(next) => {
                return Err(format!(
                    "{next} is for a shell: quote it, or run a static shell's script with --exec SHELL"
                ));
            }
            _ => word.get_or_insert_default().push(next),
        }
    }
    words.extend(word);
    Ok(words)
}

/// A command as one line, for messages.
pub(super) fn line(words: &[String]) -> String {
    let plain =
        |word: &str| !word.is_empty() && !word.contains(|c: char| c.is_whitespace() || "'\"\\#".contains(c));
    let quoted = |word: &String| match plain(word) && !word.contains(|c| OPERATORS.contains(c)) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_a_command() {
        let text = "# a session\n\n  atrace --async_start  -b 8000\r\nbinderperf show 'a b' \"c\\\"d\" e\\ f '' # and so on\n";
        let commands = parse(text).expect("sound");
        assert_eq!(commands[0], ["atrace", "--async_start", "-b", "8000"]);
        assert_eq!(commands[1], ["show", "a b", "c\"d", "e f", ""]);
        assert_eq!(commands.len(), 2);
        for command in commands {
            assert_eq!(parse(&line(&command)), Ok(vec![command]));
        }
        assert_eq!(parse("show a#b"), Ok(vec![vec!["show".to_owned(), "a#b".to_owned()]]));
    }

    #[test]
    fn what_only_a_shell_understands_is_refused() {
        for (bad, says) in [
            ("", "no command"),
            ("# nothing\nbinderperf\n", "no command"),
            ("show\nshow 'a", "line 2: the quote ' is not closed"),
            ("show a >b", "line 1: > is for a shell"),
            ("show a && show b", "& is for a shell"),
        ] {
            let error = parse(bad).expect_err(bad);
            assert!(error.contains(says), "{bad}: {error}");
        }
        assert!(parse("throughput --benchmark_filter='a|b(c)'").is_ok());
    }
}
