//! Parameters of our world that were fitted to a number of a paper, because the paper does not state them.

use serde::Serialize;

/// A fitted parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Fitted {
    /// The experiments that use it.
    pub experiments: &'static str,
    /// The key, with its value.
    pub key: &'static str,
    /// The paper's number to which it was fitted. This number proves nothing; all other numbers are predictions.
    pub to: &'static str,
}

/// All fitted parameters. Each holds for all schemes of its experiments.
pub static FITTED: &[Fitted] = &[
    Fitted {
        experiments: "pbe/table1, fig10 to fig13, states",
        key: "forward.loss, drawn from 1e-5 to 1e-3; device.0.radio.queue_bytes, drawn from 0.2 to 3 MB",
        to: "PBE-CC ÷ CUBIC of 2.3 in throughput",
    },
    Fitted {
        experiments: "pbe/fig2",
        key: "cell.aggregation.on_ms = 120, the default",
        to: "second carrier after 0.13 s",
    },
    Fitted {
        experiments: "pbe/fig7",
        key: "forward.jitter_mean_ms = 1.06",
        to: "jitter of at most 3 ms in 94.1 % of the packets",
    },
    Fitted {
        experiments: "pbe/users",
        key: "cell.background.hour = busy: population, control_per_second, load",
        to: "68 % control users, 70 % of their grants with four PRBs, 15 and 1.3 users in 40 ms, fewer than four messages",
    },
    Fitted { experiments: "pbe/fig14", key: "flow.0.rtt_ms = 72", to: "p95 delay of PBE-CC, 64 ms" },
    Fitted {
        experiments: "pbe/fig14",
        key: "device.0.radio.queue_bytes = 2200000",
        to: "p95 delay of CUBIC, 296 ms",
    },
    Fitted { experiments: "pbe/fig14", key: "forward.loss = 0.0001", to: "throughput of CUBIC, 38 Mbit/s" },
    Fitted { experiments: "pbe/fig16", key: "flow.0.rtt_ms = 92", to: "mean delay of PBE-CC, 61 ms" },
    Fitted {
        experiments: "pbe/fig16",
        key: "device.0.radio.queue_bytes = 2200000",
        to: "p95 delay of CUBIC, 416 ms",
    },
    Fitted {
        experiments: "biscay/table1, fig5 to fig9",
        key: "trace.recorded.cell.prbs, .bandwidth_mhz and .uplink.background.load of scenario biscay-links",
        to: "throughput of BISCAY with two flows, 12.8 (mobile) and 8.89 Mbit/s (static) each",
    },
    Fitted {
        experiments: "biscay/table1, fig6, fig8, table2, fig9",
        key: "flow.0.rtt_ms = 8",
        to: "mean delay of BISCAY with two mobile flows, 5.625 ms; not reached, for even the Oracle has more here",
    },
    Fitted {
        experiments: "morc/fig4",
        key: "flow.0.rtt_ms = 12 or 30, and 18 more",
        to: "longest download of CUBIC, 15.38 s",
    },
];
