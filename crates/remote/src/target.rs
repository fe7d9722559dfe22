//! Words for machines, as `--on` takes them.

use std::fmt;
use std::str::FromStr;

/// A machine to measure on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// This machine.
    Local,
    /// A guest; its kernel, as `vm --kernel` takes it, if one is named.
    Vm(Option<String>),
    /// An Android device, or any machine that runs `adbd`; its serial number, if one is named.
    Adb(Option<String>),
    /// A machine that `ssh` reaches.
    Ssh {
        /// `[USER@]HOST`, or a host of the user's ssh configuration.
        host: String,
        /// The port, if one is named.
        port: Option<u16>,
    },
}

impl Target {
    /// The target as the head of a column: of a kernel's path its last part.
    #[must_use]
    pub fn head(&self) -> String {
        match self {
            Self::Vm(Some(kernel)) => format!("vm:{}", kernel.rsplit('/').next().unwrap_or(kernel)),
            other => other.to_string(),
        }
    }

    /// The target's name as part of a file name.
    #[must_use]
    pub fn label(&self) -> String {
        let safe = |letter: char| letter.is_ascii_alphanumeric() || "._-@".contains(letter);
        self.to_string().chars().map(|letter| if safe(letter) { letter } else { '-' }).collect()
    }
}

/// A name for each target, as part of a path; the same one twice gets a number.
#[must_use]
pub fn labels(targets: &[Target]) -> Vec<String> {
    let mut labels: Vec<String> = Vec::new();
    for target in targets {
        let label = target.label();
        let numbered = (2..=targets.len()).map(|number| format!("{label}.{number}"));
        let free = [label.clone()].into_iter().chain(numbered).find(|label| !labels.contains(label));
        labels.push(free.unwrap_or(label));
    }
    labels
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local => f.write_str("local"),
            Self::Vm(None) => f.write_str("vm"),
            Self::Vm(Some(kernel)) => write!(f, "vm:{kernel}"),
            Self::Adb(None) => f.write_str("adb"),
            Self::Adb(Some(serial)) => write!(f, "adb:{serial}"),
            Self::Ssh { host, port: None } => write!(f, "ssh:{host}"),
            Self::Ssh { host, port: Some(port) } => write!(f, "ssh:{host}:{port}"),
        }
    }
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, rest) = text.split_once(':').map_or((text, None), |(kind, rest)| (kind, Some(rest)));
        // A word that begins with a dash would be an option of adb or ssh.
        if rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-') || rest.contains('\0')) {
            return Err(format!("nothing usable behind the colon of {text:?}"));
        }
        match (kind, rest) {
            ("local", None) => Ok(Self::Local),
            ("vm", kernel) => Ok(Self::Vm(kernel.map(str::to_owned))),
            ("adb", serial) => Ok(Self::Adb(serial.map(str::to_owned))),
            ("ssh", Some(rest)) => ssh(rest).ok_or_else(|| format!("{text:?} is not ssh:[USER@]HOST[:PORT]")),
            ("ssh", None) => Err("ssh needs a host: ssh:[USER@]HOST[:PORT]".to_owned()),
            _ => Err(format!("{text:?} is none of adb[:SERIAL], ssh:[USER@]HOST[:PORT], vm[:KERNEL], local")),
        }
    }
}

/// `[USER@]HOST[:PORT]`; an IPv6 address with a port stands in brackets.
fn ssh(text: &str) -> Option<Target> {
    let (user, place) = text.rsplit_once('@').map_or((None, text), |(user, place)| (Some(user), place));
    let (host, port) = match place.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, port)) => (host, Some(port.strip_prefix(':')?)),
        None if place.matches(':').count() > 1 => (place, None),
        None => place.split_once(':').map_or((place, None), |(host, port)| (host, Some(port))),
    };
    let odd = |word: &str| word.is_empty() || word.starts_with('-') || word.contains(char::is_whitespace);
    if odd(host) || user.is_some_and(odd) {
        return None;
    }
    let port =
        port.map(|port| port.parse::<u16>().ok().filter(|port| *port > 0).ok_or(())).transpose().ok()?;
    let host = user.map_or(host.to_owned(), |user| format!("{user}@{host}"));
    Some(Target::Ssh { host, port })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_a_machine() {
        let ssh = |host: &str, port| Target::Ssh { host: host.to_owned(), port };
        let adb = |serial: &str| Target::Adb(Some(serial.to_owned()));
        for (word, target) in [
            ("local", Target::Local),
            ("vm", Target::Vm(None)),
            ("vm:6.12", Target::Vm(Some("6.12".to_owned()))),
            ("vm:/a:b.deb", Target::Vm(Some("/a:b.deb".to_owned()))),
            ("adb", Target::Adb(None)),
            ("adb:emulator-5554", adb("emulator-5554")),
            ("adb:127.0.0.1:5555", adb("127.0.0.1:5555")),
            ("adb:[::1]:5555", adb("[::1]:5555")),
            ("ssh:pi", ssh("pi", None)),
            ("ssh:me@pi:2222", ssh("me@pi", Some(2222))),
            ("ssh:a@b@pi", ssh("a@b@pi", None)),
            ("ssh:fe80::1", ssh("fe80::1", None)),
        ] {
            assert_eq!(word.parse(), Ok(target.clone()), "{word}");
            assert_eq!(target.to_string(), word);
        }
        assert_eq!("ssh:root@[fe80::1]:22".parse(), Ok(ssh("root@fe80::1", Some(22))));
        for bad in [
            "",
            "adv",
            "local:x",
            "adb:",
            "ssh",
            "ssh:",
            "ssh:-oProxyCommand=x",
            "adb:-s",
            "ssh:a:b",
            "ssh:a:0",
            "ssh:a:70000",
            "ssh:@h",
            "ssh:-x@h",
            "ssh:[::1]22",
            "ssh:a b",
            "vm:",
        ] {
            assert!(bad.parse::<Target>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_label_is_one_part_of_a_path() {
        let label = |word: &str| word.parse::<Target>().expect(word).label();
        assert_eq!(label("adb:127.0.0.1:5555"), "adb-127.0.0.1-5555");
        assert_eq!(label("vm:/boot/vmlinuz 6"), "vm--boot-vmlinuz-6");
        assert_eq!(label("ssh:me@pi"), "ssh-me@pi");
    }

    #[test]
    fn each_target_has_a_folder_of_its_own() {
        let targets = ["ssh:pi", "adb", "ssh:pi", "ssh:pi"].map(|word| word.parse::<Target>().expect(word));
        assert_eq!(labels(&targets), ["ssh-pi", "adb", "ssh-pi.2", "ssh-pi.3"]);
        let alike = ["ssh:pi.2", "ssh:pi", "ssh:pi"].map(|word| word.parse::<Target>().expect(word));
        assert_eq!(labels(&alike), ["ssh-pi.2", "ssh-pi", "ssh-pi.3"]);
    }
}
