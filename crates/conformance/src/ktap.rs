//! Output of results as KTAP version 1.
//! Not here: running the suite (`runner`).
//! Facts: `Documentation/dev-tools/ktap.rst` of the Linux tree.

use std::fmt;
use std::io::{self, Write};
use std::str::FromStr;

use super::item::{Item, Outcome};
use super::subject::Evidence;

/// Numbers of items per outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Promises kept.
    pub passed: usize,
    /// Promises broken.
    pub failed: usize,
    /// Promises not tested.
    pub skipped: usize,
    /// Promises that cannot hold on this driver, whose documented alternative holds.
    pub differing: usize,
}

impl Totals {
    /// Number of items.
    #[must_use]
    pub fn all(self) -> usize {
        self.passed + self.failed + self.skipped + self.differing
    }
}

/// The counts as one word, which [`FromStr`] reads.
impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{},{},{}", self.passed, self.failed, self.skipped, self.differing)
    }
}

impl FromStr for Totals {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let counts: Result<Vec<usize>, _> = text.split(',').map(str::parse).collect();
        match counts.as_deref() {
            Ok(&[passed, failed, skipped, differing]) => Ok(Self { passed, failed, skipped, differing }),
            _ => Err("it takes four counts: passed, failed, skipped, differing".to_owned()),
        }
    }
}

/// Writes results one by one, flushing each, so that a later hang hides nothing.
pub struct Ktap<W: Write> {
    out: W,
    about: String,
    totals: Totals,
    /// Lines for the summary: everything that did not simply pass.
    remarks: Vec<String>,
}

/// Joins lines: KTAP has no continuation lines.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl<W: Write> Ktap<W> {
    /// Writes the header and the plan.
    ///
    /// # Errors
    /// The writer's error.
    pub fn begin(mut out: W, planned: usize, context: &str, evidence: &Evidence) -> io::Result<Self> {
        writeln!(out, "KTAP version 1")?;
        writeln!(out, "1..{planned}")?;
        writeln!(out, "# {}, Linux {}, {context}", evidence.kind, evidence.release_name)?;
        for finding in &evidence.findings {
            writeln!(out, "# evidence: {finding}")?;
        }
        out.flush()?;
        Ok(Self::resume(out, evidence, Totals::default()))
    }

    /// Goes on after these results, whose lines were written before.
    pub fn resume(out: W, evidence: &Evidence, totals: Totals) -> Self {
        let about = format!("the {}, Linux {}", evidence.kind, evidence.release_name);
        Self { out, about, totals, remarks: Vec::new() }
    }

    /// Follows results that another process writes, about this driver.
    pub(super) fn follow(out: W) -> Self {
        Self { out, about: "a driver".to_owned(), totals: Totals::default(), remarks: Vec::new() }
    }

    /// Passes a complete line of another process on, and counts it.
    pub(super) fn pass_on(&mut self, line: &str, differs: bool) -> io::Result<()> {
        self.out.write_all(line.as_bytes())?;
        let Totals { passed, failed, skipped, differing } = &mut self.totals;
        if line.starts_with("not ok ") {
            *failed += 1;
        } else if line.starts_with("ok ") {
            *(match line.contains(" # SKIP ") {
                true => skipped,
                false if differs => differing,
                false => passed,
            }) += 1;
        }
        Ok(())
    }

    /// Writes a comment.
    pub(super) fn remark(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.out, "# {}", one_line(text))?;
        self.out.flush()
    }

    /// Names the driver that the results are about.
    pub(super) fn is_about(&mut self, driver: &str) {
        self.about = format!("the {driver}");
    }

    /// The counts so far.
    pub(super) fn totals(&self) -> Totals {
        self.totals
    }

    /// Flushes the writer.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Writes one item's result, after its diagnostics.
    ///
    /// # Errors
    /// The writer's error.
    pub fn item(&mut self, item: &Item, outcome: &Outcome, notes: &[String]) -> io::Result<()> {
        let number = self.totals.all() + 1;
        let Totals { passed, failed, skipped, differing } = &mut self.totals;
        for note in notes {
            writeln!(self.out, "# {}: {}", item.id, one_line(note))?;
        }
        let name = format!("{number} {} {}", item.id, item.title);
        match outcome {
            Outcome::Passed => {
                *passed += 1;
                writeln!(self.out, "ok {name}")?;
            }
            Outcome::Skipped(why) => {
                *skipped += 1;
                writeln!(self.out, "ok {name} # SKIP {}", one_line(why))?;
                self.remarks.push(format!("skipped {}: {}", item.id, one_line(why)));
            }
            // No KTAP directive: the item was tested, and the driver behaves as documented.
            Outcome::Differs(why) => {
                *differing += 1;
                writeln!(self.out, "# {}: differs as documented: {}", item.id, one_line(why))?;
                writeln!(self.out, "ok {name}")?;
                self.remarks.push(format!("differs {}: {}", item.id, one_line(why)));
            }
            Outcome::Failed(why) => {
                *failed += 1;
                writeln!(self.out, "# {}: {}", item.id, one_line(why))?;
                writeln!(self.out, "not ok {name}")?;
                self.remarks.push(format!("failed {}", item.id));
            }
        }
        self.out.flush()
    }

    /// Skips these items, for this reason.
    ///
    /// # Errors
    /// The writer's error.
    pub fn skip(&mut self, items: &[&Item], why: &str) -> io::Result<()> {
        items.iter().try_for_each(|item| self.item(item, &Outcome::Skipped(why.to_owned()), &[]))
    }

    /// Writes and returns the totals, with every item that did not simply pass.
    ///
    /// # Errors
    /// The writer's error.
    pub fn end(mut self) -> io::Result<Totals> {
        let Totals { passed, failed, skipped, differing } = self.totals;
        let about = &self.about;
        for remark in &self.remarks {
            writeln!(self.out, "# {remark}")?;
        }
        writeln!(
            self.out,
            "# {} items on {about}: {passed} passed, {differing} differ as documented, {skipped} skipped, {failed} failed",
            self.totals.all()
        )?;
        writeln!(self.out, "# Totals: pass:{passed} fail:{failed} xfail:{differing} skip:{skipped}")?;
        self.out.flush()?;
        Ok(self.totals)
    }
}

