//! Tests of reports about the uplink: buffer status reports to the base station, reports of grants to listeners, and
//! entries in each device's own log.

use airpace_radio::{DciFormat, RadioReport};

use super::super::super::config::uplink::{BsrReading, UplinkBackgroundConfig};
use super::*;

#[test]
fn a_stream_of_acks_rides_on_reports_and_leaves_in_bunches() {
    let acks = Source::new(
        0,
        40,
        Rate::from_bytes_per(Bytes(40), std::time::Duration::from_millis(1)),
        Time::ZERO,
        Time::from_secs(5),
    );
    let mut upload = Upload::new(
        &quiet(UplinkConfig { sr_period_ms: 40, ..UplinkConfig::default() }),
        &[device(20.0)],
        vec![acks],
        1,
    );
    upload.run(Time::from_secs(6), |_| {});
    assert_eq!(upload.exits.len() as u64, upload.pushed());
    let steady: Vec<f64> = upload.delays_ms().split_off(1000);
    let mean = steady.iter().sum::<f64>() / steady.len() as f64;
    let most = steady.iter().copied().fold(0.0, f64::max);
    println!("mean {mean:.1} ms, at most {most:.1} ms");
    assert!(most <= 20.0, "no ACK waits for an opportunity, which come 40 ms apart: {most}");
    let mut bunches: Vec<Time> = upload.exits.iter().map(|exit| exit.time).collect();
    bunches.dedup();
    let per_bunch = upload.exits.len() as f64 / bunches.len() as f64;
    assert!(per_bunch > 4.0, "{per_bunch} ACKs leave together");
}

#[test]
fn a_cautious_reading_of_reports_wastes_less_and_takes_longer() {
    let run = |bsr_reading| {
        let uplink = UplinkConfig { bsr_reading, ..UplinkConfig::default() };
        let bursts = Source::new(0, 6000, Rate::from_mbps(0.2), Time::ZERO, Time::from_secs(20));
        let mut upload = Upload::new(&quiet(uplink), &[device(20.0)], vec![bursts], 1);
        upload.cell.set_recording(true);
        let mut granted = 0;
        upload.run(Time::from_secs(21), |cell| {
            granted += grants(cell).iter().map(|(_, dci)| dci.bits().0 / 8).sum::<u64>();
        });
        let delays_ms = upload.delays_ms();
        let mean_ms = delays_ms.iter().sum::<f64>() / delays_ms.len() as f64;
        let waste = granted as f64 / (upload.pushed() * 6000) as f64;
        println!("{bsr_reading:?}: {waste:.3} bytes granted for each, {mean_ms:.1} ms");
        (waste, mean_ms)
    };
    let (upper, lower) = (run(BsrReading::Upper), run(BsrReading::Lower));
    assert!(lower.0 < upper.0 && lower.1 > upper.1);
}

#[test]
fn uplink_grants_are_read_by_all_and_a_log_tells_its_own_of_both_directions() {
    let config = CellConfig::default();
    let devices = [device(20.0), device(20.0)];
    let mut upload =
        Upload::new(&config, &devices, vec![Source::saturating(0, 1500), Source::saturating(1, 1500)], 1);
    upload.cell.set_listening(PHONE, true);
    upload.cell.set_logging(PHONE, true);
    let (mut heard, mut logged): (Vec<RadioReport>, Vec<RadioReport>) = (Vec::new(), Vec::new());
    let mut number = 0;
    upload.run(Time::from_millis(200), |cell| {
        let now = Time::from_millis(cell.subframes_run());
        for device in [0, 1] {
            let packet = Packet {
                flow: FlowId(9),
                device: DeviceId(device),
                number,
                bytes: Bytes(1000),
                sent: now,
                ecn: Ecn::NotEct,
            };
            cell.push(now, packet);
        }
        number += 1;
        while let Some((device, report)) = cell.pop_report(now) {
            assert_eq!(device, PHONE);
            heard.push(report.clone());
        }
        while let Some((device, report)) = cell.pop_own_report(now) {
            assert_eq!(device, PHONE);
            logged.push(report.clone());
        }
    });
    assert_eq!(heard.len(), logged.len());
    let mut kinds = [0; 4];
    for (heard, logged) in heard.iter().zip(&logged) {
        let own = logged.own.expect("its own side");
        assert!(own.uplink_queue.is_some() && heard.own.expect("its own side").uplink_queue.is_none());
        let mine: Vec<Dci> = heard.dcis.iter().copied().filter(|dci| dci.rnti == own.rnti).collect();
        assert_eq!(logged.dcis, mine, "the log has the DCIs that the control channel has for the device");
        for dci in &heard.dcis {
            let is_uplink = dci.direction == Direction::Uplink;
            assert_eq!(is_uplink, dci.format == DciFormat::F0);
            kinds[usize::from(is_uplink) + 2 * usize::from(dci.rnti == own.rnti)] += 1;
        }
        assert!(heard.idle_prbs().unwrap() <= heard.carrier_prbs.unwrap());
        assert_eq!(logged.idle_prbs(), None, "the log does not contain others' grants");
    }
    assert!(kinds.iter().all(|&count| count > 50), "both directions of both devices appear: {kinds:?}");
    let queues: Vec<u64> = logged.iter().filter_map(|report| Some(report.own?.uplink_queue?.0)).collect();
    assert!(queues.last() > queues.first(), "the modem's log shows its queue grow");
}

