//! Values of constants and defaults in Rust.

use crate::constants::{Value, mismatch};
use crate::error::Fault;
use crate::names;
use crate::program::TypeId;
use crate::tree::{At, Kind};
use crate::types::{Base, Shape, Ty, Types};

/// The use of a value.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Use {
    /// A `const`, which owns nothing.
    Constant,
    /// A field's default.
    Default,
}

/// The value of a type as an expression, for code in the module of `owner`. `at` is the place of the value.
///
/// # Errors
/// The type has no such value.
pub(crate) fn text(
    types: &Types<'_>,
    owner: TypeId,
    ty: &Ty,
    value: &Value,
    at: At,
    used: Use,
) -> Result<String, Fault> {
    let inside = match (&ty.shape, value) {
        (Shape::One, _) => one(types, owner, ty.base, value, at, used)?,
        (Shape::List, Value::List(each)) => {
            let each = list(types, owner, ty, Shape::One, each, used)?;
            if used == Use::Constant { format!("&[{each}]") } else { format!("vec![{each}]") }
        }
        (Shape::Fixed(sizes), Value::List(each)) => {
            let (size, deeper) = sizes.split_first().expect("an array has a size");
            if each.len() != *size {
                let what = format!("{} elements in an array of {size}", each.len());
                return Err(Fault::new(at, what, "write as many as its type says"));
            }
            let shape = if deeper.is_empty() { Shape::One } else { Shape::Fixed(deeper.to_vec()) };
            format!("[{}]", list(types, owner, ty, shape, each, used)?)
        }
        _ => return Err(mismatch(at, value, "an array")),
    };
    Ok(if ty.nullable { format!("Some({inside})") } else { inside })
}

/// The elements of an array, whose bytes have no sign.
fn list(
    types: &Types<'_>,
    owner: TypeId,
    ty: &Ty,
    shape: Shape,
    each: &[(At, Value)],
    used: Use,
) -> Result<String, Fault> {
    let is_null = ty.nullable && matches!(ty.base, Base::Text);
    let element = Ty { base: ty.base, shape, nullable: false, heap: false, empty: false };
    let is_byte = ty.base == Base::Byte && element.shape == Shape::One;
    let one = |(at, value): &(At, Value)| {
        let text = text(types, owner, &element, value, *at, used)?;
        Ok(match text.parse::<i8>() {
            Ok(byte) if is_byte => byte.cast_unsigned().to_string(),
            _ if is_null => format!("Some({text})"),
            _ => text,
        })
    };
    Ok(each.iter().map(one).collect::<Result<Vec<String>, Fault>>()?.join(", "))
}

fn one(
    types: &Types<'_>,
    owner: TypeId,
    base: Base,
    value: &Value,
    at: At,
    used: Use,
) -> Result<String, Fault> {
    let wanted = match base {
        Base::Bool => "a boolean",
        Base::Byte => "a byte",
        Base::Char => "a character",
        Base::Int => "an int",
        Base::Long => "a long",
        Base::Float | Base::Double => "a floating-point number",
        Base::Text => "a string",
        Base::Declared(_, Kind::Enumeration) => "a member of that enum",
        _ => return Err(Fault::new(at, "a default for a type that has no constants", "remove it")),
    };
    let text = match (base, value) {
        (Base::Bool, Value::Bool(value)) => Some(value.to_string()),
        (Base::Bool, Value::Int(value, _)) => Some((*value != 0).to_string()),
        (Base::Char, Value::Char(letter)) => Some(format!("{letter:?} as u16")),
        (Base::Float, Value::Float(text)) => {
            text.parse().ok().filter(|value: &f32| value.is_finite()).map(|value| format!("{value:?}"))
        }
        (Base::Double, Value::Float(text)) => {
            text.parse().ok().filter(|value: &f64| value.is_finite()).map(|value| format!("{value:?}"))
        }
        (Base::Text, Value::Text(text)) if used == Use::Constant => Some(format!("{text:?}")),
        (Base::Text, Value::Text(text)) => Some(format!("String::from({text:?})")),
        (Base::Declared(id, _), Value::Member(of, number, _)) if id == *of => {
            let member = &types.program.types[id].item.enumerators[*number].name.text;
            Some(format!("{}::{}", types.path(id, owner, false), names::constant(member)))
        }
        (Base::Byte, Value::Int(value, _) | Value::Member(_, _, value)) => {
            i8::try_from(*value).ok().map(|value| value.to_string())
        }
        (Base::Int, Value::Int(value, _) | Value::Member(_, _, value)) => {
            i32::try_from(*value).ok().map(|value| value.to_string())
        }
        (Base::Long, Value::Int(value, _) | Value::Member(_, _, value)) => Some(value.to_string()),
        (Base::Byte | Base::Int | Base::Long, Value::Bool(value)) => Some(i32::from(*value).to_string()),
        _ => None,
    };
    text.ok_or_else(|| match (base, value) {
        (Base::Byte | Base::Int, Value::Int(value, _) | Value::Member(_, _, value)) => {
            Fault::new(at, format!("{value} is too large for {wanted}"), "use a wider type")
        }
        _ => mismatch(at, value, wanted),
    })
}
