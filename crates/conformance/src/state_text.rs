//! Parses the driver's state files: blocks of lines, and lines by templates.
//! Not here: where the text comes from (`subject`), what it must contain (`state`).

use std::collections::BTreeMap;
use std::str::FromStr;

use super::check::{Stop, required};

/// The values of a template's names in one line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Fields(BTreeMap<String, String>);

impl Fields {
    /// Matches a line with a template, word by word. A word may hold several `{name}`s with text between them.
    /// Indentation counts, the number of blanks between words does not.
    pub(super) fn read(template: &str, line: &str) -> Option<Self> {
        let indent = |text: &str| text.len() - text.trim_start().len();
        let (want, got): (Vec<_>, Vec<_>) =
            (template.split_whitespace().collect(), line.split_whitespace().collect());
        if indent(template) != indent(line) || want.len() != got.len() {
            return None;
        }
        let mut fields = BTreeMap::new();
        for (want, got) in want.into_iter().zip(got) {
            read_word(want, got, &mut fields)?;
        }
        Some(Self(fields))
    }

    /// The value of a name.
    pub(super) fn text(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    /// The values of several names.
    pub(super) fn texts<const N: usize>(&self, names: [&str; N]) -> [&str; N] {
        names.map(|name| self.text(name))
    }

    /// The value of a name as a decimal number.
    pub(super) fn number<N: FromStr>(&self, name: &str) -> Result<N, Stop> {
        required(self.text(name).parse().ok(), || format!("{name} is not a number: {:?}", self.text(name)))
    }

    /// The value of a name as a hexadecimal number.
    pub(super) fn hex(&self, name: &str) -> Result<u64, Stop> {
        let number = u64::from_str_radix(self.text(name), 16).ok();
        required(number, || format!("{name} is not a hexadecimal number: {:?}", self.text(name)))
    }
}

/// Matches one word; a name ends at the first occurrence of the text after it.
fn read_word(mut template: &str, mut word: &str, fields: &mut BTreeMap<String, String>) -> Option<()> {
    while let Some((head, rest)) = template.split_once('{') {
        let (name, rest) = rest.split_once('}')?;
        word = word.strip_prefix(head)?;
        let until = rest.split('{').next().unwrap_or_default();
        let end = if until.is_empty() { word.len() } else { word.find(until)? };
        fields.insert(name.to_owned(), word[..end].to_owned());
        (template, word) = (rest, &word[end..]);
    }
    (template == word).then_some(())
}

/// The state of one open context: the lines after `proc` and `context`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) pid: u32,
    pub(super) context: String,
    pub(super) lines: Vec<String>,
}

impl Block {
    /// The first line that matches one of the templates, with values for which `wanted` holds.
    pub(super) fn find(&self, templates: &[&str], wanted: impl Fn(&Fields) -> bool) -> Result<Fields, Stop> {
        let read = |line: &String| templates.iter().find_map(|template| Fields::read(template, line));
        let found = self.lines.iter().filter_map(read).find(wanted);
        required(found, || format!("no line as {:?} wanted among: {}", templates[0], self.lines.join(" / ")))
    }
}

/// This process's blocks in a text with a title line.
pub(super) fn own_blocks(text: &str) -> Result<Vec<Block>, Stop> {
    let mut blocks: Vec<Block> = Vec::new();
    for line in text.lines().skip(1) {
        if let Some(fields) = Fields::read("proc {pid}", line) {
            blocks.push(Block { pid: fields.number("pid")?, context: String::new(), lines: Vec::new() });
        } else if let Some(block) = blocks.last_mut() {
            match line.strip_prefix("context ") {
                Some(name) if block.lines.is_empty() => block.context = name.to_owned(),
                _ => block.lines.push(line.to_owned()),
            }
        }
    }
    blocks.retain(|block| block.pid == std::process::id());
    Ok(blocks)
}

/// This process's block that has a line matching the template and `wanted`.
pub(super) fn block_with(
    text: &str,
    template: &str,
    wanted: impl Fn(&Fields) -> bool,
) -> Result<Block, Stop> {
    let blocks = own_blocks(text)?;
    let count = blocks.len();
    let found = blocks.into_iter().find(|block| block.find(&[template], &wanted).is_ok());
    required(found, || format!("none of this process's {count} blocks has the wanted line as {template:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_may_hold_several_names() {
        let fields = Fields::read("x {a}+{b}/{c}: l={d}ms", "x 1+2/3: l=4ms").expect("the same words");
        assert_eq!(["a", "b", "c", "d"].map(|name| fields.text(name)), ["1", "2", "3", "4"]);
        assert_eq!(Fields::read("{a}:{b}", "1.2"), None);
        assert_eq!(Fields::read("{a}ms", "1msx"), None);
    }

    #[test]
    fn a_line_is_read_by_the_template_of_its_words() {
        let template = "  thread {tid}: l {l} need_return {r}";
        let fields = Fields::read(template, "  thread 46: l 1a need_return 0").expect("the same words");
        assert_eq!((fields.number("tid"), fields.hex("l"), fields.text("r")), (Ok(46_u32), Ok(0x1a), "0"));
        assert!(fields.number::<u32>("l").is_err() && fields.hex("nothing").is_err());
        for other in [
            "thread 46: l 02 need_return 0",
            "  thread 46: l 02 need_return",
            "  node 46: l 02 need_return 0",
        ] {
            assert_eq!(Fields::read(template, other), None, "{other}");
        }
    }

    #[test]
    fn blocks_are_told_apart_by_what_stands_in_them() {
        let own = std::process::id();
        let text = format!(
            "binder state:\nproc {own}\ncontext a\n  ref 1: x\nproc 0\ncontext b\n  node 2: x\n\
             proc {own}\ncontext c\n  node 3: x\n"
        );
        assert_eq!(own_blocks(&text).expect("numbers").len(), 2);
        let block = block_with(&text, "  node {id}: x", |fields| fields.text("id") == "3").expect("there");
        assert_eq!((block.context.as_str(), block.lines.len()), ("c", 1));
        assert!(block_with(&text, "  node {id}: x", |fields| fields.text("id") == "2").is_err());
    }
}
