//! Live radio reports of emulated devices: as lines on Unix sockets, and as KPIs of libOD.
//!
//! ```text
//! network ─reports─▶ sockets ─▶ programs
//!            └─▶ Composer ─log packets─▶ modem ═pseudo-terminal═ OpenDiag daemon ─▶ libOD ─▶ programs
//! ```
//!
//! The path to libOD is that of a real phone: the emulated modem writes log packets, and the daemon requests and parses
//! them.

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

use crate::error::LabError;

/// Maximum number of batches of reports that wait for their distribution.
///
/// Chosen: the batches of one second.
const MAX_BATCHES: usize = 1_000;

/// Error if the system cannot start a thread.
const NO_THREAD: &str = "the system gives no further thread";

/// Time from 1970-01-01 to 1980-01-06, the epoch of modem clocks.
const MODEM_EPOCH: Duration = Duration::from_secs(315_964_800);

/// Receivers of the reports of devices.
pub struct Telemetry {
    asked: Vec<(DeviceId, Source)>,
    sockets: Vec<ReportSocket>,
    modems: Vec<ModemChain>,
    /// Environment variables with the paths of sockets and daemons, per device.
    environment: Vec<Vec<(String, String)>>,
}

/// The emulated modem of a device and the daemon that reads its log packets.
struct ModemChain {
    device: DeviceId,
    composer: Composer,
    packets: Sender<TimedPacket>,
    is_over: Arc<AtomicBool>,
    modem: Option<JoinHandle<std::io::Result<()>>>,
    daemon: Daemon,
    /// The modem's time at the start of the run; set by [`Telemetry::start`].
    zero: Duration,
}

impl Telemetry {
    /// Opens sockets in `reports` and daemons in `od`, for each device.
    ///
    /// # Errors
    /// The sockets or daemons cannot be created in the folder.
    pub fn open(reports: Option<&Path>, od: Option<&Path>, devices: usize) -> Result<Telemetry, LabError> {
        let mut telemetry =
            Telemetry { asked: vec![], sockets: vec![], modems: vec![], environment: vec![vec![]; devices] };
        let absolute = |path: &Path| {
            std::path::absolute(path).map_err(LabError::step(format!("there is no `{}`", path.display())))
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

    /// Environment variables for programs on a device.
    pub fn environment(&self, device: usize) -> &[(String, String)] {
        &self.environment[device]
    }

    /// Starts the distribution of reports. Returns the channel to which the emulator sends reports, and the thread that
    /// distributes them; `None` if no receiver is configured. `zero` is the wall-clock time of the run's start.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(mut self, zero: SystemTime) -> Result<Option<(Listeners, JoinHandle<()>)>, LabError> {
        if self.asked.is_empty() {
            return Ok(None);
        }
        let (send, receive): (_, Receiver<Vec<Told>>) = sync_channel(MAX_BATCHES);
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
        });
        let teller = teller.map_err(LabError::step(NO_THREAD))?;
        Ok(Some((Listeners { send, wanted }, teller)))
    }
}

impl ModemChain {
    fn start(device: DeviceId, folder: PathBuf) -> Result<ModemChain, LabError> {
        let mut door = Door::terminal()
            .map_err(LabError::step("cannot make a pseudo-terminal for the emulated modem"))?;
        let Door::Terminal { path, .. } = &door else {
            return Err(LabError::Refused("the emulated modem has no terminal".into()));
        };
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
            std::thread::Builder::new()
                .name("modem".to_owned())
                .spawn(run)
                .map_err(LabError::step(NO_THREAD))?
        };
        let daemon = Daemon::start(Options {
            source: port,
            kpis: vec![],
            dir: Some(folder),
            drain: Some(DRAIN_EVERY),
            wants_realtime: false,
            // The modem ends with the emulator, so its settings need not be restored.
            guard: None,
            tap: None,
            packets: None,
        })
        .map_err(|error| {
            LabError::Refused(format!("cannot start the daemon that publishes KPIs: {error}").into())
        })?;
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
            // Ignore the error: a modem that failed has already reported its failure.
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
