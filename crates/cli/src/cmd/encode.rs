//! `airpace encode`: converts the grants of a simulated cell to radio samples.

mod space;

use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use airpace_event::{Event, Recorder};
use airpace_files::Whole;
use airpace_phy::impair::DelayProfile;
use airpace_phy::pseudonym::Name;
use airpace_phy::truth::Truth;
use airpace_phy::{Bandwidth, Cell, CyclicPrefix, PhichDuration, PhichResource, Ports};
use airpace_radio::RadioReport;
use airpace_run::RunFolder;
use airpace_sdr::iq::{Format, Writer};
use airpace_sdr::synth::{Plan, Sent, Transmitter, fft_size};
use airpace_sim::{Scenario, SchemeSpec};
use airpace_tables::decoded::json as as_json;
use anyhow::{Context, anyhow, bail};
use clap::ValueEnum;
use serde_json::json;

use super::outputs::{self, Named};
use super::{Verdict, complete, on_interrupt, positive, scenario, within};
use crate::terminal::{self, count};

/// Encodes the grants of a simulated cell as radio samples that conform to the LTE standard.
///
/// Runs the scenario, or repeats the run of a run folder, and encodes the subframes of one carrier: synchronisation and
/// reference signals, PBCH, PCFICH, PHICH, and every grant as a DCI on the PDCCH. Granted PRBs of the PDSCH are filled. A
/// fading channel and the impairments of a receiver can be added. The result is a SigMF recording; its metadata contains
/// the parameters that a decoder has to detect. The size of the recording is printed before the run starts. Ctrl-C leaves
/// no partial recording.
#[derive(clap::Args)]
#[command(before_help = "Example: airpace encode competitor --seconds 2 --snr 20 --out cell\n         \
                         airpace encode competitor --seconds 1 --set cell.prbs=50 --set cell.crs_ports=4 --out four\n         \
                         airpace encode runs/latest --fading eva --doppler 5 --cfo 300 --format ci8 --out cell")]
pub struct Args {
    /// A scenario with a cell (a name from `airpace list scenarios` or a TOML file), or a run folder.
    #[arg(add = complete::scenario_or(|path| path.extension().is_some_and(|ending| ending == "toml") || path.join("manifest.json").exists()))]
    source: String,
    /// The recording to write: OUT.sigmf-data and OUT.sigmf-meta.
    #[arg(long, value_name = "OUT")]
    out: PathBuf,
    /// Sets a key of the scenario by its dotted path; may be given several times.
    #[arg(long, value_name = "KEY=VALUE", value_parser = scenario::key_and_value, add = complete::key())]
    set: Vec<(String, String)>,
    /// The scheme under test. [default: the first scheme of the scenario or of the run]
    #[arg(long, add = complete::scheme())]
    scheme: Option<String>,
    /// Seed of the run and of the channel. [default: 1, or the first seed of the run folder]
    #[arg(long)]
    seed: Option<u64>,
    /// The carrier of the cell, counted from 0.
    #[arg(long, value_name = "N", default_value_t = 0)]
    carrier: u8,
    /// Duration of the recording in seconds, at most the scenario's duration. [default: the scenario's duration]
    #[arg(long, value_name = "S", allow_negative_numbers = true, value_parser = positive)]
    seconds: Option<f64>,
    /// Physical cell identity.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(..=i64::from(Cell::IDENTITIES) - 1))]
    pci: u16,
    /// System frame number (SFN) of the first subframe.
    #[arg(long, value_name = "SFN", default_value_t = 0, value_parser = clap::value_parser!(u16).range(..=1023))]
    sfn: u16,
    /// Cyclic prefix.
    #[arg(long, value_name = "LENGTH", value_enum, default_value = "normal")]
    cp: Length,
    /// PHICH duration.
    #[arg(long, value_name = "LENGTH", value_enum, default_value = "normal")]
    phich_duration: Length,
    /// N_g, which determines the number of PHICH groups: 1/6, 1/2, 1 or 2.
    #[arg(long, value_name = "NG", default_value = "1", value_parser = phich_resource)]
    phich: PhichResource,
    /// Number of the receiver's antennas, which are the channels of one SigMF recording.
    ///
    /// The samples of the channels are interleaved. Each antenna has independent fading and noise.
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=8))]
    antennas: u8,
    /// Signal-to-noise ratio per resource element in dB. [default: no noise]
    ///
    /// Several antennas take one common value, or one value each, such as 10,4.
    #[arg(long, value_name = "DB", allow_negative_numbers = true, value_delimiter = ',', value_parser = within::<-30, 60>)]
    snr: Vec<f64>,
    /// Delay profile of the channel: none, epa, eva or etu (TS 36.101 Annex B.2).
    #[arg(long, value_name = "PROFILE", default_value = "none", value_parser = profile)]
    fading: DelayProfile,
    /// Maximum Doppler shift in Hz.
    #[arg(long, value_name = "HZ", default_value_t = 0.0, value_parser = within::<0, 1000>)]
    doppler: f64,
    /// Carrier frequency offset in Hz.
    #[arg(long, value_name = "HZ", default_value_t = 0.0, allow_negative_numbers = true,
        value_parser = within::<-100_000, 100_000>)]
    cfo: f64,
    /// Drift of the receiver's clock in ppm; positive values: the clock is slow.
    #[arg(long, value_name = "PPM", default_value_t = 0.0, allow_negative_numbers = true,
        value_parser = within::<-100, 100>)]
    drift: f64,
    /// Samples per second, a multiple of 1.92 million. [default: the nominal rate of the bandwidth]
    #[arg(long, value_name = "HZ")]
    rate: Option<f64>,
    /// Sample format: ci8, cu8, ci16_le or cf32_le.
    #[arg(long, default_value = "ci16_le")]
    format: Format,
    /// Writes every transmitted message as reference, in the JSON format of `airpace decode`.
    #[arg(long, value_name = "FILE")]
    truth: Option<PathBuf>,
    /// Prints one JSON object that summarises the recording.
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Checks that the signal-to-noise ratio is one value, or one per antenna.
    fn check_snr(&self) -> anyhow::Result<()> {
        let (values, antennas) = (self.snr.len(), usize::from(self.antennas));
        if values > 1 && values != antennas {
            bail!(
                "--snr has {} for {}: give one, or as many",
                count(values as u64, "value"),
                count(antennas as u64, "antenna")
            );
        }
        Ok(())
    }
}

