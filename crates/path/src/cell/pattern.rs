//! TDD patterns: which symbols of a slot are downlink and which are uplink.

use std::fmt;

/// Number of OFDM symbols of a slot with the normal cyclic prefix.
///
/// Source: TS 38.211 §4.3.2 Table 4.3.2-1
pub const SYMBOLS: u8 = 14;

/// Symbols of one slot. The remaining symbols of the 14 are the guard period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotSymbols {
    /// Number of downlink symbols, at the start of the slot.
    pub downlink: u8,
    /// Number of uplink symbols, at the end of the slot.
    pub uplink: u8,
}

impl SlotSymbols {
    const DOWNLINK: SlotSymbols = SlotSymbols { downlink: SYMBOLS, uplink: 0 };
    const UPLINK: SlotSymbols = SlotSymbols { downlink: 0, uplink: SYMBOLS };
    /// A slot of an FDD carrier, whose two directions have their own frequencies.
    const BOTH: SlotSymbols = SlotSymbols { downlink: SYMBOLS, uplink: SYMBOLS };

    /// Whether all symbols of the slot are uplink symbols. Only such slots carry uplink data.
    ///
    /// Chosen: the few uplink symbols of a special slot carry sounding and random access, as in deployed cells.
    pub fn is_uplink(self) -> bool {
        self.uplink == SYMBOLS
    }
}

/// Directions of a carrier's slots, repeated for ever.
///
/// Source: TS 38.213 §11.1
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    slots: Vec<SlotSymbols>,
}

/// Error of a text that is not a TDD pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatternError {
    /// The text contains a character other than `D`, `S`, `U` and space.
    Letter(char),
    /// A part of the text is not downlink slots, at most one special slot and uplink slots, in this order.
    Order(String),
    /// The symbols of a special slot do not sum to 14.
    Symbols([u8; 3]),
    /// The pattern has no slot of this direction, `D` or `U`.
    Lacks(char),
    /// The duration of a part, in µs, is none of the standard's periods.
    Period(u32),
    /// The duration of the whole pattern, in µs, does not divide 20 ms.
    Total(u32),
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |us: u32| f64::from(us) / 1e3;
        match self {
            PatternError::Letter(letter) => {
                write!(f, "contains `{letter}`; use D (downlink), S (special) and U (uplink), such as DDDSU")
            }
            PatternError::Order(part) => write!(
                f,
                "has the part `{part}`; a part has D slots, then at most one S slot, then U slots, such as DDDSU"
            ),
            PatternError::Symbols([downlink, guard, uplink]) => write!(
                f,
                "is [{downlink}, {guard}, {uplink}], which are {} symbols; downlink, guard and uplink symbols \
                 must be 14 in total, such as [10, 2, 2]",
                u32::from(*downlink) + u32::from(*guard) + u32::from(*uplink)
            ),
            PatternError::Lacks('U') => {
                write!(f, "has no uplink slot, so acknowledgements could not be sent; add a U slot")
            }
            PatternError::Lacks(letter) => write!(f, "has no {letter} slot; add one"),
            PatternError::Period(us) => write!(
                f,
                "has a part of {} ms; a part must take 0.5, 0.625, 1, 1.25, 2, 2.5, 3, 4, 5 or 10 ms",
                ms(*us)
            ),
            PatternError::Total(us) => {
                write!(f, "takes {} ms; its duration must divide 20 ms", ms(*us))
            }
        }
    }
}

impl PatternError {
    /// Whether the error is about the symbols of a special slot, not about the text of the pattern.
    pub fn is_about_symbols(&self) -> bool {
        matches!(self, PatternError::Symbols(_))
    }
}

/// Permitted durations of one part in µs.
///
/// Source: TS 38.331 §6.3.2 (dl-UL-TransmissionPeriodicity, and its extension for 3 ms and 4 ms)
const PERIODS_US: [u32; 10] = [500, 625, 1_000, 1_250, 2_000, 2_500, 3_000, 4_000, 5_000, 10_000];

impl Pattern {
    /// The slots of an FDD carrier: each slot carries both directions.
    pub fn fdd() -> Pattern {
        Pattern { slots: vec![SlotSymbols::BOTH] }
    }

    /// Parses a TDD pattern such as `DDDSU`, or two patterns that alternate, such as `DDDSUU DDDD` (a downlink slot
    /// after an uplink slot also starts the second pattern). `special` contains the downlink, guard and uplink symbols
    /// of special slots, and `slot_us` is the duration of a slot in µs.
    ///
    /// # Errors
    /// The text is not a pattern of the standard; the error contains the reason and the remedy.
    pub fn parse(text: &str, special: [u8; 3], slot_us: u32) -> Result<Pattern, PatternError> {
        let [downlink, guard, uplink] = special;
        if u32::from(downlink) + u32::from(guard) + u32::from(uplink) != u32::from(SYMBOLS) {
            return Err(PatternError::Symbols(special));
        }
        if let Some(letter) = text.chars().find(|letter| !"DSU ".contains(*letter)) {
            return Err(PatternError::Letter(letter));
        }
        let parts = parts(text);
        for part in &parts {
            let rest = part.trim_start_matches('D');
            let rest = rest.strip_prefix('S').unwrap_or(rest);
            if !rest.trim_start_matches('U').is_empty() || part.is_empty() {
                return Err(PatternError::Order(part.clone()));
            }
            let us = part.len() as u32 * slot_us;
            if !PERIODS_US.contains(&us) {
                return Err(PatternError::Period(us));
            }
        }
        if parts.len() > 2 {
            return Err(PatternError::Order(parts[2].clone()));
        }
        let slots: Vec<SlotSymbols> = parts
            .iter()
            .flat_map(|part| part.chars())
            .map(|letter| match letter {
                'D' => SlotSymbols::DOWNLINK,
                'U' => SlotSymbols::UPLINK,
                _ => SlotSymbols { downlink, uplink },
            })
            .collect();
        if !slots.iter().any(|slot| slot.downlink == SYMBOLS) {
            return Err(PatternError::Lacks('D'));
        }
        if !slots.iter().any(|slot| slot.is_uplink()) {
            return Err(PatternError::Lacks('U'));
        }
        let total_us = slots.len() as u32 * slot_us;
        if !20_000_u32.is_multiple_of(total_us) {
            return Err(PatternError::Total(total_us));
        }
        Ok(Pattern { slots })
    }

