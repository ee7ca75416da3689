//! The kernel's count of a host's active flows beside the simulator's registry.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use airpace_bpf::twin::active::{Active, Last, SLOT};
use airpace_cc::registry::{ACTIVE_FOR, FlowKey, FlowRegistry, Protocol};
use airpace_core::{Bytes, Time};
use proptest::prelude::*;

fn key(flow: u16) -> FlowKey {
    let at = |last, port| SocketAddr::from((Ipv4Addr::new(10, 0, 0, last), port));
    let protocol = if flow.is_multiple_of(2) { Protocol::Tcp } else { Protocol::Udp };
    FlowKey { protocol, local: at(2, flow), remote: at(1, 443) }
}

/// The active flows, for somebody who is none of them.
fn active(registry: &FlowRegistry, now: Time) -> u64 {
    u64::from(registry.view(now, &key(u16::MAX)).flows) - 1
}

proptest! {
    /// With each packet, the kernel counts what the registry counts, and beyond that at most flows that fell out of it less
    /// than a slot ago.
    #[test]
    fn it_counts_what_the_registry_counts(
        packets in prop::collection::vec((0u64..40_000, 0u16..50), 1..400),
        pause in 0u64..2_000_000,
    ) {
        let mut kernel = Active::default();
        let mut lasts: BTreeMap<u16, Last> = BTreeMap::new();
        let (mut at_once, mut late) = (FlowRegistry::default(), FlowRegistry::new(ACTIVE_FOR + SLOT));
        let mut now = Time::from_secs(1);
        let half = packets.len() / 2;
        for (number, (wait, flow)) in packets.into_iter().enumerate() {
            now += Duration::from_micros(wait + if number == half { pause } else { 0 });
            kernel.sends(lasts.entry(flow).or_default(), now);
            for registry in [&mut at_once, &mut late] {
                registry.observe(now, &key(flow), 1, Bytes(100));
            }
            let seen = kernel.flows(now).expect("it has just sent");
            prop_assert!((active(&at_once, now)..=active(&late, now)).contains(&seen), "{seen} at {now:?}");
        }
        let silent = now + ACTIVE_FOR + SLOT;
        prop_assert_eq!(kernel.flows(silent), None);
        prop_assert_eq!(active(&late, silent), 0);
    }

    /// Flows that all go on are counted exactly.
    #[test]
    fn steady_flows_are_counted_exactly(flows in 1u16..300, period in 1u64..100) {
        let mut kernel = Active::default();
        let mut registry = FlowRegistry::default();
        let mut lasts = vec![Last::default(); usize::from(flows)];
        let mut now = Time::from_secs(1);
        for _ in 0..20 {
            now += Duration::from_millis(period);
            for (flow, last) in (0..flows).zip(&mut lasts) {
                kernel.sends(last, now);
                registry.observe(now, &key(flow), 1, Bytes(100));
            }
            prop_assert_eq!(kernel.flows(now), Some(u64::from(flows)));
            prop_assert_eq!(active(&registry, now), u64::from(flows));
        }
    }
}