#[cfg(test)]
mod tests {
    use super::super::subject::Kind;
    use super::*;
    use host::Release;

    #[test]
    fn counts_are_read_back() {
        let totals = Totals { passed: 3, failed: 1, skipped: 0, differing: 2 };
        assert_eq!(totals.to_string().parse(), Ok(totals));
        assert!(["", "1,2,3", "1,2,3,x"].iter().all(|bad| bad.parse::<Totals>().is_err()));
    }

    #[test]
    fn every_outcome_has_its_line() {
        let item = Item { id: "WR-03", title: "a read starts with BR_NOOP", ..Item::PLAIN };
        let evidence = Evidence {
            kind: Kind::C,
            release: Release(7, 2),
            release_name: "7.2.13".into(),
            inherit: embedded::Inherit::Nice,
            findings: vec!["seen".into()],
        };
        let mut out = Vec::new();
        let mut ktap = Ktap::begin(&mut out, 4, "/dev/binder", &evidence).expect("memory");
        ktap.item(&item, &Outcome::Passed, &["a\nnote".into()]).expect("memory");
        ktap.item(&item, &Outcome::Skipped("no #1\nreason".into()), &[]).expect("memory");
        ktap.item(&item, &Outcome::Failed("expected 1, got 2".into()), &[]).expect("memory");
        ktap.item(&item, &Outcome::Differs("by\nnature".into()), &[]).expect("memory");
        let totals = Totals { passed: 1, failed: 1, skipped: 1, differing: 1 };
        assert_eq!(ktap.end().expect("memory"), totals);
        let want = "KTAP version 1\n1..4\n# C driver, Linux 7.2.13, /dev/binder\n# evidence: seen\n\
            # WR-03: a note\nok 1 WR-03 a read starts with BR_NOOP\n\
            ok 2 WR-03 a read starts with BR_NOOP # SKIP no #1 reason\n\
            # WR-03: expected 1, got 2\nnot ok 3 WR-03 a read starts with BR_NOOP\n\
            # WR-03: differs as documented: by nature\nok 4 WR-03 a read starts with BR_NOOP\n\
            # skipped WR-03: no #1 reason\n# failed WR-03\n# differs WR-03: by nature\n\
            # 4 items on the C driver, Linux 7.2.13: 1 passed, 1 differ as documented, 1 skipped, 1 failed\n\
            # Totals: pass:1 fail:1 xfail:1 skip:1\n";
        assert_eq!(String::from_utf8(out).expect("text"), want);
    }
}
