//! A visit: a second open of the context by the same process, with a small area of its own and a thread of its own, which
//! calls the service manager by bare commands, waits with poll or epoll, and leaves in one of several ways.
//! Not here: the process's own traffic (`traffic`), the promises in detail (`conformance`).

use std::io;
use std::time::{Duration, Instant};

use abi::{Commands, Handle, Payload, Return, Returns, TransactionFlags};
use backend::AnyContext;
use driver::{AnyConnection, Connection, Context, Exchange, OpenOptions};
use fastrand::Rng;
use sys::epoll::Epoll;

use super::Member;
use crate::fault::Fault;
use crate::tally::Count;

/// Code of a ping, which each binder object answers with an empty reply.
const PING: u32 = u32::from_be_bytes(*b"_PNG");
/// Room for the returns of one read, in bytes.
const ROOM: usize = 512;
/// Time of one wait, in ms.
const WAIT_MS: i32 = 20;

/// How a visit ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leaving {
    /// The reply's buffer is freed.
    Tidy,
    /// The reply's buffer is left to the close.
    Held,
    /// The thread leaves the driver while its reply is on the way.
    Early,
    /// The same with another call behind it, and then everything is closed.
    Twice,
}

impl Member {
    /// Makes one visit.
    pub(super) fn visit(&self, rng: &mut Rng) {
        self.reporter.counters.add(Count::Visits);
        let ways = [Leaving::Tidy, Leaving::Held, Leaving::Early, Leaving::Twice];
        let mute = self.commits(Fault::MuteVisit);
        let plan = Plan {
            mute,
            leaving: if mute { Leaving::Held } else { ways[rng.usize(..ways.len())] },
            with_epoll: rng.bool(),
            map_size: sys::page::size() * (1 + rng.usize(..16)),
            patience: self.reporter.patience(),
        };
        let _wait = self.reporter.wait(format!("{} for the end of a visit: {plan:?}", self.me));
        // A thread of its own: the driver knows threads by their number, and this one may leave it.
        let visited = std::thread::scope(|scope| {
            let thread = scope.spawn(|| plan.make(&self.context));
            thread.join().unwrap_or_else(|_| Err("it panicked".to_owned()))
        });
        if let Err(why) = visited {
            self.reporter.fail(format_args!("a visit of {}: {plan:?}: {why}", self.me));
        }
    }
}

/// One visit.
#[derive(Clone, Copy, Debug)]
struct Plan {
    /// Whether it calls nobody.
    mute: bool,
    leaving: Leaving,
    with_epoll: bool,
    map_size: usize,
    patience: Duration,
}

impl Plan {
    fn make(self, context: &AnyContext) -> Result<(), String> {
        let options = OpenOptions { map_size: self.map_size, nonblocking: true };
        let connection = context.open(options).map_err(|error| error.to_string())?;
        // An epoll can watch a device only.
        let watch = match connection.descriptor().filter(|_| self.with_epoll) {
            Some(device) => {
                let epoll = Epoll::new().map_err(doing("making an epoll"))?;
                epoll.add(device, 1).map_err(doing("watching the device"))?;
                Some((epoll, device))
            }
            None => None,
        };
        if !self.mute {
            ping(&connection).map_err(doing("calling the manager"))?;
        }
        match self.leaving {
            Leaving::Tidy | Leaving::Held => {
                let start = Instant::now();
                loop {
                    match &watch {
                        Some((epoll, _)) => {
                            let ready = epoll.wait(&mut Vec::new(), WAIT_MS);
                            ready.map_err(doing("waiting with an epoll"))?;
                        }
                        None => drop(connection.poll_readable(WAIT_MS)),
                    }
                    if self.answered(&connection)? {
                        break;
                    }
                    if sys::patience::is_over(start, self.patience) {
                        return Err("the manager did not answer".to_owned());
                    }
                }
            }
            Leaving::Early => connection.thread_exit().map_err(doing("THREAD_EXIT"))?,
            Leaving::Twice => {
                connection.thread_exit().map_err(doing("THREAD_EXIT"))?;
                ping(&connection).map_err(doing("calling the manager again"))?;
            }
        }
        // The thread that it watched may be gone.
        if let Some((epoll, device)) = watch {
            epoll.remove(device).map_err(doing("watching the device no more"))?;
        }
        Ok(())
    }

    /// Reads; whether the reply came.
    fn answered(self, connection: &AnyConnection) -> Result<bool, String> {
        let mut room = [0; ROOM];
        let mut exchange = Exchange::new(&[], &mut room);
        match connection.write_read_uninterrupted(&mut exchange) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            result => result.map_err(doing("reading"))?,
        }
        for item in Returns::new(exchange.returned()) {
            match item.map_err(|error| error.to_string())? {
                Return::Reply(reply) => {
                    if self.leaving == Leaving::Tidy {
                        write(connection, |c| c.free_buffer(reply.buffer)).map_err(doing("freeing"))?;
                    }
                    return Ok(true);
                }
                Return::Noop | Return::TransactionComplete | Return::SpawnLooper => {}
                other => return Err(format!("instead of a reply it got {other:?}")),
            }
        }
        Ok(false)
    }
}

/// An error's text, with what was done.
fn doing(what: &'static str) -> impl Fn(io::Error) -> String {
    move |error| format!("{what}: {}", sys::errno::describe(&error))
}

/// Sends a ping to the service manager.
fn ping(connection: &AnyConnection) -> io::Result<()> {
    write(connection, |c| c.transaction(Handle(0), PING, TransactionFlags(0), Payload::default()))
}

fn write(connection: &AnyConnection, fill: impl FnOnce(&mut Commands)) -> io::Result<()> {
    connection.write_read(&mut Exchange::new(Commands::of(fill).as_bytes(), &mut []))
}
