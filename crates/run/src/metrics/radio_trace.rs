//! Radio of a run in detail, in a span of time: PRBs per millisecond, packets, transport blocks by size, users and messages of
//! the control channel.
//!
//! A run has such a record only if a caller requests it, because the record is a thousand times as long as the metrics.

use std::collections::BTreeMap;

use airpace_core::{Bits, DeviceId, Direction};
use airpace_event::{Arrived, Detail, Event, Fate, Owner, Recorder, Subframe};
use airpace_radio::{Dci, Rnti};
use airpace_tables::facts::{RunFacts, Span};
use serde::{Deserialize, Serialize};

use super::radio::{UserCounter, repeated_half_prbs};
use super::significant;

/// Radio of a run in a span of time. All grants are those of the downlink.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RadioTrace {
    /// The span in seconds: from, until.
    pub span_s: (f64, f64),
    /// The carriers with a report, in ascending order of their numbers.
    pub carriers: Vec<CarrierTrace>,
    /// For each flow: the first [`MAX_PACKETS`] packets that were sent in the span and delivered, in order of arrival, as
    /// (time of sending in s, one-way delay in ms).
    pub packets: Vec<Vec<(f64, f64)>>,
    /// For each device: its grants and blocks.
    pub devices: Vec<DeviceTrace>,
    /// The control channel of the carrier with the lowest number.
    pub control: ControlTrace,
}

/// Maximum number of packets of a flow in a record.
///
/// Chosen: some seconds at the rate of an LTE carrier.
pub const MAX_PACKETS: usize = 20_000;

/// PRBs of a carrier per millisecond. Each list has an entry per millisecond of the span.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CarrierTrace {
    /// Number of the carrier.
    pub carrier: u8,
    /// Bandwidth of the carrier, in PRB pairs.
    pub prbs: u16,
    /// For each device: the PRBs that it was granted.
    pub devices: Vec<Vec<u16>>,
    /// PRBs of the background users with data.
    pub background: Vec<u16>,
    /// PRBs of the users that only exchange control messages.
    pub control: Vec<u16>,
}

/// Grants and blocks of a device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceTrace {
    /// All granted PRBs.
    pub prbs: u64,
    /// Granted PRBs of retransmissions. A grant of a new block and a retransmitted one counts half.
    pub repeated_prbs: f64,
    /// Bits of new blocks.
    pub new_bits: u64,
    /// Bits of the packets of the device's flows that were delivered in the span.
    pub carried_bits: u64,
    /// Number of packets that were delivered in the span.
    pub packets: u64,
    /// Blocks by size in steps of [`BLOCK_STEP`], without the sizes that have no block.
    pub blocks: Vec<BlocksOfSize>,
}

/// Step of the sizes of blocks, in bits.
pub const BLOCK_STEP: u64 = 2_000;

/// Transport blocks of similar size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BlocksOfSize {
    /// Sum of their sizes, in bits.
    pub bits: u64,
    /// Number of blocks.
    pub blocks: u64,
    /// Number of blocks whose first transmission was lost.
    pub lost: u64,
}

/// Users and messages of a control channel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ControlTrace {
    /// Number of subframes with this number of messages: none, one, two, …
    pub subframes_by_messages: Vec<u64>,
    /// Number of messages by DCI format.
    pub messages_by_format: BTreeMap<String, u64>,
    /// Mean number of users per 40 ms, mean number of those that pass PBE-CC's filter, and the maximum of these.
    pub users: Option<[f64; 3]>,
    /// Number of different users.
    pub known_users: u64,
    /// Number of different users that never passed the filter.
    pub control_users: u64,
    /// Number of grants of these users.
    pub control_grants: u64,
    /// How many of these grants had exactly four PRBs, and how many had more.
    pub control_grants_of_four: u64,
    /// How many of these grants had more than four PRBs.
    pub control_grants_above_four: u64,
    /// Number of different users by their rate: the mean bits of a new block per PRB pair, in steps of [`RATE_STEP`]. Users
    /// without a new block have no rate.
    pub users_by_rate: Vec<u64>,
}

