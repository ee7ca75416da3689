//! PBCH: coding, decoding and contents of the master information block (MIB).

use crate::cell::{Cell, PhichDuration, PhichResource, Ports};
use crate::coding::{Codeword, RateMatcher, Viterbi, crc};
use crate::diversity::Quad;
use crate::grid::Reg;
use crate::modulation::{Soft, qpsk};
use crate::numerology::{Bandwidth, CyclicPrefix, SUBCARRIERS_PER_PRB};
use crate::sequence::crs;
use crate::sequence::gold::{Gold, pbch_seed};

/// Number of frames over which one MIB is transmitted.
///
/// Source: TS 36.211 §6.6.1
pub const FRAMES: usize = 4;

/// Number of bits of the MIB, without and with its CRC.
///
/// Source: TS 36.212 §5.3.1
const BITS: usize = 24;
const BITS_WITH_CRC: usize = BITS + 16;

/// Master information block (MIB).
///
/// Source: TS 36.331 §6.2.2 MasterInformationBlock
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mib {
    /// Downlink bandwidth.
    pub bandwidth: Bandwidth,
    /// Number of symbols over which the PHICH is spread.
    pub phich_duration: PhichDuration,
    /// Number of PHICH groups.
    pub phich_resource: PhichResource,
    /// System frame number of the first of the four frames, 0…1020, a multiple of four.
    pub sfn: u16,
    /// Ten spare bits; later releases use some.
    pub spare: u16,
}

impl Mib {
    /// The MIB of a cell in frame `sfn`.
    pub fn new(cell: &Cell, sfn: u16) -> Mib {
        Mib {
            bandwidth: cell.bandwidth,
            phich_duration: cell.phich_duration,
            phich_resource: cell.phich_resource,
            sfn: sfn % 1024 / 4 * 4,
            spare: 0,
        }
    }

    /// The 24 bits of the MIB, right-aligned.
    pub fn pack(&self) -> u32 {
        let place = |found: Option<usize>| found.unwrap_or(0) as u32;
        let bandwidth = place(Bandwidth::ALL.iter().position(|other| *other == self.bandwidth));
        let duration = u32::from(self.phich_duration == PhichDuration::Extended);
        let resource = place(PhichResource::ALL.iter().position(|other| *other == self.phich_resource));
        let sfn = u32::from(self.sfn / 4 % 256);
        bandwidth << 21 | duration << 20 | resource << 18 | sfn << 10 | u32::from(self.spare & 0x3FF)
    }

    /// Parses the 24 bits of a MIB; `None` if the bandwidth is reserved.
    pub fn parse(bits: u32) -> Option<Mib> {
        Some(Mib {
            bandwidth: *Bandwidth::ALL.get((bits >> 21 & 7) as usize)?,
            phich_duration: if bits >> 20 & 1 == 1 { PhichDuration::Extended } else { PhichDuration::Normal },
            phich_resource: PhichResource::ALL[(bits >> 18 & 3) as usize],
            sfn: (bits >> 10 & 0xFF) as u16 * 4,
            spare: (bits & 0x3FF) as u16,
        })
    }
}

/// Number of coded bits per frame, a quarter of all coded bits.
///
/// Source: TS 36.211 §6.6.1
pub const fn frame_bits(cp: CyclicPrefix) -> usize {
    match cp {
        CyclicPrefix::Normal => 480,
        CyclicPrefix::Extended => 432,
    }
}

/// Resource elements of the PBCH in subframe 0, in groups of four, in the order of the PBCH symbols. They are in the
/// first four symbols of the second slot, on the 72 subcarriers around the centre, without the elements reserved for
/// reference signals of four ports.
///
/// Source: TS 36.211 §6.6.4
pub fn elements(cell: &Cell) -> Vec<Reg> {
    let middle = cell.bandwidth.subcarriers() / 2;
    let half = 3 * SUBCARRIERS_PER_PRB;
    let slot = cell.cp.symbols_per_slot();
    let mut regs = Vec::new();
    for symbol in slot..slot + 4 {
        let free: Vec<u16> = (middle - half..middle + half)
            .filter(|&k| !crs::is_reserved(cell, 4, symbol, k))
            .map(|k| k as u16)
            .collect();
        regs.extend(free.chunks_exact(4).map(|four| Reg {
            symbol: symbol as u8,
            first: four[0],
            subcarriers: [four[0], four[1], four[2], four[3]],
        }));
    }
    regs
}

/// PBCH symbols of frame `sfn`, as quadruplets.
///
/// Source: TS 36.212 §5.3.1, TS 36.211 §6.6
pub fn encode(cell: &Cell, sfn: u16) -> Vec<Quad> {
    let mask = crc::PORT_MASKS[port_index(cell.ports)];
    let word = crc::attach16(u128::from(Mib::new(cell, sfn).pack()), BITS, mask);
    let count = frame_bits(cell.cp);
    let quarter = usize::from(sfn) % FRAMES;
    let matcher = RateMatcher::new(BITS_WITH_CRC);
    let codeword = Codeword::encode(word, BITS_WITH_CRC);
    let coded = matcher.select(&codeword, FRAMES * count);
    let scrambled = coded.zip(Gold::new(pbch_seed(cell.pci))).map(|(bit, c)| bit ^ c);
    let bits: Vec<u8> = scrambled.skip(quarter * count).take(count).collect();
    let quad = |eight: &[u8]| std::array::from_fn(|i| qpsk(eight[2 * i], eight[2 * i + 1]));
    bits.chunks_exact(8).map(quad).collect()
}

