//! Parser of one event's text (the part behind the line prefix) into a neutral event.
//! Not here: lines (`text`); the events' keys (`schema`).
//! Facts: trace-cmd's texts for `sched_switch` and wake-ups (`plugin_sched_switch.c` of libtraceevent).

use crate::event::{
    Binder, CodeLocation, Flavour, Irq, Kind, LockKind, Name, Names, Prio, State, Task, Wake,
};
use crate::number;
use crate::schema::{self, EventSpec, FieldType, Values};
use crate::symbol;

/// Turns printed text into an event: a binder event if it is one of the embedded driver's (`binder_transaction:
/// transaction=...`), otherwise [`Kind::Print`]. What ends its line is left out.
pub(crate) fn mark(text: &[u8], names: &mut Names) -> Kind {
    let end = text.iter().rposition(|byte| !matches!(byte, b'\n' | 0)).map_or(0, |last| last + 1);
    let text = &text[..end];
    if text.starts_with(b"binder_")
        && let Some(colon) = text.iter().position(|byte| *byte == b':')
        && let Some(rest) = text[colon..].strip_prefix(b": ")
        && let Some(spec) = EventSpec::named(&text[..colon]).filter(|spec| spec.is_binder())
        && let Some(values) = values(spec, rest, names)
    {
        let mut event = spec.event(&values, Flavour::Embedded);
        // The embedded driver's labels are right, unlike the kernel's (contract TP-09).
        if let Kind::Binder(_, Binder::LatencyFree(free)) = &mut event {
            std::mem::swap(&mut free.code, &mut free.flags);
        }
        return event;
    }
    Kind::Print(String::from_utf8_lossy(text).into())
}

/// Parses an event's text. `None` if the event is known but its text is malformed.
pub(crate) fn parse(name: &[u8], text: &[u8], names: &mut Names) -> Option<Kind> {
    if let Some(spec) = EventSpec::named(name) {
        // The Rust driver's events have the C driver's form; it only lacks some.
        let event = values(spec, text, names).map(|values| spec.event(&values, Flavour::C));
        return event.or_else(|| short_form(name, text, names)).or_else(|| raw_form(spec, text, names));
    }
    Some(match name {
        b"tracing_mark_write" => mark(text, names),
        b"print" => {
            // trace-cmd's name for it, with the printing function before the text.
            let text = String::from_utf8_lossy(text);
            mark(text_of_print(&text).as_bytes(), names)
        }
        _ => vector(name, text, names).unwrap_or_else(|| Kind::Other { name: names.intern_bytes(name) }),
    })
}

/// Text of trace-cmd's `print`: behind the printing function, or with `report -r` behind `buf=`.
fn text_of_print(text: &str) -> &str {
    let of_function = text
        .split_once(": ")
        .filter(|(function, _)| symbol::bare(function.as_bytes()) == b"tracing_mark_write");
    let raw = || text.strip_prefix("ip=0x").and_then(|rest| rest.split_once(" buf="));
    of_function.or_else(raw).map_or(text, |(_, text)| text)
}

/// The fields by their names in the kernel's format, as `trace-cmd report -r` prints them: `debug_id=1 target_node=5`.
fn raw_form(spec: &EventSpec, text: &[u8], names: &mut Names) -> Option<Kind> {
    let mut values = Values::default();
    for (index, field) in spec.fields.iter().enumerate().filter(|(_, field)| !field.name.is_empty()) {
        let Some(content) = raw_field(text, field.name.as_bytes()) else {
            if field.form == FieldType::OptionalNumber {
                continue;
            }
            return None;
        };
        let number = || number::any(content).map(i64::cast_unsigned);
        values[index] = match field.form {
            FieldType::Text => names.intern_bytes(content).into(),
            FieldType::State => u64::from(schema::state_letter(number()?)).into(),
            FieldType::Place => CodeLocation { address: number()?, symbol: Name::NONE }.into(),
            // The address of a text that is not in the report.
            FieldType::Reason => Name::NONE.into(),
            FieldType::Number | FieldType::OptionalNumber | FieldType::Address | FieldType::LockFlags => {
                number()?.into()
            }
        };
    }
    (!spec.fields.is_empty()).then(|| spec.event(&values, Flavour::C))
}

