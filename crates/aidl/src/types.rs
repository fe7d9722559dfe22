//! Types of members: which there are, and each in Rust.
//! Not here: declared types (`emit`), values (`values`).

use crate::constants::{Constants, Value};
use crate::error::Fault;
use crate::names;
use crate::notes::{self, Place};
use crate::program::{Program, TypeId};
use crate::tree::{At, Kind, Type};

/// Elements of an array of a fixed size. Their bytes are counted as well (`layout`).
const LARGEST_ARRAY: usize = 1 << 14;

/// Elements up to which the standard library has a `Default` for arrays.
const STD_DEFAULT: usize = 32;

/// A type without arrays and `@nullable`. Those in front of `Text` have a fixed size, and those up to it have constants.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub(crate) enum Base {
    Void,
    Bool,
    Byte,
    Char,
    Int,
    Long,
    Float,
    Double,
    Text,
    Binder,
    ParcelDescriptor,
    Descriptor,
    Declared(TypeId, Kind),
}

impl Base {
    /// True for types that have no null in an array.
    fn is_plain(self) -> bool {
        matches!(
            self,
            Self::Bool | Self::Byte | Self::Char | Self::Int | Self::Long | Self::Float | Self::Double
        ) || matches!(self, Self::Declared(_, Kind::Enumeration))
    }

    /// True for types of which there is no value to begin with.
    pub(crate) fn is_object(self) -> bool {
        matches!(
            self,
            Self::Binder | Self::ParcelDescriptor | Self::Descriptor | Self::Declared(_, Kind::Interface)
        )
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shape {
    One,
    /// `T[]` and `List<T>`.
    List,
    /// `T[2][3]`, outermost size first.
    Fixed(Vec<usize>),
}

/// The type of a member.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ty {
    pub(crate) base: Base,
    pub(crate) shape: Shape,
    pub(crate) nullable: bool,
    /// `@nullable(heap=true)`.
    pub(crate) heap: bool,
    /// An `out` array of objects, which begins with nothing in its places.
    pub(crate) empty: bool,
}

impl Ty {
    /// True if there is a value to begin with.
    pub(crate) fn has_default(&self) -> bool {
        self.nullable || self.shape == Shape::List || !self.base.is_object()
    }

    /// True if a method may change it in place: AIDL's `inout`.
    pub(crate) fn can_be_inout(&self) -> bool {
        self.shape != Shape::One || matches!(self.base, Base::Declared(_, Kind::Parcelable | Kind::Union))
    }

    /// True if a service can begin with a value that is not sent: AIDL's `out`.
    pub(crate) fn can_be_out(&self) -> bool {
        let inner = if let Shape::Fixed(sizes) = &self.shape { &sizes[1..] } else { &[] };
        let is_null = self.nullable && self.shape != Shape::List;
        self.can_be_inout() && !is_null && inner.iter().all(|size| *size <= STD_DEFAULT)
    }

    /// The default, where `Default` has none.
    pub(crate) fn long_default(&self) -> Option<String> {
        let Shape::Fixed(sizes) = &self.shape else { return None };
        let is_value = !self.nullable && self.has_default();
        let is_long = is_value && sizes.iter().any(|size| *size > STD_DEFAULT);
        let each = |inner: String, _: &usize| format!("::std::array::from_fn(|_| {inner})");
        is_long.then(|| sizes.iter().fold("::std::default::Default::default()".to_owned(), each))
    }
}

/// Looks types up.
#[derive(Debug)]
pub(crate) struct Types<'p> {
    pub(crate) program: &'p Program,
    pub(crate) constants: Constants<'p>,
}

impl<'p> Types<'p> {
    pub(crate) fn new(program: &'p Program) -> Self {
        Self { program, constants: Constants::new(program) }
    }

