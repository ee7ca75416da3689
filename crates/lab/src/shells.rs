//! Networks with one element, named like mahimahi's shells: a delay, a loss, an on-off link, a link that follows traces, and
//! CellReplay's cellular link. Each becomes a scenario.

use std::io;
use std::path::{Path, PathBuf};

use airpace_core::Direction;
use airpace_run::shell::quote;
use airpace_sim::{Scenario, ScenarioError};

/// Reason why a network is no scenario.
#[derive(Debug, thiserror::Error)]
pub enum ShellError {
    /// The scenario is invalid, or a file that it names.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// A number cannot be written in a scenario.
    #[error("the network cannot be written as a scenario")]
    Text(#[from] toml::ser::Error),
    /// The current folder is not known.
    #[error("there is no file `{}`", path.display())]
    NoFile {
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A scenario cannot contain the path.
    #[error("`{}` is not text in UTF-8", path.display())]
    NotUtf8 {
        /// Path of the file.
        path: PathBuf,
    },
    /// The text is no queue.
    #[error("`{0}` is no queue; give infinite, droptail, drophead, codel or pie, as in droptail:packets=100")]
    NoQueue(String),
    /// The text is no parameter of a queue.
    #[error("`{0}` does not describe a queue; give packets=N, bytes=N, target=MS or interval=MS")]
    NoParameter(String),
}

/// A network with one element.
#[derive(Clone, Debug, PartialEq)]
pub enum Shell {
    /// A link that delivers packets according to a recorded trace per direction.
    Link(Link),
    /// A delay of every packet in each direction.
    Delay {
        /// Delay in milliseconds.
        milliseconds: f64,
    },
    /// Random losses in one direction.
    Loss {
        /// The direction.
        direction: Direction,
        /// Loss probability, from 0 to 1.
        probability: f64,
    },
    /// Repeated interruptions of one direction, with exponentially distributed on and off times.
    OnOff {
        /// The direction.
        direction: Direction,
        /// Mean on time in seconds.
        on_s: f64,
        /// Mean off time in seconds.
        off_s: f64,
    },
    /// A cellular link of CellReplay.
    Cellular(Cellular),
}

/// A link that delivers packets according to traces.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Traces of the uplink and the downlink; `-` is standard input.
    pub traces: [PathBuf; 2],
    /// Queues of the uplink and the downlink, such as `droptail:packets=100`.
    pub queues: [String; 2],
    /// Columns of rates in tables of the uplink and the downlink, with their units.
    pub columns: [Option<String>; 2],
    /// Whether traces with outages of 5 s or more are accepted.
    pub allow_holes: bool,
}

/// A cellular link from recordings under light and under heavy load.
#[derive(Clone, Debug, PartialEq)]
pub struct Cellular {
    /// Light-load recordings of the uplink and the downlink.
    pub light: [PathBuf; 2],
    /// Heavy-load recordings of the uplink and the downlink.
    pub heavy: [PathBuf; 2],
    /// Queues of the uplink and the downlink.
    pub queues: [String; 2],
    /// Additional delay by packet size, of the uplink and the downlink.
    pub offsets: [Option<PathBuf>; 2],
    /// Whether recordings with outages of 5 s or more are accepted.
    pub allow_holes: bool,
    /// Idle time in ms after which the link is lightly loaded again.
    pub light_after_ms: Option<u32>,
}

/// Minimum round trip time of a network without delay, in ms: a microsecond.
const NO_DELAY_MS: f64 = 0.001;

impl Shell {
    /// Name of the element.
    pub fn name(&self) -> &'static str {
        match self {
            Shell::Link(_) => "link",
            Shell::Delay { .. } => "delay",
            Shell::Loss { .. } => "loss",
            Shell::OnOff { .. } => "onoff",
            Shell::Cellular(_) => "cellular",
        }
    }

    /// The network as a scenario.
    ///
    /// # Errors
    /// A queue or a number is invalid, or the path of a file is not text.
    pub fn scenario(&self) -> Result<Scenario, ShellError> {
        let name = self.name();
        Ok(Scenario::load(&toml::to_string(&with_usual(name, self.table()?))?, name, &[])?)
    }

    fn table(&self) -> Result<toml::Table, ShellError> {
        Ok(match self {
            Shell::Link(link) => link.table()?,
            Shell::Delay { milliseconds } => {
                toml::Table::from_iter([("flow".to_owned(), flow((2.0 * milliseconds).max(NO_DELAY_MS)))])
            }
            Shell::Loss { direction, probability } => of_wire(*direction, "loss", (*probability).into()),
            Shell::OnOff { direction, on_s, off_s } => {
                let times =
                    [("on_mean_s".to_owned(), (*on_s).into()), ("off_mean_s".to_owned(), (*off_s).into())];
                of_wire(*direction, "on_off", toml::Table::from_iter(times).into())
            }
            Shell::Cellular(cellular) => cellular.table()?,
        })
    }

    /// The element with its values, in words for a shell.
    pub fn argument(&self) -> String {
        let quoted = |path: &PathBuf| quote(&path.to_string_lossy());
        let words = match self {
            Shell::Link(link) => link.traces.each_ref().map(quoted).join(" "),
            Shell::Delay { milliseconds } => milliseconds.to_string(),
            Shell::Loss { direction, probability } => format!("{} {probability}", word(*direction)),
            Shell::OnOff { direction, on_s, off_s } => format!("{} {on_s} {off_s}", word(*direction)),
            Shell::Cellular(Cellular {
                light: [up_light, down_light],
                heavy: [up_heavy, down_heavy],
                ..
            }) => [up_light, down_light, up_heavy, down_heavy].map(quoted).join(" "),
        };
        format!("{} {words}", self.name())
    }
}

