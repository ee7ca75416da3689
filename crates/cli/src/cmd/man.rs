//! `airpace man`: manual pages, generated from the texts of `--help`.

use std::io::Write;
use std::path::PathBuf;

use clap::CommandFactory;

use super::{Verdict, outputs};

/// Prints the manual page of `airpace`, or writes the pages of all commands to the folder --out.
#[derive(clap::Args)]
#[command(
    before_help = "Example: airpace man | man -l -\n         airpace man --out ~/.local/share/man/man1"
)]
pub struct Args {
    /// Folder for one page per command (`airpace.1`, `airpace-sim.1`, …), created if missing.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Writes the page, or the pages.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let Some(folder) = &args.out else {
        out.write_all(&page(&whole())?)?;
        return Ok(Verdict::Fine);
    };
    outputs::folder("--out", folder)?;
    let pages = pages()?;
    for (name, text) in &pages {
        outputs::write("--out", &folder.join(format!("{name}.1")), text)?;
    }
    writeln!(out, "{} manual pages are in {}", pages.len(), folder.display())?;
    Ok(Verdict::Fine)
}

/// The manual page of every command, with its name: `airpace`, `airpace-sim`, ….
///
/// # Errors
/// No error that a user can cause: pages are written into memory.
pub fn pages() -> anyhow::Result<Vec<(String, Vec<u8>)>> {
    let mut pages = Vec::new();
    collect(&whole(), &mut pages)?;
    Ok(pages)
}

/// The command line definition, completed by clap.
fn whole() -> clap::Command {
    let mut command = crate::Cli::command().disable_help_subcommand(true);
    command.build();
    command
}

/// Adds the pages of a command and of its subcommands, with their names.
fn collect(command: &clap::Command, pages: &mut Vec<(String, Vec<u8>)>) -> anyhow::Result<()> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    pages.push((name, page(command)?));
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        collect(sub, pages)?;
    }
    Ok(())
}

/// One manual page, with the example from the start of `--help`.
fn page(command: &clap::Command) -> anyhow::Result<Vec<u8>> {
    let manual = clap_mangen::Man::new(command.clone()).manual("airpace");
    let mut page = Vec::new();
    manual.render_title(&mut page)?;
    manual.render_name_section(&mut page)?;
    manual.render_synopsis_section(&mut page)?;
    if let Some(example) = command.get_before_help() {
        writeln!(page, ".SH EXAMPLES\n.nf")?;
        for line in example.to_string().lines() {
            let line = line.trim_start_matches("Example:").trim();
            writeln!(page, "{}", line.replace('\\', "\\e").replace('-', "\\-"))?;
        }
        writeln!(page, ".fi")?;
    }
    manual.render_description_section(&mut page)?;
    if command.get_arguments().any(|argument| !argument.is_hide_set()) {
        manual.render_options_section(&mut page)?;
    }
    if command.has_subcommands() {
        manual.render_subcommands_section(&mut page)?;
    }
    manual.render_extra_section(&mut page)?;
    manual.render_version_section(&mut page)?;
    Ok(page)
}
