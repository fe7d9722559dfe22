//! The words with which a test in a guest tells the profiler what it is about to measure.
//! Not here: the port that carries them.

/// A case that is about to be measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Announcement {
    /// Its name.
    pub case: String,
    /// Address of the instruction that is executed before each call.
    pub mark: u64,
    /// The kernel's symbols, as `/proc/kallsyms` has them.
    pub symbols: String,
}

const FIRST: &str = "profile ";
const LAST: &str = "profile-end";
/// Most bytes of symbols; a kernel with everything in has 10 MB.
const MOST_SYMBOLS: usize = 64 << 20;

impl Announcement {
    /// The words: a line with address and case, the symbols of code, and a last line.
    #[must_use]
    pub fn to_text(&self) -> String {
        let case: String = self.case.chars().filter(|letter| !letter.is_control()).collect();
        let code = self
            .symbols
            .lines()
            .filter(|line| matches!(line.split_whitespace().nth(1), Some("t" | "T" | "w" | "W")));
        let lines = code.map(|line| format!("{line}\n")).collect::<String>();
        format!("{FIRST}{:x} {case}\n{lines}{LAST}\n", self.mark)
    }
}

/// Puts an announcement together from the lines that arrive.
#[derive(Debug, Default)]
pub struct Reader {
    begun: Option<Announcement>,
}

impl Reader {
    /// Takes a line without its end; returns the announcement with its last line. A line that belongs to none is dropped.
    pub fn take(&mut self, line: &str) -> Option<Announcement> {
        if let Some(rest) = line.strip_prefix(FIRST) {
            let (mark, case) = rest.split_once(' ')?;
            let mark = u64::from_str_radix(mark, 16).ok()?;
            self.begun = Some(Announcement { case: case.to_owned(), mark, symbols: String::new() });
            return None;
        }
        if line == LAST {
            return self.begun.take();
        }
        if let Some(begun) = self.begun.as_mut().filter(|begun| begun.symbols.len() < MOST_SYMBOLS) {
            begun.symbols += line;
            begun.symbols.push('\n');
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_read_and_data_is_left_out() {
        let symbols = "ffffffff81000000 T _text\nffffffff82000000 D data\nffffffffc0000000 t binder_ioctl [binder_linux]\n";
        let told = Announcement {
            case: "BM_sendVec_binder/4".to_owned(),
            mark: 0x5555_1234,
            symbols: symbols.to_owned(),
        };
        let mut reader = Reader::default();
        let read: Vec<Announcement> = told.to_text().lines().filter_map(|line| reader.take(line)).collect();
        let want =
            symbols.lines().filter(|line| !line.contains("data")).map(|line| format!("{line}\n")).collect();
        assert_eq!(read, [Announcement { symbols: want, ..told }]);
    }

    #[test]
    fn other_lines_mean_nothing() {
        let mut reader = Reader::default();
        for line in ["", "x", LAST, "profile zz a", "profile", "profile 5"] {
            assert_eq!(reader.take(line), None, "{line}");
        }
        assert_eq!(reader.take(LAST), None, "nothing was begun");
    }
}
