//! Texts of small figures, and the behaviour of marks and axes.

mod svg;

use airpace_plot::{
    Axis, Bar, Bars, Colour, Dash, Entry, Figure, Hatch, Line, Mark, Marker, Panel, Percentiles, Point,
    Points, Rule, Scale, Spans, Spread, Style, Swatch,
};

fn panel(marks: Vec<Mark>) -> Panel {
    Panel { x: Axis::linear("x"), y: Axis::linear("y"), marks, ..Panel::default() }
}

fn figure(panels: Vec<Panel>) -> Figure {
    Figure { panels, ..Figure::default() }
}

fn line(points: &[(f64, f64)]) -> Mark {
    Mark::Line(Line::new(Style::new("", "#0072B2"), points.to_vec()))
}

/// The words of an SVG.
fn words(svg: &str) -> Vec<String> {
    let texts = svg.split("<text").skip(1);
    texts.filter_map(|text| Some(text.split_once('>')?.1.split_once('<')?.0.to_owned())).collect()
}

/// The paths of series, without the markers.
fn paths(svg: &str) -> Vec<String> {
    let elements = svg::check(svg);
    let series = elements.iter().filter(|element| element.name == "path" && !element.is_definition);
    series.filter_map(|element| element.attribute("d").map(str::to_owned)).collect()
}

#[test]
fn a_file_has_its_own_colours() {
    let competitor = Style { name: "competitor".to_owned(), ..Style::default() };
    let bbr = Style {
        name: "BBR".to_owned(),
        colour: Colour::themed("#332288", "#8f86e0"),
        dash: Dash::Dashed,
        marker: Marker::TriangleUp,
        ..Style::default()
    };
    let panels = vec![panel(vec![
        Mark::Spans(Spans { style: competitor, ranges: vec![(1.0, 2.0)] }),
        Mark::Line(Line { markers: true, ..Line::new(bbr, vec![(0.0, 10.0), (2.0, 48.0), (4.0, 30.0)]) }),
    ])];
    let figure = Figure {
        title: "One <flow>".to_owned(),
        caption: "Throughput over time.".to_owned(),
        legend: Entry::of(&panels),
        ..figure(panels)
    };
    svg::check(&figure.svg());
    insta::assert_snapshot!(figure.svg());
}

#[test]
fn an_element_of_a_page_has_the_colours_of_the_page() {
    let cross = Mark::Cross(Spread {
        style: Style { hatch: Hatch::Rising, ..Style::new("PBE-CC", "#0072B2") },
        x: Percentiles { p10: 40.0, p25: 45.0, p50: 50.0, p75: 60.0, p90: 80.0 },
        y: Percentiles { p10: 20.0, p25: 30.0, p50: 40.0, p75: 44.0, p90: 50.0 },
        labelled: true,
    });
    let x = Axis { scale: Scale::Log, reversed: true, ..Axis::linear("Delay (ms)") };
    let panel = Panel { x, ..panel(vec![cross]) };
    let figure = Figure { legend: Entry::of(std::slice::from_ref(&panel)), ..figure(vec![panel]) };
    svg::check(&figure.inline_svg("pbe/fig11"));
    insta::assert_snapshot!(figure.inline_svg("pbe/fig11"));
}

#[test]
fn a_legend_of_a_page_is_a_list() {
    let entry =
        |name: &str, hatch, swatch| Entry { style: Style { hatch, ..Style::new(name, "#0072B2") }, swatch };
    let legend = vec![entry("A & B", Hatch::Rising, Swatch::Fill), entry("C", Hatch::None, Swatch::Both)];
    insta::assert_snapshot!(Figure { legend, ..Figure::default() }.inline_legend("fig14"));
}

#[test]
fn a_panel_without_values_says_so() {
    let empty = figure(vec![
        panel(vec![]),
        panel(vec![line(&[(f64::NAN, 1.0), (1.0, f64::INFINITY)])]),
        Panel { y: Axis::log("y"), ..panel(vec![line(&[(1.0, 0.0), (2.0, -3.0)])]) },
    ]);
    assert_eq!(words(&empty.svg()).iter().filter(|text| *text == "no data").count(), 3);
    let goal = Mark::HorizontalLine(Rule {
        style: Style::default(),
        at: 5.0,
        text: "goal".to_owned(),
        second_y: false,
    });
    let texts = words(&figure(vec![panel(vec![goal])]).svg());
    assert!(texts.contains(&"no data".to_owned()), "a reference line is no data: {texts:?}");
    assert!(texts.contains(&"goal".to_owned()), "the reference line is drawn: {texts:?}");
}

