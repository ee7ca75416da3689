//! Networks with one element, named on the command line like mahimahi's shells: `delay MS`, `loss up|down P`,
//! `onoff up|down ON OFF`, `link UP DOWN`, `cellular UP-LIGHT DOWN-LIGHT UP-HEAVY DOWN-HEAVY`. Several elements can be
//! combined, from the outermost to the innermost, as nested emulators.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};

use airpace_run::{Choice, shell};
use airpace_sim::Scenario;
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
    /// The direction.
    #[arg(value_enum)]
    direction: Way,
    /// The loss probability, from 0 to 1.
    probability: f64,
    #[command(flatten)]
    rest: Rest,
}

/// Interrupts one direction repeatedly, like `mm-onoff`, with exponentially distributed on and off times.
#[derive(clap::Args)]
#[command(before_help = "Example: airpace emu onoff down 4 0.5 -- curl -O URL")]
pub struct OnOff {
    /// The direction.
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

/// Minimum round trip time of a network without delay, in ms: a microsecond.
const NO_DELAY_MS: f64 = 0.001;

impl Form {
    /// Runs programs behind this link.
    ///
    /// # Errors
    /// Errors of [`run::run`]; a text that is not a network.
    pub fn run(&self, out: &mut dyn Write) -> anyhow::Result<Verdict> {
        let nothing = LastHopOptions::default();
        let (name, table, last_hop, rest) = match self {
            Form::Link(link) => ("link", link.table()?, &link.last_hop, &link.rest),
            Form::Delay(delay) => ("delay", delay.table(), &nothing, &delay.rest),
            Form::Loss(loss) => ("loss", loss.table(), &nothing, &loss.rest),
            Form::Onoff(onoff) => ("onoff", onoff.table(), &nothing, &onoff.rest),
            Form::Cellular(cellular) => ("cellular", cellular.table()?, &nothing, &cellular.rest),
        };
        let text = toml::to_string(&with_usual(name, table))
            .context("the network cannot be written as a scenario")?;
        let scenario = Scenario::load(&text, name, &[])?;
        let choice = Choice { argument: self.argument(), scenario, set: vec![] };
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

impl Form {
    /// The form with its values, as typed by the user.
    fn argument(&self) -> String {
        let quoted = |path: &Path| shell::quote(&path.to_string_lossy());
        match self {
            Form::Link(link) => format!("link {} {}", quoted(&link.uplink), quoted(&link.downlink)),
            Form::Delay(delay) => format!("delay {}", delay.milliseconds),
            Form::Loss(loss) => format!("loss {} {}", loss.direction.word(), loss.probability),
            Form::Onoff(onoff) => format!("onoff {} {} {}", onoff.direction.word(), onoff.on_s, onoff.off_s),
            Form::Cellular(cellular) => {
                let files =
                    [&cellular.up_light, &cellular.down_light, &cellular.up_heavy, &cellular.down_heavy];
                format!("cellular {}", files.map(|file| quoted(file)).join(" "))
            }
        }
    }
}

/// Adds the keys that every scenario needs to the table.
fn with_usual(name: &str, mut table: toml::Table) -> toml::Table {
    table.insert("name".to_owned(), name.into());
    // The end of the programs ends an emulated run, so this duration has no effect.
    table.insert("duration_s".to_owned(), 60.into());
    if !table.contains_key("flow") {
        table.insert("flow".to_owned(), flow(NO_DELAY_MS));
    }
    table
}

fn flow(rtt_ms: f64) -> toml::Value {
    toml::Value::Array(vec![toml::Table::from_iter([("rtt_ms".to_owned(), rtt_ms.into())]).into()])
}

impl Delay {
    fn table(&self) -> toml::Table {
        toml::Table::from_iter([("flow".to_owned(), flow((2.0 * self.milliseconds).max(NO_DELAY_MS)))])
    }
}

impl Loss {
    fn table(&self) -> toml::Table {
        self.direction.with("loss", self.probability.into())
    }
}

impl OnOff {
    fn table(&self) -> toml::Table {
        let times =
            [("on_mean_s".to_owned(), self.on_s.into()), ("off_mean_s".to_owned(), self.off_s.into())];
        self.direction.with("on_off", toml::Table::from_iter(times).into())
    }
}

impl Way {
    fn word(self) -> &'static str {
        if self == Way::Up { "up" } else { "down" }
    }

    /// A scenario with this key for the wire of this direction.
    fn with(self, key: &str, value: toml::Value) -> toml::Table {
        // The data of a flow is sent on the downlink.
        let wire = if self == Way::Down { "forward" } else { "reverse" };
        let config = toml::Table::from_iter([(key.to_owned(), value)]);
        toml::Table::from_iter([(wire.to_owned(), config.into())])
    }
}

impl Link {
    fn table(&self) -> anyhow::Result<toml::Table> {
        let one = |trace, queue, column: &Option<String>| {
            let mut hop = hop(trace, queue, self.allow_holes)?;
            hop.extend(column.iter().map(|column| ("column".to_owned(), column.as_str().into())));
            Ok::<_, anyhow::Error>(hop)
        };
        let mut trace = one(&self.downlink, &self.downlink_queue, &self.downlink_column)?;
        trace.insert("back".to_owned(), one(&self.uplink, &self.uplink_queue, &self.uplink_column)?.into());
        Ok(toml::Table::from_iter([("trace".to_owned(), trace.into())]))
    }
}

impl Cellular {
    fn table(&self) -> anyhow::Result<toml::Table> {
        let down =
            self.way(&self.down_light, &self.down_heavy, &self.downlink_queue, &self.downlink_offsets)?;
        let up = self.way(&self.up_light, &self.up_heavy, &self.uplink_queue, &self.uplink_offsets)?;
        let ways = toml::Table::from_iter([("down".to_owned(), down.into()), ("up".to_owned(), up.into())]);
        let mut table = toml::Table::from_iter([("cellular".to_owned(), ways.into())]);
        // Only the link delays packets; the link's own parameters contain its delay.
        let long = toml::Table::from_iter([("flow".to_owned(), flow(LONG_MS))]);
        let mut text = with_usual("cellular", table.clone());
        text.extend(long);
        let text = toml::to_string(&text).context("the network cannot be written as a scenario")?;
        let plan = Scenario::load(&text, "cellular", &[])?.prepare_endless()?.devices_network()?;
        // The time is rounded up to a microsecond, which is the minimum that is accepted.
        let rtt_ms = plan.least_rtt(0).as_nanos().div_ceil(1000) as f64 * 1e-3;
        table.insert("flow".to_owned(), flow(rtt_ms.max(NO_DELAY_MS)));
        Ok(table)
    }

