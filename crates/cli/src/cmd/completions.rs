//! `airpace completions`: what a shell needs to complete commands and options.

use std::io::Write;

use clap::CommandFactory;

use super::Verdict;

/// Writes completions for a shell.
#[derive(clap::Args)]
#[command(
    before_help = "Example: airpace completions bash > ~/.local/share/bash-completion/completions/airpace"
)]
pub struct Args {
    /// The shell.
    #[arg(value_enum)]
    shell: clap_complete::Shell,
}

/// Writes the script.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    // clap's generator panics where a write fails, and a closed pipe is no reason to.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::Cli::command(), "airpace", &mut script);
    out.write_all(&script)?;
    Ok(Verdict::Fine)
}
