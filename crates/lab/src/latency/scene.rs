//! Room: a pair's two ends in any flavour: a service that is offered, a callee that was found.
//! Not here: what the service does (`super::service`), when it is called (`super::caller`).

mod binder;
mod hwbinder;

pub(super) use binder::OnBinder;
pub(super) use hwbinder::{InProcess, OnHwbinder};

use super::sample::Answer;
use super::service::Service;
use crate::measure::CallError;

/// One process's side of a flavour.
pub(super) trait Scene {
    /// A service that was found.
    type Callee: Callee;

    /// Starts so many threads that serve.
    ///
    /// # Errors
    /// As `clone(2)`: `EAGAIN`.
    fn start_pool(&mut self, threads: u32) -> Result<(), CallError>;

    /// Registers a service under this name, which the pool serves.
    ///
    /// # Errors
    /// The name is refused, or there is nobody to register it at.
    fn offer(&mut self, name: &str, service: Service, inherit_rt: bool) -> Result<(), CallError>;

    /// Finds a service; waits some seconds for it. Each call carries `payload` bytes.
    ///
    /// # Errors
    /// Nobody serves that name.
    fn find(&mut self, name: &str, payload: usize) -> Result<Self::Callee, CallError>;
}

/// A service that can be called, by each thread through a clone of its own.
pub(super) trait Callee: Clone + Send + 'static {
    /// Calls it once. What happens in here, from preparing the transaction to having its result, is what
    /// is measured.
    ///
    /// # Errors
    /// The call did not come back as it should.
    fn call(&self) -> Result<Answer, CallError>;
}

/// Words of an answer on the wire.
const ANSWER_WORDS: usize = 3;

fn to_words(answer: Answer) -> [u64; ANSWER_WORDS] {
    [u64::from(answer.tid) << 32 | u64::from(answer.cpu), answer.sched, answer.cpu_ns]
}

fn of_words([thread, sched, cpu_ns]: [u64; ANSWER_WORDS]) -> Answer {
    Answer { tid: (thread >> 32) as u32, cpu: thread as u32, sched, cpu_ns }
}

fn refused(error: impl std::fmt::Display) -> CallError {
    CallError::Refused(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_survives_the_wire() {
        let answer = Answer { tid: 77, cpu: 3, sched: 0x01_63_00, cpu_ns: u64::MAX };
        assert_eq!(of_words(to_words(answer)), answer);
    }
}
