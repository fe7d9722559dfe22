//! Filter of a run's cases: a regular expression over their names.
//! Not here: the names (`family`).
//! Facts: Google Benchmark searches (the match may lie anywhere in the name), an empty filter and `all` stand
//! for every case, a leading `-` negates.

use regex_lite::Regex;

/// A compiled filter and its text.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    text: String,
    negated: bool,
    /// `None` accepts every name.
    regex: Option<Regex>,
}

impl Filter {
    /// Compiles a filter.
    ///
    /// # Errors
    /// No regular expression; a message for the user, with the place of the error.
    pub fn new(text: &str) -> Result<Self, String> {
        let bare = text.strip_prefix('-');
        let regex = match bare.unwrap_or(text) {
            "" | "all" => None,
            expression => {
                let bad = |error| format!("could not compile benchmark re {text:?}: {error}");
                Some(Regex::new(expression).map_err(bad)?)
            }
        };
        Ok(Self { text: text.to_owned(), negated: bare.is_some(), regex })
    }

    /// Returns true if a case of this name is run.
    #[must_use]
    pub fn lets_through(&self, name: &str) -> bool {
        self.regex.as_ref().is_none_or(|regex| regex.is_match(name)) != self.negated
    }

    /// Returns the filter as typed.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_search_and_negate() {
        for (filter, name, want) in [
            ("", "BM_sendVec_binder/4", true),
            ("all", "BM_sendVec_binder/4", true),
            (".", "BM_sendVec_binder/4", true),
            ("binder", "BM_sendVec_binder/4", true),
            ("/4$", "BM_sendVec_binder/4", true),
            ("/4$", "BM_sendVec_binder/64", false),
            ("^BM_sendVec_binder/4$|^BM_sendVec_pipe/8$", "BM_sendVec_pipe/8", true),
            ("^sendVec", "BM_sendVec_binder/4", false),
            ("-pipe|unix", "BM_sendVec_unix/4", false),
            ("-pipe|unix", "BM_sendVec_binder/4", true),
            ("-", "BM_sendVec_binder/4", false),
            ("/(6)?4$", "BM_sendVec_binder/64", true),
            ("binder/[0-9]{3,4}$", "BM_sendVec_binder/128", true),
            ("binder/[0-9]{3,4}$", "BM_sendVec_binder/16384", false),
        ] {
            assert_eq!(Filter::new(filter).expect(filter).lets_through(name), want, "{filter} on {name}");
        }
    }

    #[test]
    fn a_broken_expression_is_quoted() {
        let error = Filter::new("BM_(").expect_err("unclosed");
        assert!(error.contains("BM_("), "{error}");
    }
}