/// Step of the rates of users, in bits per PRB pair.
pub const RATE_STEP: u64 = 50;

/// Records a [`RadioTrace`].
pub struct RadioTraceMeter {
    span: Span,
    milliseconds: usize,
    devices: usize,
    flows: Vec<(DeviceId, Direction)>,
    trace: RadioTrace,
    /// By device: size class of each block that waits for its acknowledgement, by carrier, HARQ process and codeword.
    pending: Vec<BTreeMap<(u8, u8, usize), u64>>,
    blocks: Vec<BTreeMap<u64, BlocksOfSize>>,
    users: UserCounter,
    known: BTreeMap<Rnti, KnownUser>,
}

/// Grants of a user in the whole span.
#[derive(Clone, Copy, Debug, Default)]
struct KnownUser {
    has_data: bool,
    grants: u64,
    of_four: u64,
    above_four: u64,
    /// Bits of new blocks, and the PRBs of their grants.
    new_bits: u64,
    new_prbs: u64,
}

impl RadioTraceMeter {
    /// A meter for the part of a run that lies in `span`.
    pub fn new(facts: &RunFacts, span: Span) -> RadioTraceMeter {
        let devices = facts.flows.iter().map(|flow| usize::from(flow.device.0) + 1).max().unwrap_or(0);
        let span = span.overlap(Span { start: airpace_core::Time::ZERO, end: facts.duration });
        RadioTraceMeter {
            span,
            milliseconds: (span.seconds() * 1e3).round() as usize,
            devices,
            flows: facts.flows.iter().map(|flow| (flow.device, flow.direction)).collect(),
            trace: RadioTrace {
                span_s: (span.start.as_secs_f64(), span.end.as_secs_f64()),
                packets: vec![Vec::new(); facts.flows.len()],
                devices: vec![DeviceTrace::default(); devices],
                ..RadioTrace::default()
            },
            pending: vec![BTreeMap::new(); devices],
            blocks: vec![BTreeMap::new(); devices],
            users: UserCounter::default(),
            known: BTreeMap::new(),
        }
    }

    /// The record.
    pub fn finish(mut self) -> RadioTrace {
        for (device, blocks) in self.trace.devices.iter_mut().zip(self.blocks) {
            device.blocks = blocks.into_values().collect();
        }
        let control = &mut self.trace.control;
        control.users = self.users.counts();
        control.known_users = self.known.len() as u64;
        for user in self.known.values() {
            let Some(rate) = user.new_bits.checked_div(user.new_prbs) else { continue };
            let step = (rate / RATE_STEP) as usize;
            let users = &mut control.users_by_rate;
            users.resize(users.len().max(step + 1), 0);
            users[step] += 1;
        }
        for user in self.known.values().filter(|user| !user.has_data) {
            control.control_users += 1;
            control.control_grants += user.grants;
            control.control_grants_of_four += user.of_four;
            control.control_grants_above_four += user.above_four;
        }
        self.trace
    }

    fn contains(&self, time: airpace_core::Time) -> bool {
        self.span.start <= time && time < self.span.end
    }

    fn arrive(&mut self, arrived: &Arrived) {
        let flow = usize::from(arrived.packet.flow.0);
        let Some(&(device, direction)) = self.flows.get(flow) else { return };
        let has_room = self.trace.packets[flow].len() < MAX_PACKETS;
        if has_room && self.contains(arrived.packet.sent) && !arrived.duplicate {
            let delay_ms = (arrived.time - arrived.packet.sent).as_secs_f64() * 1e3;
            let sent_s = arrived.packet.sent.as_secs_f64();
            self.trace.packets[flow].push(((sent_s * 1e6).round() / 1e6, significant(delay_ms)));
        }
        if self.contains(arrived.time) && direction == Direction::Downlink {
            let device = &mut self.trace.devices[usize::from(device.0)];
            device.carried_bits += arrived.packet.bytes.bits().0;
            device.packets += 1;
        }
    }

