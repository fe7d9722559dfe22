//! Language of the phrases in the table of causes.
//! Not here: the phrases (`table`), the values that they are filled with (`verdict::text`).
//!
//! A phrase has alternatives, separated by `|`: the first one counts whose values are all known, or else the last one. `{name}` is a
//! value, `[...]` a part that is left out if one of its values is not known.

/// Fills a phrase; a value of the last alternative that is not known becomes `?`.
pub(crate) fn filled(phrase: &str, value: &dyn Fn(&str) -> Option<String>) -> String {
    let mut last = None;
    for alternative in phrase.split('|') {
        let (text, whole) = parts(alternative, value);
        if whole {
            return text;
        }
        last = Some(text);
    }
    last.unwrap_or_default()
}

/// An alternative with its values, and whether those outside of `[...]` are all known.
fn parts(alternative: &str, value: &dyn Fn(&str) -> Option<String>) -> (String, bool) {
    let (mut text, mut whole, mut rest) = (String::new(), true, alternative);
    while let Some((before, after)) = rest.split_once('[') {
        let (inside, behind) = after.split_once(']').unwrap_or((after, ""));
        let (required, known) = values(before, value);
        text.push_str(&required);
        whole &= known;
        let (optional, known) = values(inside, value);
        text.extend(known.then_some(optional));
        rest = behind;
    }
    let (required, known) = values(rest, value);
    (text + &required, whole && known)
}

/// A text with its values, and whether all are known.
fn values(text: &str, value: &dyn Fn(&str) -> Option<String>) -> (String, bool) {
    let (mut filled, mut known, mut rest) = (String::new(), true, text);
    while let Some((before, after)) = rest.split_once('{') {
        let (name, behind) = after.split_once('}').unwrap_or((after, ""));
        let found = value(name);
        known &= found.is_some();
        filled.push_str(before);
        filled.push_str(found.as_deref().unwrap_or("?"));
        rest = behind;
    }
    (filled + rest, known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_alternative_counts_whose_values_are_known() {
        let phrase = "{who} is in {place}[ until {end}]|[{who} ]waits[ in {place}]|{a}";
        let with = |known: &[(&str, &str)]| {
            filled(phrase, &|name| {
                known.iter().find(|(of, _)| *of == name).map(|(_, value)| (*value).to_owned())
            })
        };
        assert_eq!(with(&[("who", "t"), ("place", "f")]), "t is in f");
        assert_eq!(with(&[("who", "t"), ("place", "f"), ("end", "x")]), "t is in f until x");
        assert_eq!(with(&[("who", "t")]), "t waits");
        assert_eq!(with(&[]), "waits");
        assert_eq!(filled("{a} and {b}", &|name| (name == "a").then(|| "one".to_owned())), "one and ?");
    }
}
