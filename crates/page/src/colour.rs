//! Colours that are readable on both backgrounds of the page.

use libm::{cbrt, pow};
use serde::Serialize;

/// Minimum contrast of lines, markers and areas against their background.
///
/// Source: WCAG 2.1 SC 1.4.11
const MIN_CONTRAST: f64 = 3.0;

/// One of the page's themes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Theme {
    /// Dark on light: one of the two themes on screen, and always used in print.
    Light,
    /// Light on dark.
    Dark,
}

impl Theme {
    /// Backgrounds of lines in figures: `--surface` and `--capacity` in `web/report.css`.
    const fn grounds(self) -> [&'static str; 2] {
        match self {
            Theme::Light => ["#ffffff", "#e9edf1"],
            Theme::Dark => ["#161b22", "#272d35"],
        }
    }

    /// Minimum contrast of a colour against these backgrounds.
    pub(super) fn contrast(self, colour: Rgb) -> f64 {
        self.grounds()
            .map(|ground| colour.contrast(Rgb::parse(ground)))
            .into_iter()
            .fold(f64::INFINITY, f64::min)
    }
}

/// A colour in each of the two themes, `#rrggbb`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Shade {
    pub(super) light: String,
    pub(super) dark: String,
}

impl Shade {
    /// Makes `colour` (`#rrggbb`) darker or lighter where a background requires it.
    pub(super) fn of(colour: &str) -> Shade {
        Shade { light: readable(colour, Theme::Light), dark: readable(colour, Theme::Dark) }
    }
}

/// Returns `colour` if its contrast is sufficient, and otherwise the colour with the nearest lightness of sufficient
/// contrast. In the dark theme, a lightness below 0.5 is first mirrored at 0.5, so that black becomes white, like the
/// text.
fn readable(colour: &str, theme: Theme) -> String {
    let mut rgb = Rgb::parse(colour);
    let mut lab = rgb.lab();
    if theme == Theme::Dark && theme.contrast(rgb) < MIN_CONTRAST {
        lab.0 = lab.0.max(1.0 - lab.0);
        rgb = Rgb::of_lab(lab);
    }
    let step = if theme == Theme::Dark { 0.005 } else { -0.005 };
    // The contrast is computed from the colour after rounding to eight bits, because rounding could reduce it.
    while theme.contrast(rgb) < MIN_CONTRAST {
        lab.0 += step;
        rgb = Rgb::of_lab(lab);
    }
    rgb.text()
}

/// Red, green and blue, with eight bits each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rgb([u8; 3]);

impl Rgb {
    /// # Panics
    /// If the text is not `#rrggbb`. Colours are constants in the code.
    pub(super) fn parse(text: &str) -> Rgb {
        let digits = |at: usize| text.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
        let whole = (text.len() == 7 && text.starts_with('#')).then_some(());
        let parts = whole.and_then(|()| Some([digits(1)?, digits(3)?, digits(5)?]));
        Rgb(parts.unwrap_or_else(|| panic!("`{text}` is no colour; write #rrggbb")))
    }

    fn text(self) -> String {
        let [red, green, blue] = self.0;
        format!("#{red:02x}{green:02x}{blue:02x}")
    }

    /// Linear intensities of red, green and blue, in [0, 1].
    ///
    /// Source: IEC 61966-2-1 (sRGB)
    fn linear(self) -> [f64; 3] {
        self.0.map(|byte| {
            let part = f64::from(byte) / 255.0;
            if part <= 0.040_45 { part / 12.92 } else { pow((part + 0.055) / 1.055, 2.4) }
        })
    }

    fn of_linear(light: [f64; 3]) -> Rgb {
        Rgb(light.map(|light| {
            let light = light.clamp(0.0, 1.0);
            let part =
                if light <= 0.003_130_8 { light * 12.92 } else { 1.055 * pow(light, 1.0 / 2.4) - 0.055 };
            (part * 255.0).round() as u8
        }))
    }

    /// Contrast between two colours, from 1 to 21.
    ///
    /// Source: WCAG 2.1, contrast ratio
    fn contrast(self, other: Rgb) -> f64 {
        let luminance = |colour: Rgb| {
            let [red, green, blue] = colour.linear();
            0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05
        };
        let (one, other) = (luminance(self), luminance(other));
        one.max(other) / one.min(other)
    }

    /// Oklab coordinates: lightness, green to red, blue to yellow.
    ///
    /// Source: Ottosson 2020, Oklab
    fn lab(self) -> (f64, f64, f64) {
        let [red, green, blue] = self.linear();
        let long = cbrt(0.412_221_470_8 * red + 0.536_332_536_3 * green + 0.051_445_992_9 * blue);
        let middle = cbrt(0.211_903_498_2 * red + 0.680_699_545_1 * green + 0.107_396_956_6 * blue);
        let short = cbrt(0.088_302_461_9 * red + 0.281_718_837_6 * green + 0.629_978_700_5 * blue);
        (
            0.210_454_255_3 * long + 0.793_617_785_0 * middle - 0.004_072_046_8 * short,
            1.977_998_495_1 * long - 2.428_592_205_0 * middle + 0.450_593_709_9 * short,
            0.025_904_037_1 * long + 0.782_771_766_2 * middle - 0.808_675_766_0 * short,
        )
    }

