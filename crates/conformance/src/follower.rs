//! The results of a run in a guest, as they pass through its host: where the guest goes down, the item that ran has failed,
//! and the run can go on behind it in a new guest.
//! Not here: guests (`vm`), the lines (`ktap`).

use std::io::{self, Write};

use super::item::{Item, Outcome};
use super::ktap::{Ktap, Totals};

/// Results on their way to a writer.
pub struct Follower<W: Write> {
    ktap: Ktap<W>,
    /// Items in the order of the run.
    items: Vec<&'static Item>,
    /// The line that has not ended.
    begun: String,
    /// Whether the next result is of an item that differs as documented.
    differs: bool,
    /// Whether there was a plan.
    planned: bool,
}

impl<W: Write> Follower<W> {
    /// Follows a run of these items.
    pub fn new(out: W, items: Vec<&'static Item>) -> Self {
        Self { ktap: Ktap::follow(out), items, begun: String::new(), differs: false, planned: false }
    }

    /// Whether the run has begun.
    pub fn has_begun(&self) -> bool {
        self.planned
    }

    /// The item that runs, or runs next; `None`: each has its result.
    pub fn current(&self) -> Option<&'static Item> {
        self.items.get(self.totals().all()).copied()
    }

    /// The counts so far.
    pub fn totals(&self) -> Totals {
        self.ktap.totals()
    }

    /// Gives the item that ran the result that the guest went down, for this reason of several lines.
    ///
    /// # Errors
    /// The writer's error.
    pub fn lost(&mut self, why: &str) -> io::Result<()> {
        self.end_line()?;
        let Some(item) = self.current() else { return Ok(()) };
        let mut lines = why.lines();
        let first = lines.next().unwrap_or_default().trim_end_matches("; its console:");
        let console = |line: &str| format!("console: {}", line.trim_start().trim_start_matches("| "));
        let notes: Vec<String> = lines.map(console).collect();
        self.ktap.item(item, &Outcome::Failed(format!("while it ran {first}")), &notes)
    }

    /// Writes a comment.
    ///
    /// # Errors
    /// The writer's error.
    pub fn remark(&mut self, text: &str) -> io::Result<()> {
        self.end_line()?;
        self.ktap.remark(text)
    }

    /// Skips the items that have no result, for this reason, and writes the totals.
    ///
    /// # Errors
    /// The writer's error.
    pub fn end(mut self, why: &str) -> io::Result<Totals> {
        self.end_line()?;
        let rest = &self.items[self.totals().all().min(self.items.len())..];
        self.ktap.skip(rest, why)?;
        self.ktap.end()
    }

    /// Drops the beginning of a line that nobody will end.
    fn end_line(&mut self) -> io::Result<()> {
        let begun = std::mem::take(&mut self.begun);
        if begun.is_empty() { Ok(()) } else { self.ktap.remark(&format!("cut off: {begun}")) }
    }

    fn line(&mut self, line: &str) -> io::Result<()> {
        self.planned |= line.starts_with("1..");
        if let Some((driver, _)) = line.strip_prefix("# ").and_then(|rest| rest.rsplit_once(", "))
            && driver.contains(" driver, Linux ")
            && !driver.contains(" items on ")
        {
            self.ktap.is_about(driver);
        }
        self.ktap.pass_on(line, self.differs)?;
        if line.starts_with("ok ") || line.starts_with("not ok ") {
            self.differs = false;
        } else {
            self.differs |= line.contains(": differs as documented: ");
        }
        Ok(())
    }
}

impl<W: Write> Write for Follower<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.begun.push_str(&String::from_utf8_lossy(bytes));
        while let Some(end) = self.begun.find('\n') {
            let rest = self.begun.split_off(end + 1);
            let line = std::mem::replace(&mut self.begun, rest);
            self.line(&line)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.ktap.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_that_goes_down_fails_the_item_that_ran() {
        let items = crate::select("WR-01,WR-02,WR-03,WR-04");
        let title = |at: usize| format!("{} {}", items[at].id, items[at].title);
        let mut out = Vec::new();
        let mut follower = Follower::new(&mut out, items.clone());
        assert!(!follower.has_begun());
        let head = "KTAP version 1\n1..4\n# C driver, Linux 7.2.13, /dev/binder\n";
        let first = format!("# WR-01: differs as documented: so\nok 1 {}\n", title(0));
        follower.write_all(format!("{head}{first}# WR-0").as_bytes()).expect("memory");
        assert!(follower.has_begun());
        assert_eq!(follower.current().map(|item| item.id), Some("WR-02"));
        follower.lost("the guest's kernel panicked (Fatal); its console:\n  | BUG: x").expect("memory");
        // The next guest.
        follower.write_all(format!("not ok 3 {}\n", title(2)).as_bytes()).expect("memory");
        assert_eq!(follower.totals(), Totals { failed: 2, differing: 1, ..Totals::default() });
        follower.end("enough").expect("memory");
        let text = String::from_utf8(out).expect("text");
        let want = format!(
            "{head}{first}# cut off: # WR-0\n# WR-02: console: BUG: x\n\
             # WR-02: while it ran the guest's kernel panicked (Fatal)\nnot ok 2 {}\nnot ok 3 {}\n\
             ok 4 {} # SKIP enough\n# failed WR-02\n# skipped WR-04: enough\n\
             # 4 items on the C driver, Linux 7.2.13: 0 passed, 1 differ as documented, 1 skipped, 2 failed\n\
             # Totals: pass:0 fail:2 xfail:1 skip:1\n",
            title(1),
            title(2),
            title(3)
        );
        assert_eq!(text, want);
    }
}
