//! The control thread: heartbeats, requests of programs, and all writes to the port.

use std::io;
use std::os::fd::OwnedFd;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use airpace_core::Time;
use airpace_diag::kpi::{KPIS, Kind, KpiError, Subscription, Wanted, What};
use airpace_diag::{Drain, Radio};
use airpace_rt::priority;
use od::clock::now_ns;
use od::control::{Host, KpiInfo, Refusal, Server};
use od::{Board, SlotId};
use rustix::io::Errno;
use rustix::time::{ClockId, Timespec};

use super::{DataMessage, Notice, Order};
use crate::guard::Guard;
use crate::metrics::{KpiLabel, Metrics};
use crate::source::{Port, Source};

/// Interval between checks for requests of programs while drains are active. Without drains, maximum interval between
/// checks for messages of the data thread.
///
/// Chosen: short enough to answer a request without noticeable delay, and long enough to use almost no processor time.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Interval between checks for messages while a session is opened or changed. The interval is short, because the
/// session's request frames arrive as messages.
const SPEAK_EVERY: Duration = Duration::from_millis(2);
/// Time after a message of the data thread for which further messages are expected.
///
/// Chosen: a modem responds within milliseconds, and each response leads to the next request.
const SPEAKS_FOR: Duration = Duration::from_millis(100);
/// Interval at which subscriptions are counted for the metrics.
const TALLY_EVERY: Duration = Duration::from_millis(100);
/// Maximum number of bytes kept for a port that does not accept bytes; further bytes are dropped.
const MAX_UNSENT: usize = 1 << 16;
/// Real-time priority of the control thread: below the priority of the data thread.
const PRIORITY: i32 = 10;

pub(super) struct Parts {
    pub source: Source,
    pub board: Board,
    pub server: Option<Server>,
    pub messages: Receiver<DataMessage>,
    pub orders: Sender<Order>,
    pub wake: Arc<OwnedFd>,
    pub notices: Sender<Notice>,
    pub metrics: Arc<Metrics>,
    pub drain: Option<Duration>,
    pub guard: Option<Box<dyn FnMut() -> Command + Send>>,
    pub is_over: Arc<AtomicBool>,
    pub wants_realtime: bool,
}

pub(super) struct Control {
    server: Option<Server>,
    messages: Receiver<DataMessage>,
    notices: Sender<Notice>,
    guard: Option<Box<dyn FnMut() -> Command + Send>>,
    is_over: Arc<AtomicBool>,
    wants_realtime: bool,
    source: Source,
    /// Schedule of the drains.
    drain: Drain,
    attached: Option<Attached>,
    /// Time until which further messages of the data thread are expected.
    speaks_until: Time,
    host: KpiHost,
}

/// An open port.
struct Attached {
    port: Arc<Port>,
    guard: Option<Guard>,
    /// Bytes that the port has not accepted yet.
    unsent: Vec<u8>,
    /// The frame that requests a drain in-band.
    drain: Option<Vec<u8>>,
}

/// State that programs' requests change: the board, and the published KPIs.
struct KpiHost {
    board: Board,
    orders: Sender<Order>,
    wake: Arc<OwnedFd>,
    metrics: Arc<Metrics>,
    /// Slots that are published even without a subscription.
    pinned: Vec<SlotId>,
    /// KPIs that are published now.
    published: Vec<(Wanted, SlotId)>,
    /// Whether `published` has changed since the last message to the data thread.
    has_changed: bool,
}

impl Control {
    pub fn new(parts: Parts) -> Control {
        Control {
            server: parts.server,
            messages: parts.messages,
            notices: parts.notices,
            guard: parts.guard,
            is_over: parts.is_over,
            wants_realtime: parts.wants_realtime,
            source: parts.source,
            drain: Drain::new(None, parts.drain),
            attached: None,
            speaks_until: Time::ZERO,
            host: KpiHost {
                board: parts.board,
                orders: parts.orders,
                wake: parts.wake,
                metrics: parts.metrics,
                pinned: vec![],
                published: vec![],
                has_changed: false,
            },
        }
    }

    /// Publishes these KPIs even without a subscription.
    ///
    /// # Errors
    /// The board has not enough slots.
    pub fn pin(&mut self, subscription: &Subscription) -> io::Result<()> {
        for wanted in subscription.iter() {
            let slot = self.host.publish(wanted.clone())?;
            self.host.pinned.push(slot);
        }
        self.host.tell_changes();
        Ok(())
    }

