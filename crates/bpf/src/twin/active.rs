//! The count of a host's active flows, as the kernel counts them.

use std::time::Duration;

use airpace_core::Time;

use super::sys;

/// How much longer than [`airpace_cc::registry::ACTIVE_FOR`] a flow may count as active: a slot of `active.h`.
pub const SLOT: Duration = Duration::from_micros(12_500);

/// `struct ap_host` of `intf.h`.
pub struct Active {
    words: Box<[u64]>,
}

/// What a flow keeps: the slot of its last packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Last(u64);

impl Default for Active {
    fn default() -> Active {
        Active { words: sys::active() }
    }
}

impl Active {
    /// A flow sends bytes.
    pub fn sends(&mut self, last: &mut Last, now: Time) {
        last.0 = sys::active_sends(&mut self.words, last.0, now.as_nanos());
    }

    /// The active flows as of the last packet; `None` if that was so long ago that none is active.
    pub fn flows(&self, now: Time) -> Option<u64> {
        let [flows, until] = sys::active_flows(&self.words);
        (now.as_nanos() < until).then_some(flows)
    }
}
