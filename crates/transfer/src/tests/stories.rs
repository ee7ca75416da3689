//! Tests of whole transfers, as users see them.

use std::cell::RefCell;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::PermissionsExt;
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use airpace_core::remedy::explain_plainly;
use proptest::prelude::*;

use super::world::{KEY, World, bytes};
use crate::client::Job;
use crate::message::{Code, Fault, Offer};
use crate::name::Name;
use crate::progress::Stage;
use crate::server::Notice;
use crate::source::Files;
use crate::store::{Folder, Incoming, Store, Stream, There};
use airpace_transport::app::App;

#[test]
fn several_files_arrive_with_names_times_and_rights() {
    let mut world = World::with_receiver();
    let contents = [bytes(1, 1_000_000), bytes(2, 0), bytes(3, 1), bytes(4, 32 * 1024)];
    for (name, bytes) in ["big", "empty", "one", "frame"].iter().zip(&contents) {
        world.write(name, bytes);
    }
    let long_ago = SystemTime::UNIX_EPOCH + Duration::new(1_000_000_000, 123_456_789);
    let program = std::fs::File::options().write(true).open(world.ours.path().join("one")).unwrap();
    program.set_modified(long_ago).unwrap();
    program.set_permissions(std::fs::Permissions::from_mode(0o700)).unwrap();
    let client = world.send(&["big", "empty", "one", "frame"]);
    world.run();
    assert_eq!(world.outcome(client), Ok(()));
    for (name, bytes) in ["big", "empty", "one", "frame"].iter().zip(&contents) {
        assert_eq!(world.has(name).as_ref(), Some(bytes), "{name}");
    }
    let about = std::fs::metadata(world.theirs.path().join("one")).unwrap();
    assert_eq!(about.modified().unwrap(), long_ago);
    assert_eq!(about.permissions().mode() & 0o100, 0o100, "it is a program");
    assert_eq!(world.names(), ["big", "empty", "frame", "one"], "nothing else is left");
    assert_eq!((world.net.borrow().steered, world.net.borrow().listened), ([1, 0], [0, 1]));
    let notices = world.notices.borrow();
    assert!(matches!(&notices[0], Notice::Begins { files: 4, bytes: Some(1_032_769), .. }), "{notices:?}");
    assert!(
        matches!(notices.last(), Some(Notice::Done { tally, .. }) if tally.done == 1_032_769 && tally.stored == 4)
    );
    assert_eq!(world.server.as_ref().unwrap().0.sessions(), 0);
}

#[test]
fn files_are_fetched_only_from_who_allows_it() {
    let mut world = World::with_receiver();
    let into = tempfile::tempdir().unwrap();
    std::fs::write(world.theirs.path().join("film"), bytes(1, 500_000)).unwrap();
    let client = world.pull(&["film"], into.path());
    world.run();
    let refused = world.outcome(client).unwrap_err();
    assert!(refused.code == Code::Refused && refused.sentence.contains("hands out no files"), "{refused:?}");

    world.kill();
    let folder = world.folder();
    world.start(|settings| settings.serves = Some(folder));
    let client = world.pull(&["film"], into.path());
    world.run();
    assert_eq!(world.outcome(client), Ok(()));
    assert_eq!(std::fs::read(into.path().join("film")).unwrap(), bytes(1, 500_000));
    assert_eq!(world.net.borrow().steered, [0, 1], "the far side sends, and is steered");

    for hostile in ["../film", "/etc/passwd", ".ssh/id", "nothing"] {
        let client = world.pull(&[hostile], into.path());
        world.run();
        assert_eq!(world.outcome(client).unwrap_err().code, Code::Refused, "{hostile}");
    }
}

#[test]
fn a_file_with_a_private_key_is_fetched_up_to_the_key_at_most() {
    let mut world = World::with_receiver();
    let into = tempfile::tempdir().unwrap();
    let key = b"\n-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49AgEGCCqGSM49\n";
    std::fs::write(world.theirs.path().join("film"), [&bytes(1, 2_000_000)[..], key].concat()).unwrap();
    world.kill();
    let folder = world.folder();
    world.start(|settings| settings.serves = Some(folder));
    // The second attempt resumes at the offset where the first one was refused.
    for _ in 0..2 {
        let client = world.pull(&["film"], into.path());
        world.run();
        let fault = world.outcome(client).unwrap_err();
        assert!(fault.code == Code::Refused && fault.sentence.contains("private key"), "{fault:?}");
        for entry in std::fs::read_dir(into.path()).unwrap() {
            let received = std::fs::read(entry.unwrap().path()).unwrap();
            assert!(received.len() <= 2_000_000, "{} bytes of it", received.len());
        }
    }
}

