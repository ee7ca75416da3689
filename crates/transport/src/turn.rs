//! The event loop of a connection thread: one socket, one endpoint, the application over it, and the radio reports.
//!
//! Each iteration receives datagrams up to a limit, passes the events to the application, runs the timers that are
//! due, sends datagrams up to a limit, and sleeps until the next deadline. The delay between deadline and
//! transmission is recorded ([`Lateness`]).

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use airpace_cc::registry::DeviceFlows;
use airpace_core::Time;
use airpace_rt::clock::{self, thread_cpu};
use airpace_rt::lateness::Lateness;
use airpace_rt::sleeper::{Needs, Sleeper};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd};

use crate::app::App;
use crate::endpoint::{ConnectionId, Endpoint, Event};
use crate::socket::Socket;
use airpace_feed::Radio;

/// Real-time priority of the thread.
///
/// Chosen: lower than the emulator's, which may run on the same machine.
pub const PRIORITY: i32 = 5;

/// Duration of the pause after spinning, as a multiple of the duration of the spin.
///
/// Chosen: the thread spins for at most a tenth of the time. If one packet is sent slightly late, the next one can be
/// on time.
const REST: u32 = 9;

/// Maximum sleep time, after which all inputs are checked again.
const MAX_SLEEP: Duration = Duration::from_millis(500);

/// Maximum number of receive calls per iteration, before anything is sent.
///
/// Chosen: a few hundred datagrams, that is less than a millisecond of work.
const MAX_RECEIVES: usize = 4;

/// Maximum number of datagram groups per iteration that are sent before the socket is read again.
const MAX_TRANSMITS: usize = 64;

/// Interval between attempts to send on a socket whose send buffer is full, unless the socket becomes writable
/// earlier.
const RETRY: Duration = Duration::from_millis(1);

/// Maximum time that a finished application waits until its peers know that their connections are closed.
///
/// Chosen: three round trips through a queue of three seconds.
const MAX_FAREWELL: Duration = Duration::from_secs(10);

/// Interval between checks for radio reports while the thread is awake.
const LOOK_FOR_REPORTS: Duration = Duration::from_micros(500);

/// Controls the event loop from any other thread.
#[derive(Debug)]
pub struct Control {
    is_over: AtomicBool,
    rebinds: AtomicBool,
    wakes: AtomicBool,
    bell: OwnedFd,
}

impl Control {
    /// Creates the control of one event loop.
    ///
    /// # Errors
    /// The operating system has no file descriptor left.
    pub fn new() -> std::io::Result<Arc<Control>> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let [is_over, rebinds, wakes] = [(); 3].map(|()| AtomicBool::new(false));
        Ok(Arc::new(Control { is_over, rebinds, wakes, bell }))
    }

    /// Stops the event loop at once. Nothing more is sent. To close connections properly, call [`Control::wake`]
    /// instead; the application closes them and then reports that it is done.
    pub fn stop(&self) {
        self.is_over.store(true, Ordering::Release);
        self.ring();
    }

    /// Binds the socket to another port, as if the machine's address had changed.
    pub fn rebind(&self) {
        self.rebinds.store(true, Ordering::Release);
        self.ring();
    }

    /// Makes the event loop call [`App::handle_timeout`].
    pub fn wake(&self) {
        self.wakes.store(true, Ordering::Release);
        self.ring();
    }

    fn ring(&self) {
        // The write fails only if the counter reaches 2^64 - 1.
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }
}

/// The parts of an event loop.
pub struct Turn<E, A> {
    /// The socket.
    pub socket: Socket,
    /// The endpoint that uses the socket.
    pub endpoint: E,
    /// The application over the endpoint.
    pub app: A,
    /// Sources of radio reports.
    pub radios: Vec<Box<dyn Radio>>,
    /// Control of this event loop.
    pub control: Arc<Control>,
    /// Whether to request real-time priority.
    pub wants_realtime: bool,
}

/// The parts of an event loop after its end, and its statistics.
pub struct Turned<E, A> {
    /// The socket.
    pub socket: Socket,
    /// The endpoint.
    pub endpoint: E,
    /// The application.
    pub app: A,
    /// Sources of radio reports.
    pub radios: Vec<Box<dyn Radio>>,
    /// Statistics of the run.
    pub audit: Audit,
}

