//! The command `throughput scaling`: throughput and latency with an increasing number of clients: its options and cases.
//! Not here: measuring (`super::crowd`, `bench::workers`).
//! Facts: the table of the Rust driver's RFC (2023): pairs 1 to 32, payload 0 and 4096.

use bench::plan::Flavour;
use bench::plan::MinTime;
use bench::workers::{Group, MOST_WORKERS, Shape};
use clap::{Parser, ValueEnum};

use super::super::CommandResult;
use super::super::note;
use super::super::show::Form;
use super::crowd::{self, Common};

/// Measure how binder throughput and latency change with 1, 2, 4, ... pairs, and clients of one service
#[derive(Debug, Parser)]
#[command(disable_version_flag = true)]
pub(super) struct ScalingArgs {
    /// Most pairs, and most clients of one service [default: twice the CPUs]
    #[arg(short = 'P', long, value_name = "N", allow_negative_numbers = true,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_WORKERS / 2)))]
    most: Option<u32>,

    /// The numbers of clients
    #[arg(long, value_enum, default_value_t = Steps::Powers)]
    steps: Steps,

    /// Payloads in bytes
    #[arg(short = 's', long, value_name = "BYTES", value_delimiter = ',', default_values_t = [0, 4096])]
    payload: Vec<u32>,

    /// The services that the clients call
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Who::Pairs, Who::OneService])]
    shape: Vec<Who>,

    /// The library that the workers use
    #[arg(long, value_enum, default_value_t = Speak::Binder)]
    flavour: Speak,

    /// Duration of a round of each case in seconds
    #[arg(long, value_name = "S", default_value = "1", allow_negative_numbers = true, value_parser = crowd::seconds)]
    duration: f64,

    /// Calls of each client in a round, instead of a duration
    #[arg(short = 'i', long, value_name = "N", conflicts_with = "duration", allow_negative_numbers = true,
        value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    iterations: Option<u64>,

    /// Output format
    #[arg(help_heading = "Output", long, value_enum, default_value_t = Form::Summary)]
    format: Form,

    #[command(flatten)]
    common: Common,
}

/// The library in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Speak {
    /// Bare transactions
    Binder,
    /// `IBenchmark::sendVec`
    Hwbinder,
}

/// The numbers up to the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Steps {
    /// 1, 2, 4, ... and the most
    Powers,
    /// Every number
    All,
}

impl Steps {
    fn up_to(self, most: u32) -> Vec<u32> {
        match self {
            Self::All => (1..=most).collect(),
            Self::Powers => {
                let powers = (0..32).map(|power| 1_u32 << power).take_while(|step| *step < most);
                powers.chain([most]).collect()
            }
        }
    }
}

/// The services that the clients call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Who {
    /// Each client has a service of its own
    Pairs,
    /// All clients call one service with a pool of threads
    OneService,
}

/// Threads of the one service besides the first: libbinder's default.
const POOL: u32 = 15;

fn groups(whos: &[Who], payloads: &[u32], steps: &[u32]) -> Vec<Group> {
    let mut groups = Vec::new();
    for who in whos {
        for &payload in payloads {
            for &step in steps {
                let group = match who {
                    Who::Pairs => Group { shape: Shape::Pairs, workers: step * 2, payload },
                    Who::OneService => {
                        let shape = Shape::Services { count: 1, more_threads: POOL };
                        Group { shape, workers: step, payload }
                    }
                };
                // Duplicates are dropped.
                if !groups.contains(&group) {
                    groups.push(group);
                }
            }
        }
    }
    groups
}

/// Leaves out what does not fit into a receiver's buffer because so many clients share it, and says so of
/// each. A payload that is too large for even one client stays, to be refused.
fn leave_out(groups: &mut Vec<Group>, flavour: Flavour) -> Vec<String> {
    let mut notes = Vec::new();
    groups.retain(|group| {
        let alone = Group { workers: if group.shape == Shape::Pairs { 2 } else { 1 }, ..group.clone() };
        match group.check_payload(flavour) {
            Err(why) if alone.check_payload(flavour).is_ok() => {
                let clients = group.clients();
                notes.push(format!(
                    "left out {clients} clients of one service with {} B: {why}",
                    group.payload
                ));
                false
            }
            _ => true,
        }
    });
    notes
}

/// Runs it.
pub(super) fn run(args: ScalingArgs) -> CommandResult {
    let most = args.most.unwrap_or_else(|| (host::cpus() * 2).min(MOST_WORKERS / 2));
    let mut groups = groups(&args.shape, &args.payload, &args.steps.up_to(most));
    let length = args.iterations.map_or(MinTime::Seconds(args.duration), MinTime::Iterations);
    let flavour = match args.flavour {
        Speak::Binder => Flavour::Binder,
        Speak::Hwbinder => Flavour::Hwbinder,
    };
    for left_out in leave_out(&mut groups, flavour) {
        note(format_args!("{left_out}\n"));
    }
    let options = args.common.options("throughput scaling", flavour, groups, length);
    crowd::run(options, &args.common, args.format)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_end_with_the_most() {
        assert_eq!(Steps::Powers.up_to(1), [1]);
        assert_eq!(Steps::Powers.up_to(8), [1, 2, 4, 8]);
        assert_eq!(Steps::Powers.up_to(6), [1, 2, 4, 6]);
        assert_eq!(Steps::All.up_to(3), [1, 2, 3]);
    }

    #[test]
    fn on_a_machine_with_many_cpus_what_does_not_fit_is_left_out_and_named() {
        let steps = Steps::Powers.up_to(MOST_WORKERS / 2);
        let all = groups(&[Who::Pairs, Who::OneService], &[0, 4096], &steps);
        let mut kept = all.clone();
        let notes = leave_out(&mut kept, Flavour::Binder);
        let left_out: Vec<&Group> = all.iter().filter(|group| !kept.contains(group)).collect();
        assert!(
            matches!(
                left_out[..],
                [Group { workers: 128, payload: 4096, .. }, Group { workers: 256, payload: 4096, .. }]
            ),
            "{left_out:?}"
        );
        assert!(notes[1].contains("256 clients of one service with 4096 B"), "{notes:?}");
        assert!(kept.iter().all(|group| group.check_payload(Flavour::Binder).is_ok()));

        let mut too_large = groups(&[Who::Pairs, Who::OneService], &[2_000_000], &[1, 2]);
        assert!(leave_out(&mut too_large, Flavour::Binder).is_empty());
        assert_eq!(too_large.len(), 4, "refused, not left out");
    }

    #[test]
    fn a_series_for_each_shape_and_payload() {
        let groups = groups(&[Who::Pairs, Who::OneService], &[0, 4096, 0], &[1, 2]);
        let seen: Vec<(u32, u32, u32)> =
            groups.iter().map(|group| (group.clients(), group.services(), group.payload)).collect();
        assert_eq!(
            seen,
            [
                (1, 1, 0),
                (2, 2, 0),
                (1, 1, 4096),
                (2, 2, 4096),
                (1, 1, 0),
                (2, 1, 0),
                (1, 1, 4096),
                (2, 1, 4096)
            ]
        );
    }
}
