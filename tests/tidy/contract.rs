//! The pages of `contract/` and `docs/differences.md` against the items of the conformance suite.

use std::collections::BTreeMap;

use conformance::{Drivers, Item, catalogue};

use crate::{read, root};

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
