//! Options about driver and context, shared by every command that uses a driver.
//! Not here: finding what they mean on this machine (`backend::locate`).

use std::path::PathBuf;

use bench::plan::{Device, Driver, Inherit, Settings, Waiting, Wanted};
use clap::{Args, ValueHint};

use super::choice::{self, ON_OFF};

/// Environment variable with the default of `--driver`: Android's tools have no flag for it.
const VARIABLE: &str = "BINDERPERF_DRIVER";

/// The values of `--driver`.
pub(crate) const DRIVERS: [Driver; 3] = [Driver::Auto, Driver::Kernel, Driver::Embedded];

/// The driver, its context, and the embedded driver's settings.
#[derive(Clone, Debug, Args)]
pub(crate) struct DriverArgs {
    /// The kernel's driver, the embedded one in user space, or auto: the kernel's if usable [default: $BINDERPERF_DRIVER, else auto]
    #[arg(long, help_heading = "Driver", value_name = "DRIVER", value_parser = choice::of(DRIVERS))]
    driver: Option<Driver>,

    /// Binder context: auto (private if possible), private, a name (binder, hwbinder, ...), or the path of a kernel's device
    #[arg(long, help_heading = "Driver", value_name = "DEVICE")]
    device: Option<Device>,

    /// Embedded driver: the directory that its processes share [default: a private one; the user's for a named context]
    #[arg(long, help_heading = "Driver", value_name = "DIR", value_hint = ValueHint::DirPath)]
    context_dir: Option<PathBuf>,

    /// Embedded driver: priorities that a callee inherits [default: nice; in latency tests rt]
    #[arg(long, help_heading = "Driver", value_name = "MODE", value_parser = choice::of([Inherit::None, Inherit::Nice, Inherit::Rt]))]
    inherit: Option<Inherit>,

    /// Embedded driver: how threads wait: sleep, spin or adaptive, with the longest spin in us; all but sleep yield the CPU to a
    /// peer that shares it [default: adaptive:50]
    #[arg(long, help_heading = "Driver", value_name = "HOW[:US]", value_parser = wait)]
    wait: Option<Wait>,

    /// Embedded driver: pass calls of up to 128 KiB without objects other than scattered buffers directly between processes,
    /// not through the broker [default: on]
    #[arg(long, alias = "lanes", help_heading = "Driver", value_name = "on|off", value_parser = choice::table(&ON_OFF))]
    direct: Option<bool>,
}

/// How threads wait, and the longest spin in ns.
type Wait = (Waiting, Option<u64>);

fn wait(text: &str) -> Result<Wait, String> {
    let (waiting, budget) = text.split_once(':').map_or((text, None), |(how, us)| (how, Some(us)));
    let budget_ns = budget.map(|text| {
        let us: Option<u64> = text.parse().ok().filter(|us| *us <= 1_000_000);
        us.map(|us| us * 1000).ok_or_else(|| format!("{text:?} is no time in us up to one second"))
    });
    Ok((waiting.parse()?, budget_ns.transpose()?))
}

/// The requested driver: by the option, else by the environment.
///
/// # Errors
/// The variable has an invalid value.
pub(crate) fn asked_for(flag: Option<Driver>) -> Result<Driver, String> {
    match (flag, std::env::var(VARIABLE)) {
        (Some(driver), _) => Ok(driver),
        (None, Ok(text)) => text.parse().map_err(|error| format!("{VARIABLE}: {error}")),
        (None, Err(_)) => Ok(Driver::Auto),
    }
}

impl DriverArgs {
    /// The requested context.
    pub(crate) fn device(&self) -> Device {
        self.device.clone().unwrap_or_default()
    }

    /// The value of `--inherit`, if given.
    pub(crate) fn inherit(&self) -> Option<Inherit> {
        self.inherit
    }

    /// The requested driver with its context and settings.
    ///
    /// # Errors
    /// The variable has an invalid value, or an option does not apply to the driver.
    pub(crate) fn wanted(&self) -> Result<Wanted, String> {
        self.wanted_inheriting(Settings::default().inherit)
    }

    /// As [`Self::wanted`], with another default of `--inherit`.
    ///
    /// # Errors
    /// As [`Self::wanted`].
    pub(crate) fn wanted_inheriting(&self, usual: Inherit) -> Result<Wanted, String> {
        let driver = asked_for(self.driver)?;
        let settings = [
            ("--context-dir", self.context_dir.is_some()),
            ("--inherit", self.inherit.is_some()),
            ("--wait", self.wait.is_some()),
            ("--direct", self.direct.is_some()),
        ];
        if let Some((flag, _)) = settings.iter().find(|(_, given)| *given && driver == Driver::Kernel) {
            return Err(format!("{flag} is a setting of the embedded driver, and --driver is kernel"));
        }
        Ok(Wanted {
            driver,
            device: self.device(),
            context_dir: self.context_dir.clone(),
            settings: self.settings(usual),
        })
    }

    fn settings(&self, inherit: Inherit) -> Settings {
        let usual = Settings::default();
        Settings {
            inherit: self.inherit.unwrap_or(inherit),
            waiting: self.wait.map_or(usual.waiting, |(waiting, _)| waiting),
            spin_budget_ns: self.wait.and_then(|(_, budget_ns)| budget_ns).unwrap_or(usual.spin_budget_ns),
            call_slots: self.direct.unwrap_or(true),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Words {
        #[command(flatten)]
        args: DriverArgs,
    }

    fn wanted(words: &[&str]) -> Result<Wanted, String> {
        let all = [&["x", "--driver=embedded"], words].concat();
        Words::try_parse_from(all).map_err(|error| error.to_string())?.args.wanted()
    }

    #[test]
    fn settings_of_the_embedded_driver() {
        assert_eq!(wanted(&[]).expect("fine").settings, Settings::default());
        let words =
            ["--inherit=rt", "--wait=spin:50", "--direct=off", "--device=vndbinder", "--context-dir=/x"];
        let all = wanted(&words).expect("fine");
        assert_eq!(all.settings.to_string(), "rt,spin:50000,broker");
        assert_eq!((all.device.to_string().as_str(), all.context_dir), ("vndbinder", Some("/x".into())));
        assert!(!wanted(&["--lanes=off"]).expect("its old name").settings.call_slots);
        assert_eq!(wanted(&["--wait=sleep"]).expect("fine").settings.waiting, Waiting::Sleep);
    }

    #[test]
    fn nonsense_is_refused() {
        for bad in [
            "--wait=nap",
            "--wait=spin:",
            "--wait=spin:x",
            "--wait=spin:99999999",
            "--inherit=all",
            "--direct=1",
        ] {
            assert!(wanted(&[bad]).is_err(), "{bad}");
        }
        let words = Words::try_parse_from(["x", "--driver=kernel", "--wait=spin"]).expect("words are fine");
        assert!(words.args.wanted().expect_err("of the other driver").contains("--wait"));
    }
}
