//! Room: what the experiment is asked to do, and which of it cannot be.
//! Not here: the words it was typed in (the command line).

use std::fmt;
use std::str::FromStr;

use driver::{AnyContext, EmbeddedContext};
use ipc::{NodeOptions, Release};
use record::Setting;
use record::inversion::LEAST_CALLS;
use serde::{Deserialize, Serialize};

use crate::load::Class;
use crate::plan::{Dialect, Inherit, Settings, Wanted};

/// More hogs on one CPU are a slip of the pen.
pub const MOST_HOGS: u32 = 64;

/// The longest work of a call: far from what a real-time process may do at once.
pub const MOST_WORK_US: u64 = 50_000;

/// What the caller and its servers speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Flavour {
    /// Bare transactions to a node with libbinder's options.
    Binder,
    /// A HIDL interface on a node with libhwbinder's options.
    #[default]
    Hwbinder,
}

impl Flavour {
    pub(super) fn dialect(self, android: Release) -> Dialect {
        match self {
            Self::Binder => Dialect::Binder(android),
            Self::Hwbinder => Dialect::Hwbinder,
        }
    }

    /// Of its nodes, with inheritance or without.
    pub(super) fn options(self, inherit_rt: bool) -> NodeOptions {
        let usual = match self {
            Self::Binder => NodeOptions::BINDER,
            Self::Hwbinder => NodeOptions::HWBINDER,
        };
        NodeOptions { inherit_rt, ..usual }
    }
}

impl fmt::Display for Flavour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Binder => "binder",
            Self::Hwbinder => "hwbinder",
        })
    }
}

impl FromStr for Flavour {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "binder" => Ok(Self::Binder),
            "hwbinder" => Ok(Self::Hwbinder),
            _ => Err(format!("no flavour {text:?}; use binder or hwbinder")),
        }
    }
}

/// Everything the experiment needs to know.
#[derive(Clone, Debug)]
pub struct Ask {
    /// What is spoken.
    pub flavour: Flavour,
    /// Processes that hog the CPU, 1 to [`MOST_HOGS`].
    pub hogs: u32,
    /// How they are scheduled.
    pub hog_class: Class,
    /// The CPU that all share; `None` for the last usable one, as the first has the interrupts.
    pub cpu: Option<u32>,
    /// For how long the service computes in each call, in us; at most [`MOST_WORK_US`].
    pub work_us: u64,
    /// Calls of each setting in each round.
    pub iterations: u32,
    /// Rounds; at least 1.
    pub rounds: u32,
    /// Which driver, and which context of it.
    pub wanted: Wanted,
    /// What the embedded driver inherits where it shall; real-time policies if not said.
    pub inherit: Option<Inherit>,
    /// The Android release whose service manager is spoken to.
    pub android: Release,
    /// Decides how long the caller pauses between calls.
    pub seed: u64,
    /// After how many seconds without one call it is given up.
    pub patience_s: u64,
    /// After how many seconds all of it is given up.
    pub time_limit_s: u64,
    /// The words of the command line, for the record.
    pub command_line: Vec<String>,
}

impl Ask {
    /// Whether it can be done.
    ///
    /// # Errors
    /// What is wrong with it and what would not be, for whoever typed it.
    pub fn check(&self) -> Result<(), String> {
        if !(1..=MOST_HOGS).contains(&self.hogs) {
            return Err(format!("{} hogs make no experiment: use 1 to {MOST_HOGS}", self.hogs));
        }
        if self.work_us > MOST_WORK_US {
            return Err(format!(
                "{} us of work in each call are too much: use {MOST_WORK_US} at most",
                self.work_us
            ));
        }
        let calls = u64::from(self.iterations) * u64::from(self.rounds);
        if calls < LEAST_CALLS {
            return Err(format!(
                "{} calls in each of {} rounds tell nothing: use {LEAST_CALLS} in all at least",
                self.iterations, self.rounds
            ));
        }
        Ok(())
    }

    /// The CPU, which must be one of those that this program may use.
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

