//! Room: the flags that Google Benchmark does not have.
//! Not here: those it has (`lab::plan::gbench`).

use std::path::PathBuf;

use super::super::A_YEAR_S;
use super::super::driver::DriverArgs;
use clap::Parser;
use lab::plan::gbench::Flags;
use lab::plan::{Controls, Fault, Gate, MinTime, Placement, Plan, Release};

/// Restores Google Benchmark's exit status.
pub(super) const COMPATIBLE: &str = "--gbench-compat";

/// Our own flags.
#[derive(Clone, Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true, disable_version_flag = true)]
pub(super) struct Own {
    #[command(flatten)]
    driver: DriverArgs,

    /// Write the whole record to FILE; `binderperf show FILE` reads it
    #[arg(long, value_name = "FILE")]
    pub(super) record: Option<PathBuf>,

    /// Families to compare with: default, all, none, or a list of pipe, unix, futex, eventfd, spin, raw
    #[arg(long, value_name = "LIST")]
    controls: Option<Controls>,

    /// Where both sides of every case run: default (the scheduler decides), same (one CPU), cross (two)
    #[arg(long, value_name = "WHERE", default_value_t)]
    placement: Placement,

    /// Android release whose wire format is spoken: 8 to 16, 15-qpr
    #[arg(long, value_name = "N", default_value_t)]
    android: Release,

    /// Fail when the test costs more than RATIO times a control, as in x_raw=1.10
    #[arg(long, value_name = "x_CONTROL=RATIO")]
    pub(super) max: Vec<Gate>,

    /// Seed of the drawn order under --benchmark_enable_random_interleaving [default: the time]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Exit status as Google Benchmark's: 0 even if cases fail or none matches
    #[arg(long)]
    pub(super) gbench_compat: bool,

    /// Tell how far it is on stderr, for another copy of this program
    #[arg(long, hide = true)]
    pub(super) progress: bool,

    /// Break something on purpose: KIND=CASE with kill-server, hang-server or corrupt-reply
    #[arg(long, hide = true, value_name = "KIND=CASE")]
    fault: Vec<Fault>,

    /// Seconds without a round trip after which a case is given up
    #[arg(long, hide = true, value_name = "S", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=A_YEAR_S))]
    patience: u64,
}

/// The usage text's part about these flags.
pub(super) fn usage() -> String {
    use clap::CommandFactory;
    let help = Own::command().help_template("\n{options}\n").render_help().to_string();
    help.replace("\n\n\n", "\n")
}

impl Own {
    /// Reads all that is left of the words; `controls` unless they say otherwise.
    pub(super) fn parse(words: Vec<String>, controls: &str) -> Result<Self, String> {
        let mut own = Self::try_parse_from(words).map_err(|error| {
            let text = error.to_string();
            let reason = text.split("\n\nUsage:").next().unwrap_or_default().trim();
            reason.strip_prefix("error: ").unwrap_or(reason).to_owned()
        })?;
        if own.controls.is_none() {
            own.controls = Some(controls.parse()?);
        }
        Ok(own)
    }

    /// Both kinds of flags as one plan.
    pub(super) fn plan(&self, flags: &Flags, command_line: Vec<String>) -> Result<Plan, String> {
        let controls = self.controls.clone().unwrap_or_else(Controls::none);
        for gate in &self.max {
            if !controls.families().any(|family| family == gate.control) {
                let word = gate.control.word();
                return Err(format!(
                    "--max x_{word} compares with a control that is not run: add --controls {word}"
                ));
            }
        }
        Ok(Plan {
            controls,
            filter: flags.filter.clone(),
            min_time: flags.min_time.unwrap_or_else(|| MinTime::usual(lab::host::class())),
            min_warmup_s: flags.min_warmup_s.unwrap_or(0.0),
            repetitions: flags.repetitions,
            dry_run: flags.dry_run,
            interleaving_seed: flags
                .random_interleaving
                .then(|| self.seed.unwrap_or_else(lab::plan::fresh_seed)),
            wanted: self.driver.wanted()?,
            placement: self.placement,
            android: self.android,
            faults: self.fault.clone(),
            patience_s: self.patience,
            context: flags.context.clone(),
            command_line,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(words: &[&str]) -> Result<Own, String> {
        Own::parse(words.iter().map(|word| (*word).to_owned()).collect(), "default")
    }

    #[test]
    fn both_ways_to_give_a_value() {
        let spaced = own(&["--record", "x", "--controls", "none", "--max", "x_raw=1.1"]).expect("fine");
        let joined = own(&["--record=x", "--controls=none", "--max=x_raw=1.1"]).expect("fine");
        assert_eq!(format!("{spaced:?}"), format!("{joined:?}"));
        assert_eq!(own(&[]).expect("fine").controls, Some(Controls::default_set()));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (words, want) in [
            (&["--recrod=x"][..], "--recrod"),
            (&["--controls=tcp"], "tcp"),
            (&["--max=p99=3"], "p99"),
            (&["--patience=0"], "0"),
            (&["stray"], "stray"),
            (&["--record"], "--record"),
        ] {
            let error = own(words).expect_err("wrong");
            assert!(error.contains(want) && !error.contains("Usage:"), "{error}");
        }
    }

    #[test]
    fn a_limit_needs_its_control() {
        let flags = Flags::default();
        let without = own(&["--max=x_raw=1.1"]).expect("words are fine");
        assert!(without.plan(&flags, Vec::new()).expect_err("no raw").contains("--controls raw"));
        let with = own(&["--max=x_raw=1.1", "--controls=raw"]).expect("fine");
        assert!(with.plan(&flags, Vec::new()).is_ok());
    }

    #[test]
    fn usage_names_what_users_need_and_hides_the_rest() {
        let usage = usage();
        assert!(usage.contains("--record") && usage.contains("--gbench-compat"), "{usage}");
        assert!(!usage.contains("--fault"), "{usage}");
    }
}
