//! Questions to a context's service manager: its names, and the objects behind them.
//! Not here: the manager itself (`super::manager`), the calls (`ipc::binder::manager`, `ipc::hwbinder::manager`).

use std::os::fd::OwnedFd;
use std::time::Duration;

use backend::AnyContext;
use binder::hwbinder::{self, NativeHandle};
use binder::{CallError, Process, ProcessOptions, Release, Services};
use console::{CommandResult, Failure, OrExit, complain, exit, say, terminal};

/// A question to a service manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Which names there are.
    List,
    /// Whether a name is served.
    Check,
    /// The same, until it is.
    Wait,
    /// The words of its object about itself.
    Dump,
    /// Whether it answers.
    Ping,
}

/// A service manager of either flavour.
enum Manager {
    Aidl(Services),
    Hidl(hwbinder::manager::Services),
}

/// An object of either flavour.
enum Object {
    Aidl(binder::Binder),
    Hidl(hwbinder::HwBinder),
}

impl Manager {
    fn list(&self) -> Result<Vec<String>, CallError> {
        match self {
            Self::Aidl(services) => services.list(),
            Self::Hidl(services) => services.list(),
        }
    }

    fn wait_for(&self, name: &str, patience: Duration) -> Result<Object, CallError> {
        match self {
            Self::Aidl(services) => services.wait_for(name, patience).map(Object::Aidl),
            Self::Hidl(services) => {
                let (interface, instance) = name.split_once('/').unwrap_or((name, "default"));
                services.wait_for(interface, instance, patience).map(Object::Hidl)
            }
        }
    }
}

impl Object {
    fn ping(&self) -> Result<(), CallError> {
        match self {
            Self::Aidl(object) => object.ping(),
            Self::Hidl(object) => object.ping(),
        }
    }

    fn descriptor(&self) -> Result<String, CallError> {
        match self {
            Self::Aidl(object) => object.descriptor(),
            Self::Hidl(object) => object.descriptor(),
        }
    }

    fn dump(&self, to: OwnedFd, words: &[String]) -> Result<(), CallError> {
        match self {
            Self::Aidl(object) => object.dump(to, words),
            Self::Hidl(object) => {
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                object.debug(NativeHandle { fds: vec![to], ints: Vec::new() }, &words)
            }
        }
    }
}

/// The failure of a call: a missing manager is the environment's, a missing service the verdict.
fn failed(error: CallError) -> Failure {
    let status = if matches!(error, CallError::NoManager { .. }) { exit::UNABLE } else { exit::FAILED };
    Failure::new(status, error)
}

/// A question with what belongs to it.
#[derive(Clone, Debug)]
pub struct Question {
    /// The question.
    pub what: What,
    /// The name, of HIDL interface/instance.
    pub name: Option<String>,
    /// Words for the object, with dump.
    pub words: Vec<String>,
    /// Whether hwservicemanager is asked.
    pub hw: bool,
    /// Android release whose dialect the manager speaks.
    pub release: Release,
    /// Time to wait for the name, or for the end of a dump.
    pub timeout: Duration,
}

impl Question {
    /// Checks that its parts go together.
    ///
    /// # Errors
    /// They do not.
    pub fn check(&self) -> Result<(), &'static str> {
        if self.what == What::List && self.name.is_some() {
            return Err("list takes no NAME: it prints all names; check asks for one");
        }
        if self.what != What::Dump && !self.words.is_empty() {
            return Err("only dump passes words to the object");
        }
        Ok(())
    }
}

/// Asks the manager of this context.
///
/// # Errors
/// There is no manager, or no such service.
pub fn ask(context: &AnyContext, question: &Question) -> CommandResult {
    let options = match question.hw {
        true => ProcessOptions::hwbinder(),
        false => ProcessOptions { release: question.release, ..ProcessOptions::default() },
    };
    let process = Process::open(context, options).or_exit(exit::UNABLE)?;
    process.start_thread_pool().or_exit(exit::UNABLE)?;
    let manager = match question.hw {
        false => Services::of(&process).map(Manager::Aidl),
        true => hwbinder::manager::Services::of(&process).map(Manager::Hidl),
    };
    let manager = manager.map_err(failed)?;
    let dialect = |error: CallError| {
        if matches!(error, CallError::Status(_)) {
            complain("the manager may speak another release's dialect: --release names it");
        }
        failed(error)
    };
    let Some(name) = question.name.as_deref().filter(|_| question.what != What::List) else {
        let names = manager.list().map_err(dialect)?;
        return say(&names.iter().map(|name| format!("{name}\n")).collect::<String>());
    };
    let patience = if question.what == What::Wait { question.timeout } else { Duration::ZERO };
    let object = manager.wait_for(name, patience).map_err(dialect)?;
    match question.what {
        What::List | What::Check | What::Wait => {
            say(&format!("{name}: {}\n", object.descriptor().map_err(failed)?))
        }
        What::Ping => {
            object.ping().map_err(failed)?;
            say(&format!("{name} answers\n"))
        }
        What::Dump => dump(object, question.words.clone(), question.timeout),
    }
}

/// Prints what an object says of itself. An object may keep the pipe open, or not answer, for ever.
fn dump(object: Object, words: Vec<String>, limit: Duration) -> CommandResult {
    let (mut from, to) = std::io::pipe().or_exit(exit::INTERNAL)?;
    let (done, end) = std::sync::mpsc::channel();
    let copied = done.clone();
    let copies = move || {
        let all = std::io::copy(&mut from, &mut terminal::passed_on());
        let _ = copied.send(all.map(drop).or_exit(exit::INTERNAL));
    };
    let asks = move || {
        let _ = done.send(object.dump(to.into(), &words).map_err(failed));
    };
    sys::title::thread("dump", asks).or_exit(exit::INTERNAL)?;
    sys::title::thread("dump output", copies).or_exit(exit::INTERNAL)?;
    for _ in 0..2 {
        let late = || format!("the dump has no end after {} s (--timeout)", limit.as_secs());
        end.recv_timeout(limit).map_err(|_| Failure::new(exit::FAILED, late()))??;
    }
    Ok(exit::FINE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_go_together_is_refused() {
        let ask = |what, name: Option<&str>, words: &[&str]| {
            let (hw, release, timeout) = (false, Release::default(), Duration::ZERO);
            let words = words.iter().map(|word| (*word).to_owned()).collect();
            Question { what, name: name.map(str::to_owned), words, hw, release, timeout }.check()
        };
        assert!(ask(What::List, None, &[]).is_ok() && ask(What::Dump, Some("x"), &["-a"]).is_ok());
        assert!(ask(What::List, Some("x"), &[]).is_err() && ask(What::Ping, Some("x"), &["-a"]).is_err());
    }
}
