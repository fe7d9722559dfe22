//! Reader of a source's Kconfig files: where an option is defined and what it depends on.
//! Not here: why a kernel lacks an option (`dropped`), expressions (`expression`).
//! Facts: kernel `Documentation/kbuild/kconfig-language.rst`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// One definition of an option.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Definition {
    /// Expressions that must hold.
    pub(super) depends: Vec<String>,
    /// Whether a user can set it, and the expression that must hold for that.
    pub(super) prompt: Option<String>,
    /// Number of the choice that it belongs to.
    pub(super) choice: Option<usize>,
}

/// All definitions of a source.
#[derive(Clone, Debug, Default)]
pub(super) struct Kconfig {
    options: BTreeMap<String, Vec<Definition>>,
}

/// A block that is open: its conditions hold for what it contains.
#[derive(Debug)]
struct Block {
    kind: &'static str,
    depends: Vec<String>,
    choice: Option<usize>,
}

/// The owner of an attribute's line.
#[derive(Clone, Debug)]
enum Subject {
    /// An option's last definition.
    Option(String),
    /// The innermost block.
    Block,
    Nothing,
}

#[derive(Debug)]
struct Reader<'a> {
    root: &'a Path,
    /// The architecture's folder below `arch`.
    folder: &'a str,
    found: Kconfig,
    blocks: Vec<Block>,
    subject: Subject,
    choices: usize,
    /// Files that are being read: one that includes itself is passed over.
    open: Vec<PathBuf>,
}

impl Kconfig {
    /// Reads the files of a source for one architecture. Files that are missing are left out.
    pub(super) fn read(root: &Path, folder: &str) -> Self {
        let mut reader = Reader {
            root,
            folder,
            found: Self::default(),
            blocks: Vec::new(),
            subject: Subject::Nothing,
            choices: 0,
            open: Vec::new(),
        };
        reader.file(Path::new("Kconfig"));
        reader.found
    }

    /// An option's definitions.
    pub(super) fn definitions(&self, symbol: &str) -> &[Definition] {
        self.options.get(symbol).map_or(&[], Vec::as_slice)
    }

    /// The other options of the choices that an option belongs to.
    pub(super) fn rivals(&self, symbol: &str) -> Vec<&str> {
        let own: Vec<usize> = self.definitions(symbol).iter().filter_map(|one| one.choice).collect();
        let is_rival = |definitions: &[Definition]| {
            definitions.iter().any(|one| one.choice.is_some_and(|choice| own.contains(&choice)))
        };
        let named =
            self.options.iter().filter(|(name, definitions)| *name != symbol && is_rival(definitions));
        named.map(|(name, _)| name.as_str()).collect()
    }
}

impl Reader<'_> {
    fn file(&mut self, path: &Path) {
        let Ok(text) = std::fs::read_to_string(self.root.join(path)) else { return };
        if self.open.iter().any(|open| open == path) {
            return;
        }
        self.open.push(path.to_path_buf());
        let mut lines = text.lines();
        // Indentation of a help text whose lines are passed over; none before its first line.
        let mut help: Option<Option<usize>> = None;
        while let Some(line) = lines.next() {
            let indent = indentation(line);
            match help {
                Some(_) if line.trim().is_empty() => continue,
                Some(None) if indent > 0 => {
                    help = Some(Some(indent));
                    continue;
                }
                Some(Some(first)) if indent >= first => continue,
                _ => help = None,
            }
            let mut whole = line.to_owned();
            while whole.ends_with('\\') {
                whole.pop();
                whole.push_str(lines.next().unwrap_or_default());
            }
            let statement = without_comment(&whole).trim();
            let (word, rest) = statement.split_once([' ', '\t']).unwrap_or((statement, ""));
            if word == "help" || word == "---help---" {
                help = Some(None);
            } else {
                self.statement(word, rest.trim(), path);
            }
        }
        self.open.pop();
    }

    fn statement(&mut self, word: &str, rest: &str, path: &Path) {
        match word {
            "source" | "osource" | "rsource" | "orsource" => {
                let named = rest.trim_matches('"');
                let named = named.replace("$(SRCARCH)", self.folder).replace("$SRCARCH", self.folder);
                let from = if word.contains("rs") { path.parent() } else { None };
                let file = from.unwrap_or(Path::new("")).join(named);
                self.subject = Subject::Nothing;
                self.file(&file);
            }
            "config" | "menuconfig" => {
                let depends = self.blocks.iter().flat_map(|block| block.depends.clone()).collect();
                let choice = self.blocks.iter().rev().find_map(|block| block.choice);
                let definition = Definition { depends, prompt: None, choice };
                self.found.options.entry(rest.to_owned()).or_default().push(definition);
                self.subject = Subject::Option(rest.to_owned());
            }
            "choice" => {
                self.choices += 1;
                self.open("choice", Vec::new(), Some(self.choices));
            }
            "menu" => self.open("menu", Vec::new(), None),
            "if" => {
                self.open("if", vec![rest.to_owned()], None);
                self.subject = Subject::Nothing;
            }
            "endchoice" | "endmenu" | "endif" => {
                let kind = word.trim_start_matches("end");
                if let Some(at) = self.blocks.iter().rposition(|block| block.kind == kind) {
                    self.blocks.truncate(at);
                }
                self.subject = Subject::Nothing;
            }
            "comment" | "mainmenu" => self.subject = Subject::Nothing,
            _ => self.attribute(word, rest),
        }
    }

    fn open(&mut self, kind: &'static str, depends: Vec<String>, choice: Option<usize>) {
        self.blocks.push(Block { kind, depends, choice });
        self.subject = Subject::Block;
    }

    fn attribute(&mut self, word: &str, rest: &str) {
        let Self { found, blocks, subject, .. } = self;
        if let ("depends", Some(condition)) = (word, rest.strip_prefix("on")) {
            let condition = condition.trim().to_owned();
            match subject {
                Subject::Option(name) => {
                    let last = found.options.get_mut(name).and_then(|definitions| definitions.last_mut());
                    last.into_iter().for_each(|one| one.depends.push(condition.clone()));
                }
                Subject::Block => {
                    blocks.last_mut().into_iter().for_each(|one| one.depends.push(condition.clone()))
                }
                Subject::Nothing => {}
            }
            return;
        }
        let is_prompt = ["bool", "tristate", "string", "hex", "int", "prompt"].contains(&word);
        let Subject::Option(name) = subject else { return };
        if !is_prompt || !rest.starts_with(['"', '\'']) {
            return;
        }
        let quote = &rest[..1];
        let behind = rest[1..].split_once(quote).map_or("", |(_, behind)| behind);
        let condition = behind.trim().strip_prefix("if ").unwrap_or_default().trim().to_owned();
        let last = found.options.get_mut(name).and_then(|definitions| definitions.last_mut());
        last.into_iter().for_each(|one| one.prompt = Some(condition.clone()));
    }
}

