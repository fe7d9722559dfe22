//! Names of AIDL as names of Rust.

use heck::{ToSnakeCase, ToUpperCamelCase};

/// Words that Rust keeps for itself.
const KEYWORDS: [&str; 48] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do", "dyn", "else",
    "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro",
    "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "static", "struct", "trait",
    "true", "try", "type", "typeof", "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

/// Names that generated code uses: a type of the same name would come before them.
const TAKEN: [&str; 19] = [
    "Box", "Default", "None", "Option", "Send", "Sized", "Some", "String", "Sync", "Vec", "bool", "f32",
    "f64", "i32", "i64", "i8", "str", "u16", "u8",
];

/// Methods that each side of an interface has besides its own. Those of `Into` take their object, so Rust finds them first.
const METHODS: [&str; 11] = [
    "admit",
    "as_binder",
    "dump",
    "extension",
    "find",
    "from",
    "into",
    "publish",
    "register",
    "shell_command",
    "try_into",
];

/// Constants and constructors that a type has besides its own.
const CONSTANTS: [&str; 5] = ["ALL", "AsyncClient", "Client", "DESCRIPTOR", "Served"];

/// True if a type may not have this name.
pub(crate) fn is_taken(name: &str) -> bool {
    TAKEN.contains(&name)
}

/// The name as an identifier.
pub(crate) fn plain(name: &str) -> String {
    match name {
        "self" | "Self" | "super" | "crate" | "_" => format!("{name}_"),
        "" => "__".to_owned(),
        _ if name.starts_with(|first: char| first.is_ascii_digit()) => format!("_{name}"),
        _ if KEYWORDS.contains(&name) => format!("r#{name}"),
        _ => name.to_owned(),
    }
}

/// For methods, arguments, fields and modules.
pub(crate) fn snake(name: &str) -> String {
    plain(&name.to_snake_case())
}

/// For methods of interfaces, some with a `_` behind them.
pub(crate) fn method(name: &str) -> String {
    let name = snake(name);
    if METHODS.contains(&name.as_str()) { name + "_" } else { name }
}

/// For constants and enums' members, some with a `_` behind them.
pub(crate) fn constant(name: &str) -> String {
    if CONSTANTS.contains(&name) { format!("{name}_") } else { plain(name) }
}

/// For members of unions.
pub(crate) fn camel(name: &str) -> String {
    plain(&name.to_upper_camel_case())
}

/// The path to `name` in the module `to`, for code in the module `from` or `deeper`, in one inside it.
pub(crate) fn path(from: &[String], deeper: bool, to: &[String], name: &str) -> String {
    let common = from.iter().zip(to).take_while(|(one, other)| one == other).count();
    let ups = from.len() - common + usize::from(deeper);
    let mut path = "super::".repeat(ups);
    for module in &to[common..] {
        path += module;
        path += "::";
    }
    path + name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_rust() {
        for (name, want) in [
            ("getValue", "get_value"),
            ("type", "r#type"),
            ("Self", "self_"),
            ("getHTTPUrl", "get_http_url"),
            ("_1", "_1"),
            ("_", "__"),
            ("already_so", "already_so"),
            ("iPhone5", "i_phone5"),
        ] {
            assert_eq!(snake(name), want, "{name}");
        }
        assert_eq!(
            (camel("fooBar").as_str(), camel("self").as_str(), camel("FOO_BAR").as_str()),
            ("FooBar", "Self_", "FooBar")
        );
        assert_eq!(
            (plain("_"), plain("match"), method("dump")),
            ("__".to_owned(), "r#match".to_owned(), "dump_".to_owned())
        );
        assert_eq!((constant("RED"), constant("ALL")), ("RED".to_owned(), "ALL_".to_owned()));
    }

    #[test]
    fn paths_are_relative() {
        let [a, b, c] = ["a", "b", "c"].map(str::to_owned);
        let (ab, ac) = ([a.clone(), b], [a, c]);
        assert_eq!(path(&ab, false, &ab, "T"), "T");
        assert_eq!(path(&ab, true, &ab, "T"), "super::T");
        assert_eq!(path(&ab, true, &ac, "T"), "super::super::c::T");
        assert_eq!(path(&[], false, &ac, "T"), "a::c::T");
        assert_eq!(path(&ab, false, &[], "T"), "super::super::T");
    }
}
