//! Networks of one part, named on the command line as mahimahi's shells name them: `delay MS`, `loss up|down P`,
//! `onoff up|down ON OFF`, `link UP DOWN`, `cellular UP-LIGHT DOWN-LIGHT UP-HEAVY DOWN-HEAVY`. Several compose, from the
//! outside in, as nested emulators.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};

use airpace_eval::{Choice, shell};
use airpace_sim::Scenario;
use anyhow::{Context, bail};
use clap::Subcommand as _;

use super::super::Verdict;
use super::{LastHopOptions, Options, compose, run, words};

/// A network of one part.
#[derive(clap::Subcommand)]
pub enum Form {
    Link(Link),
    Delay(Delay),
    Loss(Loss),
    Onoff(OnOff),
    Cellular(Cellular),
}

/// A link in each direction that carries packets when a recorded trace says so, as `mm-link` does.
///
/// A trace is a list of milliseconds, each a chance for 1504 bytes, or a table of rates with a header. Gzip is expanded, and
/// `-` is standard input.
#[derive(clap::Args)]
#[command(
    before_help = "Example: airpace emu link UP.trace DOWN.trace --downlink-queue droptail:packets=100 -- curl -O URL"
)]
pub struct Link {
    /// The trace of the direction from the device.
    uplink: PathBuf,
    /// The trace of the direction to the device.
    downlink: PathBuf,
    /// The uplink's queue: infinite, droptail, drophead, codel or pie, with `:packets=N`, `:bytes=N`, `:target=MS`,
    /// `:interval=MS`.
    #[arg(long, value_name = "QUEUE", default_value = "infinite")]
    uplink_queue: String,
    /// The downlink's queue.
    #[arg(long, value_name = "QUEUE", default_value = "infinite")]
    downlink_queue: String,
    /// Of a table of rates for the uplink: the column of rates, and its unit where the name has none, as in
    /// `UL_bitrate:kbps`.
    #[arg(long, value_name = "NAME[:UNIT]")]
    uplink_column: Option<String>,
    /// The same for the downlink.
    #[arg(long, value_name = "NAME[:UNIT]")]
    downlink_column: Option<String>,
    /// Replays traces in which nothing is delivered for 5 s or more, as mahimahi does.
    #[arg(long)]
    allow_holes: bool,
    #[command(flatten)]
    last_hop: LastHopOptions,
    #[command(flatten)]
    rest: Rest,
}

/// A delay in each direction, as `mm-delay`.
#[derive(clap::Args)]
#[command(before_help = "Example: airpace emu delay 20 -- ping -c 3 100.64.0.1")]
pub struct Delay {
    /// Milliseconds that every packet is delayed, in each direction.
    #[arg(value_parser = milliseconds)]
    milliseconds: f64,
    #[command(flatten)]
    rest: Rest,
}

/// Packets that are lost at random in one direction, as `mm-loss`.
#[derive(clap::Args)]
#[command(before_help = "Example: airpace emu loss down 0.01 -- curl -O URL")]
pub struct Loss {
    /// The direction.
    #[arg(value_enum)]
    direction: Way,
    /// The probability, from 0 to 1.
    probability: f64,
    #[command(flatten)]
    rest: Rest,
}

