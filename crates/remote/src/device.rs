//! A command on another machine, from the first question to the removed folder.
//! Not here: the other side (`remote.sh`), the programs in between (`link`, `exchange`).

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use super::error::RemoteError;
use super::exchange::{Ended, converse, perform};
use super::frame::Frame;
use super::link::Link;
use super::program::{Machine, Programs, hashed};
use super::quote::quoted;
use super::returned::Returned;
use super::target::Target;

/// Longest time for pushing the program, and for a call that changes little.
const PUSH_LIMIT: Duration = Duration::from_secs(600);
const CALL_LIMIT: Duration = Duration::from_secs(20);
/// Time between attempts to reach the machine again.
const PAUSE: Duration = Duration::from_millis(1500);
/// Time for a command that was asked to stop (SIGINT), until it is asked again (SIGTERM), and until it is killed.
const GRACE: Duration = Duration::from_secs(20);
/// How long a stopped command's machine is waited for.
const STOP_PATIENCE: Duration = Duration::from_secs(30);

/// Longest time for a call that answers a question, whatever it sends.
const ANSWER_LIMIT: Duration = Duration::from_secs(120);
/// How long a command is waited for whose start is uncertain.
const START_PATIENCE: Duration = Duration::from_secs(30);
/// Most facts of an answer.
const MOST_FACTS: usize = 64;

/// Folders there, the first usable one counts; the empty one means its `$TMPDIR`.
const BASES: [&str; 4] = ["/data/local/tmp", "", "/tmp", "/var/tmp"];

/// Command to run.
#[derive(Clone, Debug, Default)]
pub struct Job {
    /// The words behind the program's name.
    pub words: Vec<String>,
    /// Environment variables.
    pub variables: Vec<(String, String)>,
    /// Folders to make in its working folder.
    pub folders: Vec<String>,
}

/// Use that this machine makes of the answers.
pub trait Sinks {
    /// Takes a part of the command's standard output. An error means that nobody reads it.
    fn stdout(&mut self, bytes: &[u8]) -> std::io::Result<()>;
    /// Takes a part of its standard error.
    fn stderr(&mut self, bytes: &[u8]);
    /// Shows what is going on; an empty text when the command starts.
    fn progress(&mut self, text: &str);
    /// Tells something that the user should know.
    fn note(&mut self, text: &str);
    /// The place for a file that the command left, by its path below the working folder.
    fn place(&mut self, path: &str) -> PathBuf;
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Its exit status.
    pub status: u8,
    /// The files that came back.
    pub files: Vec<PathBuf>,
    /// The folder there whose file system was full at the end, so that something may be missing.
    pub full: Option<String>,
}

/// Runs a command on a target that is another machine, and fetches what it leaves.
///
/// `patience` is how long a machine is waited for that was lost in the middle.
///
/// # Errors
/// Everything that can prevent that.
pub fn run(
    target: &Target,
    job: &Job,
    programs: &Programs,
    patience: Duration,
    sinks: &mut dyn Sinks,
) -> Result<Outcome, RemoteError> {
    let Some(link) = Link::to(target) else {
        return Err(RemoteError::Garbled(format!("{target} is no other machine")));
    };
    sys::stop_signal::catch().map_err(RemoteError::here("catching signals"))?;
    let mut device = Device::new(link, target.to_string(), patience);
    let ended = device.whole(job, programs, sinks);
    if device.connected
        && let Some(call) = device.link.network("disconnect")
    {
        let _ = perform(&device.link, call, CALL_LIMIT, || Ok(()));
    }
    ended
}

/// A machine under way.
struct Device {
    link: Link,
    target: String,
    bases: Vec<String>,
    patience: Duration,
    /// The user's folder there.
    home: String,
    /// This command's name there: another for each call.
    name: String,
    /// Whether it was connected to by this call.
    connected: bool,
    /// Why it is unknown whether the command started, and since when: what was said when the connection was lost.
    uncertain: Option<(String, Instant)>,
    /// Frames heard of the command: whether the machine was there.
    frames: u64,
    stopping: Stopping,
}