    /// A pattern with these directions, even if the standard does not permit it.
    #[cfg(test)]
    pub(super) fn of(text: &str) -> Pattern {
        let slot = |letter| match letter {
            'D' => SlotSymbols::DOWNLINK,
            'U' => SlotSymbols::UPLINK,
            'S' => SlotSymbols { downlink: 10, uplink: 2 },
            _ => SlotSymbols::BOTH,
        };
        Pattern { slots: text.chars().map(slot).collect() }
    }

    /// Number of slots after which the pattern repeats.
    pub fn period(&self) -> u64 {
        self.slots.len() as u64
    }

    /// The symbols of a slot.
    pub fn slot(&self, index: u64) -> SlotSymbols {
        self.slots[(index % self.period()) as usize]
    }

    /// The first slot from `from` on that carries uplink data and acknowledgements.
    pub fn uplink_from(&self, from: u64) -> u64 {
        self.first_from(from, |slot| self.slot(slot).is_uplink())
    }

    /// The first slot from `from` on that fits. Whether a slot fits must repeat with the pattern, and a slot of the pattern
    /// must fit.
    pub fn first_from(&self, from: u64, fits: impl Fn(u64) -> bool) -> u64 {
        let found = (from..from + self.period()).find(|&slot| fits(slot));
        found.expect("a pattern has slots of both directions")
    }

    /// The last slot before `before` that fits; `None` if there is none from slot 0 on. Whether a slot fits must repeat with
    /// the pattern.
    pub fn last_before(&self, before: u64, fits: impl Fn(u64) -> bool) -> Option<u64> {
        (0..before).rev().take(self.slots.len()).find(|&slot| fits(slot))
    }

    /// Mean of a value over the slots of the pattern.
    pub fn mean(&self, value: impl Fn(u64) -> f64) -> f64 {
        (0..self.period()).map(value).sum::<f64>() / self.period() as f64
    }

    /// Minimum number of slots in which `count` slots that fit are contained, from the first to the last of them. Whether a
    /// slot fits must repeat with the pattern, and a slot of the pattern must fit.
    pub fn shortest(&self, count: u64, fits: impl Fn(u64) -> bool) -> u64 {
        let fitting: Vec<u64> = (0..self.period()).filter(|&slot| fits(slot)).collect();
        let of_period = fitting.len() as u64;
        let place = |index: u64| fitting[(index % of_period) as usize] + index / of_period * self.period();
        (0..of_period).map(|first| place(first + count.max(1) - 1) + 1 - place(first)).min().unwrap_or(0)
    }
}

/// The parts of a text: separated by spaces, and by a change from uplink to downlink.
fn parts(text: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let mut part = String::new();
        for letter in word.chars() {
            if part.ends_with('U') && letter != 'U' {
                parts.push(std::mem::take(&mut part));
            }
            part.push(letter);
        }
        parts.push(part);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Pattern, PatternError> {
        Pattern::parse(text, [10, 2, 2], 500)
    }

    #[test]
    fn a_pattern_gives_the_symbols_of_each_slot() {
        let pattern = parse("DDDSU").unwrap();
        let downlink: Vec<u8> = (0..6).map(|slot| pattern.slot(slot).downlink).collect();
        let uplink: Vec<u8> = (0..6).map(|slot| pattern.slot(slot).uplink).collect();
        assert_eq!((downlink, uplink), (vec![14, 14, 14, 10, 0, 14], vec![0, 0, 0, 2, 14, 0]));
        let has_downlink = |slot| pattern.slot(slot).downlink > 0;
        assert_eq!((pattern.uplink_from(5), pattern.first_from(4, has_downlink)), (9, 5));
        let before = |slot| pattern.last_before(slot, has_downlink);
        assert_eq!([0, 1, 5, 6].map(before), [None, Some(0), Some(3), Some(5)]);
    }

    #[test]
    fn two_patterns_alternate_with_or_without_a_space() {
        assert_eq!(parse("DDDSUU DDDD"), parse("DDDSUUDDDD"));
        assert_eq!(parse("DDDSUUDDDD").unwrap().period(), 10);
    }

    #[test]
    fn a_text_that_is_no_pattern_is_refused_with_reason_and_remedy() {
        let long = "D".repeat(13);
        for (text, reason) in [
            ("DDXSU", "contains `X`"),
            ("", "has no D slot"),
            ("DSSU", "has the part `DSSU`"),
            ("DUSD", "has the part `SD`"),
            ("DDDD", "has no uplink slot"),
            ("UUUU", "has no D slot"),
            (long.as_str(), "has a part of 6.5 ms"),
            ("DDDDDU", "takes 3 ms; its duration must divide 20 ms"),
            ("DU DU DU", "has the part `DU`"),
        ] {
            let refusal = parse(text).expect_err(text).to_string();
            assert!(refusal.starts_with(reason), "{text}: {refusal}");
        }
        let refusal = Pattern::parse("DDDSU", [10, 2, 3], 500).unwrap_err().to_string();
        assert!(refusal.starts_with("is [10, 2, 3], which are 15 symbols"), "{refusal}");
    }
}
