//! Sizes and fields of DCI formats, compared with a table of sizes, with recorded messages, and with the output of
//! their own encoder.

use crate::recordings;

use airpace_core::Bits;
use airpace_core::tables::lte::McsTable;
use airpace_phy::Ports;
use airpace_phy::dci::{
    Allocation, Audience, Block, Carrier, Extras, Format, Gap, Message, Payload, Spatial, pack, parse,
};
use airpace_radio::{PrbSet, Rnti};
use proptest::prelude::*;
use recordings::{Row, data};

#[test]
fn sizes_are_those_of_the_table() {
    let Some(folder) = data("3gpp") else { return };
    let table = std::fs::read_to_string(folder.join("dci_sizes_lte_fdd.csv")).expect("the table of sizes");
    let formats = [
        Format::F0,
        Format::F1,
        Format::F1A,
        Format::F1B,
        Format::F1C,
        Format::F1D,
        Format::F2,
        Format::F2A,
        Format::F2B,
        Format::F3,
    ];
    let mut rows = 0;
    for line in table.lines().skip(1) {
        let numbers: Vec<u16> = line.split(',').map(|cell| cell.parse().expect("a number")).collect();
        let ports = Ports::from_count(usize::from(numbers[1])).expect("1, 2 or 4 ports");
        let carrier = Carrier::symmetric(numbers[0], ports);
        for (format, expected) in formats.into_iter().zip(&numbers[2..]) {
            let size = carrier.size(format, Extras::NONE);
            assert_eq!(u16::from(size), *expected, "format {} with {} PRBs", format.name(), carrier.prbs);
        }
        assert_eq!(carrier.size(Format::F3A, Extras::NONE), carrier.size(Format::F3, Extras::NONE));
        rows += 1;
    }
    assert_eq!(rows, 18, "six bandwidths by three numbers of ports");
}

/// Every recorded message is parsed field by field to the values of its base station. Packing it again gives the same
/// bits.
#[test]
fn recorded_messages_say_what_their_sender_meant() {
    let Some(folder) = data("radio") else { return };
    let mut seen = 0;
    for name in recordings::NAMES {
        let recording = recordings::Description::load(&folder, name);
        let carrier = Carrier::symmetric(recording.cell.bandwidth.prbs(), recording.cell.ports);
        for row in recordings::truth(&folder, name) {
            check(&carrier, &row);
            seen += 1;
        }
    }
    assert!(seen > 1900, "only {seen} messages");
}

fn check(carrier: &Carrier, row: &Row) {
    let payload: Payload = row.text("bits").parse().expect("bits");
    let extras = Extras {
        carrier_indicator: row.flag("cif"),
        long_csi_request: row.flag("csi2"),
        srs_request: row.flag("srs"),
    };
    let extras = if row.text("space") == "common" { Extras::NONE } else { extras };
    let rnti = Rnti(row.number("rnti"));
    let audience = if row.text("rnti_type") == "TPC" {
        Audience::User
    } else {
        Audience::of(rnti).unwrap_or_else(|| panic!("no such RNTI: {row:?}"))
    };
    let format = recordings::format(row.text("format"));
    let message = parse(carrier, extras, audience, format, payload)
        .unwrap_or_else(|illegal| panic!("{illegal}: {row:?}"));
    assert_eq!(pack(carrier, extras, audience, &message), payload, "{row:?}");
    assert_eq!(message.format(), format);
    let is_everyone = audience == Audience::Everyone;

    if let Some(prbs) = message.prbs(carrier) {
        assert_eq!(prbs[0], row.prbs("prb_slot0"), "{row:?} {message:?}");
        assert_eq!(prbs[1], row.prbs("prb_slot1"), "{row:?} {message:?}");
    }
    match message {
        Message::Uplink(uplink) => {
            assert_eq!((uplink.mcs, uplink.ndi), (row.number("mcs0"), row.flag("ndi0")), "{row:?}");
            assert_eq!(
                (uplink.tpc, uplink.cyclic_shift),
                (row.number("tpc"), row.number("pinfo")),
                "{row:?}"
            );
        }
        Message::Downlink(downlink) => {
            let alloc = match downlink.allocation {
                Allocation::Groups { .. } => "0",
                Allocation::Subset { .. } => "1",
                Allocation::Run { .. } => "2L",
                Allocation::Distributed { gap: Gap::First, .. } => "2D1",
                Allocation::Distributed { gap: Gap::Second, .. } => "2D2",
            };
            assert_eq!(alloc, row.text("alloc"), "{row:?}");
            let block = |at: usize| Block {
                mcs: row.number(["mcs0", "mcs1"][at]),
                rv: row.number(["rv0", "rv1"][at]),
                ndi: row.flag(["ndi0", "ndi1"][at]),
            };
            if is_everyone {
                assert_eq!((downlink.first.mcs, downlink.first.rv), (row.number("mcs0"), row.number("rv0")));
                assert_eq!(downlink.tpc & 1, row.number::<u8>("tpc"), "{row:?}");
            } else {
                assert_eq!(downlink.first, block(0), "{row:?}");
                assert_eq!((downlink.harq, downlink.tpc), (row.number("harq"), row.number("tpc")), "{row:?}");
            }
            if let Some(second) = downlink.second {
                assert_eq!(second, block(1), "{row:?}");
                assert_eq!(
                    [downlink.first, second].map(|block| block.is_disabled()),
                    [row.text("mod0") == "off", row.text("mod1") == "off"]
                );
            }
            match downlink.spatial {
                Spatial::Layers { swap, precoding } => {
                    assert_eq!(
                        (swap, precoding),
                        (row.flag("tb_swap"), row.number_or_zero("pinfo")),
                        "{row:?}"
                    );
                }
                Spatial::Beam { tpmi, .. } | Spatial::Shared { tpmi, .. } => {
                    assert_eq!(tpmi, row.number::<u8>("pinfo"), "{row:?}");
                }
                Spatial::Dual { .. } | Spatial::Plain => {}
            }
        }
        Message::Compact(compact) => assert_eq!(compact.i_tbs, row.number::<u8>("mcs0"), "{row:?}"),
        Message::Order(order) => assert_eq!(order.preamble, row.number::<u8>("pinfo"), "{row:?}"),
        Message::Power(power) => assert!(power.command(0).is_some()),
    }
    let table = if row.text("mcs_table") == "256qam" { McsTable::Qam256 } else { McsTable::Qam64 };
    if let Some(dci) = message.to_dci(carrier, rnti, table) {
        for (at, column) in ["tbs0", "tbs1"].into_iter().enumerate() {
            // The size of a block with a reserved MCS is that of the first transmission in its process; this test does
            // not know that size.
            if dci.tbs[at] != Bits(0) || dci.mcs[at].is_none_or(|mcs| mcs < 28) {
                assert_eq!(dci.tbs[at], Bits(row.number_or_zero(column)), "{row:?} {dci:?}");
            }
        }
        assert_eq!(dci.prbs.len(), row.number::<u16>("n_prb"), "{row:?}");
    }
}

