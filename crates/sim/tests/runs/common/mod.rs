//! A recorder that collects the data needed by scenario tests. It also checks that time never runs backwards.
#![allow(dead_code)] // not every test file uses all items

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::ControlFlow;

use airpace_core::{Direction, Time};
use airpace_event::{Event, Fate, Recorder, Transfer, Viewing};
use airpace_sim::{RunStats, Scenario, SchemeSpec};

/// The records of a run.
#[derive(Default)]
pub struct Notebook {
    now: Time,
    hash: DefaultHasher,
    pub events: u64,
    pub flows: Vec<FlowNotes>,
    pub subframes: u64,
    /// Capacity in bytes, by device: to the device, and (next field) from the device.
    pub capacity_bytes: Vec<u64>,
    pub uplink_capacity_bytes: Vec<u64>,
    /// The steps of all transfers.
    pub transfers: Vec<Transfer>,
    /// The reports on all videos, in the order of their flows.
    pub videos: Vec<Viewing>,
}

/// The records of a flow.
#[derive(Clone, Default)]
pub struct FlowNotes {
    pub sent: u64,
    pub arrivals: Vec<Arrival>,
    pub dropped: u64,
    pub duplicates: u64,
    pub declared_lost: u64,
    pub acked_bytes: u64,
    /// Times at which ACKs were processed, in s.
    pub acked_s: Vec<f64>,
    pub rtts_ms: Vec<f64>,
    pub states: Vec<&'static str>,
}

/// A delivered packet; times are in seconds since the start of the run, delays in ms.
#[derive(Clone, Copy)]
pub struct Arrival {
    pub time_s: f64,
    pub bytes: u64,
    pub number: u64,
    pub one_way_delay_ms: f64,
    pub queueing_delay_ms: f64,
}

impl Notebook {
    /// Returns a hash that differs between runs that differ in any event.
    pub fn fingerprint(&self) -> u64 {
        self.hash.finish()
    }

    fn flow(&mut self, index: u16) -> &mut FlowNotes {
        let index = usize::from(index);
        if self.flows.len() <= index {
            self.flows.resize_with(index + 1, FlowNotes::default);
        }
        &mut self.flows[index]
    }
}

impl FlowNotes {
    /// Mean rate of the data that arrived in an interval (seconds), in Mbit/s.
    pub fn mbps(&self, from_s: f64, to_s: f64) -> f64 {
        let bytes: u64 = self.between(from_s, to_s).map(|arrival| arrival.bytes).sum();
        bytes as f64 * 8e-6 / (to_s - from_s)
    }

    /// Minimum round-trip time, in ms.
    pub fn least_rtt_ms(&self) -> f64 {
        self.rtts_ms.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// Quantile of the queueing delays of packets that arrived in an interval (seconds), in ms.
    pub fn queueing_delay_ms(&self, quantile: f64, from_s: f64, to_s: f64) -> f64 {
        let mut delays: Vec<f64> =
            self.between(from_s, to_s).map(|arrival| arrival.queueing_delay_ms).collect();
        assert!(!delays.is_empty(), "nothing arrived between {from_s} and {to_s} s");
        delays.sort_by(f64::total_cmp);
        delays[((delays.len() - 1) as f64 * quantile) as usize]
    }

    pub fn between(&self, from_s: f64, to_s: f64) -> impl Iterator<Item = &Arrival> {
        self.arrivals.iter().filter(move |arrival| arrival.time_s >= from_s && arrival.time_s < to_s)
    }
}

impl Recorder for Notebook {
    fn record(&mut self, event: Event<'_>) {
        format!("{event:?}").hash(&mut self.hash);
        self.events += 1;
        let time = match event {
            Event::Sent(packet) => {
                self.flow(packet.flow.0).sent += 1;
                packet.sent
            }
            Event::Arrived(arrived) => {
                let flow = self.flow(arrived.packet.flow.0);
                let one_way = (arrived.time - arrived.packet.sent).as_secs_f64() * 1e3;
                let propagation = arrived.propagation_delay.as_secs_f64() * 1e3;
                flow.duplicates += u64::from(arrived.duplicate);
                match arrived.fate {
                    Fate::Delivered => flow.arrivals.push(Arrival {
                        time_s: arrived.time.as_secs_f64(),
                        bytes: arrived.packet.bytes.0,
                        number: arrived.packet.number,
                        one_way_delay_ms: one_way,
                        queueing_delay_ms: one_way - propagation,
                    }),
                    _ => flow.dropped += 1,
                }
                arrived.time
            }
            Event::Acked(acked) => {
                let flow = self.flow(acked.flow.0);
                flow.acked_bytes += acked.acked.0;
                flow.acked_s.push(acked.time.as_secs_f64());
                flow.rtts_ms.extend(acked.rtt.map(|rtt| rtt.as_secs_f64() * 1e3));
                acked.time
            }
            Event::Lost(lost) => {
                self.flow(lost.flow.0).declared_lost += lost.packets;
                lost.time
            }
            Event::Inspected(inspected) => {
                if inspected.state_changed {
                    // State names are constants of the schemes. The schemes have few state names, so leaking their
                    // memory is harmless.
                    let state: &'static str = Box::leak(inspected.state.to_owned().into_boxed_str());
                    self.flow(inspected.flow.0).states.push(state);
                }
                inspected.time
            }
            Event::Subframe(subframe) => {
                assert_eq!(subframe.owners.len(), subframe.report.dcis.len(), "every grant has an owner");
                self.subframes += 1;
                subframe.report.time
            }
            Event::Capacity(capacity) => {
                let index = usize::from(capacity.device.0);
                let devices = match capacity.direction {
                    Direction::Downlink => &mut self.capacity_bytes,
                    Direction::Uplink => &mut self.uplink_capacity_bytes,
                };
                if devices.len() <= index {
                    devices.resize(index + 1, 0);
                }
                devices[index] += capacity.bytes.0;
                capacity.time
            }
            Event::Transfer(transfer) => {
                self.transfers.push(transfer);
                transfer.time
            }
            Event::Viewed(viewed) => {
                self.videos.push(viewed.video.clone());
                viewed.time
            }
            Event::Reported(_) => panic!("reports are not among what this recorder wants"),
        };
        assert!(time >= self.now, "an event of {time} comes after one of {}", self.now);
        self.now = time;
    }
}

/// Loads a scenario from `text`. The function adds a name and a list of schemes, so that tests can omit them.
pub fn scenario(text: &str) -> Scenario {
    let text = format!("name = \"story\"\nschemes = [\"reno\"]\n{text}");
    Scenario::load(&text, "story.toml", &[]).unwrap_or_else(|error| panic!("{error}"))
}

/// Runs a scenario with a scheme under test and a seed.
pub fn run(scenario: &Scenario, scheme: &str, seed: u64) -> (RunStats, Notebook) {
    let mut notebook = Notebook::default();
    let spec = SchemeSpec::parse(scheme).unwrap();
    let stats = airpace_sim::run(scenario, &spec, seed, &mut notebook, &mut |_| ControlFlow::Continue(()))
        .unwrap_or_else(|error| panic!("{error}"));
    for (flow, counts) in stats.flows.iter().enumerate() {
        assert_eq!(
            counts.sent + counts.duplicated,
            counts.delivered + counts.dropped() + counts.inside,
            "flow {flow}: every packet was delivered, dropped or is still under way"
        );
    }
    (stats, notebook)
}
