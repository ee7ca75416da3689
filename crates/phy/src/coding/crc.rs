//! Cyclic redundancy checks, and the masks that mark the receiver of a word.

/// CRC of up to 24 bits, with an initial register of zero.
///
/// Source: TS 36.212 §5.1.1
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crc {
    /// Generator polynomial without its highest term.
    poly: u32,
    width: u32,
}

/// CRC-16, D^16 + D^12 + D^5 + 1: downlink control information and PBCH.
///
/// Source: TS 36.212 §5.1.1
pub const CRC16: Crc = Crc { poly: 0x1021, width: 16 };

/// CRC-24A: transport blocks.
///
/// Source: TS 36.212 §5.1.1
pub const CRC24A: Crc = Crc { poly: 0x86_4CFB, width: 24 };

/// CRC-8, D^8 + D^7 + D^4 + D^3 + D + 1: uplink control information.
///
/// Source: TS 36.212 §5.1.1
pub const CRC8: Crc = Crc { poly: 0x9B, width: 8 };

/// Mask on the CRC of format 0 if the device shall transmit on its second antenna port.
///
/// Source: TS 36.212 §5.3.3.2 Table 5.3.3.2-1
pub const SECOND_ANTENNA_MASK: u16 = 0x0001;

/// Masks on the CRC of the PBCH for 1, 2 and 4 antenna ports.
///
/// Source: TS 36.212 §5.3.1.1 Table 5.3.1.1-1
pub const PORT_MASKS: [u16; 3] = [0x0000, 0xFFFF, 0x5555];

impl Crc {
    /// Number of check bits.
    pub const fn width(self) -> u32 {
        self.width
    }

    /// The right-aligned CRC of a sequence of bits (0 or 1).
    pub fn of(self, bits: impl IntoIterator<Item = u8>) -> u32 {
        let mask = (1u32 << self.width) - 1;
        bits.into_iter().fold(0, |register, bit| {
            let top = register >> (self.width - 1) & 1 ^ u32::from(bit & 1);
            (register << 1 & mask) ^ if top == 1 { self.poly } else { 0 }
        })
    }
}

/// Appends to a word of `len` bits (at most 112) its CRC-16, XORed with `mask`: an RNTI on the PDCCH.
///
/// Source: TS 36.212 §5.3.3.2
pub fn attach16(word: u128, len: usize, mask: u16) -> u128 {
    word << 16 | u128::from(crc16(word, len) ^ mask)
}

/// The mask of a received word with CRC-16, if the word has no bit errors. `len` excludes the CRC.
///
/// Source: TS 36.212 §5.3.3.2
pub fn mask16(with_crc: u128, len: usize) -> u16 {
    crc16(with_crc >> 16, len) ^ with_crc as u16
}

fn crc16(word: u128, len: usize) -> u16 {
    // The initial register is zero, so leading zeros have no effect.
    let word = if len < 128 { word & ((1 << len) - 1) } else { word };
    let bytes = word.to_be_bytes();
    bytes[bytes.len() - len.div_ceil(8).min(bytes.len())..]
        .iter()
        .fold(0, |register, byte| register << 8 ^ OF_BYTES[usize::from((register >> 8) as u8 ^ byte)])
}

/// CRC-16 of each byte value.
static OF_BYTES: [u16; 256] = {
    let mut table = [0u16; 256];
    let mut byte = 0;
    while byte < table.len() {
        let (mut register, mut bit) = ((byte as u16) << 8, 0);
        while bit < 8 {
            let is_set = register >> 15 == 1;
            register = (register << 1) ^ if is_set { CRC16.poly as u16 } else { 0 };
            bit += 1;
        }
        table[byte] = register;
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bits_of(text: &[u8]) -> impl Iterator<Item = u8> {
        text.iter().flat_map(|byte| (0..8).rev().map(move |at| byte >> at & 1))
    }

    #[test]
    fn checks_of_the_usual_nine_digits() {
        // Check values of CRC-16/XMODEM, CRC-24/LTE-A and CRC-8/LTE in the CRC catalogue.
        assert_eq!(CRC16.of(bits_of(b"123456789")), 0x31C3);
        assert_eq!(CRC24A.of(bits_of(b"123456789")), 0xCD_E703);
        assert_eq!(CRC8.of(bits_of(b"123456789")), 0xEA);
    }

    proptest! {
        #[test]
        fn bytes_and_bits_give_the_same_check(word in any::<u128>(), len in 0usize..=128) {
            let bits = super::super::word_bits(word, len);
            prop_assert_eq!(u32::from(crc16(word, len)), CRC16.of(bits));
        }

        #[test]
        fn the_mask_comes_back(word in any::<u64>(), len in 1usize..=64, mask in any::<u16>()) {
            let word = u128::from(word) & ((1 << len) - 1);
            prop_assert_eq!(mask16(attach16(word, len, mask), len), mask);
        }
    }
}
