//! Tests that readers receive exactly the published readings.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use od::{Entry, Error, SlotId};

use crate::daemon::Daemon;

const LONG: Duration = Duration::from_secs(120);

#[test]
fn a_program_reads_what_the_daemon_publishes() {
    let mut daemon = Daemon::start(8);
    let od = daemon.open();
    let names: Vec<_> = od.kpis().expect("a list").into_iter().map(|kpi| kpi.name).collect();
    assert_eq!(names, ["lte.rsrp", "lte.dl.grant", "nr.snr"]);

    let rsrp = od.subscribe("lte.rsrp").expect("there is one");
    let grant = od.subscribe("lte.dl.grant@2").expect("there is one");
    assert_eq!(rsrp.latest(), None, "nothing is published yet");
    assert_eq!((rsrp.name(), rsrp.unit()), ("lte.rsrp".to_owned(), "dBm".to_owned()));
    assert_eq!((grant.name(), grant.unit()), ("lte.dl.grant@2".to_owned(), "byte".to_owned()));

    let before_ns = od::clock::now_ns();
    let entry = Entry {
        value: -97.5,
        modem_ns: 1_300_000_000_000_000_000,
        arrival_ns: before_ns - 5_000_000,
        subframe: Some(10_239),
        carrier: 3,
        radio: 1,
    };
    assert_eq!(daemon.publisher.publish(SlotId(0), &entry), 1);
    daemon.publisher.publish(SlotId(1), &Entry { value: 1_500.0, radio: 2, ..Entry::default() });

    let reading = rsrp.latest().expect("published");
    assert_eq!((reading.value, reading.sequence, reading.modem_ns), (-97.5, 1, entry.modem_ns));
    assert_eq!((reading.subframe, reading.carrier, reading.radio), (Some(10_239), 3, 1));
    assert_eq!(reading.arrival_ns, entry.arrival_ns);
    assert!(reading.published_ns >= before_ns, "publication is after arrival, by the same clock");
    assert!(reading.age() >= Duration::from_millis(5), "it had come in 5 ms before");
    assert!(!reading.is_after_gap, "nothing lies before the first reading");

    let other = grant.latest().expect("published");
    assert_eq!((other.value, other.subframe, other.radio), (1_500.0, None, 2), "each KPI has its own place");
}

#[test]
fn a_gap_is_marked_once_on_every_kpi() {
    let mut daemon = Daemon::start(8);
    let od = daemon.open();
    let kpis = ["lte.rsrp", "nr.snr"].map(|name| od.subscribe(name).expect("there is one"));
    let round = |daemon: &mut Daemon| {
        [0, 1].map(|slot| {
            daemon.publish(slot, 1.0);
            kpis[slot as usize].latest().expect("published").is_after_gap
        })
    };
    assert_eq!(round(&mut daemon), [false, false]);
    daemon.publisher.gap();
    daemon.publisher.gap();
    assert_eq!(round(&mut daemon), [true, true], "the port was lost before these");
    assert_eq!(round(&mut daemon), [false, false], "and no more since");
    assert_eq!(od.gaps(), 2, "all gaps are counted");
    assert_eq!(kpis[0].latest().expect("published").gaps, 2, "who missed the mark sees it by the count");
}