/// A direction as a word.
fn word(direction: Direction) -> &'static str {
    match direction {
        Direction::Uplink => "up",
        Direction::Downlink => "down",
    }
}

/// A scenario with this key for the wire of this direction.
fn of_wire(direction: Direction, key: &str, value: toml::Value) -> toml::Table {
    // The data of a flow is sent on the downlink.
    let wire = if direction == Direction::Downlink { "forward" } else { "reverse" };
    let config = toml::Table::from_iter([(key.to_owned(), value)]);
    toml::Table::from_iter([(wire.to_owned(), config.into())])
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

impl Link {
    fn table(&self) -> Result<toml::Table, ShellError> {
        let of = |way: usize| {
            let mut hop = hop(&self.traces[way], &self.queues[way], self.allow_holes)?;
            let column = self.columns[way].iter();
            hop.extend(column.map(|column| ("column".to_owned(), column.as_str().into())));
            Ok::<_, ShellError>(hop)
        };
        let mut trace = of(DOWN)?;
        trace.insert("back".to_owned(), of(UP)?.into());
        Ok(toml::Table::from_iter([("trace".to_owned(), trace.into())]))
    }
}

/// Indices of the directions.
const UP: usize = 0;
const DOWN: usize = 1;

impl Cellular {
    fn table(&self) -> Result<toml::Table, ShellError> {
        let (down, up) = (self.way(DOWN)?, self.way(UP)?);
        let ways = toml::Table::from_iter([("down".to_owned(), down.into()), ("up".to_owned(), up.into())]);
        let mut table = toml::Table::from_iter([("cellular".to_owned(), ways.into())]);
        // Only the link delays packets; the link's own parameters contain its delay.
        let long = toml::Table::from_iter([("flow".to_owned(), flow(LONG_MS))]);
        let mut text = with_usual("cellular", table.clone());
        text.extend(long);
        let plan = Scenario::load(&toml::to_string(&text)?, "cellular", &[])?
            .prepare_endless()?
            .devices_network()?;
        // Rounded up to a microsecond, which is the minimum that is accepted.
        let rtt_ms = plan.least_rtt(0).as_nanos().div_ceil(1000) as f64 * 1e-3;
        table.insert("flow".to_owned(), flow(rtt_ms.max(NO_DELAY_MS)));
        Ok(table)
    }

    fn way(&self, way: usize) -> Result<toml::Table, ShellError> {
        let with_file = |path: &Path| Ok::<_, ShellError>(toml::Table::from_iter([file(path)?]));
        let mut link = toml::Table::from_iter([("buffer".to_owned(), buffer(&self.queues[way])?.into())]);
        if let Some(ms) = self.light_after_ms {
            link.insert("light_after_ms".to_owned(), i64::from(ms).into());
        }
        let mut heavy = with_file(&self.heavy[way])?;
        heavy.insert("allow_holes".to_owned(), self.allow_holes.into());
        let mut table = toml::Table::from_iter([
            ("light".to_owned(), with_file(&self.light[way])?.into()),
            ("heavy".to_owned(), heavy.into()),
            ("link".to_owned(), link.into()),
        ]);
        if let Some(offsets) = &self.offsets[way] {
            table.insert("offsets".to_owned(), file(offsets)?.1);
        }
        Ok(table)
    }
}

/// A round trip that is longer than any base delay, in ms: a minute.
const LONG_MS: f64 = 60_000.0;

/// The table of a trace with its queue.
fn hop(trace: &Path, queue: &str, allow_holes: bool) -> Result<toml::Table, ShellError> {
    let link = toml::Table::from_iter([("buffer".to_owned(), buffer(queue)?.into())]);
    Ok(toml::Table::from_iter([
        file(trace)?,
        ("allow_holes".to_owned(), allow_holes.into()),
        ("link".to_owned(), link.into()),
    ]))
}

/// The key `file` of a table, with the absolute path of this file.
fn file(path: &Path) -> Result<(String, toml::Value), ShellError> {
    if path == Path::new("-") {
        return Ok(("file".to_owned(), "-".into()));
    }
    let absolute =
        std::path::absolute(path).map_err(|source| ShellError::NoFile { path: path.to_owned(), source })?;
    let text = absolute.to_str().ok_or_else(|| ShellError::NotUtf8 { path: path.to_owned() })?;
    Ok(("file".to_owned(), text.into()))
}

/// Converts a queue, such as `droptail:packets=100`, to the keys of a buffer.
fn buffer(text: &str) -> Result<toml::Table, ShellError> {
    let mut words = text.split([':', ',']).map(str::trim).filter(|word| !word.is_empty());
    let mut table = toml::Table::new();
    let discipline = match words.next() {
        Some("infinite" | "droptail") => "drop_tail",
        Some("drophead") => "drop_head",
        Some("codel") => "codel",
        Some("pie") => "pie",
        _ => return Err(ShellError::NoQueue(text.to_owned())),
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
            _ => return Err(ShellError::NoParameter(word.to_owned())),
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
        assert!(buffer("droptail:slots=3").unwrap_err().to_string().contains("does not describe a queue"));
        assert!(buffer("droptail:packets=-3").is_err());
    }
}
