//! Servers and clients that do not follow the protocol.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};

use airpace_core::Refused;
use airpace_core::remedy::explain_plainly;

use super::*;
use airpace_transfer::video::http::MAX_HEAD_BYTES;

/// The error of a client whose server sends these bytes for each request, one connection after the other, and then closes the
/// connection.
fn failure(answers: &[&[u8]]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = listener.local_addr().expect("an address");
    let report = std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut stream, _) = listener.accept().expect("a connection");
            for answer in answers {
                let mut request = vec![];
                while !request.ends_with(b"\r\n\r\n") {
                    let mut byte = [0];
                    stream.read_exact(&mut byte).expect("a request");
                    request.push(byte[0]);
                }
                // The client may have closed the connection.
                let _ = stream.write_all(answer);
            }
            let _ = stream.shutdown(Shutdown::Write);
            let _ = stream.read(&mut [0]);
        });
        let player = player(1.0, 3, &[0.01]);
        let mut clock = VirtualClock::new(Duration::from_millis(1));
        play(&settings(at, player), &mut clock, &AtomicBool::new(false), &mut |_| ())
    });
    let error: Refused = report.ending.expect_err("the session fails");
    let sentence = explain_plainly(&error);
    assert!(sentence.contains(&at.to_string()), "the error names the server: {sentence}");
    sentence
}

/// A response with this content.
fn response(content: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", content.len());
    [head.as_bytes(), content].concat()
}

/// Answers of a server, and a part of the client's error.
fn case<'a>(answers: &'a [&'a [u8]], reason: &'a str) -> (&'a [&'a [u8]], &'a str) {
    (answers, reason)
}

