//! Radio samples as a source of reports: a recording, replayed at its original pace, or a radio. A decoder on separate
//! threads decodes the grants of all users.

use std::path::PathBuf;
use std::sync::Arc;

use airpace_core::Refused;
use airpace_feed::Radio;
use airpace_radio::Rnti;
use airpace_sdr::iq::{Format, Lag, Paced, Reader, Source};
use airpace_sdr::radio::{self, Settings, hertz};
use airpace_sdr::reports::{self, OpenError, Own};
use anyhow::{anyhow, bail};

use crate::called;
use crate::cmd::decode::{patience, rnti, which_cell};

/// Number of subframes for which a decoded message waits for confirmation; equals the delay of the reports in
/// milliseconds.
///
/// Chosen: a fifth of the time after which telemetry counts as stale. `airpace decode`, which has no deadline, waits
/// for 100 ms.
const PATIENCE: u64 = 20;

/// File extensions of recordings that contain their own description.
const ENDINGS: [&str; 4] = [".sigmf-meta", ".sigmf-data", ".sigmf", ".sigmf-data.zst"];

/// Whether the text names samples: `iq:FILE`, a SigMF recording, or a radio as SoapySDR names it.
pub fn is_meant(text: &str) -> bool {
    let first = text.split(',').next().unwrap_or_default();
    text.starts_with("iq:") || is_radio(text) || ENDINGS.iter().any(|ending| first.ends_with(ending))
}

fn is_radio(text: &str) -> bool {
    text.split(',').any(|word| word.trim().starts_with("driver="))
}

/// Samples to decode, and decoding parameters.
#[derive(Debug, PartialEq)]
struct Wanted {
    origin: Origin,
    /// RNTI of this machine.
    own: Option<Rnti>,
    pci: Option<u16>,
    patience: u64,
}

#[derive(Debug, PartialEq)]
enum Origin {
    /// A file, with the sample rate and the format of raw samples.
    File(PathBuf, Option<f64>, Option<Format>),
    Radio(Settings),
}

impl Wanted {
    /// Parses `FILE,rnti=R,cell=N,patience=MS,rate=HZ,format=F`, or `driver=…,rnti=R,…`.
    fn read(text: &str) -> Result<Wanted, Refused> {
        let (mut own, mut pci, mut wait, mut rate, mut format) = (None, None, PATIENCE, None, None);
        let (mut rest, mut has_keys, is_radio) = (vec![], false, is_radio(text));
        for word in text.strip_prefix("iq:").unwrap_or(text).split(',') {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            let refused = |why: Refused| why.at(format_args!("{key}={value}"));
            match key.trim() {
                "rnti" => own = Some(rnti(value).map_err(|why| refused(why.into()))?),
                "cell" => pci = which_cell(value).map_err(|why| refused(why.into()))?.pci(),
                "patience" => wait = patience(value).map_err(|why| refused(why.into()))?,
                "rate" if !is_radio => rate = Some(hertz(value).map_err(refused)?),
                "format" if !is_radio => {
                    let read = value.parse().map_err(|error: airpace_sdr::iq::NoFormat| Refused::of(&error));
                    format = Some(read.map_err(refused)?);
                }
                // The name of the file may contain commas.
                _ if !is_radio && has_keys => {
                    return Err(format!(
                        "`{word}` is none of rnti=R, cell=N, patience=MS, rate=HZ and format=F, which stand behind the file"
                    ).into());
                }
                _ => {
                    rest.push(word);
                    continue;
                }
            }
            has_keys = true;
        }
        let rest = rest.join(",");
        let origin = match is_radio {
            true => Origin::Radio(Settings::default().with(&rest)?),
            false if rest.is_empty() => return Err("name a file of samples, as in iq:FILE".into()),
            false => Origin::File(PathBuf::from(rest), rate, format),
        };
        Ok(Wanted { origin, own, pci, patience: wait })
    }
}

/// Files of the recording that `text` names; metadata and samples may be separate files.
pub fn files(text: &str) -> Vec<PathBuf> {
    match Wanted::read(text).map(|wanted| wanted.origin) {
        Ok(Origin::File(path, ..)) => {
            let twins = ["sigmf-meta", "sigmf-data"].map(|end| path.with_extension(end));
            [path].into_iter().chain(twins).collect()
        }
        _ => vec![],
    }
}

