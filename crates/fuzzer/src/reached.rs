//! Places of the driver that the threads of a player reach, where the kernel has KCOV.
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
}

/// Places that a process or a driver has reached.
#[derive(Default)]
pub(crate) struct Reached {
    all: BTreeSet<Spot>,
    /// Those that were not read.
    fresh: Vec<Spot>,
}

impl Reached {
    /// Takes what a thread noted.
    pub(crate) fn note(&mut self, notes: &mut Notes) {
        self.extend(notes.0.iter_mut().flat_map(Coverage::take).map(|address| address as Spot));
    }

    /// Takes places.
    pub(crate) fn extend(&mut self, spots: impl IntoIterator<Item = Spot>) {
        for spot in spots {
            if self.all.insert(spot) {
                self.fresh.push(spot);
            }
        }
    }

    /// Places that were reached for the first time since the last call.
    pub(crate) fn fresh(&mut self) -> Vec<Spot> {
        std::mem::take(&mut self.fresh)
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.all.len()
    }
}

/// Places as words.
pub(crate) fn text(spots: &[Spot]) -> String {
    spots.iter().map(|spot| format!("{spot:x}")).collect::<Vec<_>>().join(" ")
}

/// Places from words; what is no number is left out.
pub(crate) fn parse(text: &str) -> Vec<Spot> {
    text.split(' ').filter_map(|word| Spot::from_str_radix(word, 16).ok()).collect()
}
