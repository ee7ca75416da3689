//! Quantities with their unit in the type: [`Bytes`], [`Bits`], [`Rate`].

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::time::Duration;

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

/// A number of bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bits(pub u64);

/// A data rate in bits per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

impl Bytes {
    /// Zero bytes.
    pub const ZERO: Bytes = Bytes(0);

    /// The same amount in bits.
    #[inline]
    pub const fn bits(self) -> Bits {
        Bits(self.0.saturating_mul(8))
    }

    /// This amount times `factor`, rounded to the nearest byte; never negative.
    #[inline]
    pub fn scaled(self, factor: f64) -> Bytes {
        Bytes(round(self.0 as f64 * factor))
    }
}

impl Bits {
    /// Zero bits.
    pub const ZERO: Bits = Bits(0);

    /// The same amount in whole bytes, rounded down.
    #[inline]
    pub const fn bytes(self) -> Bytes {
        Bytes(self.0 / 8)
    }
}

impl Rate {
    /// Rate zero.
    pub const ZERO: Rate = Rate(0);

    /// The rate of `bps` bits per second.
    #[inline]
    pub const fn from_bps(bps: u64) -> Rate {
        Rate(bps)
    }

    /// The rate of `bps` bits per second, rounded to an integer; zero if `bps` is negative or NaN.
    #[inline]
    pub fn from_bps_f64(bps: f64) -> Rate {
        Rate(round(bps))
    }

    /// The rate of `mbps` megabits (10⁶ bits) per second, rounded to the bit per second; zero if `mbps` is negative or
    /// NaN.
    #[inline]
    pub fn from_mbps(mbps: f64) -> Rate {
        Rate::from_bps_f64(mbps * 1e6)
    }

    /// The rate that transfers `amount` in the time `span`; zero if `span` is zero.
    #[inline]
    pub fn from_bytes_per(amount: Bytes, span: Duration) -> Rate {
        match nanos(span) {
            0 => Rate::ZERO,
            nanos => Rate(scale(amount.0, BIT_NANOS_PER_BYTE, nanos)),
        }
    }

    /// The rate in bits per second.
    #[inline]
    pub const fn as_bps(self) -> u64 {
        self.0
    }

    /// The rate in megabits (10⁶ bits) per second.
    #[inline]
    pub fn as_mbps(self) -> f64 {
        self.0 as f64 * 1e-6
    }

    /// Bytes transmitted in the time `span` at this rate, rounded down: a bandwidth-delay product.
    #[inline]
    pub fn bytes_in(self, span: Duration) -> Bytes {
        Bytes(scale(self.0, nanos(span), BIT_NANOS_PER_BYTE))
    }

    /// Transmission time of `amount` at this rate, rounded up to the nanosecond; [`Duration::MAX`] at rate zero.
    #[inline]
    pub fn time_for(self, amount: Bytes) -> Duration {
        if self.0 == 0 {
            return Duration::MAX;
        }
        let nanos = scale(amount.0, BIT_NANOS_PER_BYTE, self.0);
        let is_exact = amount.0.wrapping_mul(BIT_NANOS_PER_BYTE) == nanos.wrapping_mul(self.0);
        Duration::from_nanos(nanos.saturating_add(u64::from(!is_exact)))
    }

    /// This rate times `gain`, rounded to the bit per second; never negative.
    #[inline]
    pub fn scaled(self, gain: f64) -> Rate {
        Rate::from_bps_f64(self.0 as f64 * gain)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3} Mbit/s", self.as_mbps())
    }
}

/// Conversion factor: 8 bits per byte times 10⁹ ns per second.
const BIT_NANOS_PER_BYTE: u64 = 8_000_000_000;

/// The nanoseconds of `span`, at most 584 years.
#[inline]
fn nanos(span: Duration) -> u64 {
    span.as_secs().saturating_mul(1_000_000_000).saturating_add(u64::from(span.subsec_nanos()))
}