    fn way(
        &self,
        light: &Path,
        heavy: &Path,
        queue: &str,
        offsets: &Option<PathBuf>,
    ) -> anyhow::Result<toml::Table> {
        let with_file = |path: &Path| Ok::<_, anyhow::Error>(toml::Table::from_iter([file(path)?]));
        let mut link = toml::Table::from_iter([("buffer".to_owned(), buffer(queue)?.into())]);
        if let Some(ms) = self.light_after {
            link.insert("light_after_ms".to_owned(), i64::from(ms).into());
        }
        let mut heavy = with_file(heavy)?;
        heavy.insert("allow_holes".to_owned(), self.allow_holes.into());
        let mut table = toml::Table::from_iter([
            ("light".to_owned(), with_file(light)?.into()),
            ("heavy".to_owned(), heavy.into()),
            ("link".to_owned(), link.into()),
        ]);
        if let Some(offsets) = offsets {
            table.insert("offsets".to_owned(), file(offsets)?.1);
        }
        Ok(table)
    }
}

/// A round trip that is longer than any base delay, in ms: a minute.
const LONG_MS: f64 = 60_000.0;

/// The table of a trace with its queue.
fn hop(trace: &Path, queue: &str, allow_holes: bool) -> anyhow::Result<toml::Table> {
    let link = toml::Table::from_iter([("buffer".to_owned(), buffer(queue)?.into())]);
    Ok(toml::Table::from_iter([
        file(trace)?,
        ("allow_holes".to_owned(), allow_holes.into()),
        ("link".to_owned(), link.into()),
    ]))
}

/// The key `file` of a table, with the absolute path of this file.
fn file(path: &Path) -> anyhow::Result<(String, toml::Value)> {
    if path == Path::new("-") {
        return Ok(("file".to_owned(), "-".into()));
    }
    let absolute =
        std::path::absolute(path).with_context(|| format!("there is no file `{}`", path.display()))?;
    let text = absolute.to_str().with_context(|| format!("`{}` is not text in UTF-8", path.display()))?;
    Ok(("file".to_owned(), text.into()))
}

/// Converts a queue, such as `droptail:packets=100`, to the keys of a buffer.
fn buffer(text: &str) -> anyhow::Result<toml::Table> {
    let mut words = text.split([':', ',']).map(str::trim).filter(|word| !word.is_empty());
    let mut table = toml::Table::new();
    let discipline = match words.next() {
        Some("infinite" | "droptail") => "drop_tail",
        Some("drophead") => "drop_head",
        Some("codel") => "codel",
        Some("pie") => "pie",
        _ => bail!(
            "`{text}` is no queue; give infinite, droptail, drophead, codel or pie, as in droptail:packets=100"
        ),
    };
    table.insert("discipline".to_owned(), discipline.into());
    for word in words {
        let value = |value: &str| value.trim().parse::<i64>().ok().filter(|&number| number >= 0);
        let read = word.split_once('=').and_then(|(key, text)| Some((key.trim(), value(text)?)));
        match read {
            Some((key @ ("packets" | "bytes"), number)) => drop(table.insert(key.to_owned(), number.into())),
            Some((key @ ("target" | "interval"), number)) => {
                table.insert(format!("{key}_ms"), (number as f64).into());
            }
            _ => bail!(
                "`{word}` says nothing about a queue; give packets=N, bytes=N, target=MS or interval=MS"
            ),
        }
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_are_read_as_mahimahi_names_them() {
        let keys = |text: &str| toml::to_string(&buffer(text).unwrap()).unwrap().replace('\n', " ");
        assert_eq!(keys("infinite"), "discipline = \"drop_tail\" ");
        assert_eq!(keys("droptail:packets=100"), "discipline = \"drop_tail\" packets = 100 ");
        assert_eq!(
            keys("codel:packets=50,target=5,interval=100"),
            "discipline = \"codel\" interval_ms = 100.0 packets = 50 target_ms = 5.0 "
        );
        assert!(buffer("red").unwrap_err().to_string().contains("is no queue"));
        assert!(buffer("droptail:slots=3").unwrap_err().to_string().contains("says nothing"));
        assert!(buffer("droptail:packets=-3").is_err());
    }
}
