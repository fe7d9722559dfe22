//! Resolves kernel addresses: functions from `/proc/kallsyms`, texts from `printk_formats`.

use crate::event::{CodeLocation, Name, Names};
use crate::number;
use crate::symbol;
use std::collections::HashMap;

/// Longest text that is kept, in bytes: each event that refers to it prints it anew.
/// Fact: the kernel's buffer for a printed text has 1024.
const LONGEST: usize = 1024;

/// Functions and texts of the recording.
#[derive(Debug, Default)]
pub(super) struct Symbols {
    /// Sorted by address.
    functions: Vec<(u64, Box<str>)>,
    texts: HashMap<u64, Box<str>>,
}

impl Symbols {
    pub(super) fn new(kallsyms: &[u8], printk_formats: &[u8]) -> Self {
        let mut functions: Vec<_> = lines(kallsyms)
            .filter_map(|line| {
                let mut words = line.split_ascii_whitespace();
                let address = number::hex(words.next()?.as_bytes()).filter(|address| *address != 0)?;
                let name = symbol::bare(words.nth(1)?.as_bytes());
                Some((address, std::str::from_utf8(name).ok()?.into()))
            })
            .collect();
        functions.sort_by_key(|(address, _)| *address);
        let texts = lines(printk_formats).filter_map(|line| {
            let (address, text) = line.split_once(" : ")?;
            let address = number::hex(address.strip_prefix("0x")?.as_bytes())?;
            let text = text.strip_prefix('"')?.strip_suffix('"')?;
            let text = &text[..text.floor_char_boundary(LONGEST)];
            Some((address, text.replace("\\n", "\n").replace("\\t", "\t").replace("\\\"", "\"").into()))
        });
        Self { functions, texts: texts.collect() }
    }

    /// Function that contains an address.
    pub(super) fn place(&self, address: u64, names: &mut Names) -> CodeLocation {
        let after = self.functions.partition_point(|(start, _)| *start <= address);
        let found = after.checked_sub(1).and_then(|at| self.functions.get(at));
        CodeLocation { address, symbol: found.map_or(Name::NONE, |(_, name)| names.intern(name)) }
    }

    /// Text at an address.
    pub(super) fn text(&self, address: u64) -> Option<&str> {
        self.texts.get(&address).map(|text| &**text)
    }
}

fn lines(text: &[u8]) -> impl Iterator<Item = &str> {
    text.split(|byte| *byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_get_the_name_before_them() {
        let mut names = Names::default();
        let symbols = Symbols::new(
            b"20 T second\n10 t first\t[module]\n0 A absolute\nx\n",
            b"0x5 : \"a\\n\"\n6 : \"b\"\n",
        );
        let mut name = |address| {
            let place = symbols.place(address, &mut names);
            names.text(place.symbol).to_owned()
        };
        assert_eq!([name(0xf), name(0x10), name(0x1f), name(0x2f)], ["", "first", "first", "second"]);
        assert_eq!((symbols.text(5), symbols.text(6)), (Some("a\n"), None));
    }
}
