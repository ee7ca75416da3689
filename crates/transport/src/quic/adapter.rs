//! Adapter to noq's congestion control interface. No other file uses that interface.
//!
//! noq asks its own controller before it starts a packet. The scheme's controller is outside of noq, in the
//! [`Ledger`] of a connection. The connection asks the ledger, and opens a gate in the [`Tap`] for the permitted
//! number of packets. While the gate is closed, noq sends only packets without congestion control, that is ACKs and
//! probes. The [`Tap`] stores noq's reports to its controller, and the connection reads them after each datagram or
//! timer ([`Handle::notes`]).
//!
//! noq has a token bucket in addition to its controller. The tap reports a rate so high that the bucket is full again
//! after a nanosecond, the time that [`Clock`] inserts between two polls. The bucket therefore never limits the rate.
//!
//! [`Ledger`]: airpace_cc::endpoint::Ledger

use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use airpace_core::Time;
use noq_proto::RttEstimator;
use noq_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};

/// Rate that the tap reports to noq. noq's bucket holds at most 256 datagrams, and fills within a nanosecond at this
/// rate.
///
/// Source: noq-proto 1.4 `connection/pacing.rs` (`MAX_BURST_SIZE`)
const UNPACED_BYTES_PER_SECOND: u64 = 1 << 55;

/// Congestion window of an open gate (bytes); larger than the bytes in flight of any flow.
const OPEN: u64 = 1 << 50;

/// Congestion window of a closed gate (bytes): no packet fits.
const CLOSED: u64 = 1;

/// A report of noq to its controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Note {
    /// An ack-eliciting packet was sent; `bytes` is the size of the QUIC packet.
    Sent {
        /// Packet number.
        number: u64,
        /// Size (bytes).
        bytes: u16,
    },
    /// A packet was acknowledged.
    Acked {
        /// Packet number.
        number: u64,
        /// Transmission time.
        sent: Instant,
    },
    /// A packet was declared lost.
    Lost {
        /// Packet number.
        number: u64,
        /// Size (bytes).
        bytes: u16,
    },
    /// All packets that noq declared lost and still remembers were acknowledged late.
    Late,
    /// A queue marked packets; noq does not report their number.
    Marked,
    /// The connection moved to another path. If only the peer's port has changed, the path is not a new one. noq will
    /// not report acknowledgements of the packets in flight.
    Moved {
        /// Whether the path is new: the peer has another IP address.
        new: bool,
    },
}

/// State shared by a connection and the controllers that noq creates for it.
///
/// noq reads the window several times per packet, so that a lock around it would be too expensive.
#[derive(Debug, Default)]
struct Shared {
    notes: Mutex<Vec<Note>>,
    is_open: AtomicBool,
    /// Whether the gate held back data that noq had to send.
    was_held: AtomicBool,
    built: AtomicBool,
}

impl Shared {
    fn notes(&self) -> MutexGuard<'_, Vec<Note>> {
        // If another thread panicked, the stored notes are still valid.
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, note: Note) {
        self.notes().push(note);
    }
}

/// The connection's access to the tap.
#[derive(Clone, Debug, Default)]
pub(super) struct Handle(Arc<Shared>);

impl Handle {
    /// Returns the factory of noq's controllers for this connection.
    pub(super) fn factory(&self) -> Arc<dyn ControllerFactory + Send + Sync> {
        Arc::new(Factory(self.clone()))
    }

    /// Moves the stored reports to `into`.
    pub(super) fn notes(&self, into: &mut Vec<Note>) {
        into.append(&mut self.0.notes());
    }

    /// Opens or closes the gate for data until the next call.
    pub(super) fn open(&self, open: bool) {
        self.0.is_open.store(open, Ordering::Relaxed);
        self.0.was_held.store(false, Ordering::Relaxed);
    }

    /// Whether the gate has held back data since [`Handle::open`].
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

/// The controller that noq uses.
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

    /// noq clones a controller when only the peer's port has changed.
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

/// Converts between this crate's instants and noq's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    origin: Instant,
    last: Duration,
}

impl Clock {
    /// Creates a clock whose origin is now.
    pub(super) fn new() -> Clock {
        Clock { origin: Instant::now(), last: Duration::ZERO }
    }

    /// Returns noq's instant of `now`, at least a nanosecond after the previous one.
    pub(super) fn tick(&mut self, now: Time) -> Instant {
        let now = Duration::from_nanos(now.as_nanos());
        self.last = now.max(self.last + Duration::from_nanos(1));
        self.origin + self.last
    }

    /// Converts an instant of noq.
    pub(super) fn time(&self, instant: Instant) -> Time {
        let nanos = instant.saturating_duration_since(self.origin).as_nanos();
        Time::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}
