//! The table of crates in `ARCHITECTURE.md`, held against the manifests.
//! Not here: imports between modules (`modules`).

use std::collections::{BTreeMap, BTreeSet};

use crate::{read, root};

type Imports = BTreeMap<String, BTreeSet<String>>;

/// The column "imports" of each crate's row.
fn documented(page: &str) -> Imports {
    let rows = page.lines().filter_map(|line| {
        let cells: Vec<&str> = line.split(" | ").collect();
        let name = cells.first()?.strip_prefix("| `")?.strip_suffix('`')?;
        let &[_, _, imports, _] = &cells[..] else { return None };
        Some((name.to_owned(), imports.split('`').skip(1).step_by(2).map(str::to_owned).collect()))
    });
    rows.collect()
}

/// The crates of the workspace that a manifest's dependencies name, on whatever target.
fn imported(manifest: &str, members: &BTreeSet<String>) -> BTreeSet<String> {
    let parts = manifest.split("\n[").filter_map(|part| part.split_once("]\n"));
    let parts = parts.filter(|(head, _)| *head == "dependencies" || head.ends_with(".dependencies"));
    let names =
        parts.flat_map(|(_, lines)| lines.lines()).filter_map(|line| line.split(['.', ' ', '=']).next());
    names.filter(|name| members.contains(*name)).map(str::to_owned).collect()
}

/// Differences between the table and these crates.
fn faults(page: &str, crates: &Imports) -> Vec<String> {
    let documented = documented(page);
    let wrong = crates.iter().filter(|(name, imports)| documented.get(*name) != Some(*imports));
    let wrong = wrong.map(|(name, imports)| format!("ARCHITECTURE.md: {name} imports {imports:?}"));
    let gone = documented.keys().filter(|name| !crates.contains_key(*name));
    wrong.chain(gone.map(|name| format!("ARCHITECTURE.md: there is no crate {name}"))).collect()
}

#[test]
fn the_table_of_crates_has_what_cargo_has() {
    let folder = root().join("crates");
    let entries = std::fs::read_dir(&folder).expect("there").flatten();
    let members: BTreeSet<String> = entries.map(|entry| entry.file_name().display().to_string()).collect();
    let manifest = |name: &String| read(&folder.join(name).join("Cargo.toml"));
    let crates: Imports =
        members.iter().map(|name| (name.clone(), imported(&manifest(name), &members))).collect();
    let found = faults(&read(&root().join("ARCHITECTURE.md")), &crates);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn a_row_that_lacks_an_import_is_found() {
    let members = ["a", "b", "c"].map(str::to_owned).into();
    let manifest = "[package]\nname = \"c\"\n\n[dependencies]\na.workspace = true\nx.workspace = true\n\n[target.'cfg(unix)'.dependencies]\nb = { path = \"../b\" }\n\n[dev-dependencies]\nc.workspace = true\n";
    let crates = Imports::from([("c".to_owned(), imported(manifest, &members))]);
    assert_eq!(faults("| `c` | is what it is | `a`, `b` | – |\n", &crates), [""; 0]);
    let gone = "| `c` | is | `a`, `b` | – |\n| `d` | was | – | – |\n";
    assert_eq!(faults(gone, &crates), ["ARCHITECTURE.md: there is no crate d"]);
    for page in ["| `c` | is what it is | `a` | – |\n", "| `c` | it is | `a`, `b`, `x` | – |\n", ""] {
        assert_eq!(faults(page, &crates).len(), 1, "{page}");
    }
}
