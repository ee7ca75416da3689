//! Test environment: a receiver, its senders, and the network between them.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use airpace_cc::schemes::SchemeSpec;
use airpace_core::Time;
use airpace_files::Inside;
use tempfile::TempDir;

use super::pipes::{Net, Pipes, Shared};
use crate::client::{self, Client, Job};
use crate::message::Fault;
use crate::progress::Progress;
use crate::server::{self, Notice, Server};
use crate::source::Files;
use crate::store::{Folder, Store};
use airpace_transport::app::App;
use airpace_transport::key::Key;

pub const KEY: [u8; 16] = *b"the key of tests";

pub struct World {
    pub net: Shared,
    pub now: Time,
    /// The receiver's folder.
    pub theirs: TempDir,
    /// The sender's folder.
    pub ours: TempDir,
    pub server: Option<(Server, Pipes)>,
    pub clients: Vec<(Client, Pipes)>,
    pub notices: Rc<RefCell<Vec<Notice>>>,
    pub progress: Rc<RefCell<Vec<Progress>>>,
}

impl World {
    /// Creates a network without a receiver.
    pub fn new() -> World {
        World {
            net: Shared::default(),
            now: Time::from_secs(1),
            theirs: tempfile::tempdir().unwrap(),
            ours: tempfile::tempdir().unwrap(),
            server: None,
            clients: Vec::new(),
            notices: Rc::default(),
            progress: Rc::default(),
        }
    }

    /// Creates a network with a receiver that has its default settings.
    pub fn with_receiver() -> World {
        let mut world = World::new();
        world.start(|_| {});
        world
    }

    pub fn folder(&self) -> Arc<Inside> {
        Arc::new(Inside::open(self.theirs.path()).unwrap())
    }

    /// Starts the receiver.
    pub fn start(&mut self, change: impl FnOnce(&mut server::Settings)) {
        let store: Rc<dyn Store> = Rc::new(Folder::new(self.folder(), false));
        let mut settings = server::Settings {
            key: Key::new(KEY),
            store,
            serves: None,
            once: false,
            has_radio: false,
            stop: Arc::default(),
        };
        change(&mut settings);
        let notices = Rc::clone(&self.notices);
        let server = Server::new(settings, move |notice| notices.borrow_mut().push(notice.clone()));
        self.net.borrow_mut().listening = true;
        self.server = Some((server, Pipes::server(&self.net)));
    }

    /// Simulates that the receiver's process is killed.
    pub fn kill(&mut self) {
        let mut net: std::cell::RefMut<'_, Net> = self.net.borrow_mut();
        net.listening = false;
        net.forget_server(self.now);
        drop(net);
        self.server = None;
    }

    /// Writes a file into the sender's folder.
    pub fn write(&self, name: &str, bytes: &[u8]) -> std::path::PathBuf {
        let path = self.ours.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// Starts to send these files. Returns the index of the client.
    pub fn send(&mut self, names: &[&str]) -> usize {
        let mut files = Files::new();
        names.iter().for_each(|name| files.add(self.ours.path().join(name)).unwrap());
        self.client(Job::Push(Rc::new(RefCell::new(files))), KEY)
    }

    /// Starts to fetch these files into a folder. Returns the index of the client.
    pub fn pull(&mut self, names: &[&str], into: &Path) -> usize {
        let store = Rc::new(Folder::new(Arc::new(Inside::open(into).unwrap()), false));
        let names = names.iter().map(|&name| name.to_owned()).collect();
        self.client(Job::Pull { names, store, has_radio: false }, KEY)
    }

    pub fn client(&mut self, job: Job, key: [u8; 16]) -> usize {
        let settings = client::Settings {
            key: Key::new(key),
            peer: "203.0.113.1:4433".parse().unwrap(),
            scheme: SchemeSpec::parse("pbe").unwrap(),
            job,
            patience: Duration::from_secs(60),
            stop: Arc::default(),
        };
        let progress = Rc::clone(&self.progress);
        let client = Client::new(settings, move |seen| progress.borrow_mut().push(seen.clone())).unwrap();
        let owner = self.clients.len() as u64 + 1;
        self.clients.push((client, Pipes::client(&self.net, owner)));
        self.clients.len() - 1
    }

    /// Processes all due events and timeouts, then advances the clock to the next one, at most by one second.
    pub fn step(&mut self) {
        self.step_within(Duration::from_secs(1));
    }

    /// Runs for this much virtual time.
    pub fn rest(&mut self, millis: u64) {
        let end = self.now + Duration::from_millis(millis);
        while self.now < end {
            self.step_within(end - self.now);
        }
    }

    fn step_within(&mut self, most: Duration) {
        let mut next = Time::NEVER;
        let server = self.server.as_mut().map(|(server, pipes)| (server as &mut dyn App, pipes));
        let clients = self.clients.iter_mut().map(|(client, pipes)| (client as &mut dyn App, pipes));
        for (app, pipes) in server.into_iter().chain(clients) {
            loop {
                match pipes.event(self.now) {
                    Ok((id, event)) => app.on_event(self.now, pipes, id, event),
                    Err(due) => {
                        next = due.map_or(next, |due| next.min(due));
                        break;
                    }
                }
            }
            if app.poll_timeout().is_some_and(|at| at <= self.now) {
                app.handle_timeout(self.now, pipes);
            }
            next = app.poll_timeout().map_or(next, |at| next.min(at));
        }
        // Give the threads of the store and of streams real time to run: their work takes no virtual time.
        std::thread::sleep(Duration::from_micros(if next > self.now { 200 } else { 0 }));
        self.now = next.min(self.now + most).max(self.now + Duration::from_micros(10));
    }

    /// Runs until all clients are done, and one more second.
    pub fn run(&mut self) {
        self.run_until(|world| world.clients.iter().all(|(client, _)| client.is_done()));
        let end = self.now + Duration::from_secs(1);
        self.run_until(|world| world.now >= end);
    }

    pub fn run_until(&mut self, is_over: impl Fn(&World) -> bool) {
        let end = self.now + Duration::from_secs(100_000);
        while !is_over(self) {
            assert!(self.now < end, "it hangs: {:?}", self.progress.borrow().last());
            self.step();
        }
    }

    pub fn outcome(&self, client: usize) -> Result<(), Fault> {
        self.clients[client].0.outcome().cloned().expect("it is over")
    }

    /// Content of a file in the receiver's folder; `None` if it does not exist.
    pub fn has(&self, name: &str) -> Option<Vec<u8>> {
        std::fs::read(self.theirs.path().join(name)).ok()
    }

    /// Sorted names of the files in the receiver's folder.
    pub fn names(&self) -> Vec<String> {
        let entries = self.theirs.path().read_dir().unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// Pseudo-random bytes.
pub fn bytes(seed: u64, length: usize) -> Vec<u8> {
    let mut rng = airpace_core::Streams::new(seed).stream("bytes");
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        bytes.extend_from_slice(&rng.next_u64().to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}
