//! Section of the report page on the agreement of an emulated run with virtual time.

use serde::Serialize;

use airpace_run::agreement::{Agreement, Comparison, Course, MAX_MS, Percentiles};
use airpace_run::numbers;
use airpace_tables::direction;

/// Data of the section: texts for the table, numbers for the figures.
#[derive(Serialize)]
pub(super) struct AgreementData {
    agrees: bool,
    /// Reasons why the comparison supports no conclusion; empty if it is fit.
    unfit_because: Vec<String>,
    objections: Vec<String>,
    /// Maximum 99th percentile of the differences at which real and virtual time agree, in ms.
    most_ms: f64,
    /// Name of the compared quantity, and the difference's median, 99th percentile and maximum.
    differences: Vec<[String; 4]>,
    /// For each comparison: packets compared, dropped in both, in real time only, in virtual time only.
    fates: Vec<(String, [String; 4])>,
    /// Further counters: name and value.
    counts: Vec<(String, String)>,
    /// Distributions of the departure differences: name, then (ms, fraction of packets).
    cdfs: Vec<(&'static str, Vec<(f64, f64)>)>,
    interval_s: f64,
    start_s: f64,
    /// End of the last interval, in s.
    end_s: f64,
    courses: Vec<CourseData>,
}

/// Throughput over time in one direction of a device, with a name.
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
            most_ms: MAX_MS,
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
