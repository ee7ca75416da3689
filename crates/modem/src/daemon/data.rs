//! The data thread: reads the port and publishes on the board. It waits only for the port, for orders, and for the
//! session's deadlines.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, SyncSender};
use std::time::Duration;

use airpace_core::Time;
use airpace_diag::command::Request;
use airpace_diag::frame;
use airpace_diag::kpi::{Carriers, Extractor, Subscription, Wanted};
use airpace_diag::session::{Line, Original, Session, SessionOptions, State, Trouble};
use airpace_diag::{Control, Drain, Evenness};
use airpace_rt::priority;
use od::clock::now_ns;
use od::{Entry, Publisher, SlotId};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{DataMessage, Notice, Order, Packet, Tapped};
use crate::metrics::Metrics;
use crate::source::{Port, Source};

/// Buffer size of a read, in bytes.
///
/// Chosen: the number of bytes that a USB modem sends in ten milliseconds at full speed.
const READ_SIZE: usize = 1 << 16;
/// Pauses between attempts to open the port: minimum pause and maximum pause. Each pause is twice as long as the
/// previous pause.
///
/// Chosen: a modem is available again some seconds after a reset, and a cable is reconnected in less than a second.
const PAUSES: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(2)];
/// Maximum time for restoring the modem.
const LEAVE_WITHIN: Duration = Duration::from_secs(3);
/// Real-time priority of the data thread: above ordinary programs, below the threads that drive hardware.
const PRIORITY: i32 = 20;

pub(super) struct Parts {
    pub source: Source,
    /// The port, if it is already open.
    pub port: Option<Port>,
    pub publisher: Publisher,
    pub orders: Receiver<Order>,
    pub wake: Arc<OwnedFd>,
    pub messages: Sender<DataMessage>,
    pub notices: Sender<Notice>,
    pub metrics: Arc<Metrics>,
    pub tap: Option<SyncSender<Tapped>>,
    pub packets: Option<SyncSender<Packet>>,
    /// Interval of the drains of the modem's buffer.
    pub drain: Option<Duration>,
    pub wants_realtime: bool,
}

pub(super) struct Data {
    parts: Parts,
    subscription: Subscription,
    extractor: Extractor,
    /// The slots of the subscription's KPIs.
    places: Vec<Place>,
    /// Readings of the primary carrier, which are published after the readings of the other carriers.
    held: Vec<(SlotId, Entry)>,
    /// Detector of drains that coincide with packets; `None` without drains.
    evenness: Option<Evenness>,
    /// State of the modem before the daemon's first change.
    original: Option<Original>,
    buffer: Vec<u8>,
    /// Number of faults on earlier connections to the port.
    faults_before: u64,
    is_leaving: bool,
    /// Whether the modem is restored when the daemon stops.
    is_restored: bool,
}

/// The slot of a KPI on the board.
#[derive(Clone, Copy)]
struct Place {
    slot: SlotId,
    radio: u8,
    readings: Readings,
}

/// Selects which readings of a KPI are published on the board.
#[derive(Clone, Copy, PartialEq)]
enum Readings {
    /// All readings that the extractor returns.
    Every,
    /// Readings of the primary carrier. A program that does not select a carrier would otherwise see the last carrier of
    /// each packet, which is rarely the primary.
    Primary,
    /// Readings of all carriers. Of readings that arrive together, the reading of the primary carrier is published
    /// last.
    PrimaryLast,
}

impl Place {
    fn new(slot: SlotId, wanted: &Wanted) -> Place {
        let readings = match wanted.carriers {
            Carriers::All => Readings::PrimaryLast,
            _ if wanted.is_of_some_carrier() => Readings::Primary,
            _ => Readings::Every,
        };
        Place { slot, radio: wanted.radio.0, readings }
    }
}

/// Reason why the work with a port ended.
enum End {
    Left,
    NotRestored,
    Lost(io::Error),
    Failed(Trouble),
}