/// How far stopping the command has come.
#[derive(Debug, Default)]
struct Stopping {
    /// When the signal came.
    since: Option<Instant>,
    /// Signals sent.
    sent: usize,
}

/// Output of a command so far.
#[derive(Debug, Default)]
struct Heard {
    out: u64,
    err: u64,
    full: Option<String>,
    unread: bool,
}

impl Device {
    fn new(link: Link, target: String, patience: Duration) -> Self {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let name = format!("run-{:x}-{:x}", now.as_nanos(), std::process::id());
        let (home, stopping) = (String::new(), Stopping::default());
        let bases = BASES.map(str::to_owned).into();
        Self {
            link,
            target,
            bases,
            patience,
            home,
            name,
            connected: false,
            uncertain: None,
            frames: 0,
            stopping,
        }
    }

    fn folder(&self) -> String {
        format!("{}/{}", self.home, self.name)
    }

    fn whole(
        &mut self,
        job: &Job,
        programs: &Programs,
        sinks: &mut dyn Sinks,
    ) -> Result<Outcome, RemoteError> {
        sinks.progress(&format!("asking {}", self.target));
        let machine = self.probe()?;
        let program = programs.for_machine(&machine)?;
        self.work(job, &program, sinks)
    }

    /// Runs the command with this program.
    fn work(&mut self, job: &Job, program: &Path, sinks: &mut dyn Sinks) -> Result<Outcome, RemoteError> {
        let started = self.started(job, program, sinks);
        sinks.progress("");
        let (status, heard) = match started.and_then(|()| self.follow(sinks)) {
            Ok(ended) => ended,
            Err(RemoteError::Refused { code, said }) if code == "gone" && self.uncertain.is_some() => {
                let said = self.uncertain.take().map_or(said, |(said, _)| said);
                // It may still be about to begin.
                let _ = self.refused();
                return Err(RemoteError::Unreachable { target: self.target.clone(), said });
            }
            // The results are in the folder.
            Err(error @ RemoteError::Lost { .. }) => return Err(error),
            Err(error) => {
                // What is left there is not worth another error.
                let _ = self.removed();
                return Err(error);
            }
        };
        let fetched = self.fetch(job, sinks);
        sinks.progress("");
        let (files, skipped) = fetched.map_err(|error| error.kept_in(self.folder()))?;
        if skipped.is_empty() {
            self.clean(sinks)?;
        } else {
            let (names, folder) = (skipped.join(", "), self.folder());
            sinks.note(&format!(
                "cannot be read on {}, and left there in {folder}/files: {names}",
                self.target
            ));
        }
        let status = match (status.parse(), sys::stop_signal::received()) {
            _ if heard.unread => 0,
            (Ok(status), _) => status,
            (Err(_), Some(signal)) if self.stopping.sent > 0 => return Err(RemoteError::Stopped(signal)),
            (Err(_), _) => return Err(RemoteError::Died { target: self.target.clone() }),
        };
        Ok(Outcome { status, files, full: heard.full })
    }

    /// Calls the script before anything is started: a signal ends it, and a cut connection is an error.
    fn ask(&self, action: &str, words: &[String]) -> Result<Vec<(String, String)>, RemoteError> {
        self.ask_until(action, words, not_stopped)
    }

    fn ask_until(
        &self,
        action: &str,
        words: &[String],
        glance: fn() -> Result<(), RemoteError>,
    ) -> Result<Vec<(String, String)>, RemoteError> {
        let mut facts = Vec::new();
        let take = |frame| {
            if let Frame::Fact(name, value) = frame {
                if facts.len() == MOST_FACTS {
                    return Err(RemoteError::Garbled(format!("{name}, after {MOST_FACTS} other facts")));
                }
                facts.push((name, value));
            }
            Ok(())
        };
        let call = self.link.script(script(action, words));
        let begun = Instant::now();
        match converse(&self.link, call, take, || glance().and_then(|()| in_time(begun)))? {
            Ended::Whole(_) => Ok(facts),
            Ended::Cut(said) => Err(RemoteError::Unreachable { target: self.target.clone(), said }),
        }
    }

