//! Log packets of a simulated device's modem about its cell.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::time::Duration;

use airpace_cc::SchemeSpec;
use airpace_core::DeviceId;
use airpace_diag::compose::{ComposeOptions, Composed, Composer};
use airpace_event::{Detail, Event, Recorder, Reported, Source};
use airpace_radio::RadioReport;
use airpace_sim::{Prepared, Scenario};

use crate::agree::asks_for_no_reports;
use crate::error::LabError;

/// Error of a scenario whose modem cannot be simulated.
#[derive(Debug, thiserror::Error)]
pub enum SimulatedError {
    /// The scenario has no cell.
    #[error("`{scenario}` has no cell that could grant anything")]
    NoCell {
        /// Name of the scenario.
        scenario: String,
    },
    /// The scenario has no device of this index.
    #[error("`{scenario}` has {devices} devices only")]
    NoDevice {
        /// Name of the scenario.
        scenario: String,
        /// Number of its devices.
        devices: usize,
    },
    /// The scenario cannot be run.
    #[error(transparent)]
    Lab(#[from] LabError),
}

/// A scenario, with the device whose modem is logged.
pub struct Simulated {
    about: String,
    prepared: Prepared,
    scheme: SchemeSpec,
    device: DeviceId,
}

impl Simulated {
    /// Prepares a scenario. `device` is the index of the device with the modem. Without `scheme`, the scenario's first
    /// scheme is under test.
    ///
    /// # Errors
    /// The scenario asks for files of reports, has no cell or no such device, or names files that cannot be read.
    pub fn new(
        scenario: &Scenario,
        device: u16,
        scheme: Option<SchemeSpec>,
    ) -> Result<Simulated, SimulatedError> {
        asks_for_no_reports(scenario)?;
        if scenario.cell.is_none() {
            return Err(SimulatedError::NoCell { scenario: scenario.name.clone() });
        }
        let devices = scenario.device.len();
        if usize::from(device) >= devices {
            return Err(SimulatedError::NoDevice { scenario: scenario.name.clone(), devices });
        }
        let scheme = scheme.unwrap_or_else(|| scenario.schemes()[0].clone());
        let about = format!("device {device} of `{}` with {}", scenario.name, scheme.text());
        let prepared = scenario.prepare().map_err(LabError::from)?;
        Ok(Simulated { about, prepared, scheme, device: DeviceId(device) })
    }

    /// The device and scenario, as text for people.
    pub fn about(&self) -> &str {
        &self.about
    }

    /// The duration of the scenario.
    pub fn duration(&self) -> Duration {
        self.prepared.scenario().duration()
    }

    /// Runs the scenario and calls the callback with each packet. The times of packets are those of a run that starts at
    /// `begin`. Stops when the callback returns `Break`.
    ///
    /// # Errors
    /// The scenario cannot be run.
    pub fn run(
        &self,
        seed: u64,
        begin: Duration,
        hear: &mut dyn FnMut(Composed) -> ControlFlow<()>,
    ) -> Result<(), LabError> {
        let is_heard = Cell::new(true);
        let composer = Composer::new(ComposeOptions::default());
        let mut modem = Modem { device: self.device, composer, begin, hear, is_heard: &is_heard };
        airpace_sim::run_prepared(&self.prepared, &self.scheme, seed, &mut modem, &mut |_| {
            if is_heard.get() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        modem.finish();
        Ok(())
    }
}

/// A device's modem in a run.
struct Modem<'a> {
    device: DeviceId,
    composer: Composer,
    /// Start time of the run.
    begin: Duration,
    hear: &'a mut dyn FnMut(Composed) -> ControlFlow<()>,
    /// Whether the callback still accepts packets.
    is_heard: &'a Cell<bool>,
}

impl Modem<'_> {
    fn finish(&mut self) {
        let Modem { composer, hear, is_heard, .. } = self;
        composer.finish(|composed| say(composed, hear, is_heard));
    }
}

impl Recorder for Modem<'_> {
    fn wants(&self, detail: Detail) -> bool {
        detail == Detail::Reports(self.device, Source::Modem)
    }

    fn record(&mut self, event: Event<'_>) {
        let Event::Reported(Reported { report, .. }) = event else { return };
        if !self.is_heard.get() {
            return;
        }
        let Modem { composer, begin, hear, is_heard, .. } = self;
        let report = RadioReport {
            time: report.time + *begin,
            slot: report.slot.later_by(begin.as_millis() as i64),
            ..(*report).clone()
        };
        composer.push(&report, |composed| say(composed, hear, is_heard));
    }
}

fn say(composed: Composed, hear: &mut dyn FnMut(Composed) -> ControlFlow<()>, is_heard: &Cell<bool>) {
    if is_heard.get() && hear(composed).is_break() {
        is_heard.set(false);
    }
}

#[cfg(test)]
mod tests {
    use airpace_core::{Bits, Bytes, Direction};
    use airpace_diag::grant::prompt::Prompt;
    use airpace_diag::grant::report::FIRST_OF_NR;
    use airpace_diag::grant::{GrantReport, Grants, Rat};
    use airpace_diag::kpi::{Extractor, Subscription};
    use airpace_diag::{LogPacket, Radio, Stamp};
    use airpace_event::{Owner, Subframe};
    use airpace_radio::Dci;

    use super::*;

