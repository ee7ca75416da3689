//! `airpace diag bandwidth`: computes the bandwidth that the network granted, by BISCAY's two methods.

mod listen;

use std::io::Write;
use std::path::{Path, PathBuf};

use airpace_core::{Direction, Rate};
use airpace_diag::bandwidth::{Bandwidth, Method, Point, Summary, kpi_trace};
use airpace_diag::export::windows::{self, HEAD, HEAD_BY_CARRIER, mbps, rows_of_carriers, way};
use airpace_diag::grant::report::{Reports, Until};
use airpace_diag::grant::{GrantReport, Rat, codes};
use airpace_diag::source::{Item, Place};
use airpace_diag::{LogPacket, Message, Radio};
use airpace_path::trace::KpiTrace;
use airpace_radio::line;
use anyhow::bail;
use serde_json::{Value, json};

use super::input::{self, Sink};
use super::port::{PORTS, PortArgs};
use crate::called;
use crate::cmd::outputs::{self, Named, OutFile};
use crate::cmd::{NothingFound, Verdict};
use crate::terminal::{columns, count, hang};

/// Computes the bandwidth of the radio link from the modem's grants, by two methods.
///
/// Method blocks: the sum of the sizes of newly granted transport blocks over TTIs and carriers (BISCAY Eq. 1). Method
/// granted: the number of granted bytes that the modem's MAC layer reports.
///
/// Files are given as for `airpace diag info`; several files are read as one log. If a port is given, only packets that
/// report grants are requested from the modem, and the modem's settings are restored at the end. Without --json and --csv,
/// a summary is printed.
#[derive(clap::Args)]
#[command(
    before_help = "Example: airpace diag bandwidth phone.qmdl --csv > bandwidth.csv\n         \
                   airpace diag bandwidth phone.qmdl --kpi-trace phone.kpi.csv --direction up\n         \
                   airpace diag bandwidth --port /dev/ttyUSB2 --json",
    group = clap::ArgGroup::new("source").args(PORTS).arg("files").required(true)
)]
pub struct Args {
    /// Logs; `-` is standard input.
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    port: PortArgs,
    #[command(flatten)]
    live: listen::LiveArgs,
    /// Duration of a window in milliseconds; with 1, each TTI has its own window.
    #[arg(long, value_name = "MS", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=3_600_000))]
    every_ms: u32,
    /// Prints one JSON object per window, radio and direction.
    #[arg(long, group = "form")]
    json: bool,
    /// Prints comma-separated values with a row per window, radio and direction.
    #[arg(long, group = "form")]
    csv: bool,
    /// Prints a row for each carrier that had grants in the window, instead of a row per window.
    #[arg(long, requires = "csv")]
    by_carrier: bool,
    /// Prints only this radio: 1 is that of the first SIM, 2 that of the second.
    ///
    /// Reports and KPI traces contain one radio only: this one, or else radio 1.
    #[arg(long, value_name = "N")]
    radio: Option<u8>,
    /// Writes the phone's own grants as radio reports, in the format of `airpace decode --reports`.
    ///
    /// The file has one JSON object per subframe.
    #[arg(long, value_name = "FILE")]
    reports: Option<PathBuf>,
    /// Number of PRB pairs of carriers whose bandwidth the log does not contain.
    ///
    /// Without this option, `carrier_prbs` of these carriers is null in the reports.
    #[arg(long, value_name = "N", requires = "reports", value_parser = clap::value_parser!(u16).range(6..=110))]
    prbs: Option<u16>,
    /// Writes a KPI trace for the simulator's `trace.kpi`, in the format of `airpace trace kpi`.
    #[arg(long, value_name = "FILE")]
    kpi_trace: Option<PathBuf>,
    /// Direction of the KPI trace.
    #[arg(long, value_enum, default_value_t = Way::Up, requires = "kpi_trace")]
    direction: Way,
    /// Method that computes the values of the KPI trace.
    #[arg(long, value_enum, default_value_t = By::Blocks, requires = "kpi_trace")]
    by: By,
}

impl Args {
    /// The radio and the direction of the KPI trace.
    fn traced(&self) -> (Radio, Direction) {
        let direction = match self.direction {
            Way::Up => Direction::Uplink,
            Way::Down => Direction::Downlink,
        };
        (Radio(self.radio.unwrap_or(1)), direction)
    }
}

