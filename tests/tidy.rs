//! Room: what can be checked about the tree itself: contract pages against tests, the import table of
//! `ARCHITECTURE.md` against the manifests, file headers, file sizes, where `unsafe` stands.
//! Every checker is a function of text, with a test that sees it object.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lab::conformance::{Drivers, Item, catalogue};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every Rust source of the tree, by its path from the root.
fn sources() -> BTreeMap<String, String> {
    let mut folders: Vec<PathBuf> =
        ["src", "crates", "tests", "examples", "fuzz"].iter().map(|name| root().join(name)).collect();
    let mut found = BTreeMap::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name();
            if path.is_dir() && name != "target" && name != "corpus" && name != "artifacts" {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let short = path.strip_prefix(root()).expect("below the root").display().to_string();
                found.insert(short, read(&path));
            }
        }
    }
    assert!(found.len() > 50, "the tree was not found: {} files", found.len());
    found
}

/// What a contract page says of one item.
#[derive(Clone, Debug, Default, PartialEq)]
struct Promise {
    title: String,
    text: String,
    source: String,
    test: String,
}

/// Reads a page's items: `## ID: title`, text, `- drivers; from source`, `- test \`name\``.
fn promises(page: &str) -> BTreeMap<String, Promise> {
    let mut found: BTreeMap<String, Promise> = BTreeMap::new();
    for section in page.split("\n## ").skip(1) {
        let (head, body) = section.split_once('\n').unwrap_or((section, ""));
        let (id, title) = head.split_once(": ").unwrap_or((head, ""));
        let mut promise = Promise { title: title.to_owned(), ..Promise::default() };
        for line in body.lines() {
            if let Some(test) = line.strip_prefix("- test `") {
                promise.test = test.trim_end_matches('`').to_owned();
            } else if let Some(source) = line.strip_prefix("- ") {
                promise.source = source.to_owned();
            } else {
                promise.text += line;
            }
        }
        found.insert(id.to_owned(), promise);
    }
    found
}

/// What is wrong between the items with tests and the promises on the pages.
fn contract_faults<'i>(
    items: impl Iterator<Item = &'i Item>,
    mut pages: BTreeMap<String, Promise>,
) -> Vec<String> {
    let mut faults = Vec::new();
    for item in items {
        let Some(promise) = pages.remove(item.id) else {
            faults.push(format!("{} has a test and no page", item.id));
            continue;
        };
        let drivers = match item.drivers {
            Drivers::Both => "both drivers; from `",
            Drivers::C => "C driver; from `",
            Drivers::Rust => "Rust driver; from `",
        };
        for (what, fault) in [
            ("another title than its test", promise.title != item.title),
            ("another test's name", promise.test != item.test_name),
            ("no text", promise.text.is_empty()),
            ("other drivers than its test, or no source", !promise.source.starts_with(drivers)),
        ] {
            if fault {
                faults.push(format!("{} has {what} on its page: {promise:?}", item.id));
            }
        }
    }
    faults.extend(pages.keys().map(|id| format!("{id} has a page and no test")));
    faults
}