    /// A phone with one flow on a carrier of 40 MHz.
    fn scenario(direction: &str) -> Scenario {
        let text = format!(
            "name = \"nr\"\nduration_s = 2\nschemes = [\"biscay\"]\n\
             [cell]\nrat = \"nr\"\nband = \"n78\"\nbandwidth_mhz = 40\ntdd = \"DDDSU\"\n\
             [[device]]\nradio.channel = {{ sinr_db = 20 }}\n\
             [[flow]]\nrtt_ms = 30\ndirection = \"{direction}\"\n"
        );
        Scenario::load(&text, "nr.toml", &[]).unwrap()
    }

    /// Grants of device 0 in a direction, with the number of the slot of the data, as the cell scheduled them.
    struct Truth {
        direction: Direction,
        grants: Vec<(u64, Dci)>,
    }

    impl Recorder for Truth {
        fn record(&mut self, event: Event<'_>) {
            let Event::Subframe(Subframe { report, owners }) = event else { return };
            let own = report.dcis.iter().zip(owners.iter());
            let own = own.filter(|(_, owner)| **owner == Owner::Device(DeviceId(0)));
            let own = own.filter(|(dci, _)| dci.direction == self.direction);
            let slot = |dci: &Dci| report.slot.index + u64::from(dci.offset_slots.unwrap());
            self.grants.extend(own.map(|(dci, _)| (slot(dci), *dci)));
        }
    }

    /// The cell's grants in a direction, and the log packets of the modem about them.
    fn run(scenario: &Scenario, direction: Direction) -> (Vec<(u64, Dci)>, Vec<Composed>) {
        let mut truth = Truth { direction, grants: vec![] };
        let prepared = scenario.prepare().unwrap();
        let scheme = &scenario.schemes()[0];
        airpace_sim::run_prepared(&prepared, scheme, 1, &mut truth, &mut |_| ControlFlow::Continue(()))
            .unwrap();
        let (simulated, mut packets) = (Simulated::new(scenario, 0, None).unwrap(), vec![]);
        let mut hear = |composed| {
            packets.push(composed);
            ControlFlow::Continue(())
        };
        simulated.run(1, Duration::ZERO, &mut hear).unwrap();
        (truth.grants, packets)
    }

    fn packet(composed: &Composed) -> LogPacket<'_> {
        let stamp = Stamp::from_nanos(1_450_000_000_000_000_000 + composed.at.as_nanos());
        LogPacket { radio: Radio::FIRST, code: composed.code, stamp, payload: &composed.payload }
    }

    #[test]
    fn uplink_grants_of_a_5g_cell_come_back_from_the_log_of_a_modem() {
        let (truth, packets) = run(&scenario("up"), Direction::Uplink);
        let (mut reader, mut found) = (Grants::new(), vec![]);
        let (mut prompt, mut reports) = (Prompt::new(Radio::FIRST), vec![]);
        for composed in &packets {
            reader.push(&packet(composed), |report| {
                if let GrantReport::Grant(grant) = report {
                    found.push(grant);
                }
            });
            prompt.push(&packet(composed));
            reports.extend(prompt.take());
        }
        assert!(found.len() > 600, "the uplink has a slot per 2.5 ms: {}", found.len());
        assert!(found.len() + 3 >= truth.len(), "the run ends before the modem knows the last grants");
        let shift = found[0].on_air().index - truth[0].0;
        for (grant, (slot, dci)) in found.iter().zip(&truth) {
            assert_eq!((grant.rat, grant.on_air().index - shift), (Rat::Nr, *slot));
            assert_eq!((grant.prbs, grant.harq, grant.bits()), (dci.prbs.len(), dci.harq, dci.bits()));
            assert_eq!(grant.new_bits(), dci.new_bits());
        }
        assert!(truth.iter().any(|(_, dci)| dci.is_retransmission()), "HARQ retransmits some blocks");

        let reported: Bits = reports.iter().flat_map(|report| &report.dcis).map(Dci::new_bits).sum();
        let granted: Bits = truth[..found.len()].iter().map(|(_, dci)| dci.new_bits()).sum();
        assert_eq!(reported, granted, "the reports for a scheme contain each bit once");
        assert!(reports.iter().all(|report| report.carrier == FIRST_OF_NR));
    }

    #[test]
    fn the_sums_of_downlink_blocks_of_a_5g_cell_come_back_from_the_log_of_a_modem() {
        let (truth, packets) = run(&scenario("down"), Direction::Downlink);
        let subscription = Subscription::new(["nr.dl.blocks", "nr.dl.failed_blocks", "nr.dl.bytes"]).unwrap();
        let (mut extractor, mut last) = (Extractor::new(&subscription), [f64::NAN; 3]);
        for composed in &packets {
            extractor.push(&packet(composed), |sample| last[sample.wanted] = sample.value);
        }
        let [blocks, failed, bytes] = last;
        let missing = truth.len() as f64 - blocks;
        assert!((0.0..4.0).contains(&missing), "{blocks} of {} blocks", truth.len());
        let again = truth[..blocks as usize].iter().filter(|(_, dci)| dci.is_retransmission()).count() as f64;
        // Each failed block is retransmitted, except the last ones.
        assert!(
            again > 10.0 && (0.0..8.0).contains(&(failed - again)),
            "{failed} failed, {again} retransmitted"
        );
        let new: Bytes = truth.iter().map(|(_, dci)| dci.new_bits().bytes()).sum();
        assert!((0.99..=1.0).contains(&(bytes / new.0 as f64)), "{bytes} of {} bytes", new.0);
    }
}
