use std::collections::BTreeSet;

use super::origin::Origin;
use super::qualcomm::{ORIGINS, PLACES};
use super::*;
use crate::layout::Leaf;
use crate::log;
use crate::packet::{LogPacket, Radio};
use crate::stamp::Stamp;

/// The leaves at the end of a path, in all versions of a code.
fn leaves(code: LogCode, path: &str) -> Vec<Leaf> {
    log::code(code).unwrap().layouts.iter().flat_map(|layout| layout.find(path)).collect()
}

#[test]
fn every_kpi_has_an_origin_and_every_origin_a_kpi() {
    let names: BTreeSet<&str> = KPIS.iter().map(|kpi| kpi.name).collect();
    assert_eq!(names.len(), KPIS.len(), "names are unique");
    for kpi in KPIS {
        assert!(!kpi.sources().is_empty(), "{} comes from somewhere", kpi.name);
        assert!(
            kpi.about.ends_with('.') && kpi.about.matches(". ").count() == 0,
            "{}: one sentence",
            kpi.name
        );
        assert!(!kpi.name.contains(['@', ':', ' ']), "{} can be written", kpi.name);
    }
    for Origin { kpi, code, .. } in ORIGINS {
        assert!(names.contains(kpi), "{kpi}, of {code}, is in the list");
    }
}

#[test]
fn every_path_of_every_origin_is_in_some_version() {
    for origin in ORIGINS {
        let paths =
            origin.value.iter().copied().chain(origin.when.iter().map(|when| when.path)).chain(origin.rows);
        for path in paths {
            assert!(!leaves(origin.code, path).is_empty(), "{}: {} has {path}", origin.kpi, origin.code);
        }
    }
    for place in PLACES {
        let lists =
            [place.frame, place.subframe, place.packed, place.offset, place.numerology, place.carrier];
        for path in lists.into_iter().flatten() {
            let leaves = leaves(place.code, path);
            assert!(leaves.iter().any(|leaf| leaf.is_number()), "{} has {path}", place.code);
        }
    }
    assert!(PLACES.windows(2).all(|pair| pair[0].code < pair[1].code), "one place for each code, in order");
}

#[test]
fn all_kpis_can_be_wanted_at_once_and_every_version_that_should_have_one_has() {
    let all = Subscription::new(KPIS.iter().map(|kpi| kpi.name)).unwrap();
    for plan in plan::plan(&all) {
        for layout in plan.layouts {
            let uses: BTreeSet<usize> =
                layout.groups.iter().flat_map(|group| &group.uses).map(|one| one.wanted).collect();
            for (at, kpi) in KPIS.iter().enumerate() {
                let versions = layout.layout.versions;
                let should = kpi
                    .sources()
                    .iter()
                    .any(|source| source.code == plan.code.code && versions.contains(&source.version));
                assert_eq!(uses.contains(&at), should, "{} of {} {versions:?}", kpi.name, plan.code.code);
                let comes = plan::origins(kpi.name).any(|origin| origin.code == plan.code.code);
                assert_eq!(layout.missing.contains(&at), comes && !should, "{}", kpi.name);
            }
        }
    }
}

#[test]
fn names_say_the_radio_and_may_be_fields_of_packets() {
    let wanted: Wanted = "lte.rsrp@2".parse().unwrap();
    assert_eq!((wanted.radio, wanted.unit(), wanted.to_string().as_str()), (Radio(2), "dBm", "lte.rsrp@2"));
    for text in ["lte.rsrp#1", "lte.rsrp@2#0", "lte.rsrp#all", "0xB173:records.num_rbs@2#3"] {
        assert_eq!(text.parse::<Wanted>().unwrap().to_string(), text);
    }
    let wanted: Wanted = "0xB173:records.num_rbs".parse().unwrap();
    assert_eq!((wanted.radio, wanted.codes()), (Radio::FIRST, BTreeSet::from([LogCode(0xB173)])));
    assert_eq!(wanted.to_string(), "0xB173:records.num_rbs");
    let refused = |text: &str| text.parse::<Wanted>().unwrap_err().to_string();
    assert_eq!(refused("lte.rsrp@none"), "`none` is no radio: write 1 for the first SIM, 2 for the second");
    assert_eq!(refused("lte.rsrp@0"), "`0` is no radio: write 1 for the first SIM, 2 for the second");
    assert_eq!(
        refused("lte.snr.rx7"),
        "there is no KPI `lte.snr.rx7`; near it: `lte.snr.rx0`, `lte.snr.rx1`, `lte.snr`, `lte.sir`, `lte.rsrp`"
    );
    assert_eq!(refused("zzz"), "there is no KPI `zzz`");
    for text in ["lte.rsrp#32", "lte.rsrp#", "lte.rsrp#-1", "lte.rsrp#1@2"] {
        assert!(
            refused(text).contains("is no carrier: write 0 for the primary"),
            "{text}: {}",
            refused(text)
        );
    }
    assert_eq!(refused("lte.dl.bytes#0"), "`lte.dl.bytes` is not about one carrier; leave out the `#`");
    assert_eq!(refused("0xB999:x"), "there is no layout of log code `0xB999`");
    assert_eq!(
        refused("0xB173:records.num_rb"),
        "no version of 0xB173 has a field `records.num_rb`; near it: `records.num_rbs`, `records.num_layers`, \
         `records.frame_num`, `records.subframe_num`, `records.num_transport_blocks_present`"
    );
    assert_eq!(refused("0xB0C0:msg"), "`msg` of 0xB0C0 is bytes, not a number");
}

