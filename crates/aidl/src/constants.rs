//! Constant expressions, evaluated as AIDL does: integers have 8, 32 or 64 bits, and overflow is an error.
//! Not here: a value as Rust (`values`).
//! Facts: `aidl_const_expressions.cpp` of Android's aidl.

use std::collections::HashMap;
use std::iter::Peekable;
use std::rc::Rc;
use std::slice::Iter;

use crate::error::Fault;
use crate::program::{Program, TypeId};
use crate::tree::{At, Atom, Expression, Kind, Operand, Word};

/// Constants and brackets that need each other, one the next.
const LONGEST_CHAIN: usize = 64;
/// Bytes of a string.
const LONGEST_TEXT: usize = 1 << 16;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Bool(bool),
    /// With its width in bits.
    Int(i64, u32),
    Char(char),
    /// The number in writing, without `f`.
    Float(String),
    Text(String),
    List(Rc<[(At, Value)]>),
    /// A member of an enum, and its number.
    Member(TypeId, usize, i64),
}

impl Value {
    /// The value as an integer and its width.
    fn integer(&self) -> Option<(i64, u32)> {
        match self {
            Self::Bool(value) => Some((i64::from(*value), 1)),
            Self::Int(value, width) => Some((*value, *width)),
            Self::Member(_, _, value) => Some((*value, literal_width(*value))),
            _ => None,
        }
    }

    pub(crate) fn called(&self) -> &'static str {
        match self {
            Self::Bool(_) => "a boolean",
            Self::Int(..) => "an integer",
            Self::Char(_) => "a character",
            Self::Float(_) => "a floating-point number",
            Self::Text(_) => "a string",
            Self::List(_) => "an array",
            Self::Member(..) => "a member of an enum",
        }
    }
}

/// A constant's value or fault; nothing while it is evaluated.
type Known = Option<Result<Value, Fault>>;

/// Evaluates, each constant once.
#[derive(Debug)]
pub(crate) struct Constants<'p> {
    program: &'p Program,
    known: HashMap<(TypeId, usize), Known>,
    depth: usize,
}

impl<'p> Constants<'p> {
    pub(crate) fn new(program: &'p Program) -> Self {
        Self { program, known: HashMap::new(), depth: 0 }
    }

    /// The value of a type's constant or enum's member of this number, for its use at a place.
    ///
    /// # Errors
    /// It has none.
    pub(crate) fn value(&mut self, owner: TypeId, number: usize, at: At) -> Result<Value, Fault> {
        match self.known.get(&(owner, number)) {
            Some(Some(known)) => return known.clone(),
            Some(None) => {
                return Err(Fault::new(at, "the constant needs itself", "give one of the circle a number"));
            }
            None => {}
        }
        self.known.insert((owner, number), None);
        let program = self.program;
        let item = &program.types[owner].item;
        let value = match item.kind {
            Kind::Enumeration => self.member(owner, number),
            _ => self.evaluate(owner, &item.constants[number].value),
        };
        self.known.insert((owner, number), Some(value.clone()));
        value
    }

    /// The value of an enum's member: its own, or one more than that of the member in front of it.
    fn member(&mut self, owner: TypeId, number: usize) -> Result<Value, Fault> {
        let program = self.program;
        let members = &program.types[owner].item.enumerators;
        let begins = |index: &usize| {
            members[*index].value.is_some()
                || matches!(self.known.get(&(owner, *index)), Some(Some(_)))
                || *index == 0
        };
        let from = (0..=number).rev().find(begins).unwrap_or(0);
        let at = members[number].name.at;
        let start = match &members[from].value {
            _ if from != number => self.value(owner, from, at)?,
            Some(value) => self.evaluate(owner, value)?,
            None => Value::Int(0, 32),
        };
        let (start, _) =
            start.integer().ok_or_else(|| mismatch(members[from].name.at, &start, "an integer"))?;
        let value = start.checked_add((number - from) as i64).ok_or_else(|| overflow(at))?;
        Ok(Value::Member(owner, number, value))
    }

