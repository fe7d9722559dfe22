//! Room: the references to channels that a thread keeps for its next call.
//! Not here: channels (`channels`), what else a thread keeps (`state`).

use std::sync::Arc;

use super::channels::Channel;

/// References to the channels that a thread used last. Making and dropping one takes a locked
/// instruction each, and a call needs several; in a steady stream of calls they are used again.
#[derive(Debug, Default)]
pub(super) struct Spares {
    kept: [Option<Arc<Channel>>; 4],
}

impl Spares {
    /// A reference to a channel.
    pub(super) fn of(&mut self, channel: &Arc<Channel>) -> Arc<Channel> {
        let same = |kept: &mut Arc<Channel>| Arc::ptr_eq(kept, channel);
        self.kept.iter_mut().find_map(|place| place.take_if(same)).unwrap_or_else(|| channel.clone())
    }

    /// Takes it back for the next time.
    pub(super) fn keep(&mut self, channel: Arc<Channel>) {
        if !channel.is_closed() {
            let free = self.kept.iter().position(Option::is_none).unwrap_or(0);
            self.kept[free] = Some(channel);
        }
    }

    /// Drops those that are closed.
    pub(super) fn clean(&mut self) {
        self.kept.iter_mut().for_each(|place| drop(place.take_if(|kept| kept.is_closed())));
    }
}
