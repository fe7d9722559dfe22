//! Output of `vm --profile`: tables on the standard output, and a file whose name says its format.
//! Not here: the profile (crate `profile`).

use std::path::Path;

use profile::{Profile, folded, html, json, text};

use console::output::Sink;
use console::{Failure, OrExit, complain, exit, say};

/// Formats of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Text,
    Html,
    Json,
    Folded,
}

/// The file, open.
pub(super) struct Output {
    sink: Sink,
    form: Form,
}

impl Output {
    /// Opens it now, so that a bad path shows before the boot.
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        let sink = Sink::file(path);
        match sink.trouble() {
            Some(trouble) => Err(Failure::new(exit::INTERNAL, trouble)),
            None => Ok(Self { sink, form: form(path) }),
        }
    }

    /// Writes the profiles.
    pub(super) fn deliver(self, profiles: &[Result<Profile, String>]) -> Result<(), Failure> {
        if profiles.is_empty() {
            let why = "nothing was profiled: only cases of `throughput` and `run` tell the profiler when they begin";
            return Err(Failure::new(exit::UNABLE, why));
        }
        let found: Vec<Profile> = profiles.iter().filter_map(|one| one.as_ref().ok()).cloned().collect();
        profiles.iter().filter_map(|one| one.as_ref().err()).for_each(|why| complain(format_args!("{why}")));
        let tables: String = found.iter().map(|one| format!("\n{}", text(one))).collect();
        say(&tables)?;
        let document = match self.form {
            Form::Text => tables,
            Form::Html => html(&found).or_exit(exit::INTERNAL)?,
            Form::Json => json(&found),
            Form::Folded => found.iter().map(folded).collect(),
        };
        self.sink.deliver(&document)?;
        match found.len() == profiles.len() {
            true => Ok(()),
            // Each was complained about.
            false => Err(Failure { status: exit::UNABLE, message: None }),
        }
    }
}

fn form(path: &Path) -> Form {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("html" | "htm") => Form::Html,
        Some("json") => Form::Json,
        Some("folded") => Form::Folded,
        _ => Form::Text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_says_the_format() {
        for (name, want) in
            [("a.html", Form::Html), ("b.json", Form::Json), ("c.folded", Form::Folded), ("d", Form::Text)]
        {
            assert_eq!(form(Path::new(name)), want, "{name}");
        }
    }
}
