//! A file's text to its tree, by the grammar in `aidl.pest`.
//! Not here: what names mean (`program`), what is refused although it is AIDL (`types`, `emit`).

use pest::Parser;
use pest::error::{ErrorVariant, InputLocation};
use pest::iterators::Pair;
use pest_derive::Parser;

use crate::error::Fault;
use crate::scan::{Comments, scan};
use crate::tree::{
    Argument, At, Atom, Constant, Enumerator, Expression, Field, File, Item, Kind, Method, Name, Note,
    Operand, Type, Word,
};

/// Words of a name. Each of its beginnings may be a type's name and have a file.
const LONGEST_NAME: usize = 32;

/// The parser that the grammar becomes.
#[derive(Parser)]
#[grammar = "aidl.pest"]
struct Grammar;

/// A pair of the parser: a rule, and the text that it fits.
type Found<'t> = Pair<'t, Rule>;

/// Reads the file of this number.
///
/// # Errors
/// The first place where it is no AIDL.
pub(crate) fn parse(text: &str, file: usize) -> Result<File, Fault> {
    let comments = scan(text, file)?;
    let mut pairs = Grammar::parse(Rule::file, text).map_err(|error| unexpected(text, file, &error))?;
    let whole = pairs.next().expect("the grammar begins with a file");
    let reader = Reader { text, file, comments };
    let names = whole.clone().into_inner().flatten().filter(|inner| inner.as_rule() == Rule::name);
    let names: Vec<Name> = names.map(|name| reader.name(&name)).collect();
    if let Some(long) = names.iter().find(|name| name.path.len() > LONGEST_NAME) {
        let what = format!("a name of more than {LONGEST_NAME} words");
        return Err(Fault::new(long.at, what, "put the type into a package of fewer"));
    }
    let items = all(&whole, Rule::declaration).filter_map(|item| match reader.member(&item) {
        Member::Item(item) => Some(item),
        _ => None,
    });
    Ok(File {
        package: first(&whole, Rule::package)
            .map_or(Vec::new(), |it| reader.name(&only(&it, Rule::name)).path),
        imports: all(&whole, Rule::import).map(|it| reader.name(&only(&it, Rule::name))).collect(),
        mentions: names.into_iter().map(|name| name.path).collect(),
        items: items.collect(),
    })
}

fn all<'t>(pair: &Found<'t>, rule: Rule) -> impl Iterator<Item = Found<'t>> + use<'t> {
    pair.clone().into_inner().filter(move |inner| inner.as_rule() == rule)
}

fn first<'t>(pair: &Found<'t>, rule: Rule) -> Option<Found<'t>> {
    all(pair, rule).next()
}

/// The one that the grammar demands inside a rule.
fn only<'t>(pair: &Found<'t>, rule: Rule) -> Found<'t> {
    first(pair, rule).expect("the grammar demands it")
}

fn punctuation(rule: Rule) -> Option<&'static str> {
    Some(match rule {
        Rule::SEMICOLON => "`;`",
        Rule::COMMA => "`,`",
        Rule::EQUALS => "`=`",
        Rule::OPEN => "`{`",
        Rule::CLOSE => "`}`",
        Rule::PARENTHESIS => "`)`",
        Rule::BRACKET => "`]`",
        Rule::ANGLE => "`>`",
        _ => return None,
    })
}

/// Anything inside braces.
enum Member {
    Constant(Constant),
    Field(Field),
    Method(Method),
    Item(Item),
}

/// Makes the tree out of the parser's pairs.
struct Reader<'t> {
    text: &'t str,
    file: usize,
    comments: Comments,
}

