//! The command `gate`: fails if records are slower than a baseline by more than a limit.
//! Not here: judging (`record::compare::gate`), reading the records (`super::records`).

use clap::{Args, ValueEnum};
use record::compare::gate::{GateOutcome, GateResult, gate};
use record::render::compare::{gated, gated_json, markdown, text};

use super::records::{CompareFlags, Form};
use super::{CommandResult, OrExit, exit};
use units::typed::Percent;

/// Fail if records are certainly slower than a baseline by more than a limit
///
/// A and B are each a record, a folder of records, or several separated by commas.
#[derive(Debug, Args)]
pub(crate) struct GateArgs {
    /// The reference that B is compared with
    #[arg(long, value_name = "A")]
    baseline: String,

    /// How much slower a case may be
    #[arg(long, value_name = "PERCENT", default_value = "5%")]
    max_regress: Percent,

    /// The exit status if the result is inconclusive
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = CannotTell::Unable)]
    cannot_tell: CannotTell,

    /// The records to judge
    b: String,

    #[command(flatten)]
    flags: CompareFlags,
}

/// The exit status of an inconclusive result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum CannotTell {
    /// Status 3: the measurement is not precise enough
    Unable,
    /// Status 0
    Pass,
    /// Status 1
    Fail,
}

impl CannotTell {
    /// The exit status for an outcome.
    pub(super) fn status(self, outcome: GateOutcome) -> u8 {
        match (outcome, self) {
            (GateOutcome::Kept, _) | (GateOutcome::CannotTell, Self::Pass) => exit::FINE,
            (GateOutcome::Exceeded, _) | (GateOutcome::CannotTell, Self::Fail) => exit::FAILED,
            (GateOutcome::CannotTell, Self::Unable) => exit::UNABLE,
        }
    }
}

/// Judges the records.
pub(crate) fn run(args: &GateArgs) -> CommandResult {
    let (options, a, b) = args.flags.read(&args.baseline, &args.b)?;
    let found = gate(&a, &b, args.max_regress.0, &options).or_exit(exit::USAGE)?;
    args.flags.sink().deliver(&shown(&found, args.flags.format))?;
    Ok(args.cannot_tell.status(found.outcome))
}

/// A gated comparison in an output format.
pub(super) fn shown(found: &GateResult, form: Form) -> String {
    match form {
        Form::Text => format!("{}\n{}", text(&found.comparison), gated(found)),
        Form::Markdown => format!("{}\n```\n{}```\n", markdown(&found.comparison), gated(found)),
        Form::Json => gated_json(found),
    }
}
