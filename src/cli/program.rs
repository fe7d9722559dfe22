//! The command line as a whole, for those commands that show it, check it or start it again.
//! Not here: its commands (`tree`), which may depend on this.

use clap::Command as Definition;

/// Abilities of the tree of all commands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Program {
    /// The whole program as documented: without hidden parts, with every flag of every test and tool.
    pub(super) shown: fn() -> Definition,
    /// Checks that these words would be understood; else the parser's message.
    pub(super) understood: fn(&[String]) -> Result<(), String>,
}

impl Program {
    /// Finds a documented command by its words.
    pub(super) fn find(&self, path: &[&str]) -> Option<Definition> {
        let whole = (self.shown)();
        path.iter().try_fold(&whole, |command, word| command.find_subcommand(word)).cloned()
    }
}
