//! Sessions: namespaces for the devices and the far side of an emulated network, and the programs in them.
//!
//! A separate process ([`inside`]) holds the namespaces. This process communicates with the emulator over a socket.
//! When the socket closes, even after a crash, that process ends, and with it every program, interface and namespace.
//!
//! | module | purpose |
//! | --- | --- |
//! | `words`, `channel` | messages between the emulator and that process, and their transport |
//! | `inside` | the process that holds the namespaces |
//! | `namespaces`, `interfaces` | creation of namespaces and interfaces |
//! | `far` | the far side: a separate namespace, or the machine and the networks that it reaches |
//! | `host` | the path to the machine and the networks that it reaches, with root's rights |
//! | `guest`, `relay`, `pasta` | the same path without root's rights: TCP connections, and UDP |
//! | `names` | name resolution for programs on devices |
//! | `listening` | detection of a server that listens |
//! | `controls` | congestion controls that sockets used |

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};
use std::path::PathBuf;
use std::process::{Child, Command};

use airpace_core::count::count;
use airpace_core::{Refused, Remedy};

use crate::address::Space;
use crate::error::EmuError;
use crate::turn::Interfaces;

mod channel;
mod controls;
mod far;
mod fib;
mod guest;
mod host;
mod inside;
mod interfaces;
mod listening;
mod names;
mod namespaces;
mod pasta;
mod relay;
mod words;

pub use controls::Control;
pub use inside::inside;
pub(crate) use interfaces::{open_tun, tun_remedy};
pub(crate) use namespaces::{is_privileged, remedy as namespace_remedy};
pub use words::{Far, Reach, Spot};

use channel::Channel;
use words::{Launch, Layout, Made, Order, Word};

/// Configuration of a session.
#[derive(Clone, Debug)]
pub struct SessionPlan {
    /// Command line that calls [`inside`] with the socket's number, which is appended as the last argument.
    pub inside: Vec<std::ffi::OsString>,
    /// Number of devices.
    pub devices: usize,
    /// Location of the far side.
    pub far: Far,
}

/// A session. Dropping it removes its programs, interfaces and namespaces.
#[derive(Debug)]
pub struct Session {
    channel: Channel,
    holder: Child,
    made: Made,
    space: Space,
    /// Reports of ended programs that arrived while another message was expected.
    ended: std::collections::VecDeque<ProgramEnd>,
    started: usize,
}

/// A program to be started.
#[derive(Clone, Debug)]
pub struct Program {
    /// Name or path of the program, and its arguments.
    pub words: Vec<String>,
    /// Location in which the program runs.
    pub spot: Spot,
    /// Environment variables in addition to those of the emulator.
    pub environment: Vec<(String, String)>,
    /// Working directory.
    pub directory: PathBuf,
}

/// The end of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramEnd {
    /// Number of the program, in the order in which programs were started.
    pub program: usize,
    /// Exit status; `None` if a signal ended the program.
    pub code: Option<i32>,
    /// The signal that ended the program.
    pub signal: Option<i32>,
}

impl ProgramEnd {
    /// Returns the exit status that a shell would show.
    pub fn status(&self) -> i32 {
        self.code.unwrap_or_else(|| 128 + self.signal.unwrap_or(0))
    }
}

/// Returns the address block in which this process runs: that of an emulator's device, or the outermost block.
///
/// # Errors
/// The variable that an emulator sets has an invalid value.
pub fn space_here() -> Result<Space, EmuError> {
    // Outside of an emulator, the variable is a leftover from another environment, for example after `sudo -E`.
    let routes = crate::netlink::Routes::open().map_err(EmuError::step("talk to the kernel about routes"))?;
    match std::env::var(SPACE_VARIABLE) {
        Ok(text) if routes.index(interfaces::NAME).is_ok() => text.parse().map_err(|error| {
            EmuError::refused(format!("the variable {SPACE_VARIABLE} is `{text}`, which {error}"))
        }),
        _ => Ok(Space::ROOT),
    }
}

/// Returns whether this process runs in a namespace of a session.
pub fn is_within_one() -> bool {
    crate::netlink::Routes::open().is_ok_and(|routes| routes.index(interfaces::NAME).is_ok())
}

/// Environment variable with the address block of a device, for nested emulators.
const SPACE_VARIABLE: &str = "AIRPACE_SPACE";

