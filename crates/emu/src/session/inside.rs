//! The process that holds a session's namespaces. It creates them, starts programs in them, and ends with all of them
//! when the emulator requests it or is gone.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use airpace_core::{Refused, Remedy};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, kill_process, pidfd_open, wait};
use rustix::thread::CapabilitySet;

use super::channel::Channel;
use super::controls::{self, Controls};
use super::far::FarSide;
use super::interfaces::{self, NAME};
use super::listening::{in_network, sockets, unread};
use super::namespaces::{self, First, KEPT};
use super::words::{Far, Launch, Layout, Made, Order, Reach, Spot, Word};
use crate::address::Space;
use crate::error::EmuError;
use crate::sys::{self, Place};

/// Maximum time from the start of a server until it listens.
///
/// Chosen: long enough for an interpreter that is not in the disk cache yet.
const LISTENS_WITHIN: Duration = Duration::from_secs(5);

/// Maximum time for which programs may run on after they were asked to terminate.
///
/// Chosen: long enough to write a server's counters, or the end of a capture, to a slow disk.
const ENDS_WITHIN: Duration = Duration::from_secs(1);

/// Polling interval while the process waits for a server to listen, which causes no event.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Runs the process that holds a session's namespaces; `socket` is the number of the inherited socket to the emulator.
/// Returns the exit status of the process.
pub fn inside(socket: RawFd) -> i32 {
    let Ok(socket) = sys::inherited(socket) else { return 2 };
    let channel = Channel::new(socket);
    let heeded = sys::ignore_requests_to_end();
    match Inside::make(&channel, heeded) {
        Ok(mut inside) => inside.serve(&channel),
        Err(error) => {
            // The message has no receiver if the emulator is gone.
            let _ = channel.send(&Word::Failed { why: error.into() }, &[]);
            2
        }
    }
}

/// The namespaces, and the programs in them. The process itself stays in the network in which the emulator was started.
struct Inside {
    far: FarSide,
    devices: Vec<File>,
    /// Capabilities that programs keep.
    ambient: CapabilitySet,
    /// Signals that terminate programs.
    heeded: Vec<libc::c_int>,
    first: First,
    programs: Vec<Running>,
    /// Processes of the session itself, which were started before any program.
    helpers: Vec<Pid>,
    awaited: Option<Awaited>,
    space: Space,
    controls: Controls,
}

/// A program that was started.
struct Running {
    pid: Pid,
    /// Process descriptor, which becomes readable when the program ends; `None` after its end was reported.
    handle: Option<OwnedFd>,
}

/// A server that is expected to listen.
struct Awaited {
    program: usize,
    spot: Spot,
    before: BTreeSet<String>,
    until: Instant,
}

