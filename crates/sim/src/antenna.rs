//! A device that decodes the control channel itself. The grants of the device's cell are sent as radio samples through
//! a channel, a decoder processes the samples, and the device receives the decoder's reports.
//!
//! ```text
//! the cell's report ─▶ Station ─▶ fading, noise ─▶ Decoder ─▶ with the device's own radio state ─▶ receivers
//! ```
//!
//! The device receives a report as soon as the decoder returns it. The report of a subframe arrives at the subframe's
//! end. Subframes during the cell search are reported when the decoder has found the cell. A subframe in which the
//! decoder had lost the cell has no report. The decoder's computing time is not simulated.

use std::collections::VecDeque;

use airpace_core::{Streams, Time};
use airpace_phy::decoder::{Decoder, Options, Output, Reading};
use airpace_phy::impair::{Conditions, noise_power};
use airpace_phy::numerology::SUBCARRIER_HZ;
use airpace_phy::ofdm::Transform;
use airpace_phy::station::Station;
use airpace_phy::{Bandwidth, Cell, Complex32, CyclicPrefix, PhichDuration, PhichResource, Ports};
use airpace_radio::{CarrierId, OwnRadio, RadioReport, Slot};

use airpace_scenario::{DecoderConfig, Scenario};

/// Number of subframes for which a device keeps its own radio state; the decoder does not keep samples for more
/// subframes.
const REMEMBERED: usize = 1000;

/// The receivers of one device, one per carrier that it decodes.
pub(crate) struct Antenna {
    config: DecoderConfig,
    ports: Ports,
    /// Prefix of the names of the carriers' random streams.
    name: String,
    streams: Streams,
    carriers: Vec<Carrier>,
}

impl Antenna {
    /// Creates the antenna of a device of the scenario; `None` if the device has no decoder.
    pub(crate) fn new(scenario: &Scenario, device: usize, streams: &Streams) -> Option<Antenna> {
        let config = scenario.device[device].decoder?;
        let ports = Ports::from_count(scenario.cell.as_ref()?.crs_ports().into())
            .expect("a loaded scenario has no other number of ports");
        let name = format!("device.{device}.antenna");
        Some(Antenna { config, ports, name, streams: *streams, carriers: Vec::new() })
    }

    /// Receives the subframe that the cell's report `truth` describes, together with the device's own radio state.
    /// Calls `tell` with the report on every subframe that the decoder has completed.
    pub(crate) fn hear(&mut self, truth: &RadioReport, tell: &mut dyn FnMut(&mut RadioReport)) {
        let known = self.carriers.iter().position(|carrier| carrier.id == truth.carrier);
        let index = known.unwrap_or_else(|| {
            // Each carrier needs independent noise. The seed is drawn per carrier, because the names of phy's random
            // streams do not include the carrier.
            let mut seeds = self.streams.stream(&format!("{}.{}", self.name, truth.carrier.0));
            let streams = Streams::new(seeds.next_u64());
            self.carriers.push(Carrier::new(truth, self.ports, &self.config, &streams));
            self.carriers.len() - 1
        });
        self.carriers[index].hear(truth, tell);
    }
}

/// The path of one carrier from the cell to the decoder.
struct Carrier {
    id: CarrierId,
    station: Station,
    decoder: Decoder,
    samples: Vec<Complex32>,
    samples_per_subframe: f64,
    /// State of the device's own radio, by subframe.
    own: VecDeque<(u64, OwnRadio)>,
}

impl Carrier {
    fn new(first: &RadioReport, ports: Ports, config: &DecoderConfig, streams: &Streams) -> Carrier {
        let bandwidth = first.carrier_prbs.and_then(Bandwidth::from_prbs);
        let bandwidth = bandwidth.expect("a loaded scenario has no other carrier");
        let cell = Cell {
            // Chosen: a different physical cell identity per carrier, because carriers of one site often have different
            // identities.
            pci: 1 + u16::from(first.carrier.0),
            bandwidth,
            ports,
            cp: CyclicPrefix::Normal,
            phich_duration: PhichDuration::Normal,
            phich_resource: PhichResource::One,
        };
        let fft_size = bandwidth.nominal_fft_size();
        let rate_hz = fft_size as u64 * u64::from(SUBCARRIER_HZ);
        let amplitude = (0.2 / libm::sqrt(bandwidth.subcarriers() as f64)) as f32;
        let conditions = Conditions {
            profile: config.fading,
            doppler_hz: config.doppler_hz,
            noise_power: noise_power(config.snr_db, fft_size, amplitude),
            ..Conditions::perfect(rate_hz as f64)
        };
        let mut options = Options::new(rate_hz);
        // A phone knows the physical cell identity of its serving cell.
        options.listen.pci = Some(cell.pci);
        options.listen.transform = Transform::Reproducible;
        // A flow whose rate depends on the PRBs of each subframe cannot use a message that is accepted late, so the
        // decoder does not wait for more evidence of a message.
        options.caution.patience = 0;
        Carrier {
            id: first.carrier,
            station: Station::new(cell, fft_size, amplitude, conditions, 0, streams)
                .expect("the nominal FFT is large enough"),
            decoder: Decoder::new(options).expect("the nominal rate is high enough"),
            samples: Vec::new(),
            samples_per_subframe: rate_hz as f64 / 1e3,
            own: VecDeque::new(),
        }
    }

    fn hear(&mut self, truth: &RadioReport, tell: &mut dyn FnMut(&mut RadioReport)) {
        if let Some(own) = truth.own {
            self.own.push_back((truth.slot.subframe(), own));
        }
        if self.own.len() > REMEMBERED {
            self.own.pop_front();
        }
        self.samples.clear();
        self.station.send(truth, &mut self.samples);
        self.decoder.push(&self.samples);
        while let Some(output) = self.decoder.pop() {
            if let Output::Subframe(reading) = output {
                tell(&mut self.report(&reading));
            }
        }
    }

    /// Returns the report that the decoder's result `reading` contains, with the run's subframe number and the device's
    /// own radio state.
    fn report(&mut self, reading: &Reading) -> RadioReport {
        let subframe = libm::round(reading.sample as f64 / self.samples_per_subframe).max(0.0) as u64;
        while self.own.front().is_some_and(|(before, _)| *before < subframe) {
            self.own.pop_front();
        }
        let own = self.own.front().filter(|(at, _)| *at == subframe).map(|(_, own)| *own);
        let report = reading.report(self.id, Time::from_millis(subframe));
        RadioReport { slot: Slot::subframe_of_lte(subframe), own, ..report }
    }
}
