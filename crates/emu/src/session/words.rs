//! What the emulator and the process that holds its namespaces say to each other.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::controls::Control;

/// What the emulator asks for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Order {
    /// Make the namespaces. The first order.
    Make(Layout),
    /// Start a program.
    Launch(Launch),
    /// End everything. A socket that is closed means the same.
    End,
}

/// Which namespaces are wanted.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Layout {
    /// The block of addresses of the far side, as text.
    pub space: String,
    /// How many devices there are.
    pub devices: u8,
    /// Where the far side is.
    pub far: Far,
}

/// Where the far side is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Far {
    /// A namespace of its own: nothing but the devices and the servers that are started there.
    Own,
    /// The namespace in which the emulator was started, which is a device of another emulator.
    Here,
    /// This machine, and what it reaches.
    Host {
        /// Whether it may be [`Far::Own`] where that cannot be.
        or_own: bool,
    },
}

/// What programs on devices reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reach {
    /// Programs on the far side.
    Own,
    /// The emulator on whose device this one runs.
    Here,
    /// This machine and what it reaches; the kernel passes packets on.
    Host,
    /// The same without rights: connections end at the far side and go on from there.
    Relay {
        /// Whether UDP gets there too.
        udp: bool,
    },
}

/// Where a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Spot {
    /// On the device of this index.
    Device(u8),
    /// On the far side.
    Far,
}

/// A program to be started.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Launch {
    pub words: Vec<String>,
    pub spot: Spot,
    pub environment: Vec<(String, String)>,
    pub directory: PathBuf,
    /// Whether a file for its output comes with the order; otherwise it has the terminal.
    pub has_output: bool,
    /// Whether to say when it listens.
    pub is_server: bool,
}

/// What the process that holds the namespaces says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Word {
    /// Everything stands. With it come the open interfaces (the far side's, then each device's), and the network
    /// namespaces in the same order.
    Ready(Made),
    /// Something could not be done; this ends the session.
    Failed { why: String },
    /// A program was started; its number counts the orders.
    Started { pid: i32 },
    /// A program could not be started.
    NotStarted { why: String },
    /// The server that was started last listens, has ended, or has opened no socket for some seconds.
    Settled { is_listening: bool },
    /// A program has ended.
    Ended { program: usize, code: Option<i32>, signal: Option<i32> },
    /// How many packets each interface has lost because nobody read them; the far side's, then each device's. Told once, at
    /// the end, with the congestion controls of sockets.
    Over { unread: Vec<u64>, controls: Vec<Control> },
}

/// What was made.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Made {
    /// The number of each device in the block of addresses.
    pub slots: Vec<u8>,
    /// Whether the namespaces belong to a user namespace.
    pub in_user_namespace: bool,
    /// Whether all processes of the session end with a namespace of processes, or are looked for one by one.
    pub in_process_namespace: bool,
    /// Whether there is IPv6.
    pub has_ipv6: bool,
    /// What programs on devices reach.
    pub reach: Reach,
    /// Sentences about what is not as one may expect.
    pub doubts: Vec<String>,
}
