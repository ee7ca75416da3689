//! Networks with one element, named on the command line like mahimahi's shells: `delay MS`, `loss up|down P`,
//! `onoff up|down ON OFF`, `link UP DOWN`, `cellular UP-LIGHT DOWN-LIGHT UP-HEAVY DOWN-HEAVY`. Several elements can be
//! combined, from the outermost to the innermost, as nested emulators.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;

use airpace_core::Direction;
use airpace_lab::shells::{self, Shell};
use airpace_run::Choice;
use anyhow::{Context, bail};
use clap::Subcommand as _;

use super::super::Verdict;
use super::{LastHopOptions, Options, compose, run, words};

/// A network with one element.
#[derive(clap::Subcommand)]
pub enum Form {
    Link(Link),
    Delay(Delay),
    Loss(Loss),
    Onoff(OnOff),
    Cellular(Cellular),
}

/// Emulates a link that delivers packets according to a recorded trace per direction, like `mm-link`.
///
/// A trace is a list of delivery opportunities of 1504 bytes, each given by its time in ms, or a table of rates with a
/// header. Files compressed by gzip are decompressed, and `-` is standard input.
#[derive(clap::Args)]
#[command(
    before_help = "Example: airpace emu link UP.trace DOWN.trace --downlink-queue droptail:packets=100 -- curl -O URL"
)]
pub struct Link {
    /// The trace of the uplink, from the device.
    uplink: PathBuf,
    /// The trace of the downlink, to the device.
    downlink: PathBuf,
    /// The uplink's queue: infinite, droptail, drophead, codel or pie.
    ///
    /// Parameters follow after a colon: `:packets=N`, `:bytes=N`, `:target=MS`, `:interval=MS`.
    #[arg(long, value_name = "QUEUE", default_value = "infinite")]
    uplink_queue: String,
    /// The downlink's queue.
    #[arg(long, value_name = "QUEUE", default_value = "infinite")]
    downlink_queue: String,
    /// The column of rates in the uplink's table, with its unit if the name contains none: `UL_bitrate:kbps`.
    #[arg(long, value_name = "NAME[:UNIT]")]
    uplink_column: Option<String>,
    /// The column of rates in the downlink's table, with its unit if the name contains none.
    #[arg(long, value_name = "NAME[:UNIT]")]
    downlink_column: Option<String>,
    /// Accepts traces with outages of 5 s or more, as mahimahi does.
    #[arg(long)]
    allow_holes: bool,
    #[command(flatten)]
    last_hop: LastHopOptions,
    #[command(flatten)]
    rest: Rest,
}

/// Delays packets in each direction, like `mm-delay`.
#[derive(clap::Args)]
#[command(before_help = "Example: airpace emu delay 20 -- ping -c 3 100.64.0.1")]
pub struct Delay {
    /// Delay of every packet in each direction, in milliseconds.
    #[arg(value_parser = milliseconds)]
    milliseconds: f64,
    #[command(flatten)]
    rest: Rest,
}

/// Drops random packets in one direction, like `mm-loss`.
#[derive(clap::Args)]
#[command(before_help = "Example: airpace emu loss down 0.01 -- curl -O URL")]
pub struct Loss {
    /// Direction of the path.
    #[arg(value_enum)]
    direction: Way,
    /// The loss probability, from 0 to 1.
    #[arg(value_parser = probability)]
    probability: f64,
    #[command(flatten)]
    rest: Rest,
}

/// Interrupts one direction repeatedly, like `mm-onoff`, with exponentially distributed on and off times.
#[derive(clap::Args)]
#[command(before_help = "Example: airpace emu onoff down 4 0.5 -- curl -O URL")]
pub struct OnOff {
    /// Direction of the path.
    #[arg(value_enum)]
    direction: Way,
    /// Mean on time in seconds.
    on_s: f64,
    /// Mean off time in seconds; packets that arrive during an off time are lost.
    off_s: f64,
    #[command(flatten)]
    rest: Rest,
}

/// A direction.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Way {
    /// From the device.
    #[value(alias = "uplink")]
    Up,
    /// To the device.
    #[value(alias = "downlink")]
    Down,
}

