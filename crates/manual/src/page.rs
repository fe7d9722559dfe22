//! One page of the manual in roff: a command's definition and its help text.
//! Not here: how options look there (`clap_mangen`), where pages go (the command `man`).

use clap::Command as Definition;
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, roman};

use crate::NAME;
use crate::help_text::{self, HelpText};

/// A page.
#[derive(Clone, Debug)]
pub struct Page {
    /// Its name, as `binderperf-throughput-binder`.
    pub name: String,
    /// Its text, in roff.
    pub text: String,
}

/// The page of the program, then those of its commands.
pub fn all(program: &Definition) -> Vec<Page> {
    let mut pages = Vec::new();
    gather(program, "", &mut pages);
    pages
}

/// The page of the command with these words.
///
/// # Errors
/// There is none; the text says so.
pub fn of(words: &[String], program: &Definition) -> Result<Page, String> {
    let words = words.join("-");
    let wanted = match words.strip_prefix(NAME).map(|rest| rest.trim_start_matches('-')).unwrap_or(&words) {
        "" => NAME.to_owned(),
        command => format!("{NAME}-{command}"),
    };
    let page = all(program).into_iter().find(|page| page.name == wanted);
    page.ok_or_else(|| format!("no page {wanted:?}; `binderperf help` lists the commands"))
}

fn gather(definition: &Definition, path: &str, pages: &mut Vec<Page>) {
    pages.push(Page { name: name_of(path), text: text(definition, path) });
    for command in definition.get_subcommands() {
        let below = format!("{path} {}", command.get_name());
        gather(command, below.trim_start(), pages);
    }
}

/// The name of a command's page.
fn name_of(path: &str) -> String {
    format!("{} {path}", NAME).trim_end().replace(' ', "-")
}

/// Today's date, as manuals show it.
fn today() -> String {
    host::now().chars().take_while(|letter| *letter != 'T').collect()
}

fn text(definition: &Definition, path: &str) -> String {
    let name = name_of(path);
    let man = Man::new(definition.clone())
        .title(name.clone())
        .date(today())
        .source(format!("{} {}", NAME, env!("CARGO_PKG_VERSION")))
        .manual("Binder performance tests");
    let mut page = Vec::new();
    let mut text = String::new();
    // Nothing that is written into memory fails.
    let _ = man.render_title(&mut page);
    text += &drained(&mut page);
    text += &names(definition, path).to_roff();
    let _ = man.render_synopsis_section(&mut page).and_then(|()| man.render_description_section(&mut page));
    text += &drained(&mut page);
    let _ = man.render_options_section(&mut page);
    text += &options(&drained(&mut page));
    text += &commands(definition, path).to_roff();
    let help = help_text::find(path);
    text += &statuses(help).to_roff();
    text += &variables(definition, help).to_roff();
    if let Some(help) = help {
        text += &terms("FILES", &help.files).to_roff();
        text += &examples(help).to_roff();
    }
    text + &see_also(path, help).to_roff()
}

fn drained(bytes: &mut Vec<u8>) -> String {
    String::from_utf8_lossy(&std::mem::take(bytes)).into_owned()
}

/// The NAME section. A tool of Android's is listed by its own name, too.
fn names(definition: &Definition, path: &str) -> Roff {
    let tool = path.strip_prefix("applet ");
    let names = tool.map(|tool| format!("{tool}, ")).unwrap_or_default() + &name_of(path);
    let about = definition.get_about().map(ToString::to_string).unwrap_or_default();
    let mut roff = Roff::new();
    roff.control("SH", ["NAME"]).text([roman(format!("{names} - {about}"))]);
    roff
}

/// Makes groups of options subsections of one section, and removes breaks beside empty lines.
fn options(section: &str) -> String {
    let text = section.replace("\n.br\n\n.br\n", "\n.sp\n");
    match text.split_once("\n.SH OPTIONS\n") {
        Some((before, groups)) => format!("{before}\n.SH OPTIONS\n{}", groups.replace("\n.SH ", "\n.SS ")),
        None => text,
    }
}

