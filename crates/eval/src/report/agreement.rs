//! What the page says of an emulated run that was compared with virtual time.

use serde::Serialize;

use crate::agreement::{Agreement, Comparison, Course, MOST_MS, Percentiles};
use crate::direction;
use crate::numbers;

/// What the page says of it: texts for the table, numbers for the figures.
#[derive(Serialize)]
pub(super) struct AgreementData {
    agrees: bool,
    objections: Vec<String>,
    /// The bound on the 99th percentile of differences, in ms.
    most_ms: f64,
    /// What is compared, and its median, 99th percentile and maximum.
    differences: Vec<[String; 4]>,
    /// What was counted, and how many.
    counts: Vec<(String, String)>,
    /// The distributions of how far apart departures are: name, then (ms, part of packets).
    cdfs: Vec<(&'static str, Vec<(f64, f64)>)>,
    interval_s: f64,
    start_s: f64,
    /// When the last interval ends.
    end_s: f64,
    courses: Vec<CourseData>,
}

/// A course with its name.
#[derive(Serialize)]
struct CourseData {
    name: String,
    #[serde(flatten)]
    course: Course,
}

impl AgreementData {
    pub(super) fn of(agreement: Agreement) -> AgreementData {
        let several = agreement.courses.iter().any(|course| course.device > 0);
        let row = |what: &str, of: &Percentiles| {
            let text = |value: Option<f64>| value.map_or("–".to_owned(), |value| numbers::text(value, 3));
            [what.to_owned(), text(of.p50), text(of.p99), text(of.max)]
        };
        let Agreement { as_sent, as_scheduled, .. } = &agreement;
        let only = |of: &Comparison| {
            format!("{} in real time only, {} in virtual time only", of.only_real, of.only_virtual)
        };
        let count = |what: &str, many: u64| (what.to_owned(), many.to_string());
        let mut counts = vec![
            count("packets of the schedule", agreement.packets),
            count("came to the other end", agreement.delivered),
            count("dropped in real time", agreement.dropped),
            count("dropped in virtual time, as sent", as_sent.dropped),
            count("dropped in virtual time, as scheduled", as_scheduled.dropped),
            ("drops that differ, as sent".to_owned(), only(as_sent)),
            ("drops that differ, as scheduled".to_owned(), only(as_scheduled)),
        ];
        for (what, many) in
            [("not sent", agreement.not_sent), ("lost outside of the emulator", agreement.lost_outside)]
        {
            if many > 0 {
                counts.push(count(what, many));
            }
        }
        let intervals = |course: &Course| {
            [&course.real_mbps, &course.as_sent_mbps, &course.as_scheduled_mbps]
                .map(Vec::len)
                .into_iter()
                .max()
        };
        let intervals = agreement.courses.iter().filter_map(intervals).max().unwrap_or(1);
        let name = |course: &Course| match (direction::word(course.direction), several) {
            (way, true) => format!("{way}, device {}", course.device),
            (way, false) => way.to_owned(),
        };
        AgreementData {
            agrees: agreement.agrees(),
            objections: agreement.objections(),
            most_ms: MOST_MS,
            differences: vec![
                row("departures, packets as sent", &as_sent.departures_ms),
                row("departures, packets as scheduled", &as_scheduled.departures_ms),
                row("delays, packets as scheduled", &as_scheduled.delays_ms),
                row("sent late by the sender", &agreement.sent_late_ms),
                row("waited until the emulator read it", &agreement.read_late_ms),
                row("handed over late by the emulator", &agreement.handed_late_ms),
            ],
            counts,
            cdfs: vec![
                ("as sent", as_sent.departures_cdf.clone()),
                ("as scheduled", as_scheduled.departures_cdf.clone()),
            ],
            interval_s: agreement.interval_s,
            start_s: agreement.start_s,
            end_s: ((agreement.start_s + agreement.interval_s * intervals as f64) * 1e3).round() / 1e3,
            courses: agreement
                .courses
                .iter()
                .map(|course| CourseData { name: name(course), course: course.clone() })
                .collect(),
        }
    }
}