/// Environment variables with the far side's address: Airpace's, and mahimahi's for the scripts of its users.
///
/// Source: mahimahi `packetshell.cc` (ae477d4): the outermost shell sets it
const BASE_VARIABLES: [&str; 2] = ["AIRPACE_BASE", "MAHIMAHI_BASE"];

impl Session {
    /// Creates the namespaces and their interfaces.
    ///
    /// # Errors
    /// The operating system refuses a step. The error is one sentence with a remedy.
    pub fn begin(plan: &SessionPlan) -> Result<(Session, Interfaces), EmuError> {
        let Some(devices) =
            u8::try_from(plan.devices).ok().filter(|it| (1..=Space::MAX_DEVICES).contains(it))
        else {
            return Err(EmuError::refused(format!(
                "the scenario has {}; an emulator has 1 to {}",
                count(plan.devices as u64, "device"),
                Space::MAX_DEVICES
            )));
        };
        let space = space_here()?;
        let far = match plan.far {
            // The outer emulator decides which networks its devices reach.
            Far::Host { .. } if space.depth() > 0 => Far::Here,
            far => far,
        };
        let (channel, theirs) = Channel::pair().map_err(EmuError::step("make a socket"))?;
        let [program, arguments @ ..] = &plan.inside[..] else {
            return Err(EmuError::refused("no program holds the namespaces".to_owned()));
        };
        rustix::io::fcntl_setfd(&theirs, rustix::io::FdFlags::empty())
            .map_err(|error| EmuError::step("hand over a socket")(error.into()))?;
        let holder = Command::new(program)
            .args(arguments)
            .arg(theirs.as_raw_fd().to_string())
            .spawn()
            .map_err(EmuError::step("start the process that holds the namespaces"))?;
        drop(theirs);
        let layout = Layout { space: space.to_string(), devices, far };
        channel.send(&Order::Make(layout), &[]).map_err(EmuError::step("ask for namespaces"))?;
        let said = channel.receive::<Word>().map_err(EmuError::step("hear of the namespaces"))?;
        let (made, files) = match said {
            Some((Word::Ready(made), files)) => (made, files),
            Some((Word::Failed { why }, _)) => return Err(EmuError::Refused(why)),
            Some((other, _)) => return Err(EmuError::Session(format!("said {other:?}"))),
            None => return Err(EmuError::Session("ended before it had made them".to_owned())),
        };
        let expected = plan.devices + 1;
        if files.len() != expected || made.slots.len() != plan.devices {
            return Err(EmuError::Session(format!(
                "handed over {} files instead of {expected}",
                files.len()
            )));
        }
        let mut interfaces = files.into_iter().map(File::from);
        let far = interfaces.next().expect("they were counted");
        let devices = made.slots.iter().copied().zip(interfaces).collect();
        let interfaces = Interfaces { devices, far, space };
        let ended = std::collections::VecDeque::new();
        Ok((Session { channel, holder, made, space, ended, started: 0 }, interfaces))
    }

    /// Returns the far side's address block.
    pub fn space(&self) -> Space {
        self.space
    }

    /// Returns the address block of a device.
    pub fn device(&self, index: usize) -> Option<Space> {
        self.made.slots.get(index).and_then(|&slot| self.space.device(slot))
    }

    /// Returns whether devices have IPv6.
    pub fn has_ipv6(&self) -> bool {
        self.made.has_ipv6
    }

    /// Returns the networks that programs on devices can reach.
    pub fn reach(&self) -> Reach {
        self.made.reach
    }

    /// Returns warnings, each a sentence, about restrictions of the session.
    pub fn doubts(&self) -> &[Refused] {
        &self.made.doubts
    }

    /// Returns whether the namespaces belong to a user namespace, because the user is not root.
    pub fn in_user_namespace(&self) -> bool {
        self.made.in_user_namespace
    }

    /// Returns whether the session has a PID namespace, so that the kernel itself ends all of its processes.
    pub fn in_process_namespace(&self) -> bool {
        self.made.in_process_namespace
    }

