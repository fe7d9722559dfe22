//! The C driver's own source: which check is at the line that a failure names.
//! Not here: getting the source (the command line).
//! Facts: `binder_transaction` notes `__LINE__` just behind the check that failed, from Linux 4.12 on.

/// Source of `binder.c`.
#[derive(Clone, Debug)]
pub struct DriverSource {
    name: String,
    lines: Vec<String>,
}

/// Maximum number of lines between a check and the line that it notes.
const FARTHEST: usize = 16;

impl DriverSource {
    /// Takes the text of a `binder.c`, and a name for it.
    #[must_use]
    pub fn new(name: impl Into<String>, text: &str) -> Self {
        Self { name: name.into(), lines: text.lines().map(str::to_owned).collect() }
    }

    /// The check that notes this line, in words; `None` for line 0.
    #[must_use]
    pub fn check(&self, line: u32) -> Option<String> {
        let at = usize::try_from(line).ok()?.checked_sub(1)?;
        let noted = self.lines.get(at).is_some_and(|line| line.contains("__LINE__"));
        if !noted {
            return Some(format!(
                "line {line} of {} notes no failure: the kernel that wrote the log has another source",
                self.name
            ));
        }
        let here = indent(&self.lines[at]);
        let above = || self.lines[..at].iter().rev().take(FARTHEST);
        let condition = self.condition(at, here);
        let message = above().take_while(|line| indent(line) >= here).find_map(|line| quoted(line));
        let within = self.lines[..at].iter().rev().find_map(|line| function(line)).unwrap_or("a function");
        let mut words = format!("line {line} of {}, in {within}: ", self.name);
        words += &match condition {
            Some((condition, false)) => format!("refused because `{condition}` held"),
            Some((condition, true)) => format!("refused because `{condition}` did not hold"),
            None => "the condition is too far above to say which".to_owned(),
        };
        if let Some(message) = message {
            words += &format!("; its debug line is \"{message}\"");
        }
        Some(words)
    }

    /// The condition of the block that a line is in, and whether the line is in its `else`.
    fn condition(&self, at: usize, here: usize) -> Option<(String, bool)> {
        let mut below = here;
        for (back, line) in self.lines[..at].iter().enumerate().rev().take(3 * FARTHEST) {
            let trimmed = line.trim_start();
            if trimmed.is_empty() || indent(line) >= below || trimmed.ends_with(':') {
                continue;
            }
            below = indent(line);
            if trimmed.contains("else if (") || trimmed.starts_with("if (") {
                return self.parenthesis(back).map(|condition| (condition, false));
            }
            if trimmed.starts_with("} else") || trimmed.starts_with("else") {
                let opener = self.lines[..back].iter().enumerate().rev().take(3 * FARTHEST);
                let opener = opener.filter(|(_, line)| indent(line) == below);
                let opener =
                    opener.map(|(at, _)| at).find(|at| self.lines[*at].trim_start().starts_with("if ("));
                return opener.and_then(|at| self.parenthesis(at)).map(|condition| (condition, true));
            }
        }
        None
    }

    /// What an `if` asks, perhaps over several lines.
    fn parenthesis(&self, at: usize) -> Option<String> {
        let text = self.lines.iter().skip(at).take(8).map(|line| line.trim()).collect::<Vec<_>>().join(" ");
        let begin = text.find("if (")? + 4;
        let mut depth = 1_u32;
        let end = text.get(begin..)?.char_indices().find(|(_, c)| {
            match c {
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            depth == 0
        })?;
        text.get(begin..begin + end.0).map(str::to_owned)
    }
}

fn indent(line: &str) -> usize {
    line.chars().take_while(|c| *c == '\t' || *c == ' ').map(|c| if c == '\t' { 8 } else { 1 }).sum()
}

fn quoted(line: &str) -> Option<String> {
    let (_, rest) = line.split_once('"')?;
    let (text, _) = rest.split_once('"')?;
    Some(text.trim_end_matches("\\n").replace("%d:%d ", ""))
}

/// The name of a function that begins at a line.
fn function(line: &str) -> Option<&str> {
    if line.starts_with([' ', '\t', '#', '/', '*', '}', '{']) || line.ends_with([';', ':']) {
        return None;
    }
    let (head, _) = line.split_once('(')?;
    head.split([' ', '*'])
        .next_back()
        .filter(|name| name.starts_with(|first: char| first.is_ascii_alphabetic()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "\
static void carry(struct proc *proc,
\t\t  int reply)
{
\tif (reply) {
\t\tsend(proc);
\t} else {
\t\tif (first(proc) &&
\t\t    second(proc)) {
\t\t\tcomplain(\"%d:%d it is both\\n\",
\t\t\t\t proc->pid);
\t\t\terror = -EINVAL;
\t\t\terror_line = __LINE__;
\t\t\tgoto out;
\t\t}
\t\tif (!third)
\t\t\tfourth();
\t\telse
\t\t\terror_line = __LINE__;
\t}
}
";

    #[test]
    fn a_line_is_turned_into_its_check() {
        let source = DriverSource::new("x.c", SOURCE);
        let words = source.check(12).expect("a line");
        for part in ["line 12 of x.c, in carry", "`first(proc) && second(proc)` held", "\"it is both\""] {
            assert!(words.contains(part), "{part}: {words}");
        }
        assert!(
            source.check(18).expect("a line").contains("`!third` did not hold"),
            "{:?}",
            source.check(18)
        );
        assert!(source.check(5).expect("a line").contains("notes no failure"));
        assert!(source.check(4000).expect("a line").contains("notes no failure"));
        assert_eq!(source.check(0), None);
    }
}
