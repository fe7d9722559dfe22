//! Parser for options with a few possible values of a type that does not implement clap's `ValueEnum`.
//! Not here: the values' names (each type's `Display`).

use std::fmt::Display;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// A parser for one of these values.
pub(super) fn of<T>(values: impl IntoIterator<Item = T>) -> impl TypedValueParser<Value = T>
where
    T: Display + Clone + Send + Sync + 'static,
{
    let values: Vec<(String, T)> = values.into_iter().map(|value| (value.to_string(), value)).collect();
    let words: Vec<String> = values.iter().map(|(word, _)| word.clone()).collect();
    PossibleValuesParser::new(words).try_map(move |given| {
        let row = values.iter().find(|(word, _)| *word == given);
        row.map(|(_, value)| value.clone()).ok_or("none of the values")
    })
}

/// Values with the word and the help of each; no help if it is empty.
pub(super) type Table<T, const N: usize> = [(T, &'static str, &'static str); N];

/// Both positions of a switch.
pub(super) const ON_OFF: Table<bool, 2> = [(true, "on", ""), (false, "off", "")];

/// A parser for one of these values by its word.
pub(super) fn table<T>(rows: &'static [(T, &'static str, &'static str)]) -> impl TypedValueParser<Value = T>
where
    T: Clone + Send + Sync + 'static,
{
    let shown = |(_, word, help): &(T, &'static str, &'static str)| {
        let value = PossibleValue::new(*word);
        if help.is_empty() { value } else { value.help(*help) }
    };
    PossibleValuesParser::new(rows.iter().map(shown)).try_map(|given| {
        let row = rows.iter().find(|(_, word, _)| *word == given);
        row.map(|(value, ..)| value.clone()).ok_or("none of the values")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bench::plan::Driver;
    use clap::{Arg, Command};

    #[test]
    fn a_word_means_its_row() {
        let argument = Arg::new("switch").value_parser(table(&ON_OFF));
        let command = Command::new("x").no_binary_name(true).arg(argument);
        let read = |word: &str| command.clone().try_get_matches_from([word]);
        assert_eq!(read("off").expect("a row").get_one("switch"), Some(&false));
        assert!(read("maybe").expect_err("no row").to_string().contains("on, off"));
    }

    #[test]
    fn a_value_is_one_of_those() {
        let read = |word: &str| {
            let argument = Arg::new("driver").value_parser(of([Driver::Auto, Driver::Kernel]));
            let command = Command::new("x").no_binary_name(true).arg(argument);
            command.try_get_matches_from([word]).map(|found| found.get_one::<Driver>("driver").copied())
        };
        assert_eq!(read("kernel").expect("one of them"), Some(Driver::Kernel));
        let wrong = read("kernal").expect_err("a slip").to_string();
        assert!(wrong.contains("auto, kernel") && wrong.contains("similar"), "{wrong}");
        assert!(read("embedded").is_err(), "not among those");
    }
}