    /// Asks what the machine is, and for a folder.
    fn probe(&mut self) -> Result<Machine, RemoteError> {
        let facts = match self.ask("probe", &self.bases) {
            Err(RemoteError::Unreachable { said, .. }) if said.contains("more than one") => {
                return Err(RemoteError::SeveralDevices(self.serials()?));
            }
            Err(RemoteError::Unreachable { .. }) if self.connect() => self.ask("probe", &self.bases),
            answer => answer,
        }?;
        let mut machine = Machine::default();
        for (name, value) in facts {
            match name.as_str() {
                "machine" => machine.kernel = value,
                "abi" => machine.abi = Some(value).filter(|abi| !abi.is_empty()),
                "elf" => machine.elf = value.parse().ok(),
                "home" => self.home = value,
                _ => {}
            }
        }
        let odd = |letter: char| !letter.is_ascii_alphanumeric() && !"/._-".contains(letter);
        if !self.home.starts_with('/') || self.home.contains(odd) {
            return Err(RemoteError::Garbled(format!("home {}", self.home)));
        }
        Ok(machine)
    }

    /// Connects to a device over the network; whether that changed anything.
    fn connect(&mut self) -> bool {
        let Some(call) = self.link.network("connect") else { return false };
        let said = perform(&self.link, call, CALL_LIMIT, || Ok(()));
        // It does not fail where nothing listens.
        let connected = matches!(said, Ok(Ok(_))) && self.ask("probe", &self.bases).is_ok();
        self.connected |= connected;
        connected
    }

    /// The devices that adb sees.
    fn serials(&self) -> Result<Vec<String>, RemoteError> {
        let Some(call) = self.link.devices() else { return Ok(Vec::new()) };
        let said = perform(&self.link, call, CALL_LIMIT, not_stopped)?.unwrap_or_default();
        let serial = |line: &str| Some(line.split_once('\t')?.0.trim().to_owned());
        Ok(said.split("; ").filter_map(serial).collect())
    }

    /// Pushes the program if it is not there, and starts the command.
    fn started(&mut self, job: &Job, program: &Path, sinks: &mut dyn Sinks) -> Result<(), RemoteError> {
        let (hash, size) =
            hashed(program).map_err(RemoteError::here(format!("reading {}", program.display())))?;
        let mut words = vec![self.home.clone(), self.name.clone(), hash, size.to_string()];
        words.push(job.variables.len().to_string());
        words.extend(job.variables.iter().map(|(name, value)| format!("{name}={value}")));
        words.push(job.folders.len().to_string());
        words.extend(job.folders.iter().cloned());
        words.extend(job.words.iter().cloned());
        match self.begin(&words, sinks) {
            Err(RemoteError::Refused { code, .. }) if code == "absent" => {}
            answer => return answer,
        }
        let megabytes = size as f64 / 1e6;
        sinks.progress(&format!("copying this program ({megabytes:.1} MB) to {}", self.target));
        let part = format!("{}/part-{}", self.home, self.name);
        let call = self.link.push(program, &part);
        let call = call.map_err(RemoteError::here(format!("reading {}", program.display())))?;
        perform(&self.link, call, PUSH_LIMIT, not_stopped)?.map_err(|said| {
            let is_full = said.contains("o space left") || said.contains("uota");
            match is_full {
                true => RemoteError::Refused { code: "space".to_owned(), said },
                false => RemoteError::Unreachable { target: self.target.clone(), said },
            }
        })?;
        self.begin(&words, sinks)
    }

