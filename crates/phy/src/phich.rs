//! PHICH: HARQ feedback for uplink blocks that were transmitted four subframes earlier.

use num_complex::Complex32;

use crate::cell::{Cell, Ports};
use crate::diversity::{Quad, pair, pair_power, unpair};
use crate::modulation::bpsk;
use crate::numerology::CyclicPrefix;
use crate::sequence::gold::{Gold, phich_seed};

/// HARQ feedback for one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Answer {
    /// PHICH group, below [`Cell::phich_groups`].
    pub group: usize,
    /// Orthogonal sequence within the group: 0…7, with extended cyclic prefix 0…3.
    pub sequence: usize,
    /// True for an ACK.
    pub ack: bool,
}

/// PHICH group and sequence for a grant with lowest PRB `lowest_prb` (of the first slot) and `n_dmrs` from its cyclic
/// shift field (FDD, one block).
///
/// Source: TS 36.213 §9.1.2
pub const fn resource(cell: &Cell, lowest_prb: usize, n_dmrs: usize) -> (usize, usize) {
    let groups = cell.phich_groups();
    ((lowest_prb + n_dmrs) % groups, (lowest_prb / groups + n_dmrs) % sequences(cell.cp))
}

/// Number of repetitions of the bit.
///
/// Source: TS 36.212 §5.3.5
const REPETITIONS: usize = 3;

/// Value of chip number `chip` of an orthogonal sequence.
///
/// Source: TS 36.211 §6.9.1 Table 6.9.1-2
fn chip(cp: CyclicPrefix, sequence: usize, chip: usize) -> Complex32 {
    let real_sequences = spreading(cp);
    let walsh =
        [[1.0, 1.0, 1.0, 1.0], [1.0, -1.0, 1.0, -1.0], [1.0, 1.0, -1.0, -1.0], [1.0, -1.0, -1.0, 1.0]];
    let sign = walsh[sequence % real_sequences][chip];
    if sequence < real_sequences { Complex32::new(sign, 0.0) } else { Complex32::new(0.0, sign) }
}

/// Spreading factor.
///
/// Source: TS 36.211 §6.9.1
const fn spreading(cp: CyclicPrefix) -> usize {
    match cp {
        CyclicPrefix::Normal => 4,
        CyclicPrefix::Extended => 2,
    }
}

/// Number of orthogonal sequences in a group: the maximum number of users.
pub const fn sequences(cp: CyclicPrefix) -> usize {
    2 * spreading(cp)
}

/// Mapping unit of a group. Two groups share one unit if the cyclic prefix is extended.
///
/// Source: TS 36.211 §6.9.3
pub const fn unit(cp: CyclicPrefix, group: usize) -> usize {
    match cp {
        CyclicPrefix::Normal => group,
        CyclicPrefix::Extended => group / 2,
    }
}

/// Symbols of a quadruplet that a group uses: four chips, or two if two groups share the unit.
///
/// Source: TS 36.211 §6.9.2
fn chips(cp: CyclicPrefix, group: usize) -> std::ops::Range<usize> {
    match cp {
        CyclicPrefix::Normal => 0..4,
        CyclicPrefix::Extended => 2 * (group % 2)..2 * (group % 2) + 2,
    }
}

/// Signal of each port on the three REGs of the unit.
///
/// Source: TS 36.211 §6.9.1 and §6.9.2
pub fn encode(cell: &Cell, subframe: usize, answer: &Answer) -> [[Quad; 4]; REPETITIONS] {
    let mut scrambling = Gold::new(phich_seed(cell.pci, subframe));
    let bit = bpsk(u8::from(answer.ack));
    std::array::from_fn(|i| {
        let mut quad = Quad::default();
        for (at, place) in chips(cell.cp, answer.group).enumerate() {
            quad[place] = chip(cell.cp, answer.sequence, at) * bit * scrambling.next_sign();
        }
        precode(cell, answer.group, i, &quad)
    })
}

/// Precodes like other control channels, but if the cell has four ports, each repetition uses only one pair of ports.
///
/// Source: TS 36.211 §6.9.2
fn precode(cell: &Cell, group: usize, i: usize, x: &Quad) -> [Quad; 4] {
    match cell.ports {
        Ports::One | Ports::Two => crate::diversity::precode(cell.ports, x),
        Ports::Four => {
            let mut out = [Quad::default(); 4];
            for at in [0, 2] {
                pair(&mut out, port_pair(cell.cp, group, i), x, at);
            }
            out
        }
    }
}

/// Source: TS 36.211 §6.9.2
fn port_pair(cp: CyclicPrefix, group: usize, i: usize) -> (usize, usize) {
    if (i + unit(cp, group)).is_multiple_of(2) { (0, 2) } else { (1, 3) }
}

/// Scrambling signs of the PHICH in subframe `subframe` (0…9), for [`levels`].
///
/// Source: TS 36.211 §6.9.1
pub fn scrambling(pci: u16, subframe: usize) -> [f32; 12] {
    let mut bits = Gold::new(phich_seed(pci, subframe));
    std::array::from_fn(|_| bits.next_sign())
}

/// Level of each sequence in a group: positive for ACK, negative for NACK, near zero if nothing was transmitted. The
/// second value is the level for a transmission with the unit power of a resource element.
///
/// `y[i]` and `h[i][port]` are the received elements of repetition i and their channel.
pub fn levels(
    cell: &Cell,
    scrambling: &[f32; 12],
    group: usize,
    y: &[Quad; REPETITIONS],
    h: &[[Quad; 4]; REPETITIONS],
) -> ([f32; 8], f32) {
    let yes = bpsk(1);
    let (mut levels, mut full) = ([0.0; 8], 0.0);
    for i in 0..REPETITIONS {
        let ports = match cell.ports {
            Ports::One | Ports::Two => (0, 1),
            Ports::Four => port_pair(cell.cp, group, i),
        };
        let x = match cell.ports {
            Ports::One => crate::diversity::combine(cell.ports, &y[i], &h[i]),
            Ports::Two | Ports::Four => {
                let [a, b] = unpair(&y[i], &h[i], ports, 0);
                let [c, d] = unpair(&y[i], &h[i], ports, 2);
                [a, b, c, d]
            }
        };
        for (at, place) in chips(cell.cp, group).enumerate() {
            full += match cell.ports {
                Ports::One => h[i][0][place].norm_sqr(),
                Ports::Two | Ports::Four => {
                    let first = place & !1;
                    pair_power([&h[i][ports.0], &h[i][ports.1]], first, first + 1)
                }
            };
            let heard = x[place] * yes.conj() * scrambling[i * spreading(cell.cp) + at];
            for (sequence, level) in levels[..sequences(cell.cp)].iter_mut().enumerate() {
                *level += (heard * chip(cell.cp, sequence, at).conj()).re;
            }
        }
    }
    (levels, full)
}
