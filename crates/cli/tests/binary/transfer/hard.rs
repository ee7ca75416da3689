//! File transfers over a network that loses, reorders and duplicates datagrams.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::relay::{Harm, MIN_SILENCED, Relay};
use super::{Recv, TRANSPORTS, file};
use crate::Shell;

/// Environment variable with the size of the file (bytes), for sizes that take too long for a test.
const BYTES: &str = "AIRPACE_TRANSFER_BYTES";

/// Environment variable with the duration of an outage (s).
const OUTAGE: &str = "AIRPACE_TRANSFER_OUTAGE";

fn wished(name: &str, usual: u64) -> u64 {
    std::env::var(name).map_or(usual, |text| text.parse().expect("a number"))
}

/// Pushes a file through a network with these impairments, then pulls it back, and checks the relay's counters.
fn both_ways(transport: &str, harm: Harm) {
    let bytes = wished(BYTES, 4_000_000) as usize;
    let shell = Shell::new();
    let recv = Recv::start(&shell, &["--allow-pull"]);
    std::fs::create_dir(shell.path("from")).unwrap();
    let sent = file(&shell, "film", bytes);
    for (words, came) in [(&["film"][..], "in/film"), (&["--pull", "film", "--into", "from"], "from/film")] {
        let relay = Relay::new(recv.at.parse().unwrap(), harm);
        let at = relay.at.to_string();
        let common = ["--scheme", "bbr", "--transport", transport, "--key", "key", "--json"];
        let done = shell.run(&[&["send"], words, &[&at], &common[..]].concat()).json();
        assert!(std::fs::read(shell.path(came)).unwrap() == sent, "{transport}: {came} differs");
        eprintln!("{transport} {came}: {bytes} bytes; {:?}; {}", relay.did(), done[0]);
        let did = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Relaxed);
        assert!(harm.lost == 0 || did(&relay.did().lost) > 0);
        assert!(harm.outage.is_none() || did(&relay.did().silenced) >= MIN_SILENCED);
        // The pulling side sends only acknowledgements, and few of them if data is read in large pieces.
        assert!(harm.moves.is_empty() || did(&relay.did().moved) > 0);
    }
}

#[test]
fn a_file_arrives_whole_over_loss_reordering_and_duplication() {
    for transport in TRANSPORTS {
        both_ways(transport, Harm { lost: 50, doubled: 20, held: 20, ..Harm::default() });
    }
}

#[test]
fn a_file_arrives_whole_over_an_outage() {
    let span = Duration::from_secs(wished(OUTAGE, 1));
    for transport in TRANSPORTS {
        both_ways(transport, Harm { lost: 5, outage: Some((&[40], span)), ..Harm::default() });
    }
}

#[test]
fn a_file_arrives_whole_though_the_address_changes_midway() {
    for transport in TRANSPORTS {
        both_ways(transport, Harm { lost: 5, moves: &[20, 60], ..Harm::default() });
    }
}