#[test]
fn a_wrong_key_ends_it_before_a_name_is_sent() {
    let mut world = World::with_receiver();
    world.write("secret-name", b"secret bytes");
    let push = |world: &mut World, key| {
        let mut files = Files::new();
        files.add(world.ours.path().join("secret-name")).unwrap();
        let client = world.client(Job::Push(Rc::new(RefCell::new(files))), key);
        world.run();
        world.outcome(client).unwrap_err()
    };
    let refused = push(&mut world, *b"some other key !");
    assert_eq!(refused.code, Code::Key);
    assert_eq!(refused.sentence, "the key is not the one that the receiver printed");
    let one_proof = world.net.borrow().written;
    assert_eq!(one_proof, [38, 0], "the client's proof, and nothing else");

    // A man in the middle has two connections with different channel bindings.
    world.net.borrow_mut().is_between = true;
    assert_eq!(push(&mut world, KEY).code, Code::Key);
    assert_eq!(world.net.borrow().written, [76, 0]);
    assert!(world.names().is_empty());
    assert!(world.notices.borrow().iter().all(|notice| matches!(notice, Notice::Refused { .. })));
}

#[test]
fn who_guesses_keys_must_wait() {
    let mut world = World::with_receiver();
    world.write("a", b"a");
    for _ in 0..10 {
        let mut files = Files::new();
        files.add(world.ours.path().join("a")).unwrap();
        world.client(Job::Push(Rc::new(RefCell::new(files))), [1; 16]);
        // All attempts come from one address.
        let (_, pipes) = world.clients.last_mut().unwrap();
        *pipes = super::pipes::Pipes::client(&world.net, 1);
        world.run();
        world.clients.clear();
    }
    let written = world.net.borrow().written;
    let client = world.send(&["a"]);
    let began = world.now;
    world.run();
    assert_eq!(world.outcome(client), Ok(()), "the right key works after the wait");
    assert!(world.now >= began + Duration::from_secs(50));
    assert!(world.net.borrow().written[0] > written[0]);
}

#[test]
fn a_receiver_that_is_killed_and_started_again_goes_on_where_it_was() {
    let mut world = World::with_receiver();
    let content = bytes(1, 3_000_000);
    world.write("film", &content);
    let client = world.send(&["film"]);
    world.run_until(|world| world.has("film.airpace-part").is_some_and(|part| part.len() > 1_000_000));
    world.kill();
    let there = world.has("film.airpace-part").unwrap().len() as u64;
    let before = world.net.borrow().written[0];
    let until = world.now + Duration::from_secs(20);
    world.run_until(|world| world.now >= until);
    assert!(matches!(world.progress.borrow().last().unwrap().stage, Stage::Waiting(_) | Stage::Connecting));
    world.start(|_| {});
    world.run();
    assert_eq!(world.outcome(client), Ok(()));
    assert_eq!(world.has("film"), Some(content));
    let again = world.net.borrow().written[0] - before;
    assert!(again < 3_000_000 - there + 20_000, "{again} bytes after {there} were there");
    assert_eq!(world.progress.borrow().last().unwrap().tally.resumed, there);
}

#[test]
fn patience_has_an_end() {
    let mut world = World::new();
    world.write("a", b"a");
    let client = world.send(&["a"]);
    world.run();
    let fault = world.outcome(client).unwrap_err();
    assert!(
        fault.sentence.contains("for 60 s")
            && explain_plainly(&fault).ends_with("wait longer with `patience`"),
        "{fault:?}"
    );
    assert!((50..90).contains(&(world.now.as_millis() / 1000)), "{}", world.now.as_secs_f64());
}

#[test]
fn a_file_that_is_another_one_now_begins_anew() {
    let mut world = World::with_receiver();
    world.write("film", &bytes(1, 2_000_000));
    let client = world.send(&["film"]);
    world.run_until(|world| world.has("film.airpace-part").is_some_and(|part| part.len() > 500_000));
    world.kill();
    let other = bytes(2, 2_000_000);
    let path = world.write("film", &other);
    let later = SystemTime::now() + Duration::from_secs(7);
    std::fs::File::options().write(true).open(path).unwrap().set_modified(later).unwrap();
    world.start(|_| {});
    world.run();
    assert_eq!(world.outcome(client), Ok(()));
    assert_eq!(world.has("film"), Some(other));
    assert_eq!(world.progress.borrow().last().unwrap().tally.resumed, 0);
}

