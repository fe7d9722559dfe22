//! Unit tests of the core against the contract, item by item.
//! Not here: behaviour that needs threads (conformance suite).

mod area;
mod call_slots;
mod calls;
mod counts;
mod notices;
mod objects;
mod oneways;
mod texts;