    pub fn run(mut self) {
        if self.wants_realtime {
            // Ignore the result, because the data thread reports whether real-time priority is permitted.
            let _ = priority::set_realtime(PRIORITY);
        } else {
            let _ = priority::request_short_slices();
        }
        let (mut is_leaving, mut tally_at, mut look_at) = (false, Time::ZERO, Time::ZERO);
        loop {
            self.host.board.beat();
            let has_ended = self.listen();
            if has_ended {
                break;
            }
            if self.is_over.load(Ordering::Relaxed) && !is_leaving {
                is_leaving = true;
                self.host.order(Order::Leave);
            }
            let now = Time::from_nanos(now_ns());
            let drains = !is_leaving && self.attached.as_ref().is_some_and(Attached::can_drain);
            if drains && self.drain.poll(now).is_some() {
                self.drain_modem();
            }
            self.flush();
            let drain_due = self.drain.poll_timeout().filter(|_| drains).unwrap_or(Time::NEVER);
            let now = Time::from_nanos(now_ns());
            // If drains are frequent, the wake-ups for drains also check the requests of programs, without additional
            // wake-ups.
            let is_often = drain_due < now + LOOK_EVERY;
            if is_often && now < look_at {
                sleep_until(drain_due);
                continue;
            }
            let look_every = if now < self.speaks_until { SPEAK_EVERY } else { LOOK_EVERY };
            let wait = if is_often { Duration::ZERO } else { look_every };
            match &mut self.server {
                Some(server) => {
                    if let Err(error) = server.serve(&mut self.host, wait) {
                        let _ = self.notices.send(Notice::Broken(error.to_string()));
                        self.is_over.store(true, Ordering::Relaxed);
                    }
                }
                None => std::thread::sleep(wait),
            }
            look_at = Time::from_nanos(now_ns()) + LOOK_EVERY;
            self.host.tell_changes();
            if Time::from_nanos(now_ns()) >= tally_at {
                tally_at = Time::from_nanos(now_ns()) + TALLY_EVERY;
                let programs = self.server.as_ref().map_or(0, Server::programs);
                self.host.metrics.clients.store(programs as u32, Ordering::Relaxed);
                self.host.tally();
            }
        }
    }

    /// Processes messages of the data thread; returns whether that thread has ended.
    fn listen(&mut self) -> bool {
        loop {
            let message = self.messages.try_recv();
            if message.is_ok() {
                self.speaks_until = Time::from_nanos(now_ns()) + SPEAKS_FOR;
            }
            match message {
                Ok(DataMessage::Opened(port)) => self.attach(port),
                Ok(DataMessage::Dodge) => self.drain.dodge(),
                Ok(DataMessage::Lost) => self.detach(),
                Ok(DataMessage::Restore(frames)) => {
                    let guard = self.attached.as_mut().and_then(|attached| attached.guard.as_mut());
                    if let Some(Err(error)) = guard.map(|guard| guard.set_restore(&frames)) {
                        let _ = self.notices.send(Notice::Unguarded(error));
                    }
                }
                Ok(DataMessage::Send(frames)) => {
                    if let Some(attached) = &mut self.attached {
                        attached.unsent.extend_from_slice(&frames);
                    }
                }
                Ok(DataMessage::Drain(frame)) => {
                    if let Some(attached) = &mut self.attached {
                        attached.drain = frame;
                    }
                }
                Ok(DataMessage::Left(is_restored)) => {
                    // If the modem is not restored, drop the guard without dismissal. The guard then restores the
                    // modem.
                    if is_restored {
                        self.detach()
                    } else {
                        self.attached = None
                    }
                    return true;
                }
                Err(TryRecvError::Empty) => return false,
                Err(TryRecvError::Disconnected) => {
                    let why = "the data thread has ended by a fault; this is a bug".to_owned();
                    let _ = self.notices.send(Notice::Broken(why));
                    return true;
                }
            }
        }
    }

    fn attach(&mut self, port: Arc<Port>) {
        let guard = self.guard.as_mut().map(|command| Guard::start(command(), &self.source, &port));
        let guard =
            guard.and_then(|guard| guard.map_err(|error| self.notices.send(Notice::Unguarded(error))).ok());
        self.attached = Some(Attached { port, guard, unsent: vec![], drain: None });
    }

    /// Dismisses the guard. Called when the modem is restored, or gone.
    fn detach(&mut self) {
        if let Some(Attached { guard: Some(guard), .. }) = self.attached.take() {
            // If the guard has already ended, nothing is left to do.
            let _ = guard.dismiss();
        }
    }

    /// Source: BISCAY §3.2.3
    fn drain_modem(&mut self) {
        let Some(attached) = &mut self.attached else { return };
        let metrics = &self.host.metrics;
        let is_done = match &attached.drain {
            // If the port has not yet accepted the last drain request, a further request is not needed.
            Some(frame) if attached.unsent.is_empty() => {
                attached.unsent.extend_from_slice(frame);
                true
            }
            Some(_) => false,
            None => attached.port.drain().is_ok(),
        };
        if is_done { metrics.drains.add(1) } else { metrics.failed_drains.add(1) }
    }

