//! Ports of this machine that lead to the guest (`vm --forward`).
//! Not here: QEMU's other arguments (`qemu`), the guest's interface (`guest::machine`).

use std::num::NonZeroU16;

/// A port of this machine, on its loopback interface only, and the guest's port behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forward {
    host: NonZeroU16,
    guest: NonZeroU16,
}

impl Forward {
    /// Parses `HOSTPORT:GUESTPORT`.
    ///
    /// # Errors
    /// If these are not two port numbers.
    pub fn parse(text: &str) -> Result<Self, String> {
        let ports =
            text.split_once(':').and_then(|(host, guest)| Some((host.parse().ok()?, guest.parse().ok()?)));
        let (host, guest) = ports.ok_or("it must be HOSTPORT:GUESTPORT, two numbers from 1 to 65535")?;
        Ok(Self { host, guest })
    }

    /// QEMU's words for it.
    pub(super) fn rule(&self) -> String {
        format!("hostfwd=tcp:127.0.0.1:{}-:{}", self.host, self.guest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_ports_are_a_rule_for_the_loopback_interface() {
        let rule = |text| Forward::parse(text).map(|forward| forward.rule());
        assert_eq!(rule("5557:5555"), Ok("hostfwd=tcp:127.0.0.1:5557-:5555".to_owned()));
        for bad in ["", "5555", "0:1", "1:0", "1:65536", "a:1", "1:2:3", "-1:2", "1:2,restrict=off"] {
            assert!(rule(bad).is_err(), "{bad}");
        }
    }
}