/// A direction, by its name on the command line.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Way {
    /// Uplink: grants for the phone's transmissions.
    Up,
    /// Downlink: grants for transmissions to the phone.
    Down,
}

/// A method, by its name on the command line.
#[derive(Clone, Copy, clap::ValueEnum)]
enum By {
    /// Sum of transport blocks per TTI.
    Blocks,
    /// Bytes granted to the MAC layer.
    Granted,
}

/// Reads packets, determines the bandwidth and prints it.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let outputs = [("--reports", &args.reports), ("--kpi-trace", &args.kpi_trace)];
    let outputs: Vec<Named> =
        outputs.iter().filter_map(|(option, path)| Some(Named::by(option, path.as_deref()?))).collect();
    outputs::check(&Named::inputs(&args.files), &outputs)?;
    if [&args.reports, &args.kpi_trace].into_iter().flatten().any(|path| path == Path::new("-")) {
        bail!("standard output has the series; give --reports and --kpi-trace files");
    }
    let source = args.port.source();
    let bandwidth = Bandwidth::new(args.every_ms);
    let mut determine = Determine {
        bandwidth: if source.is_some() { bandwidth.holding(args.live.hold) } else { bandwidth },
        points: vec![],
        kept: args.kpi_trace.is_some().then(|| args.traced()),
        series: Series {
            form: Form::of(args),
            radio: args.radio.map(Radio),
            points: 0,
            summary: Summary::default(),
            out,
        },
        reports: args.reports.as_deref().map(|path| ReportFile::create(path, args)).transpose()?,
    };
    determine.series.begin()?;
    let mut sources = vec![];
    let name = match source {
        Some(source) => {
            let name = source.to_string();
            listen::listen(source, &args.live, &mut determine)?;
            name
        }
        None => {
            sources = input::read(&args.files, &mut determine)?;
            sources.iter().map(|source| source.name.as_str()).collect::<Vec<_>>().join(", ")
        }
    };
    determine.finish()?;
    let Determine { bandwidth, points, mut series, reports, .. } = determine;
    series.end(args.every_ms)?;
    // Reports and KPI traces require a complete log.
    input::check_ends(&sources)?;
    let has_nothing = series.points == 0;
    for (number, of, why) in bandwidth.uncounted() {
        crate::terminal::say(format_args!("{name}: not counted: {} {why}", count(number, of)));
    }
    let left_out = reports.as_ref().map_or(0, |file| file.reports.left_out());
    if left_out > 0 {
        let left_out = count(left_out, "grant");
        crate::terminal::say(format_args!(
            "{name}: not in the reports: {left_out} of before the first packet, or after reports of a later time"
        ));
    }
    if bandwidth.troubles().versions > 0 {
        let info = called::command("diag info");
        crate::terminal::say(format_args!("{name}: {info} lists the versions without a layout"));
    }
    if let Some(ReportFile { has_unknown, file, .. }) = reports {
        let path = file.path().to_owned();
        file.finish().map_err(outputs::refused("--reports", &path))?;
        if has_unknown {
            crate::terminal::say(format_args!(
                "{name}: the log does not contain a carrier's bandwidth, so `carrier_prbs` is null in the \
                 reports; give --prbs"
            ));
        }
    }
    if let Some(path) = &args.kpi_trace {
        write_kpi_trace(path, args, &points)?;
    }
    input::check(&sources)?;
    if has_nothing {
        bail!(NothingFound(format!(
            "{name}: no grants: the log has no packets that report them. The logger must enable {} ({} lists \
             what a log has)",
            codes_text(),
            called::command("diag info")
        )));
    }
    Ok(Verdict::Fine)
}

/// The log codes that report grants, for people.
fn codes_text() -> String {
    let of = |(word, rat, direction): (&str, Rat, Direction)| {
        let codes: Vec<String> = codes(rat, direction).map(|code| format!("0x{code:X}")).collect();
        (!codes.is_empty()).then(|| format!("{word} {}", codes.join(" or ")))
    };
    let each = [
        ("for LTE's downlink", Rat::Lte, Direction::Downlink),
        ("for its uplink", Rat::Lte, Direction::Uplink),
        ("for NR's downlink", Rat::Nr, Direction::Downlink),
        ("for NR's uplink", Rat::Nr, Direction::Uplink),
    ];
    each.into_iter().filter_map(of).collect::<Vec<_>>().join(", ")
}

