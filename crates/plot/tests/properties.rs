//! Properties of figures with arbitrary content.

mod svg;

use airpace_plot::{
    Anchor, Area, Axis, Bar, Bars, Colour, Dash, Entry, Figure, Hatch, Interval, Layer, Line, Mark, Marker,
    Note, Panel, Percentiles, Point, Points, Rule, Scale, Spans, Spread, Stack, Style, Swatch,
};
use proptest::collection::vec;
use proptest::prelude::*;

/// Values of measurements, and everything else that an `f64` can hold.
fn value() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => -100.0..1000.0f64,
        1 => any::<f64>(),
        1 => prop::sample::select(vec![
            0.0, -0.0, 1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN, f64::MIN_POSITIVE, 5e-324,
            1e300, 1e-300, 0.1 + 0.2, 1e15 + 1.0,
        ]),
    ]
}

fn pair() -> impl Strategy<Value = (f64, f64)> {
    (value(), value())
}

/// Names as they are meant, and names with markup and control characters.
fn words() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z]{0,8}", "[a-zA-Z ]{0,80}", any::<String>(), Just("<&\"'>\u{0}\u{ffff}]]>".to_owned())]
}

fn style() -> impl Strategy<Value = Style> {
    let colour = prop_oneof![
        Just(Colour::Ink),
        Just(Colour::Soft),
        "#[0-9a-f]{6}".prop_map(|light| Colour::hex(&light)),
        (any::<String>(), any::<String>()).prop_map(|(light, dark)| Colour::themed(&light, &dark)),
        Just(Colour::themed("}</style><script>", "#12345g")),
    ];
    let dash = prop::sample::select(vec![Dash::Solid, Dash::Dashed, Dash::Dotted, Dash::DashDot, Dash::Long]);
    let marker = prop::sample::select(vec![
        Marker::Circle,
        Marker::Square,
        Marker::RoundSquare,
        Marker::TriangleUp,
        Marker::TriangleDown,
        Marker::Diamond,
        Marker::Cross,
        Marker::Plus,
        Marker::Star,
        Marker::Pin,
        Marker::Arrow,
    ]);
    let hatch = prop::sample::select(vec![
        Hatch::None,
        Hatch::Rising,
        Hatch::Falling,
        Hatch::Level,
        Hatch::Upright,
        Hatch::Crossed,
    ]);
    (words(), colour, dash, marker, any::<bool>(), hatch).prop_map(
        |(name, colour, dash, marker, hollow, hatch)| Style { name, colour, dash, marker, hollow, hatch },
    )
}

fn axis() -> impl Strategy<Value = Axis> {
    let scale = prop::sample::select(vec![Scale::Linear, Scale::Log]);
    let ticks = vec((value(), words()), 0..12);
    (words(), scale, any::<bool>(), prop::option::of(pair()), prop::option::weighted(0.3, ticks))
        .prop_map(|(label, scale, reversed, range, ticks)| Axis { label, scale, reversed, range, ticks })
}

fn percentiles() -> impl Strategy<Value = Percentiles> {
    prop_oneof![
        [value(), value(), value(), value(), value()].prop_map(|[p10, p25, p50, p75, p90]| Percentiles {
            p10,
            p25,
            p50,
            p75,
            p90
        }),
        vec(0.0..100.0f64, 1..20).prop_map(|values| Percentiles::of(&values).expect("there are values")),
    ]
}

