//! Features missing in all recordings, compared with tables and figures of the standard: four ports, extended cyclic
//! prefixes. Transmitter and receiver share their tables, so a loopback test would not detect an error in a table.

use airpace_phy::diversity::precode;
use airpace_phy::grid::regs_of_symbol;
use airpace_phy::phich::{self, Answer};
use airpace_phy::sequence::crs;
use airpace_phy::{
    Bandwidth, Cell, Complex32, CyclicPrefix, Numerology, PhichDuration, PhichResource, Ports, pbch,
};

fn cell(ports: Ports, cp: CyclicPrefix) -> Cell {
    Cell {
        pci: 300,
        bandwidth: Bandwidth::from_prbs(25).expect("a bandwidth of LTE"),
        ports,
        cp,
        phich_duration: PhichDuration::Normal,
        phich_resource: PhichResource::Two,
    }
}

/// Source: TS 36.211 §6.3.4.3, the matrix for four antenna ports, written out
#[test]
fn four_ports_send_pairs_of_symbols_in_turn() {
    let x = [(1.0, 2.0), (3.0, -5.0), (-7.0, 11.0), (13.0, 17.0)].map(|(re, im)| Complex32::new(re, im));
    let zero = Complex32::default();
    let expected = [
        [x[0], x[1], zero, zero],
        [zero, zero, x[2], x[3]],
        [-x[1].conj(), x[0].conj(), zero, zero],
        [zero, zero, -x[3].conj(), x[2].conj()],
    ];
    for (port, (sent, expected)) in precode(Ports::Four, &x).iter().zip(expected).enumerate() {
        for (sent, expected) in sent.iter().zip(expected) {
            assert!((sent * std::f32::consts::SQRT_2 - expected).norm() < 1e-5, "port {port}: {sent}");
        }
    }
}

/// Source: TS 36.211 Figures 6.10.1.2-1 and 6.10.1.2-2, for a cell whose identity is a multiple of six
#[test]
fn reference_signals_lie_where_the_figures_show_them() {
    let (even, odd) = (0, 3);
    for (cp, late, slot) in [(CyclicPrefix::Normal, 4, 7), (CyclicPrefix::Extended, 3, 6)] {
        let cell = cell(Ports::Four, cp);
        let shown: [Vec<(usize, usize)>; 4] = [
            vec![(0, even), (late, odd), (slot, even), (slot + late, odd)],
            vec![(0, odd), (late, even), (slot, odd), (slot + late, even)],
            vec![(1, even), (slot + 1, odd)],
            vec![(1, odd), (slot + 1, even)],
        ];
        for (port, shown) in shown.into_iter().enumerate() {
            let there = (0..2 * slot)
                .filter_map(|symbol| Some((symbol, crs::pilots(&cell, port, 3, symbol)?.first)))
                .collect::<Vec<_>>();
            assert_eq!(there, shown, "{cp:?}, port {port}");
        }
    }
}

/// Source: TS 36.211 §6.2.4: groups per resource block and control symbol
#[test]
fn control_symbols_have_two_or_three_groups_per_block() {
    for (ports, cp, groups) in [
        (Ports::One, CyclicPrefix::Normal, [2, 3, 3, 3]),
        (Ports::Two, CyclicPrefix::Extended, [2, 3, 3, 2]),
        (Ports::Four, CyclicPrefix::Normal, [2, 2, 3, 3]),
        (Ports::Four, CyclicPrefix::Extended, [2, 2, 3, 2]),
    ] {
        let cell = cell(ports, cp);
        let there = [0, 1, 2, 3].map(|symbol| regs_of_symbol(&cell, symbol).len() / 25);
        assert_eq!(there, groups, "{ports:?} {cp:?}");
    }
}

/// Source: TS 36.211 §6.9.2: with four ports the repetitions alternate between two pairs of ports, and the first pair
/// depends on the group; with an extended prefix two groups share the four elements
#[test]
fn answers_of_the_phich_take_their_ports_and_elements_in_turn() {
    for cp in [CyclicPrefix::Normal, CyclicPrefix::Extended] {
        let cell = cell(Ports::Four, cp);
        for group in 0..4 {
            let sent = phich::encode(&cell, 2, &Answer { group, sequence: 1, ack: true });
            for (repetition, ports) in sent.iter().enumerate() {
                let turn = match cp {
                    CyclicPrefix::Normal => repetition + group,
                    CyclicPrefix::Extended => repetition + group / 2,
                };
                let expected: &[usize] = if turn % 2 == 0 { &[0, 2] } else { &[1, 3] };
                for (port, quad) in ports.iter().enumerate() {
                    let used: Vec<bool> = quad.iter().map(|value| value.norm() > 0.1).collect();
                    let elements = match cp {
                        CyclicPrefix::Normal => [true; 4],
                        CyclicPrefix::Extended => [0, 1, 2, 3].map(|at| at / 2 == group % 2),
                    };
                    let is_used = expected.contains(&port);
                    let elements = elements.map(|used| used && is_used);
                    assert_eq!(used, elements, "{cp:?}, group {group}, repetition {repetition}, port {port}");
                }
            }
        }
    }
}

/// Source: TS 36.211 Tables 6.12-1 and 6.2.3-1, §6.6.1
#[test]
fn extended_prefixes_are_512_of_2048_samples_and_leave_the_pbch_1728_bits() {
    let bandwidth = Bandwidth::from_prbs(100).expect("a bandwidth of LTE");
    let numerology = Numerology::new(bandwidth, CyclicPrefix::Extended, 2048).expect("an FFT size");
    for symbol in 0..12 {
        assert_eq!(numerology.symbol_start(symbol), symbol * (2048 + 512) + 512);
    }
    assert_eq!(numerology.subframe_samples(), 30_720);
    for (cp, bits) in [(CyclicPrefix::Normal, 1920), (CyclicPrefix::Extended, 1728)] {
        assert_eq!(4 * 8 * pbch::elements(&cell(Ports::One, cp)).len(), bits);
    }
}
