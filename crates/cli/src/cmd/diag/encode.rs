//! `airpace diag encode`: writes the log of a simulated device's modem.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

use airpace_core::Time;
use airpace_diag::compose::Composed;
use airpace_diag::{Framing, LogPacket, Radio, Stamp, frame};
use airpace_files::Whole;
use anyhow::bail;
use serde_json::json;

use super::simulated::{self, DeviceArgs};
use crate::cmd::outputs::{self, Named};
use crate::cmd::{Verdict, on_interrupt, positive};
use crate::terminal::{self, count};

/// Writes the log of a simulated device's modem about its cell, without real-time pacing.
///
/// The log contains the packets that `airpace diag modem SCENARIO` sends to a host: the DCIs of each subframe (0xB130),
/// downlink and uplink transmissions (0xB173, 0xB139), and the signal (0xB193). Time stamps start at 2026-01-01 00:00:00
/// UTC. The same command gives the same bytes.
#[derive(clap::Args)]
#[command(before_help = "Example: airpace diag encode competitor --seconds 10 --out phone.qmdl\n         \
                         airpace diag encode biscay-uplink --set cell.prbs=50 --out uplink.qmdl")]
pub struct Args {
    /// A scenario with a cell: a name from `airpace list scenarios` or a TOML file.
    scenario: String,
    /// The log to write.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Duration of the log in seconds. [default: the scenario's duration]
    #[arg(long, value_name = "S", allow_negative_numbers = true, value_parser = positive)]
    seconds: Option<f64>,
    #[command(flatten)]
    device: DeviceArgs,
    /// Prints one JSON object that summarises the log.
    #[arg(long)]
    json: bool,
}

/// Start of the run by the modem's clock: 2026-01-01 00:00:00 UTC, as time since 1980-01-06.
///
/// Chosen: a fixed day, so that the output is always the same, and late enough to be recognised as a time that the
/// modem received from the network.
const BEGIN: Duration = Duration::from_secs(16_797 * 86_400);

/// Writes the log.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let simulated = simulated::load(&args.scenario, &args.device)?;
    let whole = simulated.duration().as_secs_f64();
    if let Some(wanted) = args.seconds.filter(|wanted| *wanted > whole) {
        bail!(
            "--seconds {wanted}: the scenario ends after {whole} s; give less, or --set duration_s={wanted} too"
        );
    }
    let source = Path::new(&args.scenario);
    let inputs: Vec<_> = source.is_file().then(|| Named::new(&args.scenario, source)).into_iter().collect();
    outputs::check(&inputs, &[Named::by("--out", &args.out)])?;
    let refused = outputs::refused("--out", &args.out);
    let mut log = Log {
        file: outputs::whole("--out", &args.out)?,
        end: Time::from_secs_f64(args.seconds.unwrap_or(whole)),
        packets: 0,
        bytes: 0,
        body: vec![],
        framed: vec![],
    };
    let stop = on_interrupt()?;
    let bar = terminal::progress(args.json);
    bar.set_length(log.end.as_nanos() / 1_000_000);
    bar.set_message("simulating");
    let mut trouble = None;
    simulated.run(args.device.seed, Duration::ZERO, &mut |composed| {
        if stop.load(Ordering::Relaxed) || composed.at >= log.end {
            return ControlFlow::Break(());
        }
        bar.set_position(composed.at.as_nanos() / 1_000_000);
        match log.write(&composed) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                trouble = Some(error);
                ControlFlow::Break(())
            }
        }
    })?;
    bar.finish_and_clear();
    if let Some(error) = trouble {
        return Err(refused(error));
    }
    if stop.load(Ordering::Relaxed) {
        bail!("stopped; nothing was kept");
    }
    let Log { file, packets, bytes, .. } = log;
    file.finish().map_err(refused)?;
    let name = args.out.display();
    if args.json {
        writeln!(out, "{}", json!({"out": name.to_string(), "packets": packets, "bytes": bytes}))?;
    } else {
        let (packets, bytes) = (count(packets, "log packet"), count(bytes, "byte"));
        writeln!(out, "{name}: {packets} in {bytes}: {}", simulated.about())?;
    }
    Ok(Verdict::Fine)
}

/// A log that is being written, with the framing of a diagnostic port.
struct Log {
    file: Whole,
    end: Time,
    packets: u64,
    bytes: u64,
    body: Vec<u8>,
    framed: Vec<u8>,
}

impl Log {
    fn write(&mut self, composed: &Composed) -> std::io::Result<()> {
        let Composed { at, code, payload } = composed;
        let stamp = Stamp::from_nanos((BEGIN + Duration::from_nanos(at.as_nanos())).as_nanos() as u64);
        self.body.clear();
        self.framed.clear();
        LogPacket { radio: Radio::FIRST, code: *code, stamp, payload }.write(false, &mut self.body);
        frame::encode(Framing::Hdlc, &self.body, &mut self.framed);
        self.packets += 1;
        self.bytes += self.framed.len() as u64;
        self.file.write_all(&self.framed)
    }
}
