//! Units of rates in names of columns.

/// A unit of a rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Unit {
    /// The unit's name in messages.
    pub name: &'static str,
    /// Number of bits per second in one unit.
    pub bits: f64,
}

/// For each prefix of a unit: the prefix, its factor, the unit's name for bits, and the unit's name for bytes.
const PREFIXES: [(&str, f64, &str, &str); 8] = [
    ("giga", 1e9, "Gbit/s", "GB/s"),
    ("mega", 1e6, "Mbit/s", "MB/s"),
    ("kilo", 1e3, "kbit/s", "kB/s"),
    ("g", 1e9, "Gbit/s", "GB/s"),
    ("m", 1e6, "Mbit/s", "MB/s"),
    ("ki", 1024.0, "Kibit/s", "KiB/s"),
    ("k", 1e3, "kbit/s", "kB/s"),
    ("", 1.0, "bit/s", "byte/s"),
];

/// Suffixes for "per second" in names, longest first.
const PER_SECOND: [&str; 11] =
    ["_per_second", "_per_sec", "_per_s", " per second", "/second", "/sec", "psec", "/s", "_s", "ps", "p/s"];

impl Unit {
    /// The unit at the end of a name; `None` if the name has no unit, `Some(None)` if bits and bytes cannot be
    /// distinguished.
    pub fn named(name: &str) -> Option<Option<Unit>> {
        let name = name.trim_end_matches([')', ']', ' ']);
        let lower = name.to_ascii_lowercase();
        let per = PER_SECOND.iter().find(|per| lower.ends_with(*per))?;
        let (stem, per) = name.split_at(name.len() - per.len());
        let low = stem.to_ascii_lowercase();
        let words = [("bytes", true), ("byte", true), ("bits", false), ("bit", false)];
        let word = words.iter().find(|(word, _)| low.ends_with(word));
        let (rest, is_bytes) = match word {
            Some(&(word, is_bytes)) => (&stem[..stem.len() - word.len()], Some(is_bytes)),
            None if per == "_s" => return None,
            None => match stem.as_bytes().last()? {
                // If all letters are capitals, as in `MBPS`, bits and bytes cannot be distinguished.
                b'B' if per.contains(|letter: char| letter.is_ascii_uppercase()) => {
                    (&stem[..stem.len() - 1], None)
                }
                b'B' => (&stem[..stem.len() - 1], Some(true)),
                b'b' => (&stem[..stem.len() - 1], Some(false)),
                _ => return None,
            },
        };
        let low = rest.to_ascii_lowercase();
        let fits = |prefix: &str| {
            let before = low.strip_suffix(prefix)?;
            (!before.ends_with(|letter: char| letter.is_ascii_alphanumeric())).then_some(())
        };
        let (_, factor, bits, bytes) = PREFIXES.iter().find(|(prefix, ..)| fits(prefix).is_some())?;
        Some(is_bytes.map(|is_bytes| match is_bytes {
            true => Unit { name: bytes, bits: 8.0 * factor },
            false => Unit { name: bits, bits: *factor },
        }))
    }
}
