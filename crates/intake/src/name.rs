//! Names of files as another machine says them.

use std::fmt;
use std::path::{Component, Path};

use units::visible::steers;

/// Longest name, in bytes.
const LONGEST: usize = 1024;

/// A path below a folder, none of whose parts is hidden, and which every terminal shows as it is. Programs here take orders
/// from hidden files, and this program hides none.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name(String);

impl Name {
    /// Takes a name that another machine says.
    ///
    /// # Errors
    /// The reason why it cannot be taken, as `it leads out of its folder`.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        if text.is_empty() {
            return Err("it is empty");
        }
        if text.len() > LONGEST {
            return Err("it is too long");
        }
        if text.contains(steers) {
            return Err("it has control characters");
        }
        for part in Path::new(text).components() {
            match part {
                Component::Normal(part) if part.as_encoded_bytes().starts_with(b".") => {
                    return Err("a part of it is hidden");
                }
                Component::Normal(part) if part.len() > 255 => return Err("it is too long"),
                Component::Normal(_) => {}
                _ => return Err("it leads out of its folder"),
            }
        }
        Ok(Self(text.to_owned()))
    }

    /// The name as it was said.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name as a relative path.
    #[must_use]
    pub fn as_path(&self) -> &Path {
        Path::new(&self.0)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_below_its_folder_and_plain() {
        for fine in ["r.json", "a/b c/d", "x..y", "ä/ö", "a//b", " b"] {
            assert_eq!(Name::parse(fine).map(|name| name.to_string()), Ok(fine.to_owned()));
        }
        let long = "x".repeat(256);
        let deep = "x/".repeat(600);
        for (odd, why) in [
            ("", "empty"),
            ("/etc/passwd", "leads out"),
            ("..", "leads out"),
            ("a/../../b", "leads out"),
            ("./../b", "leads out"),
            (".bashrc", "hidden"),
            (".git/hooks/pre-commit", "hidden"),
            ("a/.ssh/config", "hidden"),
            ("a\u{1b}[2J", "control"),
            ("a\nb", "control"),
            ("a\0", "control"),
            ("a\u{9b}2J", "control"),
            ("exe.\u{202e}txt", "control"),
            (&long, "long"),
            (&deep, "long"),
        ] {
            let said = Name::parse(odd).expect_err(odd);
            assert!(said.contains(why), "{odd:?}: {said}");
        }
    }
}
