//! Properties that must hold for the daemon's socket, with any bytes from the peer.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

use od::control::{Answer, Client, Host, KpiInfo, Refusal, SOCKET_NAME, Server};
use od::{Board, SlotId};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};

use super::choices::Choices;

/// A daemon with three KPIs.
struct Few {
    board: Board,
    ended: usize,
}

const NAMES: [&str; 3] = ["lte.rsrp", "lte.snr", "nr.rsrp"];

impl Host for Few {
    fn board(&mut self) -> &mut Board {
        &mut self.board
    }

    fn kpis(&mut self) -> Vec<KpiInfo> {
        let kpi = |name: &str| KpiInfo {
            name: name.to_owned(),
            unit: "dB".to_owned(),
            about: "a power".to_owned(),
        };
        NAMES.map(kpi).to_vec()
    }

    fn subscribe(&mut self, name: &str) -> Result<SlotId, Refusal> {
        let known = NAMES.contains(&name);
        let refused = |errno| Refusal::new(errno, format!("no place for `{name}`"));
        if let Some(slot) = self.board.find(name) {
            return Ok(slot);
        }
        if !known {
            return Err(refused(Errno::NOENT));
        }
        self.board.add(name, "dB").map_err(refused)
    }

    fn unsubscribed(&mut self, slot: SlotId) {
        self.ended += 1;
        self.board.free(slot);
    }
}

/// Programs send arbitrary bytes, in pieces. The daemon keeps running, and its answers follow its protocol. When the
/// programs have disconnected, none of their subscriptions remains.
pub fn daemon(input: &[u8]) {
    let mut choices = Choices(input);
    let dir = tempfile::tempdir().expect("a folder");
    let mut server = Server::bind(dir.path()).expect("a socket");
    let (board, _publisher) = Board::create(2).expect("a board");
    let mut host = Few { board, ended: 0 };
    let address = SocketAddrUnix::new(dir.path().join(SOCKET_NAME)).expect("a short path");
    let mut serve =
        |host: &mut Few| server.serve(host, Duration::from_micros(200)).expect("its own socket works");
    // A blocking connection would never be accepted: the daemon runs on this thread, and serves only when this thread
    // calls it.
    let connect = |host: &mut Few, serve: &mut dyn FnMut(&mut Few)| loop {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let program = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).expect("a socket");
        match rustix::net::connect(&program, &address) {
            Ok(()) => return UnixStream::from(program),
            Err(Errno::AGAIN | Errno::INTR) => serve(host),
            Err(errno) => panic!("the daemon should listen: {errno}"),
        }
    };
    let mut programs = [(); 2].map(|()| connect(&mut host, &mut serve));
    let mut heard = [vec![], vec![]];
    while !choices.is_over() {
        let which = usize::from(choices.flag());
        let bytes = match choices.byte() {
            0..120 => {
                let request = choices.of(&[
                    "board",
                    "list",
                    "subscribe lte.rsrp",
                    "subscribe nr.rsrp",
                    "unsubscribe 0",
                    "unsubscribe 1",
                ]);
                format!("{request}\n").into_bytes()
            }
            120..125 => {
                programs[which] = connect(&mut host, &mut serve);
                heard[which].clear();
                vec![]
            }
            _ => {
                let count = choices.below(40);
                choices.take(count).to_vec()
            }
        };
        // The daemon closes the connection of a program that it refuses.
        let _ = programs[which].write(&bytes);
        serve(&mut host);
        let mut answer = [0; 4_096];
        if let Ok(count) = programs[which].read(&mut answer) {
            heard[which].extend_from_slice(&answer[..count]);
        }
        assert!(host.board.capacity() == 2 && heard[which].len() < 1 << 20);
    }
    for heard in heard {
        let whole = heard.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let text = std::str::from_utf8(&heard[..whole]).expect("answers are text");
        for line in text.lines() {
            let is_kpi = NAMES.iter().any(|name| line.starts_with(&format!("{name}\t")));
            assert!(is_kpi || line.parse::<Answer>().is_ok(), "{line:?}");
        }
    }
    drop(programs);
    while server.programs() > 0 {
        server.serve(&mut host, Duration::from_micros(200)).expect("its own socket works");
    }
    for name in NAMES {
        let leases = host.board.find(name).map_or(0, |slot| host.board.leases(slot));
        assert_eq!(leases, 0, "{name} is published without a subscriber");
    }
}

/// A daemon sends arbitrary answers. A program gets the requested data, or an error whose text contains no control
/// characters, and uses little more memory than the size of the answers.
pub fn client(input: &[u8]) {
    let mut choices = Choices(input);
    let dir = tempfile::tempdir().expect("a folder");
    let listener = UnixListener::bind(dir.path().join(SOCKET_NAME)).expect("a socket");
    let mut client = Client::connect(dir.path()).expect("it listens");
    let (mut daemon, _) = listener.accept().expect("it connects");
    let front =
        choices.of(&["", "ok ", "ok 3\n", "error 2 ", "ok 4294967295\n", "ok 4096\na\tb\tc\n", "ok\n"]);
    let asks = choices.byte() % 3;
    daemon.write_all(front.as_bytes()).expect("room");
    daemon.write_all(choices.0).expect("room");
    daemon.shutdown(Shutdown::Write).expect("a socket");
    let is_plain = |text: &str| text.chars().all(|c| !c.is_control() || c == '\t');
    match asks {
        0 => match client.list() {
            Ok(kpis) => {
                assert!(kpis.len() <= 4_096);
                for kpi in kpis {
                    assert!(is_plain(&kpi.name) && is_plain(&kpi.unit), "{kpi:?}");
                }
            }
            Err(error) => assert!(is_plain(&error.to_string()), "{error}"),
        },
        1 => drop(
            client.subscribe("lte.rsrp").map_err(|error| assert!(is_plain(&error.to_string()), "{error}")),
        ),
        _ => drop(client.unsubscribe(7).map_err(|error| assert!(is_plain(&error.to_string()), "{error}"))),
    }
}
