//! Entry points of the fuzz targets: each takes any bytes and panics if an invariant is broken. The same entries run
//! in this crate's tests, on bytes from a seed.
//!
//! - [`commands`]: streams of commands. - [`protocol`]: requests to the rules, datagrams to a broker.
//! - [`channel`]: a peer that overwrites shared memory. - [`records`]: items, rings, and payloads of call slots. -
//!   [`scattered`]: payloads with scattered buffers.
//! - `source`, `requests`: bytes as choices, and as requests. - `stage`: a broker, and two connections that hold each other's handles;
//!   `visits`: one connection and a new peer for each input.
//!
//! Not here: the targets (`fuzz/`). Not compiled into a shipped binary.

pub mod channel;
pub mod commands;
pub mod protocol;
pub mod records;
mod requests;
mod scattered;
mod source;
pub(crate) mod stage;
mod visits;

#[cfg(test)]
mod tests {
    use super::source::noise;

    /// Inputs of each kind; `make fuzz` runs many more.
    fn inputs(count: u64, longest: usize) -> impl Iterator<Item = Vec<u8>> {
        (0..count).map(move |seed| noise(seed, longest))
    }

    #[test]
    fn any_stream_of_commands_leaves_the_connection_usable() {
        let mut fuzz = super::commands::Commands::default();
        inputs(600, 600).for_each(|input| fuzz.run(&input));
    }

    #[test]
    fn an_empty_input_is_one_of_any() {
        super::commands::Commands::default().run(&[]);
        super::protocol::rules(&[]);
        super::protocol::Datagrams::default().run(&[]);
        super::channel::Scribbles::default().run(&[]);
        super::records::run(&[]);
    }

    #[test]
    fn any_requests_leave_the_rules_sane() {
        inputs(400, 12_000).for_each(|input| super::protocol::rules(&input));
    }

    #[test]
    fn any_datagrams_leave_other_clients_alone() {
        let mut fuzz = super::protocol::Datagrams::default();
        inputs(400, 1500).for_each(|input| fuzz.run(&input));
    }

    #[test]
    fn any_scribbles_of_a_peer_cost_its_channel_only() {
        let mut fuzz = super::channel::Scribbles::default();
        inputs(150, 800).for_each(|input| fuzz.run(&input));
    }

    #[test]
    fn any_records_are_decoded_or_refused() {
        inputs(2000, 3000).for_each(|input| super::records::run(&input));
    }
}
