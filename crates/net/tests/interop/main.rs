//! Interoperability of Airpace's QUIC with other implementations, as server and as client, over loopback sockets: directly,
//! through a relay that loses packets or changes ports, with Retry, and with key updates.
//!
//! The other implementations are also tested against each other. This shows whether a failure is caused by Airpace.

mod by_quinn;
mod by_s2n;
mod logs;
mod ours;
mod relay;
mod stack;

use std::sync::Arc;

use by_quinn::Quinn;
use by_s2n::S2n;
use ours::Ours;
use relay::{Does, Relay, Saw};
use stack::{Extras, Identity, Setting, Stack, Told, files};

/// Fetches every file and one missing file, and compares the contents.
fn meet(server: &dyn Stack, client: &dyn Stack, extras: Extras, does: Does) -> (Arc<Told>, Relay) {
    let pair = format!("{} from {}", client.name(), server.name());
    println!("{pair}: {extras:?}, {does:?}");
    let setting =
        Setting { identity: Identity::new(), files: files(), extras, told: Arc::default(), qlog: None };
    let serving = server.serve(&setting);
    let relay = Relay::new(serving.address(), does);
    let mut paths: Vec<&str> = setting.files.keys().map(String::as_str).collect();
    paths.push("/missing");
    let fetched = client.fetch(&setting, relay.address(), &paths);
    assert_eq!(fetched.len(), paths.len());
    for (path, bytes) in paths.iter().zip(fetched) {
        match setting.files.get(*path) {
            Some(file) => {
                let bytes = bytes.unwrap_or_else(|| panic!("{pair}: {path} is served"));
                assert_eq!(bytes.len(), file.len(), "{pair}: the length of {path}");
                assert_eq!(hash(&bytes), hash(file), "{pair}: the contents of {path}");
            }
            None => assert_eq!(bytes, None, "{pair}: what is not there is refused"),
        }
    }
    (setting.told, relay)
}

fn hash(bytes: &[u8]) -> Vec<u8> {
    ring::digest::digest(&ring::digest::SHA256, bytes).as_ref().to_vec()
}

/// All pairs of server and client, with and without Airpace.
fn pairs() -> Vec<(&'static dyn Stack, &'static dyn Stack)> {
    let stacks: [&dyn Stack; 3] = [&Quinn, &S2n, &Ours("cubic")];
    let all = stacks.iter().flat_map(|server| stacks.iter().map(|client| (*server, *client)));
    all.collect()
}

#[test]
fn every_stack_fetches_from_every_other() {
    for (server, client) in pairs() {
        let (_, relay) = meet(server, client, Extras::default(), Does::default());
        assert!(Saw::get(&relay.saw().down) > 7000, "10 MB are thousands of packets");
    }
}

#[test]
fn a_fiftieth_of_the_packets_lost_changes_no_byte() {
    for (seed, (server, client)) in pairs().into_iter().enumerate() {
        let does = Does { loss: 0.02, seed: seed as u64, ..Does::default() };
        let (told, relay) = meet(server, client, Extras::default(), does);
        if server.tells() {
            assert!(Told::get(&told.lost) > 0, "{} tells of lost packets", server.name());
        }
        let (lost, down) = (Saw::get(&relay.saw().lost), Saw::get(&relay.saw().down));
        assert!(lost * 100 > down, "the relay lost {lost} packets, and passed on {down} of the server");
    }
}

#[test]
fn clients_answer_a_retry() {
    for (server, client) in pairs() {
        let extras = Extras { retry: true, ..Extras::default() };
        let (_, relay) = meet(server, client, extras, Does::default());
        assert!(Saw::get(&relay.saw().retries) > 0, "{} sent a Retry", server.name());
    }
}

#[test]
fn keys_are_changed_on_the_way() {
    for (server, client) in pairs() {
        for (begins, by_server) in [(server, true), (client, false)] {
            if !begins.can_update_keys() {
                continue;
            }
            let extras = Extras {
                server_updates_keys: by_server,
                client_updates_keys: !by_server,
                ..Extras::default()
            };
            let (told, _) = meet(server, client, extras, Does::default());
            let updates = Told::get(&told.key_updates);
            if server.tells() || client.tells() {
                assert!(updates > 0, "{} and {} never changed their keys", server.name(), client.name());
            }
        }
    }
}

#[test]
fn a_router_that_takes_another_port_does_not_end_a_transfer() {
    for (server, client) in pairs() {
        let does = Does { moves_after: Some(1000), ..Does::default() };
        let (told, relay) = meet(server, client, Extras::default(), does);
        let after = Saw::get(&relay.saw().down_to_new_port);
        if server.tells() {
            assert!(Told::get(&told.moves) > 0, "{} tells of the new port", server.name());
        }
        assert!(after > 1000, "{} sent {after} packets to the new port", server.name());
    }
}

#[test]
fn a_client_goes_on_from_another_port() {
    for (server, client) in pairs().into_iter().filter(|(_, client)| client.can_move()) {
        let extras = Extras { moves: true, ..Extras::default() };
        let (_, relay) = meet(server, client, extras, Does::default());
        assert_eq!(Saw::get(&relay.saw().client_ports), 2, "{} used two ports", client.name());
    }
}
