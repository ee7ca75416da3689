//! Sessions with a good server.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

use airpace_video::{Session, State};

use super::*;
use airpace_transfer::video::client::Ending;
use airpace_transfer::video::description::{LADDER_PATH, segment_of};

fn watched(settings: &Settings, clock: &mut dyn Clock) -> Report {
    play(settings, clock, &AtomicBool::new(false), &mut |_| ())
}

fn session(report: Report) -> Session {
    report.session.expect("a session")
}

#[test]
fn a_video_is_played_to_its_end_with_the_sizes_of_the_simulator() {
    let player = player(1.0, 6, &[0.01, 0.02, 0.04]);
    let description = VideoDescription::of(&player, 5, 2);
    // The client takes the ladder from the server.
    let own = PlayerConfig { max_buffer_s: 8.0, ..PlayerConfig::default() };
    let mut clock = VirtualClock::new(Duration::from_millis(1));
    let (report, totals, notices) =
        with_server(config(&description), |at| watched(&settings(at, own), &mut clock));
    assert_eq!(report.ending, Ok(Ending::Complete));
    let session = session(report);
    assert_eq!((session.state, session.played_s, session.stalls.len()), (State::Ended, 6.0, 0));
    let chosen: Vec<usize> = session.segments.iter().map(|one| one.representation).collect();
    assert_eq!(chosen, [0, 2, 2, 2, 2, 2], "the network is fast");
    for one in &session.segments {
        assert_eq!(Some(one.bytes), description.bytes(one.representation, one.segment).map(|bytes| bytes.0));
    }
    let bytes = session.segments.iter().map(|one| one.bytes).sum();
    assert_eq!(totals, Totals { connections: 1, segments: 6, bytes, refused: 0 });
    assert!(
        notices.iter().any(|notice| matches!(notice, Notice::Closed { segments: 6, problem: None, .. })),
        "{notices:?}"
    );
}

#[test]
fn a_slow_network_stalls_the_video() {
    let player = player(1.0, 4, &[0.01]);
    let description = VideoDescription::of(&player, 1, 0);
    let mut clock = VirtualClock::new(Duration::from_secs(3));
    let (report, ..) = with_server(config(&description), |at| watched(&settings(at, player), &mut clock));
    let session = session(report);
    assert_eq!((session.state, session.segments.len()), (State::Ended, 4));
    let start_up_s = session.start_up_s.expect("it started");
    assert!(start_up_s >= 9.0, "three segments make 2.5 s, and each needs an event: {start_up_s}");
    let total_s = start_up_s + session.played_s + session.stalled_s;
    assert!((session.elapsed_s - total_s).abs() < 1e-6, "start-up, played time and stalls are all time");
}

#[test]
fn a_viewer_may_close_the_video_or_stop_the_program() {
    let player = player(1.0, 60, &[0.01]);
    let description = VideoDescription::of(&player, 1, 0);
    let closed = Settings {
        duration: Some(Duration::from_millis(3_500)),
        ..settings("127.0.0.1:1".parse().expect("an address"), player.clone())
    };
    let mut clock = VirtualClock::new(Duration::from_millis(100));
    let (report, ..) =
        with_server(config(&description), |server| watched(&Settings { server, ..closed }, &mut clock));
    assert_eq!(report.ending, Ok(Ending::Closed));
    assert_eq!(session(report).elapsed_s, 3.5);

    let stop = AtomicBool::new(false);
    let mut clock = VirtualClock::new(Duration::from_millis(100));
    let (report, ..) = with_server(config(&description), |at| {
        play(&settings(at, player), &mut clock, &stop, &mut |progress| {
            stop.store(progress.position > Duration::from_secs(2), Ordering::Relaxed);
        })
    });
    assert_eq!(report.ending, Ok(Ending::Stopped));
    assert!(session(report).played_s > 2.0, "the report has everything until then");
}

