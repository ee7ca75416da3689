//! Tests of the control protocol: subscriptions are leases, and no program can block the daemon.

use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use od::control::{MAX_LEASES, MAX_PER_PROCESS, MAX_PROGRAMS, SOCKET_NAME, Server};
use od::{Board, Entry, Error, Od, SlotId};
use proptest::prelude::*;
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};

use crate::daemon::{Daemon, State, Visitors, turns_to};

fn unsubscribed(state: &State) -> Vec<String> {
    state.unsubscribed.lock().expect("not poisoned").clone()
}

fn programs(state: &State) -> usize {
    *state.programs.lock().expect("not poisoned")
}

#[test]
fn a_kpi_is_published_as_long_as_somebody_has_a_lease_on_it() {
    let daemon = Daemon::start(8);
    let (one, other) = (daemon.open(), daemon.open());
    let first = one.subscribe("lte.rsrp").expect("there is one");
    let second = one.subscribe("lte.rsrp").expect("there is one");
    let third = other.subscribe("lte.rsrp").expect("there is one");
    drop((first, third));
    assert_eq!(unsubscribed(&daemon.state), [""; 0], "there is a lease left");
    drop(second);
    assert_eq!(unsubscribed(&daemon.state), ["lte.rsrp"]);
}

#[test]
fn leases_end_with_the_connection() {
    let daemon = Daemon::start(8);
    let mut program = UnixStream::connect(daemon.dir().join(SOCKET_NAME)).expect("the daemon listens");
    program.write_all(b"subscribe lte.rsrp\nsubscribe nr.snr\nsubscribe nr.snr\n").expect("sent");
    let mut answer = [0; 15];
    program.read_exact(&mut answer).expect("answered");
    assert_eq!(&answer, b"ok 0\nok 1\nok 1\n");
    drop(program);
    daemon.settle("the program has gone", |state| programs(state) == 0);
    assert_eq!(unsubscribed(&daemon.state), ["lte.rsrp", "nr.snr"]);
}

#[test]
fn refusals_say_why() {
    let daemon = Daemon::start(2);
    let od = daemon.open();
    let refusal = |name: &str| {
        let error = od.subscribe(name).expect_err(name);
        (error.errno(), error.to_string())
    };
    assert_eq!(refusal("lte.rsqr"), (Errno::NOENT, "there is no KPI `lte.rsqr`".to_owned()));
    for name in ["", "two words", "line\nbreak", &"long".repeat(100)] {
        assert_eq!(refusal(name).0, Errno::INVAL, "{name:?} never reaches the daemon");
    }
    let long = format!("lte.rsrp@{}", "1".repeat(100));
    assert_eq!(refusal(&long), (Errno::INVAL, format!("no place for `{long}`")));
    let _kpis = ["lte.rsrp", "nr.snr"].map(|name| od.subscribe(name).expect("there is room"));
    assert_eq!(refusal("lte.dl.grant"), (Errno::NOSPC, "no place for `lte.dl.grant`".to_owned()));
    assert!(od.subscribe("nr.snr").is_ok(), "what has a place can still be subscribed to");
    assert!(Board::create(0).is_err() && Board::create(1 << 20).is_err(), "a board has 1 to 65,536 places");
}

#[test]
fn there_is_a_bound_to_what_a_process_may_subscribe_to() {
    let daemon = Daemon::start(MAX_LEASES + 8);
    let od = daemon.open();
    let leases: Result<Vec<_>, _> = (0..MAX_LEASES).map(|n| od.subscribe(&format!("nr.snr@{n}"))).collect();
    let leases = leases.expect("a process may have as many");
    assert_eq!(od.subscribe("lte.rsrp").expect_err("one too many").errno(), Errno::DQUOT);
    assert_eq!(
        daemon.open().subscribe("lte.rsrp").expect_err("another connection is no other process").errno(),
        Errno::DQUOT
    );
    drop(leases);
    assert!(od.subscribe("lte.rsrp").is_ok(), "those that were given back count no more");
}

#[test]
fn no_process_keeps_others_out_by_connections() {
    let daemon = Daemon::start(8);
    let mut all = vec![Visitors::start(daemon.dir(), 2 * MAX_PER_PROCESS)];
    daemon.settle("one process has come", |state| programs(state) == MAX_PER_PROCESS);
    let mine: Vec<_> = (0..MAX_PER_PROCESS).map(|_| daemon.open()).collect();
    for _ in 0..50 {
        let refused = Od::open(Some(daemon.dir())).expect_err("one too many");
        assert_eq!(refused.errno(), Errno::USERS, "{refused}");
        assert_eq!(refused.to_string(), "a process may have 16 connections");
    }
    drop(mine);
    daemon.settle("they have gone", |state| programs(state) == MAX_PER_PROCESS);
    assert!(Od::open(Some(daemon.dir())).is_ok(), "those that were closed count no more");

    let others = MAX_PROGRAMS / MAX_PER_PROCESS - 1;
    all.extend((0..others).map(|_| Visitors::start(daemon.dir(), MAX_PER_PROCESS)));
    daemon.settle("all have come", |state| programs(state) == MAX_PROGRAMS);
    let refused = Od::open(Some(daemon.dir())).expect_err("one too many");
    assert_eq!(refused.to_string(), "128 programs are connected already");
    all.pop();
    daemon.settle("one process has gone", |state| programs(state) < MAX_PROGRAMS);
    assert!(Od::open(Some(daemon.dir())).is_ok());
}

