//! Room: ftrace's text as events: `trace`, atrace, systrace's HTML, phones' variants, `trace-cmd report`.
//! Not here: an event's own text (`fields`); finding out that a file is text (`open`).
//! Facts: `print_trace_line` and `trace_print_context` of `kernel/trace/`, Linux 7.2; Perfetto's
//! `systrace_line_tokenizer` for phones' lines; `tep_print_event` of libtraceevent.

mod input;
mod line;
mod reader;

pub(crate) use input::Input;
pub(crate) use line::looks_like_trace;
pub use reader::TextReader;

/// Runs the reader of lines over any bytes, for the fuzzer: it must not panic, and must end.
#[cfg(feature = "fuzz")]
pub fn fuzz_text(bytes: &[u8]) {
    for html in [false, true] {
        let mut reader = TextReader::new(bytes, html);
        while let Some(event) = reader.next() {
            let _ = reader.names().text(event.comm);
        }
        let _ = reader.report().to_string();
    }
}

#[cfg(test)]
mod tests;
