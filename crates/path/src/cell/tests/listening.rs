//! Tests of a device's reception of the control channel, with and without imperfections.

use std::collections::BTreeMap;

use airpace_radio::RadioReport;

use super::super::bler::BlerModel;
use super::super::config::{LostCarrier, TelemetryConfig};
use super::*;

/// All reports to device 0 during a second with a busy flow, with their times, and the cell's own record.
fn listen(telemetry: TelemetryConfig) -> (Vec<(Time, RadioReport)>, Vec<RadioReport>) {
    listen_beside(500.0, telemetry)
}

/// As [`listen`], with `control_per_second` control users per second.
fn listen_beside(
    control_per_second: f64,
    telemetry: TelemetryConfig,
) -> (Vec<(Time, RadioReport)>, Vec<RadioReport>) {
    let mut config = CellConfig { telemetry, carriers: 2, ..CellConfig::default() };
    config.aggregation.always_active = true;
    config.background.control_per_second = Some(control_per_second);
    config.bler.model = BlerModel::Pbe;
    let mut bench = Bench::new(&config, &[device(22.0)], vec![Source::saturating(0, 1500)]);
    bench.cell.set_listening(DeviceId(0), true);
    bench.cell.set_recording(true);
    let (mut heard, mut truth) = (Vec::new(), Vec::new());
    bench.run(Time::from_secs(1), |cell| {
        truth.extend(cell.subframes().map(|subframe| subframe.report.clone()));
        let now = Time::from_millis(cell.subframes_run() - 1);
        while let Some((device, report)) = cell.pop_report(now) {
            assert_eq!(device, DeviceId(0));
            heard.push((now, report.clone()));
        }
    });
    (heard, truth)
}

#[test]
fn a_perfect_listener_hears_every_grant_at_the_end_of_its_subframe() {
    let (heard, truth) = listen(TelemetryConfig::default());
    assert_eq!(heard.len(), truth.len() - 2, "two carriers, every subframe; the last is still on the air");
    for ((at, report), truth) in heard.iter().zip(&truth) {
        assert_eq!(report.dcis, truth.dcis);
        assert_eq!(*at, report.time + std::time::Duration::from_millis(1));
        let own = report.own.expect("its own side");
        let mine = report.dcis.iter().find(|dci| dci.rnti == own.rnti);
        assert_eq!(own.decoded.is_some(), mine.is_some(), "whether the device's own block was received");
        assert!(
            own.active
                && own.bits_per_prb > Some(500.0)
                && own.sinr_db.is_some_and(|sinr_db| (sinr_db - 22.0).abs() < 1e-9)
        );
    }
}

#[test]
fn the_new_data_indicator_tells_retransmissions() {
    let (heard, _) = listen(TelemetryConfig::default());
    let mut last = [[[None; 2]; 8]; 2];
    let mut seen = 0;
    for (_, report) in &heard {
        let rnti = report.own.expect("its own side").rnti;
        for dci in report.dcis.iter().filter(|dci| dci.rnti == rnti) {
            let last = &mut last[usize::from(report.carrier.0)][usize::from(dci.harq.unwrap())];
            for codeword in (0..2).filter(|&codeword| dci.mcs[codeword].is_some()) {
                let ndi = dci.ndi[codeword].unwrap();
                let by_ndi = last[codeword].replace(ndi) == Some(ndi);
                assert_eq!(by_ndi, dci.retransmission[codeword]);
                seen += u32::from(by_ndi);
            }
        }
    }
    assert!(seen > 50, "{seen} retransmissions");
}

#[test]
fn imperfections_do_what_they_say() {
    let telemetry = TelemetryConfig {
        missed_dci: 0.1,
        latency_ms: 3.0,
        latency_jitter_ms: 1.0,
        reserved_mcs_on_retransmission: true,
        hide_retransmissions: true,
        lost_carrier: vec![LostCarrier { carrier: 1, from_s: 0.4, until_s: 0.6 }],
        ..TelemetryConfig::default()
    };
    let (heard, truth) = listen(telemetry);
    let count = |reports: &mut dyn Iterator<Item = &RadioReport>| {
        reports.filter(|report| report.carrier.0 == 0).map(|report| report.dcis.len()).sum::<usize>() as f64
    };
    let read = count(&mut heard.iter().map(|(_, report)| report)) / count(&mut truth.iter());
    assert!((read - 0.9).abs() < 0.03, "the share of DCIs that were read is {read}");
    for (at, report) in &heard {
        assert!(*at >= report.time + std::time::Duration::from_millis(4));
        assert!(
            report.carrier.0 == 0 || !(400..600).contains(&report.time.as_millis()),
            "the carrier was lost then, so it has no report"
        );
    }
    let dcis = || heard.iter().flat_map(|(_, report)| &report.dcis);
    assert!(dcis().all(|dci| !dci.is_retransmission()));
    let reserved = dcis().filter(|dci| dci.mcs[0].is_some_and(|mcs| mcs > 28));
    assert!(reserved.clone().count() > 10 && reserved.clone().all(|dci| dci.bits().0 == 0));
}

#[test]
fn false_dcis_are_those_of_nobody() {
    let telemetry = TelemetryConfig { false_dci_per_subframe: 0.5, ..TelemetryConfig::default() };
    let (heard, truth) = listen(telemetry);
    let total =
        |reports: &mut dyn Iterator<Item = &RadioReport>| reports.map(|r| r.dcis.len()).sum::<usize>();
    let more =
        total(&mut heard.iter().map(|(_, report)| report)) - total(&mut truth.iter().take(heard.len()));
    let per_report = more as f64 / heard.len() as f64;
    assert!((per_report - 0.5).abs() < 0.06, "{per_report} false DCIs per report");
}

#[test]
fn whether_a_grant_is_missed_does_not_depend_on_the_grants_of_others() {
    let own_grants = |control_per_second| {
        let telemetry = TelemetryConfig { missed_dci: 0.1, ..TelemetryConfig::default() };
        let (heard, truth) = listen_beside(control_per_second, telemetry);
        let mut grants = BTreeMap::new();
        for ((_, report), truth) in heard.iter().zip(&truth) {
            let rnti = report.own.expect("its own side").rnti;
            if truth.dcis.iter().any(|dci| dci.rnti == rnti) {
                let is_heard = report.dcis.iter().any(|dci| dci.rnti == rnti);
                grants.insert((report.carrier, report.slot.index), is_heard);
            }
        }
        grants
    };
    let (alone, beside) = (own_grants(0.0), own_grants(900.0));
    let both: Vec<(bool, bool)> =
        alone.iter().filter_map(|(at, heard)| Some((*heard, *beside.get(at)?))).collect();
    let missed = both.iter().filter(|(heard, _)| !heard).count();
    assert!(
        both.len() > 1_500 && (100..250).contains(&missed),
        "{missed} of {} grants are missed",
        both.len()
    );
    assert!(both.iter().all(|(one, other)| one == other));
}
