//! Names, colours and markers of schemes in figures.

use airpace_plot::{Colour, Dash, Marker, Style};
use airpace_sim::SchemeSpec;

/// Appearance of a scheme: the colour and marker that it has in all reports. Presets have dashed lines and hollow markers.
pub(crate) fn style(scheme: &str) -> Style {
    let Ok(spec) = SchemeSpec::parse(scheme) else { return Style::new(scheme, "#808080") };
    let own = &spec.scheme().style;
    let is_preset = scheme.contains('@');
    Style {
        colour: Colour::hex(own.colour),
        marker: Marker::named(own.marker),
        dash: if is_preset { Dash::Dashed } else { Dash::Solid },
        hollow: is_preset,
        ..Style::new(&name(scheme), own.colour)
    }
}

/// Name of a scheme as the papers write it, such as `PBE-CC`.
pub(crate) fn name(scheme: &str) -> String {
    let (base, preset) = scheme.split_once('@').map_or((scheme, None), |(base, preset)| (base, Some(preset)));
    let base = match base {
        "pbe" => "PBE-CC",
        "bbr" => "BBR",
        "cubic" => "CUBIC",
        "copa" => "Copa",
        "verus" => "Verus",
        "sprout" => "Sprout",
        "allegro" => "PCC",
        "vivace" => "Vivace",
        "biscay" => "BISCAY",
        "morc" => "MORC",
        "ledbat" => "LEDBAT",
        "oracle" => "Oracle",
        other => other,
    };
    match preset {
        Some("paper") => format!("{base} as printed"),
        Some("linux") => format!("{base} (Linux)"),
        // The papers' programs are those of Pantheon.
        Some("pantheon") | None => base.to_owned(),
        Some(other) => format!("{base} ({other})"),
    }
}
