//! Parcelables, unions and enums: calls of `binder::parcelable!`, `binder::union!` and `binder::enumeration!`.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::{Emitter, comment};
use crate::constants::Value;
use crate::names;
use crate::notes;
use crate::program::TypeId;
use crate::tree::{Field, Item, Kind};
use crate::types::{Base, Shape, Ty};
use crate::values::{self, Use};

const INDENT: &str = "        ";

/// The traits that `@RustDerive` can add.
const DERIVES: [&str; 7] = ["Clone", "Copy", "Eq", "Hash", "Ord", "PartialEq", "PartialOrd"];

impl Emitter<'_> {
    pub(super) fn parcelable(&mut self, id: TypeId, item: &Item) -> String {
        let mut out = self.begin(id, item, "parcelable", "struct");
        self.check_unique(item.fields.iter().map(|each| (&each.name, names::snake(&each.name.text))));
        for (number, field) in item.fields.iter().enumerate() {
            let Some(ty) = self.fields[id][number].clone() else { continue };
            self.check_void(field, &ty);
            let default = self.default(id, field, &ty);
            let required = if ty.has_default() { "" } else { " as required" };
            let (name, rust) = (names::snake(&field.name.text), self.types.rust(&ty, id, false));
            let _ =
                writeln!(out, "{}{INDENT}{name}: {rust}{required}{default},", comment(&field.doc, INDENT));
        }
        self.end(id, item, out)
    }

    pub(super) fn union(&mut self, id: TypeId, item: &Item) -> String {
        let mut out = self.begin(id, item, "union", "enum");
        // A constant of the same name would hide the variant's.
        let constants = item.constants.iter().map(|each| (&each.name, names::constant(&each.name.text)));
        let members = item.fields.iter().map(|each| (&each.name, names::camel(&each.name.text)));
        self.check_unique(constants.chain(members));
        if item.fields.is_empty() {
            self.fault(&item.name, "is a union without members", "add one");
        }
        for (number, member) in item.fields.iter().enumerate() {
            let Some(ty) = self.fields[id][number].clone() else { continue };
            self.check_void(member, &ty);
            let default = if number == 0 { self.default(id, member, &ty) } else { String::new() };
            if number == 0 && !ty.has_default() {
                self.fault(
                    &member.name,
                    "is the first member and has no default",
                    "put another one first, or write `@nullable`",
                );
            } else if number > 0 && member.value.is_some() {
                self.fault(&member.name, "has a default and is not the first member", "remove it");
            }
            let (name, rust) = (names::camel(&member.name.text), self.types.rust(&ty, id, false));
            let _ = writeln!(out, "{}{INDENT}{name}({rust}){default},", comment(&member.doc, INDENT));
        }
        self.end(id, item, out)
    }

    pub(super) fn enumeration(&mut self, id: TypeId, item: &Item) -> String {
        self.check_unique(item.enumerators.iter().map(|each| (&each.name, names::constant(&each.name.text))));
        let backing = match self.argument(id, &item.notes, "Backing", "type") {
            None => Base::Byte,
            Some((_, Value::Text(text))) if text == "byte" => Base::Byte,
            Some((_, Value::Text(text))) if text == "int" => Base::Int,
            Some((_, Value::Text(text))) if text == "long" => Base::Long,
            Some((word, _)) => {
                self.fault(&word, "of `@Backing` is not known", "write \"byte\", \"int\" or \"long\"");
                Base::Byte
            }
        };
        let ty = Ty { base: backing, shape: Shape::One, nullable: false, heap: false, empty: false };
        let (rust, descriptor) = (self.types.rust(&ty, id, false), self.descriptor(id, item));
        let name = names::plain(&item.name.text);
        let mut out = format!("::binder::enumeration! {{\n{}", self.head(id, item, ""));
        let _ = writeln!(out, "    pub struct {name}: {rust} = {descriptor} {{");
        for (number, member) in item.enumerators.iter().enumerate() {
            let at = member.name.at;
            let value = self.types.constants.value(id, number, at);
            let text = value.and_then(|value| values::text(&self.types, id, &ty, &value, at, Use::Default));
            let Some(text) = self.kept(text) else { continue };
            let _ = writeln!(
                out,
                "{}{INDENT}{} = {text},",
                comment(&member.doc, INDENT),
                names::constant(&member.name.text)
            );
        }
        out + "    }\n}\n"
    }

    fn begin(&mut self, id: TypeId, item: &Item, macro_name: &str, keyword: &str) -> String {
        if notes::find(&item.notes, "FixedSize").is_some() {
            self.check_fixed_size(id, item);
        }
        self.check_size(&item.name, self.sizes[id]);
        let derives = self.derives(id, item);
        let (head, descriptor) = (self.head(id, item, &derives), self.descriptor(id, item));
        let name = names::plain(&item.name.text);
        format!("::binder::{macro_name}! {{\n{head}    pub {keyword} {name} = {descriptor} {{\n")
    }

    fn end(&mut self, id: TypeId, item: &Item, mut out: String) -> String {
        out += "    }\n}\n";
        if !item.constants.is_empty() {
            let constants = self.constants(id, &item.constants, "    ");
            let _ = write!(out, "\nimpl {} {{\n{constants}}}\n", names::plain(&item.name.text));
        }
        out
    }

    fn check_void(&mut self, field: &Field, ty: &Ty) {
        if ty.base == Base::Void {
            self.fault(&field.name, "is void", "give it a type");
        }
    }

    /// ` = ` and the default, if there is one that Rust would not take by itself.
    fn default(&mut self, id: TypeId, field: &Field, ty: &Ty) -> String {
        let text = match &field.value {
            None => ty.long_default(),
            Some(value) => {
                let at = value.first.at;
                let text = self.types.constants.evaluate(id, value);
                let text = text.and_then(|value| values::text(&self.types, id, ty, &value, at, Use::Default));
                self.kept(text)
            }
        };
        text.map_or(String::new(), |text| format!(" = {text}"))
    }

    /// The traits that the fields allow, and those that `@RustDerive` asks for.
    fn derives(&mut self, id: TypeId, item: &Item) -> String {
        let mut derives = BTreeSet::from(["Debug"]);
        if !self.descriptors[id] {
            derives.extend(["Clone", "PartialEq"]);
        }
        for (word, value) in
            notes::find(&item.notes, "RustDerive").into_iter().flat_map(|note| &note.arguments)
        {
            let value = self.types.constants.evaluate(id, value);
            match (DERIVES.iter().find(|known| **known == word.text), self.kept(value)) {
                (Some(known), Some(Value::Bool(true))) => {
                    derives.insert(known);
                }
                (Some(_), Some(Value::Bool(false)) | None) => {}
                _ => self.fault(
                    word,
                    "of `@RustDerive` is not known",
                    &format!("write `=true` behind one of {}", DERIVES.join(", ")),
                ),
            }
        }
        derives.into_iter().collect::<Vec<_>>().join(", ")
    }

    /// Checks that every field of a `@FixedSize` type has as many bytes in each value.
    fn check_fixed_size(&mut self, id: TypeId, item: &Item) {
        for (number, field) in item.fields.iter().enumerate() {
            let Some(ty) = self.fields[id][number].clone() else { continue };
            let is_fixed = match ty.base {
                Base::Declared(inner, Kind::Parcelable | Kind::Union) => {
                    notes::find(&self.types.program.types[inner].item.notes, "FixedSize").is_some()
                }
                Base::Declared(_, kind) => kind == Kind::Enumeration,
                base => base < Base::Text,
            };
            if !is_fixed || ty.nullable || ty.shape == Shape::List {
                let remedy =
                    "use numbers, enums, `T[N]` and other `@FixedSize` types, or remove `@FixedSize`";
                self.fault(&field.name, "has no fixed size", remedy);
            }
        }
    }
}