/// Content of `NAME=CONTENT`, up to the next name.
fn raw_field<'t>(text: &'t [u8], name: &[u8]) -> Option<&'t [u8]> {
    let is_it = |at: &usize| {
        let begins = *at == 0 || text[at - 1] == b' ';
        begins && text[*at..].strip_prefix(name).is_some_and(|rest| rest.starts_with(b"="))
    };
    let begin = (0..text.len()).find(is_it)? + name.len() + 1;
    let rest = text.get(begin..)?;
    // The next name is a word with `=` behind a space.
    let is_name = |word: &[u8]| {
        let name = word.split(|byte| *byte == b'=').next().unwrap_or_default();
        name.len() < word.len()
            && !name.is_empty()
            && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
    };
    let spaces = rest.iter().enumerate().filter(|(_, byte)| **byte == b' ').map(|(at, _)| at);
    let end = spaces
        .map(|at| (at, &rest[at + 1..]))
        .find(|(_, behind)| is_name(behind.split(|byte| *byte == b' ').next().unwrap_or_default()));
    Some(rest.get(..end.map_or(rest.len(), |(at, _)| at))?.trim_ascii_end())
}

/// Processor-local interrupts, which share one form: `NAME_entry: vector=N`.
fn vector(name: &[u8], text: &[u8], names: &mut Names) -> Option<Kind> {
    let entry = name.strip_suffix(b"_entry");
    let name = entry.or_else(|| name.strip_suffix(b"_exit"))?;
    let irq = Irq::Vector(schema::int(FieldReader { rest: text }.number(b"vector=")?.into()));
    let name = names.intern_bytes(name);
    Some(if entry.is_some() { Kind::IrqEntry { irq, name } } else { Kind::IrqExit { irq, name } })
}

/// Values of an event's fields, read from left to right.
fn values(spec: &EventSpec, text: &[u8], names: &mut Names) -> Option<Values> {
    let mut reader = FieldReader { rest: text };
    let mut values = Values::default();
    for (index, field) in spec.fields.iter().enumerate() {
        let next = spec.fields.get(index + 1).map(|next| next.key.as_bytes());
        let key = field.key.as_bytes();
        values[index] = match field.form {
            FieldType::Number if next == Some(b":") => {
                number::any(reader.until(key, next)?)?.cast_unsigned().into()
            }
            FieldType::Number => reader.number(key)?.into(),
            FieldType::OptionalNumber => reader.number(key).unwrap_or(0).into(),
            FieldType::Address => reader.address(key)?.into(),
            FieldType::Text => names.intern_bytes(reader.until(key, next)?).into(),
            FieldType::Place => place(reader.behind(key)?, names).into(),
            FieldType::Reason => names.intern_bytes(reader.bracketed()?).into(),
            FieldType::State => u64::from(state_letter(reader.word(key)?)?).into(),
            FieldType::LockFlags => {
                u64::from(LockKind::flags_of_words(reader.word(key)?.strip_suffix(b")")?)).into()
            }
        };
    }
    Some(values)
}

/// trace-cmd's form of `sched_switch`, `COMM:TID [PRIO] STATE ==> COMM:TID [PRIO]`, and of wake-ups, `COMM:TID [PRIO]
/// CPU:N`.
fn short_form(name: &[u8], text: &[u8], names: &mut Names) -> Option<Kind> {
    let (task, rest) = short_task(text, names)?;
    let wake = |rest| {
        let target_cpu = u32::try_from(FieldReader { rest }.number(b"CPU:")?).ok()?;
        Some(Wake { task, target_cpu })
    };
    Some(match name {
        b"sched_switch" => {
            let arrow = rest.windows(5).position(|window| window == b" ==> ")?;
            let state = State::of_letter(state_letter(rest[..arrow].trim_ascii())?);
            let (next, _) = short_task(&rest[arrow + 5..], names)?;
            Kind::Switch { prev: task, state, next }
        }
        b"sched_waking" => Kind::Waking(wake(rest)?),
        b"sched_wakeup" => Kind::Wakeup(wake(rest)?),
        b"sched_wakeup_new" => Kind::WakeupNew(wake(rest)?),
        _ => return None,
    })
}

