//! The daemon: listens to a modem and publishes KPIs to programs that subscribe.
//!
//! ```text
//!              data thread                                        control thread
//! port ─read─▶ Line ─packets─▶ Extractor ─samples─▶ Publisher     control socket ◀─▶ programs
//!                │                                      ║         Board: heartbeat, names
//!                └──messages: frames, a new port────────╫───────▶ port ─write─▶ frames, drains
//!                ◀──orders: another subscription, leave─╫───────  guard
//!                                                     board
//! ```
//!
//! The data thread only reads the port. The control thread only writes to it, every few milliseconds if the modem's
//! buffer is to be drained; with each drain both wake up once, and hardly ever otherwise. They talk by channels that
//! never wait, and share counters. Programs talk only to the control thread, and read the board unnoticed by both
//! threads. Nothing that a program does or fails to do reaches the data thread.
//!
//! Source: BISCAY §3.2.3; BISCAY §4

mod control;
mod data;
mod notice;

use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::JoinHandle;
use std::time::Duration;

use airpace_diag::kpi::{KpiError, Sample, Subscription};
use airpace_diag::{LogCode, LogPacket, Radio, Stamp};
use od::control::Server;
use od::{Board, SlotId};
use rustix::event::{EventfdFlags, eventfd};

use crate::metrics::Metrics;
use crate::source::{Port, Source};

pub use notice::Notice;

/// KPIs that a board has room for.
///
/// Chosen: each KPI of the list for both SIMs, and as many fields of packets.
pub const CAPACITY: u32 = 1_024;

/// How often the modem's buffer is drained, unless an option says otherwise.
///
/// Source: BISCAY §4
pub const DRAIN_EVERY: Duration = Duration::from_millis(1);

/// Options of a daemon.
pub struct Options {
    /// Where the modem's port is.
    pub source: Source,
    /// KPIs that are published even without a subscription: names as [`airpace_diag::kpi::Wanted`] reads them.
    pub kpis: Vec<String>,
    /// The folder of the control socket. Without one, no program can subscribe, and the file system holds nothing that a
    /// killed daemon would leave.
    pub dir: Option<PathBuf>,
    /// How often the modem's buffer is drained, if the device allows it; `None` never drains it.
    pub drain: Option<Duration>,
    /// Whether to ask for real-time priority and locked memory.
    pub wants_realtime: bool,
    /// Makes the command that stands guard; see [`crate::guard`]. Without a guard, a daemon that is killed leaves the
    /// modem changed.
    pub guard: Option<Box<dyn FnMut() -> Command + Send>>,
    /// Gets a copy of every sample. A sample that does not fit is lost.
    pub tap: Option<SyncSender<Tapped>>,
    /// Gets a copy of every packet that the modem sends, for a reader of more than KPIs. A packet that does not fit is
    /// lost. The modem is asked only for the packets of [`Options::kpis`].
    pub packets: Option<SyncSender<Packet>>,
}

/// A log packet that owns its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The radio that it comes from.
    pub radio: Radio,
    /// What it reports.
    pub code: LogCode,
    /// When, by the modem's clock.
    pub stamp: Stamp,
    /// Its content.
    pub payload: Vec<u8>,
}

impl Packet {
    /// The same packet in the form that readers of packets take.
    pub fn as_log_packet(&self) -> LogPacket<'_> {
        let Packet { radio, code, stamp, ref payload } = *self;
        LogPacket { radio, code, stamp, payload }
    }
}

impl From<&LogPacket<'_>> for Packet {
    fn from(packet: &LogPacket<'_>) -> Packet {
        let LogPacket { radio, code, stamp, payload } = *packet;
        Packet { radio, code, stamp, payload: payload.to_vec() }
    }
}

/// A sample, as sent to the tap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tapped {
    /// The place of its KPI. The KPIs of [`Options::kpis`] have the first places, in their order, each name once.
    pub slot: SlotId,
    /// Its number among the samples of its KPI.
    pub sequence: u64,
    /// The sample itself.
    pub sample: Sample,
    /// When its bytes arrived, in ns of [`od::clock`].
    pub arrival_ns: u64,
}

