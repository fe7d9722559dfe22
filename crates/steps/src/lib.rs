//! The four serialisation steps of a `sendVec` call, repeatable, without a driver and another process: the client writes the
//! request, the service reads it, the service writes the reply, the client reads that. This includes headers and status words,
//! and the client's own copy of the vector, which its interface requires; parcels are recycled as in a steady stream of calls.
//! Not here: their time (`bench::serialisation`); receiving a delivery and finding its buffers in the receiving area, which need a
//! connection. It is a crate so that counting their instructions (`tests/instructions.rs`) compiles no more than they need.
#![forbid(unsafe_code)]

pub mod binder;
pub mod count;
pub mod hwbinder;

use std::fmt;
use std::hint::black_box;

/// The interface descriptor of binder's `sendVec` service.
pub const DESCRIPTOR: &str = "binderperf.ISendVec";

/// The four steps of a call, repeatable.
pub trait Steps {
    /// Executes the steps once.
    fn call(&mut self);
    /// Returns true if the vector came back, byte for byte.
    fn came_back(&self) -> bool;
}

/// Wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// AIDL's parcel.
    Binder,
    /// HIDL's scatter-gather parcel.
    Hwbinder,
}

impl Flavour {
    /// All flavours.
    pub const ALL: [Self; 2] = [Self::Binder, Self::Hwbinder];
}

impl fmt::Display for Flavour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Binder => "binder",
            Self::Hwbinder => "hwbinder",
        })
    }
}

/// Returns test data.
fn vector(len: usize) -> Vec<u8> {
    (0..len).map(|index| index as u8 ^ 0x5a).collect()
}

/// Makes `calls` calls of a flavour and nothing else, for an instruction counter.
///
/// # Errors
/// The returned vector differs from the sent one.
pub fn repeat(flavour: Flavour, payload: usize, calls: u64) -> Result<(), String> {
    match flavour {
        Flavour::Binder => repeat_steps(binder::Call::new(payload), flavour, calls),
        Flavour::Hwbinder => repeat_steps(hwbinder::Call::new(payload), flavour, calls),
    }
}

fn repeat_steps(mut steps: impl Steps, flavour: Flavour, calls: u64) -> Result<(), String> {
    lap(&mut steps, calls);
    checked(&steps, flavour)
}

/// Checks that the last call's vector came back.
///
/// # Errors
/// It differs from the sent one.
pub fn checked(steps: &impl Steps, flavour: Flavour) -> Result<(), String> {
    let came_back = steps.came_back();
    came_back.then_some(()).ok_or_else(|| format!("{flavour}'s vector did not come back as it was sent"))
}

/// Makes so many calls.
pub fn lap(steps: &mut impl Steps, calls: u64) {
    for _ in 0..calls {
        black_box(&mut *steps).call();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every payload comes back, whatever its padding.
    #[test]
    fn vectors_come_back() {
        for flavour in Flavour::ALL {
            for payload in [0, 1, 3, 4, 5, 64, 65_536] {
                assert_eq!(repeat(flavour, payload, 3), Ok(()), "{flavour}/{payload}");
            }
        }
    }
}
