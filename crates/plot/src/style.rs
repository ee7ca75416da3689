//! Appearance of series: colour, dash pattern, hatch and marker.

/// Appearance of a series. Colour, dashes, hatch and marker are independent, so that series can also be distinguished in
/// black and white.
#[derive(Clone, Debug, PartialEq)]
pub struct Style {
    /// Name in the legend.
    pub name: String,
    /// Colour of lines, markers and areas.
    pub colour: Colour,
    /// Dash pattern of lines.
    pub dash: Dash,
    /// Shape of markers.
    pub marker: Marker,
    /// Whether markers are outlines. For second variants of a scheme.
    pub hollow: bool,
    /// Pattern of bars and areas.
    pub hatch: Hatch,
}

impl Style {
    /// A style with solid lines, circles and this colour (`#rrggbb`) in both themes.
    pub fn new(name: &str, colour: &str) -> Style {
        Style { name: name.to_owned(), colour: Colour::hex(colour), ..Style::default() }
    }
}

impl Default for Style {
    /// Solid lines and circles in the colour of secondary text.
    fn default() -> Style {
        Style {
            name: String::new(),
            colour: Colour::Soft,
            dash: Dash::Solid,
            marker: Marker::Circle,
            hollow: false,
            hatch: Hatch::None,
        }
    }
}

/// Colour of a series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Colour {
    /// The colour of text: black on white, or white on black.
    Ink,
    /// The colour of secondary text.
    Soft,
    /// Any other colour, as `#rgb` or `#rrggbb`. Other texts give the colour of text.
    Hex {
        /// Colour on a light background and on paper.
        light: String,
        /// Colour on a dark background. `None`: the same as on a light one.
        dark: Option<String>,
    },
}

impl Colour {
    /// The same colour in both themes.
    pub fn hex(light: &str) -> Colour {
        Colour::Hex { light: light.to_owned(), dark: None }
    }

    /// Different colours in the light theme and in the dark one.
    pub fn themed(light: &str, dark: &str) -> Colour {
        Colour::Hex { light: light.to_owned(), dark: Some(dark.to_owned()) }
    }
}

/// Dash pattern of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dash {
    /// No gaps.
    #[default]
    Solid,
    /// Dashes of three line widths.
    Dashed,
    /// Dots.
    Dotted,
    /// A dash and a dot in turn.
    DashDot,
    /// Dashes of six line widths.
    Long,
}

impl Dash {
    /// Value of `stroke-dasharray`; empty for a solid line.
    pub(crate) fn pattern(self) -> &'static str {
        match self {
            Dash::Solid => "",
            Dash::Dashed => "6 4",
            Dash::Dotted => "2 3",
            Dash::DashDot => "8 3 2 3",
            Dash::Long => "12 4",
        }
    }
}

/// Pattern of bars and areas, drawn in the colour of the background over the colour of the series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hatch {
    /// Colour only.
    #[default]
    None,
    /// Lines from bottom left to top right.
    Rising,
    /// Lines from top left to bottom right.
    Falling,
    /// Horizontal lines.
    Level,
    /// Vertical lines.
    Upright,
    /// Rising and falling lines.
    Crossed,
}

/// Shape of a marker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Marker {
    /// ●
    #[default]
    Circle,
    /// ■
    Square,
    /// ■ with round corners.
    RoundSquare,
    /// ▲
    TriangleUp,
    /// ▼
    TriangleDown,
    /// ◆
    Diamond,
    /// ×
    Cross,
    /// +
    Plus,
    /// ★
    Star,
    /// A drop with its tip at the bottom.
    Pin,
    /// An arrow head that points up.
    Arrow,
}

impl Marker {
    /// The marker with this name in the styles of schemes (`circle`, `rect`, `roundRect`, `triangle`, `diamond`, `pin`,
    /// `arrow`); a circle for other names.
    pub fn named(name: &str) -> Marker {
        match name {
            "rect" => Marker::Square,
            "roundRect" => Marker::RoundSquare,
            "triangle" => Marker::TriangleUp,
            "diamond" => Marker::Diamond,
            "pin" => Marker::Pin,
            "arrow" => Marker::Arrow,
            _ => Marker::Circle,
        }
    }
}
