//! `airpace diag`: reads a modem's diagnostic port, from recorded logs and live.

mod bandwidth;
mod decode;
mod encode;
mod granularity;
mod guard;
mod info;
mod input;
mod modem;
pub mod port;
mod serve;
mod simulated;
mod watch;

use std::io::Write;

pub use port::parse_duration;

use super::Verdict;

/// Reads a modem's diagnostic port, from recorded logs and live.
#[derive(clap::Args)]
#[command(before_help = "Example: airpace diag info phone.qmdl")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Info(info::Args),
    Decode(decode::Args),
    Encode(encode::Args),
    Bandwidth(bandwidth::Args),
    Watch(watch::Args),
    Serve(serve::Args),
    Granularity(granularity::Args),
    Modem(modem::Args),
    Guard(guard::Args),
}

/// Runs the command.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    match &args.command {
        Command::Info(args) => info::run(args, out),
        Command::Decode(args) => decode::run(args, out),
        Command::Encode(args) => encode::run(args, out),
        Command::Bandwidth(args) => bandwidth::run(args, out),
        Command::Watch(args) => watch::run(args, out),
        Command::Serve(args) => serve::run(args, out),
        Command::Granularity(args) => granularity::run(args, out),
        Command::Modem(args) => modem::run(args, out),
        Command::Guard(args) => guard::run(args),
    }
}
