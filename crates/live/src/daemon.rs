//! The daemon: listens to a modem and publishes KPIs to whoever subscribes.
//!
//! ```text
//!              data thread                                        control thread
//! port ─read─▶ Line ─packets─▶ Extractor ─samples─▶ Publisher     control socket ◀─▶ programs
//!                │                                      ║         Board: heartbeat, names
//!                └──words: frames to send, a new port───╫───────▶ port ─write─▶ frames, drains
//!                ◀──orders: another subscription, leave─╫───────  guard
//!                                                     board
//! ```
//!
//! The data thread only reads the port; the control thread only writes to it, every millisecond where the modem's buffer is
//! to be drained. They tell each other things by channels that never wait, and share counters. Programs talk to the
//! control thread alone, and read the board without either noticing: nothing that a program does or fails to do
//! reaches the data thread.
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
/// Chosen: each KPI of the list for both SIMs, and as many fields of packets again.
pub const CAPACITY: u32 = 1_024;

/// How often the modem's buffer is drained where nothing else is said.
///
/// Source: BISCAY §4
pub const DRAIN_EVERY: Duration = Duration::from_millis(1);

/// How a daemon is to work.
pub struct Options {
    /// Where the modem's port is.
    pub source: Source,
    /// What is published whoever asks: names as [`airpace_diag::kpi::Wanted`] reads them.
    pub kpis: Vec<String>,
    /// The folder of the control socket.
    pub dir: PathBuf,
    /// How often the modem's buffer is drained, where the device allows it; `None` never does.
    pub drain: Option<Duration>,
    /// Whether to ask for real-time priority and locked memory.
    pub wants_realtime: bool,
    /// Makes the command that stands guard; see [`crate::guard`]. Without one, a daemon that is killed leaves the modem
    /// as it had changed it.
    pub guard: Option<Box<dyn FnMut() -> Command + Send>>,
    /// Gets a copy of every sample; one that does not fit is lost.
    pub tap: Option<SyncSender<Tapped>>,
    /// Gets a copy of every packet that the modem sends, for who reads more of them than KPIs; one that does not fit is
    /// lost. The modem is asked for the packets of [`Options::kpis`] and no others.
    pub packets: Option<SyncSender<Packet>>,
}

/// A log packet of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Whose.
    pub radio: Radio,
    /// What it reports.
    pub code: LogCode,
    /// When, by the modem.
    pub stamp: Stamp,
    /// What it says.
    pub payload: Vec<u8>,
}

impl Packet {
    /// As the readers of packets take it.
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

/// A sample, as the tap gives it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tapped {
    /// The place of its KPI; those of [`Options::kpis`] have the first ones, in their order, each name once.
    pub slot: SlotId,
    /// Its number among those of its KPI.
    pub sequence: u64,
    /// What it is.
    pub sample: Sample,
    /// When its bytes arrived, in ns of [`od::clock`].
    pub arrival_ns: u64,
}

/// Why there is no daemon.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A KPI that means nothing.
    #[error(transparent)]
    Kpi(#[from] KpiError),
    /// The board or its folder.
    #[error(transparent)]
    Board(#[from] od::Error),
    /// A port that can never be one, or that another program has.
    #[error("{port}: {why}")]
    Port {
        /// As it was named.
        port: Source,
        /// What is wrong with it.
        why: io::Error,
    },
    /// The operating system.
    #[error(transparent)]
    System(#[from] io::Error),
}

/// A running daemon. Dropping it has it leave.
#[derive(Debug)]
pub struct Daemon {
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    metrics: Arc<Metrics>,
    notices: Receiver<Notice>,
}

impl Daemon {
    /// Starts one; it opens the port as soon as there is one.
    ///
    /// # Errors
    /// A KPI that there is not; a folder in which a daemon runs, or that is not ours; a port that can never be one, or that
    /// another program has.
    pub fn start(options: Options) -> Result<Daemon, StartError> {
        let subscription = Subscription::new(options.kpis.iter().map(String::as_str))?;
        let server = Server::bind(&options.dir)?;
        let port = options
            .source
            .open_first()
            .map_err(|why| StartError::Port { port: options.source.clone(), why })?;
        let (board, publisher) = Board::create(CAPACITY).map_err(io::Error::from)?;
        let metrics = Arc::new(Metrics::new(CAPACITY));
        let (words_in, words) = mpsc::channel();
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
            words: words_in,
            notices: notices_in.clone(),
            metrics: Arc::clone(&metrics),
            tap: options.tap,
            packets: options.packets,
            drains: options.drain.is_some(),
            wants_realtime: options.wants_realtime,
        });
        let mut control = control::Control::new(control::Parts {
            source: options.source,
            board,
            server,
            words,
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

    /// What it counts.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// What it has to say to people, as it happens; ends when the daemon does.
    pub fn notices(&self) -> &Receiver<Notice> {
        &self.notices
    }

    /// Has it leave: give the modem back as it was, take leave of the programs. [`Daemon::notices`] ends then.
    pub fn leave(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Has another thread, such as that of a signal, do the same.
    pub fn leaver(&self) -> impl Fn() + Send + Sync + 'static {
        let is_over = Arc::clone(&self.is_over);
        move || is_over.store(true, Ordering::Relaxed)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.leave();
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}

/// What the data thread tells the control thread.
enum Word {
    /// A port was opened, by the modem's name.
    Opened(Arc<Port>),
    /// The port is lost.
    Lost,
    /// What gives the modem back as it was, as frames.
    Restore(Vec<u8>),
    /// Frames to send.
    Send(Vec<u8>),
    /// How a drain is asked for in-band, where that is understood.
    Drain(Option<Vec<u8>>),
    /// The data thread ends; whether the modem is as it was.
    Left(bool),
}

/// What the control thread tells the data thread.
enum Order {
    /// What is to be published, and where: the place, and its generation.
    Follow(Subscription, Vec<(SlotId, u16)>),
    /// Give the modem back as it was.
    Leave,
}
