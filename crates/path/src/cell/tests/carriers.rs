//! Carrier aggregation and handovers.

use super::super::bler::BlerModel;
use super::*;

const PHONE: DeviceId = DeviceId(0);

/// The experiment of PBE-CC Fig. 2: data arrives at 40 Mbit/s for two seconds, which exceeds the primary carrier's
/// capacity, then at 6 Mbit/s.
#[test]
fn a_second_carrier_comes_with_the_load_drains_the_queue_and_goes() {
    let config = CellConfig { prbs: Some(50), carriers: 2, ..CellConfig::default() };
    let (start, slower) = (Time::from_secs(1), Time::from_secs(3));
    let sources = vec![
        Source::new(0, 1500, Rate::from_mbps(40.0), start, slower),
        Source::new(0, 1500, Rate::from_mbps(6.0), slower, Time::from_secs(6)),
    ];
    let mut bench = Bench::new(&config, &[device(17.0)], sources);
    let (mut activated, mut deactivated, mut drained) = (None, None, None);
    let mut peak = Bytes::ZERO;
    bench.run(Time::from_secs(6), |cell| {
        let now = Time::from_millis(cell.subframes_run());
        let backlog = cell.backlog_of(PHONE);
        peak = peak.max(backlog);
        match cell.active_carriers(PHONE) {
            2 => activated = activated.or(Some(now)),
            _ if activated.is_some() => deactivated = deactivated.or(Some(now)),
            _ => {}
        }
        if activated.is_some() && backlog < Bytes(15_000) {
            drained = drained.or(Some(now));
        }
    });
    let since = |time: Option<Time>, origin: Time| (time.expect("it happens") - origin).as_secs_f64();
    println!(
        "activated {:.3} s, drained {:.3} s after the start with at most {} bytes; deactivated {:.3} s after 6 Mbit/s",
        since(activated, start),
        since(drained, start),
        peak.0,
        since(deactivated, slower)
    );
    assert!(
        (since(activated, start) - 0.13).abs() <= 0.03,
        "activated {:.3} s after the start",
        since(activated, start)
    );
    assert!(peak > Bytes(50_000), "the primary carrier alone cannot carry the load: {peak:?}");
    assert!(
        since(drained, start) <= 0.6,
        "the queue is empty {:.3} s after the start",
        since(drained, start)
    );
    assert!(
        since(deactivated, slower) <= 1.0,
        "deactivated {:.3} s after the load fell",
        since(deactivated, slower)
    );
}

#[test]
fn packets_over_two_carriers_arrive_in_order() {
    let mut config = CellConfig { prbs: Some(25), carriers: 2, ..CellConfig::default() };
    config.aggregation.always_active = true;
    config.bler.model = BlerModel::Pbe;
    config.bler.pbe_bit_error_rate = 1e-5;
    let mut bench = Bench::new(&config, &[device(20.0)], vec![Source::saturating(0, 1500)]);
    bench.run(Time::from_secs(2), |_| {});
    let numbers: Vec<u64> = bench.delays_ms(0).iter().map(|(packet, _)| packet.number).collect();
    assert!(numbers.len() > 2000 && numbers.is_sorted());
}

#[test]
fn a_handover_interrupts_loses_nothing_and_starts_afresh() {
    let mut config = CellConfig { prbs: Some(25), carriers: 2, ..CellConfig::default() };
    config.aggregation.on_ms = 50;
    let phone = DeviceRadioConfig { handover_s: vec![1.0], ..device(15.0) };
    let until = Time::from_secs(2);
    let source = Source::new(0, 1500, Rate::from_mbps(20.0), Time::ZERO, until);
    let mut bench = Bench::new(&config, &[phone], vec![source]);
    bench.cell.set_listening(PHONE, true);
    let mut rntis = Vec::new();
    let mut active = Vec::new();
    bench.run(Time::from_secs(4), |cell| {
        let now = Time::from_millis(cell.subframes_run());
        while let Some((_, report)) = cell.pop_report(now) {
            let rnti = report.own.expect("a device's own report").rnti;
            if rntis.last() != Some(&rnti) {
                rntis.push(rnti);
            }
        }
        active.push(cell.active_carriers(PHONE));
    });
    assert_eq!(rntis.len(), 2, "one handover, one new C-RNTI");
    assert_eq!((active[999], active[1010]), (2, 1), "further carriers come up deactivated");
    let sent = bench.sources[0].number;
    let delivered: Vec<_> = bench.exits.iter().filter(|exit| exit.fate == Fate::Delivered).collect();
    assert_eq!(delivered.len() as u64, sent, "forwarding is lossless");
    assert!(delivered.windows(2).all(|pair| pair[0].packet.number < pair[1].packet.number));
    let gaps = delivered.windows(2).map(|pair| (pair[1].time - pair[0].time).as_secs_f64() * 1e3);
    let longest = gaps.fold(0.0, f64::max);
    assert!((30.0..=55.0).contains(&longest), "nothing arrives for 30 to 50 ms: {longest}");
}
