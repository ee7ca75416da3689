//! Controllers in the Linux kernel: eBPF programs in C, and what user space needs for them.
//!
//! ```text
//! crates/cc (Rust)      ── the same rules ──      bpf/biscay.h (C, whole numbers)
//!       │                                           │                    │
//!   ACK trace ──────────────[`replay`]──────────▶ host ([`twin`])    biscay.bpf.c in the kernel
//! ```
//!
//! | module | what it is |
//! | --- | --- |
//! | [`twin`] | the C compiled for the host |
//! | [`replay`] | an ACK trace through a twin |
//! | `kernel` | loads programs and removes them (feature `load`) |
//! | `feed`, `feeder` | the mapped array through which the kernel hears what the radio grants; what radio reports mean for it (feature `load`) |
//!
//! The C lies in `src/bpf/`. `fixed.h` is arithmetic without floating point, `intf.h` is what both sides share, and
//! `biscay.h` is the controller.

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