impl Inside {
    /// Creates the requested namespaces, and reports them to the emulator.
    fn make(channel: &Channel, heeded: Vec<libc::c_int>) -> Result<Inside, EmuError> {
        let said = channel.receive::<Order>().map_err(EmuError::step("hear what is wanted"))?;
        let Some((Order::Make(Layout { space, devices, far: place }), _)) = said else {
            return Err(EmuError::Session("was asked for nothing".to_owned()));
        };
        let space: Space = space.parse().map_err(|error| EmuError::Session(format!("{space} {error}")))?;
        let is_privileged = namespaces::is_privileged();
        // Capabilities in a user namespace may not apply to the network in which it was created.
        let (beside, reason) = match (place, is_privileged) {
            (Far::Here, false) => {
                let refused = Refused::new(
                    "an emulator on a device of another one needs the rights that programs have there",
                );
                let remedy = Remedy::new("give it a server of its own:").value("server", "LINE");
                return Err(refused.but(remedy).into());
            }
            (_, false) => (None, None),
            (Far::Host { .. }, true) => match FarSide::in_this_network(place, space, devices) {
                Ok(beside) => (beside, None),
                Err(reason) => (None, Some(reason)),
            },
            (_, true) => (FarSide::in_this_network(place, space, devices)?, None),
        };
        if !is_privileged {
            namespaces::enter_user_namespace()?;
        }
        let mut far = match beside {
            Some(far) => far,
            None => FarSide::in_own_network(place, space, devices, reason)?,
        };
        let (mut interfaces, mut networks) = (vec![], vec![]);
        for &slot in &far.slots {
            let Some(device) = space.device(slot) else {
                return Err(interfaces::too_deep());
            };
            let make = || interfaces::of_device(device, far.leads_ipv6);
            let ((interface, has_ipv6), network) = namespaces::in_new_network(make)?;
            far.has_ipv6 &= has_ipv6;
            interfaces.push(interface);
            networks.push(network);
        }
        let first = namespaces::become_first_process(|| far.undo())?;
        let ambient = if is_privileged { namespaces::inherited() } else { KEPT };
        far.open(ambient, first.has_namespace)?;
        let made = Made {
            slots: far.slots.clone(),
            in_user_namespace: !is_privileged,
            in_process_namespace: first.has_namespace,
            has_ipv6: far.has_ipv6,
            reach: far.reach,
            doubts: std::mem::take(&mut far.doubts),
        };
        let files: Vec<BorrowedFd<'_>> =
            [&far.interface].into_iter().chain(&interfaces).map(AsFd::as_fd).collect();
        channel.send(&Word::Ready(made), &files).map_err(EmuError::step("hand over the interfaces"))?;
        let (devices, programs, helpers) = (networks, vec![], namespaces::all_below(&[]));
        let all = std::iter::once((None, &far.network)).chain((0..).map(Some).zip(&devices));
        let network = |(device, network): (Option<u8>, &File)| {
            let socket = in_network(network.as_fd(), controls::open)?.ok()?;
            Some(controls::Network { device, socket })
        };
        let controls = Controls::of(all.filter_map(network).collect());
        let awaited = None;
        Ok(Inside { far, devices, ambient, heeded, first, programs, helpers, awaited, space, controls })
    }

    /// Starts programs and reports their ends, until the emulator requests the end.
    fn serve(&mut self, channel: &Channel) -> i32 {
        loop {
            self.sample_controls();
            let Some(is_told) = self.wait(channel) else {
                let why =
                    Refused::new("the outer one of the two processes that hold the namespaces was killed");
                let _ = channel.send(&Word::Failed { why }, &[]);
                self.end(channel);
                return 0;
            };
            let served = self.tell_ends(channel).and_then(|()| self.tell_listening(channel));
            let served = served.and_then(|()| match is_told {
                false => Ok(true),
                true => self.obey(channel),
            });
            // The emulator is gone, or requests the end.
            if !matches!(served, Ok(true)) {
                self.end(channel);
                return 0;
            }
        }
    }

    /// Samples the congestion controls of sockets. On the far side, which may be this machine, only sockets whose peer is
    /// a device are counted.
    fn sample_controls(&mut self) {
        let space = self.space;
        self.controls.sample(|device, remote| match device {
            None => space.slot_of(remote).is_some(),
            Some(_) => !remote.is_loopback(),
        });
    }

    /// Waits for an event or a timeout. Returns whether a message from the emulator is waiting; `None` if the process
    /// that waits for this one is gone.
    fn wait(&self, channel: &Channel) -> Option<bool> {
        let mut waiting =
            [PollFd::new(channel, PollFlags::IN), PollFd::new(&self.first.waiter, PollFlags::IN)].to_vec();
        let handles = self.programs.iter().filter_map(|program| program.handle.as_ref());
        waiting.extend(handles.map(|handle| PollFd::new(handle, PollFlags::IN)));
        let soon = if self.awaited.is_some() { LOOK_EVERY } else { Duration::from_millis(100) };
        let timeout = Timespec { tv_sec: 0, tv_nsec: soon.subsec_nanos().into() };
        let _ = poll(&mut waiting, Some(&timeout));
        waiting[1].revents().is_empty().then(|| !waiting[0].revents().is_empty())
    }

    /// Executes an order. Returns whether to continue.
    fn obey(&mut self, channel: &Channel) -> io::Result<bool> {
        match channel.receive::<Order>()? {
            None | Some((Order::End | Order::Make(_), _)) => Ok(false),
            Some((Order::Launch(launch), files)) => {
                let word = match self.launch(&launch, files.into_iter().next()) {
                    Ok(pid) => Word::Started { pid: pid.as_raw_nonzero().get() },
                    Err(why) => Word::NotStarted { why: why.to_string() },
                };
                channel.send(&word, &[])?;
                Ok(true)
            }
        }
    }

