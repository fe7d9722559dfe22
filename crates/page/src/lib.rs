//! Pages: HTML templates with one way of escaping, the document around a page's body, and axes of charts.
//! Not here: the content of pages (`record::render::report`, `trace::picture`).
//!
//! Every value in a template is escaped unless the template says `| safe`. Filters in addition to minijinja's:
//! `share` writes 0 to 1 as a percentage for an attribute; `lines` escapes each line of a text and keeps the line
//! breaks; `prose` does that, too, and sets what a line has between backticks as code.

#![forbid(unsafe_code)]

mod axis;

pub use axis::Axis;

use std::fmt::{self, Write};

use minijinja::value::{Serde, Value};
use minijinja::{AutoEscape, Environment, Error, Output, State, escape_formatter};
use serde::Serialize;

/// An error in a template, not in its values.
#[derive(Debug)]
pub struct TemplateError(Error);

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a page's template could not be filled in: {:#}", self.0)
    }
}

impl std::error::Error for TemplateError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

/// Renders a template with these values.
///
/// # Errors
/// [`TemplateError`] if the template does not parse or uses a value wrongly.
pub fn render(template: &str, values: &impl Serialize) -> Result<String, TemplateError> {
    let mut engine = Environment::new();
    // Output of a macro then counts as escaped.
    engine.set_auto_escape_callback(|_| AutoEscape::Html);
    engine.set_formatter(write_escaped);
    engine.add_filter("share", |share: f64| format!("{:.4}%", share * 100.0));
    engine.add_filter("lines", |text: String| {
        let lines: Vec<String> = text.lines().map(|line| Escaped(line).to_string()).collect();
        Value::from_safe_string(lines.join("\n"))
    });
    engine.add_filter("prose", |text: String| {
        let lines: Vec<String> = text.lines().map(|line| Prose(line).to_string()).collect();
        Value::from_safe_string(lines.join("\n"))
    });
    engine.render_str(template, Value::from(Serde(values))).map_err(TemplateError)
}

fn write_escaped(out: &mut Output, state: &mut State, value: &Value) -> Result<(), Error> {
    match value.as_str() {
        Some(text) if !value.is_safe() => write!(out, "{}", Escaped(text)).map_err(Error::from),
        Some(text) => out.write_str(text).map_err(Error::from),
        None => escape_formatter(out, state, value),
    }
}

/// A complete document without external files, scripts or network access. `style` and `body` are inserted without
/// escaping.
#[must_use]
pub fn document(title: &str, style: &str, body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
        <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
        <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
        <title>{}</title>\n<style>\n{}\n</style>\n</head>\n<body>\n{}\n</body>\n</html>\n",
        Escaped(title),
        style.trim_end(),
        body.trim_end()
    )
}

/// Text for an element or a quoted attribute.
///
/// Control characters are not valid in a page, and bidirectional controls would let a name rearrange the sentence
/// around it: each becomes U+FFFD.
struct Escaped<'t>(&'t str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                '\n' | '\t' => f.write_char(' ')?,
                '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{61c}' => {
                    f.write_char('\u{fffd}')?;
                }
                _ if character.is_control() || matches!(character, '\u{fffe}' | '\u{ffff}') => {
                    f.write_char('\u{fffd}')?;
                }
                _ => f.write_char(character)?,
            }
        }
        Ok(())
    }
}

/// A sentence whose commands and options are between backticks. No line breaks behind an option's hyphens.
struct Prose<'t>(&'t str);

impl fmt::Display for Prose<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some((before, code, after)) = next_code(rest) {
            write!(f, "{}<code>", Escaped(before))?;
            for (at, word) in code.split(' ').enumerate() {
                let gap = if at > 0 { " " } else { "" };
                if word.starts_with('-') {
                    write!(f, "{gap}<span class=\"option\">{}</span>", Escaped(word))?;
                } else {
                    write!(f, "{gap}{}", Escaped(word))?;
                }
            }
            f.write_str("</code>")?;
            rest = after;
        }
        write!(f, "{}", Escaped(rest))
    }
}

/// The text before the first code, that code, and the text behind it.
fn next_code(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once('`')?;
    let (code, after) = rest.split_once('`')?;
    Some((before, code, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct Values<'t> {
        text: &'t str,
        part: f64,
        number: u64,
    }

    #[test]
    fn nothing_in_a_value_is_markup() {
        let hostile = "</title><script>alert('x')</script>&\"\u{202e}\u{1}\n";
        let values = Values { text: hostile, part: 0.25, number: 7 };
        let escaped = render("{{ text }}", &values).expect("a sound template");
        assert!(!escaped.contains(['<', '>', '"', '\'', '\u{202e}', '\u{1}', '\n']), "{escaped}");
        assert!(!document(hostile, "", "").contains("<script"));
        let values = Values { text: "a & b/c\n<d>", ..values };
        let page = render("{{ text }} {{ part | share }} {{ number }} {{ text | safe }}", &values);
        assert_eq!(page.expect("a sound template"), "a &amp; b/c &lt;d&gt; 25.0000% 7 a & b/c\n<d>");
        assert_eq!(render("{{ text | lines }}", &values).expect("sound"), "a &amp; b/c\n&lt;d&gt;");
        let of_macro = "{% macro bold(of) %}<b>{{ of }}</b>{% endmacro %}{{ bold(text) }}";
        assert_eq!(render(of_macro, &values).expect("sound"), "<b>a &amp; b/c &lt;d&gt;</b>");
        assert!(render("{% for %}", &values).is_err());
    }

    #[test]
    fn backticks_make_code_and_nothing_else() {
        let prose = |text| {
            render("{{ text | prose }}", &Values { text, part: 0.0, number: 0 }).expect("a sound template")
        };
        assert_eq!(
            prose("see `run --trace <b>`, it's `x`"),
            "see <code>run <span class=\"option\">--trace</span> &lt;b&gt;</code>, it&#39;s <code>x</code>"
        );
        assert_eq!(prose("`a`\nb"), "<code>a</code>\nb");
        assert_eq!(prose("one ` alone <i>"), "one ` alone &lt;i&gt;");
    }
}
