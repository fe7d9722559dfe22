//! Servers of RPC binder: a session with a socket for each thread that calls.
//! Not here: what goes through the sockets (`crate::measure::echo::rpc`).

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::process::Stdio;

use procgroup::Streams;
use sys::seqpacket::{self, Wait};

use super::role::Server;
use super::{AnyClient, CaseError, Servers, confine, failed, os_failed};
use crate::measure::echo::rpc;
use crate::plan::{Family, FaultKind, Planned};

impl Servers {
    /// Starts the server of a case of RPC binder with several threads; returns a client for each.
    pub(crate) fn open_session(&mut self, planned: &Planned) -> Result<Vec<rpc::Client>, CaseError> {
        self.close_case();
        let case = &planned.case;
        let client_cpus = self.place(planned.family)?;
        let session =
            self.session(case.threads as usize, case.payload_bytes as usize, self.fault_of(&case.name))?;
        if let Some(cpus) = client_cpus {
            confine(&cpus)?;
        }
        Ok(session)
    }

    /// Opens a case of RPC binder with one thread.
    pub(super) fn rpc(
        &mut self,
        family: Family,
        len: usize,
        fault: Option<FaultKind>,
    ) -> Result<AnyClient, CaseError> {
        let closed = || CaseError::Failed("the RPC session has no connection".to_owned());
        let client = self.session(1, len, fault)?.pop().ok_or_else(closed)?;
        Ok(match family {
            Family::RpcPing => AnyClient::RpcPing(client.into_pings()),
            _ => AnyClient::Rpc(Box::new(client)),
        })
    }

    /// Opens a session of RPC binder with this number of connections.
    fn session(
        &mut self,
        connections: usize,
        len: usize,
        fault: Option<FaultKind>,
    ) -> Result<Vec<rpc::Client>, CaseError> {
        let pairs = || -> io::Result<_> { Ok((rpc::sockets(connections)?, seqpacket::pair()?)) };
        let ((ours, theirs), (bootstrap, inherited)) = pairs().map_err(os_failed("making socket pairs"))?;
        let streams = Streams::of(inherited.into(), Stdio::null());
        self.server = Some(self.start(Server::Rpc, fault, streams, None)?);
        // Only two descriptors can be inherited; the sockets follow through one of them.
        let sent: Vec<_> = theirs.iter().map(File::as_fd).collect();
        seqpacket::send(bootstrap.as_fd(), &[0], &sent, Wait::Forever)
            .map_err(os_failed("sending the session's sockets"))?;
        // A copy here would keep the end of the server from being seen.
        drop(theirs);
        self.watchdog.during(|| rpc::open(ours, len)).map_err(failed("opening an RPC session"))
    }
}
