//! Room: the core on its own, held to the contract item by item.
//! Not here: what needs threads (the conformance suite has that).

mod area;
mod calls;
mod chaos;
mod counts;
mod lanes;
mod notices;
mod objects;
mod oneways;
mod texts;
mod world;
