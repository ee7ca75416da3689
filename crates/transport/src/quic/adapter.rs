//! The one file that knows noq's congestion trait.
//!
//! noq asks a controller of its own before it starts a packet. Ours stands outside, in the [`Ledger`] of a connection:
//! the connection asks the ledger, and opens a gate in the [`Tap`] for as many packets as may leave. With the gate
//! closed, noq writes what is not congestion controlled, namely ACKs and probes. What noq tells its controller is noted,
//! and read by the connection after each datagram or timer ([`Handle::notes`]).
//!
//! noq has a token bucket behind its controller. It is told a rate at which the bucket is full again after the
//! nanosecond that [`Clock`] lets pass between two polls, so it never binds.
//!
//! [`Ledger`]: airpace_cc::endpoint::Ledger

use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use airpace_core::Time;
use noq_proto::RttEstimator;
use noq_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};

/// The rate that noq is told: its bucket holds at most 256 datagrams, and fills within a nanosecond.
///
/// Source: noq-proto 1.4 `connection/pacing.rs` (`MAX_BURST_SIZE`)
const UNPACED_BYTES_PER_SECOND: u64 = 1 << 55;

/// The window that an open gate tells; more than any flow has outstanding.
const OPEN: u64 = 1 << 50;

/// The window that a closed gate tells: no packet fits.
const CLOSED: u64 = 1;

/// Something that noq told its controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Note {
    /// An ack-eliciting packet left; `bytes` are those of the QUIC packet.
    Sent {
        /// Its number.
        number: u64,
        /// Its size.
        bytes: u16,
    },
    /// A packet was acknowledged.
    Acked {
        /// Its number.
        number: u64,
        /// When it had left.
        sent: Instant,
    },
    /// A packet was declared lost.
    Lost {
        /// Its number.
        number: u64,
        /// Its size.
        bytes: u16,
    },
    /// All packets that noq declared lost and still remembers have been acknowledged after all.
    Late,
    /// A queue marked packets; noq does not say how many.
    Marked,
    /// The connection goes on over another path. A new one has another address of the peer; otherwise only the port
    /// is another. noq will not report the acknowledgements of what was in flight.
    Moved {
        /// Whether the path is a new one.
        new: bool,
    },
}

/// What a connection and the controllers that noq made for it share.
///
/// noq asks for the window several times per packet, which a lock would make dear.
#[derive(Debug, Default)]
struct Shared {
    notes: Mutex<Vec<Note>>,
    is_open: AtomicBool,
    /// Whether noq had something to send that the gate held back.
    was_held: AtomicBool,
    built: AtomicBool,
}

impl Shared {
    fn notes(&self) -> MutexGuard<'_, Vec<Note>> {
        // A panic elsewhere leaves plain data behind.
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, note: Note) {
        self.notes().push(note);
    }
}

/// A connection's end of the tap.
#[derive(Clone, Debug, Default)]
pub(super) struct Handle(Arc<Shared>);

impl Handle {
    /// What makes noq's controllers for this connection.
    pub(super) fn factory(&self) -> Arc<dyn ControllerFactory + Send + Sync> {
        Arc::new(Factory(self.clone()))
    }

    /// Moves what was noted to `into`.
    pub(super) fn notes(&self, into: &mut Vec<Note>) {
        into.append(&mut self.0.notes());
    }

    /// Lets noq send data, or not, until the next call.
    pub(super) fn open(&self, open: bool) {
        self.0.is_open.store(open, Ordering::Relaxed);
        self.0.was_held.store(false, Ordering::Relaxed);
    }

    /// Whether noq had something to send since [`Handle::open`] that the gate held back.
    pub(super) fn was_held(&self) -> bool {
        self.0.was_held.load(Ordering::Relaxed)
    }
}

struct Factory(Handle);

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, _now: Instant, _current_mtu: u16) -> Box<dyn Controller> {
        let shared = &self.0.0;
        if shared.built.swap(true, Ordering::Relaxed) {
            shared.note(Note::Moved { new: true });
        }
        Box::new(Tap(shared.clone()))
    }
}

/// What noq takes for its controller.
#[derive(Debug)]
struct Tap(Arc<Shared>);

impl Controller for Tap {
    fn on_packet_sent(&mut self, _now: Instant, bytes: u16, number: u64) {
        self.0.note(Note::Sent { number, bytes });
    }

    fn on_cwnd_limited(&mut self) {
        self.0.was_held.store(true, Ordering::Relaxed);
    }

    fn on_ack(&mut self, _: Instant, sent: Instant, _: u64, number: u64, _: bool, _: &RttEstimator) {
        self.0.note(Note::Acked { number, sent });
    }

    fn on_congestion_event(&mut self, _: Instant, _: Instant, _: bool, is_ecn: bool, _: u64, _: u64) {
        if is_ecn {
            self.0.note(Note::Marked);
        }
    }

    fn on_spurious_congestion_event(&mut self) {
        self.0.note(Note::Late);
    }

    fn on_packet_lost(&mut self, bytes: u16, number: u64, _now: Instant) {
        self.0.note(Note::Lost { number, bytes });
    }

    fn on_mtu_update(&mut self, _new_mtu: u16) {}

    fn window(&self) -> u64 {
        if self.0.is_open.load(Ordering::Relaxed) { OPEN } else { CLOSED }
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = OPEN;
        metrics.pacing_rate = Some(UNPACED_BYTES_PER_SECOND);
        metrics
    }

    /// noq copies a controller when only the peer's port has changed.
    fn clone_box(&self) -> Box<dyn Controller> {
        self.0.note(Note::Moved { new: false });
        Box::new(Tap(self.0.clone()))
    }

    fn initial_window(&self) -> u64 {
        OPEN
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// Turns instants of ours into noq's and back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    origin: Instant,
    last: Duration,
}

impl Clock {
    /// A clock whose origin is now.
    pub(super) fn new() -> Clock {
        Clock { origin: Instant::now(), last: Duration::ZERO }
    }

    /// noq's instant of `now`, at least a nanosecond after the one before.
    pub(super) fn tick(&mut self, now: Time) -> Instant {
        let now = Duration::from_nanos(now.as_nanos());
        self.last = now.max(self.last + Duration::from_nanos(1));
        self.origin + self.last
    }

    /// Our instant of noq's.
    pub(super) fn time(&self, instant: Instant) -> Time {
        let nanos = instant.saturating_duration_since(self.origin).as_nanos();
        Time::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}
