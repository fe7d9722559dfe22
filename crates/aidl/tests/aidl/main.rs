//! From `.aidl` to Rust.

mod constants;
mod golden;
mod limits;
mod output;
mod refusals;

use binderperf_aidl::generate_from_text;

/// The Rust of a text.
fn made(text: &str) -> String {
    generate_from_text("x.aidl", text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The error of a text.
fn refused(text: &str) -> String {
    generate_from_text("x.aidl", text).expect_err(text).to_string()
}
