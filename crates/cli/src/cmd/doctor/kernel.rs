//! Finding of `airpace doctor` about schemes in the Linux kernel.

use airpace_lab::machine::Finding;

use crate::called;

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
                    "this kernel takes {biscay}, {morc} and {pbe} as congestion controls: {}{who}",
                    called::command("kernel")
                )
            }
            Err(error) => {
                format!("{error}; {} and {} do without it", called::command("sim"), called::command("emu"))
            }
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
        detail: format!(
            "left out of this build: congestion controls in the Linux kernel ({}). With it:",
            called::command("kernel")
        ),
        remedy: super::build_with("bpf"),
    }
}
