//! Places of the driver that programs reach, where the kernel has KCOV.
//! Not here: programs that are made from them (`corpus`).

use std::collections::BTreeSet;

use sys::kcov::Coverage;

/// A place: the lower half of its address, since the upper half is the same all over a kernel.
pub type Spot = u32;

/// Notes of one thread; none where the kernel has no KCOV.
pub(crate) struct Notes(Option<Coverage>);

impl Notes {
    /// Those of the calling thread from now on.
    pub(crate) fn begin() -> Self {
        // Without it programs are chosen by their seeds alone, as everywhere else.
        Self(Coverage::begin().ok())
    }

    /// Places since the last call.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = Spot> {
        self.0.iter_mut().flat_map(Coverage::take).map(|address| address as Spot)
    }
}

/// First word of [`text`], so that no answer is empty.
const WORD: &str = "fuzz-reached";

/// Places as a line.
pub(crate) fn text(spots: &BTreeSet<Spot>) -> String {
    let words = spots.iter().map(|spot| format!(" {spot:x}"));
    format!("{WORD}{}", words.collect::<String>())
}

/// Places from a line; `None` if it is another.
pub(crate) fn parse(text: &str) -> Option<BTreeSet<Spot>> {
    let rest = text.strip_prefix(WORD)?;
    rest.split_whitespace().map(|word| Spot::from_str_radix(word, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_as_they_are_written_and_other_lines_are_none() {
        let spots = BTreeSet::from([7, 0xffff_0001]);
        assert_eq!(text(&spots), "fuzz-reached 7 ffff0001");
        assert_eq!(parse(&text(&spots)), Some(spots));
        assert_eq!(parse(&text(&BTreeSet::new())), Some(BTreeSet::new()));
        for other in ["8", "ok", "hangs", "", "fuzz-reached x"] {
            assert_eq!(parse(other), None, "{other}");
        }
    }
}
