//! Colours, markers and lines of the schemes in all figures.

use std::collections::BTreeMap;

use airpace_run::emulation::SCHEME;
use airpace_run::wire;
use airpace_sim::SchemeSpec;
use serde::Serialize;

use super::colour::Shade;

/// Colours of flows, devices and estimates, in this order.
///
/// Source: Okabe and Ito 2008, safe for colour-blind readers; the last is an olive in the place of their yellow
const PALETTE: [&str; 7] = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8c7a00"];

/// Greys for background users.
const GREYS: [&str; 4] = ["#8c959f", "#6e7781", "#afb8c1", "#57606a"];

/// Markers as SVG paths in a box of 14 by 14, for the page and for other programs that draw a run.
pub(super) const MARKERS: [(&str, &str); 7] = [
    ("circle", "M7 1A6 6 0 1 1 6.99 1Z"),
    ("rect", "M2 2H12V12H2Z"),
    (
        "roundRect",
        "M4.5 1.5H9.5A3 3 0 0 1 12.5 4.5V9.5A3 3 0 0 1 9.5 12.5H4.5A3 3 0 0 1 1.5 9.5V4.5A3 3 0 0 1 4.5 1.5Z",
    ),
    ("triangle", "M7 1L13 13H1Z"),
    ("diamond", "M7 0L14 7L7 14L0 7Z"),
    ("pin", "M7 14L2.4 7.6A5 5 0 1 1 11.6 7.6Z"),
    ("arrow", "M7 1L13 13L7 9.5L1 13Z"),
];

/// Colour, marker and line style of a scheme with its preset and options.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct SchemeStyle {
    /// The scheme as spelled.
    pub(super) text: String,
    /// Description of the scheme in one line.
    pub(super) summary: &'static str,
    /// Publication of the scheme.
    pub(super) source: &'static str,
    pub(super) colour: Shade,
    /// Name of the marker in ECharts.
    pub(super) marker: &'static str,
    /// Whether this is the second or a later variant of the scheme. Such variants have hollow markers and dashed lines.
    pub(super) variant: bool,
}

/// Colour and marker of emulated runs, which have a placeholder instead of a scheme.
const OF_PROGRAMS: (&str, &str) = ("#808080", "circle");

/// The styles of `schemes`. A built-in scheme has the same colour and marker in every report. Any other scheme is
/// user-defined or from another version, and gets the combination of colour and marker that this report uses least.
/// Further variants of a scheme (other presets or options) have hollow markers and dashed lines.
pub(super) fn styles(schemes: &[&str]) -> Vec<SchemeStyle> {
    // A scheme over a real transport (`pbe over quic`) has the colour of the same scheme in the simulator.
    let spelled = |text: &str| wire::parts(text).map_or(text, |(spelled, _)| spelled).to_owned();
    let known = |text: &str| SchemeSpec::parse(&spelled(text)).ok().map(|spec| spec.scheme());
    let mut taken: Vec<(&str, &str)> =
        schemes.iter().filter_map(|text| known(text)).map(|it| (it.style.colour, it.style.marker)).collect();
    let mut own: BTreeMap<String, (&str, &str)> = BTreeMap::new();
    let mut seen: Vec<String> = Vec::new();
    let mut styles = Vec::new();
    for text in schemes {
        let scheme = known(text);
        let name = scheme.map_or_else(|| spelled(text), |scheme| scheme.name.to_owned());
        let (colour, marker) = match scheme {
            Some(scheme) => (scheme.style.colour, scheme.style.marker),
            None if *text == SCHEME => OF_PROGRAMS,
            None => *own.entry(name.clone()).or_insert_with(|| {
                let look = own_look(&taken);
                taken.push(look);
                look
            }),
        };
        styles.push(SchemeStyle {
            text: (*text).to_owned(),
            summary: match scheme {
                Some(scheme) => scheme.summary,
                None if *text == SCHEME => "a program: the emulator does not know its congestion control",
                None => "a scheme of your own, or of another version",
            },
            source: scheme.map_or("", |scheme| scheme.source),
            colour: Shade::of(colour),
            marker,
            variant: seen.contains(&name),
        });
        seen.push(name);
    }
    styles
}

/// Colour and marker of a user-defined scheme: the combination that the `taken` ones use least.
fn own_look(taken: &[(&'static str, &'static str)]) -> (&'static str, &'static str) {
    let looks = MARKERS.iter().flat_map(|(marker, _)| PALETTE.iter().map(move |colour| (*colour, *marker)));
    let uses = |(colour, marker): &(&str, &str)| {
        let both = taken.iter().filter(|other| **other == (*colour, *marker)).count();
        let of_marker = taken.iter().filter(|other| other.1 == *marker).count();
        let of_colour = taken.iter().filter(|other| other.0 == *colour).count();
        (both, of_marker, of_colour)
    };
    looks.min_by_key(uses).expect("there are markers and colours")
}