/// A direction that is cut again and again, as `mm-onoff`: on and off for times that are drawn exponentially.
#[derive(clap::Args)]
#[command(before_help = "Example: airpace emu onoff down 4 0.5 -- curl -O URL")]
pub struct OnOff {
    /// The direction.
    #[arg(value_enum)]
    direction: Way,
    /// The mean time for which it is on, in seconds.
    on_s: f64,
    /// The mean time for which it is off, in seconds. Packets that come then are lost.
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

/// A link that serves a few packets as a light load was served, and more as a heavy load was, as `mm-cellular` of
/// CellReplay does.
///
/// The recordings of a light load are lines `TIME DELAY CHANCE...` in ms, a train of packets each; those of a heavy load
/// are lists of milliseconds as for `link`.
#[derive(clap::Args)]
#[command(
    before_help = "Example: airpace emu cellular up-light down-light up-heavy.pdo down-heavy.pdo -- curl -O URL"
)]
pub struct Cellular {
    /// The trains of the direction from the device.
    up_light: PathBuf,
    /// The trains of the direction to the device.
    down_light: PathBuf,
    /// The trace of a full queue from the device.
    up_heavy: PathBuf,
    /// The trace of a full queue to the device.
    down_heavy: PathBuf,
    /// The uplink's queue, as for `link`.
    #[arg(long, value_name = "QUEUE", default_value = "infinite")]
    uplink_queue: String,
    /// The downlink's queue.
    #[arg(long, value_name = "QUEUE", default_value = "infinite")]
    downlink_queue: String,
    /// What the size of a packet from the device adds to its delay: lines `BYTES MS` in steps of 100 bytes.
    #[arg(long, value_name = "FILE", alias = "psize-latency-offset-up")]
    uplink_offsets: Option<PathBuf>,
    /// The same of packets to the device.
    #[arg(long, value_name = "FILE", alias = "psize-latency-offset-down")]
    downlink_offsets: Option<PathBuf>,
    /// Replays traces in which nothing is delivered for 5 s or more, as CellReplay does.
    #[arg(long)]
    allow_holes: bool,
    /// How long the link must be idle before it is lightly loaded again.
    #[arg(long, value_name = "MS")]
    light_after: Option<u32>,
    #[command(flatten)]
    rest: Rest,
}

/// What every form has.
#[derive(clap::Args)]
struct Rest {
    /// The program's words are an inner form and its program.
    #[arg(long = compose::INSIDE, id = compose::INSIDE, hide = true)]
    inside: bool,
    #[command(flatten)]
    options: Options,
    /// The program and its arguments, behind `--`. More forms may stand before, each inside the one before and with options of
    /// its own: `loss up 0.01 link UP DOWN --downlink-queue codel -- CMD`. [default: a shell]
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// A time in ms that may be 0.
fn milliseconds(text: &str) -> Result<f64, String> {
    let value = text.parse::<f64>().ok().filter(|value| value.is_finite() && *value >= 0.0);
    value.ok_or_else(|| "give a time in ms, 0 or more".to_owned())
}

/// The shortest round trip of a network that does not delay, in ms: a microsecond.
const NO_DELAY_MS: f64 = 0.001;

impl Form {
    /// Runs programs behind this link.
    ///
    /// # Errors
    /// As [`run::run`]; text that is no network.
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

/// A scenario of this table, with what every scenario has.
fn with_usual(name: &str, mut table: toml::Table) -> toml::Table {
    table.insert("name".to_owned(), name.into());
    // Programs end an emulated run, so this is of no effect.
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

    /// A scenario whose wire of this direction has this key.
    fn with(self, key: &str, value: toml::Value) -> toml::Table {
        // A flow's data goes down.
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
        // Rounded up to a microsecond, as the least that is accepted.
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

/// A trace with its queue.
fn hop(trace: &Path, queue: &str, allow_holes: bool) -> anyhow::Result<toml::Table> {
    let link = toml::Table::from_iter([("buffer".to_owned(), buffer(queue)?.into())]);
    Ok(toml::Table::from_iter([
        file(trace)?,
        ("allow_holes".to_owned(), allow_holes.into()),
        ("link".to_owned(), link.into()),
    ]))
}

/// The key `file` of a table, which names this file from anywhere.
fn file(path: &Path) -> anyhow::Result<(String, toml::Value)> {
    if path == Path::new("-") {
        return Ok(("file".to_owned(), "-".into()));
    }
    let absolute =
        std::path::absolute(path).with_context(|| format!("there is no file `{}`", path.display()))?;
    let text = absolute.to_str().with_context(|| format!("`{}` is not text in UTF-8", path.display()))?;
    Ok(("file".to_owned(), text.into()))
}

/// A queue, `droptail:packets=100`, as the keys of a buffer.
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