/// Emulates a cellular link from recordings under light and under heavy load, like `mm-cellular` of CellReplay.
///
/// The link serves the first packets after an idle time as in the light-load recording, and further packets as in the
/// heavy-load recording. A light-load recording has a line `TIME DELAY CHANCE...` (in ms) for each train of packets: its
/// time, the delay of its first packet, and the delivery opportunities of the others. A heavy-load recording is a list of
/// delivery opportunities, as for `link`.
#[derive(clap::Args)]
#[command(
    before_help = "Example: airpace emu cellular up-light down-light up-heavy.pdo down-heavy.pdo -- curl -O URL"
)]
pub struct Cellular {
    /// The light-load recording of the uplink, from the device.
    up_light: PathBuf,
    /// The light-load recording of the downlink, to the device.
    down_light: PathBuf,
    /// The heavy-load recording of the uplink, with a full queue.
    up_heavy: PathBuf,
    /// The heavy-load recording of the downlink, with a full queue.
    down_heavy: PathBuf,
    /// The uplink's queue, as for `link`.
    #[arg(long, value_name = "QUEUE", default_value = "infinite")]
    uplink_queue: String,
    /// The downlink's queue.
    #[arg(long, value_name = "QUEUE", default_value = "infinite")]
    downlink_queue: String,
    /// Additional delay by packet size on the uplink: lines `BYTES MS` in steps of 100 bytes.
    #[arg(long, value_name = "FILE", alias = "psize-latency-offset-up")]
    uplink_offsets: Option<PathBuf>,
    /// Additional delay by packet size on the downlink: lines `BYTES MS` in steps of 100 bytes.
    #[arg(long, value_name = "FILE", alias = "psize-latency-offset-down")]
    downlink_offsets: Option<PathBuf>,
    /// Accepts recordings with outages of 5 s or more, as CellReplay does.
    #[arg(long)]
    allow_holes: bool,
    /// Idle time in ms after which the link is lightly loaded again.
    #[arg(long, value_name = "MS")]
    light_after: Option<u32>,
    #[command(flatten)]
    rest: Rest,
}

/// Options and arguments of every form.
#[derive(clap::Args)]
struct Rest {
    /// The command is an inner form with its program.
    #[arg(long = compose::INSIDE, id = compose::INSIDE, hide = true)]
    inside: bool,
    #[command(flatten)]
    options: Options,
    /// The program and its arguments, after `--`. [default: a shell]
    ///
    /// Further forms with their own options may precede `--`; each form is nested inside the previous form: `loss up 0.01
    /// link UP DOWN --downlink-queue codel -- CMD`.
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// A time in ms that may be 0.
fn milliseconds(text: &str) -> Result<f64, String> {
    let value = text.parse::<f64>().ok().filter(|value| value.is_finite() && *value >= 0.0);
    value.ok_or_else(|| "give a time in ms, 0 or more".to_owned())
}

/// A probability, from 0 to 1.
fn probability(text: &str) -> Result<f64, String> {
    let value = text.parse::<f64>().ok().filter(|value| (0.0..=1.0).contains(value));
    value.ok_or_else(|| "give a probability from 0 to 1; 0.01 is one in a hundred".to_owned())
}

impl Form {
    /// Runs programs behind this link.
    ///
    /// # Errors
    /// As [`run::run`]; text that is no network.
    pub fn run(&self, out: &mut dyn Write) -> anyhow::Result<Verdict> {
        let nothing = LastHopOptions::default();
        let (shell, last_hop, rest) = match self {
            Form::Link(link) => (Shell::Link(link.shell()), &link.last_hop, &link.rest),
            Form::Delay(Delay { milliseconds, rest }) => {
                (Shell::Delay { milliseconds: *milliseconds }, &nothing, rest)
            }
            Form::Loss(Loss { direction, probability, rest }) => {
                let shell = Shell::Loss { direction: direction.direction(), probability: *probability };
                (shell, &nothing, rest)
            }
            Form::Onoff(OnOff { direction, on_s, off_s, rest }) => {
                let shell = Shell::OnOff { direction: direction.direction(), on_s: *on_s, off_s: *off_s };
                (shell, &nothing, rest)
            }
            Form::Cellular(cellular) => (Shell::Cellular(cellular.shell()), &nothing, &cellular.rest),
        };
        let choice = Choice { argument: shell.argument(), scenario: shell.scenario()?, set: vec![] };
        let command = words(&rest.command)?;
        if !rest.inside {
            return run::run(choice, &rest.options, last_hop, &command, out);
        }
        if let [first, ..] = &command[..]
            && !Form::has_subcommand(first)
            && super::super::scenario::load(first, &[]).is_err()
        {
            bail!(
                "`{first}` is neither link, delay, loss, onoff or cellular, nor a scenario; the program stands behind `--`"
            );
        }
        let program = std::env::current_exe().context("the program does not find itself")?;
        let program = program.to_str().context("the program's path is not text in UTF-8")?.to_owned();
        let inner: Vec<String> = [program, "emu".to_owned()].into_iter().chain(command).collect();
        run::run(choice, &rest.options, last_hop, &inner, out)
    }
}

impl Way {
    fn direction(self) -> Direction {
        match self {
            Way::Up => Direction::Uplink,
            Way::Down => Direction::Downlink,
        }
    }
}

impl Link {
    fn shell(&self) -> shells::Link {
        shells::Link {
            traces: [self.uplink.clone(), self.downlink.clone()],
            queues: [self.uplink_queue.clone(), self.downlink_queue.clone()],
            columns: [self.uplink_column.clone(), self.downlink_column.clone()],
            allow_holes: self.allow_holes,
        }
    }
}

impl Cellular {
    fn shell(&self) -> shells::Cellular {
        shells::Cellular {
            light: [self.up_light.clone(), self.down_light.clone()],
            heavy: [self.up_heavy.clone(), self.down_heavy.clone()],
            queues: [self.uplink_queue.clone(), self.downlink_queue.clone()],
            offsets: [self.uplink_offsets.clone(), self.downlink_offsets.clone()],
            allow_holes: self.allow_holes,
            light_after_ms: self.light_after,
        }
    }
}
