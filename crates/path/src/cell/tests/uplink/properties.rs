//! Properties of any uplink under any arrivals.

use std::collections::{BTreeMap, VecDeque};

use airpace_event::Owner;
use airpace_radio::{DciFormat, PrbSet};
use proptest::prelude::*;

use super::super::super::config::RlcMode;
use super::super::super::config::uplink::{BsrReading, UplinkBackgroundConfig};
use super::super::super::uplink::OnAir;
use super::*;

fn cells() -> impl Strategy<Value = CellConfig> {
    let radio = (
        prop::sample::select(vec![6_u16, 15, 25, 50, 75, 100]),
        1_u8..=3,
        prop::sample::select(vec![Policy::RoundRobin, Policy::ProportionalFair, Policy::MaxCi]),
        prop::sample::select(vec![BlerModel::Sinr, BlerModel::Pbe]),
        prop::sample::select(vec![RlcMode::Acknowledged, RlcMode::Unacknowledged]),
        1_u8..10,
    );
    let uplink = (
        1_u8..=3,
        prop::sample::select(vec![1_u32, 2, 5, 10, 20, 40]),
        prop::sample::select(vec![BsrReading::Upper, BsrReading::Middle, BsrReading::Lower]),
        prop::option::of(1_u16..40),
        (0_u32..20, 20_u32..400, 0_u8..5),
        (prop::sample::select(vec![0.0, 0.4]), 0_u16..3),
        any::<bool>(),
    );
    (radio, uplink).prop_map(|((prbs, carriers, scheduler, model, mode, most), uplink)| {
        let (ours, sr_period_ms, bsr_reading, power_prbs, timers, others, always_active) = uplink;
        let (periodic_bsr_ms, retx_bsr_ms, max_retransmissions) = timers;
        let (load, full_buffer) = others;
        let uplink = UplinkConfig {
            carriers: ours.min(carriers),
            sr_period_ms,
            bsr_reading,
            power_prbs,
            periodic_bsr_ms,
            retx_bsr_ms,
            max_retransmissions,
            queue_bytes: 100_000,
            background: UplinkBackgroundConfig { load, full_buffer, ..UplinkBackgroundConfig::default() },
            ..UplinkConfig::default()
        };
        let mut config = CellConfig {
            prbs: Some(prbs),
            carriers,
            scheduler,
            max_users_per_subframe: most,
            uplink,
            ..CellConfig::default()
        };
        config.bler.model = model;
        config.bler.pbe_bit_error_rate = 2e-5;
        config.bler.pbe_retransmission_factor = 0.5;
        config.rlc.mode = mode;
        config.aggregation.always_active = always_active;
        config
    })
}

fn devices() -> impl Strategy<Value = Vec<DeviceRadioConfig>> {
    let one = (-3.0..30.0, prop::collection::vec(0.05..0.3, 0..2));
    prop::collection::vec(
        one.prop_map(|(sinr_db, handover_s)| DeviceRadioConfig { handover_s, ..device(sinr_db) }),
        1..4,
    )
}

/// Checks a cell before and after each subframe.
struct Witness {
    region: PrbSet,
    /// First transmissions that were granted for the next subframes: owner, carrier, PRBs. One list per subframe.
    granted: VecDeque<Vec<(Owner, u8, PrbSet)>>,
    /// Blocks of the last eight subframes.
    sent: VecDeque<Vec<OnAir>>,
    granted_bits: BTreeMap<Owner, u64>,
    has_handovers: bool,
}

impl Witness {
    fn new(config: &CellConfig, devices: &[DeviceRadioConfig]) -> Witness {
        let prbs = config.carrier_prbs(0);
        let edge = prbs.div_ceil(50);
        Witness {
            region: PrbSet::run(edge, prbs - 2 * edge),
            granted: vec![Vec::new(); 3].into(),
            sent: vec![Vec::new(); 8].into(),
            granted_bits: BTreeMap::new(),
            has_handovers: devices.iter().any(|device| !device.handover_s.is_empty()),
        }
    }

