//! Interfaces: calls of `binder::interface!`.

use std::collections::HashSet;
use std::fmt::Write;

use super::{Emitter, comment};
use crate::layout;
use crate::names;
use crate::program::TypeId;
use crate::tree::{Argument, Item, Method};
use crate::types::{Base, Shape};

/// The largest number that a method may have: those above it are aidl's own.
const LAST_METHOD: u32 = 16_777_114;

impl Emitter<'_> {
    pub(super) fn interface(&mut self, id: TypeId, item: &Item) -> String {
        self.check_unique(item.methods.iter().map(|each| (&each.name, names::method(&each.name.text))));
        self.check_numbers(&item.methods);
        let mut out = format!("::binder::interface! {{\n{}", self.head(id, item, ""));
        let descriptor = self.descriptor(id, item);
        let _ = writeln!(out, "    pub mod {} = {descriptor} {{", names::plain(&item.name.text));
        for method in &item.methods {
            let method = self.method(id, method);
            out += &method;
        }
        out += "    }\n";
        if !item.constants.is_empty() {
            let constants = self.constants(id, &item.constants, "        ");
            let _ = write!(out, "    {{\n{constants}    }}\n");
        }
        out + "}\n"
    }

    /// Checks that all methods have numbers of their own, or none.
    fn check_numbers(&mut self, methods: &[Method]) {
        let numbered = methods.iter().filter_map(|method| method.number.as_ref());
        if let Some(other) = methods.iter().find(|method| method.number.is_none())
            && numbered.clone().next().is_some()
        {
            self.fault(
                &other.name,
                "has no number, and other methods have one",
                "give a number to all or to none",
            );
        }
        let mut known = HashSet::new();
        for number in numbered {
            match number.text.parse::<u32>() {
                Ok(value) if value <= LAST_METHOD => {
                    if !known.insert(value) {
                        self.fault(number, "is the number of another method as well", "write another one");
                    }
                }
                _ => {
                    let remedy = format!("write one from 0 to {LAST_METHOD}");
                    self.fault(number, "is no number of a method", &remedy);
                }
            }
        }
    }

    fn method(&mut self, id: TypeId, method: &Method) -> String {
        self.check_unique(method.arguments.iter().map(|each| (&each.name, names::snake(&each.name.text))));
        let arguments: Vec<String> = method
            .arguments
            .iter()
            .filter_map(|argument| self.method_argument(id, method.oneway, argument))
            .collect();
        let result = self.ty(id, &method.result);
        if let Some(ty) = &result {
            self.check_size(&method.name, layout::size(ty, &self.sizes));
        }
        let result = match result {
            Some(ty) if ty.base == Base::Void && ty.shape == Shape::One => String::new(),
            Some(ty) => format!(" -> {}", self.types.rust(&ty, id, true)),
            None => String::new(),
        };
        if method.oneway && !result.is_empty() {
            self.fault(&method.name, "is oneway and has a result", "make it void, or leave out `oneway`");
        }
        let way = if method.oneway { "oneway" } else { "fn" };
        let number = method.number.as_ref().and_then(|number| number.text.parse::<u32>().ok());
        let number = number.map_or(String::new(), |number| format!(" = {number}"));
        let name = names::method(&method.name.text);
        let indent = "        ";
        format!(
            "{}{indent}{way} {name}({}){result}{number};\n",
            comment(&method.doc, indent),
            arguments.join(", ")
        )
    }

    fn method_argument(&mut self, id: TypeId, oneway: bool, argument: &Argument) -> Option<String> {
        let mut ty = self.ty(id, &argument.ty)?;
        self.check_size(&argument.name, layout::size(&ty, &self.sizes));
        if ty.base == Base::Void {
            self.fault(&argument.name, "is void", "give it a type");
        }
        let direction = argument.direction.as_str();
        let comes_back = matches!(direction, "out" | "inout");
        if comes_back && oneway {
            self.fault(
                &argument.name,
                "is filled in by a oneway method",
                "make it `in`, or leave out `oneway`",
            );
        }
        if comes_back && !ty.can_be_inout() {
            self.fault(
                &argument.name,
                "has a type that is only sent",
                "make it `in`, or the method's result",
            );
        } else if direction == "out" && !ty.can_be_out() {
            self.fault(
                &argument.name,
                "has a type of which a service has no value to begin with",
                "write `inout`",
            );
        }
        // A list begins without elements, an array has its caller's length.
        let is_list = argument.ty.is_list();
        ty.empty = direction == "out" && ty.base.is_object() && !is_list;
        let attribute = match direction {
            "out" if is_list => "#[out_list] ",
            "out" => "#[out] ",
            "inout" => "#[inout] ",
            _ => "",
        };
        Some(format!("{attribute}{}: {}", names::snake(&argument.name.text), self.types.rust(&ty, id, true)))
    }
}