/// Answers a request of a scripted server. Returns the path; `None` if the client closed the connection.
fn path_of_next(stream: &mut BufReader<TcpStream>) -> Option<String> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    head.split(' ').nth(1).map(str::to_owned)
}

fn answer(stream: &mut BufReader<TcpStream>, content: &[u8]) {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", content.len());
    stream.get_mut().write_all(&[head.as_bytes(), content].concat()).expect("the client reads");
}

#[test]
fn a_segment_that_would_come_too_late_is_abandoned_by_closing_the_connection() {
    let mut player = player(10.0, 3, &[0.01, 0.02]);
    (player.abandon, player.size_variation) = (true, 0.0);
    let description = VideoDescription::of(&player, 1, 0);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = listener.local_addr().expect("an address");
    let (ticks, ticking) = mpsc::channel();
    let ticking = Mutex::new(ticking);
    let mut clock = VirtualClock::new(Duration::from_millis(600));
    let (report, paths) = std::thread::scope(|scope| {
        let serve = |stream: TcpStream| {
            let (mut stream, mut paths) = (BufReader::new(stream), vec![]);
            while let Some(path) = path_of_next(&mut stream) {
                paths.push(path.clone());
                let Some((representation, segment)) = segment_of(&path) else {
                    assert_eq!(path, LADDER_PATH);
                    answer(&mut stream, &serde_json::to_vec(&description).expect("plain data"));
                    continue;
                };
                let bytes = description.bytes(representation, segment).expect("a segment").0;
                if (representation, segment) != (1, 1) {
                    answer(&mut stream, &vec![0; bytes as usize]);
                    continue;
                }
                // One byte per turn of the client, until it closes the connection.
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {bytes}\r\n\r\n");
                stream.get_mut().write_all(head.as_bytes()).expect("the client reads");
                let ticking = ticking.lock().expect("no panic");
                while ticking.recv().is_ok() && stream.get_mut().write_all(b"a").is_ok() {}
                break;
            }
            paths
        };
        let [first, second] = [(), ()].map(|()| {
            let listener = &listener;
            scope.spawn(move || serve(listener.accept().expect("a connection").0))
        });
        let report = play(&settings(at, player.clone()), &mut clock, &AtomicBool::new(false), &mut |_| {
            // The server needs no tick after the segment.
            let _ = ticks.send(());
        });
        drop(ticks);
        let mut paths = [first, second].map(|thread| thread.join().expect("no panic"));
        paths.sort_by_key(|paths| paths[0] != LADDER_PATH);
        (report, paths)
    });
    assert_eq!(report.ending, Ok(Ending::Complete));
    let session = session(report);
    assert_eq!((session.abandoned, session.segments.len()), (1, 3));
    assert_eq!(paths[0], [LADDER_PATH, "/0/0", "/1/1"]);
    assert_eq!(paths[1][0], "/0/1", "the lower representation comes over the second connection");
}

#[test]
fn a_request_is_repeated_if_the_server_closed_the_idle_connection() {
    let player = player(1.0, 1, &[0.01]);
    let description = VideoDescription::of(&player, 1, 0);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = listener.local_addr().expect("an address");
    let report = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut first = BufReader::new(listener.accept().expect("a connection").0);
            path_of_next(&mut first).expect("a request");
            answer(&mut first, &serde_json::to_vec(&description).expect("plain data"));
            drop(first);
            let mut second = BufReader::new(listener.accept().expect("another connection").0);
            assert_eq!(path_of_next(&mut second).as_deref(), Some("/0/0"));
            answer(&mut second, &vec![0; description.bytes(0, 0).expect("a segment").0 as usize]);
            // Wait for the client's end.
            let _ = second.read(&mut [0]);
        });
        watched(&settings(at, player), &mut VirtualClock::new(Duration::from_millis(1)))
    });
    assert_eq!(report.ending, Ok(Ending::Complete));
}
