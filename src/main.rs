//! Room: the command line.
fn main() {}