#[test]
fn each_contract_item_has_its_page_and_its_test() {
    let mut pages = BTreeMap::new();
    for entry in std::fs::read_dir(root().join("contract")).expect("the pages").flatten() {
        if entry.file_name() != "README.md" {
            pages.extend(promises(&read(&entry.path())));
        }
    }
    let faults = contract_faults(catalogue(), pages);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_page_without_a_test_and_a_test_without_a_page_are_noticed() {
    let item = catalogue().next().expect("an item");
    let Item { id, title, test_name, .. } = item;
    let good = format!(
        "# P\n\n## {id}: {title}\n\nText.\n\n- both drivers; from `binder.c`\n- test `{test_name}`\n"
    );
    let faults = |page: &str| contract_faults([item].into_iter(), promises(page));
    assert!(faults(&good).is_empty(), "{:?}", faults(&good));
    for (broken, want) in [
        (String::from("# P\n"), "has a test and no page"),
        (format!("{good}\n## ZZ-01: more\n\nText.\n"), "ZZ-01 has a page and no test"),
        (good.replace(title, "other"), "another title"),
        (good.replace(test_name, "other"), "another test's name"),
        (good.replace("Text.", ""), "no text"),
        (good.replace("from `binder.c`", ""), "no source"),
        (good.replace("both drivers", "C driver"), "other drivers"),
    ] {
        let faults = faults(&broken);
        assert!(faults.len() == 1 && faults[0].contains(want), "{want}: {faults:?}");
    }
}

/// What is wrong between the items that may differ on the embedded driver and the page of
/// differences.
fn difference_faults<'i>(items: impl Iterator<Item = &'i Item>, page: &str) -> Vec<String> {
    let mut pages = promises(page);
    let mut faults = Vec::new();
    for item in items.filter(|item| item.differs) {
        match pages.remove(item.id) {
            None => faults.push(format!("{} may differ and has no section in docs/differences.md", item.id)),
            Some(found) if found.title != item.title => {
                faults.push(format!("{} has another title in docs/differences.md: {}", item.id, found.title));
            }
            Some(found) if found.text.is_empty() => {
                faults.push(format!("{} has an empty section in docs/differences.md", item.id));
            }
            Some(_) => {}
        }
    }
    faults.extend(pages.keys().map(|id| format!("{id} is in docs/differences.md and may not differ")));
    faults
}