    /// The driver as the setting with inheritance has it.
    pub(super) fn wanted(&self) -> Wanted {
        let inherit = self.inherit.unwrap_or(Inherit::Rt);
        Wanted { settings: Settings { inherit, ..self.wanted.settings }, ..self.wanted.clone() }
    }

    /// The context as the server of a setting opens it. On the kernel's driver that is always the same.
    pub(super) fn address(&self, setting: Setting, context: &AnyContext) -> String {
        match context {
            AnyContext::Embedded(embedded) if !inherits(setting) => {
                let settings = Settings { inherit: Inherit::None, ..embedded.settings() };
                EmbeddedContext::at(embedded.directory(), embedded.name(), settings).address()
            }
            any => any.address(),
        }
    }

    /// Whether the node of a setting asks for `INHERIT_RT`. On the embedded driver the driver decides, and
    /// the node always does. The raised server's node must let it stay as urgent as it is: Android's
    /// kernels would lower it else.
    pub(super) fn node_inherits(setting: Setting, context: &AnyContext) -> bool {
        inherits(setting) || setting == Setting::Raised || matches!(context, AnyContext::Embedded(_))
    }

    /// How inheritance is turned on or off in a setting, in words.
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

/// Whether priorities are to be inherited. The quiet setting calls the server of the one without.
fn inherits(setting: Setting) -> bool {
    setting == Setting::On
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn ask() -> Ask {
        Ask {
            flavour: Flavour::Hwbinder,
            hogs: 2,
            hog_class: Class::Other,
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
        ask().check().expect("20 calls are enough");
        for (bad, says) in [
            (Ask { hogs: 0, ..ask() }, "1 to 64"),
            (Ask { hogs: 65, ..ask() }, "1 to 64"),
            (Ask { work_us: 50_001, ..ask() }, "50000 at most"),
            (Ask { iterations: 9, ..ask() }, "20 in all"),
            (Ask { rounds: 0, ..ask() }, "20 in all"),
        ] {
            assert!(bad.check().expect_err("refused").contains(says));
        }
        let error = Ask { cpu: Some(100_000), ..ask() }.cpu().expect_err("no such CPU");
        assert!(error.contains("100000") && error.contains("use one of"), "{error}");
        assert!(sys::sched::affinity().expect("own CPUs").contains(&ask().cpu().expect("one")));
    }

    #[test]
    fn inheritance_is_a_matter_of_the_embedded_driver_and_of_the_kernels_nodes() {
        let settings = ask().wanted().settings;
        assert_eq!(settings.inherit, Inherit::Rt);
        let embedded = AnyContext::Embedded(EmbeddedContext::at(Path::new("/d"), "hwbinder", settings));
        let kernel = AnyContext::parse("/dev/hwbinder");
        for (setting, driver, flag) in [
            (Setting::Quiet, "none", false),
            (Setting::Off, "none", false),
            (Setting::On, "rt", true),
            (Setting::Raised, "none", true),
        ] {
            let address = ask().address(setting, &embedded);
            assert!(address.starts_with(&format!("embedded:{driver},")), "{setting:?}: {address}");
            assert!(address.ends_with(":hwbinder:/d"), "{address}");
            assert!(Ask::node_inherits(setting, &embedded));
            assert_eq!(ask().address(setting, &kernel), "/dev/hwbinder");
            assert_eq!(Ask::node_inherits(setting, &kernel), flag, "{setting:?}");
        }
        let nice = Ask { inherit: Some(Inherit::Nice), ..ask() };
        assert_eq!(nice.wanted().settings.inherit, Inherit::Nice);
        assert_eq!(ask().means(Setting::On, &embedded), "driver inherits rt");
        assert_eq!(ask().means(Setting::Off, &kernel), "node without INHERIT_RT");
        assert!(Flavour::Hwbinder.options(false).flags() & 0x800 == 0);
        assert!(Flavour::Binder.options(true).flags() & 0x800 != 0);
    }
}
