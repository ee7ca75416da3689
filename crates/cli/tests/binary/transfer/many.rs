//! Many concurrent transfers through one receiver.

use std::cell::RefCell;
use std::fs;
use std::rc::Rc;
use std::sync::{Arc, Barrier};
use std::time::Duration;

use airpace_cc::SchemeSpec;
use airpace_core::Bytes;
use airpace_transfer::client::{Client, Job, Settings};
use airpace_transfer::keys;
use airpace_transfer::source::Files;
use airpace_transport::endpoint::Endpoint;
use airpace_transport::quic::{Config, QuicEndpoint};
use airpace_transport::socket::{Buffers, Socket};
use airpace_transport::turn::{Control, Turn};
use airpace_transport::udp::{UdpConfig, UdpEndpoint};

use super::{Recv, file, is_same};
use crate::Shell;

/// Number of concurrent transfers.
const MANY: usize = 200;

fn turn(endpoint: impl Endpoint, settings: Settings) {
    let socket =
        Socket::toward(settings.peer, Buffers { receive: Bytes(1 << 18), send: Bytes(1 << 18) }).unwrap();
    let app = Client::new(settings, |_| {}).expect("a client");
    let turned = Turn {
        socket,
        endpoint,
        app,
        radios: vec![],
        control: Control::new().unwrap(),
        wants_realtime: false,
    };
    assert_eq!(turned.run().app.outcome(), Some(&Ok(())));
}

#[test]
fn two_hundred_transfers_at_once() {
    let shell = Shell::new();
    let recv = Recv::start(&shell, &[]);
    let key = keys::read(&shell.path("key")).unwrap();
    let sent: Vec<_> = (0..MANY).map(|n| (format!("f{n}"), file(&shell, &format!("f{n}"), 50_000))).collect();
    let at_once = Arc::new(Barrier::new(MANY));
    std::thread::scope(|scope| {
        for (number, (name, _)) in sent.iter().enumerate() {
            let (peer, path, key) = (recv.at.parse().unwrap(), shell.path(name), key.clone());
            let at_once = Arc::clone(&at_once);
            scope.spawn(move || {
                let mut files = Files::new();
                files.add(path).unwrap();
                let settings = Settings {
                    key: key.clone(),
                    peer,
                    scheme: SchemeSpec::parse("cubic").unwrap(),
                    job: Job::Push(Rc::new(RefCell::new(files))),
                    patience: Duration::from_secs(60),
                    stop: Arc::default(),
                };
                at_once.wait();
                match number % 2 {
                    0 => turn(QuicEndpoint::new(Config::default()).unwrap(), settings),
                    _ => turn(UdpEndpoint::new(key, UdpConfig::default()).unwrap(), settings),
                }
            });
        }
    });
    for (name, bytes) in sent {
        is_same(&shell, &format!("in/{name}"), &bytes);
    }
    assert_eq!(fs::read_dir(shell.path("in")).unwrap().count(), MANY);
    recv.interrupt();
}
