//! The display of `top`: present Binder traffic, as text and on a terminal.
//!
//! - [`view`]: rows, their order and filter, one process; keys change it.
//! - [`text`]: a table for pipes; [`run`]: the screen of a terminal.
//!
//! Not here: the figures (crate `live`).
#![forbid(unsafe_code)]

mod screen;
pub mod text;
pub mod view;

pub use screen::{PAUSE, ScreenError, run};
