//! A device's registry of its flows: which flows are active, to which application each flow belongs, and how many bytes
//! each flow moves.
//!
//! A device's flows share its radio, and only the device sees them all. The device has one [`FlowRegistry`] per
//! direction, reports every packet to it, and gives each flow's [`DeviceFlows`] to the flow's scheme.
//!
//! Source: BISCAY §4

use core::net::SocketAddr;
use std::time::Duration;

use airpace_core::{Bytes, Time};

/// Time after its last packet for which a flow counts as active.
///
/// Chosen: longer than the pauses of a flow that waits for a grant or an ACK, shorter than a pause that a user notices.
/// The paper counts open sockets with activity and does not specify how long a socket stays active.
pub const ACTIVE_FOR: Duration = Duration::from_millis(100);

/// Length of the periods in which a flow's bytes are counted. The use of a flow is the bytes of the current and the
/// previous period.
///
/// Chosen: some round trips, so that the bursts of a window average out.
const USE_SLOT: Duration = Duration::from_millis(250);

/// Maximum number of stored flows. A new flow replaces the flow that was idle longest.
///
/// Chosen: sixteen times the sockets of a busy phone.
const MAX_FLOWS: usize = 4096;

/// A transport protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// TCP.
    #[default]
    Tcp,
    /// UDP, and QUIC over UDP.
    Udp,
}

/// The identifier of a flow on a device: the 4-tuple and the protocol.
///
/// Source: BISCAY §4
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowKey {
    /// The protocol does not affect how a flow counts.
    ///
    /// Source: BISCAY §A.5.2
    pub protocol: Protocol,
    /// The device's address and port.
    pub local: SocketAddr,
    /// The address and port of the other endpoint.
    pub remote: SocketAddr,
}

/// A device's information about its flows, from the point of view of one flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeviceFlows {
    /// Active flows of the device, this one included; at least 1.
    pub flows: u16,
    /// Number of applications with active flows, this flow's application included; at least 1.
    pub apps: u16,
    /// Active flows of this flow's application, this one included; at least 1.
    pub app_flows: u16,
    /// This flow's share of the bytes that the device's flows moved recently, 0…1; 1 if no flow moved any bytes.
    pub used_share: f64,
}

impl DeviceFlows {
    /// A flow that is alone on its device.
    pub const ALONE: DeviceFlows = DeviceFlows { flows: 1, apps: 1, app_flows: 1, used_share: 1.0 };
}

impl Default for DeviceFlows {
    fn default() -> DeviceFlows {
        DeviceFlows::ALONE
    }
}

/// The flows of one device in one direction.
///
/// Source: BISCAY §3.2.4; BISCAY §A.5.2 (`getNumberActiveFlows`)
#[derive(Clone, Debug)]
pub struct FlowRegistry {
    active_for: Duration,
    /// The stored flows, sorted by application, then by key.
    flows: Vec<Entry>,
    /// The index of the flow that was observed last. Packets of one flow often arrive in sequence.
    recent: usize,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    app: u32,
    key: FlowKey,
    last_seen: Time,
    /// Number of the period whose bytes `bytes[1]` counts. `bytes[0]` counts the bytes of the previous period.
    slot: u64,
    bytes: [Bytes; 2],
}

/// Counts flows as active for [`ACTIVE_FOR`].
impl Default for FlowRegistry {
    fn default() -> FlowRegistry {
        FlowRegistry::new(ACTIVE_FOR)
    }
}

impl FlowRegistry {
    /// A registry that counts a flow as active until `active_for` after its last packet.
    pub fn new(active_for: Duration) -> FlowRegistry {
        FlowRegistry { active_for, flows: vec![], recent: 0 }
    }

    /// Records that the flow `key` of application `app` moved `bytes` at `now`. `now` never decreases.
    pub fn observe(&mut self, now: Time, key: &FlowKey, app: u32, bytes: Bytes) {
        let is_recent = |flow: &Entry| flow.app == app && flow.key == *key;
        if !self.flows.get(self.recent).is_some_and(is_recent) {
            self.recent = match self.flows.binary_search_by_key(&(app, *key), |flow| (flow.app, flow.key)) {
                Ok(index) => index,
                Err(_) => self.enter(now, key, app),
            };
        }
        let flow = &mut self.flows[self.recent];
        flow.bytes = flow.bytes_by(now);
        flow.bytes[1] += bytes;
        flow.slot = slot(now);
        flow.last_seen = now;
    }

    /// The device's flows for the flow `key`. A flow that never moved anything counts as an application of its own.
    pub fn view(&self, now: Time, key: &FlowKey) -> DeviceFlows {
        let own = self.flows.iter().position(|flow| flow.key == *key);
        if own.is_some() && self.flows.len() == 1 {
            return DeviceFlows::ALONE;
        }
        let own_app = own.map(|index| self.flows[index].app);
        let mut seen = DeviceFlows { flows: 0, apps: 0, app_flows: 0, used_share: 1.0 };
        let mut last_app = None;
        let mut moved = Bytes::ZERO;
        for (index, flow) in self.flows.iter().enumerate() {
            moved += flow.used_by(now);
            if own != Some(index) && now - flow.last_seen >= self.active_for {
                continue;
            }
            seen.flows = seen.flows.saturating_add(1);
            if last_app != Some(flow.app) {
                last_app = Some(flow.app);
                seen.apps = seen.apps.saturating_add(1);
            }
            if own_app == Some(flow.app) {
                seen.app_flows = seen.app_flows.saturating_add(1);
            }
        }
        if own.is_none() {
            seen.flows = seen.flows.saturating_add(1);
            seen.apps = seen.apps.saturating_add(1);
            seen.app_flows = 1;
        }
        if moved > Bytes::ZERO {
            let used = own.map_or(Bytes::ZERO, |index| self.flows[index].used_by(now));
            seen.used_share = used.0 as f64 / moved.0 as f64;
        }
        seen
    }