    fn of_lab((lightness, a, b): (f64, f64, f64)) -> Rgb {
        let cube = |value: f64| value * value * value;
        let long = cube(lightness + 0.396_337_777_4 * a + 0.215_803_757_3 * b);
        let middle = cube(lightness - 0.105_561_345_8 * a - 0.063_854_172_8 * b);
        let short = cube(lightness - 0.089_484_177_5 * a - 1.291_485_548_0 * b);
        Rgb::of_linear([
            4.076_741_662_1 * long - 3.307_711_591_3 * middle + 0.230_969_929_2 * short,
            -1.268_438_004_6 * long + 2.609_757_401_1 * middle - 0.341_319_396_5 * short,
            -0.004_196_086_3 * long - 0.703_418_614_7 * middle + 1.707_614_701_0 * short,
        ])
    }
}

#[cfg(test)]
pub(super) mod sight {
    //! Simulation of colour vision deficiencies, for tests.

    use super::Rgb;

    /// All kinds of colour vision for which the page's colours are tested.
    pub(in super::super) const SIGHTS: [Sight; 3] = [Sight::Usual, Sight::Protanopia, Sight::Deuteranopia];

    #[derive(Clone, Copy, Debug)]
    pub(in super::super) enum Sight {
        Usual,
        Protanopia,
        Deuteranopia,
    }

    impl Sight {
        /// The colour that a viewer with this colour vision perceives instead of `colour`.
        ///
        /// Source: Machado, Oliveira and Fernandes 2009, severity 1.0
        fn of(self, colour: Rgb) -> Rgb {
            let rows = match self {
                Sight::Usual => return colour,
                Sight::Protanopia => [
                    [0.152_286, 1.052_583, -0.204_868],
                    [0.114_503, 0.786_281, 0.099_216],
                    [-0.003_882, -0.048_116, 1.051_998],
                ],
                Sight::Deuteranopia => [
                    [0.367_322, 0.860_646, -0.227_968],
                    [0.280_085, 0.672_501, 0.047_413],
                    [-0.011_820, 0.042_940, 0.968_881],
                ],
            };
            let light = colour.linear();
            Rgb::of_linear(rows.map(|row: [f64; 3]| row.iter().zip(light).map(|(part, of)| part * of).sum()))
        }

        /// Distance between two colours in Oklab as perceived by a viewer with this colour vision. Side by side, a
        /// distance of 0.02 is just noticeable.
        pub(in super::super) fn distance(self, one: &str, other: &str) -> f64 {
            let (one, other) = (self.of(Rgb::parse(one)).lab(), self.of(Rgb::parse(other)).lab());
            libm::sqrt(
                (one.0 - other.0) * (one.0 - other.0)
                    + (one.1 - other.1) * (one.1 - other.1)
                    + (one.2 - other.2) * (one.2 - other.2),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CSS: &str = include_str!("../../../web/report.css");

    /// The value of the property `--name` in a theme's block of the style sheet.
    fn property(theme: Theme, name: &str) -> Rgb {
        let (light, dark) =
            CSS.split_once("prefers-color-scheme: dark").expect("the style sheet has a dark theme");
        let block = if theme == Theme::Light { light } else { dark };
        let (_, value) = block.split_once(&format!("--{name}: ")).expect("the theme gives the property");
        Rgb::parse(value.split_once(';').expect("a declaration ends").0)
    }

    #[test]
    fn words_can_be_read_in_both_themes() {
        for theme in [Theme::Light, Theme::Dark] {
            let [surface, capacity] = theme.grounds().map(Rgb::parse);
            assert_eq!(property(theme, "surface"), surface, "{theme:?}");
            assert_eq!(property(theme, "capacity"), capacity, "{theme:?}");
            for background in ["page", "surface"] {
                for words in ["text", "muted", "accent", "good", "bad"] {
                    let contrast = property(theme, words).contrast(property(theme, background));
                    assert!(contrast >= 4.5, "{theme:?}: --{words} on --{background} has only {contrast:.2}");
                }
            }
        }
    }

    #[test]
    fn any_colour_is_made_readable() {
        for colour in ["#000000", "#ffffff", "#ffff00", "#00ff00", "#0000ff", "#161b22", "#808080"] {
            let shade = Shade::of(colour);
            for (theme, shown) in [(Theme::Light, &shade.light), (Theme::Dark, &shade.dark)] {
                let contrast = theme.contrast(Rgb::parse(shown));
                assert!(contrast >= MIN_CONTRAST, "{colour} as {shown} in {theme:?}: {contrast:.2}");
            }
        }
        assert_eq!(Shade::of("#0072B2").light, "#0072b2", "a colour with enough contrast stays as it is");
        assert_eq!(Shade::of("#000000").dark, "#ffffff", "black becomes white, as text does");
    }

    #[test]
    fn contrast_is_that_of_the_recommendation() {
        let contrast = |one, other| Rgb::parse(one).contrast(Rgb::parse(other));
        assert!((contrast("#000000", "#ffffff") - 21.0).abs() < 1e-9);
        assert!(
            (contrast("#777777", "#ffffff") - 4.478).abs() < 0.001,
            "the known grey that is just not enough"
        );
    }
}
