//! The whole program as documented.
//! Not here: one command's text (`help_text`).

use clap::Command as Definition;

use crate::{NAME, help_text};

/// Options that commands share, by path.
type More = fn(Definition, &str) -> Definition;
/// The definition that parses the arguments of a command, by path, if the program's own passes them on.
type OwnParser = fn(&str) -> Option<Definition>;

/// Adds the help texts, and the list of commands in groups, to a definition of the whole program.
pub fn with_help_text(definition: Definition, more: More) -> Definition {
    let groups = groups(&definition);
    let statuses = help_text::listed(&help_text::shared("@statuses").statuses);
    let template = format!(
        "{{about}}\n\n{{usage-heading}} {{usage}}\n\n{groups}Options:\n{{options}}\n\nExit status:\n{statuses}\n\
         More about a command: {NAME} COMMAND --help. A first look: {NAME} run --quick\n"
    );
    help_text::add_to(definition, "", more).help_template(template)
}

/// The commands in their groups, each with its description.
fn groups(definition: &Definition) -> String {
    let mut text = String::new();
    for group in help_text::groups() {
        text += &format!("{}:\n", group.title);
        for name in group.commands() {
            let about = definition.find_subcommand(name).and_then(Definition::get_about);
            text += &format!("  {name:<14} {}\n", about.map(ToString::to_string).unwrap_or_default());
        }
        text.push('\n');
    }
    text
}

/// The whole program without hidden parts, with every flag of every test and tool.
pub fn shown(whole: &Definition, own_parser: OwnParser, more: More) -> Definition {
    let version = whole.get_version().unwrap_or_default().to_owned();
    let visible = visible(whole, "", own_parser).version(version).disable_help_subcommand(true);
    let mut definition = with_help_text(visible, more);
    definition.build();
    definition
}

/// Rebuilds a command without its hidden parts: clap cannot remove arguments or commands.
fn visible(whole: &Definition, path: &str, own_parser: OwnParser) -> Definition {
    let parser = own_parser(path);
    let source = parser.as_ref().unwrap_or(whole);
    let mut definition = Definition::new(whole.get_name().to_owned());
    if let Some(about) = whole.get_about() {
        definition = definition.about(about.clone());
    }
    if let Some(about) = whole.get_long_about() {
        definition = definition.long_about(about.clone());
    }
    if let Some(name) = whole.get_subcommand_value_name() {
        definition = definition.subcommand_value_name(name.to_owned());
    }
    if let Some(heading) = whole.get_subcommand_help_heading() {
        definition = definition.subcommand_help_heading(heading.to_owned());
    }
    for argument in source.get_arguments().filter(|argument| !argument.is_hide_set()) {
        definition = definition.arg(argument.clone());
    }
    let alone = !source.is_args_conflicts_with_subcommands_set();
    definition = definition.args_conflicts_with_subcommands(!alone).subcommand_negates_reqs(!alone);
    for command in source.get_subcommands().filter(|command| !command.is_hide_set()) {
        let below = format!("{path} {}", command.get_name());
        definition = definition
            .subcommand(visible(command, below.trim_start(), own_parser))
            .subcommand_required(alone);
    }
    definition
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Arg;

    #[test]
    fn what_is_hidden_is_not_shown_and_what_is_passed_on_is() {
        let option = |name: &'static str| Arg::new(name).long(name);
        let tool = Definition::new("tool").about("A tool").arg(option("words").hide(true));
        let probe = Definition::new("probe").hide(true);
        let whole = Definition::new(NAME).version("1").subcommands([tool, probe]);
        let own =
            |path: &str| (path == "tool").then(|| Definition::new("x").arg(Arg::new("seed").long("seed")));
        let shown = shown(&whole, own, |definition, _| definition);
        let names: Vec<&str> = shown.get_subcommands().map(Definition::get_name).collect();
        assert_eq!(names, ["tool"]);
        let tool = shown.find_subcommand("tool").expect("shown");
        let options: Vec<_> = tool.get_arguments().map(|argument| argument.get_id().as_str()).collect();
        assert!(options.contains(&"seed") && !options.contains(&"words"), "{options:?}");
    }
}