#[test]
fn many_readers_of_a_fast_daemon_see_only_whole_readings_in_order() {
    const PUBLICATIONS: u64 = 500_000;
    let mut daemon = Daemon::start(8);
    let od = daemon.open();
    let is_over = Arc::new(AtomicBool::new(false));
    // Wait until every reader has read once before the daemon publishes at full speed. On a busy machine, the daemon
    // could otherwise finish before the readers start.
    let begin = Arc::new(Barrier::new(5));
    let readers: Vec<_> = (0..4)
        .map(|_| {
            let (kpi, is_over) = (od.subscribe("lte.rsrp").expect("there is one"), is_over.clone());
            let begin = begin.clone();
            std::thread::spawn(move || {
                let mut before = 0;
                while !is_over.load(Ordering::Relaxed) {
                    let Some(reading) = kpi.latest() else { continue };
                    let number = reading.sequence;
                    assert_eq!(reading.value, number as f64 * 0.5, "value and sequence belong together");
                    assert_eq!(reading.modem_ns, number * 3, "modem time and sequence belong together");
                    assert_eq!(reading.arrival_ns, number * 7, "arrival and sequence belong together");
                    assert_eq!(reading.subframe, Some((number % 10_240) as u16));
                    assert!(number >= before, "reading {number} after {before}");
                    if before == 0 {
                        begin.wait();
                    }
                    before = number;
                }
                before
            })
        })
        .collect();
    for number in 1..=PUBLICATIONS {
        if number == 2 {
            begin.wait();
        }
        let entry = Entry {
            value: number as f64 * 0.5,
            modem_ns: number * 3,
            arrival_ns: number * 7,
            subframe: Some((number % 10_240) as u16),
            carrier: 0,
            radio: 1,
        };
        assert_eq!(daemon.publisher.publish(SlotId(0), &entry), number);
    }
    is_over.store(true, Ordering::Relaxed);
    for reader in readers {
        assert!(reader.join().expect("only whole readings") > 0, "every reader has seen something");
    }
}

#[test]
fn a_waiting_reader_gets_the_next_reading_and_misses_are_counted() {
    let mut daemon = Daemon::start(8);
    let od = daemon.open();
    let kpi = od.subscribe("lte.rsrp").expect("there is one");
    let waiters: Vec<_> = (0..3)
        .map(|_| {
            let kpi = od.subscribe("lte.rsrp").expect("there is one");
            std::thread::spawn(move || {
                let mut seen = Vec::new();
                while seen.last() != Some(&100) {
                    let reading = kpi.wait(seen.last().copied().unwrap_or(0), LONG).expect("it comes");
                    seen.push(reading.sequence);
                }
                seen
            })
        })
        .collect();
    for number in 1..=100 {
        daemon.publish(0, f64::from(number));
    }
    for waiter in waiters {
        let seen = waiter.join().expect("no waiter is left behind");
        assert!(seen.is_sorted_by(|a, b| a < b), "each reading once, in order: {seen:?}");
    }
    assert_eq!(kpi.wait(0, LONG).expect("there is one").sequence, 100, "what is there is not waited for");
    let early = kpi.wait(100, Duration::from_millis(30));
    assert!(matches!(early, Err(Error::TimedOut)), "{early:?}");
}

#[test]
fn news_of_other_kpis_wakes_nobody_for_good() {
    let mut daemon = Daemon::start(8);
    let od = daemon.open();
    let (_rsrp, snr) =
        (od.subscribe("lte.rsrp").expect("is there"), od.subscribe("nr.snr").expect("is there"));
    let waiter = std::thread::spawn(move || snr.wait(0, LONG).map(|reading| reading.value));
    for number in 0..50 {
        daemon.publish(0, f64::from(number));
    }
    daemon.publish(1, 12.5);
    assert_eq!(waiter.join().expect("it ends").expect("its own reading"), 12.5);
}

#[test]
fn a_reader_sleeps_through_news_of_other_kpis() {
    let mut daemon = Daemon::start(8);
    let od = daemon.open();
    let kpis = ["lte.rsrp", "nr.snr"].map(|name| od.subscribe(name).expect("there is one"));
    daemon.publish(1, 0.0);
    let [rsrp, _snr] = kpis;
    let waiting = std::thread::spawn(move || (rsrp.wait(0, LONG), times_slept()));
    for _ in 0..300 {
        daemon.publish(1, 1.0);
        std::thread::sleep(Duration::from_millis(1));
    }
    daemon.publish(0, -97.5);
    let (reading, slept) = waiting.join().expect("no panic");
    assert_eq!(reading.expect("published").value, -97.5);
    assert!(slept < 100, "300 readings of another KPI woke it {slept} times");
}

/// Number of voluntary context switches of the calling thread.
fn times_slept() -> u64 {
    let status = std::fs::read_to_string("/proc/thread-self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    line.and_then(|count| count.trim().parse().ok()).expect("a count")
}
