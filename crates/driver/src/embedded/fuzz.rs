//! Room: what fuzz targets call: each entry takes any bytes and panics where a promise is broken. The
//! same entries run in this crate's tests, on bytes from a seed.
//!
//! - [`commands`]: streams of commands. - [`protocol`]: requests to the rules, datagrams to a broker.
//! - [`channel`]: a peer that scribbles over what it shares. - [`records`]: items and rings, and what
//!   comes through lanes. - [`scattered`]: payloads with buffers.
//! - [`source`]: bytes as choices. - [`stage`]: a broker, and two who know each other.
//!
//! Not here: the targets (`fuzz/`), which need a nightly compiler. No part of a shipped binary.

pub mod channel;
pub mod commands;
pub mod protocol;
pub mod records;
mod scattered;
mod source;
pub(in crate::embedded) mod stage;

#[cfg(test)]
mod tests {
    use super::source::noise;

    /// Inputs of each kind; `make fuzz` tries many more.
    fn inputs(count: u64, longest: usize) -> impl Iterator<Item = Vec<u8>> {
        (0..count).map(move |seed| noise(seed, longest))
    }

    #[test]
    fn any_stream_of_commands_leaves_the_connection_usable() {
        let mut fuzz = super::commands::Commands::new();
        inputs(600, 600).for_each(|input| fuzz.run(&input));
    }

    #[test]
    fn any_requests_leave_the_rules_sane() {
        inputs(2000, 2000).for_each(|input| super::protocol::rules(&input));
    }

    #[test]
    fn any_datagrams_leave_other_clients_alone() {
        let mut fuzz = super::protocol::Datagrams::new();
        inputs(400, 1500).for_each(|input| fuzz.run(&input));
    }

    #[test]
    fn any_scribbles_of_a_peer_cost_its_channel_only() {
        let mut fuzz = super::channel::Scribbles::new();
        inputs(150, 800).for_each(|input| fuzz.run(&input));
    }

    #[test]
    fn any_records_are_decoded_or_refused() {
        inputs(2000, 3000).for_each(|input| super::records::run(&input));
    }
}
