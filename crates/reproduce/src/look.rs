//! Names, colours and markers of schemes in figures.

use airpace_plot::{Colour, Dash, Marker, Style};
use airpace_sim::SchemeSpec;

/// Appearance of a scheme: the colour and marker that it has in all reports. Presets have dashed lines and hollow markers.
pub(crate) fn style(scheme: &str) -> Style {
    let Ok(spec) = SchemeSpec::parse(scheme) else { return Style::new(scheme, "#808080") };
    let own = &spec.scheme().style;
    let is_preset = scheme.contains('@');
    Style {
        colour: Colour::themed(own.colour, &on_dark(own.colour)),
        marker: Marker::named(own.marker),
        dash: if is_preset { Dash::Dashed } else { Dash::Solid },
        hollow: is_preset,
        ..Style::new(&name(scheme), own.colour)
    }
}

/// The colour on a dark background: a dark colour becomes lighter.
fn on_dark(hex: &str) -> String {
    /// Chosen: below this luminance (0 to 1), a line is hardly visible on the dark page.
    const MIN_LUMINANCE: f64 = 0.25;
    /// Chosen: share of white that makes the darkest colour of the schemes visible.
    const WHITE: f64 = 0.45;
    let part = |at: usize| hex.get(at..at + 2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
    let (Some(red), Some(green), Some(blue)) = (part(1), part(3), part(5)) else { return hex.to_owned() };
    let [red, green, blue] = [red, green, blue].map(f64::from);
    // Source: ITU-R BT.709 §3 (weights of the luminance)
    if (0.2126 * red + 0.7152 * green + 0.0722 * blue) / 255.0 >= MIN_LUMINANCE {
        return hex.to_owned();
    }
    let [red, green, blue] = [red, green, blue].map(|part| (part + (255.0 - part) * WHITE) as u8);
    format!("#{red:02x}{green:02x}{blue:02x}")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dark_colours_are_lighter_on_a_dark_page() {
        assert_eq!(on_dark("#332288"), "#8e85bd");
        assert_eq!(on_dark("#0072B2"), "#0072B2");
        assert_eq!(on_dark("red"), "red");
    }
}