    /// Starts the command. Where the connection is lost meanwhile it may have started: following it tells.
    fn begin(&mut self, words: &[String], sinks: &mut dyn Sinks) -> Result<(), RemoteError> {
        not_stopped()?;
        // From here on a signal is the command's to hear.
        match self.ask_until("begin", words, || Ok(())) {
            Err(RemoteError::Unreachable { said, .. }) => {
                sinks.note(&format!(
                    "the connection to {} was lost while the command was started ({said})",
                    self.target
                ));
                self.uncertain = Some((said, Instant::now()));
                Ok(())
            }
            Ok(facts) if !facts.iter().any(|(name, _)| name == "started") => {
                Err(RemoteError::Garbled("the end of a start that it did not tell".to_owned()))
            }
            answer => answer.map(drop),
        }
    }

    /// Passes on the command's output until it ends; returns its status.
    fn follow(&mut self, sinks: &mut dyn Sinks) -> Result<(String, Heard), RemoteError> {
        let mut heard = Heard::default();
        let folder = self.folder();
        let status = self.persist(sinks, |device, sinks| {
            let words = [folder.clone(), heard.out.to_string(), heard.err.to_string()];
            let call = device.link.script(script("follow", &words));
            let unread = Cell::new(heard.unread);
            let take = |frame| {
                device.frames += 1;
                match frame {
                    Frame::Out(bytes) => {
                        heard.out += bytes.len() as u64;
                        unread.set(unread.get() || sinks.stdout(&bytes).is_err());
                    }
                    Frame::Err(bytes) => {
                        heard.err += bytes.len() as u64;
                        sinks.stderr(&bytes);
                    }
                    Frame::Fact(name, value) if name == "full" => heard.full = Some(value),
                    _ => {}
                }
                Ok(())
            };
            let (link, stopping) = (&device.link, &mut device.stopping);
            let ended = converse(link, call, take, || stopping.glance(link, &folder, unread.get()));
            heard.unread = unread.get();
            match (ended, &device.uncertain) {
                // Its start may go on there without the connection.
                (Err(RemoteError::Refused { code, said }), Some((_, since)))
                    if code == "gone" && since.elapsed() < START_PATIENCE && not_stopped().is_ok() =>
                {
                    Ok(Ended::Cut(said))
                }
                (ended, _) => ended,
            }
        })?;
        Ok((status, heard))
    }

    /// Fetches what the command left; also gives the names of files that cannot be read there.
    fn fetch(
        &mut self,
        job: &Job,
        sinks: &mut dyn Sinks,
    ) -> Result<(Vec<PathBuf>, Vec<String>), RemoteError> {
        let folder = self.folder();
        let made =
            |path: &str| path == "." || job.folders.iter().any(|made| Path::new(made).starts_with(path));
        let (mut files, mut skipped, mut most) = (Vec::new(), Vec::new(), 0);
        self.persist(sinks, |device, sinks| {
            let mut returned = Returned::default();
            skipped.clear();
            let call = device.link.script(script("fetch", std::slice::from_ref(&folder)));
            let take = |frame| {
                match frame {
                    Frame::Fact(name, path) if name == "skipped" && skipped.len() < MOST_FACTS => {
                        skipped.push(path);
                        Ok(())
                    }
                    Frame::File(path, size) => {
                        sinks.progress(&format!("fetching {path} ({size} bytes)"));
                        returned.begin(&path, size, &mut |path| sinks.place(path))
                    }
                    // Those of before are for the command only.
                    Frame::Folder(path) if made(&path) => Ok(()),
                    Frame::Folder(path) => returned.folder(&path, &mut |path| sinks.place(path)),
                    Frame::Content(bytes) => returned.append(&bytes),
                    _ => Ok(()),
                }
            };
            let ended = converse(&device.link, call, take, || Ok(()));
            // Only a file more than ever before is a step forward: each attempt begins with the first.
            if returned.whole() > most {
                (most, device.frames) = (returned.whole(), device.frames + 1);
            }
            files = returned.into_paths();
            ended
        })?;
        Ok((files, skipped))
    }

    /// Removes what the command left there.
    fn clean(&mut self, sinks: &mut dyn Sinks) -> Result<(), RemoteError> {
        self.persist(sinks, |device, _| device.removed()).map(drop)
    }

