//! All files together: their types by name, and what a name means at a place.
//! Not here: which types a member may have (`types`).

use std::collections::{BTreeSet, HashMap};

use crate::error::{Error, Fault, Source};
use crate::names;
use crate::parse::parse;
use crate::tree::{At, File, Item, Kind, Name};

/// The number of a type in [`Program::types`].
pub(crate) type TypeId = usize;

/// A declared type.
#[derive(Debug)]
pub(crate) struct Declared {
    /// Without the types inside it, which have numbers of their own.
    pub(crate) item: Item,
    pub(crate) outer: Option<TypeId>,
    pub(crate) file: usize,
    /// AIDL's whole name: `example.Point`.
    pub(crate) full: String,
    /// The Rust modules that it is in.
    pub(crate) module: Vec<String>,
}

impl Declared {
    /// The name in Rust.
    pub(crate) fn rust(&self) -> String {
        names::plain(&self.item.name.text)
    }
}

/// Everything that was read.
#[derive(Debug, Default)]
pub(crate) struct Program {
    pub(crate) sources: Vec<Source>,
    pub(crate) types: Vec<Declared>,
    pub(crate) faults: Vec<Fault>,
    files: Vec<(Vec<String>, Vec<Name>)>,
    by_name: HashMap<String, TypeId>,
}

impl Program {
    /// Reads sources, and those that they need as `find` gives them for a whole name, each once.
    ///
    /// # Errors
    /// `find` has one.
    pub(crate) fn read(
        sources: Vec<Source>,
        mut find: impl FnMut(&[String]) -> Result<Option<Source>, Error>,
    ) -> Result<Self, Error> {
        let mut program = Self::default();
        let mut asked = BTreeSet::new();
        let mut waiting: Vec<Source> = sources.into_iter().rev().collect();
        while let Some(source) = waiting.pop() {
            if program.sources.iter().any(|known| known.identity == source.identity) {
                continue;
            }
            let number = program.sources.len();
            let parsed = parse(&source.text, number);
            program.sources.push(source);
            program.files.push(Default::default());
            let file = match parsed {
                Ok(file) => file,
                Err(fault) => {
                    program.faults.push(fault);
                    continue;
                }
            };
            for name in wanted(&file) {
                let is_new = !program.by_name.contains_key(&name.join(".")) && asked.insert(name.clone());
                if is_new {
                    waiting.extend(find(&name)?);
                }
            }
            program.add(number, file);
        }
        program.check_imports();
        Ok(program)
    }

    fn add(&mut self, number: usize, file: File) {
        let module: Vec<String> = file.package.iter().map(|part| names::plain(part)).collect();
        self.files[number] = (file.package, file.imports);
        for item in file.items {
            self.declare(item, None, number, &module);
        }
    }

    fn declare(&mut self, mut item: Item, outer: Option<TypeId>, file: usize, module: &[String]) {
        let scope =
            outer.map_or_else(|| self.files[file].0.join("."), |outer| self.types[outer].full.clone());
        let full =
            if scope.is_empty() { item.name.text.clone() } else { format!("{scope}.{}", item.name.text) };
        let at = item.name.at;
        let nested = std::mem::take(&mut item.nested);
        let inside = [module, &[names::snake(&item.name.text)]].concat();
        let number = self.types.len();
        if names::is_taken(&item.name.text) {
            let what = format!("`{}` is a type of Rust's own", item.name.text);
            self.faults.push(Fault::new(at, what, "give it another name"));
        }
        if self.by_name.insert(full.clone(), number).is_some() {
            self.faults.push(Fault::new(at, format!("`{full}` is declared twice"), "leave one"));
        }
        self.types.push(Declared { item, outer, file, full, module: module.to_vec() });
        for item in nested {
            self.declare(item, Some(number), file, &inside);
        }
    }

    /// Finds imports of what is nowhere.
    fn check_imports(&mut self) {
        for name in self.files.iter().flat_map(|(_, imports)| imports) {
            let full = name.path.join(".");
            if !self.by_name.contains_key(&full) && !is_built_in(&full) {
                let remedy = format!("add the folder that has {}.aidl by `include`", name.path.join("/"));
                self.faults.push(Fault::new(name.at, format!("`{full}` is not found"), remedy));
            }
        }
    }

    /// The type that a name means in a file, inside a type.
    pub(crate) fn lookup(&self, file: usize, inside: Option<TypeId>, path: &[String]) -> Option<TypeId> {
        let (package, imports) = &self.files[file];
        let joined = |scope: &str| self.by_name.get(&format!("{scope}.{}", path.join("."))).copied();
        let mut scope = inside;
        while let Some(inner) = scope {
            let found = joined(&self.types[inner].full);
            if found.is_some() {
                return found;
            }
            scope = self.types[inner].outer;
        }
        for import in imports.iter().filter(|import| import.path.last() == path.first()) {
            let whole = [&import.path, path.get(1..).unwrap_or_default()].concat().join(".");
            if let Some(found) = self.by_name.get(&whole) {
                return Some(*found);
            }
        }
        joined(&package.join(".")).or_else(|| self.by_name.get(&path.join(".")).copied())
    }

    /// The constant or the enum's member that a name means inside a type: whose it is, and its number there.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn constant(&self, inside: TypeId, name: &Name) -> Result<(TypeId, usize), Fault> {
        let whole = name.path.join(".");
        let (last, path) = name.path.split_last().expect("a name has a word");
        let owner = match path {
            [] => Some(inside),
            _ => self.lookup(self.types[inside].file, Some(inside), path),
        };
        let unknown = || {
            Fault::new(
                name.at,
                format!("`{whole}` is no constant"),
                "import the type that has it, or mend its name",
            )
        };
        let owner = owner.ok_or_else(unknown)?;
        let item = &self.types[owner].item;
        let found = match item.kind {
            Kind::Enumeration => item.enumerators.iter().position(|each| each.name.text == *last),
            _ => item.constants.iter().position(|each| each.name.text == *last),
        };
        Ok((owner, found.ok_or_else(unknown)?))
    }

    /// The place of a type's name.
    pub(crate) fn at(&self, id: TypeId) -> At {
        self.types[id].item.name.at
    }
}

/// Whole names of types that a file may mean and that may have files for themselves.
fn wanted(file: &File) -> Vec<Vec<String>> {
    let mut names: Vec<Vec<String>> = file.imports.iter().map(|import| import.path.clone()).collect();
    // The last word may be a constant or a type inside another.
    for mention in file.mentions.iter().filter(|mention| !is_built_in(&mention.join("."))) {
        names.push([&file.package[..], &mention[..1]].concat());
        names.extend((2..=mention.len()).map(|words| mention[..words].to_vec()));
    }
    names
}

/// True for AIDL's own types.
pub(crate) fn is_built_in(name: &str) -> bool {
    let name = ["android.os.", "java.util.", "java.lang."]
        .iter()
        .find_map(|package| name.strip_prefix(package))
        .unwrap_or(name);
    [
        "void",
        "boolean",
        "byte",
        "char",
        "int",
        "long",
        "float",
        "double",
        "String",
        "IBinder",
        "FileDescriptor",
        "ParcelFileDescriptor",
        "ParcelableHolder",
        "List",
        "Map",
        "CharSequence",
    ]
    .contains(&name)
}
