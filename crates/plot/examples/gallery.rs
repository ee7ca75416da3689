//! Prints a page with a figure of each form, drawn from invented numbers:
//! `cargo run -p airpace-plot --example gallery > gallery.html`

use airpace_plot::{
    Anchor, Area, Axis, Bar, Bars, Colour, Dash, Entry, Figure, Hatch, Interval, Layer, Line, Mark, Marker,
    Note, Panel, Percentiles, Point, Points, Rule, Spans, Spread, Stack, Style,
};

fn main() {
    println!("{HEAD}");
    for (number, figure) in figures().iter().enumerate() {
        println!("<figure><h2>{}</h2>", figure.title);
        if figure.is_wide() {
            println!("<div class=wide>{}</div>", figure.inline_svg(&format!("figure-{number}-wide")));
            println!(
                "<div class=narrow>{}</div>",
                figure.stacked().inline_svg(&format!("figure-{number}-narrow"))
            );
        } else {
            println!("{}", figure.inline_svg(&format!("figure-{number}")));
        }
        println!("<figcaption>{}</figcaption></figure>", figure.caption);
    }
    println!("</main></body></html>");
}

const HEAD: &str = "<!doctype html><html lang=en><head><meta charset=utf-8><title>Gallery of airpace-plot</title>\
<meta name=viewport content=\"width=device-width\"><style>\
:root{color-scheme:light dark;--ink:#1b1f24;--soft:#57606a;--line:#d8dee4;--paper:#fff}\
@media screen and (prefers-color-scheme:dark){:root{--ink:#e6edf3;--soft:#9da7b1;--line:#30363d;--paper:#161b22}}\
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,sans-serif}\
main{max-width:76rem;margin:auto;padding:0 1rem}figure{margin:0 0 3rem}figcaption{color:var(--soft)}\
.narrow{display:none}@media screen and (max-width:60rem){.narrow{display:block}.wide{display:none}}\
@media print{figure{break-inside:avoid}}</style></head><body><main>";

fn figures() -> Vec<Figure> {
    vec![
        distributions(),
        crosses(),
        boxes(),
        counts(),
        grouped(),
        over_time(),
        stacked(),
        capacity(),
        sampling(),
        scatter(),
        intervals(),
        nothing(),
    ]
}

/// Colour, marker and dashes of the schemes.
fn scheme(name: &str) -> Style {
    let (colour, marker, dash) = match name {
        "PBE-CC" => (Colour::hex("#0072B2"), Marker::Circle, Dash::Solid),
        "BBR" => (Colour::hex("#D55E00"), Marker::TriangleUp, Dash::Dashed),
        "CUBIC" => (Colour::hex("#009E73"), Marker::Square, Dash::DashDot),
        "Verus" => (Colour::hex("#AA4499"), Marker::Diamond, Dash::Dotted),
        "Copa" => (Colour::themed("#332288", "#8f86e0"), Marker::TriangleDown, Dash::Long),
        "PCC" => (Colour::hex("#b5a642"), Marker::Pin, Dash::Dashed),
        "Vivace" => (Colour::hex("#999933"), Marker::Arrow, Dash::Dotted),
        "Sprout" => (Colour::themed("#117733", "#3f9a5c"), Marker::Star, Dash::Solid),
        _ => (Colour::Ink, Marker::Cross, Dash::Solid),
    };
    Style { name: name.to_owned(), colour, marker, dash, ..Style::default() }
}

const SCHEMES: [&str; 8] = ["PBE-CC", "BBR", "CUBIC", "Verus", "Copa", "PCC", "Vivace", "Sprout"];

/// Invented values between 0 and 1.
fn noise(seed: u64, count: usize) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    (0..count).map(|_| next()).collect()
}

fn finished(title: &str, caption: &str, columns: usize, panels: Vec<Panel>) -> Figure {
    Figure {
        title: title.to_owned(),
        caption: caption.to_owned(),
        columns,
        legend: Entry::of(&panels),
        panels,
        ..Figure::default()
    }
}

