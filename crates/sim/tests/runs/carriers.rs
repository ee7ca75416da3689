//! Tests of whether the cell activates further carriers for a scheme: beside a busy phone, and at places as in PBE-CC's
//! Fig. 13.

use crate::watched;

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use airpace_core::{DeviceId, Streams};
use airpace_event::{Event, Owner, Recorder};
use airpace_sim::{Scenario, SchemeSpec};
use watched::watch;

fn scenario(text: &str) -> Scenario {
    Scenario::load(text, "carriers.toml", &[]).unwrap_or_else(|error| panic!("{text}\n{error}"))
}

/// The cell has two carriers of 25 PRBs. CUBIC runs on another phone, which uses the first carrier only.
#[test]
fn beside_a_busy_phone_a_sender_without_a_queue_gets_the_second_carrier() {
    let busy = scenario(
        "name = \"busy\"\nschemes = [\"pbe\"]\nduration_s = 10\n\
         cell = { prbs = 25, carriers = 2, background.hour = \"idle\" }\n\
         [[device]]\nradio.channel = { sinr_db = 16 }\n\
         [[device]]\nradio = { channel = { sinr_db = 16 }, carriers = [0] }\n\
         [[flow]]\nrtt_ms = 42\n\
         [[flow]]\ndevice = 1\nscheme = \"cubic\"\nrtt_ms = 42\n",
    );
    let mbps = |scheme| watch(&busy, scheme, 1).swap_remove(0).mbps(3.0..10.0);
    let greedy = mbps("bbr");
    for scheme in ["pbe", "oracle", "biscay"] {
        let mbps = mbps(scheme);
        println!("{scheme} {mbps:.1} Mbit/s, bbr {greedy:.1}");
        assert!(mbps > 0.95 * greedy, "{scheme}: {mbps} of {greedy} Mbit/s");
    }
}

/// Returns a scenario of the phone at place `number` of 30: half of the phones can use two carriers, half of them
/// three.
///
/// Source: PBE-CC §6.2.1 (25 of 40 places in busy hours, 30 of them with a phone that can use two or three cells; the paper
/// does not publish their signal strength)
///
/// Chosen: SINRs of 4 to 24 dB, and the fading of a pedestrian.
fn place(number: u64) -> Scenario {
    let mut rng = Streams::new(number).stream("place");
    let sinr_db = rng.range(4.0, 24.0);
    let carriers = 2 + number % 2;
    let hour = if rng.chance(25.0 / 40.0) { "busy" } else { "idle" };
    scenario(&format!(
        "name = \"place\"\nschemes = [\"pbe\"]\nduration_s = {DURATION_S}\n\
         cell = {{ prbs = 100, carriers = {carriers}, background.hour = \"{hour}\", bler.model = \"pbe\" }}\n\
         [forward]\njitter_mean_ms = 1.06\n[reverse]\njitter_mean_ms = 1.06\n\
         [[device]]\nradio.channel = {{ layers = 2, sinr_db = {sinr_db:.1}, fading = \"epa\", doppler_hz = 5.0 }}\n\
         [[flow]]\nrtt_ms = 42\n"
    ))
}

const DURATION_S: u64 = 8;

/// The seconds in which the device was granted PRBs of a further carrier.
#[derive(Default)]
struct Further {
    seconds: BTreeSet<u64>,
}

impl Recorder for Further {
    fn record(&mut self, event: Event<'_>) {
        if let Event::Subframe(subframe) = event
            && subframe.report.carrier.0 != 0
            && subframe.owners.contains(&Owner::Device(DeviceId(0)))
        {
            self.seconds.insert(subframe.report.time.as_millis() / 1000);
        }
    }
}

/// Returns whether a scheme gets further carriers in most seconds after the first two.
fn has_further_carriers(number: u64, scheme: &str) -> bool {
    let spec = SchemeSpec::parse(scheme).unwrap_or_else(|error| panic!("{error}"));
    let mut further = Further::default();
    airpace_sim::run(&place(number), &spec, number, &mut further, &mut |_| ControlFlow::Continue(()))
        .unwrap_or_else(|error| panic!("{error}"));
    2 * further.seconds.range(2..).count() as u64 > DURATION_S - 2
}

/// PBE-CC Fig. 13: PBE-CC gets further carriers at nearly all places.
#[test]
fn pbe_gets_further_carriers_wherever_the_oracle_does() {
    for number in 1..=4 {
        let [oracle, pbe] = ["oracle", "pbe"].map(|scheme| has_further_carriers(number, scheme));
        assert!(oracle && pbe, "place {number}: oracle {oracle}, pbe {pbe}");
    }
}
