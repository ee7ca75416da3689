//! Amounts with their unit in the type: [`Bytes`], [`Bits`], [`Rate`].

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
    /// None.
    pub const ZERO: Bytes = Bytes(0);

    /// The same amount in bits.
    pub const fn bits(self) -> Bits {
        Bits(self.0.saturating_mul(8))
    }

    /// This amount times `factor`, rounded to the nearest byte; never negative.
    pub fn scaled(self, factor: f64) -> Bytes {
        Bytes(libm::round(self.0 as f64 * factor) as u64)
    }
}

impl Bits {
    /// None.
    pub const ZERO: Bits = Bits(0);

    /// Whole bytes, rounded down.
    pub const fn bytes(self) -> Bytes {
        Bytes(self.0 / 8)
    }
}

impl Rate {
    /// Nothing moves.
    pub const ZERO: Rate = Rate(0);

    /// `bps` bits per second.
    pub const fn from_bps(bps: u64) -> Rate {
        Rate(bps)
    }

    /// `bps` bits per second, rounded; negative or NaN gives zero.
    pub fn from_bps_f64(bps: f64) -> Rate {
        Rate(libm::round(bps) as u64)
    }

    /// `mbps` megabits (10⁶ bits) per second, rounded to the bit; negative or NaN gives zero.
    pub fn from_mbps(mbps: f64) -> Rate {
        Rate::from_bps_f64(mbps * 1e6)
    }

    /// The rate that moves `amount` in `span`; zero if `span` is zero.
    pub fn from_bytes_per(amount: Bytes, span: Duration) -> Rate {
        let nanos = span.as_nanos();
        if nanos == 0 {
            return Rate::ZERO;
        }
        Rate((u128::from(amount.0) * 8_000_000_000 / nanos).min(u128::from(u64::MAX)) as u64)
    }

    /// Bits per second.
    pub const fn as_bps(self) -> u64 {
        self.0
    }

    /// Megabits (10⁶ bits) per second.
    pub fn as_mbps(self) -> f64 {
        self.0 as f64 * 1e-6
    }

    /// What this rate moves in `span`, in whole bytes rounded down: a bandwidth-delay product.
    pub fn bytes_in(self, span: Duration) -> Bytes {
        Bytes((u128::from(self.0) * span.as_nanos() / 8_000_000_000).min(u128::from(u64::MAX)) as u64)
    }

    /// How long `amount` takes at this rate, rounded up to the nanosecond; [`Duration::MAX`] at rate zero.
    pub fn time_for(self, amount: Bytes) -> Duration {
        if self.0 == 0 {
            return Duration::MAX;
        }
        let nanos = (u128::from(amount.0) * 8_000_000_000).div_ceil(u128::from(self.0));
        Duration::from_nanos(nanos.min(u128::from(u64::MAX)) as u64)
    }

    /// This rate times `gain`, rounded to the bit per second; never negative.
    pub fn scaled(self, gain: f64) -> Rate {
        Rate::from_bps_f64(self.0 as f64 * gain)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3} Mbit/s", self.as_mbps())
    }
}

macro_rules! saturating_amount {
    ($unit:ident) => {
        impl Add for $unit {
            type Output = $unit;
            fn add(self, other: $unit) -> $unit {
                $unit(self.0.saturating_add(other.0))
            }
        }
        impl AddAssign for $unit {
            fn add_assign(&mut self, other: $unit) {
                *self = *self + other;
            }
        }
        impl Sub for $unit {
            type Output = $unit;
            fn sub(self, other: $unit) -> $unit {
                $unit(self.0.saturating_sub(other.0))
            }
        }
        impl SubAssign for $unit {
            fn sub_assign(&mut self, other: $unit) {
                *self = *self - other;
            }
        }
        impl Sum for $unit {
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
    fn a_rate_moves_what_it_says() {
        let rate = Rate::from_mbps(12.0);
        assert_eq!(rate.time_for(Bytes(1500)), Duration::from_millis(1));
        assert_eq!(rate.bytes_in(Duration::from_millis(10)), Bytes(15_000));
        assert_eq!(Rate::from_bytes_per(Bytes(1500), Duration::from_millis(1)), rate);
    }

    #[test]
    fn edges_are_defined() {
        assert_eq!(Rate::ZERO.time_for(Bytes(1)), Duration::MAX);
        assert_eq!(Rate::from_bytes_per(Bytes(1), Duration::ZERO), Rate::ZERO);
        assert_eq!(Rate::from_mbps(-1.0), Rate::ZERO);
        assert_eq!(Bytes(3) - Bytes(5), Bytes::ZERO);
    }
}