fn phich_resource(text: &str) -> Result<PhichResource, String> {
    let found = PhichResource::ALL.into_iter().find(|resource| resource.name() == text);
    found.ok_or_else(|| "give 1/6, 1/2, 1 or 2".to_owned())
}

/// Length of the cyclic prefix or of the PHICH duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Length {
    Normal,
    Extended,
}

fn profile(text: &str) -> Result<DelayProfile, String> {
    let found = DelayProfile::ALL.into_iter().find(|profile| profile.name() == text);
    found.ok_or_else(|| "give none, epa, eva or etu".to_owned())
}

/// Runs the command.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let Run { scenario, scheme, seed } = what_to_run(args)?;
    airpace_lab::agree::asks_for_no_reports(&scenario)?;
    let cell = cell_of(args, &scenario)?;
    let fft_size = match args.rate {
        None => cell.bandwidth.nominal_fft_size(),
        Some(rate) => fft_size(rate).with_context(|| {
            format!(
                "--rate {rate}: samples per second must be a multiple of 1.92 million, for symbols to begin on a sample, up to \
                 61.44 million"
            )
        })?,
    };
    args.check_snr()?;
    let plan = Plan {
        cell,
        fft_size,
        first_sfn: args.sfn,
        antennas: args.antennas.into(),
        snr_db: args.snr.clone(),
        profile: args.fading,
        doppler_hz: args.doppler,
        cfo_hz: args.cfo,
        drift_ppm: args.drift,
        format: args.format,
        seed,
    };
    let sample_rate_hz = plan.sample_rate_hz();
    let station = plan.station().with_context(|| {
        format!("--rate {sample_rate_hz}: too low for {} PRB pairs", cell.bandwidth.prbs())
    })?;
    let description = format!("airpace encode: {} with {}, seed {seed}", args.source, scheme.text());
    let meta = plan.meta(&description, concat!("airpace ", env!("CARGO_PKG_VERSION")));
    let seconds = args.seconds.unwrap_or(scenario.duration_s).min(scenario.duration_s);
    check_files(args)?;
    if let Some(wanted) = args.seconds.filter(|wanted| *wanted > seconds) {
        let word = format!(
            "--seconds {wanted}: the scenario ends after {seconds} s (its duration_s): these are sent"
        );
        terminal::say(format_args!("airpace: {word}"));
    }
    space::check(&args.out, args.format, sample_rate_hz * f64::from(args.antennas), seconds)?;
    let stop = on_interrupt()?;
    let writer = Writer::create(&args.out, meta)?;
    let truth = args.truth.as_ref().map(|_| Truth::new(&cell, args.sfn, plan.combined_snr_db()));
    let mut sender = Sender {
        transmitter: Transmitter::new(station, writer, truth),
        carrier: args.carrier,
        end: (seconds * 1e3).round() as u64,
        truth: args.truth.as_deref().map(|path| outputs::whole("--truth", path)).transpose()?,
        trouble: None,
    };
    let bar = terminal::progress(args.json);
    bar.set_length((seconds * 1e3) as u64);
    bar.set_message("sending");
    let ran = airpace_sim::run(&scenario, &scheme, seed, &mut sender, &mut |now| {
        bar.set_position(now.as_nanos() / 1_000_000);
        let goes_on = now.as_secs_f64() < seconds && !stop.load(Ordering::Relaxed);
        if goes_on { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    bar.finish_and_clear();
    let whole = match sender.trouble.take() {
        Some(trouble) => Err(trouble),
        None if stop.load(Ordering::Relaxed) => Err(anyhow!("stopped; nothing was kept")),
        None => ran.map(|_| ()).map_err(Into::into),
    };
    match whole {
        Ok(()) => sender.finish(args, out),
        // Files that are not completed are removed.
        Err(trouble) => Err(trouble),
    }
}

/// Checks that no output file belongs to the run or scenario that is read, and that no two outputs are the same file.
fn check_files(args: &Args) -> anyhow::Result<()> {
    let source = Path::new(&args.source);
    let mut inputs = vec![];
    if source.is_dir() {
        let scenarios = RunFolder::open(source)?.manifest()?.scenarios;
        let texts = scenarios.into_iter().map(|scenario| scenario.file);
        let names = ["manifest.json", "summary.json", "report.html"].map(str::to_owned);
        let files = names.into_iter().chain(texts).map(|name| source.join(name));
        inputs.extend(files.map(|file| Named::new(file.display().to_string(), &file)));
    } else if source.is_file() {
        inputs.push(Named::new(&args.source, source));
    }
    let out = Writer::files(&args.out);
    let recording = out.iter().map(|file| Named::by("--out", file));
    let truth = args.truth.iter().map(|file| Named::by("--truth", file));
    outputs::check(&inputs, &recording.chain(truth).collect::<Vec<_>>())
}

/// The run to simulate.
struct Run {
    scenario: Scenario,
    scheme: SchemeSpec,
    seed: u64,
}

/// A scenario by name or file, or the run of a run folder, which is run again.
fn what_to_run(args: &Args) -> anyhow::Result<Run> {
    let folder = Path::new(&args.source);
    if folder.is_dir() {
        let manifest = RunFolder::open(folder)?.manifest()?;
        let Some(own) = manifest.scenarios.first() else {
            bail!("{}: its manifest names no scenario", folder.display());
        };
        let file = folder.join(&own.file);
        // A copy of the file may have been renamed.
        let mut sets = vec![("name".to_owned(), format!("\"{}\"", own.name))];
        sets.extend_from_slice(&args.set);
        let scenario = scenario::load(&file.to_string_lossy(), &sets)?;
        if manifest.emulation.is_some() && args.scheme.is_none() {
            bail!(
                "{}: real programs ran in this emulated run, and only a simulated run can be repeated; give the \
                 scheme of a simulated run with --scheme",
                folder.display()
            );
        }
        let spelled = args.scheme.clone().or_else(|| manifest.schemes.first().cloned());
        let scheme = scheme_of(spelled.as_deref(), &scenario)?;
        let seed = args.seed.or(manifest.seeds.first().copied()).unwrap_or(1);
        return Ok(Run { scenario, scheme, seed });
    }
    let scenario = scenario::load(&args.source, &args.set)?;
    let scheme = scheme_of(args.scheme.as_deref(), &scenario)?;
    Ok(Run { scenario, scheme, seed: args.seed.unwrap_or(1) })
}

/// The scheme that is given, or else the first one of the scenario.
fn scheme_of(named: Option<&str>, scenario: &Scenario) -> anyhow::Result<SchemeSpec> {
    Ok(named.map_or_else(|| Ok(scenario.schemes()[0].clone()), SchemeSpec::parse)?)
}

/// The radio parameters of the cell.
fn cell_of(args: &Args, scenario: &Scenario) -> anyhow::Result<Cell> {
    let Some(config) = &scenario.cell else {
        bail!("`{}` has no cell: its last hop is not LTE; take a scenario with [cell]", args.source);
    };
    if args.carrier >= config.carriers {
        bail!("--carrier {}: the cell has {} (0 is the first)", args.carrier, config.carriers);
    }
    let prbs = config.carrier_prbs(usize::from(args.carrier));
    let bandwidth =
        Bandwidth::from_prbs(prbs).with_context(|| format!("no LTE carrier has {prbs} PRB pairs"))?;
    let ports = config.crs_ports();
    let ports = Ports::from_count(ports.into()).with_context(|| format!("no LTE cell has {ports} ports"))?;
    Ok(Cell {
        pci: args.pci,
        bandwidth,
        ports,
        cp: match args.cp {
            Length::Normal => CyclicPrefix::Normal,
            Length::Extended => CyclicPrefix::Extended,
        },
        phich_duration: match args.phich_duration {
            Length::Normal => PhichDuration::Normal,
            Length::Extended => PhichDuration::Extended,
        },
        phich_resource: args.phich,
    })
}

/// The verb for one item or several.
fn was(count: u64) -> &'static str {
    if count == 1 { "was" } else { "were" }
}

/// Transmits the subframes of one carrier.
struct Sender {
    transmitter: Transmitter,
    carrier: u8,
    /// The first subframe that is not sent.
    end: u64,
    /// File of the transmitted messages, in the JSON format of `airpace decode`.
    truth: Option<Whole>,
    trouble: Option<anyhow::Error>,
}

impl Recorder for Sender {
    fn record(&mut self, event: Event<'_>) {
        if let Event::Subframe(subframe) = event
            && subframe.report.carrier.0 == self.carrier
            && subframe.report.slot.index < self.end
            && self.trouble.is_none()
        {
            self.trouble = self.send(subframe.report).err();
        }
    }
}

impl Sender {
    fn send(&mut self, report: &RadioReport) -> anyhow::Result<()> {
        let messages = self.transmitter.send(report)?;
        let Some(file) = &mut self.truth else { return Ok(()) };
        for found in &messages {
            let object = as_json::message(found, Name::plain(found));
            writeln!(file, "{object}").map_err(|error| outputs::refused("--truth", file.path())(error))?;
        }
        Ok(())
    }

    fn finish(self, args: &Args, out: &mut dyn Write) -> anyhow::Result<Verdict> {
        if let Some(file) = self.truth {
            let path = file.path().to_owned();
            file.finish().map_err(outputs::refused("--truth", &path))?;
        }
        let (meta, cut, sent) = self.transmitter.finish()?;
        let Sent { subframes, messages, blocked, unsayable, first_unsayable } = sent;
        if args.json {
            let object = json!({
                "out": meta, "subframes": subframes, "messages": messages, "without_cces": blocked,
                "unsayable": unsayable, "samples_cut": cut,
            });
            writeln!(out, "{object}")?;
        } else {
            let (subframes, messages) = (count(subframes, "subframe"), count(messages, "message"));
            writeln!(out, "{}: {subframes} with {messages}", meta.display())?;
        }
        if blocked > 0 {
            terminal::say(format_args!(
                "airpace: {} found no free CCE in the search space and {} not sent",
                count(blocked, "grant"),
                was(blocked)
            ));
        }
        if let Some(first) = first_unsayable {
            terminal::say(format_args!(
                "airpace: {} cannot be encoded in a DCI of the format, first {first}",
                count(unsayable, "grant")
            ));
        }
        if cut > 0 {
            terminal::say(format_args!(
                "airpace: {} exceeded full scale and {} cut",
                count(cut, "sample"),
                was(cut)
            ));
        }
        Ok(Verdict::Fine)
    }
}