/// Why a daemon cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A KPI name without a meaning.
    #[error(transparent)]
    Kpi(#[from] KpiError),
    /// An error of the board or its folder.
    #[error(transparent)]
    Board(#[from] od::Error),
    /// A port that can never be one, or that another program uses.
    #[error("{port}: {why}")]
    Port {
        /// The port's name, as given.
        port: Source,
        /// What is wrong with it.
        why: io::Error,
    },
    /// An error of the operating system.
    #[error(transparent)]
    System(#[from] io::Error),
}

/// A running daemon. Dropping it makes it leave.
#[derive(Debug)]
pub struct Daemon {
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    metrics: Arc<Metrics>,
    notices: Receiver<Notice>,
}

impl Daemon {
    /// Starts a daemon. It opens the port as soon as the port exists.
    ///
    /// # Errors
    /// An unknown KPI; a folder in which a daemon runs, or that is not ours; a port that can never be one, or that
    /// another program uses.
    pub fn start(options: Options) -> Result<Daemon, StartError> {
        let subscription = Subscription::new(options.kpis.iter().map(String::as_str))?;
        let server = options.dir.as_deref().map(Server::bind).transpose()?;
        let port = options
            .source
            .open_first()
            .map_err(|why| StartError::Port { port: options.source.clone(), why })?;
        let (board, publisher) = Board::create(CAPACITY).map_err(io::Error::from)?;
        let metrics = Arc::new(Metrics::new(CAPACITY));
        let (messages_in, messages) = mpsc::channel();
        let (orders_in, orders) = mpsc::channel();
        let (notices_in, notices) = mpsc::channel();
        let wake =
            Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(io::Error::from)?);
        let is_over = Arc::new(AtomicBool::new(false));

        let data = data::Data::new(data::Parts {
            source: options.source.clone(),
            port,
            publisher,
            orders,
            wake: Arc::clone(&wake),
            messages: messages_in,
            notices: notices_in.clone(),
            metrics: Arc::clone(&metrics),
            tap: options.tap,
            packets: options.packets,
            drain: options.drain,
            wants_realtime: options.wants_realtime,
        });
        let mut control = control::Control::new(control::Parts {
            source: options.source,
            board,
            server,
            messages,
            orders: orders_in,
            wake,
            notices: notices_in,
            metrics: Arc::clone(&metrics),
            drain: options.drain,
            guard: options.guard,
            is_over: Arc::clone(&is_over),
            wants_realtime: options.wants_realtime,
        });
        control.pin(&subscription)?;
        let named = |name: &str| std::thread::Builder::new().name(name.to_owned());
        let threads = vec![
            named("od-data").spawn(move || data.run())?,
            named("od-control").spawn(move || control.run())?,
        ];
        Ok(Daemon { is_over, threads, metrics, notices })
    }

    /// The daemon's counters.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// Messages to people, as they happen; they end with the daemon.
    pub fn notices(&self) -> &Receiver<Notice> {
        &self.notices
    }

    /// Makes the daemon leave: it restores the modem and ends the programs' connections. [`Daemon::notices`] ends then.
    pub fn leave(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Lets another thread, for example a signal's, do the same.
    pub fn leaver(&self) -> impl Fn() + Send + Sync + 'static {
        let is_over = Arc::clone(&self.is_over);
        move || is_over.store(true, Ordering::Relaxed)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.leave();
        for thread in self.threads.drain(..) {
            // A thread that panicked has printed that already.
            let _ = thread.join();
        }
    }
}

/// Messages from the data thread to the control thread.
enum DataMessage {
    /// A port was opened.
    Opened(Arc<Port>),
    /// The port is lost.
    Lost,
    /// The frames that would restore the modem.
    Restore(Vec<u8>),
    /// Frames to send.
    Send(Vec<u8>),
    /// The frame that asks for a drain in-band, if the modem understands it.
    Drain(Option<Vec<u8>>),
    /// Drains fall together with packets that come by the same rhythm: they are to come half a period later.
    Dodge,
    /// The data thread ends; whether the modem is restored.
    Left(bool),
}

/// Messages from the control thread to the data thread.
enum Order {
    /// What to publish, and where: the place and its generation.
    Follow(Subscription, Vec<(SlotId, u16)>),
    /// Restore the modem.
    Leave,
}