#[test]
fn background_uploads_take_the_load_that_was_asked_for() {
    let background = UplinkBackgroundConfig { load: 0.3, ..UplinkBackgroundConfig::default() };
    let config = CellConfig {
        uplink: UplinkConfig { background, ..UplinkConfig::default() },
        ..CellConfig::default()
    };
    let mut upload = Upload::new(&config, &[device(20.0)], vec![lone_acks(1)], 1);
    upload.cell.set_recording(true);
    let (mut prbs, mut subframes) = (0_u32, 0_u32);
    upload.run(Time::from_secs(60), |cell| {
        subframes += 1;
        let background = |owner: &airpace_event::Owner| matches!(owner, airpace_event::Owner::Background(_));
        for subframe in cell.subframes() {
            let pairs = subframe.report.dcis.iter().zip(subframe.owners);
            prbs += pairs
                .filter(|(_, owner)| background(owner))
                .map(|(dci, _)| u32::from(dci.prbs.len()))
                .sum::<u32>();
        }
    });
    let load = f64::from(prbs) / f64::from(96 * subframes);
    println!("load {load:.3}");
    assert!((0.24..0.38).contains(&load), "the configured load is 0.3 of the PRBs; the users took {load}");
}

#[test]
fn what_cannot_be_built_is_refused_by_key_and_remedy() {
    let refusal = |change: fn(&mut UplinkConfig)| {
        let mut config = CellConfig::default();
        change(&mut config.uplink);
        crate::cell::CellPlan::new(&config, &[device(20.0)]).expect_err("must be refused").to_string()
    };
    let errors = [
        refusal(|uplink| uplink.prbs = Some(7)),
        refusal(|uplink| uplink.carriers = 0),
        refusal(|uplink| uplink.pucch_prbs = Some(50)),
        refusal(|uplink| uplink.queue_bytes = 100),
        refusal(|uplink| uplink.sr_period_ms = 15),
        refusal(|uplink| uplink.sr_grant_bytes = 0),
        refusal(|uplink| uplink.retx_bsr_ms = 0),
        refusal(|uplink| uplink.sinr_offset_db = f64::NAN),
        refusal(|uplink| uplink.power_prbs = Some(0)),
        refusal(|uplink| uplink.srs_period_ms = 0),
        refusal(|uplink| uplink.measurement_sigma_db = -1.0),
        refusal(|uplink| uplink.max_retransmissions = 28),
        refusal(|uplink| uplink.background.load = 1.5),
    ];
    insta::assert_snapshot!(errors.join("\n"), @r"
    `uplink.prbs` is 7; must be one of 6, 15, 25, 50, 75, 100
    `uplink.carriers` is 0; a device has 1 to 5 of them
    `uplink.pucch_prbs` is 50 at each edge of 100; give at most 49
    `uplink.queue_bytes` is 100: not even one packet fits; give 1500 or more
    `uplink.sr_period_ms` is 15; must be one of 1, 2, 5, 10, 20, 40, 80
    `uplink.sr_grant_bytes` is 0; give 1 to 1500 (100 is usual)
    `uplink.retx_bsr_ms` is 0: devices would ask for ever; give 320 or more
    `uplink.sinr_offset_db` is NaN; give -60 to 60 dB over the downlink
    `uplink.power_prbs` is 0: no power at all; give 1 or more, or leave it out
    `uplink.srs_period_ms` is 0; give at least 1 (10 is usual)
    `uplink.measurement_sigma_db` is -1; give a number of at least 0
    `uplink.max_retransmissions` is 28; must be 0 to 27 (3 is usual)
    `uplink.background.load` is 1.5; a probability is 0 to 1 (0.01 is one in a hundred)
    ");
}