/// A 0xB173 packet of version 24 from the first radio: frame 100, subframe 7, 50 resource blocks. Its blocks have these
/// sizes and CRC results.
fn blocks(blocks: &[(u16, bool)]) -> Vec<u8> {
    let mut payload = vec![24, 1, 0, 0];
    payload.extend((100_u16 << 4 | 7).to_le_bytes());
    payload.extend([50, blocks.len() as u8, blocks.len() as u8, 1]);
    for at in 0..2 {
        let (size, passed) = blocks.get(at).copied().unwrap_or((0, false));
        payload.extend([u8::from(passed) << 7, (at as u8) << 4]);
        payload.extend(size.to_le_bytes());
        payload.extend([17, 50, 4, 0]);
    }
    payload.extend([0, 0]);
    payload
}

fn packet(code: u16, payload: &[u8]) -> LogPacket<'_> {
    LogPacket { radio: Radio::FIRST, code: LogCode(code), stamp: Stamp(1 << 20), payload }
}

/// Samples of a packet: index and value.
fn pushed(extractor: &mut Extractor, packet: &LogPacket<'_>) -> Vec<(usize, f64)> {
    let mut samples = vec![];
    extractor.push(packet, |sample| samples.push((sample.wanted, sample.value)));
    samples
}

#[test]
fn a_sample_has_subframe_carrier_and_verification() {
    let mut extractor = Extractor::new(&Subscription::new(["lte.dl.tb_bytes"]).unwrap());
    let mut samples = vec![];
    let payload = blocks(&[(1_003, true), (503, false)]);
    extractor.push(&packet(0xB173, &payload), |sample| samples.push(sample));
    let expected = |value| Sample {
        wanted: 0,
        value,
        stamp: Stamp(1 << 20),
        subframe: Some(1_007),
        carrier: 1,
        verified: Verified::Checked,
    };
    assert_eq!(
        samples,
        [expected(1_000.0), expected(500.0)],
        "the checksum's three bytes are not the block's"
    );
}

#[test]
fn totals_go_on_and_shares_are_of_the_last_blocks() {
    let names = ["lte.dl.bytes", "lte.dl.failed_blocks", "lte.dl.bler", "lte.dl.granted_prb"];
    let mut subscription = Subscription::new(names).unwrap();
    let mut extractor = Extractor::new(&subscription);
    let payload = blocks(&[(1_003, true), (503, false)]);
    let mut first = pushed(&mut extractor, &packet(0xB173, &payload));
    first.sort_by_key(|(wanted, _)| *wanted);
    assert_eq!(first, [(0, 1_000.0), (1, 1.0), (2, 0.0), (2, 0.5), (3, 50.0)]);
    for _ in 0..SHARE_BLOCKS {
        pushed(&mut extractor, &packet(0xB173, &blocks(&[(103, true)])));
    }
    assert_eq!(subscription.add("lte.dl.bytes".parse().unwrap()), 0, "it is wanted already");
    assert_eq!(subscription.add("lte.dl.mcs".parse().unwrap()), 4);
    extractor.follow(&subscription);
    let mut last = pushed(&mut extractor, &packet(0xB173, &blocks(&[(103, true)])));
    last.sort_by_key(|(wanted, _)| *wanted);
    let bytes = 1_000.0 + 100.0 * f64::from(SHARE_BLOCKS + 1);
    assert_eq!(last, [(0, bytes), (2, 0.0), (3, 50.0 * f64::from(SHARE_BLOCKS + 2)), (4, 17.0)]);
}