    /// Starts a program; its output goes to `output`, or to the terminal. Returns the program's number.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn launch(&mut self, program: &Program, output: Option<&File>) -> Result<usize, EmuError> {
        self.start(program, output, false)
    }

    /// Starts a server and waits until it listens. Returns the server's number, and whether it listens. A program that
    /// opens no socket within some seconds is not an error.
    ///
    /// # Errors
    /// The same errors as [`Session::launch`].
    pub fn serve(&mut self, program: &Program, output: Option<&File>) -> Result<(usize, bool), EmuError> {
        let number = self.start(program, output, true)?;
        loop {
            match self.hear()? {
                Word::Settled { is_listening } => return Ok((number, is_listening)),
                other => self.keep(other)?,
            }
        }
    }

    fn start(
        &mut self,
        program: &Program,
        output: Option<&File>,
        is_server: bool,
    ) -> Result<usize, EmuError> {
        let launch = Launch {
            words: program.words.clone(),
            spot: program.spot,
            environment: self.environment(program),
            directory: program.directory.clone(),
            has_output: output.is_some(),
            is_server,
        };
        let name = program.words.first().cloned().unwrap_or_default();
        let files: Vec<_> = output.iter().map(|file| file.as_fd()).collect();
        let step = format!("start `{name}`");
        self.channel.send(&Order::Launch(launch), &files).map_err(EmuError::step(step))?;
        loop {
            match self.hear()? {
                Word::Started { .. } => break,
                Word::NotStarted { why } => {
                    let refused = Refused::new(format!("cannot start `{name}`: {why}"));
                    return Err(refused.but(Remedy::new("check its name and path")).into());
                }
                other => self.keep(other)?,
            }
        }
        self.started += 1;
        Ok(self.started - 1)
    }

    fn environment(&self, program: &Program) -> Vec<(String, String)> {
        let mut all = vec![];
        if let Spot::Device(index) = program.spot
            && let Some(space) = self.device(usize::from(index))
        {
            all.push((SPACE_VARIABLE.to_owned(), space.to_string()));
            // Nested emulators use the address of the outermost far side too, unless they have a separate far side.
            let base = if self.made.reach == Reach::Own { self.space } else { Space::ROOT };
            let address = base.address_v4().to_string();
            all.extend(BASE_VARIABLES.map(|name| (name.to_owned(), address.clone())));
            if self.made.has_ipv6 {
                all.push(("AIRPACE_BASE6".to_owned(), base.address_v6().to_string()));
            }
        }
        all.extend(program.environment.iter().cloned());
        all
    }

    /// Waits for the end of a program.
    ///
    /// # Errors
    /// The process that holds the namespaces is gone.
    pub fn wait(&mut self) -> Result<ProgramEnd, EmuError> {
        loop {
            if let Some(end) = self.ended.pop_front() {
                return Ok(end);
            }
            let word = self.hear()?;
            self.keep(word)?;
        }
    }

    /// Returns a descriptor that is readable when [`Session::wait`] has a further result, apart from those already
    /// received.
    pub fn handle(&self) -> impl AsFd + '_ {
        self.channel.as_fd()
    }

    /// Returns whether [`Session::wait`] returns at once.
    pub fn has_end(&self) -> bool {
        !self.ended.is_empty()
    }

    /// Ends all programs and removes the session. Returns the number of packets that interfaces lost because nobody read
    /// them, and the congestion controls that sockets used.
    ///
    /// # Errors
    /// The process that holds the namespaces was already gone.
    pub fn end(mut self) -> Result<(u64, Vec<Control>), EmuError> {
        self.channel.send(&Order::End, &[]).map_err(EmuError::step("end the session"))?;
        loop {
            match self.hear()? {
                Word::Over { unread, controls } => return Ok((unread.iter().sum(), controls)),
                other => self.keep(other)?,
            }
        }
    }

    fn hear(&mut self) -> Result<Word, EmuError> {
        match self.channel.receive::<Word>().map_err(EmuError::step("hear of the programs"))? {
            Some((Word::Failed { why }, _)) => Err(EmuError::Refused(why)),
            Some((word, _)) => Ok(word),
            None => Err(EmuError::Session("is gone".to_owned())),
        }
    }

    /// Stores the end of a program for a later call of [`Session::wait`].
    fn keep(&mut self, word: Word) -> Result<(), EmuError> {
        match word {
            Word::Ended { program, code, signal } => {
                self.ended.push_back(ProgramEnd { program, code, signal });
                Ok(())
            }
            Word::Settled { .. } => Ok(()),
            other => Err(EmuError::Session(format!("said {other:?}"))),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // The process ends when it receives this message, or when the socket closes.
        let _ = self.channel.send(&Order::End, &[]);
        while let Ok(Some((word, _))) = self.channel.receive::<Word>() {
            drop(word);
        }
        let _ = self.holder.wait();
    }
}