fn write_kpi_trace(path: &Path, args: &Args, points: &[Point]) -> anyhow::Result<()> {
    let (radio, direction) = args.traced();
    let (method, flag) = match args.by {
        By::Blocks => (Method::Blocks, "--by granted"),
        By::Granted => (Method::Granted, "--by blocks"),
    };
    let values = kpi_trace(points, radio, direction, method, args.every_ms);
    if values.iter().all(|(_, rate)| *rate == Rate::ZERO) {
        bail!(
            "radio {} has no grants {} in this log by this method; give another --direction or --radio, or {flag}",
            radio.0,
            if direction == Direction::Uplink { "up" } else { "down" },
        );
    }
    let windows = points.len();
    if values.len() < windows {
        crate::terminal::say(format_args!(
            "the KPI trace has the longest stretch without a silence: {} of {} of {} ms",
            values.len(),
            count(windows as u64, "window"),
            args.every_ms
        ));
    }
    let text = KpiTrace::new(values).to_csv();
    outputs::write("--kpi-trace", path, text)
}

/// Maximum number of windows that wait to be printed while a block of a file is read.
///
/// Chosen: these windows take some ten megabytes of memory.
const MAX_DUE: u64 = 20_000;

/// Maximum number of windows of a KPI trace.
///
/// Chosen: four days of windows of 100 ms, in some 400 MB of memory.
const MAX_TRACED: usize = 4_000_000;

/// Computes the series of windows from packets.
struct Determine<'o> {
    bandwidth: Bandwidth,
    /// Windows of the KPI trace.
    points: Vec<Point>,
    /// Radio and direction of the KPI trace; `None` without a KPI trace.
    kept: Option<(Radio, Direction)>,
    series: Series<'o>,
    reports: Option<ReportFile>,
}

impl Determine<'_> {
    fn packet(&mut self, packet: &LogPacket<'_>) {
        let reports = &mut self.reports;
        let begin = self.bandwidth.begin().unwrap_or(packet.stamp);
        self.bandwidth.push(packet, |report| {
            if let (GrantReport::Grant(grant), Some(reports)) = (report, reports.as_mut()) {
                reports.reports.begin(begin);
                reports.reports.push(grant);
            }
        });
    }

    fn give(&mut self, points: Vec<Point>) -> anyhow::Result<()> {
        for point in &points {
            self.series.point(point)?;
        }
        if let Some(kept) = self.kept {
            let traced = points.into_iter().filter(|point| (point.radio, point.direction) == kept);
            // The trace has one number per window.
            self.points.extend(traced.map(|point| Point { carriers: vec![], ..point }));
            if self.points.len() > MAX_TRACED {
                bail!(
                    "the KPI trace has more than {MAX_TRACED} windows: give a larger --every-ms, or a part of the log"
                );
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> anyhow::Result<()> {
        let points = self.bandwidth.finish();
        self.give(points)?;
        self.reports.as_mut().map_or(Ok(()), |reports| reports.write(Until::End))
    }
}

impl Sink for Determine<'_> {
    type Error = anyhow::Error;

    fn item(&mut self, _: Place, item: Item<'_>) -> anyhow::Result<()> {
        if let Item::Message(Message::Log(packet)) = item {
            self.packet(&packet);
        }
        if self.bandwidth.due() > MAX_DUE {
            let points = self.bandwidth.take();
            self.give(points)?;
        }
        Ok(())
    }

    fn pause(&mut self) -> anyhow::Result<()> {
        let points = self.bandwidth.take();
        self.give(points)?;
        if let Some(reports) = &mut self.reports {
            // Reports are held back for as long as windows are held back.
            reports.write(Until::Behind(5_000))?;
        }
        Ok(self.series.out.flush()?)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Json,
    Csv,
    CsvByCarrier,
    Summary,
}

impl Form {
    fn of(args: &Args) -> Form {
        match (args.json, args.csv) {
            (true, _) => Form::Json,
            (_, true) if args.by_carrier => Form::CsvByCarrier,
            (_, true) => Form::Csv,
            _ => Form::Summary,
        }
    }
}

/// The series in the form that the user asked for.
struct Series<'o> {
    form: Form,
    radio: Option<Radio>,
    /// Number of windows that were output.
    points: u64,
    summary: Summary,
    out: &'o mut dyn Write,
}

impl Series<'_> {
    fn begin(&mut self) -> anyhow::Result<()> {
        match self.form {
            Form::Csv => self.out.write_all(HEAD.as_bytes())?,
            Form::CsvByCarrier => self.out.write_all(HEAD_BY_CARRIER.as_bytes())?,
            Form::Json | Form::Summary => {}
        }
        Ok(())
    }

    fn point(&mut self, point: &Point) -> anyhow::Result<()> {
        if self.radio.is_some_and(|radio| radio != point.radio) {
            return Ok(());
        }
        self.points += 1;
        match self.form {
            Form::Json => writeln!(self.out, "{}", json_of(point))?,
            Form::Csv => self.rows(|rows| windows::row(point, rows))?,
            Form::CsvByCarrier => self.rows(|rows| rows_of_carriers(point, rows))?,
            Form::Summary => self.summary.add(point),
        }
        Ok(())
    }

    fn rows(&mut self, append: impl FnOnce(&mut Vec<u8>)) -> anyhow::Result<()> {
        let mut rows = vec![];
        append(&mut rows);
        Ok(self.out.write_all(&rows)?)
    }

    /// The summary, if the user asked for it.
    fn end(&mut self, every_ms: u32) -> anyhow::Result<()> {
        if self.form != Form::Summary {
            return Ok(());
        }
        for (&(radio, direction), of) in &self.summary.each {
            writeln!(
                self.out,
                "radio {}, {}: {} of {every_ms} ms",
                radio.0,
                way(direction),
                count(of.windows, "window")
            )?;
            for (name, rates) in [("blocks", &of.blocks), ("granted", &of.granted)] {
                let lead = format!("  {name:<8} ");
                if rates.windows == 0 {
                    writeln!(self.out, "{lead}not reported")?;
                    continue;
                }
                let (mean, most, busy) = (rates.sum_mbps / rates.windows as f64, rates.max_mbps, rates.busy);
                let rates = format!(
                    "mean {mean:.3} Mbit/s, most {most:.3} Mbit/s, something granted in {}",
                    count(busy, "window")
                );
                writeln!(self.out, "{}", hang(&lead, &rates, lead.len(), columns()))?;
            }
        }
        Ok(())
    }
}

