//! A recorder can request the reports of a device's own modem.

use std::ops::ControlFlow;

use airpace_core::DeviceId;
use airpace_event::{Detail, Event, Owner, Recorder, Reported, Source};
use airpace_radio::{CarrierId, Dci};
use airpace_sim::{Scenario, SchemeSpec, builtin};

const DEVICE: DeviceId = DeviceId(0);

/// Grants of the device by carrier and subframe: the grants in its modem's reports, and the cell's true grants.
#[derive(Default)]
struct Ears {
    listens: bool,
    logged: Vec<(CarrierId, u64, Vec<Dci>)>,
    truth: Vec<(CarrierId, u64, Vec<Dci>)>,
}

impl Recorder for Ears {
    fn record(&mut self, event: Event<'_>) {
        match event {
            Event::Subframe(subframe) => {
                let grants = subframe.report.dcis.iter().zip(subframe.owners);
                let own = grants.filter(|(_, owner)| **owner == Owner::Device(DEVICE)).map(|(dci, _)| *dci);
                self.truth.push((subframe.report.carrier, subframe.report.slot.index, own.collect()));
            }
            Event::Reported(Reported { device, source, report }) => {
                assert_eq!(
                    (*device, *source),
                    (DEVICE, Source::Modem),
                    "only the requested reports should come"
                );
                assert!(report.own.is_some(), "the modem's report should have the device's own side");
                self.logged.push((report.carrier, report.slot.index, report.dcis.clone()));
            }
            _ => {}
        }
    }

    fn wants(&self, detail: Detail) -> bool {
        match detail {
            Detail::Subframes => true,
            Detail::Reports(device, source) => self.listens && device == DEVICE && source == Source::Modem,
            Detail::UsedReports(_) => false,
        }
    }
}

fn run(listens: bool) -> Ears {
    let (name, text) = builtin().iter().find(|(name, _)| *name == "stationary-idle").unwrap();
    let sets = [("duration_s".to_owned(), "1".to_owned())];
    let scenario = Scenario::load(text, name, &sets).unwrap();
    let mut ears = Ears { listens, ..Ears::default() };
    let scheme = SchemeSpec::parse("cubic").unwrap();
    airpace_sim::run(&scenario, &scheme, 1, &mut ears, &mut |_| ControlFlow::Continue(())).unwrap();
    ears
}

#[test]
fn a_modem_logs_its_own_grants_and_to_read_them_changes_nothing() {
    let (deaf, ears) = (run(false), run(true));
    assert!(deaf.logged.is_empty());
    assert_eq!(deaf.truth, ears.truth, "the run should be the same");
    let granted: Vec<_> = ears.logged.iter().filter(|(.., dcis)| !dcis.is_empty()).collect();
    assert!(granted.len() > 100, "{} subframes with a grant", granted.len());
    for logged in granted {
        assert!(ears.truth.contains(logged), "{logged:?} was not granted");
    }
}
