//! Time stamps of the modem's clock: ticks of 1.25 ms since 1980, and chips within a tick.

use std::fmt;

/// Units per tick of 1.25 ms: a unit is 1/32 of a chip, and there are 1.2288 million chips per second.
///
/// Differs: decoders in common use count 65,536 units per tick. The times of these decoders are early by up to 0.31 ms.
const UNITS_PER_TICK: u64 = 49_152;
/// Duration of a tick in nanoseconds.
const TICK_NANOS: u64 = 1_250_000;
/// Seconds from 1970-01-01 to 1980-01-06.
const EPOCH_UNIX_SECONDS: u64 = 315_964_800;
/// Minimum time since 1980 for which a clock counts as set (seconds): ten years.
///
/// Chosen: there was no LTE before 2009, and a modem without network time counts from 1980.
const UNSET_BEFORE_SECONDS: u64 = 10 * 365 * 86_400;

/// The time stamp of a log packet in its wire format: 48 bits of ticks, 16 bits of units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp(pub u64);

impl Stamp {
    /// Nanoseconds since 1980-01-06 00:00:00, leap seconds not counted.
    pub fn nanos(self) -> u64 {
        let ticks = self.0 >> 16;
        let units = self.0 & 0xFFFF;
        // 48 bits of ticks cover eleven thousand years, which exceeds 64 bits of nanoseconds. So the product saturates.
        ticks.saturating_mul(TICK_NANOS).saturating_add(units * TICK_NANOS / UNITS_PER_TICK)
    }

    /// Nanoseconds since 1970-01-01 00:00:00, leap seconds not counted.
    pub fn unix_nanos(self) -> u64 {
        self.nanos().saturating_add(EPOCH_UNIX_SECONDS * 1_000_000_000)
    }

    /// Microseconds since 1980-01-06 00:00:00, rounded to the nearest microsecond.
    pub fn micros(self) -> u64 {
        const TICK_MICROS: u64 = TICK_NANOS / 1_000;
        let units = self.0 & 0xFFFF;
        // The microseconds of the ticks have at most 58 bits.
        (self.0 >> 16) * TICK_MICROS + (units * TICK_MICROS + UNITS_PER_TICK / 2) / UNITS_PER_TICK
    }

    /// The stamp of `nanos` nanoseconds since 1980-01-06 00:00:00.
    pub fn from_nanos(nanos: u64) -> Stamp {
        let units = (nanos % TICK_NANOS * UNITS_PER_TICK).div_ceil(TICK_NANOS);
        Stamp((nanos / TICK_NANOS) << 16 | units)
    }

    /// Whether the modem has received the time from a network. If not, its clock counts from 1980.
    pub fn is_set(self) -> bool {
        self.nanos() >= UNSET_BEFORE_SECONDS * 1_000_000_000
    }

    /// Whether the units are fewer than [`UNITS_PER_TICK`]. The stamps of every modem meet this condition.
    pub(crate) fn is_regular(self) -> bool {
        self.0 & 0xFFFF < UNITS_PER_TICK
    }

    /// Time since `earlier` in seconds; `None` if the modem received the network time in between.
    pub fn since(self, earlier: Stamp) -> Option<f64> {
        let span = self.nanos() as i128 - earlier.nanos() as i128;
        (self.is_set() == earlier.is_set()).then_some(span as f64 * 1e-9)
    }
}

/// UTC as `2021-03-07T06:28:02.128221`, to the nearest microsecond.
impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = self.micros();
        let seconds = micros / 1_000_000 + EPOCH_UNIX_SECONDS;
        let (year, month, day) = civil(seconds / 86_400);
        let of_day = seconds % 86_400;
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:06}",
            of_day / 3_600,
            of_day / 60 % 60,
            of_day % 60,
            micros % 1_000_000
        )
    }
}

/// Converts days since 1970-01-01 to a Gregorian date. The computation uses periods of 400 years, and years that start
/// in March.
fn civil(days: u64) -> (u64, u64, u64) {
    const DAYS_PER_ERA: u64 = 146_097;
    /// Number of days from 0000-03-01 to 1970-01-01.
    const SHIFT: u64 = 719_468;
    let days = days + SHIFT;
    let of_era = days % DAYS_PER_ERA;
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = days / DAYS_PER_ERA * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_real_stamp_reads_as_its_reference_does() {
        assert_eq!(Stamp(68_112_019_993_554_611).to_string(), "2021-03-07T06:28:02.128221");
        assert_eq!(Stamp(0).to_string(), "1980-01-06T00:00:00.000000");
        assert!(!Stamp(1_000 << 16).is_set() && Stamp(68_112_019_993_554_611).is_set());
    }

    #[test]
    fn leap_days_are_where_they_belong() {
        for (days, date) in
            [(0, (1970, 1, 1)), (11_016, (2000, 2, 29)), (47_540, (2100, 2, 28)), (47_541, (2100, 3, 1))]
        {
            assert_eq!(civil(days), date);
        }
    }

    #[test]
    fn no_span_reaches_across_the_learning_of_the_time() {
        let unset = Stamp(5 << 16);
        let set = Stamp(68_112_019_993_554_611);
        assert_eq!(set.since(unset), None);
        assert_eq!(Stamp(set.0 + (8 << 16)).since(set), Some(0.01));
    }

    proptest! {
        #[test]
        fn nanoseconds_survive_the_way_there_and_back(nanos in 0u64..2_000_000_000_000_000_000) {
            let back = Stamp::from_nanos(nanos).nanos();
            prop_assert!(back >= nanos && back - nanos < 26, "{nanos} became {back}");
        }

        #[test]
        fn every_stamp_has_a_date(raw in any::<u64>()) {
            prop_assert!(Stamp(raw).to_string().len() >= 26);
        }
    }
}
