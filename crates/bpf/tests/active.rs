//! Comparison of the kernel's count of a host's active flows with the simulator's registry.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use airpace_bpf::twin::KernelTuning;
use airpace_bpf::twin::active::{AppCounter, AppFlow, DeviceView, FlowCounter, LastSlot, RecentBytes, SLOT};
use airpace_cc::SchemeSpec;
use airpace_cc::biscay::Tuning;
use airpace_cc::registry::{ACTIVE_FOR, DeviceFlows, FlowKey, FlowRegistry, Protocol};
use airpace_core::{Bytes, Time};
use proptest::prelude::*;

fn key(flow: u16) -> FlowKey {
    let at = |last, port| SocketAddr::from((Ipv4Addr::new(10, 0, 0, last), port));
    let protocol = if flow.is_multiple_of(2) { Protocol::Tcp } else { Protocol::Udp };
    FlowKey { protocol, local: at(2, flow), remote: at(1, 443) }
}

/// The number of active flows, excluding the caller's flow.
fn active(registry: &FlowRegistry, now: Time) -> u64 {
    u64::from(registry.view(now, &key(u16::MAX)).flows) - 1
}

#[test]
fn a_flow_that_changes_hands_is_its_new_owner_s_with_its_next_slot() {
    let (mut kernel, mut flow, mut other) = (AppCounter::default(), AppFlow::default(), AppFlow::default());
    let at = Time::from_millis;
    kernel.sends(&mut flow, 1, at(1_000));
    kernel.sends(&mut other, 1, at(1_000));
    assert_eq!(kernel.seen(1, at(1_000)), [2, 1, 2], "flows, applications, flows of this one");
    kernel.sends(&mut flow, 2, at(1_020));
    assert_eq!(kernel.seen(1, at(1_020)), [2, 2, 1]);
    assert_eq!(kernel.seen(2, at(1_020)), [2, 2, 1]);
}

/// Returns the kernel's options and the controller's options for each split policy.
fn policies() -> [(KernelTuning, Tuning); 3] {
    ["equal", "app", "proportional"].map(|policy| {
        let spec = SchemeSpec::parse(&format!("biscay:split={policy}")).unwrap();
        let tuning = Tuning::read(spec.options()).unwrap();
        (KernelTuning::new(&tuning).unwrap(), tuning)
    })
}

proptest! {
    /// Applications are counted in the same way as flows: the kernel counts the applications in the registry, and in
    /// addition at most the applications that left the registry less than a slot ago.
    #[test]
    fn it_counts_the_applications_that_the_registry_counts(
        packets in prop::collection::vec((0u64..40_000, 0u16..30), 1..400),
    ) {
        let mut kernel = AppCounter::default();
        let mut flows: BTreeMap<u16, AppFlow> = BTreeMap::new();
        let (mut at_once, mut late) = (FlowRegistry::default(), FlowRegistry::new(ACTIVE_FOR + SLOT));
        let mut now = Time::from_secs(1);
        for (wait, flow) in packets {
            now += Duration::from_micros(wait);
            let app = u64::from(1 + flow % 5);
            kernel.sends(flows.entry(flow).or_default(), app, now);
            for registry in [&mut at_once, &mut late] {
                registry.observe(now, &key(flow), app as u32, Bytes(100));
            }
            let seen = kernel.seen(app, now);
            let counted = [&at_once, &late].map(|registry| {
                let DeviceFlows { flows, apps, app_flows, .. } = registry.view(now, &key(flow));
                [flows, apps, app_flows].map(u64::from)
            });
            for at in 0..3 {
                let allowed = counted[0][at]..=counted[1][at];
                prop_assert!(allowed.contains(&seen[at]), "{seen:?} and not {counted:?}");
            }
        }
    }

    /// The kernel's number of bytes that a flow transferred equals the registry's number exactly.
    #[test]
    fn what_moved_is_what_the_registry_says(
        packets in prop::collection::vec((0u64..90_000, 0u16..4, 1u64..70_000), 1..300),
    ) {
        let mut registry = FlowRegistry::default();
        let (mut each, mut all) = ([RecentBytes::default(); 4], RecentBytes::default());
        let mut now = Time::from_secs(1);
        for (wait, flow, bytes) in packets {
            now += Duration::from_micros(wait);
            each[usize::from(flow)].add(now, Bytes(bytes));
            all.add(now, Bytes(bytes));
            registry.observe(now, &key(flow), 1, Bytes(bytes));
            let used = each[usize::from(flow)].sum(now).0 as f64 / all.sum(now).0 as f64;
            prop_assert_eq!(used, registry.view(now, &key(flow)).used_share);
        }
    }

    /// The kernel's shares of the bandwidth equal the shares of the simulator's policies: for flows and applications
    /// exactly, for recent use with an error of at most 2^-26.
    #[test]
    fn parts_are_those_of_the_policies(
        flows in 0u16..=4_096, apps in 0u16..=4_096, app_flows in 0u16..=4_096, used in 0u64..1 << 33, others in 0u64..1 << 33,
    ) {
        let moved = used + others;
        let used_share = if moved == 0 { 1.0 } else { used as f64 / moved as f64 };
        let device = DeviceFlows { flows, apps, app_flows, used_share };
        let seen = DeviceView { flows: flows.into(), apps: apps.into(), app_flows: app_flows.into(), used, moved };
        for (kernel, tuning) in policies() {
            let [num, den] = kernel.part(&seen);
            prop_assert!(num >= 1 && num <= den && den <= 1 << 27, "{num} of {den}");
            let (part, exact) = (num as f64 / den as f64, tuning.split.share(&device));
            let is_use = den == 1 << 27;
            // 4096 applications of 4096 flows exceed the maximum denominator by one.
            let allowed = if is_use { (-26f64).exp2() } else { exact * 1e-7 };
            prop_assert!((part - exact).abs() <= allowed, "{:?}: {part} and not {exact}", tuning.split);
        }
    }

    /// After each packet, the kernel counts the flows in the registry, and in addition at most the flows that left the
    /// registry less than a slot ago.
    #[test]
    fn it_counts_what_the_registry_counts(
        packets in prop::collection::vec((0u64..40_000, 0u16..50), 1..400),
        pause in 0u64..2_000_000,
    ) {
        let mut kernel = FlowCounter::default();
        let mut lasts: BTreeMap<u16, LastSlot> = BTreeMap::new();
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

    /// Flows that all keep sending are counted exactly.
    #[test]
    fn steady_flows_are_counted_exactly(flows in 1u16..300, period in 1u64..100) {
        let mut kernel = FlowCounter::default();
        let mut registry = FlowRegistry::default();
        let mut lasts = vec![LastSlot::default(); usize::from(flows)];
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
