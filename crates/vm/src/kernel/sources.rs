//! Reads the Debian archive and its key from this machine's apt sources.
//! Not here: using them (`apt`).
//! Facts: `sources.list(5)`, one-line and deb822 format.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Debian's suites and codenames; an extension such as `-updates` may follow.
const CODENAMES: &str = "buster bullseye bookworm trixie forky duke sid \
                        oldoldstable oldstable stable testing unstable experimental rc-buggy";

/// A Debian archive and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Archive {
    /// One or more URIs, separated by spaces.
    pub(super) uris: String,
    /// Key file, key ID or embedded key (with line breaks), as in the source.
    pub(super) signed_by: Option<String>,
    /// `yes` if the machine trusts it without a signature.
    pub(super) trusted: Option<String>,
}

impl Archive {
    /// The archive with other suites, as a deb822 source.
    pub(super) fn stanza(&self, suites: &[&str], architecture: &str) -> String {
        let mut text = format!(
            "Types: deb\nURIs: {}\nSuites: {}\nComponents: main\nArchitectures: {architecture}\n",
            self.uris,
            suites.join(" ")
        );
        for (field, value) in [("Signed-By", &self.signed_by), ("Trusted", &self.trusted)] {
            if let Some(value) = value {
                text.push_str(&format!("{field}: {value}\n"));
            }
        }
        text
    }
}

/// The Debian archive in this `/etc/apt`.
///
/// # Errors
/// There is no Debian source; the text says what to do.
pub(super) fn machine_archive(etc_apt: &Path) -> Result<Archive, String> {
    let mut files = vec![etc_apt.join("sources.list")];
    let parts = std::fs::read_dir(etc_apt.join("sources.list.d"));
    let mut more: Vec<PathBuf> = parts.into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    more.sort();
    files.append(&mut more);
    let found = files.iter().find_map(|path| {
        let text = std::fs::read_to_string(path).ok()?;
        match path.extension()?.to_str()? {
            "list" => from_lines(&text),
            "sources" => from_stanzas(&text),
            _ => None,
        }
    });
    found.ok_or_else(|| {
        "this machine's apt has no source for Debian's main archive: add one, or give --kernel a bzImage or Debian \
         kernel packages"
            .to_owned()
    })
}

/// Whether a source is Debian's main archive, not the security archive (another layout) or a third party's that uses
/// Debian's codenames.
fn is_debian(uris: &str, suites: &str, components: &str, signed_by: Option<&str>) -> bool {
    let suite_fits = suites.split_whitespace().any(|suite| {
        let (base, rest) = suite.split_once('-').unwrap_or((suite, ""));
        CODENAMES.split(' ').any(|name| name == base)
            && ["", "updates", "backports", "proposed-updates"].contains(&rest)
    });
    let main = components.split_whitespace().any(|component| component == "main");
    let keyed = signed_by.is_some_and(|key| key.contains("debian-archive"));
    let placed = uris.split('/').any(|part| part.trim() == "debian") || uris.contains("mirrors/debian");
    suite_fits && main && (keyed || placed) && !uris.contains("debian-security")
}

/// Parses the one-line format: `deb [option=value ...] URI SUITE COMPONENT ...`.
fn from_lines(text: &str) -> Option<Archive> {
    text.lines().find_map(|line| {
        let rest = line.split('#').next()?.trim().strip_prefix("deb")?;
        let rest = rest.strip_prefix([' ', '\t'])?.trim_start();
        let (options, rest) = match rest.strip_prefix('[') {
            Some(inner) => inner.split_once(']')?,
            None => ("", rest),
        };
        let option = |key: &str| options.split_whitespace().find_map(|word| word.strip_prefix(key));
        let mut words = rest.split_whitespace();
        let (uri, suite) = (words.next()?, words.next()?);
        let components = words.collect::<Vec<_>>().join(" ");
        let signed_by = option("signed-by=").map(|keys| keys.replace(',', " "));
        is_debian(uri, suite, &components, signed_by.as_deref()).then(|| Archive {
            uris: uri.to_owned(),
            signed_by,
            trusted: option("trusted=").map(str::to_owned),
        })
    })
}

/// Parses the deb822 format: stanzas of `Field: value`; continuation lines start with white space.
fn from_stanzas(text: &str) -> Option<Archive> {
    let kept: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).map(str::trim_end).collect();
    kept.split(|line| line.is_empty()).find_map(|lines| {
        let fields = fields(lines);
        let field = |name: &str| fields.get(name).map_or("", String::as_str);
        let on = !["no", "false", "0", "off"].contains(&field("enabled"));
        let binary = field("types").split_whitespace().any(|kind| kind == "deb");
        let signed_by = fields.get("signed-by").cloned();
        let fits = is_debian(field("uris"), field("suites"), field("components"), signed_by.as_deref());
        (on && binary && fits).then(|| Archive {
            uris: field("uris").to_owned(),
            signed_by,
            trusted: fields.get("trusted").cloned(),
        })
    })
}

