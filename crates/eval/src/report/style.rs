//! How a scheme looks in every figure.

use airpace_sim::SchemeSpec;
use serde::Serialize;

/// Colour, marker and line of one choice of scheme.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct SchemeStyle {
    /// The choice as it was spelled.
    pub(super) text: String,
    /// One line about the scheme.
    pub(super) summary: &'static str,
    /// Where it is published.
    pub(super) source: &'static str,
    /// `#rrggbb`.
    pub(super) colour: &'static str,
    /// ECharts' name of the marker.
    pub(super) marker: &'static str,
    /// Whether it is a second or later variant of its scheme: drawn hollow and dashed.
    pub(super) variant: bool,
}

/// The styles of `schemes`: the same colour and marker for a scheme in every report, and hollow markers and dashed
/// lines for further presets and options of one that is already there.
pub(super) fn styles(schemes: &[&str]) -> Vec<SchemeStyle> {
    let mut seen: Vec<&str> = Vec::new();
    let mut styles = Vec::new();
    for text in schemes {
        // A report of another version's run may name a scheme that this version lacks: it is drawn in grey.
        let scheme = SchemeSpec::parse(text).ok().map(|spec| spec.scheme());
        let name = scheme.map_or(*text, |scheme| scheme.name);
        styles.push(SchemeStyle {
            text: (*text).to_owned(),
            summary: scheme.map_or("not known to this version", |scheme| scheme.summary),
            source: scheme.map_or("", |scheme| scheme.source),
            colour: scheme.map_or("#808080", |scheme| scheme.style.colour),
            marker: scheme.map_or("circle", |scheme| scheme.style.marker),
            variant: seen.contains(&name),
        });
        seen.push(name);
    }
    styles
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_variants_of_a_scheme_share_a_colour_and_differ_in_line() {
        let styles = styles(&["reno", "cbr:rate_mbps=60", "cbr:rate_mbps=20", "gone"]);
        assert_eq!(styles[1].colour, styles[2].colour);
        assert!(!styles[1].variant && styles[2].variant);
        assert_ne!(styles[0].colour, styles[1].colour);
        assert_eq!(styles[3].colour, "#808080");
    }
}
