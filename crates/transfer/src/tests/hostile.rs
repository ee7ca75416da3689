//! Tests against malicious peers: without the key, and with the key but violating the protocol.

use proptest::prelude::*;

use super::pipes::Pipes;
use super::world::{KEY, World};
use crate::link::Role;
use crate::message::{self, AHEAD, Hash, Message, Offer, Way, put, put_hello};
use crate::server::Notice;
use airpace_transport::endpoint::{ConnectionId, Endpoint};
use airpace_transport::key::Key;

/// A client whose frames the test writes itself.
struct Stranger {
    pipes: Pipes,
    id: ConnectionId,
}

impl Stranger {
    fn new(world: &mut World) -> Stranger {
        let mut pipes = Pipes::client(&world.net, 77);
        let id = pipes.connect(world.now, "203.0.113.1:1".parse().unwrap()).unwrap();
        Stranger { pipes, id }
    }

    /// Writes bytes to the receiver and lets virtual time pass, so that the receiver processes them.
    fn say(&mut self, world: &mut World, mut bytes: &[u8]) {
        for _ in 0..100 {
            match self.pipes.connection(self.id) {
                Some(connection) => {
                    bytes = &bytes[connection.write(world.now, bytes).unwrap_or(bytes.len())..]
                }
                None => return,
            }
            world.rest(40);
            if bytes.is_empty() {
                return;
            }
        }
    }

    fn prove(&mut self, world: &mut World) {
        let binding = self.pipes.connection(self.id).unwrap().binding();
        let mut out = Vec::new();
        put_hello(&mut out, &Role::Client.prove(&Key::new(KEY), &binding));
        self.say(world, &out);
    }

    fn push(&mut self, world: &mut World, files: u64) {
        let request = Message::Request {
            transfer: "0".repeat(32),
            way: Way::Push,
            scheme: "cubic".to_owned(),
            files,
            bytes: None,
            names: vec![],
        };
        self.tell(world, &[request]);
    }

    fn tell(&mut self, world: &mut World, messages: &[Message]) {
        let mut out = Vec::new();
        messages.iter().for_each(|message| put(&mut out, message));
        self.say(world, &out);
    }

    fn is_alive(&mut self) -> bool {
        self.pipes.connection(self.id).is_some()
    }
}

fn offer(index: u64, name: &str, bytes: Option<u64>) -> Message {
    Message::Offer(Offer { index, name: name.to_owned(), bytes, modified: Some(1), program: false })
}

fn begun(world: &mut World) -> Stranger {
    let mut stranger = Stranger::new(world);
    world.rest(50);
    stranger.prove(world);
    stranger.push(world, 1000);
    assert!(stranger.is_alive(), "so far it is like any other: {:?}", world.notices.borrow());
    stranger
}

#[test]
fn names_that_leave_the_folder_are_refused_and_nothing_is_written() {
    let outside = tempfile::tempdir().unwrap();
    for name in
        ["../a", "/tmp/a", "a/../../b", "", ".", "a\0b", ".profile", "link/a", "dangling", "pipe", "sub"]
    {
        let mut world = World::with_receiver();
        std::os::unix::fs::symlink(outside.path(), world.theirs.path().join("link")).unwrap();
        std::os::unix::fs::symlink(outside.path().join("new"), world.theirs.path().join("dangling")).unwrap();
        std::fs::create_dir(world.theirs.path().join("sub")).unwrap();
        let pipe = world.theirs.path().join("pipe");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let before = world.names();
        let mut stranger = begun(&mut world);
        stranger.tell(&mut world, &[offer(0, name, Some(1)), Message::Begin { index: 0, offset: 0 }]);
        assert!(!stranger.is_alive(), "{name:?} was accepted");
        assert_eq!(world.names(), before, "{name:?}");
        assert_eq!(outside.path().read_dir().unwrap().count(), 0, "{name:?}");
    }
}

#[test]
fn a_link_that_appears_where_a_part_goes_is_not_followed() {
    let outside = tempfile::tempdir().unwrap();
    let mut world = World::with_receiver();
    let target = outside.path().join("victim");
    std::fs::write(&target, b"mine").unwrap();
    std::os::unix::fs::symlink(&target, world.theirs.path().join("a.airpace-part")).unwrap();
    std::fs::hard_link(&target, world.theirs.path().join("b.airpace-part")).unwrap();
    for name in ["a", "b"] {
        let mut stranger = begun(&mut world);
        stranger.tell(&mut world, &[offer(0, name, Some(1))]);
        stranger.tell(&mut world, &[Message::Begin { index: 0, offset: 0 }]);
        assert!(!stranger.is_alive());
        assert_eq!(std::fs::read(&target).unwrap(), b"mine");
    }
}

