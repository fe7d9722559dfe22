//! What a test needs of its machine, and the report of a test that cannot run without it: `need!` returns from such a
//! test and prints `SKIPPED: NEED: reason`, which `tools/run-tests` and `tools/stages` count.
//! `BINDERPERF_REQUIRE=realtime,tracefs` in the environment makes each lack of these a failure.
//! Not here: whether the machine has it, which each test tries in its own way.
#![forbid(unsafe_code)]

use std::fmt::Display;

/// The variable that names what must not lack, separated by commas.
const REQUIRED: &str = "BINDERPERF_REQUIRE";

/// What a test may need of its machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Need {
    /// Real-time policies and higher priorities, or the right to be without them.
    Realtime,
    /// A tracefs that this user may write, and that no other tool uses.
    Tracefs,
    /// A binder driver, or a function of one.
    Driver,
    /// File systems and device nodes that this user may make.
    Mount,
    /// Acting as another user.
    OtherUser,
    /// User namespaces.
    Namespaces,
    /// Supervision of programs by seccomp.
    Supervision,
    /// Control groups that this user may make.
    Cgroups,
    /// More than one CPU, or CPUs of a certain kind.
    Cpus,
    /// Programs or packages that are not everywhere.
    Programs,
    /// A kernel that was built beforehand.
    Kernel,
    /// A build of this program of another kind.
    Build,
    /// A function that only newer kernels have.
    Feature,
}

/// Each need with the word for it in `BINDERPERF_REQUIRE` and in reports.
const WORDS: [(Need, &str); 13] = [
    (Need::Realtime, "realtime"),
    (Need::Tracefs, "tracefs"),
    (Need::Driver, "driver"),
    (Need::Mount, "mount"),
    (Need::OtherUser, "other-user"),
    (Need::Namespaces, "namespaces"),
    (Need::Supervision, "supervision"),
    (Need::Cgroups, "cgroups"),
    (Need::Cpus, "cpus"),
    (Need::Programs, "programs"),
    (Need::Kernel, "kernel"),
    (Need::Build, "build"),
    (Need::Feature, "feature"),
];

impl Need {
    fn word(self) -> &'static str {
        WORDS.iter().find(|(need, _)| *need == self).map_or("?", |(_, word)| word)
    }

    /// The lack of this, for this reason.
    pub fn lacks(self, why: impl Display) -> Lack {
        Lack { need: self, why: why.to_string() }
    }

    /// Nothing if it holds, else the lack of this for this reason.
    ///
    /// # Errors
    /// It does not hold.
    pub fn met_if(self, holds: bool, why: impl Display) -> Result<(), Lack> {
        if holds { Ok(()) } else { Err(self.lacks(why)) }
    }
}

/// A need that is not met, and why.
#[derive(Debug)]
#[must_use = "a test that does not run must report it"]
pub struct Lack {
    need: Need,
    why: String,
}

impl Lack {
    /// Reports that the test ends here for this lack. [`need!`] calls it.
    ///
    /// # Panics
    /// `BINDERPERF_REQUIRE` has this need, or a word that is no need.
    #[track_caller]
    pub fn skip(self) {
        let required = std::env::var(REQUIRED).unwrap_or_default();
        match self.report(&required) {
            Ok(skipped) => println!("{skipped}"),
            Err(failure) => panic!("{failure}"),
        }
    }

    /// The line that reports the skipped test, or what is wrong if these words are required.
    fn report(&self, required: &str) -> Result<String, String> {
        let (word, why) = (self.need.word(), self.why.trim());
        for asked in required.split(',').filter(|asked| !asked.is_empty()) {
            if !WORDS.iter().any(|(_, known)| *known == asked) {
                let known: Vec<_> = WORDS.iter().map(|(_, known)| *known).collect();
                return Err(format!("{REQUIRED} has {asked:?}; there are {}", known.join(", ")));
            }
            if asked == word {
                return Err(format!("{REQUIRED} has {word}, and it is not here: {why}"));
            }
        }
        Ok(format!("SKIPPED: {word}: {}", why.replace('\n', " ")))
    }
}

/// The value of a `Result<T, Lack>`; with a lack, reports it and returns from the test.
#[macro_export]
macro_rules! need {
    ($had:expr) => {
        match $had {
            Ok(had) => had,
            Err(lack) => return $crate::Lack::skip(lack),
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lack_is_a_skip_unless_it_is_required() {
        let lack = Need::Tracefs.lacks("EACCES\nhere");
        for required in ["", "realtime", "realtime,other-user"] {
            assert_eq!(lack.report(required).as_deref(), Ok("SKIPPED: tracefs: EACCES here"), "{required}");
        }
        for required in ["tracefs", "realtime,tracefs"] {
            let failure = lack.report(required).expect_err("it is required");
            assert!(failure.contains("has tracefs") && failure.contains("EACCES"), "{failure}");
        }
        let failure = lack.report("trace").expect_err("no such need");
        assert!(failure.contains("\"trace\"") && failure.contains("realtime, tracefs"), "{failure}");
    }

    #[test]
    fn each_need_has_a_word_of_its_own() {
        for (need, word) in WORDS {
            assert_eq!(need.word(), word);
            assert_eq!(WORDS.iter().filter(|(_, other)| *other == word).count(), 1, "{word}");
        }
    }

    #[test]
    fn a_test_goes_on_with_what_it_needs_and_ends_without() {
        let reached = std::cell::Cell::new(0);
        let test = |had: Result<u32, Lack>| {
            let had = need!(had);
            reached.set(reached.get() + had);
        };
        test(Ok(3));
        test(Err(Need::Build.lacks("no such build")));
        assert_eq!(reached.get(), 3);
    }
}