/// `a · b / divisor`, rounded down, saturating. Usual products fit into 64 bits, where the division is several times
/// faster than in 128 bits.
#[inline]
fn scale(a: u64, b: u64, divisor: u64) -> u64 {
    match a.checked_mul(b) {
        Some(product) => product / divisor,
        None => (u128::from(a) * u128::from(b) / u128::from(divisor)).min(u128::from(u64::MAX)) as u64,
    }
}

/// Returns `libm::round(amount) as u64`, several times faster: halves are rounded up; a negative `amount` or NaN gives
/// zero.
#[inline]
fn round(amount: f64) -> u64 {
    // `as` truncates, saturates and maps NaN to zero. Every `f64` from 2⁵³ on is a whole number.
    let whole = amount as u64;
    whole.saturating_add(u64::from(amount - whole as f64 >= 0.5))
}

macro_rules! saturating_amount {
    ($unit:ident) => {
        impl Add for $unit {
            type Output = $unit;
            #[inline]
            fn add(self, other: $unit) -> $unit {
                $unit(self.0.saturating_add(other.0))
            }
        }
        impl AddAssign for $unit {
            #[inline]
            fn add_assign(&mut self, other: $unit) {
                *self = *self + other;
            }
        }
        impl Sub for $unit {
            type Output = $unit;
            #[inline]
            fn sub(self, other: $unit) -> $unit {
                $unit(self.0.saturating_sub(other.0))
            }
        }
        impl SubAssign for $unit {
            #[inline]
            fn sub_assign(&mut self, other: $unit) {
                *self = *self - other;
            }
        }
        impl Sum for $unit {
            #[inline]
            fn sum<I: Iterator<Item = $unit>>(amounts: I) -> $unit {
                amounts.fold($unit(0), |total, amount| total + amount)
            }
        }
    };
}

saturating_amount!(Bytes);
saturating_amount!(Bits);
saturating_amount!(Rate);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_times_a_duration_gives_its_bytes() {
        let rate = Rate::from_mbps(12.0);
        assert_eq!(rate.time_for(Bytes(1500)), Duration::from_millis(1));
        assert_eq!(rate.bytes_in(Duration::from_millis(10)), Bytes(15_000));
        assert_eq!(Rate::from_bytes_per(Bytes(1500), Duration::from_millis(1)), rate);
    }

    #[test]
    fn huge_amounts_are_as_exact_as_small_ones() {
        let century = Duration::from_secs(3_155_760_000);
        let fast = Rate::from_bps(10_000_000_000);
        assert_eq!(fast.bytes_in(century), Bytes(3_944_700_000_000_000_000));
        assert_eq!(Rate::from_bytes_per(Bytes(u64::MAX), Duration::from_secs(8)), Rate::from_bps(u64::MAX));
        assert_eq!(Rate::from_bps(3).time_for(Bytes(u64::MAX / 8)), Duration::from_nanos(u64::MAX));
        assert_eq!(Rate::from_bps(7).time_for(Bytes(1)), Duration::from_nanos(1_142_857_143), "rounded up");
    }

    #[test]
    fn rounding_is_that_of_libm() {
        let edges =
            [0.0, 0.5, 1.5, 0.499_999_999_999_999_94, 4_503_599_627_370_496.5, 9e15, 2e19, f64::INFINITY];
        let neighbours = edges.iter().flat_map(|&edge: &f64| [edge.next_down(), edge, edge.next_up()]);
        for amount in neighbours.chain([f64::NAN, -0.5, -7.0, f64::NEG_INFINITY]) {
            assert_eq!(round(amount), libm::round(amount) as u64, "{amount}");
        }
    }

    #[test]
    fn edges_are_defined() {
        assert_eq!(Rate::ZERO.time_for(Bytes(1)), Duration::MAX);
        assert_eq!(Rate::from_bytes_per(Bytes(1), Duration::ZERO), Rate::ZERO);
        assert_eq!(Rate::from_mbps(-1.0), Rate::ZERO);
        assert_eq!(Bytes(3) - Bytes(5), Bytes::ZERO);
    }
}