    /// The value of an expression inside a type.
    ///
    /// # Errors
    /// It has none.
    pub(crate) fn evaluate(&mut self, inside: TypeId, expression: &Expression) -> Result<Value, Fault> {
        if self.depth == LONGEST_CHAIN {
            let what = format!("more than {LONGEST_CHAIN} constants and brackets need each other");
            let remedy = "give one of them a number, or put them in the other order";
            return Err(Fault::new(expression.first.at, what, remedy));
        }
        self.depth += 1;
        let mut rest = expression.rest.iter().peekable();
        let value =
            self.operand(inside, &expression.first).and_then(|first| self.climb(inside, first, &mut rest, 0));
        self.depth -= 1;
        value
    }

    /// Takes operators of this rank or a higher one, which bind more tightly.
    fn climb(
        &mut self,
        inside: TypeId,
        mut left: Value,
        rest: &mut Peekable<Iter<'_, (Word, Operand)>>,
        lowest: u8,
    ) -> Result<Value, Fault> {
        while let Some((operator, operand)) = rest.next_if(|(operator, _)| rank(operator) >= lowest) {
            let mut right = self.operand(inside, operand)?;
            while rest.peek().is_some_and(|(next, _)| rank(next) > rank(operator)) {
                right = self.climb(inside, right, rest, rank(operator) + 1)?;
            }
            left = binary(operator, left, right)?;
        }
        Ok(left)
    }

    fn operand(&mut self, inside: TypeId, operand: &Operand) -> Result<Value, Fault> {
        let at = operand.at;
        let mut value = match &operand.atom {
            Atom::Group(expression) => self.evaluate(inside, expression)?,
            Atom::List(each) => {
                let each = each.iter().map(|each| Ok((each.first.at, self.evaluate(inside, each)?)));
                Value::List(each.collect::<Result<_, Fault>>()?)
            }
            Atom::Truth(value) => Value::Bool(*value),
            Atom::Number(text) => number(text).ok_or_else(|| overflow(at))?,
            Atom::Character(letter) if is_printable(*letter) => Value::Char(*letter),
            Atom::Text(text) if text.chars().all(is_printable) => Value::Text(text.clone()),
            Atom::Character(_) | Atom::Text(_) => {
                let what = "a character outside printable ASCII, or a backslash";
                return Err(Fault::new(at, what, "AIDL has none in its constants; send it as an argument"));
            }
            Atom::Name(name) => {
                let (owner, number) = self.program.constant(inside, name)?;
                self.value(owner, number, name.at)?
            }
        };
        for sign in operand.signs.iter().rev() {
            value = unary(sign, value)?;
        }
        Ok(value)
    }
}

fn is_printable(letter: char) -> bool {
    (' '..='~').contains(&letter) && letter != '\\'
}

pub(crate) fn mismatch(at: At, value: &Value, wanted: &str) -> Fault {
    Fault::new(at, format!("{} where {wanted} is needed", value.called()), "write a value of that type")
}

fn overflow(at: At) -> Fault {
    Fault::new(
        at,
        "the number is too large or the division has no result",
        "a long has 64 bits, other integers 32 in expressions; write `1L` for a long",
    )
}

/// The width that AIDL gives a decimal number.
fn literal_width(value: i64) -> u32 {
    if i8::try_from(value).is_ok() {
        8
    } else if i32::try_from(value).is_ok() {
        32
    } else {
        64
    }
}

/// A number as it is written. `0xffffffff` is -1, as 32 bits.
fn number(text: &str) -> Option<Value> {
    let text = text.replace('_', "");
    let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let (digits, is_byte) = text.strip_suffix("u8").map_or((text.as_str(), false), |digits| (digits, true));
    let (digits, is_long) = digits.strip_suffix(['l', 'L']).map_or((digits, false), |digits| (digits, true));
    if hexadecimal.is_none() && digits.contains(['.', 'e', 'E', 'f']) {
        return Some(Value::Float(digits.trim_end_matches('f').to_owned()));
    }
    let raw = match hexadecimal {
        Some(_) => u64::from_str_radix(&digits[2..], 16).ok()?,
        None => u64::try_from(digits.parse::<i64>().ok()?).ok()?,
    };
    Some(match raw {
        _ if is_byte => Value::Int(i64::from(u8::try_from(raw).ok()?.cast_signed()), 8),
        _ if is_long => Value::Int(raw.cast_signed(), 64),
        _ if hexadecimal.is_some() => u32::try_from(raw)
            .map_or(Value::Int(raw.cast_signed(), 64), |raw| Value::Int(i64::from(raw.cast_signed()), 32)),
        _ => Value::Int(raw.cast_signed(), literal_width(raw.cast_signed())),
    })
}