    fn see(&mut self, subframe: &Subframe<'_>) {
        let report = subframe.report;
        if !self.contains(report.time) {
            return;
        }
        let carrier = report.carrier.0;
        let place = self.place_of(carrier, report.carrier_prbs.unwrap_or(0));
        let millisecond = ((report.time - self.span.start).as_millis() as usize).min(self.milliseconds - 1);
        for (dci, owner) in report.dcis.iter().zip(subframe.owners) {
            if dci.direction != Direction::Downlink {
                continue;
            }
            let of_carrier = &mut self.trace.carriers[place];
            let prbs = dci.prbs.len();
            match owner {
                Owner::Device(device) if usize::from(device.0) < self.devices => {
                    let device = usize::from(device.0);
                    of_carrier.devices[device][millisecond] += prbs;
                    self.grant(device, carrier, dci);
                }
                Owner::Device(_) | Owner::Background(_) => of_carrier.background[millisecond] += prbs,
                Owner::Control => of_carrier.control[millisecond] += prbs,
            }
        }
        if place == 0 {
            self.control_channel(subframe);
        }
    }

    /// Index of the record of a carrier, which is created with its first report.
    fn place_of(&mut self, carrier: u8, prbs: u16) -> usize {
        let carriers = &mut self.trace.carriers;
        match carriers.binary_search_by_key(&carrier, |known| known.carrier) {
            Ok(place) => place,
            Err(place) => {
                let empty = vec![0; self.milliseconds];
                let trace = CarrierTrace {
                    carrier,
                    prbs,
                    devices: vec![empty.clone(); self.devices],
                    background: empty.clone(),
                    control: empty,
                };
                carriers.insert(place, trace);
                place
            }
        }
    }

    fn grant(&mut self, device: usize, carrier: u8, dci: &Dci) {
        let trace = &mut self.trace.devices[device];
        trace.prbs += u64::from(dci.prbs.len());
        trace.repeated_prbs += repeated_half_prbs(dci) as f64 / 2.0;
        trace.new_bits += dci.new_bits().0;
        for codeword in (0..2).filter(|&codeword| dci.is_sent(codeword)) {
            let process = (carrier, dci.harq.unwrap_or(0), codeword);
            if dci.retransmission[codeword] {
                // Only the first retransmission of a block shows that its first transmission was lost.
                if let Some(class) = self.pending[device].remove(&process) {
                    self.blocks[device].entry(class).or_default().lost += 1;
                }
            } else if dci.tbs[codeword] > Bits::ZERO {
                let class = dci.tbs[codeword].0 / BLOCK_STEP;
                let blocks = self.blocks[device].entry(class).or_default();
                blocks.bits += dci.tbs[codeword].0;
                blocks.blocks += 1;
                self.pending[device].insert(process, class);
            }
        }
    }

    fn control_channel(&mut self, subframe: &Subframe<'_>) {
        let report = subframe.report;
        let counts = &mut self.trace.control.subframes_by_messages;
        let messages = report.dcis.len();
        if counts.len() <= messages {
            counts.resize(messages + 1, 0);
        }
        counts[messages] += 1;
        for dci in &report.dcis {
            let format = format!("{:?}", dci.format);
            *self.trace.control.messages_by_format.entry(format).or_default() += 1;
            if dci.direction == Direction::Downlink {
                let user = self.known.entry(dci.rnti).or_default();
                user.grants += 1;
                user.of_four += u64::from(dci.prbs.len() == 4);
                user.above_four += u64::from(dci.prbs.len() > 4);
                if dci.new_bits() > Bits::ZERO && !dci.retransmission.contains(&true) {
                    user.new_bits += dci.new_bits().0;
                    user.new_prbs += u64::from(dci.prbs.len());
                }
            }
        }
        if report.symbols.is_none() {
            let known = &mut self.known;
            self.users.on_subframe(report, |rnti| known.entry(rnti).or_default().has_data = true);
        }
    }
}

