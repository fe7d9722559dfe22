//! Conditions of Kconfig: which part of one does not hold.
//! Not here: where conditions stand (`kconfig`).
//! Facts: kernel `Documentation/kbuild/kconfig-language.rst`, "Menu dependencies". `m` counts as `y`: modules are not
//! built.

use std::collections::BTreeMap;

/// Options that are set, with their values.
type Config = BTreeMap<String, String>;

/// The parts of a condition, joined by `&&`, that do not hold. Parts that cannot be judged, such as macros, are left
/// out.
pub(super) fn unmet(condition: &str, config: &Config) -> Vec<String> {
    let parts = conjuncts(condition);
    parts.into_iter().filter(|part| holds(part, config) == Some(false)).map(str::to_owned).collect()
}

/// Splits at the outermost `&&`.
fn conjuncts(condition: &str) -> Vec<&str> {
    let (mut parts, mut from, mut depth) = (Vec::new(), 0, 0_i32);
    let bytes = condition.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            b'|' if depth == 0 => return vec![condition.trim()],
            b'&' if depth == 0 && bytes.get(at + 1) == Some(&b'&') => {
                parts.push(condition[from..at].trim());
                from = at + 2;
            }
            _ => {}
        }
    }
    parts.push(condition.get(from..).unwrap_or_default().trim());
    parts
}

/// Whether a condition holds; `None`: it cannot be told.
pub(super) fn holds(condition: &str, config: &Config) -> Option<bool> {
    let tokens = tokens(condition)?;
    let mut parser = Parser { tokens: &tokens, config };
    let value = parser.either()?;
    parser.tokens.is_empty().then_some(value)
}

/// Words and operators; `None` if there is a macro.
fn tokens(condition: &str) -> Option<Vec<String>> {
    let mut tokens = Vec::new();
    let mut rest = condition.trim_start();
    while let Some(first) = rest.chars().next() {
        let len = match first {
            '$' => return None,
            '"' => rest[1..].find('"')? + 2,
            '(' | ')' => 1,
            '!' if rest.starts_with("!=") => 2,
            '!' => 1,
            '&' | '|' | '=' | '<' | '>' => {
                let double = ["&&", "||", "<=", ">="].iter().any(|operator| rest.starts_with(operator));
                if double { 2 } else { 1 }
            }
            _ => rest.find(|c: char| " \t()!&|=<>\"$".contains(c)).unwrap_or(rest.len()),
        };
        tokens.push(rest[..len].to_owned());
        rest = rest[len..].trim_start();
    }
    Some(tokens)
}

struct Parser<'a> {
    tokens: &'a [String],
    config: &'a Config,
}

impl Parser<'_> {
    fn takes(&mut self, token: &str) -> bool {
        let is_next = self.tokens.first().is_some_and(|next| next == token);
        if is_next {
            self.tokens = &self.tokens[1..];
        }
        is_next
    }

    fn either(&mut self) -> Option<bool> {
        let mut value = self.both()?;
        while self.takes("||") {
            value |= self.both()?;
        }
        Some(value)
    }

    fn both(&mut self) -> Option<bool> {
        let mut value = self.one()?;
        while self.takes("&&") {
            value &= self.one()?;
        }
        Some(value)
    }

    fn one(&mut self) -> Option<bool> {
        if self.takes("!") {
            return Some(!self.one()?);
        }
        if self.takes("(") {
            let value = self.either()?;
            return self.takes(")").then_some(value);
        }
        let left = self.word()?;
        let operators = ["=", "!=", "<=", ">=", "<", ">"];
        let Some(operator) = operators.into_iter().find(|operator| self.takes(operator)) else {
            return Some(left != "n" && !left.is_empty());
        };
        let right = self.word()?;
        let order = match (left.parse::<i64>(), right.parse::<i64>()) {
            (Ok(left), Ok(right)) => left.cmp(&right),
            _ => left.cmp(&right),
        };
        Some(match operator {
            "=" => order.is_eq(),
            "!=" => order.is_ne(),
            "<=" => order.is_le(),
            ">=" => order.is_ge(),
            "<" => order.is_lt(),
            _ => order.is_gt(),
        })
    }

    /// The value of an option or of a constant.
    fn word(&mut self) -> Option<String> {
        let (first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        if let Some(text) = first.strip_prefix('"') {
            return Some(text.trim_end_matches('"').to_owned());
        }
        let is_word = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        if !is_word(first) {
            return None;
        }
        let is_constant =
            ["y", "m", "n"].contains(&first.as_str()) || first.starts_with(|c: char| c.is_ascii_digit());
        if is_constant {
            return Some(first.replace('m', "y"));
        }
        Some(
            self.config.get(first).map_or_else(|| "n".to_owned(), |value| value.trim_matches('"').to_owned()),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> Config {
        let pairs = [("A", "y"), ("N", "8"), ("TEXT", "\"arm\""), ("64BIT", "y")];
        pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
    }

    #[test]
    fn a_condition_holds_or_not_or_cannot_be_told() {
        for (condition, want) in [
            ("A", Some(true)),
            ("B", Some(false)),
            ("!B && A", Some(true)),
            ("A && (B || !A)", Some(false)),
            ("B || A", Some(true)),
            ("N>4", Some(true)),
            ("N < 16 && TEXT=\"arm\"", Some(true)),
            ("TEXT != arm", Some(true)),
            ("A=y", Some(true)),
            ("A != m", Some(false)),
            ("B = n", Some(true)),
            ("$(cc-option,-x)", None),
            ("A &&", None),
            ("(A", None),
            ("A B", None),
            ("", None),
        ] {
            assert_eq!(holds(condition, &config()), want, "{condition}");
        }
    }

    #[test]
    fn only_the_parts_that_fail_are_named() {
        assert_eq!(unmet("A && B && !A && $(x) && (B || A)", &config()), ["B", "!A"]);
        assert_eq!(unmet("B || C && A", &config()), ["B || C && A"]);
        assert!(unmet("", &config()).is_empty());
    }
}
