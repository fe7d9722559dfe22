//! Direction of imports between the modules of each crate: the children of one module never import each other in a circle.
//! A module and its own children may, for they are one unit. A file of an experiment's room counts to the layer that it is
//! part of ([`in_layer`]), so that a room is as layered as the rest of its crate.
//! Not here: imports between crates, which Cargo checks. Code under test configurations is not looked at.

use std::collections::{BTreeMap, BTreeSet};

use crate::sources;

/// A module's path within its crate; the crate's root is empty.
type Module = Vec<String>;

/// The modules of one crate, each with the paths that its code names.
type Crate = BTreeMap<Module, Vec<Named>>;

/// A path that code names, and the name by which a `use` makes it known.
#[derive(Debug, PartialEq)]
struct Named {
    path: Vec<String>,
    known_as: Option<String>,
}

/// The crate and the module of a source file; none of what is only tests, or part of no crate.
fn module_of(file: &str) -> Option<(String, Module)> {
    let (name, path) = match file.strip_prefix("crates/") {
        Some(rest) => rest.split_once("/src/")?,
        None => ("binderperf", file.strip_prefix("src/")?),
    };
    let mut module: Module = path.strip_suffix(".rs")?.split('/').map(str::to_owned).collect();
    if module.iter().any(|part| part == "tests" || part == "models") {
        return None;
    }
    if ["lib", "main", "mod"].contains(&module.last()?.as_str()) {
        module.pop();
    }
    Some((name.to_owned(), module))
}

/// Identifiers, `::` and single characters of a source, without comments, strings and the tests at its end.
fn tokens(source: &str) -> Vec<String> {
    let begins = ["\n#[cfg(test)]\nmod ", "\n#[cfg(all(test, not(loom)))]\nmod "];
    let end = begins.iter().find_map(|begin| {
        let at = source.find(begin)?;
        source[at + begin.len()..].lines().next().is_some_and(|line| line.ends_with('{')).then_some(at)
    });
    let mut tokens: Vec<String> = Vec::new();
    for line in source[..end.unwrap_or(source.len())].lines() {
        let (mut quoted, mut in_word) = (false, false);
        let mut letters = line.chars().peekable();
        while let Some(letter) = letters.next() {
            let is_word = letter.is_alphanumeric() || letter == '_';
            match letter {
                '\\' if quoted => drop(letters.next()),
                '"' => quoted = !quoted,
                _ if quoted || letter.is_whitespace() => {}
                '/' if letters.peek() == Some(&'/') => break,
                ':' if letters.next_if_eq(&':').is_some() => tokens.push("::".to_owned()),
                _ if is_word && in_word => tokens.last_mut().expect("its begin").push(letter),
                _ => tokens.push(letter.to_string()),
            }
            in_word = is_word && !quoted;
        }
    }
    tokens
}

/// The paths that a source names: those of its `use`, and any other that starts at a module of its own crate.
fn paths(source: &str) -> Vec<Named> {
    let tokens = tokens(source);
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let starts_path = ["crate", "self", "super"].contains(&tokens[at].as_str());
        if tokens[at] == "use" {
            at += 1;
            import(&tokens, &mut at, &[], &mut found);
        } else if starts_path && tokens.get(at + 1).is_some_and(|next| next == "::") {
            let mut path = vec![tokens[at].clone()];
            while tokens.get(at + 1).is_some_and(|next| next == "::") && at + 2 < tokens.len() {
                path.push(tokens[at + 2].clone());
                at += 2;
            }
            found.push(Named { path, known_as: None });
        }
        at += 1;
    }
    found
}

