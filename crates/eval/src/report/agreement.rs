//! What the page says of an emulated run that was compared with virtual time.

use serde::Serialize;

use crate::agreement::{Agreement, Comparison, Course, MOST_MS, Percentiles};
use crate::direction;
use crate::numbers;

/// What the page says of it: texts for the table, numbers for the figures.
#[derive(Serialize)]
pub(super) struct AgreementData {
    agrees: bool,
    /// Why the comparison proves nothing.
    unfit_because: Vec<String>,
    objections: Vec<String>,
    /// The bound on the 99th percentile of differences, in ms.
    most_ms: f64,
    /// What is compared, and its median, 99th percentile and maximum.
    differences: Vec<[String; 4]>,
    /// For each comparison: packets compared, dropped by both, by real time only, by virtual time only.
    fates: Vec<(String, [String; 4])>,
    /// What was counted beside it, and how many.
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
        let fates = |what: &str, of: &Comparison| {
            let counts = [of.compared, of.dropped_by_both, of.only_real, of.only_virtual];
            (what.to_owned(), counts.map(|many| many.to_string()))
        };
        let outside = [
            ("packets of the schedule", agreement.packets),
            ("came to the other end", agreement.delivered),
            ("not sent", agreement.not_sent),
            ("lost outside of the emulator", agreement.lost_outside),
        ];
        let outside = outside.into_iter().enumerate().filter(|(place, (_, many))| *place < 2 || *many > 0);
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
            unfit_because: agreement.unfit_because.clone(),
            objections: agreement.objections(),
            most_ms: MOST_MS,
            differences: vec![
                row("departures, packets as sent", &as_sent.departures_ms),
                row("departures, packets as scheduled", &as_scheduled.departures_ms),
                row("sent late by the sender", &agreement.sent_late_ms),
                row("waited until the emulator read it", &agreement.read_late_ms),
                row("handed over late by the emulator", &agreement.handed_late_ms),
            ],
            fates: vec![fates("packets as sent", as_sent), fates("packets as scheduled", as_scheduled)],
            counts: outside.map(|(_, (what, many))| (what.to_owned(), many.to_string())).collect(),
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
