//! Room: what one thread is to read, in its order.
//! Not here: the things themselves (`state`), which thread gets them (`inbox`), reading them (`read`).

use std::collections::VecDeque;

use super::state::Todo;

/// Things for a thread to read. Most often there is but one: the acknowledgement of what it sent, no more than a word.
/// That has a place of its own, as in a queue of calls and replies it would be moved about with the room for one.
#[derive(Debug)]
pub(super) struct Todos {
    /// In front of the others; 0, which is no return, if the oldest is none or more than a word.
    word: u32,
    others: VecDeque<Todo>,
    /// How many of those are transactions.
    transactions: u32,
}

impl Todos {
    pub(super) fn new() -> Self {
        Self { word: 0, others: VecDeque::with_capacity(8), transactions: 0 }
    }

    #[inline]
    pub(super) fn push(&mut self, todo: Todo) {
        match todo {
            Todo::Word(word) => self.push_word(word),
            todo => {
                self.transactions += u32::from(todo.is_transaction());
                self.others.push_back(todo);
            }
        }
    }

    #[inline]
    pub(super) fn push_word(&mut self, word: u32) {
        match self.is_empty() {
            true => self.word = word,
            false => self.push_behind(word),
        }
    }

    #[cold]
    fn push_behind(&mut self, word: u32) {
        self.others.push_back(Todo::Word(word));
    }

    /// Takes the oldest, if that is the word with a place of its own.
    #[inline]
    pub(super) fn pop_word(&mut self) -> Option<u32> {
        let word = std::mem::take(&mut self.word);
        (word != 0).then_some(word)
    }

    /// Takes the oldest, if it is not such a word.
    #[inline]
    pub(super) fn pop_other(&mut self) -> Option<Todo> {
        debug_assert!(self.word == 0, "it comes first");
        let todo = self.others.pop_front()?;
        self.transactions -= u32::from(todo.is_transaction());
        Some(todo)
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.word == 0 && self.others.is_empty()
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        usize::from(self.word != 0) + self.others.len()
    }

    /// How many are calls, or the answers to some.
    #[inline]
    pub(super) fn transactions(&self) -> u32 {
        self.transactions
    }

    /// Whether the oldest is a call.
    #[inline]
    pub(super) fn begins_with_call(&self) -> bool {
        self.transactions > 0 && self.word == 0 && self.others.front().is_some_and(Todo::is_call)
    }

    /// Whether there is a call.
    #[inline]
    pub(super) fn has_call(&self) -> bool {
        self.transactions > 0 && self.others.iter().any(Todo::is_call)
    }

    /// Takes the acknowledgement back that was pushed when there were so many others.
    #[cold]
    pub(super) fn remove_word(&mut self, before: usize) {
        if before == 0 && self.pop_word().is_some() {
            return;
        }
        self.others.remove(before - usize::from(self.word != 0));
    }

    /// Turns the acknowledgement that was pushed when there were so many others into a refusal.
    #[cold]
    pub(super) fn refuse_word(&mut self, before: usize, word: u32) {
        if before == 0 && self.pop_word().is_some() {
            return self.others.push_front(Todo::Refusal(word));
        }
        self.others[before - usize::from(self.word != 0)] = Todo::Refusal(word);
    }
}

impl IntoIterator for Todos {
    type Item = Todo;
    type IntoIter =
        std::iter::Chain<std::option::IntoIter<Todo>, std::collections::vec_deque::IntoIter<Todo>>;

    fn into_iter(self) -> Self::IntoIter {
        let word = (self.word != 0).then_some(Todo::Word(self.word));
        word.into_iter().chain(self.others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(todos: &mut Todos) -> Vec<(bool, u32)> {
        std::iter::from_fn(|| todos.pop_word().map(Todo::Word).or_else(|| todos.pop_other()))
            .map(|todo| match todo {
                Todo::Word(word) => (false, word),
                Todo::Refusal(word) => (true, word),
                other => panic!("{other:?}"),
            })
            .collect()
    }

    fn of(all: &[Todo]) -> Todos {
        let mut todos = Todos::new();
        for todo in all {
            todos.push(match todo {
                Todo::Word(word) => Todo::Word(*word),
                Todo::Work(work) => Todo::Work(*work),
                other => panic!("{other:?}"),
            });
        }
        todos
    }

    #[test]
    fn they_come_in_their_order() {
        let mut todos = of(&[Todo::Word(1), Todo::Word(2), Todo::Word(3)]);
        assert_eq!((todos.len(), todos.pop_word(), todos.pop_word()), (3, Some(1), None));
        todos.push(Todo::Word(4));
        assert_eq!(words(&mut todos), [(false, 2), (false, 3), (false, 4)]);
        assert!(todos.is_empty());
        let mut todos = of(&[Todo::Work(1), Todo::Word(2)]);
        assert!(todos.pop_word().is_none() && matches!(todos.pop_other(), Some(Todo::Work(1))));
        assert_eq!(words(&mut todos), [(false, 2)]);
    }

    #[test]
    fn an_acknowledgement_is_found_again_behind_what_was_there_and_before_what_came() {
        for before in 0..3 {
            let all = || of(&[Todo::Word(1), Todo::Word(2), Todo::Word(3)]);
            let mut todos = all();
            todos.remove_word(before);
            let others: Vec<_> = (0..3).filter(|at| *at != before).map(|at| (false, at as u32 + 1)).collect();
            assert_eq!(words(&mut todos), others);
            let mut todos = all();
            todos.refuse_word(before, 9);
            assert_eq!(todos.len(), 3);
            assert_eq!(words(&mut todos)[before], (true, 9));
        }
    }
}
