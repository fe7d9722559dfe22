//! Options of the experiment, and their validation.
//! Not here: parsing them (the command line).

use backend::AnyContext;
use embedded::EmbeddedContext;
use ipc::Release;
use record::Setting;
use record::experiments::inversion::lateness::LEAST_CALLS;

use crate::load::LoadClass;
use crate::plan::{Flavour, Inherit, Settings, Wanted};

/// Maximum number of hogs; more are taken for a typing error.
pub const MOST_HOGS: u32 = 64;

/// Longest work of a call, in us: far below the run time limit of a real-time process.
pub const MOST_WORK_US: u64 = 50_000;

/// Checks what the experiments with hogs have in common.
///
/// # Errors
/// The invalid option and its limits, as a message for the user.
pub(crate) fn check(hogs: u32, work_us: u64, iterations: u32, rounds: u32) -> Result<(), String> {
    if !(1..=MOST_HOGS).contains(&hogs) {
        return Err(format!("{hogs} hogs make no experiment: use 1 to {MOST_HOGS}"));
    }
    if work_us > MOST_WORK_US {
        return Err(format!("{work_us} us of work in each call are too much: use {MOST_WORK_US} at most"));
    }
    if u64::from(iterations) * u64::from(rounds) < LEAST_CALLS {
        return Err(format!(
            "{iterations} calls in each of {rounds} rounds tell nothing: use {LEAST_CALLS} in all at least"
        ));
    }
    Ok(())
}

/// Options of the experiment.
#[derive(Clone, Debug)]
pub struct InversionOptions {
    /// Flavour of the calls, with IPC.
    pub flavour: Flavour,
    /// Number of processes that occupy the CPU, 1 to [`MOST_HOGS`].
    pub hogs: u32,
    /// Scheduling of the hogs.
    pub hog_class: LoadClass,
    /// The CPU that all share; `None` for the last usable one, because the first one takes the interrupts.
    pub cpu: Option<u32>,
    /// Computing time of the service in each call, in us; at most [`MOST_WORK_US`].
    pub work_us: u64,
    /// Calls of each setting in each round.
    pub iterations: u32,
    /// Rounds; at least 1.
    pub rounds: u32,
    /// Driver and context.
    pub wanted: Wanted,
    /// Inheritance of the embedded driver in the settings with inheritance; default: real-time policies.
    pub inherit: Option<Inherit>,
    /// Android release of the service manager's protocol.
    pub android: Release,
    /// Seed of the caller's pauses between calls.
    pub seed: u64,
    /// Time limit without a completed call, in seconds.
    pub patience_s: u64,
    /// Time limit of the whole experiment, in seconds.
    pub time_limit_s: u64,
    /// Command line, for the record.
    pub command_line: Vec<String>,
}

impl InversionOptions {
    /// Checks the options.
    ///
    /// # Errors
    /// The invalid option and its limits, as a message for the user.
    pub fn check(&self) -> Result<(), String> {
        check(self.hogs, self.work_us, self.iterations, self.rounds)
    }

    /// Returns the CPU, which must be one that this program may use.
    pub(super) fn cpu(&self) -> Result<u32, String> {
        let usable = sys::sched::affinity()
            .map_err(|error| format!("asking for the usable CPUs: {}", sys::errno::describe(&error)))?;
        let list = || usable.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        match self.cpu {
            Some(cpu) if !usable.contains(&cpu) => {
                Err(format!("CPU {cpu} may not be used here; use one of {}", list()))
            }
            Some(cpu) => Ok(cpu),
            None => usable.last().copied().ok_or_else(|| "there is no usable CPU".to_owned()),
        }
    }

    /// Returns the driver for the setting with inheritance.
    pub(super) fn wanted(&self) -> Wanted {
        let inherit = self.inherit.unwrap_or(Inherit::Rt);
        Wanted { settings: Settings { inherit, ..self.wanted.settings }, ..self.wanted.clone() }
    }

    /// Address that the server of a setting opens. On the kernel driver it is always the same.
    pub(super) fn address(&self, setting: Setting, context: &AnyContext) -> String {
        match context {
            AnyContext::Embedded(embedded) if !inherits(setting) => {
                let settings = Settings { inherit: Inherit::None, ..embedded.settings() };
                EmbeddedContext::at(embedded.directory(), embedded.name(), settings).address()
            }
            any => any.address(),
        }
    }

    /// Returns true if the node of a setting asks for `INHERIT_RT`. On the embedded driver the driver
    /// decides, and the node always asks. The raised server's node must permit its priority, else Android's
    /// kernels would lower it.
    pub(super) fn node_inherits(setting: Setting, context: &AnyContext) -> bool {
        inherits(setting) || setting == Setting::Raised || matches!(context, AnyContext::Embedded(_))
    }