    /// Writes as many bytes as the port accepts.
    fn flush(&mut self) {
        let Some(attached) = &mut self.attached else { return };
        if attached.unsent.is_empty() {
            return;
        }
        match attached.port.write(&attached.unsent) {
            Ok(Some(count)) => drop(attached.unsent.drain(..count)),
            Ok(None) => {}
            // The data thread detects the loss of the port.
            Err(_) => attached.unsent.clear(),
        }
        attached.unsent.truncate(MAX_UNSENT);
    }
}

/// Sleeps until an instant of [`od::clock`]. A signal may end the sleep early.
fn sleep_until(instant: Time) {
    let left = instant.as_nanos().saturating_sub(now_ns());
    let span = Timespec { tv_sec: (left / 1_000_000_000) as i64, tv_nsec: (left % 1_000_000_000) as i64 };
    let _ = rustix::thread::clock_nanosleep_relative(ClockId::Monotonic, &span);
}

impl Attached {
    /// Returns whether the modem's buffer can be drained.
    fn can_drain(&self) -> bool {
        self.drain.is_some() || self.port.can_drain()
    }
}

impl KpiHost {
    /// Starts the publication of a KPI.
    fn publish(&mut self, wanted: Wanted) -> Result<SlotId, Errno> {
        let name = wanted.to_string();
        let slot = self.board.add(&name, wanted.unit())?;
        if !self.published.iter().any(|(_, published)| *published == slot) {
            let mut labels = self.metrics.kpis.lock().unwrap_or_else(PoisonError::into_inner);
            let base = Wanted { radio: Radio::FIRST, ..wanted.clone() }.to_string();
            let unit = wanted.unit().to_owned();
            let is_of_all = matches!(&wanted.what, What::Kpi(kpi) if kpi.kind == Kind::Total);
            let label = KpiLabel { name: base, unit, radio: wanted.radio.0, is_of_all, leases: 0 };
            match labels.get_mut(slot.0 as usize) {
                Some(known) => *known = label,
                None => labels.push(label),
            }
            self.published.push((wanted, slot));
            self.has_changed = true;
        }
        Ok(slot)
    }

    /// Counts subscriptions for the metrics, unless a reader holds the lock.
    fn tally(&self) {
        let Ok(mut labels) = self.metrics.kpis.try_lock() else { return };
        for (slot, label) in labels.iter_mut().enumerate() {
            label.leases = self.board.leases(SlotId(slot as u32));
        }
    }

    fn order(&self, order: Order) {
        // If the data thread has panicked, the daemon ends.
        let _ = self.orders.send(order);
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    /// Sends the published KPIs to the data thread, if they have changed.
    fn tell_changes(&mut self) {
        if std::mem::take(&mut self.has_changed) {
            let subscription = self.published.iter().map(|(wanted, _)| wanted.clone()).collect();
            let places =
                self.published.iter().map(|(_, slot)| (*slot, self.board.generation(*slot))).collect();
            self.order(Order::Follow(subscription, places));
        }
    }
}

impl Host for KpiHost {
    fn board(&mut self) -> &mut Board {
        &mut self.board
    }

    fn kpis(&mut self) -> Vec<KpiInfo> {
        let info = |(name, unit, about): (&str, &str, &str)| KpiInfo {
            name: name.to_owned(),
            unit: unit.to_owned(),
            about: about.to_owned(),
        };
        KPIS.iter().map(|kpi| info((kpi.name, kpi.unit, kpi.about))).collect()
    }

    fn subscribe(&mut self, name: &str) -> Result<SlotId, Refusal> {
        let wanted: Wanted = name.parse().map_err(|error: KpiError| {
            Refusal::new(
                if matches!(error, KpiError::Unknown(..)) { Errno::NOENT } else { Errno::INVAL },
                error.to_string(),
            )
        })?;
        let unit = wanted.unit();
        self.publish(wanted).map_err(|errno| {
            let text = match errno {
                Errno::NOSPC => "the board has no room for another KPI".to_owned(),
                _ => format!("the board takes no such text: name `{name}`, unit `{unit}`; it is too long, or has a space"),
            };
            Refusal::new(errno, text)
        })
    }

    fn unsubscribed(&mut self, slot: SlotId) {
        if !self.pinned.contains(&slot) {
            self.published.retain(|(_, published)| *published != slot);
            self.board.free(slot);
            self.has_changed = true;
        }
    }
}

#[cfg(test)]
mod tests;
