//! Columns of times.

/// A column of times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Clock {
    /// Index of the column.
    pub at: usize,
    /// Length in seconds of the unit of time in the column's name; `None` if the name contains no unit.
    unit_s: Option<f64>,
}

/// Names of units of time.
const UNITS: [(&[&str], f64); 6] = [
    (&["ns", "nsec", "nanoseconds"], 1e-9),
    (&["us", "µs", "usec", "microseconds"], 1e-6),
    (&["ms", "msec", "millis", "millisecond", "milliseconds"], 1e-3),
    (&["s", "sec", "secs", "second", "seconds"], 1.0),
    (&["min", "minute", "minutes"], 60.0),
    (&["h", "hour", "hours"], 3600.0),
];

/// Names of columns of times, in addition to the names of units.
const TIMES: [&str; 8] = ["time", "timestamp", "datetime", "date", "epoch", "elapsed", "ts", "t"];

impl Clock {
    /// The first column of times that is not the column `rate_at`.
    pub fn find(names: &[String], rate_at: usize) -> Option<Clock> {
        (0..names.len()).filter(|&at| at != rate_at).find_map(|at| {
            let lower = names[at].to_lowercase();
            let words: Vec<&str> = lower
                .split(|letter: char| !letter.is_alphanumeric())
                .filter(|word| !word.is_empty())
                .collect();
            let (last, before) = words.split_last()?;
            let unit_s = UNITS.iter().find(|(names, _)| names.contains(last)).map(|&(_, seconds)| seconds);
            let stem = if unit_s.is_some() { before } else { &words[..] };
            let is_time = match stem {
                [] => true,
                [only] => TIMES.contains(only),
                [first, second] => {
                    TIMES.contains(second)
                        && ["unix", "epoch", "date", "utc", "local", "start", "elapsed"].contains(first)
                }
                _ => false,
            };
            is_time.then_some(Clock { at, unit_s })
        })
    }

    /// The time in seconds. A number without a unit is in seconds; for times since 1970, the unit follows from the
    /// magnitude.
    pub fn seconds(&self, text: &str) -> Option<f64> {
        let text = text.trim();
        if let Ok(value) = text.replacen(',', ".", 1).parse::<f64>() {
            let unit_s = self.unit_s.unwrap_or(match value.abs() {
                size if size < 1e11 => 1.0,
                size if size < 1e14 => 1e-3,
                size if size < 1e17 => 1e-6,
                _ => 1e-9,
            });
            return (value.is_finite() && value.abs() < 1e20).then_some(value * unit_s);
        }
        date(text)
    }
}

/// Seconds of `HH:MM:SS` or of year, month, day, hour, minute and second with any separators, both with an optional
/// fraction of a second. A date may have a time zone.
fn date(text: &str) -> Option<f64> {
    let (text, zone_s) = zone(text)?;
    let (whole, fraction) = match text.rfind([':', '.', ',']) {
        Some(at) if !text[at..].starts_with(':') && text[..at].contains(':') => {
            (&text[..at], format!("0.{}", &text[at + 1..]).parse().ok()?)
        }
        _ => (text, 0.0),
    };
    let groups: Option<Vec<i64>> = whole
        .split(|letter: char| !letter.is_ascii_digit())
        .filter(|group| !group.is_empty())
        .map(|group| group.parse().ok())
        .collect();
    let within = |hour: i64, minute: i64, second: i64| {
        let valid = (0..24).contains(&hour) && (0..60).contains(&minute) && (0..=60).contains(&second);
        valid.then_some(hour * 3600 + minute * 60 + second)
    };
    let seconds = match groups?[..] {
        [hour, minute, second] if whole.contains(':') => within(hour, minute, second)?,
        [year, month, day, hour, minute, second]
            if (1000..10_000).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day) =>
        {
            days(year, month, day) * 86_400 + within(hour, minute, second)?
        }
        _ => return None,
    };
    Some((seconds - zone_s) as f64 + fraction)
}

/// The text without its time zone, and the zone's offset in seconds.
fn zone(text: &str) -> Option<(&str, i64)> {
    for utc in ["Z", "z", "UTC", "GMT"] {
        if let Some(text) = text.strip_suffix(utc) {
            return Some((text.trim_end(), 0));
        }
    }
    let Some(colon) = text.find(':') else { return Some((text, 0)) };
    let Some(sign) = text[colon..].find(['+', '-']).map(|at| colon + at) else { return Some((text, 0)) };
    let digits: String = text[sign + 1..].chars().filter(|letter| *letter != ':').collect();
    let offset: i64 = digits.parse().ok()?;
    let minutes = match digits.len() {
        2 => offset * 60,
        4 => offset / 100 * 60 + offset % 100,
        _ => return None,
    };
    let minutes = if text[sign..].starts_with('-') { -minutes } else { minutes };
    Some((text[..sign].trim_end(), minutes * 60))
}

/// Days from 1970 to a date of the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    // The computation uses years that start in March, so that the leap day is at the end of a year.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 719_469
}
