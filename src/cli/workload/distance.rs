//! The command `workload distance`: how near a replay is to its original.
//! Not here: the distances (`workload::distance`).

use std::path::PathBuf;

use clap::Args;
use workload::distance::Distance;
use workload::recording::{Half, Selection};

use super::source::{PartArgs, of_trace, recording};
use crate::cli::output::Sink;
use crate::cli::{CommandResult, OrExit, exit, note};

/// Judge how near a replay is to its original: latency, calls at once, switches and wake-ups of both, with distances
///
/// Both traces are analysed alike. A trace of `workload run` says itself which of its processes is which and when its
/// load began; in any other trace processes are ranked by their calls.
#[derive(Clone, Debug, Args)]
pub(crate) struct DistanceArgs {
    /// The trace that the description was made of
    original: PathBuf,

    /// A trace of the replay
    replay: PathBuf,

    #[command(flatten, next_help_heading = "Which part of the original")]
    part: PartArgs,

    /// Fail if any figure of all calls is further apart than this factor, or an important pair is missing
    #[arg(long, value_name = "FACTOR", value_parser = factor)]
    within: Option<f64>,

    /// JSON, with every pair
    #[arg(long)]
    json: bool,
}

fn factor(text: &str) -> Result<f64, String> {
    let factor = text.parse::<f64>().ok().filter(|factor| (1.0..1e9).contains(factor));
    factor.ok_or_else(|| format!("{text:?} is no factor from 1"))
}

/// Judges it.
pub(super) fn run(args: &DistanceArgs) -> CommandResult {
    let (original, replay) = (recording(&args.original)?, recording(&args.replay)?);
    let selection = args.part.selection();
    let figures = of_trace(&args.original, original.select(&selection))?.figures();
    // The halves of a half would say little of the whole.
    let half = |half| {
        let selection = Selection { half: Some(half), ..selection };
        original.select(&selection).ok().filter(|_| !args.part.is_half()).map(|half| half.figures())
    };
    let halves = half(Half::First).zip(half(Half::Second));
    let of_replay = of_trace(&args.replay, replay.select(&Selection::default()))?.figures();
    let distance = Distance::of(&figures, &of_replay, halves.as_ref().map(|(first, second)| (first, second)));
    let text = match args.json {
        true => distance.to_json().or_exit(exit::INTERNAL)?,
        false => distance.to_string(),
    };
    Sink::stdout().deliver(&text)?;
    let far = args.within.map(|factor| distance.beyond(factor)).unwrap_or_default();
    for what in &far {
        note(format_args!("further than {}: {what}\n", args.within.unwrap_or_default()));
    }
    Ok(if far.is_empty() { exit::FINE } else { exit::FAILED })
}