#[test]
fn a_missing_value_makes_a_gap() {
    let svg =
        figure(vec![panel(vec![line(&[(0.0, 1.0), (1.0, 2.0), (2.0, f64::NAN), (3.0, 2.0), (4.0, 1.0)])])])
            .svg();
    assert_eq!(paths(&svg).len(), 2, "two lines: {svg}");
}

#[test]
fn ticks_of_the_caller_are_drawn_as_they_are() {
    let ticks = [40.0, 80.0, 160.0, 0.0, f64::NAN].map(|value| (value, format!("{value} ms"))).to_vec();
    let x = Axis { ticks: Some(ticks), range: Some((20.0, 200.0)), ..Axis::log("Delay") };
    let texts = words(&figure(vec![Panel { x, ..panel(vec![line(&[(30.0, 1.0), (90.0, 2.0)])]) }]).svg());
    let delays: Vec<&String> = texts.iter().filter(|text| text.ends_with(" ms")).collect();
    assert_eq!(delays, ["40 ms", "80 ms", "160 ms"]);
}

#[test]
fn bars_of_a_category_stand_side_by_side() {
    let bars = |colour: &str, values: &[(f64, f64)]| {
        let bars = values.iter().map(|&(x, value)| Bar { x, value, error: None }).collect();
        Mark::Bars(Bars { style: Style::new("", colour), bars, second_y: false })
    };
    let marks = vec![bars("#000000", &[(0.0, 3.0), (1.0, 5.0)]), bars("#ffffff", &[(0.0, 4.0)])];
    let svg = figure(vec![Panel { x: Axis::categories("", &["a", "b"]), ..panel(marks) }]).svg();
    let rects: Vec<(f64, f64)> = svg::check(&svg)
        .iter()
        .filter(|element| {
            element.name == "rect" && element.attribute("class").is_some_and(|class| class.contains("p-f"))
        })
        .map(|element| {
            let number =
                |name| element.attribute(name).and_then(|value| value.parse().ok()).expect("a number");
            (number("x"), number("width"))
        })
        .collect();
    let [first, alone, second] = rects[..] else { panic!("{rects:?}") };
    assert!((first.0 + first.1 - second.0).abs() < 0.2, "the bars of a category touch: {rects:?}");
    assert_eq!(alone.1, first.1, "all bars have one width");
}

#[test]
fn a_label_without_a_free_side_is_left_out() {
    let at = |x: f64, y: f64, label: &str| Point { x, y, label: label.to_owned() };
    let crowd = (0..400).map(|number| at(f64::from(number % 20), f64::from(number / 20), ""));
    let points = crowd.chain([at(10.2, 10.2, "crowded"), at(40.0, 5.0, "free")]).collect();
    let marks = vec![Mark::Points(Points { style: Style::default(), points, second_y: false })];
    let texts = words(&figure(vec![panel(marks)]).svg());
    assert!(texts.contains(&"free".to_owned()) && !texts.contains(&"crowded".to_owned()), "{texts:?}");
}

#[test]
fn long_series_stay_small_and_keep_their_peaks() {
    let points: Vec<(f64, f64)> =
        (0..200_000).map(|at| (f64::from(at), if at == 123_456 { 9.0 } else { f64::from(at % 2) })).collect();
    let svg = figure(vec![panel(vec![line(&points)])]).svg();
    assert!(svg.len() < 40_000, "{} bytes", svg.len());
    let d = &paths(&svg)[0];
    let top = d
        .split(['M', 'L'])
        .filter_map(|point| point.split_once(' ')?.1.parse::<f64>().ok())
        .fold(f64::MAX, f64::min);
    let rest: f64 = d
        .split(['M', 'L'])
        .filter_map(|point| point.split_once(' ')?.1.parse::<f64>().ok())
        .fold(0.0, f64::max);
    assert!(rest - top > 190.0, "the peak is at the top of the plot area: {top} to {rest}");
}

#[test]
fn panels_of_a_stacked_figure_are_below_each_other() {
    let wide = Figure { columns: 3, ..figure(vec![panel(vec![]), panel(vec![]), panel(vec![])]) };
    let width = |figure: &Figure| -> f64 {
        let elements = svg::check(&figure.inline_svg("f"));
        let view = elements[0].attribute("viewBox").expect("a viewBox");
        view.split(' ').nth(2).and_then(|width| width.parse().ok()).expect("a width")
    };
    assert!(width(&wide) > 1100.0 && wide.is_wide());
    assert!(width(&wide.stacked()) < 390.0 && !wide.stacked().is_wide());
    assert_eq!(wide.inline_panels("f").len(), 3);
}