    /// The type of a member of `owner`.
    ///
    /// # Errors
    /// AIDL has no such type, or Rust cannot have it.
    pub(crate) fn of(&mut self, owner: TypeId, ty: &Type) -> Result<Ty, Fault> {
        let at = ty.name.at;
        notes::check(&ty.notes, Place::Use)?;
        let name = ty.name.path.join(".");
        let (base, shape) = if ty.is_list() {
            (self.element(owner, ty)?, Shape::List)
        } else {
            if !ty.arguments.is_empty() && name != "Map" {
                return Err(Fault::new(
                    at,
                    format!("`{name}` with type arguments"),
                    "only List has them; declare a type for each use",
                ));
            }
            (self.base(owner, ty)?, self.shape(owner, ty)?)
        };
        if base == Base::Void && shape != Shape::One {
            return Err(Fault::new(at, "an array of void", "name the type of its elements"));
        }
        if base == Base::Descriptor && shape != Shape::One {
            return Err(Fault::new(at, "an array of FileDescriptor", "use ParcelFileDescriptor"));
        }
        let mut found = Ty { base, shape, nullable: false, heap: false, empty: false };
        if let Some(note) = notes::find(&ty.notes, "nullable") {
            found.nullable = true;
            for (argument, value) in &note.arguments {
                match (argument.text.as_str(), self.constants.evaluate(owner, value)?) {
                    ("heap", Value::Bool(heap)) => found.heap = heap,
                    _ => {
                        return Err(Fault::new(
                            argument.at,
                            format!("`{}` of `@nullable`", argument.text),
                            "write `heap=true`",
                        ));
                    }
                }
            }
            check_nullable(&found, at)?;
        }
        Ok(found)
    }

    /// The element's type of `List<T>`.
    fn element(&mut self, owner: TypeId, ty: &Type) -> Result<Base, Fault> {
        let at = ty.name.at;
        let [element] = &ty.arguments[..] else {
            return Err(Fault::new(
                at,
                "a List without the type of its elements",
                "write `List<T>` or `T[]`",
            ));
        };
        let is_simple =
            element.notes.is_empty() && element.arguments.is_empty() && element.dimensions.is_empty();
        if !is_simple || !ty.dimensions.is_empty() {
            return Err(Fault::new(
                at,
                "a List of lists or arrays, or with annotations inside",
                "declare a parcelable that has one as field",
            ));
        }
        let base = self.base(owner, element)?;
        if base == Base::Void || base.is_plain() {
            return Err(Fault::new(at, "a List of numbers, booleans or enums", "write `T[]`"));
        }
        Ok(base)
    }

    fn base(&self, owner: TypeId, ty: &Type) -> Result<Base, Fault> {
        let at = ty.name.at;
        let whole = ty.name.path.join(".");
        let refuse = |what: &str, remedy: &str| Err(Fault::new(at, format!("`{whole}` {what}"), remedy));
        Ok(match whole.as_str() {
            "void" => Base::Void,
            "boolean" => Base::Bool,
            "byte" => Base::Byte,
            "char" => Base::Char,
            "int" => Base::Int,
            "long" => Base::Long,
            "float" => Base::Float,
            "double" => Base::Double,
            "String" | "java.lang.String" => Base::Text,
            "IBinder" | "android.os.IBinder" => Base::Binder,
            "ParcelFileDescriptor" | "android.os.ParcelFileDescriptor" => Base::ParcelDescriptor,
            "FileDescriptor" | "java.io.FileDescriptor" => Base::Descriptor,
            "Map" | "java.util.Map" => {
                return refuse("is Java's alone", "send two arrays, or an array of a parcelable");
            }
            "CharSequence" | "java.lang.CharSequence" => return refuse("is Java's alone", "use String"),
            "ParcelableHolder" | "android.os.ParcelableHolder" => {
                return refuse(
                    "holds what its reader need not know",
                    "use a union, or byte[] with your own format",
                );
            }
            _ => match self.find(owner, &ty.name.path) {
                Some(id) => Base::Declared(id, self.program.types[id].item.kind),
                None if self.is_tag(owner, &ty.name.path) => {
                    return refuse("is not made", "declare an enum for it");
                }
                None => {
                    return refuse(
                        "is not found",
                        "import it, add its folder by `include`, or mend its name",
                    );
                }
            },
        })
    }

    fn find(&self, owner: TypeId, path: &[String]) -> Option<TypeId> {
        self.program.lookup(self.program.types[owner].file, Some(owner), path)
    }

    /// True for the enum of a union's members that AIDL adds to each union.
    fn is_tag(&self, owner: TypeId, path: &[String]) -> bool {
        let union =
            path.split_last().filter(|(last, _)| *last == "Tag").and_then(|(_, path)| self.find(owner, path));
        union.is_some_and(|id| self.program.types[id].item.kind == Kind::Union)
    }

