//! Fuzzes the reader of ftrace's text, plain and within HTML, and everything behind a reader: the model, the verdict,
//! the file for Perfetto.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trace::event::{Kind, Mark};
use trace::perfetto::Exporter;
use trace::text::TextReader;
use trace::verdict::{AnalysisOptions, Analyzer, TransactionEvent};

fuzz_target!(|bytes: &[u8]| {
    for html in [false, true] {
        let mut reader = TextReader::new(bytes, html);
        let mut analyzer = Analyzer::new(AnalysisOptions {
            deadline_ns: Some(1000),
            worst: 3,
            ..AnalysisOptions::default()
        });
        let mut exporter = Exporter::new(std::io::sink(), None);
        let mut met = Vec::new();
        while let Some(event) = reader.next() {
            if let Kind::Print(text) = &event.kind {
                let _ = Mark::parse(text);
            }
            analyzer.take_with(&event, reader.names(), &mut |what| {
                let (TransactionEvent::Ended(call) | TransactionEvent::Missed(call, _)) = what;
                met.push(call.clone());
            });
            exporter.event(&event, reader.names());
            for call in met.drain(..) {
                let whole: u64 = call.parts.iter().map(|part| part.end - part.begin).sum();
                assert_eq!(whole, call.ns(), "the parts are not the whole");
                exporter.call(
                    &call,
                    analyzer.describe_miss(&call, None, reader.names()).as_ref(),
                    reader.names(),
                );
            }
        }
        exporter.finish().expect("a sink takes all");
        let report = reader.report().clone();
        let analysis = analyzer.finish(reader.names(), &report);
        assert!(!analysis.to_string().is_empty() && !report.to_string().is_empty());
    }
});
