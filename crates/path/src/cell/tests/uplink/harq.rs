//! Tests of block losses, handovers, carriers and transmit power.

use super::super::super::config::RlcMode;
use super::*;

fn lossy(mode: RlcMode, retransmission_factor: f64) -> CellConfig {
    let mut config = quiet(UplinkConfig::default());
    config.bler.model = BlerModel::Pbe;
    config.bler.pbe_bit_error_rate = 2e-5;
    config.bler.pbe_retransmission_factor = retransmission_factor;
    config.rlc.mode = mode;
    config
}

#[test]
fn a_lost_block_comes_again_after_eight_milliseconds_and_once_more_after_eight() {
    // Each packet has its own block; no other block is in flight when the block is lost.
    let source = Source::new(0, 60, Rate::from_bps(4800), Time::from_millis(2), Time::from_secs(60));
    let mut config = lossy(RlcMode::Acknowledged, 0.5);
    config.bler.pbe_bit_error_rate = 2e-4;
    let mut upload = Upload::new(&config, &[device(20.0)], vec![source], 5);
    upload.run(Time::from_secs(61), |_| {});
    let delays_ms = upload.delays_ms();
    assert_eq!(delays_ms.len() as u64, upload.pushed());
    let least = delays_ms.iter().copied().fold(f64::MAX, f64::min);
    let mut attempts = [0_u32; 4];
    for delay_ms in delays_ms {
        let extra = delay_ms - least;
        assert!(extra % 8.0 == 0.0, "every attempt costs 8 ms: {extra} ms more than the least");
        if let Some(attempt) = attempts.get_mut((extra / 8.0) as usize) {
            *attempt += 1;
        }
    }
    println!("received at the first, second, third and fourth attempt: {attempts:?}");
    assert!(attempts.is_sorted_by(|earlier, later| earlier > later) && attempts[2] > 5, "{attempts:?}");
}

#[test]
fn without_recovery_what_harq_gives_up_is_lost_and_with_it_nothing_is() {
    let lost = |mode| {
        let source = Source::new(0, 1500, Rate::from_mbps(40.0), Time::ZERO, Time::from_secs(2));
        let mut upload = Upload::new(&lossy(mode, 1.0), &[device(25.0)], vec![source], 1);
        upload.run(Time::from_secs(6), |_| {});
        assert_eq!(upload.exits.len() as u64, upload.pushed(), "every packet ends");
        upload.exits.iter().filter(|exit| exit.fate == Fate::HarqFailure).count()
    };
    assert_eq!(lost(RlcMode::Acknowledged), 0);
    assert!(lost(RlcMode::Unacknowledged) > 10);
}

#[test]
fn the_outer_loop_holds_a_tenth_of_first_transmissions_lost_in_fading() {
    let mut phone = device(18.0);
    phone.channel.fading = super::super::super::channel::fading::FadingProfile::Epa;
    let mut upload = Upload::new(&CellConfig::default(), &[phone], vec![Source::saturating(0, 1500)], 2);
    upload.cell.set_recording(true);
    let (mut first, mut again) = (0_u32, 0_u32);
    upload.run(Time::from_secs(20), |cell| {
        for block in cell.uplink.due_in(cell.subframes_run()) {
            first += u32::from(block.transmissions == 0);
            again += u32::from(block.transmissions == 1);
        }
    });
    let lost = f64::from(again) / f64::from(first);
    println!("{:.1} % of first transmissions are lost", 100.0 * lost);
    assert!((0.05..0.15).contains(&lost), "{lost}");
}