    fn launch(&mut self, launch: &Launch, output: Option<OwnedFd>) -> io::Result<Pid> {
        let [program, arguments @ ..] = &launch.words[..] else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no program is named"));
        };
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&launch.directory);
        command.envs(launch.environment.iter().map(|(name, value)| (name, value)));
        if let Some(output) = output.filter(|_| launch.has_output) {
            command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        }
        let network = self.network(launch.spot);
        let before = if launch.is_server { sockets(network) } else { BTreeSet::new() };
        let place = Place { network: network.map(AsFd::as_fd), ambient: self.ambient, heeded: &self.heeded };
        sys::put_in_place(&mut command, &place);
        let child = command.spawn()?;
        let pid = Pid::from_child(&child);
        let handle = pidfd_open(pid, PidfdFlags::empty())?;
        self.programs.push(Running { pid, handle: Some(handle) });
        if launch.is_server {
            let (program, spot) = (self.programs.len() - 1, launch.spot);
            self.awaited = Some(Awaited { program, spot, before, until: Instant::now() + LISTENS_WITHIN });
        }
        Ok(pid)
    }

    /// Returns the network namespace of a program; `None` is that of this process.
    fn network(&self, spot: Spot) -> Option<&File> {
        match spot {
            Spot::Far if self.far.reach == Reach::Own => Some(&self.far.network),
            Spot::Far => None,
            // The devices of a session are fixed, so an unknown index has no namespace.
            Spot::Device(index) => self.devices.get(usize::from(index)),
        }
    }

    /// Reaps all processes that have ended, and reports the programs among them.
    fn tell_ends(&mut self, channel: &Channel) -> io::Result<()> {
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            let Some(program) = self.programs.iter().position(|it| it.pid == pid && it.handle.is_some())
            else {
                continue;
            };
            self.programs[program].handle = None;
            let (code, signal) = (status.exit_status(), status.terminating_signal());
            channel.send(&Word::Ended { program, code, signal }, &[])?;
        }
        Ok(())
    }

    fn tell_listening(&mut self, channel: &Channel) -> io::Result<()> {
        let Some(awaited) = &self.awaited else { return Ok(()) };
        let is_listening = sockets(self.network(awaited.spot)).difference(&awaited.before).next().is_some();
        let has_ended = self.programs[awaited.program].handle.is_none();
        if is_listening || has_ended || Instant::now() > awaited.until {
            self.awaited = None;
            channel.send(&Word::Settled { is_listening }, &[])?;
        }
        Ok(())
    }

    /// Ends all programs and their descendants: the process sends SIGTERM first, and ends the remaining ones after a
    /// timeout.
    fn end(&mut self, channel: &Channel) {
        self.sample_controls();
        // A shell that receives SIGTERM does not forward it to the programs that it runs.
        let mut asked = namespaces::all_below(&self.helpers);
        // The kernel may be built without lists of children.
        for program in self.programs.iter().filter(|program| program.handle.is_some()) {
            if !asked.contains(&program.pid) {
                asked.push(program.pid);
            }
        }
        for &process in &asked {
            let _ = kill_process(process, Signal::TERM);
        }
        let until = Instant::now() + ENDS_WITHIN;
        let has_any = |inside: &Inside| {
            inside.programs.iter().any(|program| program.handle.is_some())
                || namespaces::all_below(&inside.helpers).iter().any(|process| asked.contains(process))
        };
        while has_any(self) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(2));
            let _ = self.tell_ends(channel);
        }
        let far = unread(&self.far.network, &self.far.name);
        let devices = self.devices.iter().map(|network| unread(network, NAME));
        let unread: Vec<u64> = std::iter::once(far).chain(devices).collect();
        let _ = channel.send(&Word::Over { unread, controls: self.controls.told() }, &[]);
        if !self.first.has_namespace {
            namespaces::kill_all_below();
        }
    }
}
