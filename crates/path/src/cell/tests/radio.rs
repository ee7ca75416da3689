//! Tests of the delay of single packets, of losses, and of the users' shares of the carrier.

use super::super::bler::BlerModel;
use super::super::config::RlcMode;
use super::*;

/// As in PBE-CC Fig. 3, a lost block delays its own packets by 8 ms, and the packets of the following blocks by 7, 6, …
/// 0 ms.
#[test]
fn a_lost_block_delays_itself_by_eight_milliseconds_and_its_followers_by_seven_to_none() {
    let mut config = CellConfig::default();
    config.bler.model = BlerModel::Pbe;
    config.bler.pbe_bit_error_rate = 3e-6;
    config.bler.pbe_retransmission_factor = 0.0;
    // One packet per subframe, each in its own block.
    let source = Source::new(0, 1000, Rate::from_mbps(8.0), Time::ZERO, Time::from_secs(5));
    let mut bench = Bench::new(&config, &[device(25.0)], vec![source]);
    bench.run(Time::from_secs(6), |_| {});
    let base_ms = bench.cell.base_delay(Bytes(1000)).as_secs_f64() * 1e3;
    let extra: Vec<i64> =
        bench.delays_ms(0).iter().map(|(_, delay_ms)| (delay_ms - base_ms).round() as i64).collect();
    assert_eq!(extra.len(), 5000);
    let lost = extra.iter().filter(|&&extra| extra == 8).count();
    // The loss probability of a block of 8700 bits is 1 - (1 - 3e-6)^8700, which is 2.6 %.
    assert!((80..200).contains(&lost), "{lost} of 5000 blocks were lost");
    let alone: Vec<&[i64]> = extra
        .windows(20)
        .filter(|near| {
            near[..9].iter().all(|&extra| extra == 0)
                && near[9] == 8
                && near[10..].iter().all(|&extra| extra < 8)
        })
        .collect();
    assert!(alone.len() > 30, "{} losses far from any other", alone.len());
    for near in alone {
        // The packet of the eighth subframe waits for the ninth subframe: a device gets one block per subframe, and in
        // the eighth subframe this block is the retransmission.
        assert_eq!(near[9..], [8, 7, 6, 5, 4, 3, 2, 1, 1, 0, 0]);
    }
}

#[test]
fn a_packet_alone_takes_the_base_delay_and_the_wait_for_a_subframe() {
    let source = Source::new(0, 1500, Rate::from_mbps(0.1), Time::from_micros(300), Time::from_secs(3));
    let mut bench = Bench::new(&CellConfig::default(), &[device(25.0)], vec![source]);
    bench.run(Time::from_secs(3), |_| {});
    let base_ms = bench.cell.base_delay(Bytes(1500)).as_secs_f64() * 1e3;
    assert_eq!(base_ms, 3.0, "processing, one subframe, processing");
    for (_, delay_ms) in bench.delays_ms(0) {
        assert!((base_ms..=base_ms + 1.0).contains(&delay_ms), "{delay_ms} ms");
    }
}

#[test]
fn a_deep_queue_fills_and_then_refuses() {
    let phone = DeviceRadioConfig { queue_bytes: 1_000_000, ..device(10.0) };
    let mut bench = Bench::new(&CellConfig::default(), &[phone], vec![Source::saturating(0, 1500)]);
    bench.run(Time::from_secs(1), |_| {});
    assert!(bench.exits.iter().any(|exit| exit.fate == Fate::QueueFull));
    assert!(bench.exits.windows(2).all(|pair| pair[0].time <= pair[1].time), "exits come in order of time");
    let backlog = bench.cell.backlog_of(DeviceId(0)).0;
    assert!((950_000..=1_000_000).contains(&backlog), "{backlog}");
}

#[test]
fn a_saturated_user_alone_gets_what_the_cell_says_it_could_have_carried() {
    for sinr_db in [4.0, 12.3, 21.0] {
        let mut bench =
            Bench::new(&CellConfig::default(), &[device(sinr_db)], vec![Source::saturating(0, 1500)]);
        let (from, end) = (Time::from_secs(2), Time::from_secs(8));
        let mut capacity = Bytes::ZERO;
        bench.run(end, |cell| {
            let of_subframe = cell.capacity(DeviceId(0), Bytes(1500));
            if (from..end).contains(&of_subframe.time) {
                capacity += of_subframe.bytes;
            }
        });
        let capacity_mbps = Rate::from_bytes_per(capacity, end - from).as_mbps();
        let carried_mbps = bench.goodput_mbps(0, 1500, from, end);
        println!("{sinr_db} dB: capacity {capacity_mbps:.2} Mbit/s, carried {carried_mbps:.2} Mbit/s");
        assert!(
            (carried_mbps / capacity_mbps - 1.0).abs() < 0.03,
            "at {sinr_db} dB: {carried_mbps} Mbit/s carried, {capacity_mbps} Mbit/s possible"
        );
    }
}

/// The share of the PRBs that a saturated user keeps during the first 20 ms after a second user arrives.
fn share_beside_a_newcomer(seed: u64) -> f64 {
    let sources = vec![
        Source::saturating(0, 1500),
        Source::new(1, 1500, Rate::from_mbps(200.0), Time::from_secs(1), Time::NEVER),
    ];
    let mut bench = Bench::with_seed(&CellConfig::default(), &[device(20.0), device(20.0)], sources, seed);
    bench.cell.set_recording(true);
    let mut prbs = [0_u32; 2];
    bench.run(Time::from_millis(1025), |cell| {
        for subframe in cell.subframes().filter(|subframe| subframe.report.time >= Time::from_millis(1004)) {
            for (dci, owner) in subframe.report.dcis.iter().zip(subframe.owners) {
                if let Owner::Device(DeviceId(device)) = owner {
                    prbs[usize::from(*device)] += u32::from(dci.prbs.len());
                }
            }
        }
    });
    f64::from(prbs[0]) / f64::from(prbs[0] + prbs[1])
}

/// In some of the runs, the subframe in which the newcomer's data arrives is occupied by a retransmission of the other
/// user.
#[test]
fn a_newcomer_does_not_starve_who_was_there() {
    let shares: Vec<f64> = (1..=40).map(share_beside_a_newcomer).collect();
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    println!("the incumbent has {mean:.3} of the PRBs: {shares:.2?}");
    assert!((0.45..=0.55).contains(&mean), "the incumbent has {mean:.2} of the PRBs on average");
    assert!(
        shares.iter().all(|share| (0.3..=0.7).contains(share)),
        "the incumbent's shares are {shares:.2?}"
    );
}

#[test]
fn without_recovery_what_harq_gives_up_is_lost_and_with_it_nothing_is() {
    let lost = |mode| {
        let mut config = CellConfig::default();
        config.rlc.mode = mode;
        config.bler.model = BlerModel::Pbe;
        config.bler.pbe_bit_error_rate = 1e-5;
        config.bler.pbe_retransmission_factor = 1.0;
        let source = Source::new(0, 1500, Rate::from_mbps(60.0), Time::ZERO, Time::from_secs(2));
        let mut bench = Bench::new(&config, &[device(25.0)], vec![source]);
        bench.run(Time::from_secs(4), |_| {});
        assert_eq!(bench.exits.len() as u64, bench.sources[0].number, "every packet ends");
        bench.exits.iter().filter(|exit| exit.fate == Fate::HarqFailure).count()
    };
    assert_eq!(lost(RlcMode::Acknowledged), 0);
    assert!(lost(RlcMode::Unacknowledged) > 10);
}
