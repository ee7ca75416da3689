//! `airpace completions`: scripts that let a shell complete commands, options and their values.
//!
//! The scripts are short: when Tab is pressed they call the program itself (`airpace complete`), which has the lists of
//! all schemes, presets and scenarios.

use std::io::Write;

use super::Verdict;

/// Prints the completion script of a shell; `airpace install` installs these scripts.
#[derive(clap::Args)]
#[command(
    before_help = "Example: airpace completions bash > ~/.local/share/bash-completion/completions/airpace"
)]
pub struct Args {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

/// A shell for which a completion script exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Shell {
    /// GNU Bash, 4.4 or later.
    Bash,
    /// The Z shell.
    Zsh,
    /// The friendly interactive shell, 3.1 or later.
    Fish,
}

impl Shell {
    /// All shells.
    pub const ALL: [Shell; 3] = [Shell::Bash, Shell::Zsh, Shell::Fish];

    /// The script for this shell.
    pub fn script(self) -> &'static str {
        match self {
            Shell::Bash => include_str!("../../completions/airpace.bash"),
            Shell::Zsh => include_str!("../../completions/_airpace"),
            Shell::Fish => include_str!("../../completions/airpace.fish"),
        }
    }

    /// Path at which this shell searches for the script, relative to a prefix such as `/usr/local`.
    pub fn file(self) -> &'static str {
        match self {
            Shell::Bash => "share/bash-completion/completions/airpace",
            Shell::Zsh => "share/zsh/site-functions/_airpace",
            Shell::Fish => "share/fish/vendor_completions.d/airpace.fish",
        }
    }
}

/// Writes the script.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    out.write_all(args.shell.script().as_bytes())?;
    Ok(Verdict::Fine)
}