/// `COMM:TID [PRIO]` at the start, and the remaining text. Names may contain colons and spaces.
fn short_task<'t>(text: &'t [u8], names: &mut Names) -> Option<(Task, &'t [u8])> {
    let bracket = text.windows(2).position(|window| window == b" [")?;
    let (name, rest) = (text.get(..bracket)?.trim_ascii(), text.get(bracket + 2..)?);
    let colon = name.iter().rposition(|byte| *byte == b':')?;
    let close = rest.iter().position(|byte| *byte == b']')?;
    let number = |text: &[u8]| number::any(text).and_then(|value| i32::try_from(value).ok());
    let (tid, prio) = (number(name.get(colon + 1..)?)?, number(rest.get(..close)?)?);
    let task = Task { tid, comm: names.intern_bytes(&name[..colon]), prio: Prio(prio) };
    Some((task, rest.get(close + 1..)?))
}

/// Letter of a task state: `S`, `D|K`; `+` for `R+`.
fn state_letter(text: &[u8]) -> Option<u8> {
    if text.ends_with(b"+") { Some(b'+') } else { text.first().copied() }
}

/// Symbol with its offset removed (`f+0x4/0x10`), or an address.
fn place(text: &[u8], names: &mut Names) -> CodeLocation {
    let word = text.split(|byte| byte.is_ascii_whitespace()).next().unwrap_or_default();
    let symbol = symbol::bare(word.split(|byte| *byte == b'+').next().unwrap_or_default());
    if let Some(address) = symbol.strip_prefix(b"0x").and_then(number::hex) {
        return CodeLocation { address, symbol: Name::NONE };
    }
    // `%pS` of NULL is `0x0`; older texts have the address in brackets: `[<ffff...>] f+0x4/0x10`.
    let bracketed = word.starts_with(b"[<").then(|| text.get(word.len()..)).flatten();
    match bracketed.map(<[u8]>::trim_ascii_start).filter(|rest| !rest.is_empty() && !rest.starts_with(b"[<"))
    {
        Some(rest) => place(rest, names),
        None => CodeLocation { address: 0, symbol: names.intern_bytes(symbol) },
    }
}

/// Left-to-right reader of `key=value` words.
struct FieldReader<'t> {
    rest: &'t [u8],
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    // Usually the key comes next, behind at most one space.
    if text.starts_with(what) {
        return Some(0);
    }
    if text.get(1..).is_some_and(|text| text.starts_with(what)) {
        return Some(1);
    }
    text.windows(what.len()).position(|window| window == what)
}

impl<'t> FieldReader<'t> {
    /// Everything behind a key.
    fn behind(&self, key: &[u8]) -> Option<&'t [u8]> {
        self.rest.get(find(self.rest, key)? + key.len()..)
    }

    /// Text between `key` and `until`, where reading continues; without `until`, everything behind the key.
    fn until(&mut self, key: &[u8], until: Option<&[u8]>) -> Option<&'t [u8]> {
        let rest = self.behind(key)?;
        let Some(until) = until else { return Some(rest.trim_ascii_end()) };
        let end = rest.windows(until.len()).position(|window| window == until)?;
        self.rest = rest.get(end..)?;
        rest.get(..end)
    }

    /// Word behind a key; reading continues behind it.
    fn word(&mut self, key: &[u8]) -> Option<&'t [u8]> {
        let rest = self.behind(key)?;
        let end = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
        self.rest = rest.get(end..)?;
        rest.get(..end)
    }

    fn number(&mut self, key: &[u8]) -> Option<u64> {
        number::any(self.word(key)?).map(i64::cast_unsigned)
    }

    /// Address, with or without `0x`, optionally followed by a colon.
    fn address(&mut self, key: &[u8]) -> Option<u64> {
        let word = self.word(key)?;
        let word = word.strip_suffix(b":").unwrap_or(word);
        number::hex(word.strip_prefix(b"0x").unwrap_or(word))
    }

    /// Text in the last pair of round brackets.
    fn bracketed(&self) -> Option<&'t [u8]> {
        let text = self.rest.trim_ascii_end().strip_suffix(b")")?;
        let start = text.iter().rposition(|byte| *byte == b'(')?;
        text.get(start + 1..)
    }
}

#[cfg(test)]
mod tests;
