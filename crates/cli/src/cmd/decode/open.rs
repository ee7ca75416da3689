//! Opens what samples come from: recordings, then radios.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use airpace_live::iq::{Error, Lag, Paced, Reader, Recorded, Source, Until};
use airpace_live::radio;
use anyhow::{anyhow, bail};

use super::Args;
use crate::terminal::say;

/// What samples come from, by name.
pub struct Opened {
    /// All of it: recordings first.
    pub sources: Vec<(String, Box<dyn Source>)>,
    /// With `--pace`: how far behind each recording is read.
    pub lags: Vec<(String, Arc<Lag>)>,
}

/// All of them, before the first is read. They end after `--for`, or when `stop` is set.
///
/// # Errors
/// If one cannot be opened, or there are more than can be told apart.
pub fn all(args: &Args, stop: &Arc<AtomicBool>) -> anyhow::Result<Opened> {
    let count = args.files.len() + args.radio.count();
    if count > 256 {
        bail!("{count} cells at once: 256 carriers can be told apart");
    }
    if args.files.iter().filter(|file| file.as_os_str() == "-").count() > 1 {
        bail!("standard input can be read once");
    }
    let until = |source| -> Box<dyn Source> {
        Box::new(Until::new(source, args.span.map(|span| span.as_secs_f64()), Arc::clone(stop)))
    };
    // The errors have their cause in their text.
    let told = |error: Error| anyhow!("{error}");
    let (mut sources, mut lags) = (Vec::with_capacity(count), vec![]);
    for file in &args.files {
        let name = file.display().to_string();
        let reader = Reader::open(file, (args.rate, args.format)).map_err(told)?;
        if let Some(said) = reader.meta().overruled() {
            let (rate, format) = (reader.meta().sample_rate_hz, reader.meta().format);
            say(format_args!(
                "airpace: {name} is described as {said}; as --rate and --format say, it is read as {format} at {rate} samples \
                 per second"
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
        let (source, tuned) = radio::open(&settings).map_err(told)?;
        say(format_args!("airpace: {name} listens at {tuned}"));
        let mut source = until(source);
        if let Some(stem) = &args.radio.record {
            let path = recording(stem, (count > 1).then_some(sources.len()));
            source = Box::new(Recorded::new(source, &path, Some(tuned.frequency_hz)).map_err(told)?);
        }
        sources.push((name, source));
    }
    Ok(Opened { sources, lags })
}

/// What a radio is recorded into: `OUT`, or `OUT-1` for carrier 1 of several.
fn recording(stem: &Path, carrier: Option<usize>) -> PathBuf {
    let Some(carrier) = carrier else { return stem.to_owned() };
    let text = stem.to_string_lossy();
    let plain = text.strip_suffix(".sigmf-meta").or_else(|| text.strip_suffix(".sigmf-data"));
    format!("{}-{carrier}", plain.unwrap_or(&text)).into()
}
