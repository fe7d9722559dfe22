//! Room: the driver under test: a broker on a thread of this process, connections in a context of their
//! own, and OS threads that take turns, so that whatever happens happens in one order.
//! Not here: what should come of it (`reference`).

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Duration;

use abi::{BufferAddress, Commands, Cookie, Handle, NodePtr, Payload, Return, Returns, TransactionFlags};
use driver::embedded::Settings;
use driver::embedded::broker::{self, Event, Lifetime};
use driver::embedded::protocol::StateFile;
use driver::{Connection, Context, EmbeddedConnection, EmbeddedContext, Exchange, OpenOptions};

use crate::payload::{Sent, arrived, cookie};
use crate::reference::{Command, Outcome, Seen};
use crate::steps::{Op, PROCS, Step, THREADS};

/// Nothing in here takes long; a turn that does is a hang.
const PATIENCE: Duration = Duration::from_secs(20);
const MAP_SIZE: usize = 64 << 10;

/// A broker that stays, and a connection that sees its state.
struct Broker {
    watch: EmbeddedConnection,
    context: EmbeddedContext,
}

impl Broker {
    fn start() -> Self {
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
        let watch = context.open(OpenOptions::default()).expect("open");
        Self { watch, context }
    }

    fn directory(&self) -> &Path {
        self.context.directory()
    }

    /// Connections of other contexts that the broker still has.
    fn wait_for(&self, open: usize) {
        for _ in 0..20_000 {
            let state = self.watch.state(StateFile::State).expect("a state");
            if state.lines().filter(|line| line.starts_with("proc ")).count() == open + 1 {
                return;
            }
            thread::sleep(Duration::from_micros(200));
        }
        panic!("the broker does not notice a close");
    }
}

type Job = Box<dyn FnOnce() + Send>;

/// Connections and threads of one stream.
pub(crate) struct Real {
    broker: Arc<Broker>,
    connections: [Option<Arc<EmbeddedConnection>>; PROCS],
    /// What each holds, oldest first.
    buffers: [Vec<u64>; PROCS],
    threads: Vec<Sender<Job>>,
    /// How many RELEASEs arrive before one is lost.
    lose_release_after: Option<u32>,
}

/// One broker for each user of this: streams must not run side by side on it.
pub(crate) struct Stage(Arc<Broker>);

