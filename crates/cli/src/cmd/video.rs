//! `airpace video`: adaptive video over real TCP connections.

mod play;
mod serve;

use std::io::Write;

use airpace_video::{PlayerConfig, Viewing};
use anyhow::bail;

use super::{Verdict, complete, scenario};

/// Serves and plays adaptive video over TCP, with the player of the simulator.
///
/// The congestion control is that of the server's kernel. Server and client run on two machines, behind `airpace emu`, or with
/// `airpace proxy` between them.
#[derive(clap::Args)]
#[command(
    before_help = "Example: airpace emu video-adaptive --server 'airpace video serve' -- sh -c 'airpace video play \
                         $AIRPACE_BASE'"
)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Serve(serve::Args),
    Play(play::Args),
}

/// Runs the command.
///
/// # Errors
/// The arguments are invalid, or the server cannot be started.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    match &args.command {
        Command::Serve(args) => serve::run(args, out),
        Command::Play(args) => play::run(args, out),
    }
}

/// The scenario that describes video and player.
#[derive(clap::Args)]
struct Source {
    /// Takes video and player from the first flow with a video of this scenario. [default: the default video]
    #[arg(long, value_name = "SCENARIO", add = complete::scenario())]
    scenario: Option<String>,
    /// Sets a key of the scenario by its dotted path; may be given several times.
    #[arg(long, value_name = "KEY=VALUE", requires = "scenario", value_parser = scenario::key_and_value, add = complete::key())]
    set: Vec<(String, String)>,
}

/// The video and the player of a flow.
#[derive(Default)]
struct Watched {
    /// Index of the flow in its scenario.
    flow: u32,
    player: PlayerConfig,
    viewing: Viewing,
}

impl Source {
    /// Loads the scenario. Without one, the video and the player have their defaults.
    fn load(&self) -> anyhow::Result<Watched> {
        let Some(name) = &self.scenario else { return Ok(Watched::default()) };
        let scenario = scenario::load(name, &self.set)?;
        for (index, flow) in (0..).zip(&scenario.flow) {
            if let Some(player) = &flow.video {
                let viewing = flow.viewing.unwrap_or_default();
                return Ok(Watched { flow: index, player: player.clone(), viewing });
            }
        }
        bail!(
            "no flow of `{name}` has a video; give a scenario such as video-adaptive, or leave --scenario out"
        )
    }
}