/// A stanza's fields by lower-case name, with their continuation lines.
fn fields(lines: &[&str]) -> BTreeMap<String, String> {
    let mut fields = BTreeMap::new();
    let mut current: Option<String> = None;
    for line in lines {
        if line.starts_with([' ', '\t']) {
            if let Some(value) = current.as_ref().and_then(|name| fields.get_mut(name)) {
                let value: &mut String = value;
                value.push('\n');
                value.push_str(line);
            }
        } else if let Some((name, value)) = line.split_once(':') {
            let name = name.trim().to_ascii_lowercase();
            fields.insert(name.clone(), value.trim().to_owned());
            current = Some(name);
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use sys::private_folder::PrivateFolder;

    use super::*;

    #[test]
    fn the_debian_source_is_found_among_others() {
        let text = "\
# A comment
Types: deb
# http://snapshot.example/archive/debian/20250520T000000Z
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://mirror.example/debian-security
Suites: bookworm-security
Components: main
";
        let want = Archive {
            uris: "http://mirror.example/debian".into(),
            signed_by: Some("/usr/share/keyrings/debian-archive-keyring.gpg".into()),
            trusted: None,
        };
        assert_eq!(from_stanzas(text), Some(want));
    }

    #[test]
    fn each_form_of_a_line_is_read() {
        let plain = |uris: &str| Some(Archive { uris: uris.into(), signed_by: None, trusted: None });
        for (line, want) in [
            ("deb http://mirror.example/debian bookworm main contrib", plain("http://mirror.example/debian")),
            (
                "deb\thttp://ftp.example/debian/ trixie-updates main # near",
                plain("http://ftp.example/debian/"),
            ),
            (
                "deb mirror+file:/etc/apt/mirrors/debian.list trixie main",
                plain("mirror+file:/etc/apt/mirrors/debian.list"),
            ),
            (
                "deb http://snapshot.example/archive/debian/2026/ sid main",
                plain("http://snapshot.example/archive/debian/2026/"),
            ),
            ("deb-src http://mirror.example/debian bookworm main", None),
            ("# deb http://mirror.example/debian bookworm main", None),
            ("deb http://mirror.example/debian-security bookworm-security main", None),
            ("deb https://download.example.com/linux/debian bookworm stable", None),
            ("deb https://apt.example.org/pub bookworm-pgdg main", None),
            ("deb http://archive.example.com/ubuntu noble main", None),
            ("deb http://mirror.example/debian", None),
        ] {
            assert_eq!(from_lines(line), want, "{line}");
        }
        let trusted = from_lines(
            "deb [arch=amd64 signed-by=/k/debian-archive.gpg,/k/b.gpg trusted=yes] file:/m sid main",
        );
        let want = Archive {
            uris: "file:/m".into(),
            signed_by: Some("/k/debian-archive.gpg /k/b.gpg".into()),
            trusted: Some("yes".into()),
        };
        assert_eq!(trusted, Some(want));
    }

    #[test]
    fn a_disabled_stanza_does_not_count_and_an_embedded_key_survives() {
        let off = "Types: deb\nURIs: http://a/debian\nSuites: sid\nComponents: main\nEnabled: no\n";
        assert_eq!(from_stanzas(off), None);
        let key = "Types: deb deb-src\nURIs: http://a/debian\nSuites: sid\nComponents: main\nSigned-By:\n -----BEGIN\n .\n abc\n";
        let archive = from_stanzas(key).expect("it is Debian's");
        assert_eq!(archive.signed_by.as_deref(), Some("\n -----BEGIN\n .\n abc"));
        assert_eq!(
            archive.stanza(&["sid", "trixie"], "amd64"),
            "Types: deb\nURIs: http://a/debian\nSuites: sid trixie\nComponents: main\nArchitectures: amd64\n\
             Signed-By: \n -----BEGIN\n .\n abc\n"
        );
    }

    #[test]
    fn a_machine_without_debian_is_told_what_to_do() {
        let folder = PrivateFolder::new("no-sources").expect("a folder");
        let error = machine_archive(&folder.path().join("none")).expect_err("there is not even a folder");
        assert!(error.contains("--kernel"), "{error}");
    }
}
