//! What the radios of emulated devices say, live: as lines on Unix sockets (`--reports`), and as KPIs of libOD (`--od`).
//!
//! ```text
//! network ─reports─▶ sockets ─▶ programs
//!            └─▶ Composer ─log packets─▶ modem ═pseudo-terminal═ OpenDiag daemon ─▶ libOD ─▶ programs
//! ```
//!
//! The way to libOD is the real one: the emulated modem logs what it sees, and the daemon asks for it and reads it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use airpace_core::{DeviceId, Time};
use airpace_diag::compose::{ComposeOptions, Composed, Composer};
use airpace_diag::{ModemOptions, Radio, Stamp};
use airpace_emu::reports::{self, ReportSocket, socket_name};
use airpace_emu::turn::{Listeners, Told};
use airpace_event::Source;
use airpace_modem::daemon::{DRAIN_EVERY, Daemon, Options};
use airpace_modem::modem::{Door, Next, Stamped, TimedPacket, serve};
use airpace_modem::source::Source as Port;
use airpace_radio::RadioReport;
use anyhow::Context;

/// Batches of reports that may wait until they are told.
///
/// Chosen: a second's.
const MOST_BATCHES: usize = 1_000;

/// From 1970-01-01 to 1980-01-06, where the clocks of modems begin.
const MODEM_EPOCH: Duration = Duration::from_secs(315_964_800);

/// Where the reports of devices are told.
pub struct Telemetry {
    asked: Vec<(DeviceId, Source)>,
    sockets: Vec<ReportSocket>,
    modems: Vec<ModemChain>,
    /// Variables by which programs on each device find it.
    environment: Vec<Vec<(String, String)>>,
}

/// A device's modem and the daemon that listens to it.
struct ModemChain {
    device: DeviceId,
    composer: Composer,
    packets: Sender<TimedPacket>,
    is_over: Arc<AtomicBool>,
    modem: Option<JoinHandle<std::io::Result<()>>>,
    daemon: Daemon,
    /// The modem's time at the run's zero; known when the run begins.
    zero: Duration,
}

impl Telemetry {
    /// Opens sockets below `reports` and daemons below `od`, for each device.
    ///
    /// # Errors
    /// A folder in which they cannot be made.
    pub fn open(reports: Option<&Path>, od: Option<&Path>, devices: usize) -> anyhow::Result<Telemetry> {
        let mut telemetry =
            Telemetry { asked: vec![], sockets: vec![], modems: vec![], environment: vec![vec![]; devices] };
        let absolute = |path: &Path| {
            std::path::absolute(path).with_context(|| format!("there is no `{}`", path.display()))
        };
        for device in (0..devices).map(|index| DeviceId(index as u16)) {
            let environment = &mut telemetry.environment[usize::from(device.0)];
            let mut set =
                |name: &str, path: PathBuf| environment.push((name.to_owned(), path.display().to_string()));
            if let Some(folder) = reports {
                let folder = absolute(folder)?;
                for (source, name) in
                    [(Source::ControlChannel, "AIRPACE_REPORTS"), (Source::Modem, "AIRPACE_MODEM_REPORTS")]
                {
                    telemetry.sockets.push(ReportSocket::open(&folder, device, source)?);
                    telemetry.asked.push((device, source));
                    set(name, folder.join(socket_name(device, source)));
                }
            }
            if let Some(folder) = od {
                let folder = absolute(folder)?.join(format!("device-{}", device.0 + 1));
                telemetry.modems.push(ModemChain::start(device, folder.clone())?);
                if !telemetry.asked.contains(&(device, Source::Modem)) {
                    telemetry.asked.push((device, Source::Modem));
                }
                set("OD_DIR", folder);
            }
        }
        Ok(telemetry)
    }

    /// Variables for programs on a device.
    pub fn environment(&self, device: usize) -> &[(String, String)] {
        &self.environment[device]
    }

    /// Starts to tell what the emulator sends. Returns where it sends that, and the thread that tells it; nothing if nobody
    /// asked. `zero` is the run's zero on the wall clock.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn start(mut self, zero: SystemTime) -> anyhow::Result<Option<(Listeners, JoinHandle<()>)>> {
        if self.asked.is_empty() {
            return Ok(None);
        }
        let (send, receive): (_, Receiver<Vec<Told>>) = sync_channel(MOST_BATCHES);
        let wanted = std::mem::take(&mut self.asked);
        let zero = zero.duration_since(UNIX_EPOCH).unwrap_or(MODEM_EPOCH).saturating_sub(MODEM_EPOCH);
        self.modems.iter_mut().for_each(|chain| chain.zero = zero);
        let teller = std::thread::Builder::new().name("reports".to_owned()).spawn(move || {
            let Telemetry { mut sockets, mut modems, .. } = self;
            reports::tell(&mut sockets, &receive, |batch| {
                for (device, source, report) in batch {
                    let own = modems.iter_mut().find(|it| it.device == *device && *source == Source::Modem);
                    if let Some(chain) = own {
                        chain.hear(report);
                    }
                }
            });
        })?;
        Ok(Some((Listeners { send, wanted }, teller)))
    }
}

impl ModemChain {
    fn start(device: DeviceId, folder: PathBuf) -> anyhow::Result<ModemChain> {
        let mut door = Door::terminal().context("cannot make a pseudo-terminal for the emulated modem")?;
        let Door::Terminal { path, .. } = &door else { anyhow::bail!("the emulated modem has no terminal") };
        let port = Port::Serial(PathBuf::from(path));
        let (packets, heard) = channel::<TimedPacket>();
        let is_over = Arc::new(AtomicBool::new(false));
        let modem = {
            let is_over = Arc::clone(&is_over);
            let speech = move || match heard.try_recv() {
                Ok(packet) => Next::Packet(packet),
                Err(TryRecvError::Empty) => Next::Later,
                Err(TryRecvError::Disconnected) => Next::End,
            };
            let run =
                move || serve(&mut door, ModemOptions::default(), false, speech, &is_over, |_| ()).map(drop);
            std::thread::Builder::new().name("modem".to_owned()).spawn(run)?
        };
        let daemon = Daemon::start(Options {
            source: port,
            kpis: vec![],
            dir: Some(folder),
            drain: Some(DRAIN_EVERY),
            wants_realtime: false,
            // The modem ends with the emulator, so nobody has to restore it.
            guard: None,
            tap: None,
            packets: None,
        })
        .context("--od: cannot start the daemon that publishes KPIs")?;
        let composer = Composer::new(ComposeOptions::default());
        let zero = Duration::ZERO;
        Ok(ModemChain { device, composer, packets, is_over, modem: Some(modem), daemon, zero })
    }

    fn hear(&mut self, report: &RadioReport) {
        let (zero, packets) = (self.zero, &self.packets);
        self.composer.push(report, |Composed { at, code, payload }| {
            let stamp = Stamp::from_nanos((zero + (at - Time::ZERO)).as_nanos() as u64);
            let packet = TimedPacket {
                at: Time::ZERO,
                radio: Radio::FIRST,
                code,
                stamped: Stamped::Kept(stamp),
                payload,
            };
            // A modem that broke down has said so.
            let _ = packets.send(packet);
        });
    }
}

impl Drop for ModemChain {
    fn drop(&mut self) {
        self.daemon.leave();
        while self.daemon.notices().recv().is_ok() {}
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(modem) = self.modem.take() {
            let _ = modem.join();
        }
    }
}
