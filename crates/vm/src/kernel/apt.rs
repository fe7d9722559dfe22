//! A private apt instance: newer suites of the machine's own archive, with its own state, so that the machine's
//! package lists, cache and settings do not change.
//! Not here: choosing the package (`name`), unpacking it (`deb`, `cache`).
//! Facts: `apt.conf(5)`: `APT_CONFIG` is read before the machine's configuration and sets where to find that.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::arch::Arch;
use crate::error::VmError;
use crate::qemu::last_line;

use super::sources::machine_archive;

/// A private apt instance in a folder that its owner removes.
#[derive(Debug)]
pub(super) struct Apt {
    root: PathBuf,
}

impl Apt {
    /// Creates an instance for these suites and the packages of one architecture, whatever the machine's is.
    ///
    /// # Errors
    /// [`VmError::Tool`]: no apt, or no key to verify Debian; [`VmError::Host`].
    pub(super) fn new(root: &Path, suites: &[&str], arch: Arch) -> Result<Self, VmError> {
        let tool = |why: String| VmError::Tool { command: "apt".into(), why };
        let archive = machine_archive(Path::new("/etc/apt")).map_err(tool)?;
        let dump = Command::new("apt-config").arg("dump").stdin(Stdio::null()).output();
        let dump =
            dump.map_err(|error| tool(format!("{error}; kernels are fetched by name with Debian's apt")))?;
        let doing = || VmError::host(format!("setting up a private apt in {}", root.display()));
        for folder in ["empty", "sources", "lists/partial", "archives/partial"] {
            std::fs::create_dir_all(root.join(folder)).map_err(doing())?;
        }
        let config = config(root, &String::from_utf8_lossy(&dump.stdout), arch);
        std::fs::write(root.join("apt.conf"), config).map_err(doing())?;
        std::fs::write(root.join("status"), "").map_err(doing())?;
        let stanza = archive.stanza(suites, arch.facts().debian);
        std::fs::write(root.join("sources/debian.sources"), stanza).map_err(doing())?;
        Ok(Self { root: root.to_path_buf() })
    }

    /// Fetches the package lists.
    ///
    /// # Errors
    /// [`VmError::Tool`] with apt's error; lists that were fetched are kept.
    pub(super) fn update(&self) -> Result<(), VmError> {
        self.run("apt-get", &["update"]).map(drop)
    }

    /// `apt-cache search --names-only`.
    ///
    /// # Errors
    /// [`VmError::Tool`].
    pub(super) fn search(&self, pattern: &str) -> Result<String, VmError> {
        self.run("apt-cache", &["search", "--names-only", pattern])
    }

    /// `apt-cache show` of one package.
    ///
    /// # Errors
    /// [`VmError::Tool`], also for an unknown package.
    pub(super) fn show(&self, package: &str) -> Result<String, VmError> {
        self.run("apt-cache", &["show", package])
    }

    /// Downloads packages, verified by the archive's signature; returns the files.
    ///
    /// # Errors
    /// [`VmError::Tool`], [`VmError::Host`].
    pub(super) fn download(&self, packages: &[String]) -> Result<Vec<PathBuf>, VmError> {
        let mut arguments = vec!["download"];
        arguments.extend(packages.iter().map(String::as_str));
        self.run("apt-get", &arguments)?;
        let doing = || VmError::host("looking for the packages that apt downloaded");
        let entries = std::fs::read_dir(self.root.join("archives")).map_err(doing())?;
        let paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>();
        let mut paths = paths.map_err(doing())?;
        paths.retain(|path| path.extension().is_some_and(|ending| ending == "deb"));
        Ok(paths)
    }

    fn run(&self, tool: &str, arguments: &[&str]) -> Result<String, VmError> {
        let command = || format!("{tool} {}", arguments.join(" "));
        let mut process = Command::new(tool);
        process
            .args(arguments)
            .current_dir(self.root.join("archives"))
            .env("APT_CONFIG", self.root.join("apt.conf"))
            .env("LC_ALL", "C")
            .stdin(Stdio::null());
        sys::child::die_with_parent(&mut process);
        let output =
            process.output().map_err(|error| VmError::Tool { command: command(), why: error.to_string() })?;
        if output.status.success() {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        } else {
            Err(VmError::Tool { command: command(), why: last_error(&output.stderr) })
        }
    }
}

/// apt's first error: the last one is usually advice.
fn last_error(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    text.lines().find(|line| line.starts_with("E:")).map_or_else(|| last_line(stderr), str::to_owned)
}

/// The private configuration. Of the machine's configuration only proxies and certificates are kept: its hooks would
/// clean the machine's cache, and its extra index files are not needed.
fn config(root: &Path, dump: &str, arch: Arch) -> String {
    let arch = arch.facts().debian;
    let kept = dump.lines().filter(|line| {
        line.starts_with("Acquire::")
            && !line.starts_with("Acquire::IndexTargets")
            && !line.starts_with("Acquire::Languages")
    });
    let place = |setting: &str, path: &str| format!("{setting} \"{}\";", root.join(path).display());
    let own = [
        place("Dir::Etc::Main", "none"),
        place("Dir::Etc::Parts", "empty"),
        place("Dir::Etc::SourceList", "none"),
        place("Dir::Etc::SourceParts", "sources"),
        place("Dir::Etc::Preferences", "none"),
        place("Dir::Etc::PreferencesParts", "empty"),
        place("Dir::State::Lists", "lists"),
        place("Dir::State::status", "status"),
        place("Dir::Cache", "."),
        place("Dir::Cache::Archives", "archives"),
        "Acquire::Languages \"none\";".into(),
        // An unavailable list is an error, not a warning about an older one.
        "APT::Update::Error-Mode \"any\";".into(),
        // The files belong to the caller; apt's own user may not write here.
        "APT::Sandbox::User \"\";".into(),
        format!("APT::Architecture \"{arch}\";"),
        format!("APT::Architectures {{ \"{arch}\"; }};"),
    ];
    // Default timeouts, so that an unresponsive network is noticed within a minute; the machine's settings override
    // them.
    let patience = ["http::Timeout", "https::Timeout"].map(|setting| format!("Acquire::{setting} \"20\";"));
    patience.into_iter().chain(kept.map(str::to_owned)).chain(own).map(|line| line + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_how_to_fetch_is_taken_over() {
        let dump = "APT::Update::Post-Invoke:: \"rm -f /var/cache/apt/archives/*.deb\";\n\
                    Acquire::http::Proxy \"http://proxy:3128\";\n\
                    Acquire::IndexTargets::deb::DEP-11::MetaKey \"x\";\n\
                    Acquire::Languages \"de\";\n\
                    Dir::State \"var/lib/apt\";\n";
        let config = config(Path::new("/private"), dump, Arch::Arm);
        assert!(config.contains("\nAcquire::http::Proxy \"http://proxy:3128\";\nDir::Etc::Main"), "{config}");
        assert!(
            !config.contains("/var/") && !config.contains("DEP-11") && !config.contains("\"de\""),
            "{config}"
        );
        assert!(config.contains("APT::Architecture \"arm64\";"), "{config}");
        assert!(config.contains("Dir::State::Lists \"/private/lists\";"), "{config}");
    }

    #[test]
    fn apts_error_is_found_above_its_advice() {
        let said = b"W: something\nE: The repository has no Release file.\nN: Updating is disabled.\n";
        assert_eq!(last_error(said), "E: The repository has no Release file.");
    }
}
