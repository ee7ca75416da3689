//! The daemon: receives a modem's diagnostic stream and publishes KPIs to programs that subscribe.
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
//! The data thread only reads the port. The control thread only writes to the port, every few milliseconds if the
//! daemon drains the modem's buffer. Both threads wake up once with each drain, and rarely at other times. The two
//! threads communicate by channels that never block, and by shared counters. Programs communicate only with the control
//! thread, and read the board without involving either thread. No action of a program can delay the data thread.
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

/// Maximum number of KPIs on a board (shared-memory region).
///
/// Chosen: enough for each KPI of the list for both SIMs, and for as many fields of packets.
pub const CAPACITY: u32 = 1_024;

/// Default interval of the drains of the modem's buffer.
///
/// Source: BISCAY §4
pub const DRAIN_EVERY: Duration = Duration::from_millis(1);

/// Options of a daemon.
pub struct Options {
    /// The modem's port.
    pub source: Source,
    /// KPIs that are published even without a subscription: names as [`airpace_diag::kpi::Wanted`] parses them.
    pub kpis: Vec<String>,
    /// Folder of the control socket. Without it, no program can subscribe, and a killed daemon leaves nothing in the file
    /// system.
    pub dir: Option<PathBuf>,
    /// Interval of the drains of the modem's buffer, if the device supports them; with `None`, the buffer is never
    /// drained.
    pub drain: Option<Duration>,
    /// Whether to request real-time priority and locked memory.
    pub wants_realtime: bool,
    /// Creates the guard's command; see [`crate::guard`]. Without a guard, a killed daemon does not restore the modem.
    pub guard: Option<Box<dyn FnMut() -> Command + Send>>,
    /// Receives a copy of every sample. A sample is dropped if the channel is full.
    pub tap: Option<SyncSender<Tapped>>,
    /// Receives a copy of every packet that the modem sends, for readers that need more than KPIs. A packet is dropped
    /// if the channel is full. The daemon requests only the packets that [`Options::kpis`] need.
    pub packets: Option<SyncSender<Packet>>,
}

/// A log packet that owns its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Radio of the packet.
    pub radio: Radio,
    /// Log code, which identifies the content.
    pub code: LogCode,
    /// Time stamp of the modem's clock.
    pub stamp: Stamp,
    /// Content.
    pub payload: Vec<u8>,
}

impl Packet {
    /// Converts the packet to the type that packet readers use.
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
    /// Slot of the KPI on the board. The KPIs of [`Options::kpis`] have the first slots, in their order, and each name
    /// has one slot.
    pub slot: SlotId,
    /// Number of the sample among the samples of its KPI.
    pub sequence: u64,
    /// The sample itself.
    pub sample: Sample,
    /// Time at which the sample's bytes arrived, in ns of [`od::clock`].
    pub arrival_ns: u64,
}

/// Error that prevents the start of a daemon.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A KPI name that is not defined.
    #[error(transparent)]
    Kpi(#[from] KpiError),
    /// An error of the board or its folder.
    #[error(transparent)]
    Board(#[from] od::Error),
    /// A path or address that cannot be a port, or a port that another program uses.
    #[error("{port}")]
    Port {
        /// Name of the port, as given.
        port: Source,
        /// The error of the port.
        #[source]
        why: io::Error,
    },
    /// An error of the operating system.
    #[error(transparent)]
    System(#[from] io::Error),
}

/// A running daemon. Dropping this value stops the daemon and restores the modem.
#[derive(Debug)]
pub struct Daemon {
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    metrics: Arc<Metrics>,
    notices: Receiver<Notice>,
}

impl Daemon {
    /// Starts a daemon. The daemon opens the port as soon as the port exists.
    ///
    /// # Errors
    /// An unknown KPI; a folder that another daemon uses, or that does not belong to this user; a path or address that
    /// cannot be a port; a port that another program uses.
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

    /// Returns the daemon's counters.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// Returns the channel of messages to users; it closes when the daemon ends.
    pub fn notices(&self) -> &Receiver<Notice> {
        &self.notices
    }

    /// Stops the daemon: it restores the modem and closes the programs' connections. Then [`Daemon::notices`] closes.
    pub fn leave(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Returns a function that stops the daemon from another thread, for example a signal handler's.
    pub fn leaver(&self) -> impl Fn() + Send + Sync + 'static {
        let is_over = Arc::clone(&self.is_over);
        move || is_over.store(true, Ordering::Relaxed)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.leave();
        for thread in self.threads.drain(..) {
            // The join fails only for a thread that panicked, and the panic has already been printed.
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
    /// Frames that restore the modem.
    Restore(Vec<u8>),
    /// Frames to send to the modem.
    Send(Vec<u8>),
    /// The frame that requests a drain in-band; `None` if the modem does not support such a request.
    Drain(Option<Vec<u8>>),
    /// Drains coincide with packets that have the same period: the control thread must delay the drains by half a
    /// period.
    Dodge,
    /// The data thread ends. The flag is true if the modem is restored.
    Left(bool),
}

/// Messages from the control thread to the data thread.
enum Order {
    /// KPIs to publish, with the slot and generation of each.
    Follow(Subscription, Vec<(SlotId, u16)>),
    /// Restore the modem and end the thread.
    Leave,
}
