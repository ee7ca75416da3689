//! Receivers that report more than they measured.

use airpace_cc::pbe::feedback::Feedback;
use airpace_core::{Rate, Rider, Time};
use airpace_scenario::Misreport;

/// Returns the feedback that the flow sends at `now` instead of the feedback `truth` from the receiver of `pbe`.
pub(crate) fn told(lie: &Misreport, now: Time, truth: Rider) -> Rider {
    let Some(fed) = Feedback::read(truth.as_bytes()).filter(|_| lie.is_on(now)) else { return truth };
    let exaggerated = |rate: Option<Rate>| rate.map(|rate| rate.scaled(lie.factor));
    let told = Feedback {
        capacity: exaggerated(fed.capacity),
        fair_share: exaggerated(fed.fair_share),
        internet: fed.internet && !lie.denies_internet,
        ..fed
    };
    told.write()
}
