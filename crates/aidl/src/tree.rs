//! A file as a tree: what the text says, before any name is looked up.
//! Not here: reading it (`parse`), what names mean (`program`).

/// The place where a piece of text begins: the number of its file, and bytes from that file's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct At {
    pub(crate) file: usize,
    pub(crate) offset: usize,
}

/// One file.
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) package: Vec<String>,
    pub(crate) imports: Vec<Name>,
    pub(crate) items: Vec<Item>,
    /// Every name of a type or a constant in the file.
    pub(crate) mentions: std::collections::BTreeSet<Vec<String>>,
}

/// A word and its place.
#[derive(Clone, Debug)]
pub(crate) struct Word {
    pub(crate) text: String,
    pub(crate) at: At,
}

/// A name with dots: `example.Point`.
#[derive(Clone, Debug)]
pub(crate) struct Name {
    pub(crate) path: Vec<String>,
    pub(crate) at: At,
}

/// A declaration of a type.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) doc: Vec<String>,
    pub(crate) notes: Vec<Note>,
    pub(crate) kind: Kind,
    pub(crate) name: Word,
    /// `IFoo;` and the like, without a body.
    pub(crate) opaque: bool,
    /// `Foo<T>`.
    pub(crate) generic: bool,
    pub(crate) constants: Vec<Constant>,
    pub(crate) methods: Vec<Method>,
    pub(crate) fields: Vec<Field>,
    pub(crate) enumerators: Vec<Enumerator>,
    pub(crate) nested: Vec<Item>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub(crate) enum Kind {
    Interface,
    Parcelable,
    Union,
    Enumeration,
}

#[derive(Debug)]
pub(crate) struct Constant {
    pub(crate) doc: Vec<String>,
    pub(crate) ty: Type,
    pub(crate) name: Word,
    pub(crate) value: Expression,
}

#[derive(Debug)]
pub(crate) struct Method {
    pub(crate) doc: Vec<String>,
    pub(crate) oneway: bool,
    pub(crate) result: Type,
    pub(crate) name: Word,
    pub(crate) arguments: Vec<Argument>,
    pub(crate) number: Option<Word>,
}

#[derive(Debug)]
pub(crate) struct Argument {
    /// `in`, `out`, `inout`, or nothing.
    pub(crate) direction: String,
    pub(crate) ty: Type,
    pub(crate) name: Word,
}

#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) doc: Vec<String>,
    pub(crate) ty: Type,
    pub(crate) name: Word,
    pub(crate) value: Option<Expression>,
}

#[derive(Debug)]
pub(crate) struct Enumerator {
    pub(crate) doc: Vec<String>,
    pub(crate) name: Word,
    pub(crate) value: Option<Expression>,
}

/// A type where one is used. `notes` has those of the whole member as well, since `@nullable` may stand in front of it.
#[derive(Debug)]
pub(crate) struct Type {
    pub(crate) notes: Vec<Note>,
    pub(crate) name: Name,
    pub(crate) arguments: Vec<Type>,
    /// One for each `[]`, with what is inside.
    pub(crate) dimensions: Vec<Option<Expression>>,
}

impl Type {
    /// True for `List<T>`, which is an array but for `out` arguments.
    pub(crate) fn is_list(&self) -> bool {
        matches!(self.name.path.join(".").as_str(), "List" | "java.util.List")
    }
}

/// An annotation: `@nullable(heap=true)`.
#[derive(Debug)]
pub(crate) struct Note {
    pub(crate) name: Word,
    /// An argument without a name is called `value`.
    pub(crate) arguments: Vec<(Word, Expression)>,
}

/// A constant expression, flat: operands with the operators between them.
#[derive(Debug)]
pub(crate) struct Expression {
    pub(crate) first: Operand,
    pub(crate) rest: Vec<(Word, Operand)>,
}

#[derive(Debug)]
pub(crate) struct Operand {
    /// The last one is applied first.
    pub(crate) signs: Vec<Word>,
    pub(crate) atom: Atom,
    pub(crate) at: At,
}

#[derive(Debug)]
pub(crate) enum Atom {
    List(Vec<Expression>),
    Group(Box<Expression>),
    Truth(bool),
    Number(String),
    Character(char),
    Text(String),
    Name(Name),
}