#[test]
fn damaged_bytes_of_a_part_are_found_before_it_is_resumed() {
    let mut world = World::with_receiver();
    let content = bytes(1, 2_000_000);
    world.write("film", &content);
    let client = world.send(&["film"]);
    world.run_until(|world| world.has("film.airpace-part").is_some_and(|part| part.len() > 500_000));
    world.kill();
    let mut part = world.has("film.airpace-part").unwrap();
    part[1234] ^= 1;
    std::fs::write(world.theirs.path().join("film.airpace-part"), part).unwrap();
    world.start(|_| {});
    world.run();
    assert_eq!(world.outcome(client), Ok(()));
    assert_eq!(world.has("film"), Some(content));
}

#[test]
fn a_file_that_changes_while_it_is_sent_is_not_stored() {
    let mut world = World::with_receiver();
    world.write("log", &bytes(1, 2_000_000));
    let client = world.send(&["log"]);
    world.run_until(|world| world.has("log.airpace-part").is_some_and(|part| part.len() > 500_000));
    world.write("log", &bytes(2, 2_000_001));
    world.run();
    let fault = world.outcome(client).unwrap_err();
    assert!(fault.code == Code::Source && fault.sentence.contains("changed"), "{fault:?}");
    assert_eq!(world.has("log"), None);
}

#[test]
fn the_same_file_is_not_sent_twice_and_another_is_not_overwritten() {
    let mut world = World::with_receiver();
    let content = bytes(1, 400_000);
    world.write("a", &content);
    world.send(&["a"]);
    world.run();
    let before = world.net.borrow().written[0];
    let client = world.send(&["a"]);
    world.run();
    assert_eq!(world.outcome(client), Ok(()), "it is there");
    assert!(world.net.borrow().written[0] - before < 1000, "no byte of it was sent");

    for other in [bytes(2, 400_000), bytes(2, 5)] {
        world.write("a", &other);
        let client = world.send(&["a"]);
        world.run();
        let fault = world.outcome(client).unwrap_err();
        assert!(fault.code == Code::Refused && fault.sentence.contains("is another file"), "{fault:?}");
        assert_eq!(world.has("a").as_ref(), Some(&content));
        assert_eq!(world.names(), ["a"]);
    }
    world.kill();
    let store = Rc::new(Folder::new(world.folder(), true));
    world.start(|settings| settings.store = store);
    for other in [bytes(2, 400_000), bytes(2, 5)] {
        world.write("a", &other);
        let client = world.send(&["a"]);
        world.run();
        assert_eq!(world.outcome(client), Ok(()));
        assert_eq!(world.has("a"), Some(other));
    }
}

/// A store on a disk with this many free bytes.
struct Small(Folder, Rc<RefCell<u64>>);

struct SmallFile(Box<dyn Incoming>, u64);

impl Store for Small {
    fn look(&self, transfer: &str, offer: &Offer, name: &Name) -> Result<Option<There>, Fault> {
        self.0.look(transfer, offer, name)
    }

    fn open(
        &self,
        transfer: &str,
        offer: &Offer,
        name: &Name,
        offset: u64,
    ) -> Result<Box<dyn Incoming>, Fault> {
        let left = self.1.borrow().saturating_sub(offset);
        Ok(Box::new(SmallFile(self.0.open(transfer, offer, name, offset)?, left)))
    }
}

impl Incoming for SmallFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<bool> {
        self.1 = self.1.checked_sub(bytes.len() as u64).ok_or(ErrorKind::StorageFull)?;
        self.0.write(bytes)
    }

    fn ends(&mut self) {
        self.0.ends();
    }

    fn finish(self: Box<Self>) -> Result<(), Fault> {
        self.0.finish()
    }

    fn discard(self: Box<Self>) {
        self.0.discard();
    }
}

#[test]
fn a_full_disk_is_a_sentence_and_what_came_is_kept() {
    let mut world = World::new();
    let room = Rc::new(RefCell::new(1_000_000));
    let store = Rc::new(Small(Folder::new(world.folder(), false), Rc::clone(&room)));
    world.start(|settings| settings.store = store);
    let content = bytes(1, 1_500_000);
    world.write("film", &content);
    let client = world.send(&["film"]);
    world.run();
    let fault = world.outcome(client).unwrap_err();
    assert!(fault.code == Code::Store && fault.sentence.contains("make room"), "{fault:?}");
    assert!(
        matches!(world.notices.borrow().last(), Some(Notice::Lost { why, .. }) if why.contains("does not fit"))
    );
    assert!(world.has("film").is_none() && world.has("film.airpace-part").unwrap().len() > 900_000);

    *room.borrow_mut() = 10_000_000;
    let client = world.send(&["film"]);
    world.run();
    assert_eq!(world.outcome(client), Ok(()));
    assert_eq!(world.has("film"), Some(content));
    assert!(world.progress.borrow().last().unwrap().tally.resumed > 900_000);
}

