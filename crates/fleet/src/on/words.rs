//! The words behind `--on`: which machines, and the rest of the command line.
//! Not here: the files that the rest names (`remote::Placed`), running the command (`super`).

use std::path::PathBuf;
use std::time::Duration;

use record::verdict::ON_COMMANDS;
use remote::Target;

use units::typed::A_YEAR_S;

/// Options about this machine, which mean nothing elsewhere.
const HERE: [&str; 4] = ["--vm", "--kernel", "--from", "--collect"];

/// How long a machine is waited for that was lost, by default.
const RECONNECT_S: u64 = 600;

/// A command for other machines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct On {
    /// The machines.
    pub targets: Vec<Target>,
    /// This program for that machine, if it is named.
    pub binary: Option<PathBuf>,
    /// How long a machine is waited for that was lost.
    pub reconnect: Duration,
    /// The command without these options.
    pub words: Vec<String>,
}

/// Whether the command with this path, as `throughput binder`, takes `--on`.
pub fn takes_on(path: &str) -> bool {
    ON_COMMANDS
        .iter()
        .any(|name| path == *name || path.strip_prefix(*name).is_some_and(|rest| rest.starts_with(' ')))
}

/// Takes the options out of a command line; none if it has none of them.
///
/// # Errors
/// A word that is no machine, an option without its value, or one that cannot go with them.
pub fn taken(words: &[String]) -> Result<Option<On>, String> {
    if !takes_on(&words.iter().take(2).cloned().collect::<Vec<_>>().join(" ")) {
        return Ok(None);
    }
    let (mut targets, mut binary, mut reconnect) = (Vec::new(), None, None);
    let mut rest = Vec::new();
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let mut own = words[..end].iter();
    while let Some(word) = own.next() {
        let (name, value) =
            word.split_once('=').map_or((word.as_str(), None), |(name, value)| (name, Some(value)));
        if !["--on", "--binary", "--reconnect"].contains(&name) {
            rest.push(word.clone());
            continue;
        }
        let value = value.or_else(|| own.next().map(String::as_str)).filter(|value| !value.is_empty());
        let value = value.ok_or_else(|| format!("{name} needs a value"))?;
        match name {
            "--on" => targets.push(value.parse().map_err(|why| format!("--on {value}: {why}"))?),
            "--binary" => binary = Some(PathBuf::from(value)),
            _ => {
                let seconds = value.parse().ok().filter(|seconds| *seconds <= A_YEAR_S);
                reconnect =
                    Some(seconds.ok_or_else(|| format!("--reconnect {value}: it is no number of seconds"))?);
            }
        }
    }
    if targets.is_empty() {
        let loose = binary.is_some() || reconnect.is_some();
        return if loose { Err("--binary and --reconnect go with --on".to_owned()) } else { Ok(None) };
    }
    let of_here = |word: &&String| HERE.contains(&word.split('=').next().unwrap_or_default());
    if let Some(word) = rest.iter().find(of_here) {
        return Err(format!("{word} cannot go with --on"));
    }
    rest.extend_from_slice(&words[end..]);
    let reconnect = Duration::from_secs(reconnect.unwrap_or(RECONNECT_S));
    Ok(Some(On { targets, binary, reconnect, words: rest }))
}

/// The words without those about other machines; none if there are none.
///
/// # Errors
/// See [`taken`].
pub fn without(words: &[String]) -> Result<Option<Vec<String>>, String> {
    Ok(taken(words)?.map(|on| on.words))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    fn on(line: &str) -> On {
        taken(&words(line)).unwrap_or_else(|why| panic!("{line}: {why}")).expect("some")
    }

    #[test]
    fn the_machines_are_taken_out_wherever_they_stand() {
        let found = on("throughput --on adb binder --record r.json --on=ssh:pi --binary b --reconnect 5");
        assert_eq!(found.targets, [Target::Adb(None), Target::Ssh { host: "pi".to_owned(), port: None }]);
        assert_eq!(found.words, words("throughput binder --record r.json"));
        assert_eq!((found.binary, found.reconnect), (Some(PathBuf::from("b")), Duration::from_secs(5)));
        let found = on("trace record --on local -- prog --on x");
        assert_eq!(found.words, words("trace record -- prog --on x"));
        for line in
            ["throughput binder", "compare --on adb", "trace info --on adb", "trace record -- x --on adb"]
        {
            assert_eq!(taken(&words(line)), Ok(None), "{line}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for (line, why) in [
            ("run --on", "needs a value"),
            ("run --on=", "needs a value"),
            ("run --on phone", "none of adb"),
            ("run --binary x", "go with --on"),
            ("run --on adb --vm=6.12", "--vm=6.12 cannot go"),
            ("doctor --on adb --from x", "--from cannot go"),
            ("run --on adb --reconnect soon", "number of seconds"),
        ] {
            let said = taken(&words(line)).expect_err(line);
            assert!(said.contains(why), "{line}: {said}");
        }
    }
}