fn json_of(point: &Point) -> Value {
    let carriers = point.carriers.iter().map(|own| {
        json!({
            "rat": own.rat.to_string(),
            "carrier": own.carrier.0,
            "blocks_mbps": mbps(own.blocks),
            "prbs": own.prbs,
            "grants": own.grants,
        })
    });
    json!({
        "time_ms": point.window * point.every_ms(),
        "time_utc": point.begin.to_string(),
        "radio": point.radio.0,
        "direction": way(point.direction),
        "blocks_mbps": point.blocks.map(mbps),
        "granted_mbps": point.granted.map(mbps),
        "carriers": carriers.collect::<Vec<_>>(),
    })
}

/// A file of radio reports.
struct ReportFile {
    reports: Reports,
    /// Whether the file contains a carrier whose bandwidth is unknown.
    has_unknown: bool,
    file: OutFile,
}

impl ReportFile {
    fn create(path: &Path, args: &Args) -> anyhow::Result<ReportFile> {
        // With a live modem, other programs may follow the file while it grows. For a log, the file appears only when
        // it is complete.
        let file = OutFile::create("--reports", path, args.port.source().is_some())?;
        let reports = Reports::new(Radio(args.radio.unwrap_or(1)));
        let reports = match args.prbs {
            Some(prbs) => reports.assuming(prbs),
            None => reports,
        };
        Ok(ReportFile { reports, has_unknown: false, file })
    }

    fn write(&mut self, until: Until) -> anyhow::Result<()> {
        let reports = self.reports.take(until);
        self.has_unknown |= reports.iter().any(|report| report.carrier_prbs.is_none());
        for subframe in reports.chunk_by(|one, other| one.slot.subframe() == other.slot.subframe()) {
            writeln!(self.file, "{}", line::to_line(subframe[0].slot.subframe(), subframe))
                .map_err(outputs::refused("--reports", self.file.path()))?;
        }
        self.file.flush().map_err(outputs::refused("--reports", self.file.path()))
    }
}