#[test]
fn each_difference_is_documented() {
    let faults = difference_faults(catalogue(), &read(&root().join("docs/differences.md")));
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn an_undocumented_difference_and_one_that_is_none_are_noticed() {
    let mut item = *catalogue().next().expect("an item");
    item.differs = true;
    let good = format!("# D\n\n## {}: {}\n\nText.\n", item.id, item.title);
    let faults = |item: Item, page: &str| difference_faults([&item].into_iter(), page);
    assert!(faults(item, &good).is_empty(), "{:?}", faults(item, &good));
    let one = |item: Item, page: &str, want: &str| {
        let faults = faults(item, page);
        assert!(faults.len() == 1 && faults[0].contains(want), "{want}: {faults:?}");
    };
    one(item, "# D\n", "has no section");
    one(item, &good.replace(item.title, "other"), "another title");
    one(item, &good.replace("Text.", ""), "empty section");
    item.differs = false;
    one(item, &good, "may not differ");
}

/// A file's code without comments and the contents of strings.
fn bare_code(source: &str) -> String {
    let mut bare = String::new();
    for line in source.lines() {
        let mut quoted = false;
        let mut characters = line.chars().peekable();
        while let Some(character) = characters.next() {
            match character {
                '\\' if quoted => drop(characters.next()),
                '"' => quoted = !quoted,
                '/' if !quoted && characters.peek() == Some(&'/') => break,
                other if !quoted => bare.push(other),
                _ => {}
            }
        }
        bare.push('\n');
    }
    bare
}

/// What is wrong with one source file.
fn source_faults(path: &str, source: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if !source.starts_with("//! ") && !source.starts_with("#!") {
        faults.push(format!("{path} does not open with its room (//! ...)"));
    }
    let lines = source.lines().count();
    if lines > 600 {
        faults.push(format!("{path} has {lines} lines, 600 is the limit"));
    }
    let bare = bare_code(source);
    let mut words = bare.split(|c: char| !c.is_alphanumeric() && c != '_');
    if !path.starts_with("crates/sys/") && words.any(|word| word == "unsafe") {
        faults.push(format!("{path} has unsafe code, which belongs in crates/sys"));
    }
    let library = path.ends_with("src/lib.rs") || path == "src/main.rs";
    if library && path != "crates/sys/src/lib.rs" && !bare.contains("#![forbid(unsafe_code)]") {
        faults.push(format!("{path} does not forbid unsafe code"));
    }
    faults
}

#[test]
fn each_file_has_its_room_and_keeps_to_it() {
    let faults: Vec<String> =
        sources().iter().flat_map(|(path, source)| source_faults(path, source)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_careless_file_is_noticed() {
    let fine = "//! Room: x.\n#![forbid(unsafe_code)]\nlet s = \"unsafe\"; // unsafe\n";
    assert!(source_faults("crates/abi/src/lib.rs", fine).is_empty());
    let unsafe_code = "//! Room: x.\nlet p = unsafe { *q };\n";
    assert!(source_faults("crates/sys/src/x.rs", unsafe_code).is_empty());
    let long = format!("//! Room: x.\n{}", "\n".repeat(600));
    for (path, source, want) in [
        ("src/x.rs", "use std::io;\n", "does not open with its room"),
        ("src/x.rs", long.as_str(), "601 lines"),
        ("crates/ipc/src/x.rs", unsafe_code, "has unsafe code"),
        ("crates/ipc/src/x.rs", "//! R.\nlet a = \"\\\"\"; unsafe { b() };\n", "has unsafe code"),
        ("crates/lab/src/lib.rs", "//! Room: x.\n// #![forbid(unsafe_code)]\n", "does not forbid"),
    ] {
        let faults = source_faults(path, source);
        assert!(faults.len() == 1 && faults[0].contains(want), "{want}: {faults:?}");
    }
}

/// The crates of the workspace, bottom up.
const CRATES: [&str; 8] = ["abi", "sys", "driver", "ipc", "record", "trace", "lab", "binderperf"];

/// The import table of `ARCHITECTURE.md`: what each crate may import of ours.
fn import_table(page: &str) -> BTreeMap<String, Vec<String>> {
    let mut table: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in page.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, name, imports, _, ..] = cells[..] else { continue };
        let Some(name) = name.strip_prefix('`').and_then(|name| name.strip_suffix('`')) else { continue };
        if !CRATES.contains(&name) || table.contains_key(name) {
            continue;
        }
        let allowed = match imports {
            "all of the above" => table.keys().cloned().collect(),
            list => list.split('`').skip(1).step_by(2).map(str::to_owned).collect(),
        };
        table.insert(name.to_owned(), allowed);
    }
    table
}

/// The crates of ours in a manifest's section of dependencies.
fn imports(manifest: &str) -> Vec<String> {
    let section =
        manifest.split("\n[").find(|section| section.starts_with("dependencies]")).unwrap_or_default();
    let names = section.lines().filter_map(|line| line.split(['.', ' ', '=']).next());
    names.filter(|name| CRATES.contains(name)).map(str::to_owned).collect()
}

/// What is wrong between the table and the manifests.
fn import_faults(table: &BTreeMap<String, Vec<String>>, manifests: &BTreeMap<&str, String>) -> Vec<String> {
    let mut faults = Vec::new();
    for (name, manifest) in manifests {
        let Some(allowed) = table.get(*name) else {
            faults.push(format!("{name} is not in the import table"));
            continue;
        };
        for import in imports(manifest).iter().filter(|import| !allowed.contains(import)) {
            faults.push(format!("{name} may not import {import}"));
        }
    }
    faults
}

#[test]
fn no_crate_imports_against_the_table() {
    let manifests = CRATES.map(|name| {
        let folder = if name == "binderperf" { root().to_owned() } else { root().join("crates").join(name) };
        (name, read(&folder.join("Cargo.toml")))
    });
    let faults = import_faults(&import_table(&read(&root().join("ARCHITECTURE.md"))), &manifests.into());
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_forbidden_import_is_noticed() {
    let page = "| crate | may import | x |\n|---|---|---|\n| `abi` | nothing of ours | a |\n\
        | `sys` | `abi` | b |\n| `driver` | `abi`, `sys` | c |\n| `lab` | all of the above | d |\n";
    let table = import_table(page);
    assert_eq!(table["abi"], Vec::<String>::new());
    assert_eq!(table["driver"], ["abi", "sys"]);
    assert_eq!(table["lab"], ["abi", "driver", "sys"]);
    let manifest = |names: &str| {
        format!("[package]\nname = \"x\"\n\n[dependencies]\n{names}\n[lints]\nworkspace = true\n")
    };
    let faults = |name, names: &str| import_faults(&table, &[(name, manifest(names))].into());
    assert!(faults("driver", "abi.workspace = true\nlibc.workspace = true\n").is_empty());
    assert_eq!(faults("sys", "driver.workspace = true\n"), ["sys may not import driver"]);
    assert_eq!(faults("abi", "sys = { path = \"../sys\" }\n"), ["abi may not import sys"]);
    assert_eq!(faults("ipc", ""), ["ipc is not in the import table"]);
}
