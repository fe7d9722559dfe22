//! A command on another machine, from the first question to the removed folder.
//! Not here: the other side (`remote.sh`), the programs in between (`link`, `exchange`).

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use intake::{Arrivals, Limits, Name, Place};
use sys::local_time::LocalTime;

use super::error::{Refusal, RemoteError};
use super::exchange::{Ended, converse, perform};
use super::frame::Frame;
use super::lines::Lines;
use super::link::Link;
use super::patience::{Step, Stopping};
use super::program::{Machine, Programs, hashed};
use super::quote::quoted;
use super::target::Target;

/// Longest time for pushing the program, and for a call that changes little.
const PUSH_LIMIT: Duration = Duration::from_secs(600);
const CALL_LIMIT: Duration = Duration::from_secs(20);
/// Time between attempts to reach the machine again.
const PAUSE: Duration = Duration::from_millis(1500);
/// Longest time for a call that answers a question, whatever it sends.
const ANSWER_LIMIT: Duration = Duration::from_secs(120);
/// Longest wait for a command that may not have started.
const START_PATIENCE: Duration = Duration::from_secs(30);
/// Longest time for one attempt to signal the command.
const STOP_LIMIT: Duration = Duration::from_secs(5);
/// Permission bits of the files that come back, less the umask.
const NEW_FILE: u32 = 0o666;
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
    /// Whether a line of its standard output that ends in `: FOLDER` names results that are whole: they are fetched at
    /// once, and with all others at the end.
    pub announces: bool,
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
    ///
    /// # Errors
    /// A folder for it cannot be made.
    fn place(&mut self, name: &Name) -> std::io::Result<Place>;
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Its exit status.
    pub status: u8,
    /// The files that came back.
    pub files: Vec<PathBuf>,
    /// Names that were not taken, each quoted and with the reason.
    pub refused: Vec<String>,
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
        let _ = perform(&device.link, call, CALL_LIMIT, || device.in_time(Step::Disconnect));
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
    /// If it is unknown whether the command started: the message of the lost connection, and since when.
    uncertain: Option<(String, Instant)>,
    /// Frames that came from the command: more than none if the machine was there.
    frames: Cell<u64>,
    /// When it was last heard of.
    heard: Cell<SystemTime>,
    /// The last line of its output.
    words: RefCell<Lines>,
    stopping: Stopping,
    limits: Limits,
}

/// Output of a command so far.
#[derive(Debug, Default)]
struct Heard {
    out: u64,
    err: u64,
    full: Option<String>,
    unread: bool,
}

/// What came back.
#[derive(Debug, Default)]
struct Fetched {
    files: Vec<PathBuf>,
    /// Names of files that cannot be read there.
    skipped: Vec<String>,
    /// Names that are not taken here, with the reason.
    refused: Vec<String>,
    /// Number of files that are whole.
    whole: usize,
}

impl Device {
    fn new(link: Link, target: String, patience: Duration) -> Self {
        let now = SystemTime::now();
        let since_epoch = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let name = format!("run-{:x}-{:x}", since_epoch.as_nanos(), std::process::id());
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
            frames: Cell::new(0),
            heard: Cell::new(now),
            words: RefCell::default(),
            stopping,
            limits: Limits::USUAL,
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
        let (status, heard) = match started.and_then(|()| self.follow(job, sinks)) {
            Ok(ended) => ended,
            Err(RemoteError::Refused { kind: Refusal::Gone, said }) if self.uncertain.is_some() => {
                let said = self.uncertain.take().map_or(said, |(said, _)| said);
                // It may still be about to begin.
                let _ = self.refused();
                return Err(RemoteError::Unreachable { target: self.target.clone(), said });
            }
            // The results are in the folder.
            Err(error @ (RemoteError::Lost { .. } | RemoteError::Deaf { .. })) => return Err(error),
            Err(error) => {
                // What is left there is not worth another error.
                let _ = self.removed();
                return Err(error);
            }
        };
        let fetched = self.fetch(job, sinks);
        sinks.progress("");
        let Fetched { files, skipped, refused, .. } =
            fetched.map_err(|error| error.kept_in(self.folder()))?;
        let (target, folder) = (&self.target, self.folder());
        for (names, why) in [(&skipped, "cannot be read"), (&refused, "have names that are not taken here")] {
            if !names.is_empty() {
                let names = names.join(", ");
                sinks.note(&format!("{why}, and left on {target} in {folder}/files: {names}"));
            }
        }
        if skipped.is_empty() && refused.is_empty() {
            match self.clean(sinks) {
                // The files are here.
                Err(why @ RemoteError::Deaf { .. }) => sinks.note(&why.to_string()),
                cleaned => cleaned?,
            }
        }
        let status = match (status.parse(), sys::stop_signal::received()) {
            _ if heard.unread => 0,
            (Ok(status), _) => status,
            (Err(_), Some(signal)) if self.stopping.has_sent() => return Err(RemoteError::Stopped(signal)),
            (Err(_), _) => return Err(RemoteError::Died { target: self.target.clone() }),
        };
        Ok(Outcome { status, files, refused, full: heard.full })
    }

