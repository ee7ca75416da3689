//! Real-time emulator: unmodified programs behind a simulated network.
//!
//! Each device of a scenario is a network namespace whose only interface to the outside is a TUN device. The far side
//! is such a namespace too: at this end of the network, programs reach servers, this machine and the Internet. One
//! thread reads packets, runs the same `airpace_path::Network` as the simulator, and writes each packet to the
//! interface at the other end when it is due.
//!
//! ```text
//!  device 1: programs ─▶ TUN ─┐                                  ┌─ TUN ─▶ far side: servers,
//!  device 2: programs ─▶ TUN ─┼─▶ turn: Crossing (the network) ──┤          the host, the Internet
//!        …                    ┘        │         │               └─
//!                                      ▼         ▼
//!                                   Record    radio reports
//! ```
//!
//! | module | purpose |
//! | --- | --- |
//! | [`crossing`] | the network that carries packets of programs: one two-way flow per device |
//! | [`turn`] | the thread that runs the network in real time |
//! | [`record`], [`replay`] | the record of each packet, and its replay in virtual time |
//! | [`reports`] | radio reports of the devices, on Unix sockets |
//! | [`audit`] | lateness and losses of the emulator, and whether its figures may be used |
//! | [`session`] | namespaces, interfaces and programs; all are removed when the session ends |
//! | [`address`] | addresses of devices and far side, also for nested emulators |
//! | [`ip`], [`connections`] | parsing of packet headers, and numbering of connections |
//! | [`play`] | packets sent by a schedule, to compare the emulator with the simulator |
//! | [`bulk`] | a bulk flow over the kernel's TCP, to compare kernels |
//! | [`machine`] | the rights and the timer accuracy that this machine offers |

#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

pub mod address;
mod attention;
pub mod audit;
pub mod bulk;
pub mod connections;
pub mod crossing;
mod error;
pub mod ip;
pub mod machine;
mod netfilter;
mod netlink;
pub mod play;
pub mod record;
pub mod replay;
pub mod reports;
pub mod session;
mod sys;
pub mod turn;

pub use audit::Audit;
pub use crossing::World;
pub use error::EmuError;
pub use session::Session;