/// Statistics of a run.
#[derive(Clone, Debug)]
pub struct Audit {
    /// Distribution of the delay between deadline and transmission.
    pub lateness: Lateness,
    /// Duration of the run.
    pub took: Duration,
    /// CPU time of the thread.
    pub cpu: Duration,
    /// Iterations of the event loop.
    pub turns: u64,
    /// Reason why the thread has no real-time priority, if it was requested.
    pub not_realtime_because: Option<String>,
    /// Reason why the last attempt to bind the socket to another port failed.
    pub not_rebound_because: Option<String>,
}

impl<E: Endpoint, A: App> Turn<E, A> {
    /// Runs until the application is done, or until [`Control::stop`]. It occupies the calling thread.
    pub fn run(self) -> Turned<E, A> {
        let priority = self.wants_realtime.then_some(PRIORITY);
        let mut sleeper = Sleeper::new(Needs { priority, rest: REST, max_sleep: MAX_SLEEP });
        let (began, cpu_before) = (clock::now(), thread_cpu());
        let mut turning = Turning {
            socket: self.socket,
            endpoint: self.endpoint,
            app: self.app,
            radios: self.radios,
            connections: vec![],
            buffer: Vec::with_capacity(1 << 16),
            lateness: Lateness::default(),
            looked: Time::ZERO,
            ends_by: Time::NEVER,
        };
        let mut not_rebound_because = None;
        let mut turns = 0;
        // Deadline of the endpoint until which the thread slept.
        let mut slept_for = None;
        while !self.control.is_over() {
            turns += 1;
            if self.control.rebinds.swap(false, Ordering::AcqRel) {
                not_rebound_because = turning.rebind();
            }
            turning.receive();
            turning.look_for_reports();
            turning.carry_out(self.control.wakes.swap(false, Ordering::AcqRel));
            let has_more = turning.send(slept_for.take());
            if turning.app.is_done() && !has_more && turning.has_said_all() {
                break;
            }
            if !has_more || turning.socket.is_full() {
                slept_for = turning.sleep(&mut sleeper, &self.control);
            } else {
                sleeper.sleep_if_restless();
            }
        }
        let Turning { socket, endpoint, app, radios, lateness, .. } = turning;
        let (took, cpu) = (clock::now() - began, thread_cpu() - cpu_before);
        let not_realtime_because = sleeper.refused.map(|error| {
            format!("no real-time priority ({error}), so that packets may leave late on a busy machine; give the program CAP_SYS_NICE")
        });
        let audit = Audit { lateness, took, cpu, turns, not_realtime_because, not_rebound_because };
        Turned { socket, endpoint, app, radios, audit }
    }
}

/// State of a running event loop.
struct Turning<E, A> {
    socket: Socket,
    endpoint: E,
    app: A,
    radios: Vec<Box<dyn Radio>>,
    /// Connections that are not closed.
    connections: Vec<ConnectionId>,
    buffer: Vec<u8>,
    lateness: Lateness,
    /// Instant of the last check for radio reports.
    looked: Time,
    /// Deadline at which the run ends even if a peer does not answer.
    ends_by: Time,
}

impl<E: Endpoint, A: App> Turning<E, A> {
    fn receive(&mut self) {
        for _ in 0..MAX_RECEIVES {
            let endpoint = &mut self.endpoint;
            let taken = self.socket.receive(|datagram| endpoint.handle(datagram));
            if taken > 0 {
                self.tell();
            }
            if !self.socket.may_have_more() {
                return;
            }
        }
    }

    /// Passes the endpoint's events to the application.
    fn tell(&mut self) {
        while let Some((id, event)) = self.endpoint.poll_event() {
            let (before, now) = (self.connections.len(), clock::now());
            match event {
                Event::Connected => self.connections.push(id),
                Event::Closed(_) => self.connections.retain(|other| *other != id),
                _ => {}
            }
            if self.connections.len() != before && !self.radios.is_empty() {
                self.share(now);
            }
            self.app.on_event(now, &mut self.endpoint, id, event);
        }
    }