/// State of a line that was last reported to the control thread.
#[derive(Default)]
struct Reported {
    restore: Vec<u8>,
    drain: Option<Vec<u8>>,
    is_streaming: bool,
}

impl Data {
    pub fn new(parts: Parts) -> Data {
        let subscription = Subscription::default();
        Data {
            extractor: Extractor::new(&subscription),
            subscription,
            places: vec![],
            held: vec![],
            evenness: None,
            original: None,
            buffer: vec![0; READ_SIZE],
            faults_before: 0,
            is_leaving: false,
            is_restored: true,
            parts,
        }
    }

    pub fn run(mut self) {
        if self.parts.wants_realtime {
            let locked = rustix::mm::MlockAllFlags::CURRENT | rustix::mm::MlockAllFlags::ONFAULT;
            let realtime = priority::set_realtime(PRIORITY).and_then(|()| Ok(rustix::mm::mlockall(locked)?));
            self.note(Notice::Realtime(realtime));
        } else {
            // If the kernel refuses short time slices, other programs may delay readings.
            let _ = priority::request_short_slices();
        }
        let (mut pause, mut is_told) = (PAUSES[0], false);
        while !self.is_leaving {
            match self.parts.port.take().map_or_else(|| self.parts.source.open(), Ok) {
                Ok(port) => {
                    is_told = false;
                    if self.work_with_port(Arc::new(port)) {
                        pause = PAUSES[0];
                    }
                }
                Err(error) if !is_told => {
                    is_told = true;
                    self.note(Notice::NotOpened(error));
                }
                Err(_) => {}
            }
            if !self.is_leaving {
                self.rest(pause);
                pause = (pause * 2).min(PAUSES[1]);
            }
        }
        self.tell(DataMessage::Left(self.is_restored));
    }

    /// Works with a port until it is lost or the daemon stops. Returns whether the modem started to stream the
    /// subscription.
    fn work_with_port(&mut self, port: Arc<Port>) -> bool {
        self.note(Notice::Opened);
        self.tell(DataMessage::Opened(Arc::clone(&port)));
        let drain = self.parts.drain.map(|_| Drain::new(None, None));
        // If the driver has a system call for drains, no frames are needed for them.
        let drain = drain.filter(|_| !port.can_drain());
        let options = SessionOptions {
            wants_plain: !port.is_framed(),
            original: self.original.take(),
            drain,
            ..SessionOptions::default()
        };
        self.evenness = self.parts.drain.map(Evenness::new);
        let mut line = Line::new(Session::new(self.subscription.codes(), options));
        let mut reported = Reported::default();
        let end = self.follow(&port, &mut line, &mut reported);
        self.original = line.session.original().cloned();
        self.faults_before += line.faults();
        self.parts.metrics.streaming.store(0, Ordering::Relaxed);
        match end {
            End::Left => return reported.is_streaming,
            End::NotRestored => {
                self.note(Notice::NotRestored);
                self.is_restored = false;
                return reported.is_streaming;
            }
            End::Lost(error) => self.note(Notice::Lost(error)),
            End::Failed(trouble) => self.note(Notice::Failed(trouble)),
        }
        self.parts.publisher.gap();
        self.parts.metrics.gaps.add(1);
        self.tell(DataMessage::Lost);
        reported.is_streaming
    }