    fn removed(&self) -> Result<Ended, RemoteError> {
        self.told("clean")
    }

    /// Removes the command even if it has not begun yet, which it then cannot.
    fn refused(&self) -> Result<Ended, RemoteError> {
        self.told("refuse")
    }

    /// Makes a call about the command that answers nothing.
    fn told(&self, action: &str) -> Result<Ended, RemoteError> {
        let call = self.link.script(script(action, &[self.home.clone(), self.name.clone()]));
        let begun = Instant::now();
        converse(&self.link, call, |_| Ok(()), || in_time(begun))
    }

    /// Makes a call until it comes to its end, however often the connection is lost; gives the status at its end.
    fn persist(
        &mut self,
        sinks: &mut dyn Sinks,
        mut call: impl FnMut(&mut Self, &mut dyn Sinks) -> Result<Ended, RemoteError>,
    ) -> Result<String, RemoteError> {
        let mut lost: Option<Instant> = None;
        loop {
            let before = self.frames;
            let said = match call(self, sinks)? {
                Ended::Whole(status) => {
                    if lost.is_some() {
                        sinks.note(&format!("{} was there again", self.target));
                    }
                    return Ok(status);
                }
                Ended::Cut(said) => said,
            };
            let stopping = self.stopping.since.is_some() || sys::stop_signal::received().is_some();
            let patience = if stopping { self.patience.min(STOP_PATIENCE) } else { self.patience };
            if self.frames > before && !stopping {
                lost = None;
            }
            if lost.is_none() {
                let (target, seconds) = (&self.target, patience.as_secs());
                sinks.note(&format!(
                    "the connection to {target} was lost ({said}); the command goes on there, and {target} is waited for up to {seconds} s"
                ));
            }
            if lost.get_or_insert_with(Instant::now).elapsed() >= patience {
                let folder = self.folder();
                return Err(RemoteError::Lost { target: self.target.clone(), after: patience, folder, said });
            }
            std::thread::sleep(PAUSE);
            if let Some(call) = self.link.network("connect") {
                // That it failed shows in the next call.
                let _ = perform(&self.link, call, CALL_LIMIT, || Ok(()));
            }
        }
    }
}

impl Stopping {
    /// Signals the command if that is due.
    fn glance(&mut self, link: &Link, folder: &str, unread: bool) -> Result<(), RemoteError> {
        if self.since.is_none() && (unread || sys::stop_signal::received().is_some()) {
            self.since = Some(Instant::now());
        }
        let Some(since) = self.since else { return Ok(()) };
        let signals = [("INT", Duration::ZERO), ("TERM", GRACE), ("KILL", GRACE + GRACE / 4)];
        let Some((signal, due)) = signals.get(self.sent) else { return Ok(()) };
        if since.elapsed() >= *due {
            let call = link.script(script("stop", &[folder.to_owned(), (*signal).to_owned()]));
            let begun = Instant::now();
            if matches!(converse(link, call, |_| Ok(()), || in_time(begun))?, Ended::Whole(_)) {
                self.sent += 1;
            }
        }
        Ok(())
    }
}

/// An error if a signal asked to stop.
fn not_stopped() -> Result<(), RemoteError> {
    sys::stop_signal::received().map_or(Ok(()), |signal| Err(RemoteError::Stopped(signal)))
}

/// An error if a call takes too long that began then.
fn in_time(begun: Instant) -> Result<(), RemoteError> {
    match begun.elapsed() < ANSWER_LIMIT {
        true => Ok(()),
        false => Err(RemoteError::Garbled(format!("no end within {} s", ANSWER_LIMIT.as_secs()))),
    }
}

/// The script with the words of a call in front.
fn script(action: &str, words: &[String]) -> String {
    let words: String = words.iter().map(|word| format!(" {}", quoted(word))).collect();
    format!("set -- {action}{words}\n{}", include_str!("remote.sh"))
}

#[cfg(test)]
mod tests;
