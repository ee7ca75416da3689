//! The wall clock: unmodified programs behind a simulated network, in real time.
//!
//! Each device of a scenario is a network namespace whose only way out is a TUN device; so is the far side. One thread
//! reads packets, turns the same `airpace_path::Network` as the simulator, and writes them to the other end when they are
//! due.
//!
//! ```text
//!  device 1: programs ─▶ TUN ─┐                                  ┌─ TUN ─▶ far side: servers,
//!  device 2: programs ─▶ TUN ─┼─▶ turn: Crossing (the network) ──┤          the host, the Internet
//!        …                    ┘        │         │               └─
//!                                      ▼         ▼
//!                                   Record    radio reports
//! ```
//!
//! | module | what it is |
//! | --- | --- |
//! | [`crossing`] | the network that packets of programs cross: one two-way flow for each device |
//! | [`turn`] | the thread that turns it in real time |
//! | [`record`], [`replay`] | what happened to each packet, and the same in virtual time |
//! | [`reports`] | what the devices' radios say, on Unix sockets |
//! | [`audit`] | how late the emulator was, what was lost, and whether its figures may be used |
//! | [`session`] | namespaces, interfaces and programs; all of it is gone when the session ends |
//! | [`address`] | where devices and far side are, for emulators within emulators too |
//! | [`ip`], [`connections`] | what is read of packets |
//! | [`play`] | packets that are sent by a schedule, to compare both |
//! | [`bulk`] | a flow over the kernel's TCP, by which kernels are compared |
//! | [`clock`] | the clock of a run |
//! | [`machine`] | what this machine carries |

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
