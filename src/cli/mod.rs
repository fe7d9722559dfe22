//! Room: the command line's parts, one per subcommand: typed words in, plans out.

pub(crate) mod vm;