    fn shape(&mut self, owner: TypeId, ty: &Type) -> Result<Shape, Fault> {
        match &ty.dimensions[..] {
            [] => return Ok(Shape::One),
            [None] => return Ok(Shape::List),
            _ => {}
        }
        let mut sizes = Vec::new();
        for size in &ty.dimensions {
            let Some(size) = size else {
                let what = "an array of arrays that does not say all sizes";
                return Err(Fault::new(
                    ty.name.at,
                    what,
                    "write all sizes, or declare a parcelable that has an array as field",
                ));
            };
            let at = size.first.at;
            let value = self.constants.evaluate(owner, size)?;
            let Value::Int(number, _) = value else {
                return Err(crate::constants::mismatch(at, &value, "a size"));
            };
            sizes.push(usize::try_from(number).unwrap_or(0));
            let all = sizes.iter().try_fold(1_usize, |all, size| all.checked_mul(*size));
            if !all.is_some_and(|all| (1..=LARGEST_ARRAY).contains(&all)) {
                let what = format!("an array of no elements or of more than {LARGEST_ARRAY}");
                return Err(Fault::new(at, what, "give it another size, or write `T[]`"));
            }
        }
        Ok(Shape::Fixed(sizes))
    }

    /// The type in Rust, for code in the module of `owner`, or `deeper`, in the one that `interface!` makes there.
    pub(crate) fn rust(&self, ty: &Ty, owner: TypeId, deeper: bool) -> String {
        let mut rust = self.rust_base(ty, owner, deeper);
        if (ty.nullable || ty.empty) && ty.shape != Shape::One && !ty.base.is_plain() {
            rust = format!("Option<{rust}>");
        }
        match &ty.shape {
            Shape::One => {}
            Shape::List => rust = format!("Vec<{rust}>"),
            Shape::Fixed(sizes) => sizes.iter().rev().for_each(|size| rust = format!("[{rust}; {size}]")),
        }
        match (ty.nullable, ty.heap) {
            (true, true) => format!("Option<Box<{rust}>>"),
            (true, false) => format!("Option<{rust}>"),
            _ => rust,
        }
    }

    /// The type of a constant in Rust.
    pub(crate) fn rust_constant(&self, ty: &Ty, owner: TypeId) -> String {
        let base = if ty.base == Base::Text { "&str".to_owned() } else { self.rust_base(ty, owner, false) };
        match &ty.shape {
            Shape::One => base,
            Shape::List => format!("&[{base}]"),
            Shape::Fixed(sizes) => sizes.iter().rev().fold(base, |inner, size| format!("[{inner}; {size}]")),
        }
    }

    fn rust_base(&self, ty: &Ty, owner: TypeId, deeper: bool) -> String {
        let name = match ty.base {
            Base::Void => "()",
            Base::Bool => "bool",
            Base::Byte if ty.shape != Shape::One => "u8",
            Base::Byte => "i8",
            Base::Char => "u16",
            Base::Int => "i32",
            Base::Long => "i64",
            Base::Float => "f32",
            Base::Double => "f64",
            Base::Text => "String",
            Base::Binder => "::binder::Binder",
            Base::ParcelDescriptor => "::binder::ParcelFileDescriptor",
            Base::Descriptor => "::std::os::fd::OwnedFd",
            Base::Declared(id, kind) => {
                let path = self.path(id, owner, deeper);
                return if kind == Kind::Interface { format!("{path}::Client") } else { path };
            }
        };
        name.to_owned()
    }

    /// The path to a declared type.
    pub(crate) fn path(&self, id: TypeId, owner: TypeId, deeper: bool) -> String {
        let target = &self.program.types[id];
        names::path(&self.program.types[owner].module, deeper, &target.module, &target.rust())
    }
}

fn check_nullable(ty: &Ty, at: At) -> Result<(), Fault> {
    if ty.shape == Shape::One && (ty.base.is_plain() || ty.base == Base::Void) {
        return Err(Fault::new(
            at,
            "`@nullable` of a type that has no null",
            "remove it, or use an array or a parcelable",
        ));
    }
    if ty.base == Base::Descriptor {
        return Err(Fault::new(at, "`@nullable` of FileDescriptor", "use ParcelFileDescriptor"));
    }
    let is_data = matches!(ty.base, Base::Declared(_, Kind::Parcelable | Kind::Union));
    if ty.heap && !(ty.shape == Shape::One && is_data) {
        return Err(Fault::new(
            at,
            "`@nullable(heap=true)` of what is no parcelable or union",
            "write `@nullable`",
        ));
    }
    Ok(())
}
