//! Log masks: the log codes of one equipment that a modem sends, one bit per item.

use crate::packet::LogCode;

/// Number of equipment ids that a log code can have.
pub const EQUIPMENTS: usize = 16;
/// Maximum number of items of an equipment: a log code has twelve bits for the item.
pub const MAX_ITEMS: u32 = 0x1000;

/// Log mask: the set of log codes of one equipment that are switched on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mask {
    equipment: u8,
    items: u32,
    bits: Vec<u8>,
}

impl Mask {
    /// A mask with all codes off, for an equipment with `items` items (at most [`MAX_ITEMS`]).
    pub fn off(equipment: u8, items: u32) -> Mask {
        let items = items.min(MAX_ITEMS);
        Mask { equipment, items, bits: vec![0; bytes_of(items)] }
    }

    /// Creates a mask that turns on the codes in `codes` that belong to this equipment and have an item number below
    /// `items`.
    pub fn of(equipment: u8, items: u32, codes: impl IntoIterator<Item = LogCode>) -> Mask {
        let mut mask = Mask::off(equipment, items);
        for code in codes {
            if mask.has_room_for(code) {
                let item = code.item() as usize;
                mask.bits[item / 8] |= 1 << (item % 8);
            }
        }
        mask
    }

    /// Reads a mask from bytes; `None` if there are too few bytes for the items, or more than [`MAX_ITEMS`] items. Bits
    /// beyond the items are cleared.
    pub fn read(equipment: u8, items: u32, bytes: &[u8]) -> Option<Mask> {
        let mut bits = bytes.get(..bytes_of(items)).filter(|_| items <= MAX_ITEMS)?.to_vec();
        if let Some(last) = bits.last_mut()
            && !items.is_multiple_of(8)
        {
            *last &= (1 << (items % 8)) - 1;
        }
        Some(Mask { equipment, items, bits })
    }

    /// The equipment id.
    pub fn equipment(&self) -> u8 {
        self.equipment
    }

    /// Number of items in the mask.
    pub fn items(&self) -> u32 {
        self.items
    }

    /// Bytes of the mask: item `n` is bit `n % 8` of byte `n / 8`.
    pub fn bytes(&self) -> &[u8] {
        &self.bits
    }

    /// Whether the mask has a bit for this code.
    pub fn has_room_for(&self, code: LogCode) -> bool {
        code.equipment() == self.equipment && code.item() < self.items
    }

    /// Whether a code is on.
    pub fn has(&self, code: LogCode) -> bool {
        let item = code.item() as usize;
        self.has_room_for(code) && self.bits[item / 8] >> (item % 8) & 1 == 1
    }

    /// The log codes that are on.
    pub fn codes(&self) -> impl Iterator<Item = LogCode> {
        let first = u16::from(self.equipment) << 12;
        (0..self.items as u16).map(move |item| LogCode(first | item)).filter(|&code| self.has(code))
    }

    /// Whether no code is on.
    pub fn is_off(&self) -> bool {
        self.bits.iter().all(|&byte| byte == 0)
    }

    /// Whether both masks turn the same codes on.
    pub fn is_same(&self, other: &Mask) -> bool {
        let common = self.bits.len().min(other.bits.len());
        let ((own, own_rest), (others, others_rest)) =
            (self.bits.split_at(common), other.bits.split_at(common));
        let is_off = self.is_off() && other.is_off();
        let is_rest_off = own_rest.iter().chain(others_rest).all(|&byte| byte == 0);
        is_off || (self.equipment == other.equipment && own == others && is_rest_off)
    }
}

fn bytes_of(items: u32) -> usize {
    items.div_ceil(8) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_a_bit_of_its_equipment() {
        let mask = Mask::of(0xB, 0x1FF, [LogCode(0xB139), LogCode(0xB821), LogCode(0x412F)]);
        assert_eq!(mask.bytes().len(), 64);
        assert_eq!((mask.bytes()[39], mask.bytes().iter().map(|byte| byte.count_ones()).sum()), (1 << 1, 1));
        assert!(
            mask.has(LogCode(0xB139)) && !mask.has(LogCode(0x4139)) && !mask.has_room_for(LogCode(0xB821))
        );
        assert_eq!(Mask::read(0xB, 0x1FF, mask.bytes()), Some(mask));
    }

    #[test]
    fn bits_beyond_the_items_and_missing_bytes_mean_nothing() {
        let mask = Mask::read(0xB, 4, &[0xFF]).unwrap();
        assert_eq!(mask.codes().map(|code| code.0).collect::<Vec<_>>(), [0xB000, 0xB001, 0xB002, 0xB003]);
        assert_eq!((Mask::read(0xB, 9, &[0xFF]), Mask::read(0xB, 0x1001, &[0; 1_000])), (None, None));
        assert!(Mask::off(1, u32::MAX).is_off());
    }

    #[test]
    fn masks_are_the_same_whatever_room_they_have() {
        let of = |items, codes: &[u16]| Mask::of(0xB, items, codes.iter().map(|&code| LogCode(code)));
        assert!(of(0x200, &[0xB139]).is_same(&of(0xA00, &[0xB139])));
        assert!(!of(0x200, &[0xB139]).is_same(&of(0xA00, &[0xB139, 0xB97F])));
        assert!(!of(0x200, &[0xB139]).is_same(&of(0x200, &[0xB138])));
        assert!(!Mask::of(4, 0x200, [LogCode(0x4139)]).is_same(&of(0x200, &[0xB139])));
    }
}
