//! The turning thread: one socket, one endpoint, what runs over it, and the radio's reports.
//!
//! Every turn takes what has arrived, up to a bound, tells the app what it meant, carries out what is due, sends what
//! may leave, up to a bound, and sleeps until the next deadline. How late deadlines were met is counted ([`Lateness`]).

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
/// Chosen: below the emulator's, which may run on the same machine.
pub const PRIORITY: i32 = 5;

/// After spinning, the thread does not spin for this many times as long.
///
/// Chosen: it spins for at most a tenth of the time. A packet that leaves a little late lets the next one leave in time.
const REST: u32 = 9;

/// Maximum sleep, after which everything is checked again.
const MAX_SLEEP: Duration = Duration::from_millis(500);

/// Calls that take arrivals before something is sent.
///
/// Chosen: some hundred datagrams, less than a millisecond of work.
const MOST_RECEIVES: usize = 4;

/// Groups of datagrams that are sent before arrivals are looked at again.
const MOST_TRANSMITS: usize = 64;

/// How long a socket without room is left alone, unless it says that there is room.
const RETRY: Duration = Duration::from_millis(1);

/// How long a run whose app is done waits until its peers know that it is over.
///
/// Chosen: three round trips through a queue of three seconds.
const LONGEST_FAREWELL: Duration = Duration::from_secs(10);

/// How often reports are looked for while the thread does not sleep.
const LOOK_FOR_REPORTS: Duration = Duration::from_micros(500);

/// A hand on a turning thread, from any other thread.
#[derive(Debug)]
pub struct Control {
    is_over: AtomicBool,
    rebinds: AtomicBool,
    wakes: AtomicBool,
    bell: OwnedFd,
}

impl Control {
    /// A hand for one thread.
    ///
    /// # Errors
    /// If the operating system has no descriptor left.
    pub fn new() -> std::io::Result<Arc<Control>> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let [is_over, rebinds, wakes] = [(); 3].map(|()| AtomicBool::new(false));
        Ok(Arc::new(Control { is_over, rebinds, wakes, bell }))
    }

    /// Ends the thread's run at once. Nothing more is sent: an app that wants to say farewell is woken, and is done
    /// afterwards.
    pub fn stop(&self) {
        self.is_over.store(true, Ordering::Release);
        self.ring();
    }

    /// Lets the socket go on with another port, as if the machine's address had changed.
    pub fn rebind(&self) {
        self.rebinds.store(true, Ordering::Release);
        self.ring();
    }

    /// Has [`App::on_timeout`] called.
    pub fn wake(&self) {
        self.wakes.store(true, Ordering::Release);
        self.ring();
    }

    fn ring(&self) {
        // It fails only if it has been rung 2^64 times.
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }
}

/// What a run consists of.
pub struct Turn<E, A> {
    /// The socket.
    pub socket: Socket,
    /// The endpoint on it.
    pub endpoint: E,
    /// What runs over the endpoint.
    pub app: A,
    /// Where radio reports come from.
    pub radios: Vec<Box<dyn Radio>>,
    /// The hand on this run.
    pub control: Arc<Control>,
    /// Whether to ask for real-time priority.
    pub wants_realtime: bool,
}

/// What a run leaves behind.
pub struct Turned<E, A> {
    /// The socket.
    pub socket: Socket,
    /// The endpoint.
    pub endpoint: E,
    /// What ran over it.
    pub app: A,
    /// Where radio reports came from.
    pub radios: Vec<Box<dyn Radio>>,
    /// How it went.
    pub audit: Audit,
}

/// How a run went.
#[derive(Clone, Debug)]
pub struct Audit {
    /// How late packets left.
    pub lateness: Lateness,
    /// How long it took.
    pub took: Duration,
    /// Processor time of the thread.
    pub cpu: Duration,
    /// Turns.
    pub turns: u64,
    /// Why the thread had no real-time priority, if it was asked for.
    pub not_realtime_because: Option<String>,
    /// Why the socket could not go on with another port, the last time.
    pub not_rebound_because: Option<String>,
}

impl<E: Endpoint, A: App> Turn<E, A> {
    /// Runs until the app is done, or until it is stopped. The calling thread does nothing else.
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
        // The deadline of the endpoint that the thread slept for.
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

/// A run that is under way.
struct Turning<E, A> {
    socket: Socket,
    endpoint: E,
    app: A,
    radios: Vec<Box<dyn Radio>>,
    /// Those that are not over.
    connections: Vec<ConnectionId>,
    buffer: Vec<u8>,
    lateness: Lateness,
    /// When reports were last looked for.
    looked: Time,
    /// When the run ends even if a peer does not answer.
    ends_by: Time,
}

impl<E: Endpoint, A: App> Turning<E, A> {
    fn receive(&mut self) {
        for _ in 0..MOST_RECEIVES {
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

    /// Tells the app what happened.
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

    /// The connections of a device share its radio.
    ///
    /// Chosen: in equal parts. What other programs move over the radio is not known here.
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

    /// Carries out what is due.
    fn carry_out(&mut self, is_woken: bool) {
        let now = clock::now();
        if self.endpoint.next().is_some_and(|due| due <= now) {
            self.endpoint.on_timeout(now);
        }
        self.tell();
        if is_woken || self.app.next().is_some_and(|due| due <= now) {
            self.app.on_timeout(now, &mut self.endpoint);
            self.tell();
        }
    }

    /// Sends what may leave, up to a bound. Returns whether there is more.
    fn send(&mut self, slept_for: Option<Time>) -> bool {
        let mut waited_for = slept_for;
        self.socket.flush();
        for _ in 0..MOST_TRANSMITS {
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

    /// Whether an app that is done need not wait for its peers either.
    fn has_said_all(&mut self) -> bool {
        if !self.app.waits_for_peers() || self.endpoint.next().is_none() {
            return true;
        }
        let now = clock::now();
        self.ends_by = self.ends_by.min(now + LONGEST_FAREWELL);
        now >= self.ends_by
    }

    /// Sleeps until something arrives or is due. Returns the endpoint's deadline if that is what has come.
    fn sleep(&mut self, sleeper: &mut Sleeper, control: &Control) -> Option<Time> {
        let is_full = self.socket.is_full();
        let asked = clock::now();
        let of_endpoint = if is_full { Some(asked + RETRY) } else { self.endpoint.next() };
        let deadlines = self.radios.iter().filter_map(|radio| radio.next());
        let due = deadlines
            .chain(of_endpoint)
            .chain(self.app.next())
            .min()
            .unwrap_or(Time::NEVER)
            .min(self.ends_by);
        if due <= asked {
            // What arrived is looked at in any case.
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

    /// Goes on with another port. Returns why not.
    fn rebind(&mut self) -> Option<String> {
        let result = self.socket.rebind();
        if result.is_ok() {
            self.endpoint.on_rebound(clock::now());
        }
        result.err().map(|error| error.to_string())
    }
}
