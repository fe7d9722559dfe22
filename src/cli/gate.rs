//! Room: `gate`: records held to a limit of how much slower than a baseline they may be.
//! Not here: judging (`record::compare::gate`), reading the records (`super::records`).

use clap::{Args, ValueEnum};
use record::compare::gate::{Gated, Outcome, gate};
use record::render::compare::{gated, gated_json, markdown, text};

use super::exit;
use super::records::{CompareFlags, Form, Percent, cannot_compare, deliver};

/// Fail if records are slower than a baseline by more than a limit, beyond doubt
///
/// A and B are each a record, a folder of records, or several with commas between.
#[derive(Debug, Args)]
pub(crate) struct GateArgs {
    /// What B is held against
    #[arg(long, value_name = "A")]
    baseline: String,

    /// How much slower a case may be
    #[arg(long, value_name = "PERCENT", default_value = "5%")]
    max_regress: Percent,

    /// The status if it cannot be told whether the limit is kept
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = CannotTell::Unable)]
    cannot_tell: CannotTell,

    /// What is held to the limit
    b: String,

    #[command(flatten)]
    flags: CompareFlags,
}

/// What becomes of doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum CannotTell {
    /// Status 3: it could not be measured well enough
    Unable,
    /// Status 0
    Pass,
    /// Status 1
    Fail,
}

impl CannotTell {
    /// The exit status for an outcome.
    pub(super) fn status(self, outcome: Outcome) -> u8 {
        match (outcome, self) {
            (Outcome::Kept, _) | (Outcome::CannotTell, Self::Pass) => exit::FINE,
            (Outcome::Exceeded, _) | (Outcome::CannotTell, Self::Fail) => exit::FAILED,
            (Outcome::CannotTell, Self::Unable) => exit::UNABLE,
        }
    }
}

/// Judges them.
pub(crate) fn run(args: &GateArgs) -> u8 {
    let (options, a, b) = match args.flags.read(&args.baseline, &args.b) {
        Ok(read) => read,
        Err(status) => return status,
    };
    match gate(&a, &b, args.max_regress.0, &options) {
        Ok(found) => {
            let status = args.cannot_tell.status(found.outcome);
            deliver(args.flags.sink(), &shown(&found, args.flags.format), status)
        }
        Err(error) => cannot_compare(&error),
    }
}

/// A gated comparison in a form.
pub(super) fn shown(found: &Gated, form: Form) -> String {
    match form {
        Form::Text => format!("{}\n{}", text(&found.comparison), gated(found)),
        Form::Markdown => format!("{}\n```\n{}```\n", markdown(&found.comparison), gated(found)),
        Form::Json => gated_json(found),
    }
}
