//! Tests with lines of reports from files and sockets, and with writers of invalid data.

use std::io::Write;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;

use airpace_radio::Scope;

use super::super::tests::report;
use super::super::{Need, State};
use super::*;

/// Returns the line that reports a subframe.
fn line_of(subframe: u64) -> String {
    line::to_line(subframe, &[report(subframe, Scope::Everyone)]) + "\n"
}

/// Polls a source until the condition holds, at instants so far apart that every poll may try to open the source again.
fn turn_until(lines: &mut Lines, now: &mut Time, what: impl Fn(&Lines, usize) -> bool) -> Vec<RadioReport> {
    let mut told = vec![];
    while !what(lines, told.len()) {
        *now += AGAIN;
        lines.take(*now, &mut |report| told.push(report));
        std::thread::yield_now();
    }
    told
}

fn subframes(reports: &[RadioReport]) -> Vec<u64> {
    reports.iter().map(|report| report.slot.subframe()).collect()
}

#[test]
fn a_socket_that_goes_away_is_looked_for_and_found_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("device-1.control");
    let mut lines = Lines::new(path.to_str().unwrap().parse().unwrap());
    let mut now = Time::from_secs(1);
    turn_until(&mut lines, &mut now, |lines, _| lines.heard().problem().is_some());
    assert!(lines.heard().name().contains("device-1.control"), "{}", lines.heard().name());
    for round in 1..=3 {
        let listener = UnixListener::bind(&path).unwrap();
        turn_until(&mut lines, &mut now, |lines, _| lines.heard().opened() == round);
        let (mut program, _) = listener.accept().unwrap();
        program.write_all((line_of(7) + &line_of(8)).as_bytes()).unwrap();
        let told = turn_until(&mut lines, &mut now, |_, told| told == 2);
        let first = 5 + 2 * round;
        assert_eq!(subframes(&told), [first, first + 1], "a program that begins anew is numbered on");
        assert!(told.iter().all(|report| report.time <= now && report.time + AGAIN >= now), "by our clock");
        assert_eq!(lines.heard().state(now, Need::Everyone), State::Fresh);
        assert!(lines.fd().is_some());
        drop((program, listener));
        std::fs::remove_file(&path).unwrap();
        turn_until(&mut lines, &mut now, |lines, _| !lines.heard().is_open());
        assert!(lines.fd().is_none());
    }
    assert!(matches!(lines.heard().state(now, Need::Everyone), State::Stale(_)));
}

#[test]
fn another_machine_tells_over_tcp() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut lines = Lines::new(format!("tcp:{}", listener.local_addr().unwrap()).parse().unwrap());
    let mut now = Time::from_secs(1);
    turn_until(&mut lines, &mut now, |lines, _| lines.heard().is_open());
    let (mut program, _) = listener.accept().unwrap();
    for byte in line_of(3).bytes() {
        program.write_all(&[byte]).unwrap();
        lines.take(now, &mut |_| ());
    }
    drop(program);
    turn_until(&mut lines, &mut now, |lines, _| lines.heard().reports() == 1);
    drop(listener);
    turn_until(&mut lines, &mut now, |lines, _| {
        lines.heard().problem().is_some_and(|why| why.contains("refused"))
    });
}

#[test]
fn of_a_file_only_what_is_appended_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("reports.jsonl");
    std::fs::write(&path, line_of(1)).unwrap();
    let mut lines = Lines::new(Place::Path(path.clone()));
    let mut now = Time::from_secs(1);
    turn_until(&mut lines, &mut now, |lines, _| lines.heard().is_open());
    let mut file = std::fs::File::options().append(true).open(&path).unwrap();
    let whole = line_of(2);
    let (begin, end) = whole.split_at(30);
    file.write_all(begin.as_bytes()).unwrap();
    lines.take(now, &mut |_| panic!("half a line"));
    file.write_all((end.to_owned() + &line_of(3)).as_bytes()).unwrap();
    let told = turn_until(&mut lines, &mut now, |_, told| told == 2);
    assert_eq!(subframes(&told), [2, 3]);
    assert!(lines.fd().is_none() && lines.poll_timeout().is_some(), "a file cannot be waited for");
    file.set_len(0).unwrap();
    turn_until(&mut lines, &mut now, |lines, _| lines.heard().opened() == 2);
}

#[test]
fn a_fifo_waits_for_its_writer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
        .unwrap();
    let mut lines = Lines::new(Place::Path(path.clone()));
    let mut now = Time::from_secs(1);
    for wanted in [9, 10] {
        turn_until(&mut lines, &mut now, |lines, _| lines.heard().is_open());
        let mut writer = std::fs::File::options().write(true).open(&path).unwrap();
        writer.write_all(line_of(9).as_bytes()).unwrap();
        assert_eq!(subframes(&turn_until(&mut lines, &mut now, |_, told| told == 1)), [wanted]);
        drop(writer);
        turn_until(&mut lines, &mut now, |lines, _| !lines.heard().is_open());
    }
}

#[test]
fn strangers_bytes_are_counted_and_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    let mut lines = Lines::new(Place::Path(path));
    let mut now = Time::from_secs(1);
    turn_until(&mut lines, &mut now, |lines, _| lines.heard().is_open());
    let (mut program, _) = listener.accept().unwrap();
    let writer = std::thread::spawn(move || {
        for hostile in
            [&b"\xff\xfe\n"[..], b"{}\n", b"\n \n", b"[[[[\n", &line_of(4).into_bytes()[..40], b"\n"]
        {
            program.write_all(hostile).unwrap();
        }
        program.write_all(&vec![b'9'; 5 * MAX_LINE_BYTES]).unwrap();
        program.write_all(("\n".to_owned() + &line_of(5)).as_bytes()).unwrap();
        program
    });
    let told = turn_until(&mut lines, &mut now, |_, told| told == 1);
    assert_eq!(subframes(&told), [5]);
    assert!(lines.line.capacity() <= 2 * MAX_LINE_BYTES, "{}", lines.line.capacity());
    assert_eq!(lines.heard().unreadable(), 5, "four lines that are none, and the long one");
    drop(writer.join().unwrap());
}

#[test]
fn places_are_named_as_on_a_command_line() {
    assert_eq!("-".parse(), Ok(Place::Input));
    assert_eq!("a:b".parse(), Ok(Place::Path("a:b".into())));
    assert_eq!("tcp:127.0.0.1:9".parse::<Place>().unwrap().to_string(), "tcp:127.0.0.1:9");
    for wrong in ["tcp:", "tcp:127.0.0.1", "tcp:127.0.0.1:x", ""] {
        let refusal = wrong.parse::<Place>().unwrap_err();
        assert!(refusal.to_string().contains("PORT"), "{refusal}");
    }
}
