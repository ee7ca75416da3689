//! Messages between the emulator and the process that holds its namespaces.

use std::path::PathBuf;

use airpace_core::Refused;
use serde::{Deserialize, Serialize};

use super::controls::Control;

/// Messages from the emulator.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Order {
    /// Create the namespaces. This is the first message.
    Make(Layout),
    /// Start a program.
    Launch(Launch),
    /// End the session. A closed socket has the same effect.
    End,
}

/// The requested namespaces.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Layout {
    /// Address block of the far side, as text.
    pub space: String,
    /// Number of devices.
    pub devices: u8,
    /// Location of the far side.
    pub far: Far,
}

/// Location of the far side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Far {
    /// A separate namespace, which is connected only to the devices and contains the servers that are started there.
    Own,
    /// The namespace in which the emulator was started, which is a device of another emulator.
    Here,
    /// This machine, and the networks that it reaches.
    Host {
        /// Whether [`Far::Own`] is an acceptable replacement.
        or_own: bool,
    },
}

/// Networks that programs on devices can reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reach {
    /// Programs on the far side only.
    Own,
    /// The device of another emulator on which this emulator runs.
    Here,
    /// This machine and the networks that it reaches; the kernel forwards packets.
    Host,
    /// The same networks without root's rights: connections end at the far side, and a relay continues them.
    Relay {
        /// Whether UDP reaches these networks too.
        udp: bool,
    },
}

/// Location in which a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Spot {
    /// The device with this index.
    Device(u8),
    /// The far side.
    Far,
}

/// A program to be started.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Launch {
    pub words: Vec<String>,
    pub spot: Spot,
    pub environment: Vec<(String, String)>,
    pub directory: PathBuf,
    /// Whether the message contains a file for the program's output; otherwise the output goes to the terminal.
    pub has_output: bool,
    /// Whether to report when the program listens.
    pub is_server: bool,
}

/// Messages from the process that holds the namespaces.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Word {
    /// The namespaces are complete. The message contains the open interfaces (the far side's, then each device's), and
    /// the network namespaces in the same order.
    Ready(Made),
    /// A step failed, which ends the session.
    Failed { why: Refused },
    /// A program was started; programs are numbered in the order of the requests.
    Started { pid: i32 },
    /// A program could not be started.
    NotStarted { why: String },
    /// The server that was started last listens, has ended, or has opened no socket for some seconds.
    Settled { is_listening: bool },
    /// A program has ended.
    Ended { program: usize, code: Option<i32>, signal: Option<i32> },
    /// The session is over. `unread` is the number of packets that each interface lost because the emulator did not read
    /// them: the far side's, then each device's. `controls` are the congestion controls of sockets.
    Over { unread: Vec<u64>, controls: Vec<Control> },
}

/// The created namespaces.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Made {
    /// Number of each device in the address block.
    pub slots: Vec<u8>,
    /// Whether the namespaces belong to a user namespace.
    pub in_user_namespace: bool,
    /// Whether a PID namespace ends all processes of the session; otherwise they are searched and killed one by one.
    pub in_process_namespace: bool,
    /// Whether devices have IPv6.
    pub has_ipv6: bool,
    /// Networks that programs on devices can reach.
    pub reach: Reach,
    /// Warnings about restrictions of the session.
    pub doubts: Vec<Refused>,
}
