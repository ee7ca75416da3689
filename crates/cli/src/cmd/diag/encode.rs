//! `airpace diag encode`: writes the log of a simulated device's modem.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

use airpace_core::Time;
use airpace_lab::simulated::{LogWriter, Written};
use anyhow::bail;
use serde_json::json;

use super::simulated::{self, DeviceArgs};
use crate::cmd::outputs::{self, Named};
use crate::cmd::{Verdict, on_interrupt, positive};
use crate::terminal::{self, count};

/// Writes the log of a simulated device's modem about its cell, without real-time pacing.
///
/// The log contains the packets that `airpace diag modem SCENARIO` sends to a host: the DCIs of each subframe (0xB130),
/// downlink and uplink transmissions (0xB173, 0xB139), and the signal (0xB193). For carriers of NR, it contains
/// uplink transmissions (0xB883) and sums of downlink blocks (0xB888). Time stamps start at 2026-01-01 00:00:00 UTC. The
/// same command gives the same bytes.
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
    let end = Time::from_secs_f64(args.seconds.unwrap_or(whole));
    let mut log = LogWriter::new(outputs::whole("--out", &args.out)?);
    let stop = on_interrupt()?;
    let bar = terminal::progress(args.json);
    bar.set_length(end.as_nanos() / 1_000_000);
    bar.set_message("simulating");
    let mut trouble = None;
    simulated.run(args.device.seed, Duration::ZERO, &mut |composed| {
        if stop.load(Ordering::Relaxed) || composed.at >= end {
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
    let Written { packets, bytes } = log.finish().map_err(refused)?;
    let name = args.out.display();
    if args.json {
        writeln!(out, "{}", json!({"out": name.to_string(), "packets": packets, "bytes": bytes}))?;
    } else {
        let (packets, bytes) = (count(packets, "log packet"), count(bytes, "byte"));
        writeln!(out, "{name}: {packets} in {bytes}: {}", simulated.about())?;
    }
    Ok(Verdict::Fine)
}
