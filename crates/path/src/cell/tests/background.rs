//! Tests of the busy hour against the papers' measurements.

use std::collections::BTreeMap;

use super::super::config::{BackgroundConfig, Hour};
use super::*;

fn busy() -> CellConfig {
    let background = BackgroundConfig { hour: Some(Hour::Busy), ..BackgroundConfig::default() };
    CellConfig { background, ..CellConfig::default() }
}

#[test]
fn at_the_busy_hour_with_a_flow_running_few_subframes_have_four_control_messages() {
    let source = Source::new(0, 1500, Rate::from_mbps(40.0), Time::ZERO, Time::NEVER);
    let mut bench = Bench::new(&busy(), &[device(22.0)], vec![source]);
    bench.cell.set_recording(true);
    let (mut subframes, mut crowded, mut windows) = (0, 0, 0);
    let mut active: BTreeMap<_, (u32, u32)> = BTreeMap::new();
    let (mut users, mut filtered) = (0, 0);
    bench.run(Time::from_secs(20), |cell| {
        for subframe in cell.subframes() {
            subframes += 1;
            crowded += u32::from(subframe.report.dcis.len() >= 4);
            for dci in &subframe.report.dcis {
                let (times, prbs) = active.entry(dci.rnti).or_default();
                *times += 1;
                *prbs += u32::from(dci.prbs.len());
            }
            if subframe.report.slot.index % 40 == 39 {
                windows += 1;
                users += active.len();
                // The filter of PBE-CC §4.2.1: a user has grants in more than one subframe and more than four PRBs on
                // average.
                filtered += active.values().filter(|&&(times, prbs)| times > 1 && prbs > 4 * times).count();
                active.clear();
            }
        }
    });
    let quiet = 1.0 - f64::from(crowded) / f64::from(subframes);
    let (users, filtered) = (users as f64 / f64::from(windows), filtered as f64 / f64::from(windows));
    println!(
        "fewer than four messages in {:.1} %; users in 40 ms: {users:.1}, filtered {filtered:.2}",
        100.0 * quiet
    );
    assert!(quiet > 0.95, "fewer than four control messages in {:.1} % of subframes", 100.0 * quiet);
    assert!((12.0..=18.0).contains(&users), "{users:.1} users in 40 ms; the paper measured about 15");
    assert!((1.0..=2.2).contains(&filtered), "{filtered:.2} users pass the filter; the paper measured 1.3");
}

#[test]
fn background_users_take_the_load_that_was_asked_for() {
    let (mut control, mut exactly_four, mut data, mut subframes) = (0_u32, 0_u32, 0_u32, 0_u32);
    // A minute contains few downloads, so the load of a minute varies by a quarter.
    for seed in 1..=16 {
        let mut bench = Bench::with_seed(&busy(), &[], vec![], seed);
        bench.cell.set_recording(true);
        bench.run(Time::from_secs(60), |cell| {
            for subframe in cell.subframes() {
                subframes += 1;
                for (dci, owner) in subframe.report.dcis.iter().zip(subframe.owners) {
                    match owner {
                        Owner::Control => {
                            control += 1;
                            exactly_four += u32::from(dci.prbs.len() == 4);
                        }
                        _ => data += u32::from(dci.prbs.len()),
                    }
                }
            }
        });
    }
    let load = f64::from(data) / f64::from(100 * subframes);
    let per_second = 1e3 * f64::from(control) / f64::from(subframes);
    let share = f64::from(exactly_four) / f64::from(control);
    println!("load {load:.3}, {per_second:.0} control users/s, {share:.3} of them on four PRBs");
    assert!(
        (0.10..=0.14).contains(&load),
        "the configured load is 0.12 of the PRBs; the users took {load:.3}"
    );
    assert!((per_second - 340.0).abs() < 5.0);
    assert!((share - 0.7).abs() < 0.01);
}
