//! The states of one transaction at its sender. `Sent -> Accepted -> answered`; a state is
//! consumed by the return that ends it.
//! Not here: reading the returns (`runtime`), returns that concern no call (`execute`).
//! Facts: contract TX-01, TX-10, TX-12, OW-01, OW-07, OW-09, WR-15.

use abi::ReturnWord;
use abi::codes::br;

use crate::error::{ProtocolError, Refusal};

/// The driver's acknowledgement of a oneway transaction.
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

/// The state after [`Sent`].
#[derive(Debug)]
pub(crate) enum AfterSent {
    /// The driver has it.
    Accepted(Accepted, Taken),
    /// The driver said no.
    Refused(Refusal),
}

/// The state after [`Accepted`].
#[derive(Debug)]
pub(crate) enum AfterAccepted {
    /// The callee answered.
    Replied,
    /// The callee died, or its reply could not be delivered.
    Refused(Refusal),
}

/// Whether a return speaks about this thread's own transaction.
pub(crate) fn concerns_call(got: ReturnWord) -> bool {
    matches!(
        got.0,
        br::TRANSACTION_COMPLETE
            | br::REPLY
            | br::ONEWAY_SPAM_SUSPECT
            | br::TRANSACTION_PENDING_FROZEN
            | br::DEAD_REPLY
            | br::FAILED_REPLY
            | br::FROZEN_REPLY
    )
}

fn refusal(got: ReturnWord) -> Option<Refusal> {
    match got.0 {
        br::DEAD_REPLY => Some(Refusal::Dead),
        br::FAILED_REPLY => Some(Refusal::Failed(None)),
        br::FROZEN_REPLY => Some(Refusal::Frozen),
        _ => None,
    }
}

impl Sent {
    /// Moves on; everything but an acknowledgement or a refusal is forbidden.
    pub(crate) fn on(self, got: ReturnWord) -> Result<AfterSent, ProtocolError> {
        let taken = match got.0 {
            br::TRANSACTION_COMPLETE => Taken::Complete,
            br::ONEWAY_SPAM_SUSPECT => Taken::SpamSuspect,
            br::TRANSACTION_PENDING_FROZEN => Taken::PendingFrozen,
            _ => {
                let unexpected = ProtocolError::Unexpected { state: "sent", got };
                return refusal(got).map(AfterSent::Refused).ok_or(unexpected);
            }
        };
        Ok(AfterSent::Accepted(Accepted, taken))
    }
}

impl Accepted {
    /// Moves on; everything but a reply or a refusal is forbidden.
    pub(crate) fn on(self, got: ReturnWord) -> Result<AfterAccepted, ProtocolError> {
        match got.0 {
            br::REPLY => Ok(AfterAccepted::Replied),
            _ => {
                let unexpected = ProtocolError::Unexpected { state: "accepted", got };
                refusal(got).map(AfterAccepted::Refused).ok_or(unexpected)
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
            (br::TRANSACTION_COMPLETE, Taken::Complete),
            (br::ONEWAY_SPAM_SUSPECT, Taken::SpamSuspect),
            (br::TRANSACTION_PENDING_FROZEN, Taken::PendingFrozen),
        ] {
            let Ok(AfterSent::Accepted(_, taken)) = Sent.on(ReturnWord(got)) else {
                panic!("{got:#x} not accepted")
            };
            assert_eq!(taken, want);
        }
        for (got, want) in [
            (br::DEAD_REPLY, Refusal::Dead),
            (br::FAILED_REPLY, Refusal::Failed(None)),
            (br::FROZEN_REPLY, Refusal::Frozen),
        ] {
            let Ok(AfterSent::Refused(by)) = Sent.on(ReturnWord(got)) else { panic!("{got:#x} not refused") };
            assert_eq!(by, want);
            let Ok(AfterAccepted::Refused(by)) = Accepted.on(ReturnWord(got)) else {
                panic!("{got:#x} not refused")
            };
            assert_eq!(by, want);
        }
    }

    #[test]
    fn a_return_out_of_place_is_a_protocol_error() {
        for got in [br::NOOP, br::SPAWN_LOOPER, br::ERROR].map(ReturnWord) {
            assert!(!concerns_call(got));
            assert_eq!(Sent.on(got).expect_err("sent"), ProtocolError::Unexpected { state: "sent", got });
        }
        let got = ReturnWord(br::TRANSACTION_COMPLETE);
        assert_eq!(
            Accepted.on(got).expect_err("acknowledged twice"),
            ProtocolError::Unexpected { state: "accepted", got }
        );
    }
}