impl Stage {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Broker::start()))
    }

    pub(crate) fn open(&self, lanes: bool, lose_release_after: Option<u32>) -> Real {
        static CONTEXTS: AtomicU32 = AtomicU32::new(0);
        let name = format!("model{}", CONTEXTS.fetch_add(1, Ordering::Relaxed));
        let settings = Settings { lanes, ..Settings::default() };
        let context = EmbeddedContext::at(self.0.directory(), &name, settings);
        let options = OpenOptions { map_size: MAP_SIZE, nonblocking: true };
        let connections = std::array::from_fn(|_| Some(Arc::new(context.open(options).expect("open"))));
        let threads = (0..THREADS).map(|_| start_thread()).collect();
        let real = Real {
            broker: Arc::clone(&self.0),
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
    /// Does something on one of the threads, with one of the connections.
    fn on<T: Send + 'static>(
        &self,
        proc: usize,
        thread: usize,
        job: impl FnOnce(&EmbeddedConnection) -> T + Send + 'static,
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

    /// Waits until everything that the last step set off has reached its queue.
    fn settle(&self) {
        for connection in self.connections.iter().flatten() {
            connection.node_debug_info(u64::MAX).expect("answered");
        }
    }

    /// Carries a step out.
    pub(crate) fn step(&mut self, step: &Step, number: u32, command: &Command) -> Outcome {
        let outcome = self.turn(step, number, command);
        self.settle();
        outcome
    }

    fn turn(&mut self, step: &Step, number: u32, command: &Command) -> Outcome {
        let Step { proc, thread, .. } = *step;
        let done = |errno| Outcome { errno, taken: true, returns: Vec::new() };
        match command {
            Command::Close => {
                self.close(proc);
                return done(0);
            }
            Command::ThreadExit => {
                self.on(proc, thread, |connection| {
                    connection.thread_exit().expect("exits");
                    connection.version().expect("answered")
                });
                return done(0);
            }
            Command::BecomeManager => {
                let result = self.on(proc, thread, |connection| connection.become_context_manager(None));
                return done(result.map_or_else(|error| error.raw_os_error().unwrap_or(-1), |()| 0));
            }
            _ => {}
        }
        let reads = step.read || step.op == Op::Read;
        let freed = match command {
            Command::Free(at) => self.buffers[proc][*at],
            _ => 0,
        };
        let lost = self.loses(command);
        let command = if lost { Command::None } else { command.clone() };
        let (outcome, delivered) =
            self.on(proc, thread, move |connection| write_read(connection, number, &command, freed, reads));
        if freed != 0 && outcome.taken {
            self.buffers[proc].retain(|address| *address != freed);
        }
        self.buffers[proc].extend(delivered);
        outcome
    }

    fn loses(&mut self, command: &Command) -> bool {
        let release = matches!(command, Command::Count { strong: true, up: false, .. });
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
        self.broker.wait_for(self.connections.iter().flatten().count());
    }
}

impl Drop for Real {
    fn drop(&mut self) {
        self.connections = Default::default();
        if !thread::panicking() {
            self.broker.wait_for(0);
            let state = self.broker.watch.state(StateFile::State).expect("a state");
            let left: Vec<_> = state.lines().filter(|line| line.contains("node ")).collect();
            assert!(left.is_empty(), "nobody is there any more, but {left:?}");
        }
    }
}

/// One ioctl; also where the buffers lie that it delivered.
fn write_read(
    connection: &EmbeddedConnection,
    number: u32,
    command: &Command,
    freed: u64,
    reads: bool,
) -> (Outcome, Vec<u64>) {
    let objects = match command {
        Command::Call { objects, .. } | Command::Reply { objects } => &objects[..],
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

fn outcome(connection: &EmbeddedConnection, exchange: &mut Exchange<'_>) -> (Outcome, Vec<u64>) {
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
            Err(error) => Seen::Other(error.to_string()),
        })
        .collect();
    (Outcome { errno, taken, returns }, delivered)
}

fn encode(command: &Command, number: u32, freed: u64, payload: Payload<'_>) -> Commands {
    let mut commands = Commands::default();
    match *command {
        Command::Call { handle, oneway, .. } => {
            let flags = if oneway { TransactionFlags::ONEWAY } else { TransactionFlags::CALL };
            commands.transaction(Handle(handle), number, flags, payload);
        }
        Command::Reply { .. } => commands.reply(TransactionFlags::default(), payload),
        Command::Free(_) => commands.free_buffer(BufferAddress(freed)),
        Command::Count { handle, strong, up } => match (strong, up) {
            (true, true) => commands.acquire(Handle(handle)),
            (true, false) => commands.release(Handle(handle)),
            (false, true) => commands.increfs(Handle(handle)),
            (false, false) => commands.decrefs(Handle(handle)),
        },
        Command::Acknowledge { ptr, strong: true } => {
            commands.acquire_done(NodePtr(ptr), Cookie(cookie(ptr)))
        }
        Command::Acknowledge { ptr, strong: false } => {
            commands.increfs_done(NodePtr(ptr), Cookie(cookie(ptr)))
        }
        Command::Watch { handle, cookie } => commands.request_death(Handle(handle), Cookie(cookie)),
        Command::Unwatch { handle, cookie } => commands.clear_death(Handle(handle), Cookie(cookie)),
        Command::DeathDone { cookie } => commands.dead_binder_done(Cookie(cookie)),
        Command::EnterLooper => commands.enter_looper(),
        _ => {}
    }
    commands
}

fn seen(connection: &EmbeddedConnection, item: Return, delivered: &mut Vec<u64>) -> Seen {
    let mine = |node: NodePtr, its: Cookie| match cookie(node.0) == its.0 {
        true => node.0,
        false => u64::MAX,
    };
    match item {
        Return::Noop => Seen::Noop,
        Return::TransactionComplete => Seen::Complete,
        Return::DeadReply => Seen::Dead,
        Return::FailedReply => Seen::Failed,
        Return::Increfs(node, its) => Seen::Increfs(mine(node, its)),
        Return::Acquire(node, its) => Seen::Acquire(mine(node, its)),
        Return::Release(node, its) => Seen::Release(mine(node, its)),
        Return::Decrefs(node, its) => Seen::Decrefs(mine(node, its)),
        Return::DeadBinder(its) => Seen::DeadBinder(its.0),
        Return::ClearDeathNotificationDone(its) => Seen::ClearDone(its.0),
        Return::Transaction(delivery) => {
            delivered.push(delivery.buffer.0);
            match arrived(connection, &delivery) {
                Ok((number, _)) if number != delivery.code => {
                    Seen::Other(format!("{number} in {delivery:?}"))
                }
                Ok((number, objects)) => {
                    let oneway = delivery.flags.is_oneway();
                    Seen::Transaction { ptr: mine(delivery.node, delivery.cookie), oneway, number, objects }
                }
                Err(why) => Seen::Other(why),
            }
        }
        Return::Reply(delivery) => {
            delivered.push(delivery.buffer.0);
            match arrived(connection, &delivery) {
                Ok((number, objects)) => Seen::Reply { number, objects },
                Err(why) => Seen::Other(why),
            }
        }
        other => Seen::Other(format!("{other:?}")),
    }
}
