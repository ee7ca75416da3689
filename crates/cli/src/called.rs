//! How the program was called, so that the user can paste the commands in its hints.
//!
//! From a checkout, the program's name is `./airpace`: the launcher sets `AIRPACE_COMMAND` for this purpose. A binary that
//! was started by its path uses this path. Errors and printed texts get their commands from [`command`] and [`name`];
//! [`in_help`] renames those in clap's texts.

use std::ffi::OsString;
use std::path::Path;
use std::sync::OnceLock;

use clap::CommandFactory;

/// The program's name in PATH, in help texts of the source and on other machines.
const PLAIN: &str = "airpace";

/// The program as the user called it, quoted for a shell: `airpace`, `./airpace`, `/opt/airpace/bin/airpace`.
pub fn name() -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(|| named(std::env::var_os("AIRPACE_COMMAND"), std::env::args_os().next()))
}

/// The program's name for run folders, which outlive the shell: `./airpace` if it was called from a checkout (from any
/// working folder), else `airpace`.
pub fn lasting_name() -> &'static str {
    if std::env::var_os("AIRPACE_CHECKOUT").is_some() { "./airpace" } else { PLAIN }
}

/// The checkout whose launcher started the program.
pub fn checkout() -> Option<std::path::PathBuf> {
    std::env::var_os("AIRPACE_CHECKOUT").map(Into::into)
}

fn named(told: Option<OsString>, argument: Option<OsString>) -> String {
    let told = told.filter(|name| !name.is_empty());
    // A program found in PATH has a name without a slash, even if the name is a link.
    let named = told.or(argument.filter(|name| Path::new(name).components().count() > 1));
    named.map_or_else(|| PLAIN.to_owned(), |name| airpace_run::shell::quote(&name.to_string_lossy()))
}

/// A command of the program as the user must type it, between backticks: `./airpace list schemes`.
pub fn command(words: &str) -> String {
    format!("`{} {words}`", name())
}

/// A command line that starts with `airpace`, as the user must type it.
pub fn typed(line: &str) -> String {
    line.strip_prefix(PLAIN).map_or_else(|| line.to_owned(), |rest| format!("{}{rest}", name()))
}

/// The command line, with every airpace command in its help in the form in which the user must type it.
pub fn in_help(command: clap::Command) -> clap::Command {
    if name() == PLAIN { command } else { rename_help(command, name()).bin_name(name()) }
}

/// Replaces `airpace` by `name` in a help text wherever the name of an airpace command follows. Only help texts are renamed:
/// clap's attributes are static texts, and the manual shows them unchanged.
fn renamed(text: &str, name: &str) -> String {
    let commands = commands();
    let mut parts = text.split("airpace ");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let word = part.split(|c: char| !c.is_ascii_lowercase()).next().unwrap_or_default();
        let begins = !out.ends_with(|c: char| c.is_alphanumeric() || "-_./".contains(c));
        let is_command = begins && commands.iter().any(|command| command == word);
        out.push_str(if is_command { name } else { PLAIN });
        out.push(' ');
        out.push_str(part);
    }
    out
}

/// The names of airpace's commands.
fn commands() -> &'static [String] {
    static COMMANDS: OnceLock<Vec<String>> = OnceLock::new();
    COMMANDS.get_or_init(|| {
        crate::Cli::command().get_subcommands().map(|command| command.get_name().to_owned()).collect()
    })
}

fn rename_help(mut command: clap::Command, name: &str) -> clap::Command {
    let new = |text: Option<&clap::builder::StyledStr>| text.map(|text| renamed(&text.to_string(), name));
    if let Some(text) = new(command.get_overridden_usage()) {
        command = command.override_usage(text);
    }
    if let Some(text) = new(command.get_before_help()) {
        command = command.before_help(text);
    }
    if let Some(text) = new(command.get_about()) {
        command = command.about(text);
    }
    if let Some(text) = new(command.get_long_about()) {
        command = command.long_about(text);
    }
    command = command.mut_args(|mut argument| {
        if let Some(text) = new(argument.get_help()) {
            argument = argument.help(text);
        }
        if let Some(text) = new(argument.get_long_help()) {
            argument = argument.long_help(text);
        }
        argument
    });
    command.mut_subcommands(|sub| rename_help(sub, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_said_as_the_user_must_type_them() {
        let said = renamed(
            "see `airpace list schemes`: airpace decode FILE | airpace trace info -; this airpace was built",
            "./airpace",
        );
        assert_eq!(
            said,
            "see `./airpace list schemes`: ./airpace decode FILE | ./airpace trace info -; this airpace was built"
        );
        assert_eq!(renamed("Run ./airpace demo", "./airpace"), "Run ./airpace demo", "once is enough");
        assert_eq!(renamed("airpace: airpace sim", "x/airpace"), "airpace: x/airpace sim");
    }

    #[test]
    fn the_name_is_what_the_launcher_tells_or_the_path_that_was_typed() {
        let named = |told: Option<&str>, argument: Option<&str>| {
            super::named(told.map(OsString::from), argument.map(OsString::from))
        };
        assert_eq!(named(Some("./airpace"), Some("/somewhere/target/release/airpace")), "./airpace");
        assert_eq!(named(None, Some("airpace")), "airpace");
        assert_eq!(named(None, Some("bin/airpace")), "bin/airpace");
        assert_eq!(named(None, Some("/a folder/airpace")), "'/a folder/airpace'");
        assert_eq!(named(None, None), "airpace");
    }

    #[test]
    fn help_says_it_too() {
        let mut command = rename_help(crate::Cli::command(), "./airpace").bin_name("./airpace");
        command.build();
        let sim = command.find_subcommand_mut("sim").expect("sim");
        let help = sim.render_long_help().to_string();
        assert!(help.starts_with("Example: ./airpace sim competitor"), "{help}");
        assert!(
            help.contains("Usage: ./airpace sim ") && help.contains("`./airpace list scenarios`"),
            "{help}"
        );
        assert!(!help.contains(" airpace sim"), "{help}");
        let send = command.find_subcommand_mut("send").expect("send");
        let usage = send.render_usage().to_string();
        assert!(usage.starts_with("Usage: ./airpace send "), "an overridden usage too: {usage}");
    }
}
