//! Room: an event's `format` file: its number, and where its fields are.
//! Not here: which fields matter (`layout`).
//! Facts: `f_show` and `__trace_define_field` of `kernel/trace/trace_events.c`, Linux 7.2.

use crate::number;

/// One event's layout, as the kernel describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format {
    /// The group that it belongs to.
    pub group: String,
    /// Its name.
    pub name: String,
    /// Its number in the pages of this boot.
    pub id: u16,
    /// Its fields, the common ones first.
    pub fields: Vec<Field>,
    /// How the kernel prints it; C source.
    pub print: String,
}

/// One field of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name, without brackets.
    pub name: String,
    /// Bytes from the start of the event.
    pub offset: u32,
    /// Bytes; 0 for what goes on to the event's end.
    pub size: u32,
    /// Whether it is a signed number.
    pub signed: bool,
    /// Where its content is.
    pub at: At,
}

/// Where a field's content is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// In the field.
    Here,
    /// `__data_loc`: the field says offset and length, from the event's start.
    DataLoc,
    /// `__rel_loc`: the same, from the end of the field.
    RelLoc,
}

/// The most fields that are looked at; the kernel's largest events have some forty.
const MOST_FIELDS: usize = 512;

impl Format {
    /// Reads a `format` file. `None` if it has no name or number.
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

    /// A field by its name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

impl Field {
    /// Reads one line: `field:TYPE NAME; offset:N; size:N; signed:N;`. Also the lines of `header_page`.
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
            Some("__data_loc") => At::DataLoc,
            Some("__rel_loc") => At::RelLoc,
            _ => At::Here,
        };
        let bare = declaration.split_once('[').filter(|(before, _)| at == At::Here && !before.ends_with(' '));
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
        for (line, name, offset, size, signed, at) in [
            (
                "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;",
                "common_type",
                0,
                2,
                false,
                At::Here,
            ),
            (
                "\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;",
                "prev_comm",
                8,
                16,
                false,
                At::Here,
            ),
            (
                "\tfield:char prev_comm[TASK_COMM_LEN];\toffset:8;\tsize:16;\tsigned:1;",
                "prev_comm",
                8,
                16,
                true,
                At::Here,
            ),
            (
                "\tfield:__data_loc char[] name;\toffset:12;\tsize:4;\tsigned:0;",
                "name",
                12,
                4,
                false,
                At::DataLoc,
            ),
            (
                "\tfield:__rel_loc char[] name;\toffset:12;\tsize:4;\tsigned:0;",
                "name",
                12,
                4,
                false,
                At::RelLoc,
            ),
            ("\tfield:void *work;\toffset:8;\tsize:8;\tsigned:0;", "work", 8, 8, false, At::Here),
            ("\tfield:const char * fmt;\toffset:16;\tsize:8;\tsigned:0;", "fmt", 16, 8, false, At::Here),
            ("\tfield:char buf[];\toffset:16;\tsize:0;\tsigned:0;", "buf", 16, 0, false, At::Here),
            ("\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;", "commit", 8, 8, true, At::Here),
        ] {
            let field = Field::parse(line).expect(line);
            assert_eq!(
                (field.name.as_str(), field.offset, field.size, field.signed, field.at),
                (name, offset, size, signed, at),
                "{line}"
            );
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