/// Distributions over locations, with axes as in print.
fn distributions() -> Figure {
    let series = |scale: f64, base: f64| {
        SCHEMES[..4].iter().enumerate().map(move |(at, name)| {
            let values: Vec<f64> = noise(at as u64 + 1, 25)
                .iter()
                .map(|value| base + scale * value * value * (1.0 + 0.4 * at as f64))
                .collect();
            Mark::Line(Line::cdf(scheme(name), &values))
        })
    };
    let ticks = [40.0, 80.0, 160.0, 320.0, 640.0].map(|value| (value, format!("{value}")));
    finished(
        "CDFs over locations",
        "Stepped lines, a logarithmic axis with its own ticks.",
        2,
        vec![
            Panel {
                title: "(a) Throughput".to_owned(),
                x: Axis { range: Some((0.0, 100.0)), ..Axis::linear("Throughput (Mbit/s)") },
                y: Axis::linear("CDF across locations"),
                marks: series(55.0, 4.0).collect(),
                ..Panel::default()
            },
            Panel {
                title: "(b) 95th percentile of the delay".to_owned(),
                x: Axis {
                    ticks: Some(ticks.into()),
                    ..Axis::log("95th percentile of the one-way delay (ms)")
                },
                y: Axis::linear("CDF across locations"),
                marks: series(200.0, 42.0).collect(),
                ..Panel::default()
            },
        ],
    )
}

fn spread(seed: u64, low: f64, high: f64) -> Percentiles {
    let values: Vec<f64> = noise(seed, 60).iter().map(|value| low + (high - low) * value).collect();
    Percentiles::of(&values).expect("there are values")
}

fn crosses() -> Figure {
    let places = ["one cell, indoor, busy", "two cells, indoor, busy", "three cells, indoor, busy"];
    let panel = |(number, place): (usize, &&str)| Panel {
        title: format!("({}) {place}", ["a", "b", "c"][number]),
        x: Axis { reversed: true, ..Axis::log("One-way delay (ms)") },
        y: Axis::linear("Throughput (Mbit/s)"),
        marks: (0..8u64)
            .map(|at| {
                let seed = 10 * number as u64 + at + 1;
                let delay = 40.0 * (1.0 + at as f64);
                let top = 60.0 - 6.0 * at as f64;
                Mark::Cross(Spread {
                    style: scheme(SCHEMES[at as usize]),
                    x: spread(seed, delay * 0.8, delay * 1.6),
                    y: spread(seed + 100, top * 0.5, top),
                    labelled: true,
                })
            })
            .collect(),
        ..Panel::default()
    };
    finished(
        "Throughput and delay of eight schemes",
        "Thin lines: 10th to 90th percentile. Thick lines: 25th to 75th. The delay becomes smaller to the right.",
        3,
        places.iter().enumerate().map(panel).collect(),
    )
}

fn boxes() -> Figure {
    let panel = |(number, place): (usize, &str)| Panel {
        title: place.to_owned(),
        x: Axis { reversed: true, ..Axis::linear("One-way delay (ms)") },
        y: Axis::linear("Throughput (Mbit/s)"),
        marks: (0..5u64)
            .map(|at| {
                let delay = 15.0 + 30.0 * at as f64;
                Mark::PercentileBox(Spread {
                    style: scheme(SCHEMES[at as usize]),
                    x: spread(40 + 7 * number as u64 + at, delay, delay + 50.0),
                    y: if at == 4 {
                        Percentiles::exact(6.0)
                    } else {
                        spread(80 + at, 8.0, 20.0 + 3.0 * at as f64)
                    },
                    labelled: true,
                })
            })
            .collect(),
        ..Panel::default()
    };
    finished(
        "Percentile boxes",
        "Rectangles from the 25th to the 75th percentile.",
        2,
        ["Mobility on-peak", "Static off-peak"].into_iter().enumerate().map(panel).collect(),
    )
}

fn counts() -> Figure {
    let bars = SCHEMES.iter().zip([30.0, 30.0, 30.0, 29.0, 4.0, 12.0, 0.0, 11.0]).enumerate().map(
        |(at, (name, value))| {
            Mark::Bars(Bars {
                style: scheme(name),
                bars: vec![Bar { x: at as f64, value, error: None }],
                second_y: false,
            })
        },
    );
    let goal = Rule {
        style: Style { dash: Dash::Dashed, ..Style::default() },
        at: 25.0,
        text: "goal".to_owned(),
        second_y: false,
    };
    let panels = vec![Panel {
        x: Axis::categories("", &SCHEMES),
        y: Axis::linear("Locations with more than one carrier"),
        marks: bars.chain([Mark::HorizontalLine(goal)]).collect(),
        ..Panel::default()
    }];
    Figure {
        legend: Vec::new(),
        ..finished("One bar per scheme", "The names on the axis replace the legend.", 1, panels)
    }
}

