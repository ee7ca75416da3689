//! With `lena_compat`, the numbers that ns-3.37's LENA gives: saturating sources of 1400-byte UDP payloads.
//!
//! How the numbers come about:
//! - one user: TBS(MCS 28, 100 PRB) = 75376 bit per ms. Of these, 97.7 % are UDP payload; the rest are 28 bytes of IP
//!   and UDP, 2 of PDCP, 2 of RLC and 1.5 for every further packet in a block.
//! - round robin gives 25 RBGs to three users as 8 + 8 + 8 and leaves one idle. It uses the *wideband* CQI, which is
//!   judged on a block of the whole band. Proportional fair and max C/I use the CQI of RBGs, judged on a block of one
//!   RBG, whose curve is flatter. That is why the user at 2 dB has MCS 8 under round robin and 6 under the others.
//! - proportional fair gives the whole band of a subframe to one user, in turn.
//! - a carrier of 50 PRBs has floor(50 / 3) = 16 RBGs, 48 PRBs. Two such carriers carry 2 × 35160 bit per ms, 68.7
//!   Mbit/s of payload if nothing is lost. At 20 dB, MCS 28 loses 3 % of first transmissions, and LENA's number
//!   includes that loss.

use super::*;

const UDP_PAYLOAD: u64 = 1400;

fn goodputs_mbps(config: CellConfig, sinrs_db: &[f64]) -> Vec<f64> {
    let config = CellConfig { lena_compat: true, ..config };
    let devices: Vec<_> = sinrs_db.iter().map(|&sinr_db| device(sinr_db)).collect();
    let sources =
        (0..devices.len()).map(|index| Source::saturating(index as u16, UDP_PAYLOAD + 28)).collect();
    let mut bench = Bench::new(&config, &devices, sources);
    let (from, end) = (Time::from_millis(500), Time::from_millis(2500));
    bench.run(end, |_| {});
    (0..devices.len()).map(|index| bench.goodput_mbps(index as u16, UDP_PAYLOAD, from, end)).collect()
}

fn assert_within_three_percent(got: &[f64], expected: &[f64], what: &str) {
    let is_close = |(got, expected): (&f64, &f64)| (got - expected).abs() <= 0.03 * expected;
    assert!(got.iter().zip(expected).all(is_close), "{what}: LENA has {expected:?}, we have {got:.2?}");
    println!("{what}: LENA {expected:?}, here {got:.2?}");
}

#[test]
fn one_user_on_a_hundred_prbs() {
    let got = goodputs_mbps(CellConfig::default(), &[25.0]);
    assert_within_three_percent(&got, &[73.7], "one user");
}

#[test]
fn three_users_under_each_scheduler() {
    let with = |scheduler| CellConfig { scheduler, ..CellConfig::default() };
    let sinrs_db = [22.0, 12.0, 2.0];
    let got = goodputs_mbps(with(Policy::ProportionalFair), &sinrs_db);
    assert_within_three_percent(&got, &[24.8, 10.8, 3.3], "proportional fair");
    let got = goodputs_mbps(with(Policy::MaxCi), &sinrs_db);
    assert_within_three_percent(&got, &[73.7, 0.0, 0.0], "max C/I");
    let got = goodputs_mbps(with(Policy::RoundRobin), &sinrs_db);
    assert_within_three_percent(&got, &[23.2, 10.0, 4.5], "round robin");
}

#[test]
fn two_carriers_of_fifty_prbs() {
    let got = goodputs_mbps(CellConfig { prbs: 50, carriers: 2, ..CellConfig::default() }, &[20.0]);
    assert_within_three_percent(&got, &[66.7], "two carriers");
}