/// A stream that returns its bytes in pieces of at most 7001.
struct Drip(std::collections::VecDeque<u8>);

impl Read for Drip {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = into.len().min(self.0.len()).min(7_001);
        for byte in &mut into[..count] {
            *byte = self.0.pop_front().unwrap();
        }
        Ok(count)
    }
}

fn send_stream(world: &mut World, content: &[u8]) -> usize {
    let mut files = Files::new();
    files.add_stream("stdin", Drip(content.iter().copied().collect())).unwrap();
    world.client(Job::Push(Rc::new(RefCell::new(files))), KEY)
}

#[test]
fn a_stream_survives_a_break_and_goes_into_a_file_or_a_stream() {
    let content = bytes(5, 4_000_000);
    let mut world = World::with_receiver();
    let client = send_stream(&mut world, &content);
    world.run_until(|world| world.has("stdin.airpace-part").is_some_and(|part| part.len() > 2_500_000));
    world.kill();
    world.start(|_| {});
    world.run();
    assert_eq!(world.outcome(client), Ok(()));
    assert!(world.has("stdin").as_ref() == Some(&content));
    assert!(world.progress.borrow().last().unwrap().tally.resumed > 2_500_000);

    let out = Shared::default();
    let mut world = World::new();
    let store = Rc::new(Stream::new(out.clone()).unwrap());
    world.start(|settings| settings.store = store);
    let client = send_stream(&mut world, &content);
    world.run_until(|world| world.net.borrow().written[0] > 2_000_000);
    world.net.borrow_mut().cut(world.now, true);
    world.run();
    assert_eq!(world.outcome(client), Ok(()));
    assert!(*out.0.lock().unwrap() == content, "each byte once");
    world.write("second", b"x");
    let client = world.send(&["second"]);
    world.run();
    assert_eq!(world.outcome(client).unwrap_err().code, Code::Refused);
}

