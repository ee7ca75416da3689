//! The table: how every scheme behaves under a grid of conditions, so that a change of behaviour is a text diff.
//!
//! After a change that is meant: `INSTA_UPDATE=always cargo test -p airpace-cc --test table`, and say why.

mod plan;

use std::fmt::Write;
use std::time::Duration;

use airpace_cc::scheme::SCHEMES;
use airpace_core::Rate;
use plan::{Conditions, Plan};

#[test]
fn the_table() {
    let mut table = String::from(
        " rate   rtt   loss  buffer |  scheme  utilization  queueing mean     p95   lost\n\
         Mbit/s   ms     %     BDP |                    %             ms      ms      %\n",
    );
    for rate_mbps in [5.0, 50.0] {
        for rtt_ms in [20, 100] {
            for loss in [0.0, 0.01] {
                for buffer_bdp in [0.5, 4.0] {
                    table +=
                        "---------------------------+--------------------------------------------------\n";
                    for scheme in SCHEMES {
                        let rate = Rate::from_mbps(rate_mbps);
                        let rtt = Duration::from_millis(rtt_ms);
                        let buffer = rate.bytes_in(rtt).scaled(buffer_bdp);
                        // The radio is there for those who have use for it.
                        let mut plan =
                            Plan::new(Conditions { rate, rtt, buffer, loss, radio: true, seed: 1 });
                        let flow = plan.start(scheme.name);
                        // Five seconds are left out for the start.
                        plan.run_for(Duration::from_secs(5));
                        plan.forget();
                        plan.run_for(Duration::from_secs(10));
                        let seen = plan.seen(flow);
                        writeln!(
                            table,
                            "{rate_mbps:6} {rtt_ms:4} {:6} {buffer_bdp:7} | {:>7} {:12.1} {:14.1} {:7.1} {:6.2}",
                            loss * 100.0,
                            scheme.name,
                            seen.utilization * 100.0,
                            seen.queueing_delay_mean_ms,
                            seen.queueing_delay_p95_ms,
                            seen.loss_rate * 100.0,
                        )
                        .unwrap();
                    }
                }
            }
        }
    }
    insta::assert_snapshot!(table);
}
