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
    let alternatives = split(condition, "||");
    let parts = if alternatives.len() == 1 { split(condition, "&&") } else { vec![condition.trim()] };
    parts.into_iter().filter(|part| holds(part, config) == Some(false)).map(str::to_owned).collect()
}

/// Splits at an operator outside brackets and quotes.
fn split<'a>(condition: &'a str, operator: &str) -> Vec<&'a str> {
    let (mut parts, mut from, mut depth, mut is_quoted) = (Vec::new(), 0, 0_i32, false);
    for (at, letter) in condition.char_indices() {
        match letter {
            '"' => is_quoted = !is_quoted,
            '(' if !is_quoted => depth += 1,
            ')' if !is_quoted => depth -= 1,
            _ if depth == 0 && !is_quoted && at >= from && condition[at..].starts_with(operator) => {
                parts.push(condition[from..at].trim());
                from = at + operator.len();
            }
            _ => {}
        }
    }
    parts.push(condition[from..].trim());
    parts
}

/// Whether a condition holds; `None`: it cannot be told, as of macros.
fn holds(condition: &str, config: &Config) -> Option<bool> {
    for (operator, decides) in [("||", true), ("&&", false)] {
        let parts = split(condition, operator);
        if parts.len() > 1 {
            let values: Vec<Option<bool>> = parts.into_iter().map(|part| holds(part, config)).collect();
            return match values.contains(&Some(decides)) {
                true => Some(decides),
                false => (!values.contains(&None)).then_some(!decides),
            };
        }
    }
    let one = condition.trim();
    for operator in ["!=", "<=", ">=", "=", "<", ">"].into_iter().filter(|_| !one.starts_with(['(', '!'])) {
        let Some((left, right)) = one.split_once(operator) else { continue };
        let (left, right) = (word(left, config)?, word(right, config)?);
        let numbers = left.parse::<i64>().ok().zip(right.parse::<i64>().ok());
        let order = numbers.map_or_else(|| left.cmp(right), |(left, right)| left.cmp(&right));
        return Some(match operator {
            "=" => order.is_eq(),
            "!=" => order.is_ne(),
            "<=" => order.is_le(),
            ">=" => order.is_ge(),
            "<" => order.is_lt(),
            _ => order.is_gt(),
        });
    }
    if let Some(rest) = one.strip_prefix('!') {
        return Some(!holds(rest, config)?);
    }
    if let Some(inner) = one.strip_prefix('(') {
        return holds(inner.strip_suffix(')')?, config);
    }
    word(one, config).map(|value| value != "n" && !value.is_empty())
}

/// The value of an option or of a constant.
fn word<'a>(text: &'a str, config: &'a Config) -> Option<&'a str> {
    let text = text.trim();
    if let Some(quoted) = text.strip_prefix('"') {
        return quoted.strip_suffix('"').filter(|text| !text.contains('$'));
    }
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if text.is_empty() || !text.chars().all(is_word) {
        return None;
    }
    match text {
        "y" | "m" => Some("y"),
        "n" => Some("n"),
        _ if text.parse::<i64>().is_ok() || text.starts_with("0x") => Some(text),
        _ => Some(config.get(text).map_or("n", |value| value.trim_matches('"'))),
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
            ("N=8 && TEXT=\"arm\"", Some(true)),
            ("N>4 && N < 16", Some(true)),
            ("!A || N >= 10", Some(false)),
            ("A || $(x)", Some(true)),
            ("64BIT && !(A && B)", Some(true)),
            ("32BIT", Some(false)),
            ("\"$(ARCH)\" = \"arm\"", None),
            ("TEXT=\"a || b\" || (B)", Some(false)),
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