impl Reader<'_> {
    fn at(&self, pair: &Found<'_>) -> At {
        At { file: self.file, offset: pair.as_span().start() }
    }

    fn word(&self, pair: &Found<'_>) -> Word {
        Word { text: pair.as_str().to_owned(), at: self.at(pair) }
    }

    fn name(&self, pair: &Found<'_>) -> Name {
        Name { at: self.at(pair), path: all(pair, Rule::word).map(|word| word.as_str().to_owned()).collect() }
    }

    fn expression_in(&self, pair: &Found<'_>) -> Option<Expression> {
        first(pair, Rule::expression).map(|value| self.expression(value))
    }

    /// A declaration or a member, with the comment and the annotations in front of it.
    fn member(&self, pair: &Found<'_>) -> Member {
        let doc = self.comments.before(self.text, pair.as_span().start());
        let notes = all(pair, Rule::note).map(|note| self.note(&note)).collect();
        let last =
            pair.clone().into_inner().last().expect("the grammar has something behind the annotations");
        match last.as_rule() {
            Rule::constant => Member::Constant(self.constant(&last, doc, notes)),
            Rule::field => Member::Field(self.field(&last, doc, notes)),
            Rule::method => Member::Method(self.method(&last, doc, notes)),
            _ => Member::Item(self.item(&last, doc, notes)),
        }
    }

    fn item(&self, pair: &Found<'_>, doc: Vec<String>, notes: Vec<Note>) -> Item {
        let kind = match pair.as_rule() {
            Rule::interface => Kind::Interface,
            Rule::parcelable => Kind::Parcelable,
            Rule::union => Kind::Union,
            _ => Kind::Enumeration,
        };
        let has = |rule| first(pair, rule).is_some();
        let mut item = Item {
            doc,
            notes,
            kind,
            name: self.word(&only(pair, Rule::word)),
            opaque: has(Rule::opaque),
            generic: has(Rule::parameters),
            constants: Vec::new(),
            methods: Vec::new(),
            fields: Vec::new(),
            enumerators: all(pair, Rule::enumerator).map(|each| self.enumerator(&each)).collect(),
            nested: Vec::new(),
        };
        for member in all(pair, Rule::interface_member).chain(all(pair, Rule::field_member)) {
            match self.member(&member) {
                Member::Constant(constant) => item.constants.push(constant),
                Member::Field(field) => item.fields.push(field),
                Member::Method(method) => item.methods.push(method),
                Member::Item(nested) => item.nested.push(nested),
            }
        }
        let oneway = has(Rule::ONEWAY);
        item.methods.iter_mut().for_each(|method| method.oneway |= oneway);
        item
    }

    fn constant(&self, pair: &Found<'_>, doc: Vec<String>, notes: Vec<Note>) -> Constant {
        let value = self.expression(only(pair, Rule::expression));
        Constant { doc, ty: self.ty_in(pair, notes), name: self.word(&only(pair, Rule::word)), value }
    }

    fn field(&self, pair: &Found<'_>, doc: Vec<String>, notes: Vec<Note>) -> Field {
        let value = self.expression_in(pair);
        Field { doc, ty: self.ty_in(pair, notes), name: self.word(&only(pair, Rule::word)), value }
    }

    fn method(&self, pair: &Found<'_>, doc: Vec<String>, notes: Vec<Note>) -> Method {
        Method {
            doc,
            oneway: first(pair, Rule::ONEWAY).is_some(),
            result: self.ty_in(pair, notes),
            name: self.word(&only(pair, Rule::word)),
            arguments: all(pair, Rule::argument).map(|argument| self.argument(&argument)).collect(),
            number: first(pair, Rule::number).map(|number| self.word(&number)),
        }
    }

    fn argument(&self, pair: &Found<'_>) -> Argument {
        let direction = first(pair, Rule::direction).map_or(String::new(), |word| word.as_str().to_owned());
        Argument { direction, ty: self.ty_in(pair, Vec::new()), name: self.word(&only(pair, Rule::word)) }
    }

    fn enumerator(&self, pair: &Found<'_>) -> Enumerator {
        let doc = self.comments.before(self.text, pair.as_span().start());
        let value = self.expression_in(pair);
        Enumerator { doc, name: self.word(&only(pair, Rule::word)), value }
    }

    /// The type in a member, with the annotations in front of the member.
    fn ty_in(&self, pair: &Found<'_>, mut notes: Vec<Note>) -> Type {
        let mut ty = self.ty(&only(pair, Rule::r#type));
        notes.append(&mut ty.notes);
        Type { notes, ..ty }
    }

    fn ty(&self, pair: &Found<'_>) -> Type {
        Type {
            notes: all(pair, Rule::note).map(|note| self.note(&note)).collect(),
            name: self.name(&only(pair, Rule::name)),
            arguments: all(pair, Rule::r#type).map(|argument| self.ty(&argument)).collect(),
            dimensions: all(pair, Rule::dimension).map(|size| self.expression_in(&size)).collect(),
        }
    }

    fn note(&self, pair: &Found<'_>) -> Note {
        let named = |argument: Found<'_>| {
            (self.word(&only(&argument, Rule::word)), self.expression(only(&argument, Rule::expression)))
        };
        let mut arguments: Vec<_> = all(pair, Rule::note_argument).map(named).collect();
        if let Some(value) = first(pair, Rule::expression) {
            arguments.push((Word { text: "value".to_owned(), at: self.at(&value) }, self.expression(value)));
        }
        Note { name: self.word(&only(pair, Rule::note_name)), arguments }
    }

    fn expression(&self, pair: Found<'_>) -> Expression {
        let mut operands = all(&pair, Rule::operand).map(|operand| self.operand(operand));
        let first = operands.next().expect("the grammar begins an expression with an operand");
        let operators = all(&pair, Rule::operator).map(|operator| self.word(&operator));
        Expression { first, rest: operators.zip(operands).collect() }
    }

    fn operand(&self, pair: Found<'_>) -> Operand {
        let (at, signs) = (self.at(&pair), all(&pair, Rule::sign).map(|sign| self.word(&sign)).collect());
        let atom = pair.into_inner().last().expect("the grammar ends an operand with its value");
        let text = atom.as_str();
        let atom = match atom.as_rule() {
            Rule::list => {
                Atom::List(all(&atom, Rule::expression).map(|each| self.expression(each)).collect())
            }
            Rule::group => Atom::Group(Box::new(self.expression(only(&atom, Rule::expression)))),
            Rule::truth => Atom::Truth(text == "true"),
            Rule::number => Atom::Number(text.to_owned()),
            Rule::character => Atom::Character(text.chars().nth(1).unwrap_or_default()),
            Rule::string => Atom::Text(text.trim_matches('"').to_owned()),
            _ => Atom::Name(self.name(&atom)),
        };
        Operand { signs, atom, at }
    }
}

/// The fault of a text that is no AIDL.
fn unexpected(text: &str, file: usize, error: &pest::error::Error<Rule>) -> Fault {
    let (InputLocation::Pos(offset) | InputLocation::Span((offset, _))) = error.location;
    let rest = text.get(offset..).unwrap_or_default();
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let word = rest.find(|letter| !is_letter(letter)).unwrap_or(rest.len());
    let found: String = if word > 0 {
        rest[..word].to_owned()
    } else {
        rest.chars().take(1).flat_map(char::escape_debug).collect()
    };
    let what =
        if found.is_empty() { "the file ends too early".to_owned() } else { format!("unexpected `{found}`") };
    let mut wanted = match &error.variant {
        ErrorVariant::ParsingError { positives, .. } => {
            positives.iter().filter_map(|rule| called(*rule)).collect()
        }
        ErrorVariant::CustomError { .. } => Vec::new(),
    };
    wanted.sort_unstable();
    wanted.dedup();
    let remedy = if wanted.is_empty() {
        "look for a missing `;`, `,` or bracket in front of it".to_owned()
    } else {
        format!("here may stand {}", wanted.join(", "))
    };
    Fault::new(At { file, offset }, what, remedy)
}

/// A rule in words, for those that help.
fn called(rule: Rule) -> Option<&'static str> {
    Some(match rule {
        Rule::word | Rule::name => "a name",
        Rule::r#type => "a type",
        Rule::expression | Rule::operand => "a value",
        Rule::operator => "an operator",
        Rule::declaration => "a declaration (interface, parcelable, union, enum)",
        Rule::interface_member => "a method, a constant or a declaration",
        Rule::field_member => "a field, a constant or a declaration",
        Rule::argument => "an argument",
        Rule::enumerator => "a member",
        Rule::number => "a number",
        _ => return punctuation(rule),
    })
}
