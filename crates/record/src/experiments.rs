//! The experiments, each in a room that has its part of a record, its verdict, its text and its chart.
//! Not here: carrying them out (`bench`), what they have in common with other tests.
//!
//! A file of a room belongs to a layer of this crate and imports what that layer may: `schema` what [`crate::schema`] is made of,
//! `verdict` these types, `text` and `chart` (parts of [`crate::render`]) both.

pub mod background;
pub mod inheritance;
pub mod inversion;
pub mod overload;
pub mod sweep;
