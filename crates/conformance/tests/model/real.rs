//! Driver under test: a broker on a thread of this process or the kernel's driver, connections, and OS threads that take turns, so
//! that all events have one order.
//! Not here: the expected result (`reference`).

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::{Duration, Instant};

use backend::AnyContext;
use conformance::Kind;
use needs::{Lack, Need};

use backend::locate::{self, Driver, Wanted};

use abi::{BufferAddress, Commands, Cookie, Handle, NodePtr, Payload, Return, Returns, TransactionFlags};
use driver::error::OpenError;
use driver::kernel_state::{self, StateFile};
use driver::{AnyConnection, Connection, Context, Exchange, OpenOptions};
use embedded::broker::{self, Event, Lifetime};
use embedded::{EmbeddedConnection, EmbeddedContext, Settings};

use crate::payload::{Sent, arrived, cookie};
use crate::reference::{Command, Outcome, Returned};
use crate::steps::{Op, PROCS, Step, THREADS};

/// Time limit of a turn; a longer one is a hang.
const PATIENCE: Duration = Duration::from_secs(120);
const MAP_SIZE: usize = 64 << 10;

/// A driver that serves one stream after the other.
pub(crate) struct Ground {
    context: AnyContext,
    /// A connection that reads the broker's state.
    watch: Option<EmbeddedConnection>,
    /// Processes in the driver's state without those of a stream.
    others: usize,
}

impl Ground {
    /// A permanent broker.
    pub(crate) fn embedded() -> Arc<Self> {
        let context = EmbeddedContext::private("watch", Settings::default()).expect("a directory");
        let directory = context.directory().to_owned();
        let (ready, listening) = mpsc::channel();
        let serve = move || {
            let tell = |event: Event<'_>| match event {
                Event::Listening { .. } => drop(ready.send(())),
                other => panic!("{other}"),
            };
            broker::run(&directory, Lifetime::LastClient, tell).expect("served to the end");
        };
        thread::spawn(serve);
        listening.recv_timeout(PATIENCE).expect("a broker");
        let watch = Some(context.open(OpenOptions::default()).expect("open"));
        Arc::new(Self { context: AnyContext::Embedded(context), watch, others: 1 })
    }

    /// The kernel's C driver, in a context that nobody else uses.
    pub(crate) fn kernel() -> Result<Arc<Self>, Lack> {
        let lacks = |why: OpenError| Need::Driver.lacks(why.to_string());
        let wanted = Wanted { driver: Driver::Kernel, ..Wanted::default() };
        let context = locate::find(&wanted, "binder").map_err(lacks)?.context;
        let evidence = conformance::examine(&context.clone().into()).map_err(lacks)?;
        if evidence.kind != Kind::C {
            return Err(Need::Driver.lacks("the model is of the C driver"));
        }
        let ground = Self { context, watch: None, others: 0 };
        let others = ground.processes();
        Ok(Arc::new(Self { others, ..ground }))
    }

    fn state(&self) -> String {
        match &self.watch {
            Some(connection) => connection.state(StateFile::State).expect("a state"),
            None => kernel_state::read_here(self.context.device(), StateFile::State)
                .expect("a state that can be read")
                .expect("a state"),
        }
    }

    fn processes(&self) -> usize {
        self.state().lines().filter(|line| line.starts_with("proc ")).count()
    }

    /// Waits until the driver has released all but `open` connections of the stream.
    fn wait_for(&self, open: usize) {
        let since = Instant::now();
        while self.processes() != open + self.others {
            assert!(!sys::patience::is_over(since, PATIENCE), "the driver does not notice a close");
            thread::sleep(Duration::from_micros(200));
        }
    }
}

type Job = Box<dyn FnOnce() + Send>;

/// Connections and threads of one stream.
pub(crate) struct Real {
    ground: Arc<Ground>,
    connections: [Option<Arc<AnyConnection>>; PROCS],
    /// Buffers that each connection holds, oldest first.
    buffers: [Vec<u64>; PROCS],
    threads: Vec<Sender<Job>>,
    /// Number of RELEASEs that arrive before one is lost.
    lose_release_after: Option<u32>,
}