#[derive(Clone, Default)]
struct Shared(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

impl io::Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn two_hundred_transfers_at_once() {
    let mut world = World::with_receiver();
    for index in 0..200 {
        let name = format!("file-{index}");
        world.write(&name, &bytes(index, 100_000 + index as usize));
        world.send(&[&name]);
    }
    world.run_until(|world| world.server.as_ref().unwrap().0.sessions() == 200);
    world.run();
    for index in 0..200 {
        assert_eq!(world.outcome(index as usize), Ok(()));
        assert!(world.has(&format!("file-{index}")) == Some(bytes(index, 100_000 + index as usize)));
    }
}

#[test]
fn once_means_the_first_transfer_that_succeeds() {
    let mut world = World::new();
    world.start(|settings| settings.once = true);
    world.write("a", b"a");
    let mut files = Files::new();
    files.add(world.ours.path().join("a")).unwrap();
    world.client(Job::Push(Rc::new(RefCell::new(files))), [1; 16]);
    world.run();
    assert!(!world.server.as_ref().unwrap().0.is_done(), "a wrong key is no transfer");
    world.send(&["a"]);
    world.run();
    assert!(world.server.as_ref().unwrap().0.is_done());
}

#[test]
fn a_receiver_that_is_stopped_says_so_and_another_goes_on() {
    let mut world = World::new();
    let stop = std::sync::Arc::<std::sync::atomic::AtomicBool>::default();
    let flag = std::sync::Arc::clone(&stop);
    world.start(|settings| settings.stop = flag);
    world.write("film", &bytes(1, 2_000_000));
    let client = world.send(&["film"]);
    world.run_until(|world| world.has("film.airpace-part").is_some_and(|part| part.len() > 500_000));
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    world.run_until(|world| world.server.as_ref().unwrap().0.is_done());
    world.run_until(|world| world.progress.borrow().last().unwrap().losses > 0);
    let seen = world.progress.borrow().last().unwrap().stage.clone();
    assert!(matches!(&seen, Stage::Waiting(why) if why.contains("was stopped")), "{seen:?}");
    world.kill();
    world.start(|_| {});
    world.run();
    assert_eq!(world.outcome(client), Ok(()));
    assert!(world.has("film") == Some(bytes(1, 2_000_000)));
    assert!(world.progress.borrow().last().unwrap().tally.resumed > 500_000);
}

#[test]
fn two_senders_of_one_name_do_not_mix() {
    let mut world = World::with_receiver();
    let content = bytes(1, 1_000_000);
    world.write("a", &content);
    let one = world.send(&["a"]);
    let other = world.send(&["a"]);
    world.run();
    assert_eq!((world.outcome(one), world.outcome(other)), (Ok(()), Ok(())), "the second finds it there");
    assert!(world.has("a") == Some(content));
}

#[test]
fn a_scheme_that_only_a_simulator_can_feed_is_refused_here() {
    let settings = crate::client::Settings {
        key: airpace_transport::key::Key::new(KEY),
        peer: "203.0.113.1:1".parse().unwrap(),
        scheme: airpace_cc::schemes::SchemeSpec::parse("oracle").unwrap(),
        job: Job::Push(Rc::new(RefCell::new(Files::new()))),
        patience: Duration::from_secs(1),
        stop: std::sync::Arc::default(),
    };
    let refused = crate::client::Client::new(settings, |_| {}).err().unwrap();
    assert!(refused.sentence.contains("only a simulator has"), "{refused:?}");
}

/// The disk is slow, the connection is lost, and the client reconnects: the store reports the file only after the disk is
/// done.
#[test]
fn a_file_that_is_getting_its_name_is_not_looked_at_before_it_has_it() {
    let world = World::new();
    let folder = Folder::new(world.folder(), false);
    let name = Name::parse("film").unwrap();
    let offer =
        Offer { index: 0, name: "film".to_owned(), bytes: Some(3), modified: Some(7), program: false };
    let look = || folder.look("t", &offer, &name).unwrap().map(|there| (there.bytes, there.whole));
    assert_eq!(look(), Some((0, false)));
    let begun = || {
        let mut file = folder.open("t", &offer, &name, 0).unwrap();
        assert!(file.write(b"abc").unwrap());
        file.ends();
        file
    };
    let file = begun();
    assert_eq!(look(), None);
    drop(file);
    assert_eq!(look(), Some((3, false)), "it was not finished, and can be gone on with");
    let file = begun();
    assert_eq!(look(), None);
    file.finish().unwrap();
    assert_eq!(look(), Some((3, true)));
    assert_eq!(world.theirs.path().read_dir().unwrap().count(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// The connection is cut several times after arbitrary numbers of bytes; in some cases the receiver is not notified.
    #[test]
    fn whatever_dies_when_the_bytes_arrive(
        deaths in prop::collection::vec((0_u64..700_000, prop::bool::ANY), 1..6),
        sizes in prop::collection::vec(0_usize..400_000, 1..5),
        pulls: bool,
    ) {
        let mut world = World::new();
        let folder = world.folder();
        world.start(|settings| settings.serves = Some(folder));
        let into = tempfile::tempdir().unwrap();
        let names: Vec<String> = (0..sizes.len()).map(|index| format!("file-{index}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        for (seed, (name, size)) in names.iter().zip(&sizes).enumerate() {
            let place = if pulls { world.theirs.path() } else { world.ours.path() };
            std::fs::write(place.join(name), bytes(seed as u64, *size)).unwrap();
        }
        let client = if pulls { world.pull(&names, into.path()) } else { world.send(&names) };
        for (after, deaf) in deaths {
            let begun = world.net.borrow().written;
            let is_over = |world: &World| {
                let written = world.net.borrow().written;
                world.clients[0].0.is_done() || written[0] + written[1] >= begun[0] + begun[1] + after
            };
            if deaf {
                world.run_until(is_over);
                world.net.borrow_mut().cut(world.now, true);
            } else {
                world.net.borrow_mut().dies_after = Some(after);
                world.run_until(|world| world.clients[0].0.is_done() || world.net.borrow().dies_after.is_none());
            }
        }
        world.net.borrow_mut().dies_after = None;
        world.run();
        prop_assert_eq!(world.outcome(client), Ok(()));
        let place = if pulls { into.path() } else { world.theirs.path() };
        for (seed, (name, size)) in names.iter().zip(&sizes).enumerate() {
            prop_assert!(std::fs::read(place.join(name)).unwrap() == bytes(seed as u64, *size), "{}", name);
        }
        prop_assert_eq!(place.read_dir().unwrap().count(), names.len());
    }
}
