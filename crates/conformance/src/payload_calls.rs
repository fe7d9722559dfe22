//! Calls that carry a payload with objects: delivered, answered or refused.
//! Not here: the payload (`payload`).

use abi::codes::br;
use abi::{Delivery, Handle, Return, TransactionFlags};

use super::check::{Stop, Verdict, ensure, expect};
use super::kit::{Kit, Pair};
use super::payload::Draft;
use super::raw_process::RawProcess;

impl Pair {
    /// Starts a call that the driver must accept; returns its delivery.
    pub(super) fn deliver(&self, draft: &Draft) -> Result<Delivery, Stop> {
        self.deliver_with(TransactionFlags::CALL, draft)
    }

    /// Starts a call with other flags; returns its delivery.
    pub(super) fn deliver_with(&self, flags: TransactionFlags, draft: &Draft) -> Result<Delivery, Stop> {
        start(&self.client, self.handle, flags, draft)?;
        self.server.read()?.call()
    }

    /// Finishes a call started by [`Self::deliver`]: frees its buffer and answers.
    pub(super) fn conclude(&self, call: &Delivery) -> Verdict {
        self.server.free(call)?;
        self.server.finish_call()?;
        let got = self.client.ending()?;
        self.client.free(&got.reply()?)?;
        self.client.acknowledge(&got)
    }

    /// Starts a call that the driver must refuse. The errno is the extended error's; `None`: no promise for that
    /// driver.
    pub(super) fn refused(
        &self,
        kit: &Kit,
        what: &str,
        draft: &Draft,
        c: &str,
        rust: Option<&str>,
    ) -> Verdict {
        refused(kit, what, &self.client, self.handle, draft, (c, rust))
    }

    /// Answers a call with this payload, which the driver accepts for the server.
    pub(super) fn answer_with(&self, flags: TransactionFlags, draft: &Draft) -> Verdict {
        let call = self.deliver_with(flags, &Draft::default())?;
        self.server.free(&call)?;
        self.server.reply(draft.payload())?;
        self.server.expect_read("the replier", "COMPLETE").map(drop)
    }
}

/// Starts a call that the driver must accept.
pub(super) fn start(process: &RawProcess, target: Handle, flags: TransactionFlags, draft: &Draft) -> Verdict {
    process.send(target, 1, flags, draft.payload())?;
    if flags.is_oneway() {
        let got = process.read()?;
        let complete = got.returns.contains(&Return::TransactionComplete);
        ensure(complete, || format!("expected the oneway call's COMPLETE, got {:?}", got.shape()))?;
        return process.acknowledge(&got);
    }
    // An accepted call's completion is deferred (contract WR-15), a refusal is not.
    match process.read_now()? {
        Some(got) => expect("what the caller of an accepted call reads", got.work().as_str(), ""),
        None => Ok(()),
    }
}

/// Starts a call that the driver must refuse with these errnos.
pub(super) fn refused(
    kit: &Kit,
    what: &str,
    process: &RawProcess,
    target: Handle,
    draft: &Draft,
    errnos: (&str, Option<&str>),
) -> Verdict {
    process.send(target, 1, TransactionFlags::CALL, draft.payload())?;
    expect_refusal(kit, what, process, errnos)
}

/// Fails unless the call just written was refused with this driver's errno; `None`: no promise.
pub(super) fn expect_refusal(
    kit: &Kit,
    what: &str,
    process: &RawProcess,
    (c, rust): (&str, Option<&str>),
) -> Verdict {
    expect(what, process.read_now()?.unwrap_or_default().work().as_str(), "FAILED_REPLY")?;
    if kit.is_rust() && rust.is_none() {
        return Ok(());
    }
    let failed = |errno| Some((br::FAILED_REPLY, errno));
    kit.expect_error(process, failed(c), rust.and_then(failed)).map_err(|stop| stop.during(what))
}
