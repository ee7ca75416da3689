//! Numbers as text: coordinates, and the labels of ticks.

use std::fmt;

/// A coordinate with at most this many decimals (0 to 2), without trailing zeros. A value that is not finite becomes 0.
pub fn fixed(value: f64, decimals: usize) -> String {
    let factor = [1.0, 10.0, 100.0][decimals.min(2)];
    // The conversion saturates, so that no value gives an exponent or `NaN`.
    let parts = (value * factor).round() as i64;
    Decimal { digits: parts, exponent: -(decimals.min(2) as i32) }.plain("-", "")
}

/// A decimal number: `digits` times ten to the power of `exponent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal {
    pub digits: i64,
    pub exponent: i32,
}

/// Numbers from this power of ten on have an exponent, because they are too long for the ticks of an axis.
const MAX_PLAIN_POWER: i32 = 7;

/// Numbers below this power of ten have an exponent.
const MIN_PLAIN_POWER: i32 = -4;

impl Decimal {
    /// The nearest `f64`, the same on all machines.
    pub fn value(self) -> f64 {
        format!("{}e{}", self.digits, self.exponent).parse().unwrap_or(0.0)
    }

    /// The same number without zeros at the end of its digits.
    fn reduced(self) -> Decimal {
        let mut reduced = self;
        while reduced.digits != 0 && reduced.digits % 10 == 0 {
            reduced = Decimal { digits: reduced.digits / 10, exponent: reduced.exponent + 1 };
        }
        if reduced.digits == 0 { Decimal { digits: 0, exponent: 0 } } else { reduced }
    }

    /// All digits without an exponent.
    fn plain(self, minus: &str, group: &str) -> String {
        let Decimal { digits, exponent } = self.reduced();
        let mut text = digits.unsigned_abs().to_string();
        text.extend(std::iter::repeat_n('0', exponent.max(0) as usize));
        let decimals = (-exponent).max(0) as usize;
        if text.len() <= decimals {
            text.insert_str(0, &"0".repeat(decimals + 1 - text.len()));
        }
        let (whole, fraction) = text.split_at(text.len() - decimals);
        let mut out = String::from(if digits < 0 { minus } else { "" });
        for (at, digit) in whole.chars().enumerate() {
            // Four digits are still read at a glance.
            if at > 0 && whole.len() > 4 && (whole.len() - at) % 3 == 0 {
                out.push_str(group);
            }
            out.push(digit);
        }
        if !fraction.is_empty() {
            out.push('.');
            out.push_str(fraction);
        }
        out
    }

    /// Powers of ten as in print, such as `2.5×10⁷`.
    fn scientific(self) -> String {
        let Decimal { digits, exponent } = self.reduced();
        let more = digits.unsigned_abs().to_string().len() as i32 - 1;
        let power = superscript(exponent + more);
        match digits {
            1 => format!("10{power}"),
            -1 => format!("−10{power}"),
            _ => format!("{}×10{power}", Decimal { digits, exponent: -more }.plain("−", "")),
        }
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Decimal { digits, exponent } = self.reduced();
        let power = digits.unsigned_abs().to_string().len() as i32 - 1 + exponent;
        let is_plain = digits == 0 || (MIN_PLAIN_POWER..MAX_PLAIN_POWER).contains(&power);
        let text = if is_plain { self.plain("−", "\u{2009}") } else { self.scientific() };
        out.write_str(&text)
    }
}

fn superscript(number: i32) -> String {
    let raised = |letter| match letter {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        '4' => '⁴',
        '5' => '⁵',
        '6' => '⁶',
        '7' => '⁷',
        '8' => '⁸',
        '9' => '⁹',
        _ => '⁰',
    };
    number.to_string().chars().map(raised).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_short() {
        let cases =
            [(0.1 + 0.2, "0.3"), (12.0, "12"), (-0.001, "0"), (-1.25, "-1.25"), (12_345.678, "12345.68")];
        for (value, text) in cases {
            assert_eq!(fixed(value, 2), text);
        }
        assert_eq!(fixed(1.25, 1), "1.3");
        assert_eq!(fixed(f64::NAN, 2), "0");
    }

    #[test]
    fn labels_are_as_in_print() {
        let cases = [
            (0, 5, "0"),
            (3, -1, "0.3"),
            (10, -1, "1"),
            (-25, -1, "−2.5"),
            (25, 2, "2500"),
            (25, 3, "25\u{2009}000"),
            (1, 6, "1\u{2009}000\u{2009}000"),
            (25, 6, "2.5×10⁷"),
            (1, 9, "10⁹"),
            (-1, -12, "−10⁻¹²"),
            (5, -4, "0.0005"),
        ];
        for (digits, exponent, text) in cases {
            assert_eq!(Decimal { digits, exponent }.to_string(), text);
        }
    }
}