impl Ground {
    /// Opens the connections of one stream. Streams must not run side by side on one driver.
    pub(crate) fn open(self: &Arc<Self>, call_slots: bool, lose_release_after: Option<u32>) -> Real {
        static CONTEXTS: AtomicU32 = AtomicU32::new(0);
        let context = match &self.context {
            AnyContext::Kernel(_) => self.context.clone(),
            AnyContext::Embedded(context) => {
                let name = format!("model{}", CONTEXTS.fetch_add(1, Ordering::Relaxed));
                let settings = Settings { call_slots, ..Settings::default() };
                AnyContext::Embedded(EmbeddedContext::at(context.directory(), &name, settings))
            }
        };
        let options = OpenOptions { map_size: MAP_SIZE, nonblocking: true };
        let connections = std::array::from_fn(|_| Some(Arc::new(context.open(options).expect("open"))));
        let threads = (0..THREADS).map(|_| start_thread()).collect();
        let real = Real {
            ground: Arc::clone(self),
            connections,
            buffers: Default::default(),
            threads,
            lose_release_after,
        };
        for thread in 0..THREADS {
            for proc in 0..PROCS {
                // Ends the first-contact state (contract WR-05).
                real.on(proc, thread, |connection| assert_eq!(connection.version().expect("answered"), 8));
            }
        }
        real
    }
}

fn start_thread() -> Sender<Job> {
    let (sender, jobs) = mpsc::channel::<Job>();
    thread::spawn(move || jobs.into_iter().for_each(|job| job()));
    sender
}

impl Real {
    /// Runs a closure on one of the threads, with one of the connections.
    fn on<T: Send + 'static>(
        &self,
        proc: usize,
        thread: usize,
        job: impl FnOnce(&AnyConnection) -> T + Send + 'static,
    ) -> T {
        let connection = Arc::clone(self.connections[proc].as_ref().expect("open"));
        let (done, result) = mpsc::channel();
        let job: Job = Box::new(move || {
            let result = job(&connection);
            // The last to hold a connection must be the main thread.
            drop(connection);
            done.send(result).expect("waited for");
        });
        self.threads[thread].send(job).expect("the thread is there");
        result.recv_timeout(PATIENCE).expect("a turn hung or panicked")
    }

    /// Waits until all effects of the last step have reached their queues.
    fn settle(&self) {
        for connection in self.connections.iter().flatten() {
            connection.node_debug_info(u64::MAX).expect("answered");
        }
    }

    /// Executes a step.
    pub(crate) fn step(&mut self, step: &Step, number: u32, command: &Command) -> Outcome {
        let outcome = self.turn(step, number, command);
        self.settle();
        outcome
    }

    fn turn(&mut self, step: &Step, number: u32, command: &Command) -> Outcome {
        let Step { proc, thread, .. } = *step;
        let done = |errno| Outcome { errno, taken: true, returns: Vec::new() };
        match command.op {
            Op::Close => {
                self.close(proc);
                return done(0);
            }
            Op::ThreadExit => {
                self.on(proc, thread, |connection| {
                    connection.thread_exit().expect("exits");
                    connection.version().expect("answered")
                });
                return done(0);
            }
            Op::BecomeManager => {
                let result = self.on(proc, thread, |connection| connection.become_context_manager(None));
                return done(result.map_or_else(|error| error.raw_os_error().unwrap_or(-1), |()| 0));
            }
            _ => {}
        }
        let reads = step.read || step.op == Op::Read;
        let freed = match command.op {
            Op::Free(at) => self.buffers[proc][at],
            _ => 0,
        };
        let mut command = command.clone();
        if self.loses(&command) {
            command.op = Op::Read;
        }
        let (outcome, delivered) =
            self.on(proc, thread, move |connection| write_read(connection, number, &command, freed, reads));
        if freed != 0 && outcome.taken {
            self.buffers[proc].retain(|address| *address != freed);
        }
        self.buffers[proc].extend(delivered);
        outcome
    }

    fn loses(&mut self, command: &Command) -> bool {
        let release = matches!(command.op, Op::Count { strong: true, up: false, .. });
        match &mut self.lose_release_after {
            Some(left) if release => {
                *left = left.wrapping_sub(1);
                *left == u32::MAX
            }
            _ => false,
        }
    }

    fn close(&mut self, proc: usize) {
        let connection = self.connections[proc].take().expect("open");
        drop(Arc::into_inner(connection).expect("nobody else holds it"));
        self.buffers[proc].clear();
        self.ground.wait_for(self.connections.iter().flatten().count());
    }
}

impl Drop for Real {
    fn drop(&mut self) {
        self.connections = Default::default();
        if !thread::panicking() {
            self.ground.wait_for(0);
            // A kernel's driver takes a process off its list before it releases what that had.
            let since = Instant::now();
            while let Some(left) = self.ground.state().lines().find(|line| line.contains("node ")) {
                assert!(!sys::patience::is_over(since, PATIENCE), "nobody is there any more, but {left:?}");
                thread::sleep(Duration::from_micros(200));
            }
        }
    }
}

