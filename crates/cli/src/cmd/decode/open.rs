//! Opens the sources of samples: recordings, then radios.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use airpace_sdr::iq::{Joined, Lag, Paced, Reader, Recorded, Source, Until, Writer, files_of};
use airpace_sdr::radio;
use anyhow::bail;

use super::{Args, tables};
use crate::cmd::outputs::{self, Named};
use crate::terminal::say;

/// The sources of samples, with their names.
pub struct Opened {
    /// All sources: recordings first.
    pub sources: Vec<(String, Box<dyn Source>)>,
    /// With `--pace`: lag of reading behind real time, per recording.
    pub lags: Vec<(String, Arc<Lag>)>,
}

/// Opens all sources before the first is read. The sources end after `--for`, or when `stop` is set.
///
/// # Errors
/// A source cannot be opened, there are more than 256 sources, standard input is named twice, or an output file would
/// replace an input or another output.
pub fn all(args: &Args, stop: &Arc<AtomicBool>) -> anyhow::Result<Opened> {
    let count = args.files.len() + args.radio.count();
    if count > 256 {
        bail!("{count} cells at once: at most 256 carriers are possible");
    }
    if args.files.iter().filter(|file| file.as_os_str() == "-").count() > 1 {
        bail!("standard input can be read once");
    }
    check_files(args, count)?;
    let until = |source| -> Box<dyn Source> {
        Box::new(Until::new(source, args.span.map(|span| span.as_secs_f64()), Arc::clone(stop)))
    };
    let (mut sources, mut lags) = (Vec::with_capacity(count), vec![]);
    for file in &args.files {
        let name = file.display().to_string();
        let reader = Reader::open(file, (args.rate, args.format))?;
        if let Some(said) = reader.meta().overruled() {
            let (rate, format) = (reader.meta().sample_rate_hz, reader.meta().format);
            let options = match (args.rate, args.format) {
                (Some(_), None) => "--rate overrides",
                (None, Some(_)) => "--format overrides",
                _ => "--rate and --format override",
            };
            say(format_args!(
                "airpace: {name} is described as {said}; {options} the description: it is read as {format} at \
                 {rate} samples per second"
            ));
        }
        let mut source: Box<dyn Source> = Box::new(reader);
        if args.pace {
            let paced = Paced::new(source);
            lags.push((name.clone(), paced.lag()));
            source = Box::new(paced);
        }
        sources.push((name, until(source)));
    }
    for settings in args.radio.settings(args.rate)? {
        let name = settings.name();
        let (source, tuned) = radio::open(&settings)?;
        say(format_args!("airpace: {name} listens at {tuned}"));
        let mut source = until(source);
        if let Some(stem) = &args.radio.record {
            let path = recording(stem, sources.len(), count);
            source = Box::new(Recorded::new(source, &path, Some(tuned.frequency_hz))?);
        }
        sources.push((name, source));
    }
    if args.join && sources.len() > 1 {
        let names: Vec<&str> = sources.iter().map(|(name, _)| name.as_str()).collect();
        let name = names.join("+");
        sources = vec![(name, Box::new(Joined::new(sources)?))];
    }
    Ok(Opened { sources, lags })
}

/// Checks that no output file belongs to an input recording, and that no two outputs are the same file.
fn check_files(args: &Args, count: usize) -> anyhow::Result<()> {
    let mut inputs = vec![];
    for file in &args.files {
        // Standard input may be redirected from a file; that file counts as an input too.
        let is_stdin = file.as_os_str() == "-";
        let path = if is_stdin { Path::new("/dev/stdin") } else { file };
        let what = if is_stdin { "standard input".to_owned() } else { file.display().to_string() };
        inputs.extend(files_of(path).iter().map(|part| Named::new(&what, part)));
    }
    let mut outputs = vec![Named::new("standard output", Path::new("/dev/stdout"))];
    if let Some(path) = &args.parquet {
        outputs.extend(tables::files(path, args).iter().map(|file| Named::by("--parquet", file)));
    }
    if let Some(path) = &args.pcap {
        outputs.push(Named::by("--pcap", path));
    }
    if let Some(path) = &args.reports {
        outputs.push(Named::by("--reports", path));
    }
    if let Some(stem) = &args.radio.record {
        let radios = args.files.len()..count;
        let files = radios.flat_map(|carrier| Writer::files(&recording(stem, carrier, count)));
        outputs.extend(files.map(|file| Named::by("--record", &file)));
    }
    outputs::check(&inputs, &outputs)
}

/// Name of the file into which a radio is recorded: `OUT`, or `OUT-1` for carrier 1 of several.
fn recording(stem: &Path, carrier: usize, carriers: usize) -> PathBuf {
    if carriers == 1 {
        return stem.to_owned();
    }
    let text = stem.to_string_lossy();
    let plain = text.strip_suffix(".sigmf-meta").or_else(|| text.strip_suffix(".sigmf-data"));
    format!("{}-{carrier}", plain.unwrap_or(&text)).into()
}
