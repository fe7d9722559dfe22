//! The driver's files of this machine at one moment, and what is to be explained of it.
//! Not here: where the files are (`backend::state`), what they say (crate `explain`).

use std::fmt;
use std::time::Duration;

use backend::state::{DIRECT_CALLS, StateError, StateFile, StateSource};
use driver::Root;
use explain::Explainer;
use store::evidence::{lines, name_processes};

use crate::session::{Look, Looked};
use crate::top::tasks::Tasks;

/// Time after which a call is old.
const AGING: Duration = Duration::from_millis(1100);

/// Why there is no driver to look at: an error of each one that was tried.
#[derive(Debug)]
pub struct NoState(pub Vec<StateError>);

impl fmt::Display for NoState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&all.join("; "))
    }
}

impl std::error::Error for NoState {}

/// Why a driver that is there lacks a file, whatever another driver answered.
fn not_kept(troubles: &[StateError]) -> Option<&StateError> {
    troubles.iter().find(|trouble| matches!(trouble, StateError::NotKept(_)))
}

/// Looks at this machine once; twice where calls are new, so that those that last can be called old.
///
/// # Errors
/// [`NoState`].
pub fn explainer_once(source: &StateSource) -> Result<Explainer, NoState> {
    let is_direct = |line: &str| {
        let number = line.strip_prefix("    outgoing transaction ").and_then(|rest| rest.split(':').next());
        number.and_then(|number| number.parse().ok()).is_some_and(|number: u32| number >= DIRECT_CALLS)
    };
    let is_new = |line: &str| is_direct(line) && line.contains(" elapsed 0ms");
    let has_new = source.read(StateFile::State).is_ok_and(|text| text.lines().any(is_new));
    if has_new {
        std::thread::sleep(AGING);
    }
    let mut explainer = explainer(source, "")?;
    if has_new {
        explainer.note(
            "calls were new: the embedded driver counts the age of a direct call from the first look at it, 1.1 s ago, so a later look, or \
             --watch, says more"
                .to_owned(),
        );
    }
    Ok(explainer)
}

/// Files of this machine's driver at one moment.
#[derive(Clone, Debug)]
pub struct Here {
    /// Its files, each with its name.
    pub files: Vec<(&'static str, String)>,
    /// The files that the driver does not keep, each with the reason.
    pub notes: Vec<String>,
}

impl Here {
    /// Reads these files.
    ///
    /// # Errors
    /// [`NoState`].
    pub fn read(source: &StateSource, which: &[StateFile]) -> Result<Self, NoState> {
        let mut here = Self { files: Vec::new(), notes: Vec::new() };
        for which in which {
            match source.read(*which) {
                Ok(text) => here.files.push((which.file_name(), text)),
                Err(troubles) => match not_kept(&troubles) {
                    Some(why) => here.notes.push(why.to_string()),
                    None => return Err(NoState(troubles)),
                },
            }
        }
        Ok(here)
    }

    /// Adds it to what is explained; `folder` is put before the names.
    pub fn add_to(&self, explainer: &mut Explainer, folder: &str) {
        for (name, text) in &self.files {
            lines(explainer, &format!("{folder}{name}"), text);
        }
        self.notes.iter().for_each(|note| explainer.note(note));
    }
}

/// An explainer of this machine as it is now, with these reports of the driver.
///
/// # Errors
/// [`NoState`].
pub fn explainer(source: &StateSource, reports: &str) -> Result<Explainer, NoState> {
    let mut explainer = Explainer::new();
    let files = [StateFile::State, StateFile::Stats, StateFile::FailedTransactionLog];
    Here::read(source, &files)?.add_to(&mut explainer, "");
    match host::klog::Watch::whole().and_then(host::klog::Watch::end) {
        Ok(log) => {
            lines(&mut explainer, "/dev/kmsg", &log_text(&log.complaints));
        }
        Err(why) => explainer.note(why.to_string()),
    }
    if !reports.is_empty() {
        lines(&mut explainer, "netlink", reports);
    }
    name_processes(&mut explainer, &Root::of_this_machine());
    Ok(explainer)
}

/// Messages of the kernel's log, one a line.
pub fn log_text<'m>(messages: impl IntoIterator<Item = &'m host::klog::Message>) -> String {
    messages.into_iter().map(|message| format!("{message}\n")).collect()
}

/// Looks at a driver's state for a view, with the findings of it.
pub fn look(source: &StateSource) -> Look<'_> {
    let mut tasks = Tasks::default();
    Box::new(move || {
        let mut explainer = Explainer::new();
        let here =
            Here::read(source, &[StateFile::State, StateFile::Stats]).map_err(|why| why.to_string())?;
        let has_state = here.files.iter().any(|(name, _)| *name == StateFile::State.file_name());
        if !has_state {
            return Err(here.notes.join("; "));
        }
        here.add_to(&mut explainer, "");
        for load in explainer.loads() {
            explainer.name_process(load.pid, tasks.name(load.pid));
        }
        tasks.age();
        let findings = explainer.explain(None).findings;
        Ok(Looked { loads: explainer.loads(), findings, notes: here.notes })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_without_the_file_is_one_though_the_other_is_missing() {
        let nobody = || StateError::NoBroker("/tmp/x".into());
        let log = StateFile::FailedTransactionLog;
        let why = [StateError::NotKept(log), nobody()];
        assert!(not_kept(&why).is_some_and(|why| why.to_string().contains("failed_transaction_log")));
        assert!(not_kept(&[nobody()]).is_none(), "no driver at all");
    }
}
