//! Finding of `airpace doctor` about schemes in the Linux kernel.

use airpace_lab::machine::Finding;

/// Checks whether this build and this kernel can load schemes. Loads nothing, so it needs no privileges.
#[cfg(feature = "bpf")]
pub fn line() -> Finding {
    use airpace_bpf::kernel::{SCHEMES, may_load, readiness};
    let ready = readiness();
    Finding {
        name: "kernel",
        is_there: ready.is_ok(),
        detail: match ready {
            Ok(()) => {
                let who = if may_load() {
                    ""
                } else {
                    "; loading needs root, or CAP_BPF, CAP_PERFMON, CAP_NET_ADMIN and, for control groups, CAP_SYS_ADMIN"
                };
                let [biscay, morc, pbe] = SCHEMES;
                format!(
                    "this kernel takes {biscay}, {morc} and {pbe} as congestion controls: `airpace kernel`{who}"
                )
            }
            Err(error) => format!("{error}; `airpace sim` and `airpace emu` do without it"),
        },
        remedy: String::new(),
    }
}

/// Returns instructions for a build that can load schemes.
#[cfg(not(feature = "bpf"))]
pub fn line() -> Finding {
    Finding {
        name: "kernel",
        is_there: false,
        detail:
            "left out of this build: congestion controls in the Linux kernel (`airpace kernel`). With it:"
                .to_owned(),
        remedy: super::build_with("bpf"),
    }
}
