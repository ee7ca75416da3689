//! Congestion control in the Linux kernel: eBPF programs in C, and the user-space code that loads and feeds them.
//!
//! ```text
//! crates/cc (Rust)      ── the same rules ──      bpf/biscay.h, window.h, morc.h, bbr.h, pbe.h (C, integers)
//!       │                                           │                    │
//!   ACK trace ──────────────[`replay`]──────────▶ host ([`twin`])    biscay.bpf.c, morc.bpf.c, pbe.bpf.c in the kernel
//! ```
//!
//! | module | contents |
//! | --- | --- |
//! | [`twin`] | the C ports of the controllers, compiled for the host |
//! | [`replay`] | replay of an ACK trace through a C port |
//! | `kernel` | loads programs and removes them (feature `load`) |
//! | `manage` | life cycle: loads a scheme with all that it needs, removes it (feature `load`) |
//! | `netns` | network namespaces and their default schemes (feature `load`) |
//! | `groups` | control groups of the machine, and of one program (feature `load`) |
//! | `status` | state of a loaded scheme and its flows (feature `load`) |
//! | `choose` | selects a scheme for the connections of unmodified programs (feature `load`) |
//! | `room` | makes space for PBE-CC's option at network devices (feature `load`) |
//! | `devices` | the network devices that need that space (feature `load`) |
//! | `feed` | the mapped array through which the kernel receives the radio's bandwidth (feature `load`) |
//! | `feeder` | converts radio reports into records of that array (feature `load`) |
//! | `recorded` | radio values from recorded reports and ACK traces (feature `load`) |
//! | `feeding` | writes them while the scheme is loaded (feature `load`) |
//!
//! The C code is in `src/bpf/`. `fixed.h` contains integer arithmetic, `intf.h` the layouts shared with user space.
//! `biscay.h`, `morc.h` (based on `pcc.h`), `bbr.h`, and `pbe.h` (based on `bbr.h`) are the controllers. `sock.h` contains
//! functions for sockets, `scheme.h` the code that all schemes share, and `pbe_option.h` the TCP option that carries
//! feedback. `active.h` counts active flows; `count.h` passes every packet that the host sends or receives to it. `split.h`
//! divides the bandwidth among the flows. `window.h` computes the window that a device advertises to a sender.

#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

#[cfg(feature = "load")]
pub mod choose;
#[cfg(feature = "load")]
pub mod devices;
#[cfg(feature = "load")]
pub mod feed;
#[cfg(feature = "load")]
pub mod feeder;
#[cfg(feature = "load")]
pub mod feeding;
#[cfg(feature = "load")]
pub mod groups;
#[cfg(feature = "load")]
pub mod kernel;
#[cfg(any(test, feature = "load"))]
#[cfg_attr(not(feature = "load"), allow(dead_code))]
mod layout;
#[cfg(feature = "load")]
pub mod manage;
#[cfg(feature = "load")]
mod mapped;
#[cfg(feature = "load")]
mod messages;
#[cfg(feature = "load")]
pub mod netns;
#[cfg(feature = "load")]
pub mod recorded;
pub mod replay;
#[cfg(feature = "load")]
pub mod room;
#[cfg(feature = "load")]
pub mod status;
pub mod twin;