#[test]
fn nothing_is_done_for_who_does_not_prove_that_it_knows_the_key() {
    let mut world = World::with_receiver();
    let mut stranger = Stranger::new(&mut world);
    world.rest(50);
    stranger.push(&mut world, 1);
    assert!(!stranger.is_alive(), "a request before the proof");
    // A proof for the role of the server is not accepted from a client.
    let mut stranger = Stranger::new(&mut world);
    let binding = stranger.pipes.connection(stranger.id).unwrap().binding();
    world.rest(50);
    let mut out = Vec::new();
    put_hello(&mut out, &Role::Server.prove(&Key::new(KEY), &binding));
    stranger.say(&mut world, &out);
    assert!(!stranger.is_alive());
    // A connection without a hello times out.
    let mut stranger = Stranger::new(&mut world);
    let until = world.now + std::time::Duration::from_secs(20);
    world.run_until(|world| world.now >= until);
    assert!(!stranger.is_alive());
    assert_eq!(world.server.as_ref().unwrap().0.sessions(), 0);
    assert_eq!(world.net.borrow().written[1], 0, "the receiver never said a word");
}

#[test]
fn what_is_out_of_turn_ends_the_connection() {
    let end = Message::End { bytes: 1, sha256: Hash([0; 32]) };
    let begin = |index, offset| Message::Begin { index, offset };
    let cases: Vec<Vec<Message>> = vec![
        vec![end.clone()],
        vec![begin(0, 0)],
        vec![Message::Skip { index: 0 }],
        vec![Message::Stored { index: 0 }],
        vec![Message::Accepted { files: 1, bytes: None }],
        vec![offer(1, "a", None)],
        vec![offer(0, "a", None), begin(0, 5)],
        vec![offer(0, "a", None), Message::Skip { index: 0 }],
        vec![offer(0, "a", Some(1)), begin(0, 0), end.clone()],
        vec![offer(0, "a", Some(0)), begin(0, 0), begin(0, 0)],
        (0..=AHEAD).map(|index| offer(index, &format!("f{index}"), None)).collect(),
    ];
    for messages in cases {
        let mut world = World::with_receiver();
        let mut stranger = begun(&mut world);
        for message in &messages {
            stranger.tell(&mut world, std::slice::from_ref(message));
        }
        assert!(!stranger.is_alive(), "{messages:?}");
        assert!(world.names().iter().all(|name| name.contains("airpace-part")), "{messages:?}");
        // A transfer whose data does not match its hash is reported as lost, because it may succeed next time. A message
        // out of order is reported as refused.
        let is_told = match world.notices.borrow().last() {
            Some(Notice::Lost { why, .. }) => why.contains("arrived damaged"),
            last => matches!(last, Some(Notice::Refused { .. })),
        };
        assert!(is_told, "{messages:?}: {:?}", world.notices.borrow().last());
    }
}

#[test]
fn more_bytes_than_announced_and_wrong_hashes_are_not_stored() {
    for (bytes, is_hash) in [(4, false), (3, true)] {
        let mut world = World::with_receiver();
        let mut stranger = begun(&mut world);
        stranger.tell(&mut world, &[offer(0, "a", Some(3))]);
        stranger.tell(&mut world, &[Message::Begin { index: 0, offset: 0 }]);
        let mut out = Vec::new();
        message::put_data(&mut out, |into| {
            into[..bytes].fill(b'x');
            Ok::<usize, ()>(bytes)
        })
        .unwrap();
        put(&mut out, &Message::End { bytes: bytes as u64, sha256: Hash([1; 32]) });
        stranger.say(&mut world, &out);
        assert!(!stranger.is_alive());
        assert_eq!(world.has("a"), None);
        assert!(!is_hash || world.names().is_empty(), "wrong bytes are of no use later");
    }
}

proptest! {
    #[test]
    fn frames_of_strangers_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        super::super::message::tests::check(&bytes);
    }

    #[test]
    fn a_receiver_survives_any_frames(
        kinds in prop::collection::vec((0_u8..4, prop::collection::vec(any::<u8>(), 0..60)), 0..20),
        proves: bool,
    ) {
        let mut world = World::with_receiver();
        let mut stranger = Stranger::new(&mut world);
        world.rest(50);
        if proves {
            stranger.prove(&mut world);
            stranger.push(&mut world, 3);
            stranger.tell(&mut world, &[offer(0, "a", None)]);
        }
        for (kind, body) in kinds {
            let mut frame = vec![kind];
            frame.extend_from_slice(&(body.len() as u32).to_be_bytes());
            frame.extend_from_slice(&body);
            stranger.say(&mut world, &frame);
        }
        prop_assert!(world.names().iter().all(|name| name.starts_with("a.airpace-part")));
    }
}
