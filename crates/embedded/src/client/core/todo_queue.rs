//! The queue of items that one thread is to read, in order.

use std::collections::VecDeque;
use std::collections::vec_deque::IntoIter;

use super::Todo;

/// A queue of items that counts its transactions.
#[derive(Debug)]
pub(crate) struct TodoQueue {
    items: VecDeque<Todo>,
    transactions: u32,
}

impl TodoQueue {
    pub(super) fn new() -> Self {
        Self { items: VecDeque::with_capacity(8), transactions: 0 }
    }

    pub(super) fn push(&mut self, todo: Todo) {
        self.transactions += u32::from(todo.is_transaction());
        self.items.push_back(todo);
    }

    pub(super) fn pop(&mut self) -> Option<Todo> {
        let todo = self.items.pop_front()?;
        self.transactions -= u32::from(todo.is_transaction());
        Some(todo)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// Number of calls and replies.
    pub(crate) fn transactions(&self) -> u32 {
        self.transactions
    }

    /// Whether the oldest item is a call or a reply.
    pub(super) fn begins_with_transaction(&self) -> bool {
        self.transactions > 0 && self.items.front().is_some_and(Todo::is_transaction)
    }

    /// Whether any item is a call.
    pub(super) fn has_call(&self) -> bool {
        self.transactions > 0 && self.items.iter().any(Todo::is_call)
    }

    /// Whether any item ends a call without a reply.
    pub(super) fn has_failure(&self) -> bool {
        self.items.iter().any(Todo::is_failure)
    }

    /// Removes the acknowledgement at `place`.
    pub(super) fn remove_acknowledgement(&mut self, place: usize) {
        self.items.remove(place);
    }

    /// Turns the acknowledgement at `place` into a refusal.
    pub(super) fn refuse_acknowledgement(&mut self, place: usize, word: u32) {
        if let Some(item) = self.items.get_mut(place) {
            *item = Todo::Refusal(word);
        }
    }
}

impl IntoIterator for TodoQueue {
    type Item = Todo;
    type IntoIter = IntoIter<Todo>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.into_iter()
    }
}