/// The rank of an operator: one of a higher rank binds more tightly.
fn rank(operator: &Word) -> u8 {
    match operator.text.as_str() {
        "||" => 0,
        "&&" => 1,
        "|" => 2,
        "^" => 3,
        "&" => 4,
        "==" | "!=" => 5,
        "<" | ">" | "<=" | ">=" => 6,
        "<<" | ">>" => 7,
        "+" | "-" => 8,
        _ => 9,
    }
}

/// The number, if it has so many bits.
fn fit(value: i64, width: u32) -> Option<i64> {
    let unused = 64 - width;
    (value << unused >> unused == value).then_some(value)
}

fn unary(sign: &Word, value: Value) -> Result<Value, Fault> {
    let at = sign.at;
    match (sign.text.as_str(), &value) {
        ("+", Value::Float(_)) => return Ok(value),
        ("-", Value::Float(text)) => {
            return Ok(Value::Float(
                text.strip_prefix('-').map_or_else(|| format!("-{text}"), str::to_owned),
            ));
        }
        ("!", Value::Bool(value)) => return Ok(Value::Bool(!value)),
        (_, Value::Bool(_)) => return Err(mismatch(at, &value, "an integer")),
        _ => {}
    }
    let (number, width) = value.integer().ok_or_else(|| mismatch(at, &value, "a number"))?;
    let result = match sign.text.as_str() {
        "-" => number.checked_neg().and_then(|number| fit(number, width)).ok_or_else(|| overflow(at))?,
        "~" => !number,
        "!" => i64::from(number == 0),
        _ => number,
    };
    Ok(Value::Int(result, width))
}

fn binary(operator: &Word, left: Value, right: Value) -> Result<Value, Fault> {
    let at = operator.at;
    let symbol = operator.text.as_str();
    if let (Value::Text(left), Value::Text(right), "+") = (&left, &right, symbol) {
        if left.len() + right.len() > LONGEST_TEXT {
            return Err(Fault::new(
                at,
                format!("a string of more than {LONGEST_TEXT} bytes"),
                "make it shorter",
            ));
        }
        return Ok(Value::Text(format!("{left}{right}")));
    }
    let integer = |value: &Value| {
        value.integer().ok_or_else(|| mismatch(at, value, &format!("an operand of `{symbol}`")))
    };
    let ((one, one_width), (other, other_width)) = (integer(&left)?, integer(&right)?);
    let width = 32.max(one_width).max(other_width);
    let result = match symbol {
        "||" => return Ok(Value::Bool(one != 0 || other != 0)),
        "&&" => return Ok(Value::Bool(one != 0 && other != 0)),
        "==" => return Ok(Value::Bool(one == other)),
        "!=" => return Ok(Value::Bool(one != other)),
        "<" => return Ok(Value::Bool(one < other)),
        ">" => return Ok(Value::Bool(one > other)),
        "<=" => return Ok(Value::Bool(one <= other)),
        ">=" => return Ok(Value::Bool(one >= other)),
        "|" => Some(one | other),
        "^" => Some(one ^ other),
        "&" => Some(one & other),
        "+" => one.checked_add(other),
        "-" => one.checked_sub(other),
        "*" => one.checked_mul(other),
        "/" => one.checked_div(other),
        "%" => one.checked_rem(other),
        // By a negative number of bits in the other direction.
        "<<" if other >= 0 => shift_left(one, other.unsigned_abs(), width),
        ">>" if other < 0 => shift_left(one, other.unsigned_abs(), width),
        _ => (one >= 0 && other.unsigned_abs() < u64::from(width)).then(|| one >> other.unsigned_abs()),
    };
    let result = result.and_then(|result| fit(result, width)).ok_or_else(|| overflow(at))?;
    Ok(Value::Int(result, width))
}

/// Shifts a number that is not negative, up to the sign's bit.
fn shift_left(value: i64, bits: u64, width: u32) -> Option<i64> {
    let room = u64::from(value.leading_zeros()).saturating_sub(u64::from(64 - width));
    let fits = value >= 0 && bits <= room && bits < u64::from(width);
    fits.then(|| (value << bits) << (64 - width) >> (64 - width))
}