/// Reads one branch of a `use`, up to the `,`, `}` or `;` that ends it.
fn import(tokens: &[String], at: &mut usize, before: &[String], found: &mut Vec<Named>) {
    let mut path = before.to_vec();
    let mut known_as = None;
    while let Some(token) = tokens.get(*at) {
        match token.as_str() {
            "," | "}" | ";" => break,
            "::" => {}
            "as" => {
                *at += 1;
                known_as = tokens.get(*at).cloned();
            }
            "{" => {
                while tokens.get(*at).is_some_and(|token| token != "}") {
                    *at += 1;
                    import(tokens, at, &path, found);
                }
                *at += 1;
                return;
            }
            _ => path.push(token.clone()),
        }
        *at += 1;
    }
    if path.len() > before.len() {
        let known_as = known_as.or_else(|| path.last().cloned());
        found.push(Named { path, known_as });
    }
}

/// The module that a path leads to, seen from another; none outside the crate. Follows what modules import from others.
fn target(modules: &Crate, from: &Module, path: &[String], depth: u32) -> Option<Module> {
    let (mut module, mut rest) = match path.first()?.as_str() {
        "crate" => (Module::new(), &path[1..]),
        "self" => (from.clone(), &path[1..]),
        "super" => (from.clone(), path),
        _ => (from.clone(), path),
    };
    while rest.first().is_some_and(|word| word == "super") {
        module.pop();
        rest = &rest[1..];
    }
    let starts_here = module == *from && path[0] != "self";
    while let Some(word) = rest.first() {
        let below = [&module[..], std::slice::from_ref(word)].concat();
        if !modules.contains_key(&below) {
            break;
        }
        (module, rest) = (below, &rest[1..]);
    }
    if starts_here && module == *from {
        return None;
    }
    let again = rest.first().filter(|_| module != *from && depth < 5).and_then(|word| {
        let named = modules[&module].iter().find(|named| named.known_as.as_ref() == Some(word))?;
        target(modules, &module, &named.path, depth + 1)
    });
    again.or(Some(module))
}

/// The module as part of a layer of its crate. An experiment's room, `experiments/NAME`, has a file for each layer; the room as
/// a whole counts to the highest of them. Other modules, and what a room has besides, are where they are.
fn in_layer(module: &Module) -> Module {
    let [room, name, rest @ ..] = &module[..] else { return module.clone() };
    let layer = match rest.first().map(String::as_str) {
        _ if room != "experiments" => return module.clone(),
        Some(layer @ ("schema" | "verdict")) => layer,
        Some("text" | "chart") | None => "render",
        Some(_) => return module.clone(),
    };
    vec![layer.to_owned(), name.clone()]
}

/// Who imports whom among the children of each module, with one path that does.
type Imports = BTreeMap<Module, BTreeMap<String, BTreeMap<String, String>>>;

fn imports(modules: &Crate) -> Imports {
    let mut imports = Imports::new();
    for (module, named) in modules {
        for Named { path, .. } in named {
            let Some(target) = target(modules, module, path, 0) else { continue };
            let example = format!("{}: {}", module.join("::"), path.join("::"));
            let (module, target) = (in_layer(module), in_layer(&target));
            let shared = module.iter().zip(&target).take_while(|(one, other)| one == other).count();
            if let (Some(one), Some(other)) = (module.get(shared), target.get(shared)) {
                let children = imports.entry(module[..shared].to_vec()).or_default();
                children.entry(one.clone()).or_default().insert(other.clone(), example);
            }
        }
    }
    imports
}

/// A circle among these, if there is one: whoever imports nobody that is left is taken out, again and again.
fn circle(children: &BTreeMap<String, BTreeMap<String, String>>) -> Option<String> {
    let mut left: BTreeSet<&String> = children.keys().collect();
    let next = |left: &BTreeSet<&String>, child: &String| {
        children[child]
            .iter()
            .find(|(other, _)| left.contains(other))
            .map(|(other, path)| (other.clone(), path))
    };
    while let Some(done) = left.iter().find(|child| next(&left, child).is_none()).copied() {
        left.remove(done);
    }
    let mut child = (*left.first()?).clone();
    let (mut seen, mut told) = (Vec::new(), Vec::new());
    while !seen.contains(&child) {
        let (other, path) = next(&left, &child).expect("each one left imports another");
        told.push(format!("    {child} -> {other} ({path})"));
        seen.push(std::mem::replace(&mut child, other));
    }
    let begin = seen.iter().position(|name| *name == child).unwrap_or_default();
    Some(told[begin..].join("\n"))
}