    /// Describes how a setting turns inheritance on or off.
    pub(super) fn means(&self, setting: Setting, context: &AnyContext) -> String {
        let how = match (setting, context) {
            (Setting::Raised, _) => return "server raised by hand before".to_owned(),
            (setting, AnyContext::Embedded(embedded)) => {
                let inherit = if inherits(setting) { embedded.settings().inherit } else { Inherit::None };
                format!("driver inherits {inherit}")
            }
            (setting, AnyContext::Kernel(_)) => {
                let with = if inherits(setting) { "with" } else { "without" };
                format!("node {with} INHERIT_RT")
            }
        };
        if setting == Setting::Quiet { format!("no hogs, {how}") } else { how }
    }

    pub(super) fn case_name(&self, setting: Setting) -> String {
        match setting {
            Setting::Quiet => format!("inversion/{}", setting.name()),
            _ => format!("inversion/{}/hogs:{}", setting.name(), self.hogs),
        }
    }

    pub(super) fn for_record(&self) -> record::Plan {
        record::Plan {
            test: "inversion".to_owned(),
            min_time: format!("{}x", self.iterations),
            repetitions: self.rounds,
            seed: Some(self.seed),
            driver: self.wanted.driver.to_string(),
            device: self.wanted.device.to_string(),
            placement: "same".to_owned(),
            command_line: self.command_line.clone(),
            ..record::Plan::default()
        }
    }
}

/// Returns true if a setting inherits priorities. The quiet setting calls the server of the setting without.
fn inherits(setting: Setting) -> bool {
    setting == Setting::On
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn options() -> InversionOptions {
        InversionOptions {
            flavour: Flavour::Hwbinder,
            hogs: 2,
            hog_class: LoadClass::Other,
            cpu: None,
            work_us: 0,
            iterations: 10,
            rounds: 2,
            wanted: Wanted::default(),
            inherit: None,
            android: Release::default(),
            seed: 1,
            patience_s: 30,
            time_limit_s: 600,
            command_line: Vec::new(),
        }
    }

    #[test]
    fn what_tells_nothing_is_refused() {
        options().check().expect("20 calls are enough");
        for (bad, says) in [
            (InversionOptions { hogs: 0, ..options() }, "1 to 64"),
            (InversionOptions { hogs: 65, ..options() }, "1 to 64"),
            (InversionOptions { work_us: 50_001, ..options() }, "50000 at most"),
            (InversionOptions { iterations: 9, ..options() }, "20 in all"),
            (InversionOptions { rounds: 0, ..options() }, "20 in all"),
        ] {
            assert!(bad.check().expect_err("refused").contains(says));
        }
        let error = InversionOptions { cpu: Some(100_000), ..options() }.cpu().expect_err("no such CPU");
        assert!(error.contains("100000") && error.contains("use one of"), "{error}");
        assert!(sys::sched::affinity().expect("own CPUs").contains(&options().cpu().expect("one")));
    }

    #[test]
    fn inheritance_is_a_matter_of_the_embedded_driver_and_of_the_kernels_nodes() {
        let settings = options().wanted().settings;
        assert_eq!(settings.inherit, Inherit::Rt);
        let embedded = AnyContext::Embedded(EmbeddedContext::at(Path::new("/d"), "hwbinder", settings));
        let kernel = AnyContext::parse("/dev/hwbinder");
        for (setting, driver, flag) in [
            (Setting::Quiet, "none", false),
            (Setting::Off, "none", false),
            (Setting::On, "rt", true),
            (Setting::Raised, "none", true),
        ] {
            let address = options().address(setting, &embedded);
            assert!(address.starts_with(&format!("embedded:{driver},")), "{setting:?}: {address}");
            assert!(address.ends_with(":hwbinder:/d"), "{address}");
            assert!(InversionOptions::node_inherits(setting, &embedded));
            assert_eq!(options().address(setting, &kernel), "/dev/hwbinder");
            assert_eq!(InversionOptions::node_inherits(setting, &kernel), flag, "{setting:?}");
        }
        let nice = InversionOptions { inherit: Some(Inherit::Nice), ..options() };
        assert_eq!(nice.wanted().settings.inherit, Inherit::Nice);
        assert_eq!(options().means(Setting::On, &embedded), "driver inherits rt");
        assert_eq!(options().means(Setting::Off, &kernel), "node without INHERIT_RT");
    }
}
