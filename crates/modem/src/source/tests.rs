use super::*;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::symlink;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::pty::{self, OpenptFlags};

/// Creates a pseudo-terminal: returns the modem's end, and the name of the host's end.
fn terminal() -> (OwnedFd, PathBuf) {
    let modem = pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    pty::grantpt(&modem).unwrap();
    pty::unlockpt(&modem).unwrap();
    let name = pty::ptsname(&modem, Vec::new()).unwrap().into_string().unwrap();
    (modem, name.into())
}

/// Returns the next `count` bytes, without a time limit.
fn wait(port: &Port, count: usize) -> Vec<u8> {
    let mut found = vec![];
    while found.len() < count {
        poll(&mut [PollFd::new(port, PollFlags::IN)], None).unwrap();
        let mut buffer = [0; 64];
        if let Some(count) = port.read(&mut buffer).unwrap() {
            found.extend_from_slice(&buffer[..count]);
        }
    }
    found
}

/// Bytes that a terminal would translate, echo or interpret as a command.
const WILD: &[u8] = &[0x03, 0x04, 0x0D, 0x0A, 0x11, 0x13, 0x1A, 0x7F, 0x00, 0xFF];

#[test]
fn a_serial_device_passes_every_byte_both_ways() {
    let (modem, name) = terminal();
    let port = Source::Serial(name).open().unwrap();
    rustix::io::write(&modem, WILD).unwrap();
    assert_eq!(wait(&port, WILD.len()), WILD, "from the modem");
    assert_eq!(port.read(&mut [0; 8]).unwrap(), None, "nothing more, and no waiting for it");
    assert_eq!(port.write(WILD).unwrap(), Some(WILD.len()));
    let mut buffer = [0; 64];
    let count = rustix::io::read(&modem, &mut buffer).unwrap();
    assert_eq!(&buffer[..count], WILD, "to the modem, and no echo of what it said");
    assert!(!port.can_drain() && port.drain().is_err());
}

#[test]
fn a_serial_device_that_goes_says_so() {
    let (modem, name) = terminal();
    let port = Source::Serial(name).open().unwrap();
    drop(modem);
    port.read(&mut [0; 8]).unwrap_err();
}

#[test]
fn a_serial_device_is_one_programs_until_its_guard_has_let_go_too() {
    let (_modem, name) = terminal();
    let source = Source::Serial(name);
    let port = source.open().unwrap();
    let refused = source.open().unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::ResourceBusy);
    assert_eq!(
        airpace_core::remedy::explain_plainly(&refused),
        "another program has this port; end it, or, if it is a daemon of ours, read from it: the reports of the modem's daemon"
    );
    let guards = port.inheritable().unwrap();
    drop(port);
    assert_eq!(source.open().unwrap_err().kind(), io::ErrorKind::ResourceBusy);
    drop(guards);
    source.open().unwrap();
}

#[test]
fn what_can_never_be_a_port_is_told_from_what_may_come() {
    let first = |source: Source| source.open_first().map_err(|error| error.kind());
    let missing = first(Source::Serial("/nowhere/ttyUSB2".into()));
    assert!(matches!(missing, Ok(None)), "it may be plugged in later: {missing:?}");
    assert!(matches!(first(Source::Serial("/dev/null".into())), Err(io::ErrorKind::InvalidInput)));
    for wrong in ["localhost", "localhost:", ":9000", "localhost:99999", "host:http"] {
        assert!(matches!(first(Source::Tcp(wrong.into())), Err(io::ErrorKind::InvalidInput)), "{wrong}");
    }
    for right in ["localhost:9000", "[::1]:9000", "192.0.2.1:1"] {
        assert!(matches!(first(Source::Tcp(right.into())), Ok(None)), "{right}");
    }
    let (_modem, name) = terminal();
    let source = Source::Serial(name);
    let held = source.open().unwrap();
    let soon = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(200));
        drop(held);
    });
    let waited = source.open_first_within(Duration::MAX);
    assert!(matches!(waited, Ok(Some(_))), "a guard that is about to end is waited for");
    soon.join().unwrap();
}

