//! Places of the driver that programs reach, where the kernel has KCOV.
//! Not here: programs that are made from them (`corpus`).

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