#[test]
fn a_handover_stops_grants_keeps_the_buffer_and_loses_nothing() {
    let phone = DeviceRadioConfig { handover_s: vec![1.0], ..device(15.0) };
    let source = Source::new(0, 1500, Rate::from_mbps(15.0), Time::ZERO, Time::from_secs(2));
    let mut upload = Upload::new(&CellConfig::default(), &[phone], vec![source], 4);
    upload.cell.set_recording(true);
    let mut seen = Vec::new();
    upload.run(Time::from_secs(4), |cell| {
        seen.extend(grants(cell).into_iter().map(|(at, dci)| (at, dci.rnti)));
    });
    let gap = seen.windows(2).max_by_key(|pair| pair[1].0 - pair[0].0).expect("grants");
    assert!(
        gap[0].0 < 1000 && (1030..1075).contains(&gap[1].0),
        "no grants from 1 s until the handover ends: {gap:?}"
    );
    assert_ne!(gap[0].1, gap[1].1, "a new C-RNTI");
    let delivered = upload.exits.iter().filter(|exit| exit.fate == Fate::Delivered);
    let numbers: Vec<u64> = delivered.map(|exit| exit.packet.number).collect();
    assert!(numbers.iter().copied().eq(0..upload.pushed()), "every packet should arrive once and in order");
}

#[test]
fn a_second_uplink_carrier_comes_with_the_load() {
    let mut config = quiet(UplinkConfig { carriers: 2, ..UplinkConfig::default() });
    (config.prbs, config.carriers) = (Some(50), 2);
    let mut upload = Upload::new(&config, &[device(28.0)], vec![Source::saturating(0, 1500)], 1);
    let end = Time::from_secs(3);
    upload.run(end, |_| {});
    let early = upload.goodput_mbps(0, Time::from_millis(40), Time::from_millis(140));
    let late = upload.goodput_mbps(0, Time::from_secs(1), end);
    println!("{early:.1} Mbit/s on one carrier, {late:.1} on two");
    assert!((1.95..2.05).contains(&(late / early)), "{early} and {late} Mbit/s");
    let numbers: Vec<u64> =
        upload.exits.iter().filter(|exit| exit.fate == Fate::Delivered).map(|e| e.packet.number).collect();
    assert!(numbers.is_sorted(), "packets should arrive in order over both carriers");
}

#[test]
fn who_lacks_power_is_given_no_more_prbs_than_it_can_fill() {
    let run = |power_prbs| {
        let config = CellConfig {
            uplink: UplinkConfig { power_prbs, ..UplinkConfig::default() },
            ..CellConfig::default()
        };
        let mut upload = Upload::new(&config, &[device(8.0)], vec![Source::saturating(0, 1500)], 1);
        upload.cell.set_recording(true);
        let mut widest = 0;
        let (from, end) = (Time::from_secs(1), Time::from_secs(3));
        let mut capacity = Bytes::ZERO;
        upload.run(end, |cell| {
            widest = grants(cell).iter().map(|(_, dci)| dci.prbs.len()).fold(widest, u16::max);
            let of_subframe = cell.uplink_capacity(PHONE, Bytes(1500));
            if of_subframe.time >= from {
                capacity += of_subframe.bytes;
            }
        });
        let carried = upload.goodput_mbps(0, from, end);
        let possible = Rate::from_bytes_per(capacity, end - from).as_mbps();
        println!("power for {power_prbs:?} PRBs: {carried:.2} Mbit/s of {possible:.2}, at most on {widest}");
        assert!((carried / possible - 1.0).abs() < 0.1, "{carried} Mbit/s carried, {possible} possible");
        (carried, widest)
    };
    let (strong_mbps, _) = run(None);
    let (weak_mbps, widest) = run(Some(4));
    assert!(
        widest < 96 && widest > 4,
        "the power is spread, but not so thin that nothing is received: {widest}"
    );
    assert!(weak_mbps < strong_mbps / 3.0);
}

#[test]
fn a_deep_buffer_fills_and_then_refuses() {
    let config = quiet(UplinkConfig { queue_bytes: 500_000, ..UplinkConfig::default() });
    let mut upload = Upload::new(&config, &[device(10.0)], vec![Source::saturating(0, 1500)], 1);
    upload.run(Time::from_secs(1), |_| {});
    assert!(upload.exits.iter().any(|exit| exit.fate == Fate::QueueFull));
    assert!(
        upload.exits.windows(2).all(|pair| pair[0].time <= pair[1].time),
        "exits should come in order of time"
    );
    let backlog = upload.cell.uplink_backlog_of(PHONE).0;
    assert!((460_000..=500_000).contains(&backlog), "{backlog}");
}
