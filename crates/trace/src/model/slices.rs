//! Names of slices, each kept once; and the owner of a lock that a slice names.
//! Not here: open slices (`history`), methods in names (`method`).
//! Facts: ART's `monitor.cc` writes `monitor contention with owner NAME (TID) at METHOD(FILE:LINE) waiters=N blocking from
//! METHOD(FILE:LINE)`, its `mutex-inl.h` `Lock contention on LOCK (owner tid: TID)`.

use std::collections::HashMap;

use units::visible::printable;

use crate::cause::SliceName;
use crate::hash::FastHash;

/// Maximum number of names; further ones stay unknown.
const MOST: usize = 1 << 16;
/// Maximum bytes kept of one name: a contention names two methods.
const LONGEST: usize = 512;

/// Table of slice names.
#[derive(Clone, Debug, Default)]
pub(crate) struct SliceNames {
    texts: Vec<Box<str>>,
    known: HashMap<Box<str>, SliceName, FastHash>,
    /// Owners of locks: the first name that has each.
    owners: HashMap<i32, SliceName, FastHash>,
}

impl SliceNames {
    /// The name of this text, which becomes one line ([`printable`]), added if there is room.
    pub(super) fn intern(&mut self, text: &str) -> SliceName {
        let text = printable(&text[..text.floor_char_boundary(LONGEST)]);
        let text = &text[..text.floor_char_boundary(LONGEST)];
        if let Some(known) = self.known.get(text) {
            return *known;
        }
        let Some(next) = u32::try_from(self.texts.len() + 1).ok().filter(|_| self.texts.len() < MOST) else {
            return SliceName::NONE;
        };
        if text.is_empty() {
            return SliceName::NONE;
        }
        if let Some(owner) = Owner::parse(text).filter(|owner| owner.name.is_some()) {
            self.owners.entry(owner.tid).or_insert(SliceName(next));
        }
        self.texts.push(text.into());
        self.known.insert(text.into(), SliceName(next));
        SliceName(next)
    }

    /// Name of a thread that a slice names as the owner of a lock.
    pub(crate) fn owner(&self, tid: i32) -> Option<&str> {
        self.owners.get(&tid).and_then(|slice| Owner::parse(self.text(*slice))?.name)
    }

    /// Text of a name; empty for [`SliceName::NONE`].
    pub(crate) fn text(&self, name: SliceName) -> &str {
        let index = (name.0 as usize).checked_sub(1);
        index.and_then(|index| self.texts.get(index)).map_or("", |text| text)
    }
}

/// Owner of a lock, as the waiter's slice names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner<'t> {
    /// The owner's thread ID.
    pub(crate) tid: i32,
    /// Its name, if the slice has it.
    pub(crate) name: Option<&'t str>,
    /// The lock: `monitor`, or its name.
    pub(crate) lock: &'t str,
    /// Where the owner took it, `CLASS.METHOD`, if the slice says so.
    pub(crate) place: Option<&'t str>,
}

impl<'t> Owner<'t> {
    /// Reads the name of a contention slice; `None` if it names no owner.
    pub(crate) fn parse(slice: &'t str) -> Option<Self> {
        let tid = |text: &str| text.trim().parse().ok().filter(|tid| *tid > 0);
        if let Some(rest) = slice.strip_prefix("monitor contention with owner ") {
            // The owner's name may contain anything, so its number is before the first `) at `.
            let (who, place) = match rest.split_once(") at ") {
                Some((who, place)) => (who, method(place)),
                None => (rest.strip_suffix(')')?, None),
            };
            let (name, number) = who.rsplit_once('(')?;
            let name = Some(name.trim()).filter(|name| !name.is_empty());
            return Some(Self { tid: tid(number)?, name, lock: "monitor", place });
        }
        let (lock, rest) = slice.strip_prefix("Lock contention on ")?.split_once(" (owner tid: ")?;
        let lock = if lock == "a monitor lock" { "monitor" } else { lock };
        Some(Self { tid: tid(rest.split_once(')')?.0)?, name: None, lock, place: None })
    }
}

/// `CLASS.METHOD` of `RETURNS PACKAGE.CLASS.METHOD(ARGUMENTS)(FILE:LINE)`.
fn method(place: &str) -> Option<&str> {
    let name = place.split_once('(').map_or(place, |(name, _)| name);
    let name = name.rsplit_once(' ').map_or(name, |(_, name)| name);
    let class = name.rsplit_once('.').map_or(name, |(class, _)| class);
    let from = class.rfind('.').map_or(0, |dot| dot + 1);
    name.get(from..).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_contention_names_its_owner() {
        for (slice, want) in [
            (
                "monitor contention with owner Binder:1210_3 (1533) at void com.android.server.wm.WindowManagerGlobalLock.\
                 run(int, java.lang.String)(WindowManagerService.java:12) waiters=2 blocking from int x.Y.z()(Y.java:1)",
                Some((1533, Some("Binder:1210_3"), "monitor", Some("WindowManagerGlobalLock.run"))),
            ),
            (
                "monitor contention with owner a (b) (7) at run(X.java:1)",
                Some((7, Some("a (b)"), "monitor", Some("run"))),
            ),
            ("monitor contention with owner main (9)", Some((9, Some("main"), "monitor", None))),
            ("monitor contention with owner t9", None),
            ("monitor contention with owner t (-1) at x", None),
            ("Lock contention on a monitor lock (owner tid: 12)", Some((12, None, "monitor", None))),
            (
                "Lock contention on thread list lock (owner tid: 45)",
                Some((45, None, "thread list lock", None)),
            ),
            ("Lock contention on thread list lock (owner tid: 0)", None),
            ("Lock contention on thread list lock", None),
            ("Contending for pthread mutex", None),
        ] {
            let want = want.map(|(tid, name, lock, place)| Owner { tid, name, lock, place });
            assert_eq!(Owner::parse(slice), want, "{slice}");
        }
    }

    #[test]
    fn a_name_is_kept_once_and_a_forged_trace_cannot_fill_memory_with_them() {
        let mut names = SliceNames::default();
        let one = names.intern("dequeueBuffer");
        assert_eq!(names.intern("dequeueBuffer"), one);
        assert_eq!((names.text(one), names.text(SliceName::NONE)), ("dequeueBuffer", ""));
        for long in ["ä", "\u{1b}"] {
            let long = names.intern(&long.repeat(1000));
            assert_eq!(names.text(long).len(), LONGEST);
        }
        let forged = names.intern("a\n0 calls late");
        assert_eq!(names.text(forged), "a 0 calls late", "a name begins no line");
        for number in 0..2 * MOST {
            names.intern(&number.to_string());
        }
        assert_eq!(names.texts.len(), MOST);
        assert_eq!(names.intern("another"), SliceName::NONE);
    }
}