/// Colours of text and backgrounds in print, as in `web/report.css`.
pub(super) fn paper() -> BTreeMap<&'static str, &'static str> {
    let value = |name: &str| {
        let mark = format!("--{name}: ");
        let of = |block: &str| {
            let rules = super::STYLE.split_once(block)?.1.split_once('}')?.0;
            Some(rules.split_once(&mark)?.1.split_once(';')?.0)
        };
        of(":root.paper {").or_else(|| of(":root {")).expect("the style sheet has every colour of paper")
    };
    ["text", "muted", "faint", "surface", "capacity"].map(|name| (name, value(name))).into()
}

/// Colours for elements without a colour of their own.
pub(super) fn palette() -> Vec<Shade> {
    PALETTE.map(Shade::of).into()
}

/// The colours of background users.
pub(super) fn greys() -> Vec<Shade> {
    GREYS.map(Shade::of).into()
}

#[cfg(test)]
mod tests {
    use airpace_sim::SCHEMES;

    use super::super::colour::sight::SIGHTS;
    use super::super::colour::{Rgb, Theme};
    use super::*;

    #[test]
    fn two_variants_of_a_scheme_share_a_colour_and_differ_in_line() {
        let styles = styles(&["reno", "cbr:rate_mbps=60", "cbr:rate_mbps=20", "gone", SCHEME]);
        assert_eq!(styles[1].colour, styles[2].colour);
        assert!(!styles[1].variant && styles[2].variant);
        assert_ne!(styles[0].colour, styles[1].colour);
        assert_eq!(
            (&styles[4].colour, styles[4].source),
            (&Shade::of("#808080"), ""),
            "a program is no scheme"
        );
        assert_ne!(styles[4].summary, styles[3].summary);
    }

    #[test]
    fn schemes_of_ones_own_have_looks_of_their_own() {
        let names: Vec<String> = (0..20).map(|number| format!("mine-{number}")).collect();
        let mut all = vec!["pbe", "bbr", "pbe@paper"];
        all.extend(names.iter().map(String::as_str));
        all.push("mine-0 over quic");
        let styles = styles(&all);
        for (index, one) in styles.iter().enumerate() {
            for other in &styles[..index] {
                let same = (&one.colour, one.marker) == (&other.colour, other.marker);
                assert_eq!(
                    same,
                    one.variant && spelled_alike(&one.text, &other.text),
                    "{one:?} and {other:?}"
                );
            }
        }
    }

    fn spelled_alike(one: &str, other: &str) -> bool {
        let name = |text: &str| text.split([' ', '@']).next().unwrap_or_default().to_owned();
        name(one) == name(other)
    }

    #[test]
    fn colours_of_paper_are_those_of_the_style_sheet() {
        let paper = paper();
        assert_eq!((paper["text"], paper["capacity"]), ("#000000", "#e9edf1"));
    }

    #[test]
    fn every_scheme_has_a_marker_that_there_is() {
        for scheme in SCHEMES {
            let marker = scheme.style.marker;
            assert!(MARKERS.iter().any(|(name, _)| *name == marker), "{}: no marker `{marker}`", scheme.name);
        }
    }

    #[test]
    fn every_scheme_stands_out_from_both_backgrounds() {
        let names: Vec<&str> = SCHEMES.iter().map(|scheme| scheme.name).collect();
        let schemes = styles(&names).into_iter().map(|style| (style.text, style.colour));
        let others = palette().into_iter().map(|shade| ("the palette".to_owned(), shade));
        for (name, shade) in schemes.chain(others) {
            for (theme, colour) in [(Theme::Light, &shade.light), (Theme::Dark, &shade.dark)] {
                let contrast = theme.contrast(Rgb::parse(colour));
                assert!(contrast >= 3.0, "{name} as {colour} in {theme:?}: {contrast:.2}");
            }
        }
    }

    /// Colour-blind readers cannot distinguish sixteen colours. Schemes with the same marker must therefore have clearly
    /// different colours.
    #[test]
    fn schemes_of_one_marker_have_colours_that_are_told_apart() {
        let names: Vec<&str> = SCHEMES.iter().map(|scheme| scheme.name).collect();
        let styles = styles(&names);
        for (index, one) in styles.iter().enumerate() {
            for other in styles[..index].iter().filter(|other| other.marker == one.marker) {
                for sight in SIGHTS {
                    for (theme, distance) in [
                        (Theme::Light, sight.distance(&one.colour.light, &other.colour.light)),
                        (Theme::Dark, sight.distance(&one.colour.dark, &other.colour.dark)),
                    ] {
                        let (one, other) = (&one.text, &other.text);
                        assert!(
                            distance >= 0.05,
                            "{one} and {other} are {distance:.3} apart to {sight:?} in {theme:?}; give one of them \
                             another marker"
                        );
                    }
                }
            }
        }
    }
}
