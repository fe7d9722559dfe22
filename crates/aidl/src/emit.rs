//! The Rust for a program: modules for packages, a macro's call for each type.
//! Not here: interfaces (`interface`), parcelables, unions and enums (`data`).

mod data;
mod interface;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write;

use crate::constants::Value;
use crate::error::Fault;
use crate::layout::{self, Fields};
use crate::names;
use crate::notes::{self, Place};
use crate::program::{Program, TypeId};
use crate::tree::{Constant, Item, Kind, Note, Type, Word};
use crate::types::{Base, Ty, Types};
use crate::values::{self, Use};

/// Lints that names, comments and sizes out of `.aidl` files may break.
const ALLOW: &str = "#[allow(dead_code, missing_docs, non_camel_case_types, non_snake_case, non_upper_case_globals, unreachable_code, unreachable_pub, unused_attributes, clippy::all, rustdoc::all)]";

/// Bytes of one value: it is on the stack, often beside others.
const LARGEST: usize = 1 << 14;

/// Makes the Rust.
///
/// # Errors
/// The files are AIDL, but wrong, or Rust cannot have it.
pub(crate) fn emit(program: &Program) -> Result<String, Vec<Fault>> {
    let mut emitter = Emitter {
        types: Types::new(program),
        fields: Vec::new(),
        sizes: vec![0; program.types.len()],
        descriptors: Vec::new(),
        faults: Vec::new(),
    };
    emitter.look();
    let mut root = Module::default();
    for id in 0..program.types.len() {
        let text = emitter.item(id);
        root.inside(&program.types[id].module).items.push(text);
    }
    if !emitter.faults.is_empty() {
        return Err(emitter.faults);
    }
    let mut out = String::new();
    root.print(&mut out, 0);
    Ok(out)
}

/// A module of the output.
#[derive(Default)]
struct Module {
    items: Vec<String>,
    modules: BTreeMap<String, Module>,
}

impl Module {
    fn inside(&mut self, path: &[String]) -> &mut Self {
        path.iter().fold(self, |module, name| module.modules.entry(name.clone()).or_default())
    }

    fn print(&self, out: &mut String, depth: usize) {
        let indent = "    ".repeat(depth);
        let mut between = "";
        for item in &self.items {
            out.push_str(between);
            for line in item.lines() {
                let indent = if line.is_empty() { "" } else { &indent };
                let _ = writeln!(out, "{indent}{line}");
            }
            between = "\n";
        }
        for (name, module) in &self.modules {
            out.push_str(between);
            if depth == 0 {
                let _ = writeln!(out, "{ALLOW}");
            }
            let _ = writeln!(out, "{indent}pub mod {name} {{");
            module.print(out, depth + 1);
            let _ = writeln!(out, "{indent}}}");
            between = "\n";
        }
    }
}

struct Emitter<'p> {
    types: Types<'p>,
    fields: Fields,
    /// Bytes of each type's values.
    sizes: Vec<usize>,
    /// True for types that have a descriptor inside.
    descriptors: Vec<bool>,
    faults: Vec<Fault>,
}

impl<'p> Emitter<'p> {
    /// Looks at all types before the first is written: members refer to them in any order.
    fn look(&mut self) {
        let program = self.types.program;
        let mut taken = HashMap::new();
        let modules: HashSet<&[String]> = program
            .types
            .iter()
            .flat_map(|each| (1..=each.module.len()).map(|length| &each.module[..length]))
            .collect();
        for (id, declared) in program.types.iter().enumerate() {
            let path = [&declared.module[..], &[declared.rust()]].concat();
            if modules.contains(&path[..]) || taken.insert(path, id).is_some() {
                let what =
                    format!("`{}` is the name of a module or of another type as well", declared.rust());
                self.faults.push(Fault::new(program.at(id), what, "give it another name"));
            }
            let fields = declared.item.fields.iter().map(|field| self.ty(id, &field.ty));
            let fields = fields.collect();
            self.fields.push(fields);
        }
        self.descriptors = layout::with_descriptors(&self.fields);
        let sizes = layout::sizes(program, &self.fields);
        if let Some(sizes) = self.kept(sizes) {
            self.sizes = sizes;
        }
    }

    /// The result, or nothing and a fault.
    fn kept<T>(&mut self, result: Result<T, Fault>) -> Option<T> {
        result.map_err(|fault| self.faults.push(fault)).ok()
    }

    fn ty(&mut self, owner: TypeId, ty: &Type) -> Option<Ty> {
        let found = self.types.of(owner, ty);
        self.kept(found)
    }