#[test]
fn a_flood_of_requests_leaves_the_daemon_at_rest_most_of_the_time() {
    let daemon = Daemon::start(8);
    let is_over = AtomicBool::new(false);
    let work = || *daemon.state.work.lock().expect("not poisoned");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let mut sending =
                UnixStream::connect(daemon.dir().join(SOCKET_NAME)).expect("the daemon listens");
            let mut reading = sending.try_clone().expect("a copy");
            scope.spawn(move || while sending.write_all("list\n".repeat(100).as_bytes()).is_ok() {});
            let is_over = &is_over;
            scope.spawn(move || {
                let mut answers = [0; 1 << 16];
                while !is_over.load(Ordering::Relaxed)
                    && reading.read(&mut answers).is_ok_and(|read| read > 0)
                {}
                let _ = reading.shutdown(std::net::Shutdown::Both);
            });
        }
        daemon.settle("the flood has begun", |state| programs(state) == 4);
        let (began, before) = (Instant::now(), work());
        let od = daemon.open();
        while began.elapsed() < Duration::from_secs(1) {
            assert_eq!(od.kpis().expect("others are served").len(), 3);
        }
        // The server uses at most a tenth of a core, plus the cost of going to sleep. On a busy machine the share is
        // smaller, never larger.
        let share = (work() - before).as_secs_f64() / began.elapsed().as_secs_f64();
        is_over.store(true, Ordering::Relaxed);
        assert!(share < 0.2, "the control thread took {:.0} % of a core", share * 100.0);
    });
}

#[test]
fn a_place_that_nobody_needs_is_given_to_another_kpi_once_there_is_no_other() {
    let mut daemon = Daemon::start(2);
    let od = daemon.open();
    let kept = od.subscribe("lte.rsrp").expect("there is room");
    drop(od.subscribe("nr.snr").expect("there is room"));
    daemon.publish(1, 12.5);
    let again = od.subscribe("nr.snr").expect("it has a place");
    assert_eq!(again.latest().expect("as before").value, 12.5, "nothing is taken away before it is needed");
    assert_eq!(od.subscribe("nr.snr@2").expect_err("both are needed").errno(), Errno::NOSPC);
    drop(again);

    let next = od.subscribe("nr.snr@2").expect("the place of one that nobody needs");
    assert_eq!((next.name(), next.latest()), ("nr.snr@2".to_owned(), None), "nothing was said about it");
    daemon.publish(1, 13.0);
    assert_eq!(next.latest(), None, "a reading that was under way is still of the one before");
    assert!(daemon.publisher.assign(SlotId(1), 1), "the data thread is told");
    assert_eq!(daemon.publish(1, -3.0), 1);
    let reading = next.latest().expect("published");
    assert_eq!((reading.value, reading.sequence), (-3.0, 1), "readings are counted anew");
    assert_eq!(kept.name(), "lte.rsrp", "who is subscribed keeps his place");

    // Request a thousand subscriptions, as a program with an endless loop would.
    drop(next);
    for radio in 0..1_000 {
        drop(od.subscribe(&format!("nr.snr@{radio}")).expect("there is room again"));
    }
}

#[test]
fn who_lost_his_lease_is_not_given_readings_of_another_kpi() {
    let (mut board, mut publisher) = Board::create(1).expect("a board");
    let folder = tempfile::TempDir::new().expect("a folder");
    let slot = board.add("lte.rsrp", "dBm").expect("there is room");
    publisher.publish(slot, &Entry { value: -97.5, ..Entry::default() });
    // Run a daemon that closes every connection after its answer to `subscribe`.
    let listener = UnixListener::bind(folder.path().join(SOCKET_NAME)).expect("bound");
    let kpi = std::thread::scope(|scope| {
        scope.spawn(|| {
            let (program, _) = listener.accept().expect("it connects");
            answer_and_leave(program, board.for_readers());
        });
        Od::open(Some(folder.path())).expect("a board").subscribe("lte.rsrp").expect("the only one")
    });
    assert_eq!(kpi.latest().expect("published").value, -97.5, "what was said stays");
    board.free(slot);
    assert_eq!(board.add("nr.snr", "dB"), Ok(slot), "its place is taken");
    publisher.assign(slot, board.generation(slot));
    publisher.publish(slot, &Entry { value: 12.5, ..Entry::default() });
    assert_eq!(kpi.latest(), None, "that is not of the KPI that was asked for");
    let waited = kpi.wait(0, Duration::from_secs(120));
    assert!(matches!(waited, Err(Error::Stale)), "it has to be opened anew: {waited:?}");
    assert_eq!((kpi.name(), kpi.unit()), (String::new(), String::new()));
}