fn carriers() -> impl Strategy<Value = Carrier> {
    let prbs = prop::sample::select(vec![6u16, 15, 25, 50, 75, 100]);
    (prbs.clone(), prbs, prop::sample::select(Ports::ALL.to_vec()))
        .prop_map(|(prbs, uplink_prbs, ports)| Carrier { prbs, uplink_prbs, ports })
}

fn extras() -> impl Strategy<Value = Extras> {
    (any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(cif, csi, srs)| Extras {
        carrier_indicator: cif,
        long_csi_request: csi,
        srs_request: srs,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn what_parses_packs_to_the_same_bits(
        carrier in carriers(),
        extras in extras(),
        everyone in any::<bool>(),
        format in prop::sample::select(Format::ALL.to_vec()),
        // Zeros at the end, so that the padding check does not reject nearly all payloads.
        bits in any::<u64>(), zeros in 0u32..8,
    ) {
        let audience = if everyone { Audience::Everyone } else { Audience::User };
        let size = carrier.size(format, extras);
        let bits = bits >> (64 - u32::from(size)) >> zeros << zeros;
        let payload = Payload::new(bits, size).expect("as many bits as the size");
        if let Ok(message) = parse(&carrier, extras, audience, format, payload) {
            prop_assert_eq!(pack(&carrier, extras, audience, &message), payload, "{:?}", message);
            let whole = PrbSet::run(0, carrier.prbs.max(carrier.uplink_prbs));
            for prbs in message.prbs(&carrier).unwrap_or_default() {
                prop_assert!(prbs.without(whole).is_empty(), "{:?} leaves the carrier", message);
            }
            for rnti in [Rnti(0x1234), Rnti::SYSTEM_INFORMATION] {
                message.to_dci(&carrier, rnti, McsTable::Qam256);
            }
        }
    }

    #[test]
    fn no_payload_of_any_size_is_too_strange(
        carrier in carriers(), extras in extras(),
        format in prop::sample::select(Format::ALL.to_vec()),
        bits in any::<u64>(), len in 0u8..=64,
    ) {
        let bits = if len == 0 { 0 } else { bits >> (64 - u32::from(len)) };
        let payload = Payload::new(bits, len).expect("as many bits");
        prop_assert_eq!(payload.to_string().parse(), Ok(payload));
        let parsed = parse(&carrier, extras, Audience::User, format, payload);
        prop_assert!(parsed.is_err() || len == carrier.size(format, extras));
    }

    #[test]
    fn the_sizes_that_share_the_search_differ_where_they_must(carrier in carriers(), extras in extras()) {
        let size = |format| carrier.size(format, extras);
        prop_assert_eq!(size(Format::F0), size(Format::F1A));
        for format in [Format::F1, Format::F1B, Format::F1D] {
            prop_assert!(size(format) != size(Format::F1A), "format {} could be 1A", format.name());
        }
        let longest = Format::ALL.into_iter().map(size).max();
        prop_assert!(longest <= Some(64));
    }
}