fn grouped() -> Figure {
    let names = ["PBE-CC", "BBR", "CUBIC over a long path", "Verus"];
    let series = |name: &str, colour: &str, hatch, values: [f64; 4]| {
        let bars = values.into_iter().enumerate().map(|(at, value)| Bar {
            x: at as f64,
            value,
            error: Some((value * 0.85, value * 1.1)),
        });
        Mark::Bars(Bars {
            style: Style { hatch, ..Style::new(name, colour) },
            bars: bars.collect(),
            second_y: false,
        })
    };
    let panel = |title: &str, label: &str, factor: f64| Panel {
        title: title.to_owned(),
        x: Axis::categories("Scheme", &names),
        y: Axis::linear(label),
        marks: vec![
            series(
                "measured in the paper",
                "#56B4E9",
                Hatch::Rising,
                [55.0, 55.0, 38.0, 41.0].map(|value| value * factor),
            ),
            series(
                "simulated",
                "#0072B2",
                Hatch::None,
                [52.0, 62.0, 37.5, f64::NAN].map(|value| value * factor),
            ),
        ],
        ..Panel::default()
    };
    finished(
        "Groups of bars with error intervals",
        "One series has hatches, so that the figure can be printed without colours.",
        2,
        vec![
            panel("Throughput", "Throughput (Mbit/s)", 1.0),
            panel("Delay", "95th percentile of the delay (ms)", 4.0),
        ],
    )
}

fn over_time() -> Figure {
    let course = |seed: u64, base: f64, dip: f64| -> Vec<(f64, f64)> {
        noise(seed, 200)
            .iter()
            .enumerate()
            .map(|(at, value)| {
                let is_shared = (at / 40) % 2 == 1;
                (at as f64 * 0.2, base * if is_shared { dip } else { 1.0 } + base * 0.1 * value)
            })
            .collect()
    };
    let line =
        |name: &str, points, second_y| Mark::Line(Line { second_y, ..Line::new(scheme(name), points) });
    let rival = Spans {
        style: Style { name: "competitor sends".to_owned(), ..Style::default() },
        ranges: vec![(8.0, 16.0), (24.0, 32.0)],
    };
    let delay =
        Style { name: "delay of BBR (right)".to_owned(), ..Style { dash: Dash::Dotted, ..scheme("BBR") } };
    let panels = vec![Panel {
        x: Axis::linear("Time (s)"),
        y: Axis { range: Some((0.0, 80.0)), ..Axis::linear("Throughput (Mbit/s)") },
        second_y: Some(Axis::linear("One-way delay (ms)")),
        marks: vec![
            Mark::Spans(rival),
            line("PBE-CC", course(3, 55.0, 0.5), false),
            line("CUBIC", course(4, 45.0, 0.6), false),
            Mark::Line(Line { second_y: true, ..Line::new(delay, course(5, 150.0, 1.4)) }),
            Mark::VerticalLine(Rule {
                style: Style::default(),
                at: 20.0,
                text: "handover".to_owned(),
                second_y: false,
            }),
        ],
        ..Panel::default()
    }];
    Figure {
        panel_width: 800.0,
        ..finished("Two axes over time", "The competitor sends in the shaded ranges.", 1, panels)
    }
}

fn stacked() -> Figure {
    let x: Vec<f64> = (0..60).map(f64::from).collect();
    let layer = |name: &str, start: usize, end: usize, hatch| Layer {
        style: Style { hatch, ..scheme(name) },
        heights: (0..60)
            .map(|at| {
                let users = 1 + usize::from((10..50).contains(&at)) + usize::from((20..40).contains(&at));
                if (start..end).contains(&at) { 100.0 / users as f64 } else { 0.0 }
            })
            .collect(),
    };
    let panels = vec![Panel {
        x: Axis::linear("Time (s)"),
        y: Axis::linear("PRBs of the primary cell"),
        marks: vec![
            Mark::Stack(Stack {
                x,
                layers: vec![
                    layer("PBE-CC", 0, 60, Hatch::None),
                    layer("BBR", 10, 50, Hatch::Falling),
                    layer("CUBIC", 20, 40, Hatch::Crossed),
                ],
                stepped: true,
            }),
            Mark::Text(Note { x: 30.0, y: 90.0, text: "three flows".to_owned(), anchor: Anchor::Middle }),
        ],
        ..Panel::default()
    }];
    finished("Stacked areas", "Three flows share the cell.", 1, panels)
}