/// Content of the PBCH of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broadcast {
    /// The master information block.
    pub mib: Mib,
    /// Antenna ports.
    pub ports: Ports,
    /// System frame number.
    pub sfn: u16,
}

/// Decodes the soft bits of one frame.
///
/// Source: TS 36.212 §5.3.1, TS 36.211 §6.6.1
pub fn decode(pci: u16, soft: &[Soft], viterbi: &mut Viterbi) -> Option<Broadcast> {
    combine(pci, &[soft], viterbi)
}

/// Decodes the soft bits of successive frames, the newest last. Returns the content of the newest frame. The function
/// tries all four quarters of the coded block for the newest frame. Earlier frames are added if they belong to the same
/// MIB.
///
/// Source: TS 36.212 §5.3.1, TS 36.211 §6.6.1
pub fn combine<F: AsRef<[Soft]>>(pci: u16, frames: &[F], viterbi: &mut Viterbi) -> Option<Broadcast> {
    let count = frames.last()?.as_ref().len();
    let matcher = RateMatcher::new(BITS_WITH_CRC);
    let mut scrambling = Gold::new(pbch_seed(pci));
    let signs: Vec<bool> = (0..FRAMES * count).map(|_| scrambling.next_bit() == 1).collect();
    let mut steps = Vec::new();
    (0..FRAMES).find_map(|quarter| {
        let mut placed = vec![0; placed_len(quarter, count)];
        let places = placed.chunks_exact_mut(count.max(1)).rev();
        let signs = signs[..placed_len(quarter, count)].chunks_exact(count.max(1)).rev();
        for ((place, signs), frame) in places.zip(signs).zip(frames.iter().rev()) {
            for ((placed, &value), &turn) in place.iter_mut().zip(frame.as_ref()).zip(signs) {
                *placed = if turn { value.saturating_neg() } else { value };
            }
        }
        // All-zero soft bits also decode to a valid MIB: frame 0 of a cell with 6 PRBs.
        if placed.iter().all(|&value| value == 0) {
            return None;
        }
        matcher.combine(&placed, &mut steps);
        let decoded = viterbi.decode(&steps);
        let mask = crc::mask16(decoded.word, BITS);
        let ports = Ports::ALL[crc::PORT_MASKS.iter().position(|&other| other == mask)?];
        let mib = Mib::parse((decoded.word >> 16) as u32)?;
        Some(Broadcast { mib, ports, sfn: mib.sfn + quarter as u16 })
    })
}

/// Whether the soft bits of one frame carry `mib` of a cell with `ports` in frame `sfn`; its spare bits may have any
/// value. Needs one decoding; [`decode`] needs up to four.
pub fn confirm(pci: u16, soft: &[Soft], mib: &Mib, ports: Ports, sfn: u16, viterbi: &mut Viterbi) -> bool {
    let before = usize::from(sfn) % FRAMES * soft.len();
    let mut scrambling = Gold::new(pbch_seed(pci));
    (0..before).for_each(|_| _ = scrambling.next_bit());
    let mut placed = vec![0; before];
    placed.extend(
        soft.iter().map(|&value| if scrambling.next_bit() == 1 { value.saturating_neg() } else { value }),
    );
    if soft.iter().all(|&value| value == 0) {
        return false;
    }
    let mut steps = Vec::new();
    RateMatcher::new(BITS_WITH_CRC).combine(&placed, &mut steps);
    let word = viterbi.decode(&steps).word;
    let told = Mib::parse((word >> 16) as u32);
    crc::mask16(word, BITS) == crc::PORT_MASKS[port_index(ports)]
        && told.is_some_and(|told| Mib { spare: mib.spare, ..told } == *mib)
}

/// Number of coded bits from the start of the block up to the end of a quarter.
const fn placed_len(quarter: usize, count: usize) -> usize {
    (quarter + 1) * count
}

const fn port_index(ports: Ports) -> usize {
    match ports {
        Ports::One => 0,
        Ports::Two => 1,
        Ports::Four => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_block_comes_back_from_its_bits(bits in 0u32..1 << 24) {
            match Mib::parse(bits) {
                Some(mib) => prop_assert_eq!(mib.pack(), bits),
                None => prop_assert!(bits >> 21 > 5, "only two codes of the bandwidth are none"),
            }
        }
    }

    #[test]
    fn each_frame_alone_determines_ports_and_number() {
        for cp in [CyclicPrefix::Normal, CyclicPrefix::Extended] {
            for ports in Ports::ALL {
                for sfn in [0, 1, 2, 3, 422, 1023] {
                    let cell = Cell {
                        pci: 301,
                        bandwidth: Bandwidth::ALL[3],
                        ports,
                        cp,
                        phich_duration: PhichDuration::Extended,
                        phich_resource: PhichResource::Half,
                    };
                    let symbols = encode(&cell, sfn);
                    assert_eq!(symbols.len(), elements(&cell).len(), "every symbol has its resource element");
                    let soft: Vec<Soft> = symbols
                        .iter()
                        .flatten()
                        .flat_map(|symbol| [symbol.re, symbol.im].map(|level| (60.0 * level) as Soft))
                        .collect();
                    let found = decode(cell.pci, &soft, &mut Viterbi::default());
                    assert_eq!(found, Some(Broadcast { mib: Mib::new(&cell, sfn), ports, sfn }));
                }
            }
        }
    }
}
