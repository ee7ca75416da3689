//! Controllers in the Linux kernel: eBPF programs in C, and what user space needs for them.
//!
//! ```text
//! crates/cc (Rust)      ── the same rules ──      bpf/biscay.h, morc.h, bbr.h (C, whole numbers)
//!       │                                           │                    │
//!   ACK trace ──────────────[`replay`]──────────▶ host ([`twin`])    biscay.bpf.c, morc.bpf.c in the kernel
//! ```
//!
//! | module | what it is |
//! | --- | --- |
//! | [`twin`] | the C compiled for the host |
//! | [`replay`] | an ACK trace through a twin |
//! | `kernel` | loads programs and removes them (feature `load`) |
//! | `choose` | a scheme for the connections of programs that know nothing of it (feature `load`) |
//! | `feed`, `feeder` | the mapped array through which the kernel hears what the radio grants; what radio reports mean for it (feature `load`) |
//!
//! The C lies in `src/bpf/`. `fixed.h` is arithmetic without floating point, `intf.h` is what both sides share, and
//! `biscay.h`, `morc.h` over `pcc.h`, and `bbr.h` are the controllers. `sock.h` is what their programs ask of a socket.
//! `active.h` counts active flows, and `count.h` shows it every packet that the host sends.

#[cfg(feature = "load")]
pub mod choose;
#[cfg(feature = "load")]
pub mod feed;
#[cfg(feature = "load")]
pub mod feeder;
#[cfg(feature = "load")]
pub mod kernel;
#[cfg(feature = "load")]
mod mapped;
pub mod replay;
pub mod twin;