fn capacity() -> Figure {
    let capacity: Vec<(f64, f64)> =
        noise(9, 60).iter().enumerate().map(|(at, value)| (at as f64, 20.0 + 30.0 * value)).collect();
    let flow = |share: f64| capacity.iter().map(|(x, y)| (*x, y * share)).collect::<Vec<_>>();
    let panels = vec![Panel {
        x: Axis::linear("Time (s)"),
        y: Axis::linear("Throughput (Mbit/s)"),
        marks: vec![
            Mark::Area(Area {
                style: Style { name: "capacity".to_owned(), ..Style::default() },
                points: capacity.clone(),
                stepped: true,
                second_y: false,
            }),
            Mark::Line(Line { markers: true, ..Line::new(scheme("PBE-CC"), flow(0.45)) }),
            Mark::Line(Line { markers: true, ..Line::new(scheme("BBR"), flow(0.3)) }),
        ],
        ..Panel::default()
    }];
    finished("Flows over a capacity", "A filled curve behind lines with markers.", 1, panels)
}

fn sampling() -> Figure {
    let x = [1.0, 10.0, 50.0, 100.0, 500.0, 1000.0, 1500.0];
    let line = |name: &str, hollow, values: [f64; 7]| {
        let style = Style { hollow, ..scheme(name) };
        Mark::Line(Line { markers: true, ..Line::new(style, x.into_iter().zip(values).collect()) })
    };
    let rule = Rule {
        style: Style { dash: Dash::Dashed, ..Style::default() },
        at: 107.0,
        text: "the indications are read once".to_owned(),
        second_y: false,
    };
    let panels = vec![Panel {
        x: Axis::log("Sampling interval (ms)"),
        y: Axis::log("95th percentile of the one-way delay (ms)"),
        marks: vec![
            line("PBE-CC", false, [21.0, 21.5, 22.0, 24.0, 40.0, 80.0, 140.0]),
            line("BBR", true, [150.0; 7]),
            Mark::HorizontalLine(rule),
        ],
        ..Panel::default()
    }];
    finished("Two logarithmic axes", "", 1, panels)
}

fn scatter() -> Figure {
    let points = SCHEMES.iter().enumerate().map(|(at, name)| {
        let values = noise(at as u64 + 70, 2);
        Mark::Points(Points {
            style: scheme(name),
            points: vec![Point {
                x: 200.0 + 60.0 * values[0],
                y: 30.0 + 10.0 * values[1],
                label: (*name).to_owned(),
            }],
            second_y: false,
        })
    });
    let panels = vec![Panel {
        x: Axis { reversed: true, ..Axis::linear("Delay (ms)") },
        y: Axis::linear("Throughput (Mbit/s)"),
        marks: points.collect(),
        ..Panel::default()
    }];
    finished("Labels beside points", "A label without a free side is only in the legend.", 1, panels)
}

fn intervals() -> Figure {
    let interval = |at: usize| {
        let value = 3.0 + 0.4 * at as f64;
        Mark::Interval(Interval {
            style: scheme(SCHEMES[at]),
            x: at as f64,
            low: value * 0.7,
            value,
            high: value * 1.5,
            second_y: false,
        })
    };
    let panels = vec![Panel {
        x: Axis::categories("", &SCHEMES),
        y: Axis::linear("Download time (s)"),
        marks: (0..8).map(interval).collect(),
        ..Panel::default()
    }];
    Figure { legend: Vec::new(), ..finished("Error bars", "", 1, panels) }
}

fn nothing() -> Figure {
    let panel = Panel {
        title: "A panel whose values are all missing".to_owned(),
        x: Axis::linear("Time (s)"),
        y: Axis { range: Some((0.0, 1.0)), ..Axis::linear("Share") },
        marks: vec![Mark::Line(Line::new(scheme("PBE-CC"), vec![(f64::NAN, 1.0), (2.0, f64::INFINITY)]))],
        ..Panel::default()
    };
    finished("No data", "", 1, vec![panel])
}