impl Recorder for RadioTraceMeter {
    fn record(&mut self, event: Event<'_>) {
        match event {
            Event::Arrived(arrived) if arrived.fate == Fate::Delivered => self.arrive(&arrived),
            Event::Subframe(subframe) => self.see(subframe),
            _ => {}
        }
    }

    fn wants(&self, detail: Detail) -> bool {
        detail == Detail::Subframes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airpace_core::Time;
    use airpace_radio::{CarrierId, PrbSet, RadioReport, Slot};

    const PHONE: Owner = Owner::Device(DeviceId(0));

    fn meter() -> RadioTraceMeter {
        let facts = crate::metrics::tests::facts(&[&[(0, 10)]]);
        RadioTraceMeter::new(&facts, Span { start: Time::from_secs(1), end: Time::from_secs(2) })
    }

    fn block(harq: u8, bits: u64, is_again: bool) -> Dci {
        Dci {
            rnti: Rnti(70),
            direction: Direction::Downlink,
            prbs: PrbSet::run(0, 10),
            mcs: [Some(9), None],
            tbs: [Bits(bits), Bits::ZERO],
            harq: Some(harq),
            retransmission: [is_again, false],
            ..Dci::default()
        }
    }

    fn see(meter: &mut RadioTraceMeter, ms: u64, carrier: u8, grants: Vec<(Dci, Owner)>) {
        let (dcis, owners): (Vec<Dci>, Vec<Owner>) = grants.into_iter().unzip();
        let mut report =
            RadioReport::new(CarrierId(carrier), Slot::subframe_of_lte(ms), Time::from_millis(ms));
        (report.dcis, report.carrier_prbs) = (dcis, Some(50));
        meter.record(Event::Subframe(&Subframe { report: &report, owners: &owners }));
    }

    #[test]
    fn blocks_are_counted_by_size_and_a_lost_block_once() {
        let mut meter = meter();
        see(&mut meter, 1000, 0, vec![(block(0, 1500, false), PHONE)]);
        see(&mut meter, 1001, 0, vec![(block(1, 7000, false), PHONE)]);
        see(&mut meter, 1008, 0, vec![(block(0, 1500, true), PHONE)]);
        see(&mut meter, 1016, 0, vec![(block(0, 1500, true), PHONE)]);
        see(&mut meter, 1017, 0, vec![(block(1, 6500, false), PHONE)]);
        let device = meter.finish().devices.remove(0);
        let small = BlocksOfSize { bits: 1500, blocks: 1, lost: 1 };
        assert_eq!(device.blocks, [small, BlocksOfSize { bits: 13_500, blocks: 2, lost: 0 }]);
        assert_eq!((device.prbs, device.repeated_prbs, device.new_bits), (50, 20.0, 15_000));
    }

    #[test]
    fn prbs_are_recorded_per_millisecond_of_the_span_by_carrier_and_owner() {
        let mut meter = meter();
        let control = Dci { rnti: Rnti(90), prbs: PrbSet::run(20, 4), ..block(0, 100, false) };
        see(&mut meter, 999, 0, vec![(block(0, 1500, false), PHONE)]);
        see(&mut meter, 1002, 2, vec![(block(0, 1500, false), PHONE)]);
        see(
            &mut meter,
            1002,
            0,
            vec![(control, Owner::Control), (block(0, 900, false), Owner::Background(3))],
        );
        see(&mut meter, 2000, 0, vec![(block(0, 1500, false), PHONE)]);
        let trace = meter.finish();
        assert_eq!(trace.carriers.iter().map(|carrier| carrier.carrier).collect::<Vec<_>>(), [0, 2]);
        let first = &trace.carriers[0];
        assert_eq!((first.control[2], first.background[2], first.devices[0][2]), (4, 10, 0));
        assert_eq!(trace.carriers[1].devices[0][2], 10);
        assert_eq!(first.control.len(), 1000);
        assert_eq!(trace.control.subframes_by_messages, [0, 1, 1], "each carrier has a control channel");
        assert_eq!((trace.control.known_users, trace.control.control_grants_of_four), (2, 1));
    }
}
