//! Rate of a broker's notices: each kind at most once per second, with the number of those left out.
//! Not here: the events (`super::Event`), the clock (`serve`).

use std::collections::HashMap;
use std::time::Duration;

/// Shortest time between two notices of a kind.
pub(super) const PAUSE: Duration = Duration::from_secs(1);

/// Last notice of each kind: its time, and the number left out since.
#[derive(Debug, Default)]
pub(super) struct Notices(HashMap<&'static str, (Duration, u64)>);

impl Notices {
    /// Whether a notice is told at time `now`, with the number left out before it.
    pub(super) fn tell(&mut self, kind: &'static str, now: Duration) -> Option<u64> {
        let Some((told, left_out)) = self.0.get_mut(kind) else {
            self.0.insert(kind, (now, 0));
            return Some(0);
        };
        if now.saturating_sub(*told) < PAUSE {
            *left_out += 1;
            return None;
        }
        *told = now;
        Some(std::mem::take(left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_one_notice_per_second_with_its_count() {
        let mut notices = Notices::default();
        let told: Vec<_> = (0..2001).map(|ms| notices.tell("flood", Duration::from_millis(ms))).collect();
        assert_eq!(told.iter().flatten().collect::<Vec<_>>(), [&0, &999, &999]);
        assert_eq!(notices.tell("another", Duration::from_millis(2001)), Some(0));
    }
}