/// The commands below; those of the whole program in their groups.
fn commands(definition: &Definition, path: &str) -> Roff {
    let mut roff = Roff::new();
    let names: Vec<&str> = definition.get_subcommands().map(Definition::get_name).collect();
    if names.is_empty() {
        return roff;
    }
    roff.control("SH", ["COMMANDS"]);
    if !path.is_empty() {
        list(&mut roff, definition, path, &names);
        return roff;
    }
    for group in help_text::groups() {
        let names: Vec<&str> = group.commands().collect();
        roff.control("SS", [group.title]);
        list(&mut roff, definition, path, &names);
    }
    roff
}

fn list(roff: &mut Roff, definition: &Definition, path: &str, names: &[&str]) {
    for name in names {
        let about = definition.find_subcommand(name).and_then(Definition::get_about);
        let below = format!("{path} {name}");
        roff.control("TP", []).text(reference(below.trim_start()));
        roff.text([roman(about.map(ToString::to_string).unwrap_or_default())]);
    }
}

/// A reference to another page.
fn reference(path: &str) -> Vec<Inline> {
    vec![bold(name_of(path)), roman("(1)")]
}

fn statuses(help: Option<&HelpText>) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["EXIT STATUS"]);
    for (status, when) in &help.unwrap_or(help_text::shared("@statuses")).statuses {
        roff.control("TP", []).text([bold(status.to_string())]).text([roman(*when)]);
    }
    roff
}

fn variables(definition: &Definition, help: Option<&HelpText>) -> Roff {
    let has_driver = definition.get_arguments().any(|argument| argument.get_long() == Some("driver"));
    let Some(help) = help else { return terms("ENVIRONMENT", &help_text::every_variable()) };
    let drivers: &[_] = if has_driver { &help_text::shared("@drivers").variables } else { &[] };
    terms("ENVIRONMENT", &[drivers, &help.variables].concat())
}

/// A section of names with their meaning; empty if there are none.
fn terms(title: &str, terms: &[(&str, &str)]) -> Roff {
    let mut roff = Roff::new();
    if !terms.is_empty() {
        roff.control("SH", [title]);
    }
    for (name, meaning) in terms {
        roff.control("TP", []).text([bold(*name)]).text([roman(*meaning)]);
    }
    roff
}

fn examples(help: &HelpText) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["EXAMPLES"]);
    for (at, (what, words)) in help.examples.iter().enumerate() {
        if at > 0 {
            roff.control("PP", []);
        }
        roff.text([roman(format!("{what}:"))]);
        roff.control("PP", []).control("RS", ["4"]).control("nf", []).text([roman(*words)]);
        roff.control("fi", []).control("RE", []);
    }
    roff
}

fn see_also(path: &str, help: Option<&HelpText>) -> Roff {
    let mut pages: Vec<&str> = help.map(|help| help.see.clone()).unwrap_or_default();
    if let Some((parent, _)) = path.rsplit_once(' ').filter(|(parent, _)| !pages.contains(parent)) {
        pages.push(parent);
    }
    if !path.is_empty() {
        pages.push("");
    }
    let mut roff = Roff::new();
    if pages.is_empty() {
        return roff;
    }
    roff.control("SH", ["SEE ALSO"]);
    let mut line: Vec<Inline> = Vec::new();
    for page in pages {
        if !line.is_empty() {
            line.push(roman(", "));
        }
        line.extend(reference(page));
    }
    roff.text(line);
    if let Some(help) = help.filter(|help| !help.docs.is_empty()) {
        let text = format!("The numbers and terms are explained in {}.", help.documents());
        roff.control("PP", []).text([roman(text)]);
    }
    roff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_the_options_of_its_command() {
        let option = clap::Arg::new("seed").long("seed").help("Where chance begins");
        let command = Definition::new("throughput").about("Measure calls").arg(option);
        let program = Definition::new(NAME).subcommand(command);
        for words in ["throughput", "binderperf-throughput"] {
            let page = of(&[words.to_owned()], &program).expect("a page");
            assert_eq!(page.name, "binderperf-throughput");
            assert!(page.text.contains("\nbinderperf\\-throughput \\- Measure calls\n"), "{}", page.text);
            assert!(
                page.text.contains("Where chance begins") && page.text.contains("SEE ALSO"),
                "{}",
                page.text
            );
        }
        assert!(of(&["thruput".to_owned()], &program).is_err());
    }
}
