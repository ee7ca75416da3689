//! The table: the behaviour of every scheme under a grid of conditions, alone and with CUBIC, so that every change of
//! behaviour is a difference in a text file.
//!
//! After an intended change, run `INSTA_UPDATE=always cargo test -p airpace-cc --test schemes table` and state the reason.

use crate::plan;

use std::fmt::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use airpace_cc::schemes::choices;
use airpace_core::{Rate, Streams};
use plan::{Conditions, Plan};

/// Length of the first part of a run, which is not evaluated.
const WARM_UP: Duration = Duration::from_secs(5);
/// Length of the second part of a run, which is evaluated.
const LOOK: Duration = Duration::from_secs(15);

/// How the bottleneck's rate changes, around a mean.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Course {
    Constant,
    /// The full rate and a quarter of the full rate alternate, for two seconds each.
    Steps,
    /// The rate changes every 100 ms, as on a cellular link: a random walk between a tenth and twice the mean.
    Walk,
}

/// One combination of conditions in the grid.
#[derive(Clone, Copy, Debug)]
struct Place {
    rate_mbps: f64,
    course: Course,
    rtt_ms: u64,
    loss: f64,
    buffer_bdp: f64,
}

fn grid() -> Vec<Place> {
    let mut places = vec![];
    for rate_mbps in [5.0, 40.0] {
        for rtt_ms in [20, 100] {
            for loss in [0.0, 0.01] {
                for buffer_bdp in [0.5, 4.0] {
                    places.push(Place { rate_mbps, course: Course::Constant, rtt_ms, loss, buffer_bdp });
                }
            }
        }
    }
    for course in [Course::Steps, Course::Walk] {
        for rtt_ms in [20, 100] {
            places.push(Place { rate_mbps: 10.0, course, rtt_ms, loss: 0.0, buffer_bdp: 8.0 });
        }
    }
    places
}

impl Place {
    /// The path with these conditions. Each flow is on a device of its own. The path has a radio for the schemes that
    /// use radio reports.
    fn plan(&self) -> Plan {
        let rate = Rate::from_mbps(self.rate_mbps);
        let rtt = Duration::from_millis(self.rtt_ms);
        let buffer = rate.bytes_in(rtt).scaled(self.buffer_bdp);
        let conditions =
            Conditions { rate, rtt, buffer, loss: self.loss, radio: true, ..Conditions::default() };
        let mut plan = Plan::new(conditions);
        let mut rng = Streams::new(1).stream("course");
        let mut of_mean = 1.0;
        let every_ms = match self.course {
            Course::Constant => u64::MAX,
            Course::Steps => 2_000,
            Course::Walk => 100,
        };
        let start = plan.now();
        for at_ms in (1u64..).map_while(|step| step.checked_mul(every_ms)) {
            if Duration::from_millis(at_ms) > WARM_UP + LOOK {
                break;
            }
            of_mean = match self.course {
                Course::Steps if of_mean < 1.0 => 1.0,
                Course::Steps => 0.25,
                // The random walk of the rate is reflected at the minimum and at the maximum.
                _ => match of_mean + rng.range(-0.3, 0.3) {
                    low if low < 0.1 => 0.2 - low,
                    high if high > 2.0 => 4.0 - high,
                    within => within,
                },
            };
            plan.rate_from(start + Duration::from_millis(at_ms), rate.scaled(of_mean));
        }
        plan
    }

    /// The row of one scheme.
    fn row(&self, choice: &str) -> String {
        let mut plan = self.plan();
        let flow = plan.start(choice);
        plan.run_for(WARM_UP);
        plan.forget();
        plan.run_for(LOOK);
        let seen = plan.seen(flow);

        let mut plan = self.plan();
        let flows = [plan.start(choice), plan.start("cubic")];
        plan.run_for(WARM_UP);
        plan.forget();
        plan.run_for(LOOK);
        let beside = flows.map(|flow| plan.seen(flow).throughput.as_mbps());
        let jain = (beside[0] + beside[1]) * (beside[0] + beside[1])
            / (2.0 * (beside[0] * beside[0] + beside[1] * beside[1]));
        format!(
            "{:>18} {:11.1} {:14.1} {:7.1} {:6.2} {:13.2} {:5.2}\n",
            choice,
            seen.utilization * 100.0,
            seen.queueing_delay_mean_ms,
            seen.queueing_delay_p95_ms,
            seen.loss_rate * 100.0,
            beside[0] / (beside[0] + beside[1]),
            jain,
        )
    }
}

#[test]
fn the_table() {
    let (grid, choices) = (grid(), choices());
    let rows = Mutex::new(vec![String::new(); grid.len() * choices.len()]);
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(place) = grid.get(index / choices.len()) else { break };
                    let row = place.row(&choices[index % choices.len()]);
                    rows.lock().unwrap()[index] = row;
                }
            });
        }
    });
    let rows = rows.into_inner().unwrap();
    let mut table = String::new();
    for (place, rows) in grid.iter().zip(rows.chunks(choices.len())) {
        let Place { rate_mbps, course, rtt_ms, loss, buffer_bdp } = place;
        let loss = loss * 100.0;
        writeln!(
            table,
            "== {course:?} {rate_mbps} Mbit/s, {rtt_ms} ms, {loss} % lost, buffer {buffer_bdp} BDP"
        )
        .unwrap();
        table += "            scheme utilization  queueing mean     p95   lost  beside CUBIC  Jain\n";
        table += "                             %             ms      ms      %         share\n";
        table.extend(rows.iter().map(String::as_str));
    }
    insta::assert_snapshot!(table);
}
