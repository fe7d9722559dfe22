//! The text of a finding: each step with what it gave, and where drivers differ.
//! Not here: the C form (`c_form`).

use std::fmt;

use crate::session::Finding;

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, step) in self.program.steps.iter().enumerate() {
            let seen: Vec<String> = self.transcripts.iter().map(|all| all.text_at(number)).collect();
            if seen.iter().all(|one| *one == seen[0]) {
                writeln!(f, "  {step}    # {}", seen.first().map_or("", String::as_str))?;
                continue;
            }
            writeln!(f, "  {step}")?;
            for (name, one) in self.names.iter().zip(&seen) {
                writeln!(f, "      # {name}: {one}")?;
            }
        }
        for (name, all) in self.names.iter().zip(&self.transcripts) {
            for line in &all.kernel {
                writeln!(f, "      # {name}: the kernel reports: {line}")?;
            }
        }
        Ok(())
    }
}
