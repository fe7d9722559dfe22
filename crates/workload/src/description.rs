//! A load as data: processes, their threads, and the steps of each.
//! Not here: its text form, carrying it out (`bench`).
//! Facts: the steps that a call's receiver makes are part of the call, so a description is a tree and has no cycles. All
//! processes of a load know the whole description; a call carries its number in it, its *site*, as transaction code.

/// A load.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Workload {
    /// Its subject and origin, in lines of text.
    pub notes: Vec<String>,
    /// The processes. Each registers one object, which all calls to it go to.
    pub processes: Vec<Process>,
    /// Threads that make calls of their own accord.
    pub threads: Vec<Thread>,
    /// The steps of the measuring process; `None` in a load that is only carried out.
    pub measured: Option<Measured>,
}

impl Workload {
    /// The name of a process; empty for an index beyond them.
    #[must_use]
    pub fn name(&self, process: usize) -> &str {
        self.processes.get(process).map_or("", |process| &process.name)
    }
}

/// A process, or several alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its name: letters, digits, `.`, `_` and `-`.
    pub name: String,
    /// How many there are. A call to one of several goes to the one with the caller's own number, counted modulo this.
    pub copies: u32,
    /// How many threads the driver may ask for, in addition to the one that serves from the begin.
    pub pool: u32,
}

/// A thread of a process; in each copy of the process there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Index of its process in [`Workload::processes`].
    pub process: usize,
    /// Its scheduling class and priority.
    pub scheduling: Scheduling,
    /// How often it makes its steps.
    pub turns: Turns,
    /// Its steps.
    pub steps: Vec<Step>,
}

/// Scheduling of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scheduling {
    /// The one of the process that starts it.
    #[default]
    Inherited,
    /// `SCHED_OTHER` with this nice value, -20 to 19.
    Nice(i8),
    /// `SCHED_FIFO` with this priority, 1 to 99.
    Fifo(u8),
    /// `SCHED_RR` with this priority, 1 to 99.
    RoundRobin(u8),
}

/// How often a thread makes its steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turns {
    /// This often.
    Times(u64),
    /// Until the load ends.
    Forever,
    /// Once for each [`Step::Release`] of its process.
    OnRelease,
}

/// Steps of a measuring process. Only `measure` is timed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    /// Once, before the first sample.
    pub once: Vec<Step>,
    /// Before each sample.
    pub before: Vec<Step>,
    /// A sample is the time of these.
    pub measure: Vec<Step>,
    /// After each sample.
    pub after: Vec<Step>,
}

/// One step of a thread, of the receiver of a call, or of the measuring process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A call.
    Call(Call),
    /// Computes for this time, in ns.
    Work(u64),
    /// Sleeps for this time, in ns.
    Sleep(u64),
    /// Waits until this time after the load's begin, in ns; goes on at once if it is over.
    At(u64),
    /// For receivers: keeps the call and its buffer until the load ends.
    Hold,
    /// Gets this many objects of a process and keeps them, in place of those that it kept before.
    Fetch {
        /// Index of the process.
        from: usize,
        /// Number of objects.
        count: u32,
    },
    /// Asks for the death notices of all objects that it keeps.
    Link,
    /// Takes these requests back.
    Unlink,
    /// Lets go of the objects that it keeps.
    Forget,
    /// Registers this many services under names that nobody has yet.
    Register(u32),
    /// Asks the service manager for a notice each time that the measuring process registers its first service.
    Subscribe,
    /// Looks up the service of a process.
    LookUp(usize),
    /// Lists all services.
    List,
    /// Opens the context anew and looks up all services that it calls.
    Open,
    /// Closes what [`Step::Open`] opened.
    Close,
    /// Lets all threads of a process that wait for it make their steps once.
    Release(usize),
    /// Waits until they all have.
    Finished(usize),
    /// Waits until a process has served or holds this many more calls than at the last such step: oneway calls, and calls that its
    /// receiver holds.
    Served {
        /// Index of the process.
        process: usize,
        /// Number of calls to all of its copies.
        calls: u32,
    },
    /// Kills a process.
    Kill(usize),
    /// Starts a killed process again, and waits until it serves.
    Start(usize),
    /// Waits until this many notices, of deaths or registrations, have come to the copies of a process since the last such step.
    Notified {
        /// Index of the process.
        process: usize,
        /// Number of notices.
        notices: u32,
    },
    /// Freezes a process in the driver: calls to it are refused, oneway calls are kept.
    Freeze(usize),
    /// Thaws it.
    Thaw(usize),
    /// Stops all threads of a process, as a system does with a frozen one.
    Stop(usize),
    /// Lets them go on.
    Continue(usize),
    /// Has the kernel take unused pages of the driver's areas.
    Reclaim,
}

/// A call, and what its receiver does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Index of the called process.
    pub to: usize,
    /// Whether nobody waits for an answer.
    pub oneway: bool,
    /// Bytes of the request without objects.
    pub request: u32,
    /// Bytes of the reply; 0 for a oneway call.
    pub reply: u32,
    /// Descriptors and objects in the request.
    pub carries: Carries,
    /// How often it is made, one after the other.
    pub times: u32,
    /// Whether the driver takes it.
    pub expected: Expected,
    /// Steps of the receiver before it answers.
    pub served: Vec<Step>,
}

/// End of a call that a load expects. Any other end of a call ends the load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expected {
    /// It is taken, and answered unless it is oneway.
    #[default]
    Taken,
    /// It is refused: no space, a dead or a frozen receiver.
    Refused,
    /// Either of both.
    Either,
}

/// Contents of a request beside bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carries {
    /// Descriptors of an open file.
    pub descriptors: u32,
    /// Objects that no call has carried before.
    pub new_objects: u32,
    /// Objects of the sender, the same in each call.
    pub known_objects: u32,
    /// Objects that the sender keeps by [`Step::Fetch`], as many as it has of these.
    pub handles: u32,
    /// Whether all objects are weak: a receiver counts them and passes them on, and cannot call them.
    pub weak: bool,
}

impl Carries {
    /// Whether it has objects, weak ones or not.
    #[must_use]
    pub fn has_objects(&self) -> bool {
        self.new_objects > 0 || self.known_objects > 0 || self.handles > 0
    }
}