    /// Calls the script before anything is started: a signal ends it, and a cut connection is an error.
    fn ask(&self, action: &str, words: &[String]) -> Result<Vec<(String, String)>, RemoteError> {
        self.ask_until(action, words, not_stopped)
    }

    fn ask_until(
        &self,
        action: &str,
        words: &[String],
        glance: impl Fn() -> Result<(), RemoteError>,
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
        let said = perform(&self.link, call, CALL_LIMIT, not_stopped);
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
            Err(RemoteError::Refused { kind: Refusal::Absent, .. }) => {}
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
                true => RemoteError::Refused { kind: Refusal::Space, said },
                false => RemoteError::Unreachable { target: self.target.clone(), said },
            }
        })?;
        self.begin(&words, sinks)
    }

    /// Starts the command. Where the connection is lost meanwhile it may have started: following it tells.
    fn begin(&mut self, words: &[String], sinks: &mut dyn Sinks) -> Result<(), RemoteError> {
        not_stopped()?;
        // From here on a signal is the command's to hear.
        match self.ask_until("begin", words, || self.in_time(Step::Follow)) {
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
    fn follow(&mut self, job: &Job, sinks: &mut dyn Sinks) -> Result<(String, Heard), RemoteError> {
        let mut heard = Heard::default();
        let folder = self.folder();
        let status = self.persist(Step::Follow, sinks, |device, sinks| {
            let words = [folder.clone(), heard.out.to_string(), heard.err.to_string()];
            let call = device.link.script(script("follow", &words));
            let sinks = RefCell::new(sinks);
            let take = |frame| {
                let mut sinks = sinks.borrow_mut();
                device.beat();
                match frame {
                    Frame::Out(bytes) => {
                        heard.out += bytes.len() as u64;
                        device.words.borrow_mut().add(&bytes);
                        heard.unread |= sinks.stdout(&bytes).is_err();
                    }
                    Frame::Err(bytes) => {
                        heard.err += bytes.len() as u64;
                        sinks.stderr(&bytes);
                    }
                    Frame::Fact(name, value) if name == "full" => heard.full = Some(value),
                    _ => {}
                }
                if heard.unread {
                    device.stopping.is_unread();
                }
                Ok(device.limits.check_output(heard.out + heard.err)?)
            };
            let glance = || {
                device.glance(&folder)?;
                let announced = std::mem::take(&mut device.words.borrow_mut().announced);
                for part in announced.iter().filter(|_| job.announces) {
                    // What does not come now comes at the end.
                    let _ = device.fetched(&[folder.clone(), part.clone()], job, &mut **sinks.borrow_mut());
                }
                Ok(())
            };
            let ended = converse(&device.link, call, take, glance);
            match (ended, &device.uncertain) {
                // Its start may go on there without the connection.
                (Err(RemoteError::Refused { kind: Refusal::Gone, said }), Some((_, since)))
                    if since.elapsed() < START_PATIENCE && not_stopped().is_ok() =>
                {
                    Ok(Ended::Cut(said))
                }
                (ended, _) => ended,
            }
        })?;
        Ok((status, heard))
    }

    /// Signals the command if that is due. An error when it was to end long ago.
    fn glance(&self, folder: &str) -> Result<(), RemoteError> {
        self.in_time(Step::Follow)?;
        let Some(signal) = self.stopping.due() else { return Ok(()) };
        let call = self.link.script(script("stop", &[folder.to_owned(), signal.to_owned()]));
        let begun = Instant::now();
        let in_time = || {
            self.in_time(Step::Follow)?;
            if begun.elapsed() < STOP_LIMIT { Ok(()) } else { Err(out_of_time(STOP_LIMIT)) }
        };
        // A machine that does not understand is asked again.
        if matches!(converse(&self.link, call, |_| Ok(()), in_time), Ok(Ended::Whole(_))) {
            self.stopping.arrived();
        }
        Ok(())
    }

    /// An error if a step of an orderly end takes too long.
    fn in_time(&self, step: Step) -> Result<(), RemoteError> {
        if !self.stopping.is_over(step) {
            return Ok(());
        }
        Err(RemoteError::Deaf { target: self.target.clone(), folder: self.folder() })
    }

    /// The machine was heard of.
    fn beat(&self) {
        self.frames.set(self.frames.get() + 1);
        self.heard.set(SystemTime::now());
    }

    /// Fetches what the command left.
    fn fetch(&mut self, job: &Job, sinks: &mut dyn Sinks) -> Result<Fetched, RemoteError> {
        let folder = self.folder();
        let (mut fetched, mut most) = (Fetched::default(), 0);
        self.persist(Step::Fetch, sinks, |device, sinks| {
            let (ended, all) = device.fetched(std::slice::from_ref(&folder), job, sinks);
            // Only a file more than ever before is a step forward: each attempt begins with the first.
            if all.whole > most {
                most = all.whole;
                device.beat();
            }
            fetched = all;
            ended
        })?;
        Ok(fetched)
    }

    /// One attempt to fetch what the command left, or a part of it: `words` are its folder, and that part.
    fn fetched(
        &self,
        words: &[String],
        job: &Job,
        sinks: &mut dyn Sinks,
    ) -> (Result<Ended, RemoteError>, Fetched) {
        let made =
            |path: &str| path == "." || job.folders.iter().any(|made| Path::new(made).starts_with(path));
        let mut arrivals = Arrivals::new(self.limits);
        let mut skipped = Vec::new();
        let call = self.link.script(script("fetch", words));
        let take = |frame| {
            match frame {
                Frame::Fact(name, path) if name == "skipped" && skipped.len() < MOST_FACTS => {
                    skipped.push(path);
                }
                Frame::File(path, size) => {
                    sinks.progress(&format!("fetching {path} ({size} bytes)"));
                    arrivals.begin(&path, NEW_FILE, Some(size), &mut |name| sinks.place(name))?;
                }
                // Those of before are for the command only.
                Frame::Folder(path) if made(&path) => {}
                Frame::Folder(path) => arrivals.folder(&path, &mut |name| sinks.place(name))?,
                Frame::Content(bytes) => arrivals.append(&bytes)?,
                _ => {}
            }
            Ok(())
        };
        let ended = converse(&self.link, call, take, || self.in_time(Step::Fetch));
        let whole = arrivals.whole();
        let (files, refused) = arrivals.into_parts();
        (ended, Fetched { files, skipped, refused, whole })
    }

    /// Removes what the command left there.
    fn clean(&mut self, sinks: &mut dyn Sinks) -> Result<(), RemoteError> {
        self.persist(Step::Clean, sinks, |device, _| device.removed()).map(drop)
    }

    fn removed(&self) -> Result<Ended, RemoteError> {
        self.act("clean")
    }

    /// Removes the command even if it has not begun yet, which it then cannot.
    fn refused(&self) -> Result<Ended, RemoteError> {
        self.act("refuse")
    }

    /// Makes a call about the command that answers nothing.
    fn act(&self, action: &str) -> Result<Ended, RemoteError> {
        let call = self.link.script(script(action, &[self.home.clone(), self.name.clone()]));
        let begun = Instant::now();
        let in_time = || self.in_time(Step::Clean).and_then(|()| in_time(begun));
        converse(&self.link, call, |_| Ok(()), in_time)
    }

    /// Makes a call until it comes to its end, however often the connection is lost; gives the status at its end.
    fn persist(
        &mut self,
        step: Step,
        sinks: &mut dyn Sinks,
        mut call: impl FnMut(&Self, &mut dyn Sinks) -> Result<Ended, RemoteError>,
    ) -> Result<String, RemoteError> {
        let mut lost: Option<Instant> = None;
        loop {
            let before = self.frames.get();
            let said = match call(self, sinks)? {
                Ended::Whole(status) => {
                    if lost.is_some() {
                        sinks.note(&format!("{} was there again", self.target));
                    }
                    return Ok(status);
                }
                Ended::Cut(said) => said,
            };
            self.in_time(step)?;
            let is_stopping = self.stopping.since().is_some();
            let patience = if is_stopping { self.patience.min(step.limit()) } else { self.patience };
            if self.frames.get() > before && !is_stopping {
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
                let (at, words) = (LocalTime::of(self.heard.get()), &self.words.borrow().last);
                let words =
                    if words.is_empty() { String::new() } else { format!("; its last line was: {words}") };
                sinks.note(&format!("{} was last heard of at {at}{words}", self.target));
                return Err(RemoteError::Lost { target: self.target.clone(), after: patience, folder, said });
            }
            std::thread::sleep(PAUSE);
            if let Some(call) = self.link.network("connect") {
                // That it failed shows in the next call.
                let _ = perform(&self.link, call, CALL_LIMIT, || self.in_time(step));
            }
        }
    }
}

/// An error if a signal asked to stop.
fn not_stopped() -> Result<(), RemoteError> {
    sys::stop_signal::received().map_or(Ok(()), |signal| Err(RemoteError::Stopped(signal)))
}

/// An error if a call takes too long that began then.
fn in_time(begun: Instant) -> Result<(), RemoteError> {
    if begun.elapsed() < ANSWER_LIMIT { Ok(()) } else { Err(out_of_time(ANSWER_LIMIT)) }
}

fn out_of_time(limit: Duration) -> RemoteError {
    RemoteError::Garbled(format!("no end within {} s", limit.as_secs()))
}

/// The script with the words of a call in front.
fn script(action: &str, words: &[String]) -> String {
    let words: String = words.iter().map(|word| format!(" {}", quoted(word))).collect();
    format!("set -- {action}{words}\n{}", include_str!("remote.sh"))
}

#[cfg(test)]
mod tests;
