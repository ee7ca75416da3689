//! Locates the bottleneck, in the cell or in the Internet. The receiver decides at every packet.
//!
//! ```text
//!            Npkt packets in a row above Dth (and the queue cannot be the cell's)
//! Wireless ────────────────────────────────────────────────────────────────────▶ Internet
//!          ◀────────────────────────────────────────────────────────────────────
//!            Npkt packets in a row below Dth, and the sender's rate has reached Cf
//! ```
//!
//! Source: PBE-CC §4.2.2; PBE-CC §4.2.3

use std::time::Duration;

use airpace_core::{Bytes, Rate, Time};

use super::carriers::CellState;

/// Number of subframes, at capacity Ct, whose packets must all show a queue, or all show no queue, before the state
/// changes.
///
/// Source: PBE-CC §4.2.2 Eq. 6
const AGREEING_SUBFRAMES: f64 = 6.0;

/// Minimum ratio of the sender's rate to Cf at which the rate counts as having reached Cf.
///
/// Chosen: slightly below one, because the rate is compared with a Cf that is one round trip newer.
const REACHED: f64 = 0.99;

/// Rules for locating the bottleneck.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    /// Whether a delay that the cell may cause is ignored.
    ///
    /// Differs: a new user gets nearly the whole cell for some tens of milliseconds. This builds a queue in the cell,
    /// and the paper's rule attributes that queue to the Internet. But a cell that has a queue for this device has no
    /// idle PRBs.
    pub cell_test: bool,
    /// Share of idle PRBs. If every carrier has a higher share, the cell has no queue for this device.
    pub idle_share: f64,
    /// Minimum period over which consecutive late packets must arrive to show a queue in the Internet. Packets that
    /// waited in the cell leave the reordering buffer up to three retransmissions after the cell's queue has drained.
    pub least_span: Duration,
    /// Period over which consecutive packets are sufficient although they are fewer than Npkt, because at a low rate
    /// Npkt packets take too long; `None`: Npkt packets are always required.
    pub span: Option<Duration>,
    /// Whether the return to the wireless state depends on the rate as well as on the delay.
    pub return_needs_rate: bool,
}

/// The values of one packet that the decision uses.
#[derive(Clone, Copy, Debug)]
pub struct Evidence {
    /// Arrival time.
    pub now: Time,
    /// Whether the packet's delay exceeds Dth.
    pub late: bool,
    /// Ct of this flow.
    pub capacity: Rate,
    /// Cf of this flow.
    pub fair_share: Rate,
    /// The pacing rate of the sender.
    pub pacing_rate: Option<Rate>,
}

/// The state of the decision.
#[derive(Clone, Copy, Debug)]
pub struct Bottleneck {
    rules: Rules,
    mss: Bytes,
    internet: bool,
    late: Run,
    timely: Run,
    clear: bool,
}

/// Consecutive packets that are all late, or all not late.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    packets: u32,
    since: Time,
}

impl Bottleneck {
    /// The state of a new connection: the wireless state.
    pub fn new(rules: Rules, mss: Bytes) -> Bottleneck {
        Bottleneck { rules, mss, internet: false, late: Run::default(), timely: Run::default(), clear: false }
    }

    /// Processes one packet. `cell` is the state of the cell.
    pub fn on_packet(&mut self, packet: &Evidence, cell: &CellState) {
        let needed = self.agreeing_packets(packet.capacity);
        if packet.late {
            self.timely = Run::default();
            self.clear = false;
            if !self.cannot_be_in_cell(cell) {
                self.late = Run::default();
                return;
            }
            self.late.extend(packet.now);
            let agreed = self.late.agrees(packet.now, needed, self.rules.span);
            if !self.internet && agreed && packet.now - self.late.since >= self.rules.least_span {
                self.switch(true);
            }
        } else {
            self.late = Run::default();
            self.timely.extend(packet.now);
            self.clear = self.timely.agrees(packet.now, needed, self.rules.span);
            let reached = packet.pacing_rate.is_some_and(|rate| rate >= packet.fair_share.scaled(REACHED));
            if self.internet && self.clear && (reached || !self.rules.return_needs_rate) {
                self.switch(false);
            }
        }
    }

    /// Processes a linear start that has stalled: the bottleneck is in the Internet, unless the cell can have caused
    /// the stall.
    ///
    /// Source: PBE-CC §4.1
    pub fn on_stalled_start(&mut self, cell: &CellState) {
        if !self.internet && self.cannot_be_in_cell(cell) {
            self.switch(true);
        }
    }

    /// Whether the bottleneck is in the Internet.
    pub fn is_internet(&self) -> bool {
        self.internet
    }

    /// Whether the last Npkt packets met no queue.
    pub fn is_clear(&self) -> bool {
        self.clear
    }

    /// Npkt: the number of packets in six subframes at capacity Ct.
    ///
    /// ```text
    /// Npkt = 6·Ct/MSS
    /// ```
    ///
    /// Source: PBE-CC §4.2.2 Eq. 6
    fn agreeing_packets(&self, capacity: Rate) -> u32 {
        let subframe_bits = capacity.as_bps() as f64 * 1e-3;
        libm::ceil(AGREEING_SUBFRAMES * subframe_bits / self.mss.bits().0 as f64).max(1.0) as u32
    }

    /// Whether the queue cannot be in the cell. A cell that has a queue for this device gives the device its share in
    /// the long run, and has no idle PRBs on any of its carriers.
    pub(super) fn cannot_be_in_cell(&self, cell: &CellState) -> bool {
        !self.rules.cell_test || cell.idle_share > self.rules.idle_share || cell.is_passed_over()
    }

    fn switch(&mut self, internet: bool) {
        self.internet = internet;
        self.late = Run::default();
        self.timely = Run::default();
        self.clear = false;
    }
}

impl Run {
    fn extend(&mut self, now: Time) {
        if self.packets == 0 {
            self.since = now;
        }
        self.packets = self.packets.saturating_add(1);
    }

    fn agrees(&self, now: Time, needed: u32, span: Option<Duration>) -> bool {
        self.packets >= needed || span.is_some_and(|span| self.packets > 1 && now - self.since >= span)
    }
}
