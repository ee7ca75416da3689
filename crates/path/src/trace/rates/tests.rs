//! Tests of tables of rates in formats as users provide them.

use airpace_core::remedy::explain_plainly;
use proptest::prelude::*;

use super::*;

fn table(text: &str) -> (Trace, RateTable) {
    read(text.as_bytes(), None).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn refused(text: &str) -> String {
    explain_plainly(&Trace::parse(text.as_bytes(), None).expect_err(text))
}

#[test]
fn rows_last_as_long_as_their_times_report() {
    let cases = [
        ("time,mbps\n0,10\n5,20\n10,10\n", 15_000),
        ("time_ms,mbps\n0,10\n100,20\n200,0\n300,10\n", 400),
        ("second,mbps\n10,10\n11,20\n", 2000),
        ("mbps\n10\n20\n", 2000),
        ("timestamp,mbps\n1700000000000,10\n1700000000500,10\n", 1000),
        ("ts,mbps\n1700000000000000,10\n1700000000500000,10\n", 1000),
        ("Time (ms);Throughput [Mbit/s]\n0;1,5\n250;2,5\n", 500),
        ("Timestamp,x,DL_kbps\n2019.12.16_23.59.59,,9000\n2019.12.17_00.00.00,,9000\n", 2000),
        ("time,mbps\n2024-05-27T10:54:55.5Z,1\n2024-05-27T12:54:56.0+02:00,1\n", 1000),
        ("time\tmbps\r\n10:00:59\t4\r\n10:01:00\t4\r\n", 2000),
        ("# by a logger\n# time_s,mbps\n0,4\n2,4\n", 4000),
        ("\u{feff}\"time_s\",\"mbps\"\n\"0\",\"4\"\n#pause\n\"0.5\",\"4\"\n", 1000),
    ];
    for (text, period_ms) in cases {
        let read = Trace::parse(text.as_bytes(), None).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(read.period_ms(), period_ms, "{text}");
    }
    let (_, read) = table("time,mbps\n0,10\n0.5,10\n1.001,10\n");
    assert_eq!(read.to_string(), "3 rows of 0.5 s: 1.5 s; `mbps` in Mbit/s, times from `time`");
}

#[test]
fn units_are_those_of_the_name() {
    let mbit_per_unit = [
        ("mbps", 1.0),
        ("Mbps", 1.0),
        ("Mb/s", 1.0),
        ("throughput_MBps", 8.0),
        ("MB/s", 8.0),
        ("kbps", 1e-3),
        ("Kbps", 1e-3),
        ("kB/s", 8e-3),
        ("bps", 1e-6),
        ("bits_per_second", 1e-6),
        ("Gbit/s", 1e3),
        ("bytes_per_s", 8e-6),
        ("bandwidth_mbps", 1.0),
        ("DL rate (Mbits/sec)", 1.0),
        ("megabits_per_sec", 1.0),
    ];
    for (name, mbit) in mbit_per_unit {
        let unit = Unit::named(name).flatten().unwrap_or_else(|| panic!("{name}"));
        assert!((unit.bits / (mbit * 1e6) - 1.0).abs() < 1e-12, "{name}: {unit:?}");
    }
    for name in ["steps", "DL_bitrate", "throughput", "time_s", "mbps_x", "rtt_ms", "maps", "bumps", "bytes"]
    {
        assert_eq!(Unit::named(name), None, "{name}");
    }
    assert!(refused("MBPS\n1\n").contains("may mean bits or bytes"));
    let kbps = Trace::parse(b"DL_bitrate\n12000\n12000\n", Some("DL_bitrate:kbps")).unwrap();
    assert_eq!(kbps.times_ms().len(), 2000, "12 Mbit/s is a packet per millisecond");
    let error = explain_plainly(&Trace::parse(b"DL_bitrate\n12000\n", Some("DL_bitrate")).unwrap_err());
    assert!(error.contains("names no unit"), "{error}");
}

#[test]
fn what_is_no_row_per_interval_is_refused() {
    assert!(refused("second,mbps\n10,10\n11,20\n13,10\n").starts_with("line 4: second advances by 2.000 s"));
    assert!(refused("time,mbps\n0,1\n1,1\n1,1\n").contains("repeats"));
    assert!(refused("time,mbps\n0,1\n2,1\n1,1\n").contains("goes back"));
    assert!(refused("time,mbps\n0,1\nNaN,1\n").contains("is no time"));
    assert!(refused("time,mbps\n0,1\n1,\n").contains("is no number"));
    assert!(refused("time_ns,mbps\n0,1\n1,1\n").contains("less than a millisecond"));
}

#[test]
fn an_outage_at_the_end_lasts() {
    let (trace, _) = table("time_s,mbps\n0,10\n1,10\n2,0\n3,0\n");
    let info = trace.info();
    assert_eq!((info.seconds, info.seconds_below_100_kbps), (4.0, 2));
    assert!((info.mean_mbps - 5.0).abs() < 0.01, "{info:?}");
    assert!(trace.longest_hole().length.as_millis() >= 2000);
    let two_laps = 2 * trace.times_ms().len() as u64;
    assert_eq!(trace.opportunities_before(8000), two_laps);
}

proptest! {
    #[test]
    fn any_table_keeps_its_length_and_mean(
        mbps in prop::collection::vec(0u32..60, 2..40),
        interval_ms in 20u64..3000,
        start_ms in 0u64..1_000_000,
        separator in prop::sample::select(vec![',', ';', '\t']),
        (name, per_mbit) in prop::sample::select(vec![("Mbps", 1.0), ("kB/s", 125.0), ("bps", 1e6)]),
    ) {
        prop_assume!(mbps.iter().sum::<u32>() as u64 * interval_ms > 12_000);
        let mut text = format!("time_ms{separator}{name}\n");
        for (row, &mbps) in mbps.iter().enumerate() {
            let time_ms = start_ms + row as u64 * interval_ms;
            text.push_str(&format!("{time_ms}{separator}{}\n", f64::from(mbps) * per_mbit));
        }
        let (trace, read) = table(&text);
        let period_ms = interval_ms * mbps.len() as u64;
        prop_assert_eq!(trace.period_ms(), period_ms);
        prop_assert_eq!(read.rows, mbps.len() as u64);
        let bits = mbps.iter().map(|&mbps| u64::from(mbps)).sum::<u64>() * 1000 * interval_ms;
        let expected = bits / 12_000;
        prop_assert!(trace.times_ms().len() as u64 + 1 >= expected && trace.times_ms().len() as u64 <= expected + 1);
        // A link can start at any time in any repetition.
        for at_ms in [0, period_ms - 1, period_ms, period_ms + 1, 3 * period_ms] {
            let link = crate::trace::Chances::new(trace.clone().into(), 0, at_ms);
            prop_assert!(trace.opportunities_before(at_ms + link.next_ms()) >= trace.opportunities_before(at_ms));
        }
    }
}
