//! The flag for output and exit statuses as those of Android's tools.
//! Not here: the statuses (`conduct::latency`), the formats (`record::render`).

use clap::Args;

use super::choice::{self, ON_OFF};
use super::terminal;

/// The flag of all commands that are also tools of Android's.
#[derive(Clone, Copy, Debug, Args)]
pub(super) struct ExactArgs {
    /// Print and exit exactly as Android's tool; under Android's name that is the default where the output is no
    /// terminal, unless --format or --expect asks for more
    #[arg(help_heading = "Output", long, value_name = "on|off", value_parser = choice::table(&ON_OFF), num_args = 0..=1, require_equals = true,
        default_missing_value = "on")]
    aosp_compat: Option<bool>,
}

impl ExactArgs {
    /// Whether Android's output is wanted. `applet`: called by Android's name. `ours`: a flag whose effect that output
    /// cannot show.
    pub(super) fn is_wanted(self, applet: bool, ours: Option<&str>) -> Result<bool, String> {
        match (self.aosp_compat, ours) {
            (Some(true), Some(flag)) => {
                Err(format!("{flag} has no effect on Android's output: leave it out, or --aosp-compat"))
            }
            (Some(chosen), _) => Ok(chosen),
            (None, ours) => Ok(applet && ours.is_none() && !terminal::is_terminal()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_decides_and_else_the_name_and_the_reader() {
        let flag = |aosp_compat| ExactArgs { aosp_compat };
        assert_eq!(flag(Some(true)).is_wanted(false, None), Ok(true));
        assert_eq!(flag(Some(false)).is_wanted(true, None), Ok(false));
        assert!(flag(Some(true)).is_wanted(true, Some("--format")).is_err());
        assert_eq!(flag(None).is_wanted(true, Some("--format")), Ok(false));
        assert_eq!(flag(None).is_wanted(false, None), Ok(false));
    }
}
