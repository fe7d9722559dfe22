//! Reads ftrace's text as events: `trace`, atrace, systrace's HTML, phone variants, `trace-cmd report`.
//! Not here: an event's own text (`fields`); format detection (`open`).
//! Facts: `print_trace_line` and `trace_print_context` of `kernel/trace/`, Linux 7.2; Perfetto's
//! `systrace_line_tokenizer` for phone lines; `tep_print_event` of libtraceevent.

mod line;
pub(crate) mod quoted;
mod reader;

pub(crate) use line::looks_like_trace;
pub use reader::TextReader;

#[cfg(test)]
mod tests;