fn mark() -> impl Strategy<Value = Mark> {
    let flags = || [any::<bool>(), any::<bool>(), any::<bool>()];
    let points = || vec(pair(), 0..40);
    let line = (style(), points(), flags()).prop_map(|(style, points, [stepped, markers, second_y])| Line {
        style,
        points,
        stepped,
        markers,
        second_y,
    });
    let area = (style(), points(), flags()).prop_map(|(style, points, [stepped, second_y, _])| Area {
        style,
        points,
        stepped,
        second_y,
    });
    let layer = (style(), vec(value(), 0..20)).prop_map(|(style, heights)| Layer { style, heights });
    let stack = (vec(value(), 0..20), vec(layer, 0..4), any::<bool>())
        .prop_map(|(x, layers, stepped)| Stack { x, layers, stepped });
    let point = (value(), value(), words()).prop_map(|(x, y, label)| Point { x, y, label });
    let scatter = (style(), vec(point, 0..20), any::<bool>()).prop_map(|(style, points, second_y)| Points {
        style,
        points,
        second_y,
    });
    let spread =
        || {
            (style(), percentiles(), percentiles(), any::<bool>())
                .prop_map(|(style, x, y, labelled)| Spread { style, x, y, labelled })
        };
    let bar = (prop_oneof![(0..6).prop_map(f64::from), value()], value(), prop::option::of(pair()))
        .prop_map(|(x, value, error)| Bar { x, value, error });
    let bars = (style(), vec(bar, 0..6), any::<bool>()).prop_map(|(style, bars, second_y)| Bars {
        style,
        bars,
        second_y,
    });
    let interval = (style(), [value(), value(), value(), value()], any::<bool>()).prop_map(
        |(style, [x, low, value, high], second_y)| Interval { style, x, low, value, high, second_y },
    );
    let spans = (style(), vec(pair(), 0..4)).prop_map(|(style, ranges)| Spans { style, ranges });
    let rule = || {
        (style(), value(), words(), any::<bool>()).prop_map(|(style, at, text, second_y)| Rule {
            style,
            at,
            text,
            second_y,
        })
    };
    let anchor = prop::sample::select(vec![Anchor::Start, Anchor::Middle, Anchor::End]);
    let note = (pair(), words(), anchor).prop_map(|((x, y), text, anchor)| Note { x, y, text, anchor });
    prop_oneof![
        line.prop_map(Mark::Line),
        area.prop_map(Mark::Area),
        stack.prop_map(Mark::Stack),
        scatter.prop_map(Mark::Points),
        spread().prop_map(Mark::Cross),
        spread().prop_map(Mark::PercentileBox),
        bars.prop_map(Mark::Bars),
        interval.prop_map(Mark::Interval),
        spans.prop_map(Mark::Spans),
        rule().prop_map(Mark::HorizontalLine),
        rule().prop_map(Mark::VerticalLine),
        note.prop_map(Mark::Text),
    ]
}

fn figure() -> impl Strategy<Value = Figure> {
    let panel = (words(), axis(), axis(), prop::option::of(axis()), vec(mark(), 0..6))
        .prop_map(|(title, x, y, second_y, marks)| Panel { title, x, y, second_y, marks });
    let swatch = prop::sample::select(vec![
        Swatch::Line,
        Swatch::Both,
        Swatch::Marker,
        Swatch::Fill,
        Swatch::Shade,
        Swatch::Box,
    ]);
    let entry = (style(), swatch).prop_map(|(style, swatch)| Entry { style, swatch });
    let size = || prop_oneof![3 => Just(300.0), 1 => value()];
    (words(), words(), vec(panel, 0..4), 0..4usize, vec(entry, 0..6), size(), size()).prop_map(
        |(title, caption, panels, columns, legend, panel_width, plot_height)| Figure {
            title,
            caption,
            panels,
            columns,
            legend,
            panel_width,
            plot_height,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_figure_is_well_formed_and_inside_its_view(figure in figure(), prefix in any::<String>()) {
        svg::check(&figure.svg());
        svg::check(&figure.stacked().inline_svg(&prefix));
        for panel in figure.inline_panels(&prefix) {
            svg::check(&panel);
        }
        let legend = figure.inline_legend(&prefix);
        svg::elements(&format!("<div>{legend}</div>"));
    }

    #[test]
    fn the_same_figure_has_the_same_text(figure in figure()) {
        prop_assert_eq!(figure.svg(), figure.clone().svg());
    }

    /// A page holds several figures: an id of one must not be an id of another, and a rule must not change another.
    #[test]
    fn figures_of_a_page_do_not_share_ids(one in figure(), other in figure()) {
        let ids = |svg: &str| -> Vec<String> {
            svg::elements(svg).iter().filter_map(|element| element.attribute("id").map(str::to_owned)).collect()
        };
        let (one, other) = (one.inline_svg("fig/1"), other.inline_svg("fig/2"));
        for id in ids(&one) {
            prop_assert!(id.starts_with("fig-1-"), "{}", id);
            prop_assert!(!ids(&other).contains(&id));
        }
        let sheet = one.split_once("<style>").and_then(|rest| rest.1.split_once("</style>")).expect("a style sheet").0;
        let rules = sheet.replace("@media screen and (prefers-color-scheme:dark){", "");
        for selector in rules.split('}').filter_map(|rule| rule.split_once('{')).flat_map(|rule| rule.0.split(',')) {
            prop_assert!(selector.starts_with("#fig-1-plot "), "{}", selector);
        }
    }
}