    fn fault(&mut self, word: &Word, what: &str, remedy: &str) {
        self.faults.push(Fault::new(word.at, format!("`{}` {what}", word.text), remedy));
    }

    /// Checks that the value of a member or a type is not too large for the stack.
    fn check_size(&mut self, word: &Word, size: usize) {
        if size > LARGEST {
            let what = format!("has {size} bytes, and a value has at most {LARGEST}");
            self.fault(word, &what, "write `T[]` for its largest `T[N]`");
        }
    }

    /// Finds names that are there twice, in AIDL or in Rust.
    fn check_unique<'w>(&mut self, names: impl Iterator<Item = (&'w Word, String)>) {
        let mut known = HashMap::new();
        for (word, name) in names {
            if let Some(other) = known.insert(name.clone(), word) {
                let what = if other.text == word.text {
                    "is there twice".to_owned()
                } else {
                    format!("and `{}` are both `{name}` in Rust", other.text)
                };
                self.fault(word, &what, "give one another name");
            }
        }
    }

    fn item(&mut self, id: TypeId) -> String {
        let item = &self.types.program.types[id].item;
        let checked = notes::check(&item.notes, Place::Declaration);
        self.kept(checked);
        if item.opaque {
            self.fault(
                &item.name,
                "has no body here: its contents are written in another language",
                "declare its members",
            );
        }
        if item.generic {
            self.fault(&item.name, "has type parameters", "declare a type for each use");
        }
        self.check_unique(item.constants.iter().map(|each| (&each.name, names::constant(&each.name.text))));
        match item.kind {
            Kind::Interface => self.interface(id, item),
            Kind::Parcelable => self.parcelable(id, item),
            Kind::Union => self.union(id, item),
            Kind::Enumeration => self.enumeration(id, item),
        }
    }

    /// Comment and attributes of an item.
    fn head(&self, id: TypeId, item: &Item, derives: &str) -> String {
        let mut head = comment(&item.doc, "    ");
        if self.types.program.types[id].module.is_empty() {
            let _ = writeln!(head, "    {ALLOW}");
        }
        if !derives.is_empty() {
            let _ = writeln!(head, "    #[derive({derives})]");
        }
        head
    }

    /// The name by which the type is known in calls, in quotes.
    fn descriptor(&mut self, id: TypeId, item: &Item) -> String {
        let descriptor = match self.argument(id, &item.notes, "Descriptor", "value") {
            Some((_, Value::Text(text))) => text,
            Some((word, _)) => {
                self.fault(&word, "of `@Descriptor` is no string", "write `@Descriptor(value=\"...\")`");
                String::new()
            }
            None => self.types.program.types[id].full.clone(),
        };
        format!("{descriptor:?}")
    }

    /// An annotation's argument, which it must have.
    fn argument(&mut self, id: TypeId, notes: &[Note], note: &str, name: &str) -> Option<(Word, Value)> {
        let note = notes::find(notes, note)?;
        let Some((word, value)) = note.arguments.iter().find(|(word, _)| word.text == name) else {
            self.fault(&note.name, &format!("without `{name}=`"), "add it");
            return None;
        };
        let value = self.types.constants.evaluate(id, value);
        Some((word.clone(), self.kept(value)?))
    }

    /// `pub const` for each constant.
    fn constants(&mut self, id: TypeId, constants: &[Constant], indent: &str) -> String {
        let mut out = String::new();
        for (number, constant) in constants.iter().enumerate() {
            let Some(ty) = self.ty(id, &constant.ty) else { continue };
            if ty.nullable || ty.base == Base::Void || ty.base > Base::Text {
                self.fault(
                    &constant.name,
                    "is a constant of a type that has none",
                    "use a number, boolean, String, or an array of these",
                );
                continue;
            }
            let at = constant.value.first.at;
            let value = self.types.constants.value(id, number, constant.name.at);
            let text = value.and_then(|value| values::text(&self.types, id, &ty, &value, at, Use::Constant));
            let Some(text) = self.kept(text) else { continue };
            let name = names::constant(&constant.name.text);
            let rust = self.types.rust_constant(&ty, id);
            let _ =
                writeln!(out, "{}{indent}pub const {name}: {rust} = {text};", comment(&constant.doc, indent));
        }
        out
    }
}

/// A comment's lines, each with `///`.
fn comment(lines: &[String], indent: &str) -> String {
    lines.iter().map(|line| format!("{}\n", format!("{indent}/// {line}").trim_end())).collect()
}