/// One ioctl; returns also the addresses of delivered buffers.
fn write_read(
    connection: &AnyConnection,
    number: u32,
    command: &Command,
    freed: u64,
    reads: bool,
) -> (Outcome, Vec<u64>) {
    let objects = match &command.op {
        Op::Call { objects, .. } | Op::Reply { objects } => &objects[..],
        _ => &[],
    };
    Sent::new(number, objects).with(|payload, vouched| {
        let commands = encode(command, number, freed, payload);
        let mut room = [0; 1024];
        let read: &mut [u8] = if reads { &mut room } else { &mut [] };
        let mut exchange = Exchange::new(commands.as_bytes(), read).with_payload(vouched);
        outcome(connection, &mut exchange)
    })
}

fn outcome(connection: &AnyConnection, exchange: &mut Exchange<'_>) -> (Outcome, Vec<u64>) {
    let result = connection.write_read_uninterrupted(exchange);
    let errno = result.map_or_else(|error| error.raw_os_error().unwrap_or(-1), |()| 0);
    let (taken, mut delivered) = (exchange.all_written(), Vec::new());
    let returns = match errno {
        0 => exchange.returned(),
        _ => &[],
    };
    let returns = Returns::new(returns)
        .map(|item| match item {
            Ok(item) => seen(connection, item, &mut delivered),
            Err(error) => Returned::Other(error.to_string()),
        })
        .collect();
    (Outcome { errno, taken, returns }, delivered)
}

fn encode(command: &Command, number: u32, freed: u64, payload: Payload<'_>) -> Commands {
    let mut commands = Commands::default();
    let Command { ref op, word, strong } = *command;
    match *op {
        Op::Call { handle, oneway, .. } => {
            let flags = if oneway { TransactionFlags::ONEWAY } else { TransactionFlags::CALL };
            commands.transaction(Handle(handle), number, flags, payload);
        }
        Op::Reply { .. } => commands.reply(TransactionFlags::default(), payload),
        Op::Free(_) => commands.free_buffer(BufferAddress(freed)),
        Op::Count { handle, strong, up } => match (strong, up) {
            (true, true) => commands.acquire(Handle(handle)),
            (true, false) => commands.release(Handle(handle)),
            (false, true) => commands.increfs(Handle(handle)),
            (false, false) => commands.decrefs(Handle(handle)),
        },
        Op::Acknowledge if strong => commands.acquire_done(NodePtr(word), Cookie(cookie(word))),
        Op::Acknowledge => commands.increfs_done(NodePtr(word), Cookie(cookie(word))),
        Op::Watch(handle) => commands.request_death(Handle(handle), Cookie(word)),
        Op::Unwatch(handle) => commands.clear_death(Handle(handle), Cookie(word)),
        Op::DeathDone => commands.dead_binder_done(Cookie(word)),
        Op::EnterLooper => commands.enter_looper(),
        _ => {}
    }
    commands
}

fn seen(connection: &AnyConnection, item: Return, delivered: &mut Vec<u64>) -> Returned {
    let mine = |node: NodePtr, its: Cookie| match cookie(node.0) == its.0 {
        true => node.0,
        false => u64::MAX,
    };
    match item {
        Return::Noop => Returned::Noop,
        Return::TransactionComplete => Returned::Complete,
        Return::DeadReply => Returned::Dead,
        Return::FailedReply => Returned::Failed,
        Return::Increfs(node, its) => Returned::Increfs(mine(node, its)),
        Return::Acquire(node, its) => Returned::Acquire(mine(node, its)),
        Return::Release(node, its) => Returned::Release(mine(node, its)),
        Return::Decrefs(node, its) => Returned::Decrefs(mine(node, its)),
        Return::DeadBinder(its) => Returned::DeadBinder(its.0),
        Return::ClearDeathNotificationDone(its) => Returned::ClearDone(its.0),
        Return::Transaction(delivery) => {
            delivered.push(delivery.buffer.0);
            match arrived(connection, &delivery) {
                Ok((number, _)) if number != delivery.code => {
                    Returned::Other(format!("{number} in {delivery:?}"))
                }
                Ok((number, objects)) => {
                    let oneway = delivery.flags.is_oneway();
                    Returned::Transaction {
                        ptr: mine(delivery.node, delivery.cookie),
                        oneway,
                        number,
                        objects,
                    }
                }
                Err(why) => Returned::Other(why),
            }
        }
        Return::Reply(delivery) => {
            delivered.push(delivery.buffer.0);
            match arrived(connection, &delivery) {
                Ok((number, objects)) => Returned::Reply { number, objects },
                Err(why) => Returned::Other(why),
            }
        }
        other => Returned::Other(format!("{other:?}")),
    }
}
