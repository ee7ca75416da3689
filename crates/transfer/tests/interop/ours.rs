//! Airpace's QUIC as server and as client.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use airpace_cc::schemes::SchemeSpec;
use airpace_core::Time;
use airpace_files::Inside;
use airpace_transfer::hq::client::{Client, Sink, Stage, Wanted};
use airpace_transfer::hq::server::Server;
use airpace_transfer::hq::{fetching, serving};
use airpace_transport::app::App;
use airpace_transport::endpoint::{ConnectionId, Endpoint, Event};
use airpace_transport::quic::{Identity, QuicConnection, QuicEndpoint, Retry, Trust};
use airpace_transport::socket::{Buffers, Socket};
use airpace_transport::turn::{Control, Turn};
use rustls::pki_types::PrivatePkcs8KeyDer;

use super::stack::{ANY, NAME, Serving, Setting, Stack};

/// Airpace's implementation with a congestion control scheme.
pub struct Ours(pub &'static str);

struct Served {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    control: Arc<Control>,
    thread: Option<JoinHandle<()>>,
    _folder: tempfile::TempDir,
}

impl Serving for Served {
    fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.control.wake();
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || std::thread::panicking(), "our server works to the end");
        }
    }
}

/// Shared buffer of received bytes. Once it contains a megabyte, it asks the event loop to rebind the client's socket.
#[derive(Clone)]
struct Memory(Arc<Mutex<Vec<u8>>>, Option<Arc<Control>>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut all = self.0.lock().unwrap();
        all.extend_from_slice(bytes);
        if all.len() >= 1 << 20
            && let Some(control) = self.1.take()
        {
            control.rebind();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Wrapper of an application that updates a connection's keys after each megabyte sent and received.
struct Updating<A> {
    app: A,
    updates: bool,
    megabytes: BTreeMap<ConnectionId, u64>,
}

impl<A> Updating<A> {
    fn new(app: A, updates: bool) -> Updating<A> {
        Updating { app, updates, megabytes: BTreeMap::new() }
    }

    fn update(&mut self, endpoint: &mut dyn Endpoint, id: ConnectionId) {
        let Some(connection) = endpoint.connection(id).filter(|_| self.updates) else { return };
        let figures = connection.figures();
        let moved = (figures.sent.bytes.0 + figures.received.bytes.0) >> 20;
        if moved > 0 && self.megabytes.insert(id, moved) != Some(moved) {
            assert!(
                QuicConnection::of(connection).expect("it is QUIC").update_keys(),
                "after a megabyte each side is sure of the other"
            );
        }
    }
}

impl<A: App> App for Updating<A> {
    fn on_event(&mut self, now: Time, endpoint: &mut dyn Endpoint, id: ConnectionId, event: Event) {
        self.app.on_event(now, endpoint, id, event);
        self.update(endpoint, id);
    }

    fn handle_timeout(&mut self, now: Time, endpoint: &mut dyn Endpoint) {
        self.app.handle_timeout(now, endpoint);
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.app.poll_timeout()
    }

    fn is_done(&self) -> bool {
        self.app.is_done()
    }
}

impl Stack for Ours {
    fn name(&self) -> &'static str {
        "ours"
    }

    fn can_move(&self) -> bool {
        true
    }

    fn can_update_keys(&self) -> bool {
        true
    }

    fn tells(&self) -> bool {
        false
    }

    fn serve(&self, setting: &Setting) -> Box<dyn Serving> {
        let folder = tempfile::tempdir().unwrap();
        for (path, bytes) in setting.files.iter() {
            let path = folder.path().join(&path[1..]);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        }
        let key = PrivatePkcs8KeyDer::from(setting.identity.key.serialize_der());
        let identity = Identity { chain: vec![setting.identity.certificate.der().clone()], key: key.into() };
        let retry = if setting.extras.retry { Retry::Always } else { Retry::UnderLoad(64) };
        let mut config = serving(identity, retry);
        config.qlog = setting.qlog.clone();
        let endpoint = QuicEndpoint::new(config).unwrap();
        let socket = Socket::bind(ANY, Buffers::default()).unwrap();
        let address = socket.local();
        let stop = Arc::<AtomicBool>::default();
        let inside = Inside::open(folder.path()).unwrap();
        let spec = SchemeSpec::parse(self.0).unwrap();
        let app = Server::new(inside, spec, stop.clone(), Box::new(|_| {})).unwrap();
        let app = Updating::new(app, setting.extras.server_updates_keys);
        let control = Control::new().unwrap();
        let hand = control.clone();
        let thread = std::thread::spawn(move || {
            Turn { socket, endpoint, app, radios: vec![], control: hand, wants_realtime: false }.run();
        });
        Box::new(Served { address, stop, control, thread: Some(thread), _folder: folder })
    }

    fn fetch(&self, setting: &Setting, server: SocketAddr, paths: &[&str]) -> Vec<Option<Vec<u8>>> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(setting.identity.certificate.der().clone()).unwrap();
        let mut config = fetching(NAME, Trust::Roots(Arc::new(roots)));
        config.qlog = setting.qlog.clone();
        let endpoint = QuicEndpoint::new(config).unwrap();
        let socket = Socket::bind(ANY, Buffers::default()).unwrap();
        let control = Control::new().unwrap();
        let mover = setting.extras.moves.then(|| control.clone());
        let sinks: Vec<Memory> = paths.iter().map(|_| Memory(Arc::default(), mover.clone())).collect();
        let wanted = paths.iter().zip(&sinks).map(|(path, sink)| Wanted {
            path: (*path).to_owned(),
            sink: Sink::Stream(Box::new(sink.clone())),
        });
        let app = Client::new(server, wanted.collect(), Arc::default());
        let app = Updating::new(app, setting.extras.client_updates_keys);
        let turned = Turn { socket, endpoint, app, radios: vec![], control, wants_realtime: false }.run();
        assert_eq!(turned.audit.not_rebound_because, None);
        let files = turned.app.app.files().iter().zip(sinks);
        let fetched = files.map(|(file, sink)| match &file.stage {
            Stage::Done => Some(std::mem::take(&mut *sink.0.lock().unwrap())),
            Stage::Failed(why) if why.contains("code 404") => None,
            other => panic!("our stack cannot fetch: {other:?}"),
        });
        fetched.collect()
    }
}
