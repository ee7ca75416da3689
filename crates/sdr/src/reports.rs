//! Radio samples as a source of live radio reports: a decoder on separate threads decodes the grants of all users.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use airpace_feed::{Fed, Feeder};
use airpace_phy::decoder::Output;
use airpace_phy::evidence::Caution;
use airpace_phy::ladder::Rung;
use airpace_radio::Rnti;
use airpace_radio::fusion::Fused;
use airpace_rt::clock;

use crate::decode::{self, DecodeEvent, Decoding, Options, ReportStream};
use crate::iq::{Lag, Source, Until};

/// Interval between checks for events.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// Error that prevents reports from samples.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The samples cannot be decoded.
    #[error(transparent)]
    Decoding(#[from] decode::Error),
    /// The operating system has no thread or descriptor left.
    #[error("the system has no thread left; end other programs")]
    Thread(#[source] io::Error),
}

/// Parameters of the reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Own {
    /// RNTI of the device whose own-radio state the reports contain.
    pub rnti: Rnti,
    /// Physical cell identity of the only cell to decode; `None` selects the strongest cell.
    pub pci: Option<u16>,
    /// Number of subframes for which a decoded message waits for confirmation; equals the delay of the reports in
    /// milliseconds.
    pub patience: u64,
}

/// Starts decoding samples. `name` is the name of the source for users. `lag` is the delay with which the samples are read,
/// if known.
///
/// # Errors
/// The samples cannot be decoded, or the system has no thread left.
pub fn open(
    name: String,
    source: Box<dyn Source>,
    own: Own,
    lag: Option<Arc<Lag>>,
) -> Result<Fed, OpenError> {
    let stop = Arc::new(AtomicBool::new(false));
    let rate_hz = source.sample_rate_hz();
    let until: Box<dyn Source> = Box::new(Until::new(source, None, Arc::clone(&stop)));
    let caution = Caution { patience: own.patience, ..Caution::default() };
    let options = Options { pci: own.pci, caution, ..Options::default() };
    let decoding = Decoding::start(vec![(name.clone(), until)], options)?;
    let stream = ReportStream::new(&[rate_hz], Some(own.rnti), own.patience, true);
    let find = move |feeder: &mut Feeder| {
        feeder.close("no cell was found yet");
        listen(feeder, decoding, stream, lag.as_deref());
        stop.store(true, Ordering::Relaxed);
    };
    Fed::start(name, "samples", find).map_err(OpenError::Thread)
}

/// Passes on the decoder's reports, until the receiver is gone or the samples end.
fn listen(feeder: &mut Feeder, mut decoding: Decoding, mut stream: ReportStream, lag: Option<&Lag>) {
    while !feeder.is_over() {
        let Some(event) = decoding.ready() else {
            std::thread::sleep(LOOK_EVERY);
            continue;
        };
        let event = match event {
            Ok(event) => event,
            Err(error) => return feeder.end(error),
        };
        let mut is_over = false;
        match &event.event {
            DecodeEvent::Heard(output) => match &**output {
                Output::Locked(_) => feeder.open(),
                Output::Lost => feeder.close("the cell is lost; the search goes on"),
                Output::Moved(moved) => feeder.close(format_args!(
                    "cell {} is left for cell {}, which is {:.0} dB louder",
                    moved.from, moved.to, moved.louder_db
                )),
                Output::Subframe(_) | Output::Late(_) => {}
            },
            DecodeEvent::Gap => feeder.count_unreadable(),
            DecodeEvent::End(end) => {
                is_over = true;
                let broken = end.ladder.as_ref().and_then(|ladder| ladder.broken());
                match (&end.failure, broken.filter(|(rung, _)| *rung < Rung::Candidates)) {
                    (Some(failure), _) => feeder.end(failure),
                    (None, Some((rung, hint))) => {
                        feeder
                            .close(format_args!("no cell could be read: stopped at {}: {hint}", rung.name()));
                    }
                    (None, None) => feeder.end("the recording has ended"),
                }
            }
            _ => {}
        }
        let (came, behind) = (clock::now(), lag.map_or(Duration::ZERO, Lag::last));
        let mut tell = |fused| {
            if let Fused::Subframe { reports, .. } = fused {
                for report in reports {
                    feeder.tell_late(came, behind, report);
                }
            }
        };
        stream.take(event, &mut tell);
        if is_over {
            return stream.finish(tell);
        }
    }
}
