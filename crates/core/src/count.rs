//! Formatting of numbers for people.

/// Formats a number with thousands separators: `12,345`.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a number with its noun: `1 port`, `2,500 ports`. `of` is the noun in the singular; the plural is formed with
/// `s`.
pub fn count(number: u64, of: &str) -> String {
    format!("{} {of}{}", thousands(number), if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_stand_apart() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn one_thing_is_no_plural() {
        assert_eq!([0, 1, 2_500].map(|number| count(number, "port")), ["0 ports", "1 port", "2,500 ports"]);
    }
}
