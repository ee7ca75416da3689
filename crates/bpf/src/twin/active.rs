//! C port of the kernel's count of a host's active flows and applications, and of their shares of the bandwidth.

use std::collections::BTreeMap;
use std::time::Duration;

use airpace_cc::biscay::split::Split;
use airpace_core::{Bytes, Time};

mod sys;

pub(super) use sys::split;

/// Maximum time beyond [`airpace_cc::registry::ACTIVE_FOR`] for which a flow counts as active: the length of a slot in
/// `active.h`.
pub const SLOT: Duration = Duration::from_micros(12_500);

/// `struct ap_host` of `intf.h`.
pub struct FlowCounter {
    words: Box<[u64]>,
}

/// A flow's state: the slot of its last packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LastSlot(u64);

impl Default for FlowCounter {
    fn default() -> FlowCounter {
        FlowCounter { words: sys::active() }
    }
}

impl FlowCounter {
    /// Records that a flow sends bytes.
    pub fn sends(&mut self, last: &mut LastSlot, now: Time) {
        last.0 = sys::sends(&mut self.words, last.0, now.as_nanos());
    }

    /// The number of active flows as of the last packet; `None` if this number has expired.
    pub fn flows(&self, now: Time) -> Option<u64> {
        active(&self.words, now)
    }
}

fn active(words: &[u64], now: Time) -> Option<u64> {
    let [flows, until] = sys::flows(words);
    (now.as_nanos() < until).then_some(flows)
}

/// `struct active_flow` of `active.h`: a flow's state if applications are counted.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AppFlow {
    last: u64,
    app: u64,
}

/// A host that counts applications. The names of applications are numbers greater than zero.
#[derive(Default)]
pub struct AppCounter {
    host: FlowCounter,
    apps: FlowCounter,
    /// `struct active_app` of each application, by name.
    each: BTreeMap<u64, Box<[u64]>>,
}

impl AppCounter {
    /// Records that a flow of the application `name` sends bytes.
    pub fn sends(&mut self, flow: &mut AppFlow, name: u64, now: Time) {
        let was_of = flow.app;
        let mut app = self.each.remove(&name).unwrap_or_else(sys::app);
        let before = self.each.get_mut(&was_of).map(|before| &mut before[..]);
        let (host, apps) = (&mut self.host.words, &mut self.apps.words);
        sys::apps_sends(host, apps, flow, name, &mut app, before, now.as_nanos());
        self.each.insert(name, app);
    }

    /// Three numbers: active flows, active applications, and active flows of the application `name`.
    pub fn seen(&self, name: u64, now: Time) -> [u64; 3] {
        // The first word of `struct active_app` is the application's last slot; a `struct ap_host` follows.
        let own = self.each.get(&name).and_then(|app| active(&app[1..], now));
        [self.host.flows(now), self.apps.flows(now), own].map(Option::unwrap_or_default)
    }
}

/// `struct ap_use` of `intf.h`: bytes moved within the last 250 to 500 ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecentBytes([u64; 2]);

impl RecentBytes {
    /// Records moved bytes.
    pub fn add(&mut self, now: Time, bytes: Bytes) {
        sys::add_use(&mut self.0, now.as_nanos(), bytes.0);
    }

    /// Bytes moved within the last 250 to 500 ms.
    pub fn sum(&self, now: Time) -> Bytes {
        Bytes(sys::used(&self.0, now.as_nanos()))
    }
}

/// `struct split_view` of `split.h`: the device's information about its flows, from the point of view of one flow.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceView {
    /// Number of active flows.
    pub flows: u64,
    /// Number of active applications.
    pub apps: u64,
    /// Number of active flows of the flow's own application.
    pub app_flows: u64,
    /// Number of bytes that the flow moved within the last 250 to 500 ms.
    pub used: u64,
    /// Number of bytes that all flows moved in the same time.
    pub moved: u64,
}

/// A policy's number in `intf.h`.
pub(super) fn number(split: Split) -> u32 {
    match split {
        Split::Equal => 0,
        Split::App => 1,
        Split::Proportional => 2,
    }
}
