//! Reading and analysis of whole files. One program, because each takes nearly as long to build as the crate.
//! Not here: what costs grow with (`growth`), made-up streams (the crate's own tests).

mod cases;
mod evidence;
mod forms;
mod generations;
mod recordings;
mod support;
mod trace_cmd;
mod verdict;
