//! IP addresses inside an emulator: the address blocks of each device and of the far side, also for nested emulators.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A block of addresses, IPv4 and IPv6. The outermost block is [`Space::ROOT`]. Each device of an emulator has its own
/// block within the emulator's block. Emulators that are started on a device take their blocks from the device's block.
/// Plain routes therefore reach every address of every nested emulator, without address translation.
///
/// A block is written as the numbers of its devices, from the outermost to the innermost: `2.1` is the block of the first
/// device of an emulator that runs on the second device of another emulator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Space {
    depth: u8,
    slots: [u8; Space::DEEPEST],
}

/// First address of the outermost IPv4 block.
///
/// Source: RFC 6598 §7 (shared address space, 100.64.0.0/10)
const ROOT_V4: Ipv4Addr = Ipv4Addr::new(100, 64, 0, 0);
const ROOT_V4_BITS: u8 = 10;

/// First address of the outermost IPv6 block.
///
/// Source: RFC 4193 §3.1 (unique local addresses). Chosen: the global ID spells `airpa`.
const ROOT_V6: Ipv6Addr = Ipv6Addr::new(0xfd61, 0x6972, 0x7061, 0, 0, 0, 0, 0);
const ROOT_V6_BITS: u8 = 48;

/// Number of address bits that distinguish the devices of one emulator.
const SLOT_BITS_V4: u8 = 5;
const SLOT_BITS_V6: u8 = 16;

impl Space {
    /// The outermost block.
    pub const ROOT: Space = Space { depth: 0, slots: [0; Space::DEEPEST] };

    /// Maximum nesting depth of emulators.
    ///
    /// Chosen: the IPv4 block has 22 bits for device numbers, which is enough for four levels of 5 bits.
    pub const DEEPEST: usize = 4;

    /// Maximum number of devices of all emulators that run directly in one block.
    pub const MAX_DEVICES: u8 = (1 << SLOT_BITS_V4) - 1;

    /// Returns the block of device `slot`, counted from 1; `None` if `slot` is out of range or the block is already at
    /// the maximum depth.
    pub fn device(self, slot: u8) -> Option<Space> {
        let depth = usize::from(self.depth);
        if slot == 0 || slot > Space::MAX_DEVICES || depth == Space::DEEPEST {
            return None;
        }
        let mut device = Space { depth: self.depth + 1, ..self };
        device.slots[depth] = slot;
        Some(device)
    }

    /// Returns the number of the device of `self` whose block contains this address.
    pub fn slot_of(self, address: IpAddr) -> Option<u8> {
        if self.depth() == Space::DEEPEST {
            return None;
        }
        let (bits, inside, shift) = match address {
            IpAddr::V4(address) => {
                let inside = u128::from(u32::from(address) ^ u32::from(self.network_v4()));
                (32, inside, SLOT_BITS_V4)
            }
            IpAddr::V6(address) => (128, u128::from(address) ^ u128::from(self.network_v6()), SLOT_BITS_V6),
        };
        let length = self.prefix_length(address.is_ipv4());
        if inside >> (bits - length) != 0 {
            return None;
        }
        let slot = (inside >> (bits - length - shift)) & ((1 << shift) - 1);
        u8::try_from(slot).ok().filter(|&slot| slot > 0)
    }

    /// Returns whether the block contains this address.
    pub fn contains(self, address: IpAddr) -> bool {
        match address {
            IpAddr::V4(address) => {
                let outside = u32::from(address) ^ u32::from(self.network_v4());
                outside >> (32 - self.prefix_length(true)) == 0
            }
            IpAddr::V6(address) => {
                let outside = u128::from(address) ^ u128::from(self.network_v6());
                outside >> (128 - self.prefix_length(false)) == 0
            }
        }
    }

    /// Returns the IPv4 address of the block's owner: a device, or the far side for the outermost block.
    pub fn address_v4(self) -> Ipv4Addr {
        Ipv4Addr::from(u32::from(self.network_v4()) + 1)
    }

    /// Returns the IPv6 address of the block's owner, see [`Space::address_v4`].
    pub fn address_v6(self) -> Ipv6Addr {
        Ipv6Addr::from(u128::from(self.network_v6()) + 1)
    }

    /// Returns the IPv4 and the IPv6 address of the block's owner.
    pub fn addresses(self) -> [IpAddr; 2] {
        [IpAddr::V4(self.address_v4()), IpAddr::V6(self.address_v6())]
    }

