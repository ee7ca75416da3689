//! The `airpace` binary: compares congestion controls over cellular networks.
//!
//! One file per command in `cmd/`. Results go to standard output, everything else to standard error. Exit codes:
//! 0 success, 1 an expectation or a run of a sweep failed, 2 error.

#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

mod called;
mod cmd;
mod explain;
mod installation;
mod results;
mod terminal;

use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use cmd::Verdict;
use terminal::Paint;

/// Allocator of the statically linked (musl) binary. musl's own allocator returns every large buffer to the system and
/// soon requests it again.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Compares congestion controls over cellular networks: simulated cells and recorded traces.
#[derive(Parser)]
#[command(
    name = "airpace",
    version,
    propagate_version = true,
    before_help = "Example: airpace demo\n         airpace sim competitor --scheme pbe,bbr --seeds 1..3",
    after_help = "Exit codes: 0 success, 1 an expectation or a run of a sweep failed, 2 error."
)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Demo(cmd::demo::Args),
    Sim(cmd::sim::Args),
    Sweep(cmd::sweep::Args),
    Reproduce(cmd::reproduce::Args),
    Emu(Box<cmd::emu::Args>),
    EmuInside(cmd::emu::InsideArgs),
    EmuPart(cmd::emu::PartArgs),
    EmuBulk(cmd::emu::bulk::Args),
    Agree(Box<cmd::agree::Args>),
    Recv(Box<cmd::recv::Args>),
    Send(Box<cmd::send::Args>),
    Video(cmd::video::Args),
    List(cmd::list::Args),
    Report(cmd::report::Args),
    Runs(cmd::runs::Args),
    Trace(cmd::trace::Args),
    Diag(cmd::diag::Args),
    Decode(cmd::decode::Args),
    Encode(cmd::encode::Args),
    Sample(cmd::sample::Args),
    Kernel(cmd::kernel::Args),
    Proxy(cmd::proxy::Args),
    Doctor(cmd::doctor::Args),
    Install(cmd::install::Args),
    Uninstall(cmd::install::UninstallArgs),
    Completions(cmd::completions::Args),
    Complete(cmd::complete::Args),
    Man(cmd::man::Args),
}

fn main() -> ExitCode {
    let mut out = Output(std::io::stdout().lock());
    let verdict = match as_typed().command {
        Command::Demo(args) => cmd::demo::run(&args, &mut out),
        Command::Sim(args) => cmd::sim::run(&args, &mut out),
        Command::Sweep(args) => cmd::sweep::run(&args, &mut out),
        Command::Reproduce(args) => cmd::reproduce::run(&args, &mut out),
        Command::Emu(args) => cmd::emu::run(&args, &mut out),
        Command::EmuInside(args) => Ok(cmd::emu::inside(&args)),
        Command::EmuPart(args) => cmd::emu::part(&args, &mut out),
        Command::EmuBulk(args) => cmd::emu::bulk::run(&args, &mut out),
        Command::Agree(args) => cmd::agree::run(&args, &mut out),
        Command::Recv(args) => cmd::recv::run(&args, &mut out),
        Command::Send(args) => cmd::send::run(&args, &mut out),
        Command::Video(args) => cmd::video::run(&args, &mut out),
        Command::List(args) => cmd::list::run(&args, &mut out),
        Command::Report(args) => cmd::report::run(&args, &mut out),
        Command::Runs(args) => cmd::runs::run(&args, &mut out),
        Command::Trace(args) => cmd::trace::run(&args, &mut out),
        Command::Diag(args) => cmd::diag::run(&args, &mut out),
        Command::Decode(args) => cmd::decode::run(&args, &mut out),
        Command::Encode(args) => cmd::encode::run(&args, &mut out),
        Command::Sample(args) => cmd::sample::run(&args, &mut out),
        Command::Kernel(args) => cmd::kernel::run(&args, &mut out),
        Command::Proxy(args) => cmd::proxy::run(&args, &mut out),
        Command::Doctor(args) => cmd::doctor::run(&args, &mut out),
        Command::Install(args) => cmd::install::run(&args, &mut out),
        Command::Uninstall(args) => cmd::install::uninstall(&args, &mut out),
        Command::Completions(args) => cmd::completions::run(&args, &mut out),
        Command::Complete(args) => cmd::complete::run(&args, &mut out),
        Command::Man(args) => cmd::man::run(&args, &mut out),
    };
    match verdict.and_then(|verdict| Ok(out.flush().map(|()| verdict)?)) {
        Ok(Verdict::Fine) => ExitCode::SUCCESS,
        Ok(Verdict::Failed) => ExitCode::from(1),
        Ok(Verdict::Status(status)) => ExitCode::from(status),
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            terminal::say(format_args!("airpace: {}", explain::explained(error.as_ref())));
            ExitCode::from(if error.is::<cmd::NothingFound>() { 1 } else { 2 })
        }
    }
}

/// The parsed command line. Clap writes the help and the messages about invalid arguments; this function prints them
/// and exits.
fn as_typed() -> Cli {
    let mut command = called::in_help(Cli::command());
    let words = cmd::emu::compose::in_order(&command, std::env::args_os().collect());
    let parsed = command.try_get_matches_from_mut(words);
    let cli = parsed
        .and_then(|matches| Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command)));
    cli.unwrap_or_else(|error| {
        if !error.use_stderr() {
            error.exit();
        }
        let told = error.render();
        let told = if Paint::stderr().is_on() { told.ansi().to_string() } else { told.to_string() };
        terminal::say_painted(told.trim_end());
        std::process::exit(2)
    })
}

/// Standard output. Its error messages name standard output, because a command may write to files too.
struct Output(std::io::StdoutLock<'static>);

impl Output {
    fn named(error: std::io::Error) -> std::io::Error {
        std::io::Error::new(error.kind(), format!("cannot write to standard output: {error}"))
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.write(bytes).map_err(Output::named)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush().map_err(Output::named)
    }
}

/// Whether the reader of the output has closed the pipe (`airpace … | head`). A closed pipe is not treated as an error.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause.downcast_ref::<std::io::Error>().is_some_and(|io| io.kind() == std::io::ErrorKind::BrokenPipe)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_help_of_every_command_starts_with_an_example() {
        fn check(command: &mut clap::Command) {
            let help = command.render_long_help().to_string();
            assert!(help.starts_with("Example: airpace"), "`{}` starts with:\n{help}", command.get_name());
            for sub in command.get_subcommands_mut().filter(|sub| sub.get_name() != "help") {
                check(sub);
            }
        }
        let mut command = Cli::command();
        command.build();
        check(&mut command);
    }
}