#[test]
fn a_connection_passes_bytes_and_tells_its_end() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let source = Source::Tcp(server.local_addr().unwrap().to_string());
    let port = source.open().unwrap();
    let (mut modem, _) = server.accept().unwrap();
    modem.write_all(WILD).unwrap();
    assert_eq!(wait(&port, WILD.len()), WILD);
    port.write(WILD).unwrap();
    let mut buffer = [0; WILD.len()];
    modem.read_exact(&mut buffer).unwrap();
    assert_eq!(buffer, WILD);
    drop(modem);
    poll(&mut [PollFd::new(&port, PollFlags::IN)], None).unwrap();
    assert_eq!(port.read(&mut buffer).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    drop(server);
    assert_eq!(source.open().unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
}

#[test]
fn what_is_not_what_it_was_said_to_be_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, "text").unwrap();
    let refused = Source::Serial(path.clone()).open().unwrap_err();
    assert_eq!(refused.to_string(), "it is no serial device");
    assert_eq!(Source::DevDiag(path).open().unwrap_err().raw_os_error(), Some(libc::ENOTTY));
    let missing = Source::Serial(folder.path().join("missing")).open().unwrap_err();
    assert_eq!(missing.kind(), io::ErrorKind::NotFound);
}

#[test]
fn a_port_that_comes_back_by_another_number_is_found_by_its_lasting_name() {
    let folder = tempfile::tempdir().unwrap();
    let (by_id, dev) = (folder.path().join("by-id"), folder.path());
    std::fs::create_dir(&by_id).unwrap();
    for name in ["ttyUSB2", "ttyUSB3"] {
        std::fs::write(dev.join(name), "").unwrap();
    }
    symlink("../ttyUSB3", by_id.join("usb-Modem_1234-if01-port0")).unwrap();
    symlink("../ttyUSB2", by_id.join("usb-Modem_1234-if00-port0")).unwrap();
    let lasting = serial::lasting(dev.join("ttyUSB2"), &by_id);
    assert_eq!(lasting, by_id.join("usb-Modem_1234-if00-port0"));
    let unlisted = dev.join("ttyS0");
    assert_eq!(serial::lasting(unlisted.clone(), &by_id), unlisted);
    assert_eq!(serial::lasting(dev.join("ttyUSB2"), Path::new("/nowhere")), dev.join("ttyUSB2"));
}

#[test]
fn a_source_is_written_as_one_word() {
    let read = |text: &str| text.parse::<Source>().unwrap();
    assert_eq!(read("/dev/ttyUSB2"), Source::Serial("/dev/ttyUSB2".into()));
    assert_eq!(read("diag:/dev/diag"), Source::DevDiag("/dev/diag".into()));
    assert_eq!(read("tcp:localhost:9000"), Source::Tcp("localhost:9000".to_owned()));
}

#[test]
fn ports_are_known_by_their_names() {
    assert_eq!(
        Source::named("/dev/ttyUSB7"),
        Some(Source::Serial("/dev/ttyUSB7".into())),
        "not plugged in yet"
    );
    assert_eq!(Source::named("/dev/diag"), Some(Source::DevDiag("/dev/diag".into())));
    assert_eq!(Source::named("modem:tcp:phone:9000"), Some(Source::Tcp("phone:9000".to_owned())));
    assert_eq!(Source::named("modem:dm"), Some(Source::Serial("dm".into())));
    assert_eq!(Source::named("/dev/null"), Some(Source::Serial("/dev/null".into())), "a device, if no port");
    for other in ["modem:", "reports.jsonl", "/tmp/socket", "tcp:127.0.0.1:9", "-", "modem"] {
        assert_eq!(Source::named(other), None, "{other}");
    }
}