/// All modules whose children import each other in a circle, each with the circle.
fn circles(sources: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut crates: BTreeMap<String, Crate> = BTreeMap::new();
    for (file, source) in sources {
        if let Some((name, module)) = module_of(file) {
            crates.entry(name).or_default().insert(module, paths(source));
        }
    }
    let mut found = BTreeMap::new();
    for (name, modules) in &crates {
        for (parent, children) in imports(modules) {
            if let Some(circle) = circle(&children) {
                let parent = [std::slice::from_ref(name), &parent[..]].concat().join("::");
                found.insert(parent, circle);
            }
        }
    }
    found
}

#[test]
fn modules_do_not_import_each_other_in_circles() {
    let circles = circles(&sources());
    let told: Vec<String> =
        circles.iter().map(|(parent, circle)| format!("in {parent}:\n{circle}")).collect();
    assert!(told.is_empty(), "modules import each other in circles\n{}", told.join("\n"));
}

#[test]
fn a_circle_is_noticed_however_it_is_written() {
    let has_circle = |files: &[(&str, &str)]| {
        let files =
            files.iter().map(|(file, source)| (format!("crates/x/src/{file}.rs"), (*source).to_owned()));
        circles(&files.collect()).into_keys().collect::<Vec<_>>()
    };
    let a = ("a", "use crate::b::B;\n");
    assert!(has_circle(&[("lib", "mod a;\nmod b;\n"), a, ("b", "")]).is_empty());
    for (lib, b) in [
        ("", "use crate::a::A;\n"),
        ("", "use super::{c::C, a};\n"),
        ("", "fn f(_: &super::a::A) {}\n"),
        ("pub use a::A as N;\n", "use crate::N;\n"),
    ] {
        let files = [("lib", lib), a, ("b", b), ("c", "use std::io;\n")];
        assert_eq!(has_circle(&files), ["x"], "{lib} {b}");
    }
    for b in [
        "// use crate::a::A;\n",
        "const S: &str = \"crate::a::A\";\n",
        "\n#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}\n",
        "\n#[cfg(all(test, not(loom)))]\nmod tests {\n    use crate::a::A;\n}\n",
        "use other::a::A;\n",
    ] {
        assert!(has_circle(&[("lib", ""), a, ("b", b)]).is_empty(), "{b}");
    }
    let deep =
        [("lib", ""), ("p", "use self::a::A;\n"), ("p/a", "use super::b;\n"), ("p/b", "use super::a::A;\n")];
    assert_eq!(has_circle(&deep), ["x::p"]);
    let family =
        [("lib", ""), ("p", "use self::a::A;\n"), ("p/a", "use super::P;\n"), ("p/tests", "use super::a;\n")];
    assert!(has_circle(&family).is_empty(), "a module and its child are one unit");
    let room = |schema| {
        [
            ("lib", ""),
            ("schema", "use crate::experiments::e::schema::E;\n"),
            ("schema/calls", ""),
            ("render", "use crate::schema::S;\nuse crate::experiments::e::text;\n"),
            ("render/table", ""),
            ("experiments", "pub mod e;\n"),
            ("experiments/e", "pub mod schema;\npub mod text;\n"),
            ("experiments/e/schema", schema),
            (
                "experiments/e/text",
                "use crate::schema::S;\nuse crate::render::table;\nuse super::schema::E;\n",
            ),
        ]
    };
    assert!(has_circle(&room("use crate::schema::calls;\n")).is_empty(), "each file of a room is in a layer");
    for upwards in ["use super::text;\n", "use crate::render::table;\n", "use crate::experiments::e;\n"] {
        assert_eq!(has_circle(&room(upwards)), ["x"], "{upwards}");
    }
}
