//! Room: the states of one transaction at its sender. `Sent -> Accepted -> answered`; a state is
//! consumed by the return that ends it.
//! Not here: reading the returns (`runtime`), returns that concern no call (`runtime::execute`).
//! Facts: contract TX-01, TX-10, TX-12, OW-01, OW-07, OW-09, WR-15.

use abi::{Delivery, Return};

use crate::error::{ProtocolError, Refusal};

/// How a oneway transaction was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// `BR_TRANSACTION_COMPLETE`: queued or delivered.
    Complete,
    /// `BR_ONEWAY_SPAM_SUSPECT`: queued, but this process floods the receiver.
    SpamSuspect,
    /// `BR_TRANSACTION_PENDING_FROZEN`: queued at a frozen receiver.
    PendingFrozen,
}

/// Written, not acknowledged.
#[derive(Debug)]
pub(crate) struct Sent;

/// `BR_TRANSACTION_COMPLETE` seen: a reply or a refusal follows.
#[derive(Debug)]
pub(crate) struct Accepted;

/// What follows [`Sent`].
#[derive(Debug)]
pub(crate) enum AfterSent {
    /// The driver has it.
    Accepted(Accepted, Taken),
    /// The driver said no.
    Refused(Refusal),
}

/// What follows [`Accepted`].
#[derive(Debug)]
pub(crate) enum AfterAccepted {
    /// The callee answered.
    Replied(Delivery),
    /// The callee died, or its reply could not be delivered.
    Refused(Refusal),
}

/// Whether a return speaks about this thread's own transaction.
pub(crate) fn concerns_call(got: &Return) -> bool {
    matches!(
        got,
        Return::TransactionComplete
            | Return::Reply(_)
            | Return::OnewaySpamSuspect
            | Return::TransactionPendingFrozen
            | Return::DeadReply
            | Return::FailedReply
            | Return::FrozenReply
    )
}

fn refusal(got: &Return) -> Option<Refusal> {
    match got {
        Return::DeadReply => Some(Refusal::Dead),
        Return::FailedReply => Some(Refusal::Failed(None)),
        Return::FrozenReply => Some(Refusal::Frozen),
        _ => None,
    }
}

impl Sent {
    /// Moves on; everything but an acknowledgement or a refusal is forbidden.
    pub(crate) fn on(self, got: Return) -> Result<AfterSent, ProtocolError> {
        let taken = match got {
            Return::TransactionComplete => Taken::Complete,
            Return::OnewaySpamSuspect => Taken::SpamSuspect,
            Return::TransactionPendingFrozen => Taken::PendingFrozen,
            got => {
                let unexpected = ProtocolError::Unexpected { state: "sent", got };
                return refusal(&got).map(AfterSent::Refused).ok_or(unexpected);
            }
        };
        Ok(AfterSent::Accepted(Accepted, taken))
    }
}

impl Accepted {
    /// Moves on; everything but a reply or a refusal is forbidden.
    pub(crate) fn on(self, got: Return) -> Result<AfterAccepted, ProtocolError> {
        match got {
            Return::Reply(delivery) => Ok(AfterAccepted::Replied(delivery)),
            got => {
                let unexpected = ProtocolError::Unexpected { state: "accepted", got };
                refusal(&got).map(AfterAccepted::Refused).ok_or(unexpected)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sent_transaction_is_accepted_or_refused() {
        for (got, want) in [
            (Return::TransactionComplete, Taken::Complete),
            (Return::OnewaySpamSuspect, Taken::SpamSuspect),
            (Return::TransactionPendingFrozen, Taken::PendingFrozen),
        ] {
            let Ok(AfterSent::Accepted(_, taken)) = Sent.on(got) else { panic!("{got:?} not accepted") };
            assert_eq!(taken, want);
        }
        for (got, want) in [
            (Return::DeadReply, Refusal::Dead),
            (Return::FailedReply, Refusal::Failed(None)),
            (Return::FrozenReply, Refusal::Frozen),
        ] {
            let Ok(AfterSent::Refused(by)) = Sent.on(got) else { panic!("{got:?} not refused") };
            assert_eq!(by, want);
            let Ok(AfterAccepted::Refused(by)) = Accepted.on(got) else { panic!("{got:?} not refused") };
            assert_eq!(by, want);
        }
    }

    #[test]
    fn a_return_out_of_place_is_a_protocol_error() {
        for got in [Return::Noop, Return::SpawnLooper, Return::Error(-5)] {
            assert!(!concerns_call(&got));
            assert_eq!(Sent.on(got).expect_err("sent"), ProtocolError::Unexpected { state: "sent", got });
        }
        let got = Return::TransactionComplete;
        assert_eq!(
            Accepted.on(got).expect_err("acknowledged twice"),
            ProtocolError::Unexpected { state: "accepted", got }
        );
    }
}