    /// Adds an entry for a flow that has none under this application. Returns its index.
    fn enter(&mut self, now: Time, key: &FlowKey, app: u32) -> usize {
        let active_for = self.active_for;
        // The same key under another application is another flow: that application has taken over the port.
        self.flows.retain(|flow| flow.key != *key && flow.counts(now, active_for));
        if self.flows.len() >= MAX_FLOWS {
            let oldest = (0..self.flows.len()).min_by_key(|&index| self.flows[index].last_seen);
            self.flows.remove(oldest.unwrap_or(0));
        }
        let index = self.flows.partition_point(|flow| (flow.app, flow.key) < (app, *key));
        let bytes = [Bytes::ZERO; 2];
        self.flows.insert(index, Entry { app, key: *key, last_seen: now, slot: slot(now), bytes });
        index
    }
}

impl Entry {
    /// Whether the flow still affects any count.
    fn counts(&self, now: Time, active_for: Duration) -> bool {
        now - self.last_seen < active_for || self.used_by(now) > Bytes::ZERO
    }

    /// Bytes of the previous period and bytes of the present period.
    fn bytes_by(&self, now: Time) -> [Bytes; 2] {
        match slot(now).saturating_sub(self.slot) {
            0 => self.bytes,
            1 => [self.bytes[1], Bytes::ZERO],
            _ => [Bytes::ZERO; 2],
        }
    }

    fn used_by(&self, now: Time) -> Bytes {
        let [before, present] = self.bytes_by(now);
        before + present
    }
}

fn slot(now: Time) -> u64 {
    now.as_nanos() / USE_SLOT.as_nanos() as u64
}

#[cfg(test)]
mod tests {
    use core::net::{IpAddr, Ipv4Addr};

    use super::*;

    fn key(protocol: Protocol, port: u16) -> FlowKey {
        FlowKey {
            protocol,
            local: SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), port),
            remote: SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 443),
        }
    }

    #[test]
    fn flows_count_by_their_tuple_whatever_their_protocol_while_they_move_bytes() {
        let (tcp, udp) = (key(Protocol::Tcp, 5000), key(Protocol::Udp, 5000));
        let mut registry = FlowRegistry::default();
        assert_eq!(
            registry.view(Time::ZERO, &tcp),
            DeviceFlows::ALONE,
            "a flow counts itself from the start"
        );
        registry.observe(Time::from_millis(1), &tcp, 1, Bytes(1500));
        registry.observe(Time::from_millis(50), &udp, 2, Bytes(500));
        let seen = registry.view(Time::from_millis(100), &tcp);
        assert_eq!((seen.flows, seen.apps, seen.app_flows), (2, 2, 1));
        assert_eq!(seen.used_share, 0.75);
        assert_eq!(registry.view(Time::from_millis(149), &tcp).flows, 2);
        assert_eq!(
            registry.view(Time::from_millis(150), &tcp).flows,
            1,
            "100 ms after its last packet, UDP is idle"
        );
    }

    #[test]
    fn an_application_counts_once_however_many_flows_it_opens() {
        let mut registry = FlowRegistry::default();
        let now = Time::from_millis(5);
        for port in 0..5 {
            registry.observe(now, &key(Protocol::Tcp, port), 7, Bytes(100));
        }
        registry.observe(now, &key(Protocol::Tcp, 9), 3, Bytes(500));
        let greedy = registry.view(now, &key(Protocol::Tcp, 0));
        assert_eq!((greedy.flows, greedy.apps, greedy.app_flows, greedy.used_share), (6, 2, 5, 0.1));
        let modest = registry.view(now, &key(Protocol::Tcp, 9));
        assert_eq!((modest.flows, modest.apps, modest.app_flows, modest.used_share), (6, 2, 1, 0.5));
        let newcomer = registry.view(now, &key(Protocol::Udp, 77));
        assert_eq!((newcomer.flows, newcomer.apps, newcomer.app_flows, newcomer.used_share), (7, 3, 1, 0.0));
    }

    #[test]
    fn a_port_that_changes_hands_is_one_flow() {
        let mut registry = FlowRegistry::default();
        let now = Time::from_millis(5);
        registry.observe(now, &key(Protocol::Tcp, 1), 7, Bytes(100));
        registry.observe(now, &key(Protocol::Tcp, 1), 8, Bytes(100));
        assert_eq!(registry.view(now, &key(Protocol::Tcp, 1)), DeviceFlows::ALONE);
    }

    #[test]
    fn what_was_used_long_ago_is_forgotten_and_memory_is_bounded() {
        let mut registry = FlowRegistry::default();
        registry.observe(Time::from_millis(0), &key(Protocol::Tcp, 1), 1, Bytes(1_000_000));
        registry.observe(Time::from_millis(600), &key(Protocol::Tcp, 2), 1, Bytes(1));
        assert_eq!(registry.view(Time::from_millis(600), &key(Protocol::Tcp, 2)).used_share, 1.0);
        assert_eq!(registry.flows.len(), 1, "and so is the flow");
        for port in 0..=u16::MAX {
            registry.observe(Time::from_millis(601), &key(Protocol::Tcp, port), 1, Bytes(1));
        }
        assert_eq!(registry.flows.len(), MAX_FLOWS);
    }
}