/// Columns before the first letter; a tab reaches to the next multiple of 8.
fn indentation(line: &str) -> usize {
    let mut columns = 0;
    for letter in line.chars() {
        match letter {
            ' ' => columns += 1,
            '\t' => columns = (columns / 8 + 1) * 8,
            _ => break,
        }
    }
    columns
}

/// A line up to a `#` outside quotes.
fn without_comment(line: &str) -> &str {
    let mut quoted = false;
    for (at, letter) in line.char_indices() {
        match letter {
            '"' => quoted = !quoted,
            '#' if !quoted => return &line[..at],
            _ => {}
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use driver::root::Fixture;

    fn source(name: &str) -> Fixture {
        Fixture::new(
            name,
            &[
                (
                    "Kconfig",
                    "mainmenu \"Linux\"\nsource \"init/Kconfig\"\nsource \"arch/$(SRCARCH)/Kconfig\"\n\
                 source \"Kconfig\"\n",
                ),
                (
                    "init/Kconfig",
                    "config EXPERT\n\tbool \"Configure # more\"\n\thelp\n\t  config NOT_ONE\n\t    depends on NOTHING\n\n\
                 menu \"A\"\n\tdepends on EXPERT || \\\n\t\tOTHER\nif NET\nconfig RT\n\tbool \"RT\" if EXPERT # why\n\
                 \tdepends on ARCH_RT && !TEST\n\tselect X\nendif\nendmenu\nchoice\n\tprompt \"Model\"\n\
                 \tdepends on SMP\nconfig NONE\n\tbool \"none\"\n\nconfig FULL\n\tbool \"full\"\nendchoice\n",
                ),
                ("arch/x86/Kconfig", "config ARCH_RT\n\tdef_bool y\nconfig RT\n\tbool\n"),
            ],
        )
    }

    #[test]
    fn definitions_carry_the_conditions_of_their_blocks() {
        let root = source("kconfig-blocks");
        let kconfig = Kconfig::read(root.path(), "x86");
        let [first, second] = kconfig.definitions("RT") else { panic!("{kconfig:?}") };
        assert_eq!(first.depends.len(), 3, "{first:?}");
        assert!(first.depends[0].starts_with("EXPERT ||") && first.depends[0].ends_with("OTHER"));
        assert_eq!(first.depends[1..], ["NET", "ARCH_RT && !TEST"]);
        assert_eq!(first.prompt.as_deref(), Some("EXPERT"));
        assert_eq!((second.prompt.as_deref(), second.depends.len()), (None, 0));
        assert!(kconfig.definitions("NOT_ONE").is_empty(), "a help text defines nothing");
        assert_eq!(kconfig.definitions("EXPERT")[0].prompt.as_deref(), Some(""));
    }

    #[test]
    fn the_options_of_a_choice_are_rivals() {
        let root = source("kconfig-choices");
        let kconfig = Kconfig::read(root.path(), "x86");
        assert_eq!(kconfig.rivals("NONE"), ["FULL"]);
        assert_eq!(kconfig.definitions("FULL")[0].depends, ["SMP"]);
        assert!(kconfig.rivals("RT").is_empty());
    }
}
