//! Parser of an event's `format` file: number and field offsets.
//! Not here: which fields are used (`layout`).
//! Facts: `f_show` and `__trace_define_field` of `kernel/trace/trace_events.c`, Linux 7.2.

use crate::number;

/// Format of one event, as the kernel describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format {
    /// Event group.
    pub group: String,
    /// Event name.
    pub name: String,
    /// Event number in the pages of this boot.
    pub id: u16,
    /// Fields, the common ones first.
    pub fields: Vec<Field>,
    /// Print format of the kernel; C source.
    pub print: String,
}

/// Field of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name, without brackets.
    pub name: String,
    /// Offset in bytes from the start of the event.
    pub offset: u32,
    /// Size in bytes; 0 if the field extends to the event's end.
    pub size: u32,
    /// Whether it is a signed number.
    pub signed: bool,
    /// Location of its content.
    pub at: FieldLocation,
}

/// Location of a field's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldLocation {
    /// Inline in the field.
    Here,
    /// `__data_loc`: the field holds offset and length, from the event's start.
    DataLoc,
    /// `__rel_loc`: the field holds offset and length, from the field's end.
    RelLoc,
}

/// Maximum number of fields parsed; the kernel's largest events have some forty.
const MOST_FIELDS: usize = 512;

impl Format {
    /// Parses a `format` file. `None` if it has no name or number.
    #[must_use]
    pub fn parse(group: &str, text: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(text);
        let (mut name, mut id, mut print) = (None, None, String::new());
        let mut fields = Vec::new();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("name:") {
                name = Some(rest.trim().to_owned());
            } else if let Some(rest) = line.strip_prefix("ID:") {
                id = rest.trim().parse().ok();
            } else if let Some(rest) = line.strip_prefix("print fmt:") {
                rest.trim().clone_into(&mut print);
            } else if fields.len() < MOST_FIELDS {
                fields.extend(Field::parse(line));
            }
        }
        Some(Self {
            group: group.to_owned(),
            name: name.filter(|name| !name.is_empty())?,
            id: id?,
            fields,
            print,
        })
    }

    /// Field of this name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

impl Field {
    /// Parses one line: `field:TYPE NAME; offset:N; size:N; signed:N;`. `header_page` has the same lines.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let line = line.trim_start();
        let rest = line.strip_prefix("field:").or_else(|| line.strip_prefix("field special:"))?;
        let mut parts = rest.split(';');
        let declaration = parts.next()?.trim();
        let (mut offset, mut size, mut signed) = (None, None, false);
        for part in parts {
            let Some((key, value)) = part.trim().split_once(':') else { continue };
            let value = number::any(value.as_bytes()).and_then(|value| u32::try_from(value).ok());
            match key {
                "offset" => offset = value,
                "size" => size = value,
                "signed" => signed = value == Some(1),
                _ => {}
            }
        }
        let at = match declaration.split(' ').next() {
            Some("__data_loc") => FieldLocation::DataLoc,
            Some("__rel_loc") => FieldLocation::RelLoc,
            _ => FieldLocation::Here,
        };
        let bare = declaration
            .split_once('[')
            .filter(|(before, _)| at == FieldLocation::Here && !before.ends_with(' '));
        let bare = bare.map_or(declaration, |(before, _)| before).trim_end();
        let name = bare.rsplit([' ', '*', ']']).next().filter(|name| !name.is_empty())?;
        Some(Self { name: name.to_owned(), offset: offset?, size: size?, signed, at })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_however_they_are_declared() {
        for (declaration, name, at) in [
            ("unsigned short common_type", "common_type", FieldLocation::Here),
            ("char prev_comm[16]", "prev_comm", FieldLocation::Here),
            ("char prev_comm[TASK_COMM_LEN]", "prev_comm", FieldLocation::Here),
            ("__data_loc char[] name", "name", FieldLocation::DataLoc),
            ("__rel_loc char[] name", "name", FieldLocation::RelLoc),
            ("void *work", "work", FieldLocation::Here),
            ("const char * fmt", "fmt", FieldLocation::Here),
            ("char buf[]", "buf", FieldLocation::Here),
            (" local_t commit", "commit", FieldLocation::Here),
        ] {
            for (offset, size, signed) in [(8, 16, true), (12, 0, false)] {
                let numbers = format!("offset:{offset};\tsize:{size};\tsigned:{};", u32::from(signed));
                let field = Field::parse(&format!("\tfield:{declaration};\t{numbers}")).expect(declaration);
                assert_eq!(field, Field { name: name.to_owned(), offset, size, signed, at }, "{declaration}");
            }
        }
        for bad in ["", "field:", "field:int x;", "field:int x;\toffset:-1;\tsize:4;", "print fmt: \"\""] {
            assert_eq!(Field::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_format_needs_a_name_and_a_number() {
        let format = Format::parse(
            "sched",
            b"name: x\nID: 7\nformat:\n\tfield:int a;\toffset:8;\tsize:4;\n\nprint fmt: \"a\", 1\n",
        )
        .expect("a format");
        assert_eq!((format.name.as_str(), format.id, format.print.as_str()), ("x", 7, "\"a\", 1"));
        assert!(format.field("a").is_some() && format.field("b").is_none());
        for bad in ["", "name: x\n", "ID: 7\n", "name: x\nID: 70000\n", "name:\nID: 1\n"] {
            assert_eq!(Format::parse("g", bad.as_bytes()), None, "{bad}");
        }
    }
}