    fn follow(&mut self, port: &Port, line: &mut Line, reported: &mut Reported) -> End {
        let mut leave_by = None;
        loop {
            let now = now_ns();
            if self.obey(Some(line)) {
                line.session.leave();
                leave_by = Some(now + LEAVE_WITHIN.as_nanos() as u64);
            }
            self.speak(line, now, reported);
            match line.session.state() {
                State::Closed => return End::Left,
                State::Failed(_) if self.is_leaving => return End::NotRestored,
                State::Failed(trouble) => return End::Failed(trouble),
                _ => {}
            }
            if leave_by.is_some_and(|by| by <= now) {
                return End::NotRestored;
            }
            let due = line.poll_timeout().map(Time::as_nanos).into_iter().chain(leave_by).min();
            match wait(Some(port), &self.parts.wake, due.map(|due| due.saturating_sub(now_ns()))) {
                Ok(false) => {}
                Ok(true) => match port.read(&mut self.buffer) {
                    Ok(None) => {}
                    Ok(Some(count)) => self.take(count, line),
                    Err(error) => return End::Lost(error),
                },
                Err(error) => return End::Lost(error),
            }
        }
    }

    /// Processes bytes that have just been read, and publishes their samples.
    fn take(&mut self, count: usize, line: &mut Line) {
        let arrival_ns = now_ns();
        let Data { parts, extractor, places, held, evenness, buffer, faults_before, .. } = self;
        let Parts { publisher, metrics, tap, packets, notices, messages, .. } = parts;
        let (mut is_news, mut dodges) = (false, false);
        line.push(Time::from_nanos(arrival_ns), &buffer[..count], |packet| {
            metrics.packets.add(1);
            if let Some(packets) = packets {
                let _ = packets.try_send(packet.into());
            }
            let trouble = extractor.push(packet, |sample| {
                let Place { slot, radio, readings } = places[sample.wanted];
                let entry = Entry {
                    value: sample.value,
                    modem_ns: sample.stamp.nanos(),
                    arrival_ns,
                    subframe: sample.subframe,
                    carrier: sample.carrier,
                    radio,
                };
                let sequence = match readings {
                    Readings::Primary if sample.carrier != 0 => 0,
                    Readings::PrimaryLast if sample.carrier == 0 => {
                        held.push((slot, entry));
                        0
                    }
                    _ => publisher.publish(slot, &entry),
                };
                metrics.on_sample(slot.0, sample.carrier, sample.value, arrival_ns);
                if let Some(tap) = tap {
                    // If the tap is full, the sample is dropped; the board still contains the latest reading.
                    let _ = tap.try_send(Tapped { slot, sequence, sample, arrival_ns });
                }
                if let Some(evenness) = evenness {
                    let written = Time::from_nanos(entry.modem_ns);
                    dodges |= evenness.hear(sample.wanted, written, Time::from_nanos(arrival_ns));
                }
                is_news = true;
            });
            if let Some(trouble) = trouble {
                let _ = notices.send(Notice::Trouble(trouble));
            }
        });
        for (slot, entry) in held.drain(..) {
            publisher.publish(slot, &entry);
        }
        if is_news {
            publisher.wake();
            metrics.on_latency(now_ns() - arrival_ns);
        }
        if dodges {
            // Sending fails only if the control thread has panicked; the daemon then ends.
            let _ = messages.send(DataMessage::Dodge);
        }
        metrics.reads.add(1);
        metrics.bytes.add(count as u64);
        metrics.bad_frames.set(*faults_before + line.faults());
        if !extractor.troubles().is_empty() {
            count_troubles(extractor, metrics);
        }
    }

    /// Sends the session's frames, and the frames that restore the modem, to the control thread.
    fn speak(&mut self, line: &mut Line, now: u64, reported: &mut Reported) {
        let mut frames = vec![];
        line.pop(Time::from_nanos(now), &mut frames);
        let is_streaming = line.session.state() == State::Streaming;
        let is_draining = line.session.is_draining();
        if frames.is_empty()
            && is_streaming == reported.is_streaming
            && is_draining == reported.drain.is_some()
        {
            return;
        }
        // The frames that restore the modem are reported before those that change it.
        let restore = line.restore();
        if restore != reported.restore {
            reported.restore.clone_from(&restore);
            self.tell(DataMessage::Restore(restore));
        }
        if !frames.is_empty() {
            self.tell(DataMessage::Send(frames));
        }
        let drain = is_draining.then(|| {
            let mut frame = vec![];
            frame::encode(line.session.framing(), &Request::Control(Control::Drain).body(), &mut frame);
            frame
        });
        if drain != reported.drain {
            reported.drain.clone_from(&drain);
            self.tell(DataMessage::Drain(drain));
        }
        if is_streaming && !reported.is_streaming {
            self.parts.metrics.sessions.add(1);
            let identity = line.session.identity();
            let name = identity.build.as_ref().map(|build| format!("{} {}", build.model, build.software));
            self.note(Notice::Streaming(name));
            for (code, why) in line.session.missing() {
                self.note(Notice::Missing(code, why));
            }
        }
        reported.is_streaming |= is_streaming;
        self.parts.metrics.streaming.store(u32::from(is_streaming), Ordering::Relaxed);
    }