#[test]
fn what_is_for_another_radio_is_not_taken() {
    let mut extractor = Extractor::new(&Subscription::new(["lte.dl.mcs@2"]).unwrap());
    let payload = blocks(&[(1_003, true)]);
    assert_eq!(pushed(&mut extractor, &packet(0xB173, &payload)), []);
    let second = LogPacket { radio: Radio(2), ..packet(0xB173, &payload) };
    assert_eq!(pushed(&mut extractor, &second), [(0, 17.0)]);
}

/// A 0xB063 packet with one block of this size for this phone.
fn mac_block(bytes: u16) -> Vec<u8> {
    let mut payload = vec![1, 1, 0, 0, 7, 2, 17, 0, 1];
    payload.extend([0; 6]);
    payload.extend(bytes.to_le_bytes());
    payload.extend([0; 4]);
    payload
}

#[test]
fn a_less_preferred_packet_counts_until_the_preferred_one_speaks() {
    let mut extractor = Extractor::new(&Subscription::new(["lte.dl.bytes"]).unwrap());
    assert_eq!(pushed(&mut extractor, &packet(0xB063, &mac_block(300))), [(0, 300.0)]);
    let payload = blocks(&[(1_003, true)]);
    assert_eq!(pushed(&mut extractor, &packet(0xB173, &payload)), [], "0xB063 may have counted it");
    assert_eq!(pushed(&mut extractor, &packet(0xB173, &payload)), [(0, 1_300.0)]);
    assert_eq!(pushed(&mut extractor, &packet(0xB063, &mac_block(300))), [], "not twice");
}

#[test]
fn what_does_not_fit_is_counted_and_nothing_of_it_is_taken() {
    let mut extractor = Extractor::new(&Subscription::new(["lte.dl.tb_bytes"]).unwrap());
    let payload = blocks(&[(1_003, true)]);
    let cut = &payload[..payload.len() - 1];
    let mut long = payload.clone();
    long.push(0);
    let unknown = [99, 0];
    let mut news = vec![];
    for payload in [cut, &long, &unknown, &[], &unknown] {
        news.extend(extractor.push(&packet(0xB173, payload), |sample| panic!("{sample:?}")));
    }
    news.extend(extractor.cut(LogCode(0xB173)));
    news.extend(extractor.cut(LogCode(0xB173)));
    assert_eq!(extractor.cut(LogCode(0xB193)), None, "nobody wants it");
    let texts: Vec<String> = news.iter().map(Trouble::to_string).collect();
    assert_eq!(
        texts,
        [
            "0xB173 version 24: packet at byte 26: takes 2 bytes of 1",
            "0xB173 version 99: no layout for this version",
            "0xB173: too short to contain its version",
            "0xB173: cut: its length field exceeds the received bytes",
        ],
        "each is news once"
    );
    let counts: Vec<u64> = extractor.troubles().iter().map(|trouble| trouble.count).collect();
    assert_eq!((counts, extractor.more_troubles()), (vec![2, 2, 1, 2], 0));
}

#[test]
fn bytes_that_are_no_log_do_not_make_the_list_of_troubles_long() {
    let mut extractor = Extractor::new(&Subscription::new(["nr.rsrp"]).unwrap());
    let versions = 1_000_u32..1_300;
    for version in versions.clone() {
        extractor.push(&packet(0xB97F, &version.to_le_bytes()), |_| {});
    }
    let beyond = versions.count() - MAX_TROUBLES;
    assert_eq!((extractor.troubles().len(), extractor.more_troubles()), (MAX_TROUBLES, beyond as u64));
}

#[test]
fn numbers_that_no_cell_or_channel_has_are_no_samples() {
    let samples = |pci: u16| {
        let mut extractor = Extractor::new(&Subscription::new(["lte.pci"]).unwrap());
        // 0xB0C2 of version 2: physical cell id, channels, and other properties of the cell.
        let mut payload = vec![2];
        payload.extend(pci.to_le_bytes());
        payload.resize(25, 0);
        pushed(&mut extractor, &packet(0xB0C2, &payload))
    };
    assert_eq!(samples(503), [(0, 503.0)]);
    assert_eq!(samples(504), []);
    assert_eq!(samples(2_943), []);
}
