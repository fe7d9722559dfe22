//! Lines of Android's log: what `libbinder`, the runtime and the activity manager write about Binder.
//! Facts: AOSP: `JavaBinder` of `android_util_Binder.cpp`, `IPCThreadState.cpp` (pool starved), `BpBinder.cpp` (large
//! transactions), `ActivityManagerService` (proxies, `Start proc`), `CachedAppOptimizer` (freezing), the event `binder_sample`
//! (descriptor, method, milliseconds, package, per cent).

use super::names;
use super::words::{number, whole};
use crate::finding::Evidence;
use crate::system::{Notice, Place, Stamp, System};

/// Whether a line can be one of these, or a driver's; most lines of a log are not.
pub(super) fn may_know(line: &str) -> bool {
    const PARTS: [&str; 7] =
        ["inder", "ransaction", "DeadObject", "ANR in ", "freez", "froze ", "Start proc "];
    PARTS.iter().any(|part| line.contains(part))
}

/// Takes a line; returns whether it is one of these.
pub(super) fn take(line: &str, at: Place, system: &mut System) -> bool {
    let head = Head::of(line);
    if take_name(head.text, system) {
        return true;
    }
    let Some((notice, most)) = notice(&head) else { return false };
    let keep = |most: &mut u64, value: u64| *most = value.max(*most);
    match &notice {
        Notice::Starved { pid, .. } => keep(system.starved_ms.entry(*pid).or_default(), most),
        Notice::Sample { interface, code, .. } => {
            keep(system.slowest_ms.entry((interface.clone(), *code)).or_default(), most);
        }
        Notice::JavaFailed { pid } | Notice::TooLarge { pid } | Notice::Large { pid, .. } => {
            keep(system.most_bytes.entry(*pid).or_default(), most);
        }
        _ => {}
    }
    let evidence = Evidence::of(&system.files, at, line);
    system.notices.add(notice, &head.stamp, [evidence]);
    true
}

/// A line's parts.
struct Head<'l> {
    stamp: Stamp,
    /// 0 if unknown.
    pid: i32,
    /// Tag and message.
    text: &'l str,
}

impl<'l> Head<'l> {
    /// Facts: `threadtime` is `MM-DD HH:MM:SS.mmm [UID] PID TID LEVEL TAG: TEXT`, `brief` is `LEVEL/TAG( PID): TEXT`.
    fn of(line: &'l str) -> Self {
        let words: Vec<&str> = line.split_whitespace().take(7).collect();
        let is_level = |word: &&str| word.len() == 1 && "VDIWEFA".contains(*word);
        let level = words.iter().position(is_level).filter(|at| *at >= 4);
        if let Some(level) = level {
            let pid = words[level - 2].parse().unwrap_or(0);
            let stamp = Stamp { text: words[..2].join(" "), seconds: None };
            let rest = line.split_once(&format!(" {} ", words[level])).map_or(line, |(_, rest)| rest);
            return Self { stamp, pid, text: rest };
        }
        let brief = line.split_once('(').and_then(|(head, rest)| {
            let (pid, _) = rest.split_once(')')?;
            head.contains('/').then(|| pid.trim().parse().ok())?
        });
        Self { stamp: Stamp::default(), pid: brief.unwrap_or(0), text: line }
    }
}

/// Takes a line that names a process or says that it is frozen.
fn take_name(text: &str, system: &mut System) -> bool {
    if let Some((_, rest)) = text.split_once("Start proc ") {
        let Some((pid, rest)) = rest.split_once(':') else { return false };
        let Ok(pid) = pid.parse() else { return false };
        let name = rest.split(['/', ' ']).next().unwrap_or_default();
        names::name(&mut system.processes, pid, name);
        system.frozen.remove(&pid);
        return true;
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    let of = |word: &str| {
        let at = words.iter().position(|found| *found == word)?;
        let pid: i32 = whole(words.get(at + 1)?)?;
        Some((pid, words.get(at + 2).copied()))
    };
    let frozen = of("froze").or_else(|| of("freezing"));
    let thawed = of("unfroze").or_else(|| of("unfreezing"));
    if let Some((pid, name)) = frozen.or(thawed) {
        name.into_iter().for_each(|name| names::name(&mut system.processes, pid, name));
        if thawed.is_some() {
            system.frozen.remove(&pid);
        } else if system.frozen.len() < 1 << 16 {
            system.frozen.insert(pid);
        }
        return true;
    }
    false
}

/// What a line says, and its number: ms or bytes.
fn notice(head: &Head<'_>) -> Option<(Notice, u64)> {
    let (text, pid) = (head.text, head.pid);
    let words: Vec<&str> = text.split_whitespace().collect();
    let number_behind = |part: &str| {
        let rest = text.split_once(part)?.1.trim_start_matches([' ', '=', ':']);
        rest.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u64>().ok()
    };
    if text.contains("FAILED BINDER TRANSACTION") {
        return Some((Notice::JavaFailed { pid }, number_behind("parcel size").unwrap_or(0)));
    }
    if text.contains("TransactionTooLargeException") {
        return Some((Notice::TooLarge { pid }, number_behind("data parcel size").unwrap_or(0)));
    }
    if text.contains("DeadObjectException") || text.contains("DeadSystemException") {
        return Some((Notice::DeadObject { pid }, 0));
    }
    if text.contains("thread pool") && text.contains("starved for") {
        let threads = number_behind("pool (").and_then(|threads| u32::try_from(threads).ok()).unwrap_or(0);
        return Some((Notice::Starved { pid, threads }, number_behind("starved for").unwrap_or(0)));
    }
    if text.contains("Large ") && text.contains("transaction of ") {
        let interface = words.iter().position(|word| *word == "descriptor").and_then(|at| words.get(at + 1));
        let interface = interface.map_or("", |word| word.trim_end_matches(',')).to_owned();
        let code = number(&words, "code").unwrap_or(0);
        return Some((Notice::Large { pid, interface, code }, number_behind("transaction of").unwrap_or(0)));
    }
    if text.contains("sent too many Binders to") || text.contains("Too many Binders sent to") {
        let of = words.last().unwrap_or(&"").to_string();
        let uid = number_behind("Uid ").map_or_else(String::new, |uid| uid.to_string());
        return Some((Notice::TooMany { uid, of }, 0));
    }
    if let Some((_, rest)) = text.split_once("binder_sample: [") {
        let fields: Vec<&str> = rest.trim_end_matches(']').split(',').map(str::trim).collect();
        let [interface, code, ms, by, ..] = fields.as_slice() else { return None };
        let notice = Notice::Sample {
            interface: (*interface).to_owned(),
            code: code.parse().ok()?,
            by: (*by).to_owned(),
        };
        return Some((notice, ms.parse().ok()?));
    }
    if text.contains("transaction while") && text.contains("frozen") {
        return Some((Notice::KilledFrozen { what: short(text) }, 0));
    }
    if let Some((_, what)) = text.split_once("ANR in ") {
        return Some((Notice::Anr { what: short(what) }, 0));
    }
    None
}

fn short(text: &str) -> String {
    units::visible::printable(text.trim()).chars().take(100).collect()
}