    /// Executes orders; returns whether one of the orders is the first order to leave.
    fn obey(&mut self, mut line: Option<&mut Line>) -> bool {
        let was_leaving = self.is_leaving;
        while let Ok(order) = self.parts.orders.try_recv() {
            match order {
                Order::Leave => self.is_leaving = true,
                Order::Follow(subscription, places) => {
                    for &(slot, generation) in &places {
                        if self.parts.publisher.assign(slot, generation) {
                            self.parts.metrics.forget(slot.0);
                        }
                    }
                    let slots = places.into_iter().map(|(slot, _)| slot);
                    self.places = slots
                        .zip(subscription.iter())
                        .map(|(slot, wanted)| Place::new(slot, wanted))
                        .collect();
                    self.extractor.follow(&subscription);
                    if let Some(line) = line.as_deref_mut() {
                        line.session.want(subscription.codes());
                    }
                    self.subscription = subscription;
                }
            }
        }
        self.is_leaving && !was_leaving
    }

    /// Pauses between two attempts to open the port.
    fn rest(&mut self, pause: Duration) {
        let until = now_ns() + pause.as_nanos() as u64;
        loop {
            let left = until.saturating_sub(now_ns());
            if left == 0 || self.obey(None) || wait(None, &self.parts.wake, Some(left)).is_err() {
                return;
            }
        }
    }

    fn tell(&self, message: DataMessage) {
        // Sending fails only if the control thread has panicked; the daemon then ends.
        let _ = self.parts.messages.send(message);
    }

    fn note(&self, notice: Notice) {
        // Without a receiver, the notice is dropped.
        let _ = self.parts.notices.send(notice);
    }
}

/// Copies the counts of unreadable packets to the metrics, if they have changed and no reader holds the lock.
fn count_troubles(extractor: &Extractor, metrics: &Metrics) {
    let Ok(mut troubles) = metrics.troubles.try_lock() else { return };
    let known: u64 = troubles.iter().map(|(_, count)| count).sum();
    let counted: u64 = extractor.troubles().iter().map(|trouble| trouble.count).sum();
    if known != counted {
        *troubles = extractor.troubles().iter().map(|trouble| (trouble.to_string(), trouble.count)).collect();
    }
}

/// Waits for the port, for an order, or until `nanos` have passed. Returns whether the port has bytes.
fn wait(port: Option<&Port>, wake: &OwnedFd, nanos: Option<u64>) -> io::Result<bool> {
    let timeout = nanos.map(|nanos| Timespec {
        tv_sec: (nanos / 1_000_000_000) as i64,
        tv_nsec: (nanos % 1_000_000_000) as i64,
    });
    let mut waits = [PollFd::new(wake, PollFlags::IN), PollFd::new(wake, PollFlags::empty())];
    if let Some(port) = port {
        waits[1] = PollFd::new(port, PollFlags::IN);
    }
    match poll(&mut waits, timeout.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let [woken, ready] = waits.map(|wait| !wait.revents().is_empty());
    if woken {
        let _ = rustix::io::read(wake, &mut [0; 8]);
    }
    Ok(ready && port.is_some())
}