    /// Returns the block as an IPv4 and an IPv6 network: first address and prefix length.
    pub fn networks(self) -> [(IpAddr, u8); 2] {
        [
            (IpAddr::V4(self.network_v4()), self.prefix_length(true)),
            (IpAddr::V6(self.network_v6()), self.prefix_length(false)),
        ]
    }

    /// Returns the number of emulators that enclose this block's owner.
    pub fn depth(self) -> usize {
        usize::from(self.depth)
    }

    fn network_v4(self) -> Ipv4Addr {
        let mut address = u32::from(ROOT_V4);
        let mut shift = 32 - ROOT_V4_BITS;
        for &slot in self.slots() {
            shift -= SLOT_BITS_V4;
            address |= u32::from(slot) << shift;
        }
        Ipv4Addr::from(address)
    }

    fn network_v6(self) -> Ipv6Addr {
        let mut address = u128::from(ROOT_V6);
        let mut shift = 128 - ROOT_V6_BITS;
        for &slot in self.slots() {
            shift -= SLOT_BITS_V6;
            address |= u128::from(slot) << shift;
        }
        Ipv6Addr::from(address)
    }

    fn prefix_length(self, is_v4: bool) -> u8 {
        match is_v4 {
            true => ROOT_V4_BITS + SLOT_BITS_V4 * self.depth,
            false => ROOT_V6_BITS + SLOT_BITS_V6 * self.depth,
        }
    }

    fn slots(&self) -> &[u8] {
        &self.slots[..usize::from(self.depth)]
    }
}

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slots: Vec<String> = self.slots().iter().map(u8::to_string).collect();
        f.write_str(&slots.join("."))
    }
}

/// The text is not a valid address block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is not a block of addresses; blocks are numbers separated by points (`2.1`)")]
pub struct NotASpace;

impl FromStr for Space {
    type Err = NotASpace;

    fn from_str(text: &str) -> Result<Space, NotASpace> {
        let slots = text.split('.').filter(|_| !text.is_empty());
        slots
            .map(|slot| slot.parse::<u8>().map_err(|_| NotASpace))
            .try_fold(Space::ROOT, |space, slot| space.device(slot?).ok_or(NotASpace))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn blocks_lie_in_blocks() {
        assert_eq!(Space::ROOT.addresses().map(|it| it.to_string()), ["100.64.0.1", "fd61:6972:7061::1"]);
        let first = Space::ROOT.device(1).unwrap();
        assert_eq!(first.addresses().map(|it| it.to_string()), ["100.66.0.1", "fd61:6972:7061:1::1"]);
        let nested = first.device(31).unwrap();
        assert_eq!(
            nested.networks().map(|(address, length)| format!("{address}/{length}")),
            ["100.67.240.0/20", "fd61:6972:7061:1:1f::/80"]
        );
        assert_eq!(Space::ROOT.device(0), None);
        assert_eq!(Space::ROOT.device(32), None);
        let deepest = nested.device(1).and_then(|it| it.device(2)).unwrap();
        assert_eq!((deepest.device(1), deepest.to_string().as_str()), (None, "1.31.1.2"));
        assert_eq!(Space::ROOT.slot_of("8.8.8.8".parse().unwrap()), None);
        assert_eq!(
            Space::ROOT.slot_of(IpAddr::V4(Space::ROOT.address_v4())),
            None,
            "the far side is no device"
        );
    }

    #[test]
    fn only_blocks_are_read() {
        assert_eq!("".parse(), Ok(Space::ROOT));
        for wrong in ["0", "32", "1.", ".1", "1.2.3.4.5", "x", "1 2", "256"] {
            assert_eq!(wrong.parse::<Space>(), Err(NotASpace), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn every_address_of_a_block_belongs_to_its_device(
            slots in proptest::collection::vec(1u8..=31, 1..=Space::DEEPEST),
        ) {
            let mut space = Space::ROOT;
            for &slot in &slots {
                let device = space.device(slot).unwrap();
                for address in device.addresses() {
                    prop_assert_eq!(space.slot_of(address), Some(slot));
                    prop_assert_eq!(device.slot_of(address), None);
                }
                space = device;
            }
            prop_assert_eq!(space.to_string().parse(), Ok(space));
            for address in space.addresses() {
                prop_assert_eq!(Space::ROOT.slot_of(address), Some(slots[0]));
            }
        }
    }
}