    /// Reports to each connection its share of the device's radio.
    ///
    /// Chosen: equal shares. The traffic of other programs over the same radio is unknown here.
    fn share(&mut self, now: Time) {
        let flows = self.connections.len().clamp(1, usize::from(u16::MAX)) as u16;
        let device = DeviceFlows { flows, apps: 1, app_flows: flows, used_share: 1.0 / f64::from(flows) };
        for &id in &self.connections {
            if let Some(connection) = self.endpoint.connection(id) {
                connection.on_device(now, &device);
            }
        }
    }

    fn look_for_reports(&mut self) {
        let now = clock::now();
        if self.radios.is_empty() || now - self.looked < LOOK_FOR_REPORTS {
            return;
        }
        self.looked = now;
        for radio in &mut self.radios {
            radio.take(now, &mut |report| {
                for &id in &self.connections {
                    if let Some(connection) = self.endpoint.connection(id) {
                        connection.on_radio(&report);
                    }
                }
            });
        }
    }

    /// Runs the timers that are due.
    fn carry_out(&mut self, is_woken: bool) {
        let now = clock::now();
        if self.endpoint.poll_timeout().is_some_and(|due| due <= now) {
            self.endpoint.handle_timeout(now);
        }
        self.tell();
        if is_woken || self.app.poll_timeout().is_some_and(|due| due <= now) {
            self.app.handle_timeout(now, &mut self.endpoint);
            self.tell();
        }
    }

    /// Sends datagrams up to a limit. Returns whether more remain.
    fn send(&mut self, slept_for: Option<Time>) -> bool {
        let mut waited_for = slept_for;
        self.socket.flush();
        for _ in 0..MAX_TRANSMITS {
            if self.socket.is_full() {
                return true;
            }
            self.buffer.clear();
            let Some(out) = self.endpoint.poll_transmit(clock::now(), &mut self.buffer) else {
                self.tell();
                return false;
            };
            self.socket.send(&out, &self.buffer);
            if let Some(due) = waited_for.take() {
                self.lateness.record(clock::now() - due);
            }
        }
        true
    }

    /// Whether the run may end although the application waits for its peers: all peers have confirmed the close, or the
    /// maximum time has passed.
    fn has_said_all(&mut self) -> bool {
        if !self.app.waits_for_peers() || self.endpoint.poll_timeout().is_none() {
            return true;
        }
        let now = clock::now();
        self.ends_by = self.ends_by.min(now + MAX_FAREWELL);
        now >= self.ends_by
    }

    /// Sleeps until input arrives or a deadline passes. Returns the endpoint's deadline if it has passed.
    fn sleep(&mut self, sleeper: &mut Sleeper, control: &Control) -> Option<Time> {
        let is_full = self.socket.is_full();
        let asked = clock::now();
        let of_endpoint = if is_full { Some(asked + RETRY) } else { self.endpoint.poll_timeout() };
        let deadlines = self.radios.iter().filter_map(|radio| radio.poll_timeout());
        let due = deadlines
            .chain(of_endpoint)
            .chain(self.app.poll_timeout())
            .min()
            .unwrap_or(Time::NEVER)
            .min(self.ends_by);
        if due <= asked {
            // The next iteration checks all inputs in any case.
            return None;
        }
        let wanted = if is_full { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        let mut waiting = vec![PollFd::new(&self.socket, wanted), PollFd::new(&control.bell, PollFlags::IN)];
        let fds = self.radios.iter().filter_map(|radio| radio.fd());
        waiting.extend(fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        let woke = sleeper.wait(due, true, &mut waiting, |_| {});
        let [rings, reports] = [1..2, 2..waiting.len()]
            .map(|places| woke && waiting[places].iter().any(|fd| !fd.revents().is_empty()));
        if rings {
            let _ = rustix::io::read(&control.bell, &mut [0; 8]);
        }
        if reports {
            self.looked = Time::ZERO;
        }
        of_endpoint.filter(|due| !is_full && *due <= clock::now())
    }

    /// Binds the socket to another port. Returns the error, if any.
    fn rebind(&mut self) -> Option<String> {
        let result = self.socket.rebind();
        if result.is_ok() {
            self.endpoint.on_rebound(clock::now());
        }
        result.err().map(|error| error.to_string())
    }
}
