//! Controllers in the Linux kernel: eBPF programs in C, and what user space needs for them.
//!
//! ```text
//! crates/cc (Rust)      ── the same rules ──      bpf/biscay.h, window.h, morc.h, bbr.h, pbe.h (C, whole numbers)
//!       │                                           │                    │
//!   ACK trace ──────────────[`replay`]──────────▶ host ([`twin`])    biscay.bpf.c, morc.bpf.c, pbe.bpf.c in the kernel
//! ```
//!
//! | module | what it is |
//! | --- | --- |
//! | [`twin`] | the C compiled for the host |
//! | [`replay`] | an ACK trace through a twin |
//! | `kernel` | loads programs and removes them (feature `load`) |
//! | `choose` | a scheme for the connections of programs that know nothing of it (feature `load`) |
//! | `room` | makes room for PBE-CC's option at network devices (feature `load`) |
//! | `feed`, `feeder` | the mapped array through which the kernel hears what the radio grants; what radio reports mean for it (feature `load`) |
//!
//! The C lies in `src/bpf/`. `fixed.h` is arithmetic without floating point, `intf.h` is what both sides share, and
//! `biscay.h`, `morc.h` over `pcc.h`, `bbr.h`, and `pbe.h` over it are the controllers. `sock.h` is what their programs ask
//! of a socket, `scheme.h` is what all schemes have in common, and `pbe_option.h` is how feedback rides in TCP's headers.
//! `active.h` counts active flows, and `count.h` shows it every packet that the host sends or receives. `split.h` divides the
//! bandwidth among them, and `window.h` is the window that a device advertises to any sender.

#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

#[cfg(feature = "load")]
pub mod choose;
#[cfg(feature = "load")]
pub mod feed;
#[cfg(feature = "load")]
pub mod feeder;
#[cfg(feature = "load")]
pub mod kernel;
#[cfg(any(test, feature = "load"))]
#[cfg_attr(not(feature = "load"), allow(dead_code))]
mod layout;
#[cfg(feature = "load")]
mod mapped;
pub mod replay;
#[cfg(feature = "load")]
pub mod room;
pub mod twin;