#[test]
fn a_bad_server_is_reported_with_its_address_and_the_reason() {
    let description = VideoDescription::of(&player(1.0, 3, &[0.01]), 1, 0);
    let ladder = response(&serde_json::to_vec(&description).expect("plain data"));
    let bytes = description.bytes(0, 0).expect("a segment").0 as usize;
    let mut invalid = description.clone();
    invalid.ladder.representation.clear();
    let invalid = response(&serde_json::to_vec(&invalid).expect("plain data"));
    let (less, more) = (response(&vec![0; bytes - 1]), response(&vec![0; bytes + 1]));
    let short = &response(&vec![0; bytes])[..100];
    let surplus = [response(&vec![0; bytes]), vec![0; 3]].concat();
    let endless = [b"HTTP/1.1 200 OK\r\na: ", &vec![b'a'; 2 * MAX_HEAD_BYTES][..]].concat();
    let large = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", 1 << 30);
    for (answers, reason) in [
        case(&[b""], "the server closed the connection"),
        case(&[b"SSH-2.0-OpenSSH_9.6\r\n"], "no response of HTTP"),
        case(&[&endless], "more than 8192 bytes"),
        case(&[b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"], "status 404"),
        case(&[large.as_bytes()], "has 1073741824 bytes"),
        case(&[&response(b"<html>")], "is no description of a video"),
        case(&[&response(b"{\"ladder\": {}}")], "is no description of a video"),
        case(&[&invalid], "`ladder.representation` is empty"),
        case(&[&ladder, short], "before the end of its response"),
        case(&[&ladder, &less], "were expected"),
        case(&[&ladder, &more], "were expected"),
        case(&[&ladder, &surplus], "more bytes than it has stated"),
        case(&[&ladder, b"HTTP/1.1 503 Service Unavailable\r\n\r\n"], "status 503"),
    ] {
        let sentence = failure(answers);
        assert!(sentence.contains(reason), "{reason}: {sentence}");
    }
}

#[test]
fn a_server_that_does_not_exist_or_is_silent_is_reported_with_a_remedy() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = listener.local_addr().expect("an address");
    let settings = settings(at, PlayerConfig::default());
    let mut hasty = HastyClock(Cell::new(Time::ZERO));
    // The kernel accepts the connection, but nobody answers.
    let silent = play(&settings, &mut hasty, &AtomicBool::new(false), &mut |_| ());
    let sentence = explain_plainly(&silent.ending.expect_err("nothing arrives"));
    assert!(sentence.contains("sent nothing for 60 s") && sentence.contains("patience"), "{sentence}");
    drop(listener);
    let mut clock = VirtualClock::new(Duration::from_millis(1));
    let refused = play(&settings, &mut clock, &AtomicBool::new(false), &mut |_| ());
    let sentence = explain_plainly(&refused.ending.expect_err("nobody listens"));
    assert!(sentence.contains(&at.to_string()) && sentence.contains("airpace video serve"), "{sentence}");
    assert!(refused.session.is_none());
}

/// Sends bytes, and returns everything that the server sends until it closes the connection.
fn exchange(at: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(at).expect("a connection");
    // The server may refuse the request before it has read all bytes.
    let _ = stream.write_all(bytes);
    let mut received = vec![];
    let _ = stream.read_to_end(&mut received);
    String::from_utf8_lossy(&received).into_owned()
}

#[test]
fn bad_requests_get_a_status_and_a_sentence() {
    let description = VideoDescription::of(&player(1.0, 3, &[0.01]), 1, 0);
    let endless = [b"GET / HTTP/1.1\r\na: ", &vec![b'a'; 9 * MAX_HEAD_BYTES][..]].concat();
    let ((), totals, notices) = with_server(config(&description), |at| {
        let get = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        for (request, status, sentence) in [
            (get("/"), 404, "/ladder.json describes it"),
            (get("/1/0"), 404, "no such segment"),
            (get("/0/3"), 404, "no such segment"),
            ("PUT /0/0 HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(), 405, "Allow: GET, HEAD"),
            ("\u{16}\u{3}\u{1}\r\n\r\n".to_owned(), 400, "no request of HTTP/1.1"),
            (String::from_utf8(endless.clone()).expect("ASCII"), 431, "8192 bytes"),
        ] {
            let response = exchange(at, request.as_bytes());
            assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{request:.40}: {response}");
            assert!(response.contains(sentence), "{request:.40}: {response}");
        }
        assert!(
            exchange(at, &get("/0/0").into_bytes()).starts_with("HTTP/1.1 200 OK\r\n"),
            "it still serves"
        );
        let head = exchange(at, b"HEAD /0/0 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        let length = description.bytes(0, 0).expect("a segment").0;
        assert!(
            head.contains(&format!("Content-Length: {length}\r\n")) && head.ends_with("\r\n\r\n"),
            "{head}"
        );
    });
    assert_eq!((totals.refused, totals.segments), (6, 1));
    let refused = notices.iter().filter(|notice| matches!(notice, Notice::Refused { .. })).count();
    assert_eq!(refused, 6);
}

#[test]
fn a_client_gets_at_most_half_of_the_connections() {
    let description = VideoDescription::of(&player(1.0, 3, &[0.01]), 1, 0);
    let config = Config { connections: 2, ..config(&description) };
    let ((), totals, _) = with_server(config, |at| {
        let mut held = TcpStream::connect(at).expect("a connection");
        held.write_all(b"GET /0/0 HTTP/1.1\r\nHost: a\r\n\r\n").expect("it is open");
        held.read_exact(&mut [0]).expect("the connection is served");
        let mut refused = String::new();
        let _ = TcpStream::connect(at).expect("a connection").read_to_string(&mut refused);
        assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
    });
    assert_eq!((totals.connections, totals.refused), (1, 1));
}

#[test]
fn a_server_that_cannot_listen_reports_the_reason() {
    let description = VideoDescription::of(&player(1.0, 3, &[0.01]), 1, 0);
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = taken.local_addr().expect("an address");
    let refused = |config: Config| explain_plainly(&Server::listen(config).expect_err("it is refused"));
    assert!(
        refused(Config { listen: at, ..config(&description) })
            .contains("is taken; give another with `listen`")
    );
    let elsewhere = "192.0.2.1:0".parse().expect("an address");
    assert!(
        refused(Config { listen: elsewhere, ..config(&description) }).contains("no address of this machine")
    );
    let missing = Config { congestion_control: Some("nosuch".to_owned()), ..config(&description) };
    assert!(refused(missing).contains("No such file"), "the kernel's reason");
    let reno = Config { congestion_control: Some("reno".to_owned()), ..config(&description) };
    let server = Server::listen(reno).expect("every kernel has Reno");
    assert_eq!(server.congestion_control().expect("a name"), "reno");
    let mut invalid = config(&description);
    invalid.description.ladder.segment_s = 0.0;
    assert!(refused(invalid).contains("`ladder.segment_s` is 0"));
}