    /// Must be called after each subframe. Checks the grants of this subframe, and the blocks of the next subframe.
    fn look(&mut self, cell: &Cell) {
        let granted = self.granted.pop_front().expect("three subframes are kept");
        let before = self.sent.pop_front().expect("eight subframes are kept");
        let next: Vec<OnAir> = cell.uplink.due_in(cell.subframes_run()).collect();
        let mut taken: BTreeMap<u8, PrbSet> = BTreeMap::new();
        for block in &next {
            let taken = taken.entry(block.carrier).or_insert(PrbSet::EMPTY);
            assert!(taken.intersection(block.prbs).is_empty(), "a PRB was granted twice");
            assert!(block.prbs.without(self.region).is_empty(), "a block uses a PRB that is not for data");
            *taken = taken.union(block.prbs);
            let is_first = block.transmissions == 0;
            if is_first {
                let grant = (block.owner, block.carrier, block.prbs);
                assert!(granted.contains(&grant), "{block:?} was not granted four subframes before");
            } else {
                let same = |old: &OnAir| {
                    let is_one_less = old.transmissions + 1 == block.transmissions;
                    is_one_less
                        && (old.owner, old.carrier, old.prbs) == (block.owner, block.carrier, block.prbs)
                };
                assert!(before.iter().any(same), "{block:?} was not there eight subframes before");
            }
        }
        let firsts = next.iter().filter(|block| block.transmissions == 0).count();
        assert!(
            self.has_handovers || firsts == granted.len(),
            "each grant should be used four subframes later"
        );
        self.sent.push_back(next);
        let mut granted = Vec::new();
        for subframe in cell.subframes() {
            let pairs = subframe.report.dcis.iter().zip(subframe.owners);
            for (dci, &owner) in pairs.filter(|(dci, _)| dci.direction == Direction::Uplink) {
                assert_eq!((dci.format, dci.layers), (DciFormat::F0, 1));
                assert_eq!(dci.prbs.runs().count(), 1, "adjacent PRBs");
                assert_eq!(lte::pusch_size_within(dci.prbs.len()), dci.prbs.len(), "2^a 3^b 5^c PRBs");
                let (_, i_tbs) =
                    lte::uplink_mcs(dci.mcs[0].expect("an MCS")).expect("a row").initial.expect("new");
                assert_eq!(lte::tbs(i_tbs, dci.prbs.len(), 1), Some(dci.bits()), "the size of the tables");
                *self.granted_bits.entry(owner).or_default() += dci.bits().0;
                granted.push((owner, subframe.report.carrier.0, dci.prbs));
            }
        }
        self.granted.push_back(granted);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn grants_are_legal_and_used_blocks_come_again_and_nothing_is_lost_or_made(
        config in cells(),
        devices in devices(),
        sources in prop::collection::vec((0_usize..4, 40_u64..2000, 0.02..40.0), 1..4),
        seed in any::<u64>(),
    ) {
        let until = Time::from_millis(300);
        let sources = sources.into_iter().map(|(device, bytes, mbps)| {
            Source::new((device % devices.len()) as u16, bytes, Rate::from_mbps(mbps), Time::ZERO, until)
        });
        let mut upload = Upload::new(&config, &devices, sources.collect(), seed);
        upload.cell.set_recording(true);
        let mut witness = Witness::new(&config, &devices);
        upload.run(Time::from_secs(3), |cell| witness.look(cell));

        let pushed: u64 = upload.sources.iter().map(|source| source.number * source.bytes).sum();
        let ended: u64 = upload.exits.iter().map(|exit| exit.packet.bytes.0).sum();
        let held: u64 = (0..devices.len()).map(|device| upload.cell.uplink.held(device).0).sum();
        prop_assert_eq!(pushed, ended + held, "bytes in and bytes out differ");
        let lost = upload.exits.iter().filter(|exit| exit.fate == Fate::HarqFailure).count();
        prop_assert!(config.rlc.mode == RlcMode::Unacknowledged || lost == 0, "{} packets lost", lost);

        let mut next = BTreeMap::new();
        let mut delivered_bits: BTreeMap<Owner, u64> = BTreeMap::new();
        for exit in upload.exits.iter().filter(|exit| exit.fate != Fate::QueueFull) {
            let least = next.entry(exit.packet.flow).or_insert(0);
            prop_assert!(exit.packet.number >= *least, "a packet overtook another of its flow, or came twice");
            *least = exit.packet.number + 1;
            if exit.fate == Fate::Delivered {
                *delivered_bits.entry(Owner::Device(exit.packet.device)).or_default() += exit.packet.bytes.bits().0;
            }
        }
        prop_assert!(upload.exits.windows(2).all(|pair| pair[0].time <= pair[1].time));
        for (owner, bits) in delivered_bits {
            prop_assert!(witness.granted_bits[&owner] >= bits, "more was sent than granted");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = |seed| {
        let background = UplinkBackgroundConfig { load: 0.3, ..UplinkBackgroundConfig::default() };
        let uplink = UplinkConfig { background, measurement_sigma_db: 1.0, ..UplinkConfig::default() };
        let config = CellConfig { uplink, ..CellConfig::default() };
        let mut upload = Upload::new(&config, &[device(14.0)], vec![Source::saturating(0, 1500)], seed);
        upload.run(Time::from_secs(2), |_| {});
        upload.exits
    };
    assert!(run(1) == run(1));
    assert!(run(1) != run(2));
}