/// Starts decoding the samples that `text` names.
///
/// # Errors
/// The samples cannot be opened or decoded, or `text` contains no RNTI.
pub fn open(text: &str) -> anyhow::Result<Box<dyn Radio>> {
    if is_radio(text) && !radio::IS_BUILT {
        // Another airpace decodes: the text has its usual name.
        bail!(
            "--radio {text}: this airpace was built without SoapySDR, which listens to radios: {}; or let an airpace that has \
             it run `airpace decode --device {text} --rnti R --reports FILE`, and give --radio FILE",
            radio::REMEDY
        );
    }
    let wanted = Wanted::read(text).map_err(|why| anyhow!(why).context("--radio"))?;
    let Some(own) = wanted.own else {
        bail!(
            "--radio {text}: which of the cell's users is this machine? Add ,rnti=R; {} lists the detected RNTIs",
            called::command("decode … --stats")
        );
    };
    // The errors contain their cause in their text.
    let told = |error: airpace_sdr::iq::Error| anyhow!(error).context(format!("--radio {text}"));
    let (name, source, lag): (_, Box<dyn Source>, Option<Arc<Lag>>) = match &wanted.origin {
        Origin::File(path, rate, format) => {
            let reader = Reader::open(path, (*rate, *format)).map_err(told)?;
            let name = format!("radio samples of {}", path.display());
            if reader.is_live() {
                (name, Box::new(reader), None)
            } else {
                let paced = Paced::new(Box::new(reader));
                let lag = paced.lag();
                (name, Box::new(paced), Some(lag))
            }
        }
        Origin::Radio(settings) => {
            let (source, tuned) = radio::open(settings).map_err(told)?;
            (format!("the radio {} at {tuned}", settings.name()), source, None)
        }
    };
    let own = Own { rnti: own, pci: wanted.pci, patience: wanted.patience };
    let fed = reports::open(name, source, own, lag).map_err(|error| match error {
        OpenError::Decoding(error) => anyhow!("--radio {error}"),
        error @ OpenError::Thread(_) => error.into(),
    })?;
    Ok(Box::new(fed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_and_whom_to_follow_are_one_word() {
        let wanted = Wanted::read("a,b.sigmf-meta,rnti=0x1234,cell=42,patience=5").unwrap();
        let file = Origin::File("a,b.sigmf-meta".into(), None, None);
        assert_eq!(wanted, Wanted { origin: file, own: Some(Rnti(0x1234)), pci: Some(42), patience: 5 });
        let wanted = Wanted::read("iq:raw,rate=1.92M,format=ci8").unwrap();
        let file = Origin::File("raw".into(), Some(1.92e6), Some("ci8".parse().unwrap()));
        assert_eq!(wanted, Wanted { origin: file, own: None, pci: None, patience: PATIENCE });
        let Origin::Radio(settings) =
            Wanted::read("driver=rtlsdr,freq=806M,rnti=70,rate=1.92M").unwrap().origin
        else {
            panic!("a radio")
        };
        assert_eq!((settings.name().as_str(), settings.rate_hz), ("driver=rtlsdr", Some(1.92e6)));
        for (wrong, said) in [
            ("a.sigmf,rnti=0", "rnti=0: no user has this RNTI"),
            ("a.sigmf,rnti=7x", "give an RNTI"),
            ("a.sigmf,cell=900", "0 to 503"),
            ("a.sigmf,rnti=70,b", "`b` is none of"),
            ("iq:", "iq:FILE"),
            ("iq:a,format=x", "format=x"),
            ("driver=rtlsdr,freq=x", "freq=x"),
        ] {
            let refusal = Wanted::read(wrong).unwrap_err();
            assert!(refusal.to_string().contains(said), "{wrong}: {refusal}");
        }
    }

    #[test]
    fn samples_are_told_from_lines() {
        for samples in ["a.sigmf-meta", "a.sigmf-data,rnti=7", "iq:-", "driver=uhd", "serial=1,driver=uhd"] {
            assert!(is_meant(samples), "{samples}");
        }
        for lines in ["reports.jsonl", "tcp:127.0.0.1:9", "a,rnti=7", "-"] {
            assert!(!is_meant(lines), "{lines}");
        }
        let refusal = |text: &str| format!("{:#}", open(text).err().expect("it is refused"));
        assert!(refusal("none.sigmf-meta").contains(",rnti=R"), "{}", refusal("none.sigmf-meta"));
        assert!(refusal("none.sigmf-meta,rnti=70").contains("none.sigmf-meta"));
    }
}