/// Sends the region's descriptor, grants a lease on row 0, and closes the connection.
fn answer_and_leave(mut program: UnixStream, board: BorrowedFd<'_>) {
    let mut request = [0; 6];
    program.read_exact(&mut request).expect("it asks for the board");
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    assert!(control.push(SendAncillaryMessage::ScmRights(std::slice::from_ref(&board))));
    rustix::net::sendmsg(&program, &[IoSlice::new(b"ok\n")], &mut control, SendFlags::NOSIGNAL)
        .expect("sent");
    let mut request = [0; 19];
    program.read_exact(&mut request).expect("it asks for the KPI");
    program.write_all(b"ok 0\n").expect("sent");
}

#[test]
fn a_folder_has_one_daemon() {
    let daemon = Daemon::start(8);
    let second = Server::bind(daemon.dir()).expect_err("it is taken");
    assert!(second.to_string().contains("another daemon serves"), "{second}");
    assert!(turns_to(&daemon.open(), true), "the first is not disturbed");

    let folder = daemon.folder();
    drop(daemon);
    let nobody = Od::open(Some(folder.path())).expect_err("it has gone");
    let told = nobody.to_string();
    assert!(told.contains("no daemon at") && told.contains("control"), "where: {told}");
}

#[test]
fn a_program_that_sends_and_never_reads_holds_up_only_itself() {
    let mut daemon = Daemon::start(8);
    let od = daemon.open();
    let kpi = od.subscribe("lte.rsrp").expect("there is one");
    let mut rude = UnixStream::connect(daemon.dir().join(SOCKET_NAME)).expect("the daemon listens");
    rude.set_nonblocking(true).expect("a socket's option");
    let flood = "list\n".repeat(1_000);
    let mut stood_still = 0;
    // Send until both the answers and the program's requests fill their socket buffers and nothing moves any more.
    while stood_still < 200 {
        match rude.write(flood.as_bytes()) {
            Ok(sent) => stood_still = if sent > 0 { 0 } else { stood_still + 1 },
            Err(error) => {
                assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
                std::thread::sleep(Duration::from_millis(1));
                stood_still += 1;
            }
        }
    }
    assert_eq!(od.kpis().expect("others are served").len(), 3);
    daemon.publish(0, 5.0);
    assert_eq!(kpi.latest().expect("published").value, 5.0);
    assert!(turns_to(&od, true));
    assert_eq!(programs(&daemon.state), 2, "it is left alone");
    drop(rude);
    daemon.settle("the rude program has gone", |state| programs(state) == 1);
}

#[test]
fn nonsense_is_answered_and_endless_lines_end_the_connection() {
    let daemon = Daemon::start(8);
    let mut program = UnixStream::connect(daemon.dir().join(SOCKET_NAME)).expect("the daemon listens");
    program.write_all(b"hello\n\xFF\xFE\nunsubscribe 7\n").expect("sent");
    program.write_all(&[b'x'; 1_000]).expect("sent");
    let mut told = String::new();
    program.read_to_string(&mut told).expect("until the connection ends");
    let lines: Vec<_> = told.lines().collect();
    assert_eq!(
        lines,
        [
            "error 22 requests are: board, list, subscribe NAME, unsubscribe SLOT",
            "error 22 requests are: board, list, subscribe NAME, unsubscribe SLOT",
            "error 9 there is no such subscription",
            "error 90 that is longer than any request",
        ]
    );
}

#[test]
fn no_bytes_upset_the_daemon() {
    let daemon = Daemon::start(8);
    let requests = "(list|board|subscribe (lte\\.rsrp|nr\\.snr|x)|unsubscribe [0-9]{1,12}|hello)\n";
    let chunk =
        prop_oneof![proptest::collection::vec(any::<u8>(), 0..300), requests.prop_map(String::into_bytes)];
    let chunks = proptest::collection::vec(chunk, 1..20);
    proptest!(ProptestConfig::with_cases(64), |(chunks in chunks)| {
        let mut program = UnixStream::connect(daemon.dir().join(SOCKET_NAME)).expect("the daemon listens");
        for chunk in chunks {
            // The daemon may already have closed the connection because of a line without a line end.
            let _ = program.write_all(&chunk);
        }
        prop_assert_eq!(daemon.open().kpis().expect("others are served").len(), 3);
    });
}
