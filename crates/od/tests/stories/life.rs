//! Tests of daemons that stop, die, hang or restart: programs never mistake old readings for new readings.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use od::reader::HEARTBEAT_LIMIT;
use od::{Error, Od};
use tempfile::TempDir;

use crate::daemon::{Daemon, Process, turns_to};

const LONG: Duration = Duration::from_secs(120);

#[test]
fn a_daemon_that_stops_leaves_its_last_readings_and_says_so() {
    let mut daemon = Daemon::start(8);
    let od = daemon.open();
    let kpi = od.subscribe("lte.rsrp").expect("there is one");
    daemon.publish(0, -80.0);
    assert!(turns_to(&od, true));

    let waiter = std::thread::spawn({
        let kpi = od.subscribe("lte.rsrp").expect("there is one");
        move || kpi.wait(1, LONG)
    });
    drop(daemon);
    assert!(!od.is_alive(), "it has said goodbye");
    let waited = waiter.join().expect("the waiter ends");
    assert!(matches!(waited, Err(Error::Stale)), "who waits is told at once: {waited:?}");
    assert_eq!(kpi.latest().expect("still there").value, -80.0);
    assert!(matches!(od.kpis(), Err(Error::Stale)), "there is nobody to ask");
}

#[test]
fn a_killed_daemon_is_known_by_its_silence_and_its_reading_only_ages() {
    let dir = TempDir::new().expect("a folder");
    let mut daemon = Process::start(dir.path());
    let od = Od::open(Some(dir.path())).expect("the daemon answers");
    let kpi = od.subscribe("lte.rsrp").expect("there is one");
    let reading = kpi.latest().expect("published before we came");
    assert_eq!((reading.value, reading.sequence), (-97.5, 1));
    assert!(turns_to(&od, true));

    daemon.kill();
    let killed = Instant::now();
    std::thread::sleep(HEARTBEAT_LIMIT);
    assert!(!od.is_alive(), "its last sign of life is a tenth of a second ago, or more");
    let waited = kpi.wait(1, LONG);
    assert!(matches!(waited, Err(Error::Stale)), "nothing can come any more: {waited:?}");
    assert!(killed.elapsed() < LONG, "who waits is not kept until the timeout");
    let after = kpi.latest().expect("the memory stays");
    assert_eq!(after.sequence, 1, "it is the old reading");
    assert!(after.age() >= HEARTBEAT_LIMIT, "and its age says so: {:?}", after.age());

    let gone = Od::open(Some(dir.path())).expect_err("nobody listens");
    assert!(matches!(gone, Error::NoDaemon { .. }), "{gone}");
    let _successor = Process::start(dir.path());
    let again = Od::open(Some(dir.path())).expect("what the dead daemon left is no hindrance");
    assert!(turns_to(&again, true) && !od.is_alive(), "the new daemon has a board of its own");
}

#[test]
fn a_daemon_that_hangs_is_not_alive_until_it_goes_on() {
    let daemon = Daemon::start(8);
    let od = daemon.open();
    daemon.state.is_stuck.store(true, Ordering::Relaxed);
    assert!(turns_to(&od, false), "no sign of life comes");
    daemon.state.is_stuck.store(false, Ordering::Relaxed);
    assert!(turns_to(&od, true), "it lives again, and the same board serves");
}

#[test]
fn a_daemon_that_was_restarted_is_opened_anew() {
    let mut first = Daemon::start(8);
    let old = first.open();
    let old_kpi = old.subscribe("lte.rsrp").expect("there is one");
    first.publish(0, 1.0);
    let folder: Arc<TempDir> = first.folder();
    drop(first);

    let mut second = Daemon::start_in(folder, 8);
    let new_kpi = second.open().subscribe("lte.rsrp").expect("there is one");
    assert_eq!(new_kpi.latest(), None, "a new daemon knows nothing of the old readings");
    second.publish(0, 2.0);
    assert_eq!(new_kpi.latest().expect("published").value, 2.0);
    assert!(turns_to(new_kpi.od(), true) && !old.is_alive());
    assert_eq!(old_kpi.latest().expect("still mapped").value, 1.0, "the old board is as it was left");
}
