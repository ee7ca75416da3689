//! Radio reports from complete subframes, combined over all carriers.

use airpace_core::Time;
use airpace_phy::decoder::Reading;
use airpace_phy::follow::OwnSide;
use airpace_phy::found::Found;
use airpace_radio::fusion::{Fused, Fusion};
use airpace_radio::{CarrierId, Rnti};

/// Creates a radio report for every complete subframe of every carrier, and combines the reports of the same time.
#[derive(Clone, Debug)]
pub struct Reports {
    fusion: Fusion,
    /// Own-radio state of the followed user, by carrier.
    own: Vec<Option<OwnSide>>,
}

impl Reports {
    /// Creates the reports of the carriers 0 to `carriers` − 1, at most 256. `own` is the RNTI of the user whose
    /// own-radio state is included. Recordings wait for each other without a limit; live cells wait for
    /// [`Fusion::LIVE_PATIENCE`].
    pub fn new(carriers: usize, own: Option<Rnti>, are_live: bool) -> Reports {
        let patience = if are_live { Fusion::LIVE_PATIENCE } else { Fusion::WITHOUT_END };
        Reports {
            fusion: Fusion::new((0..=u8::MAX).take(carriers).map(CarrierId), patience),
            own: vec![own.map(OwnSide::new); carriers],
        }
    }

    /// Adds `subframes` to the numbers of a carrier's subframes, starting at subframe `from`, according to
    /// [`Shift`](airpace_radio::align::Shift).
    pub fn shift(&mut self, carrier: CarrierId, from: u64, subframes: i64) {
        self.fusion.align(carrier, from, subframes);
    }

    /// Notes an accepted message, which may precede its subframe.
    pub fn hear(&mut self, carrier: CarrierId, found: &Found) {
        if let Some(own) = self.own_side(carrier) {
            own.hear(found);
        }
    }

    /// Adds a complete subframe of a carrier, in the carrier's order. The subframe started `at_ms` milliseconds after
    /// the carrier's first sample. `name` returns the RNTI that represents a user in the reports.
    pub fn push(
        &mut self,
        carrier: CarrierId,
        reading: &Reading,
        at_ms: f64,
        name: impl FnMut(Rnti) -> Rnti,
    ) {
        let time = Time::from_secs_f64(at_ms.max(0.0) / 1e3);
        let own = self.own_side(carrier).and_then(|own| own.radio(reading.index, reading.snr_db));
        let mut report = reading.report(carrier, time);
        report.own = own;
        report.rename(name);
        self.fusion.push(report);
    }

    /// Notes that a carrier is stalled; the reports of other carriers do not wait for it until it has caught up.
    pub fn stall(&mut self, carrier: CarrierId) {
        self.fusion.stall(carrier);
    }

    /// Notes that a carrier has ended, except for subframes that wait for messages.
    pub fn leave(&mut self, carrier: CarrierId) {
        self.fusion.leave(carrier);
    }

    /// Notes that a carrier has ended.
    pub fn end(&mut self, carrier: CarrierId) {
        self.fusion.end(carrier);
    }

    /// Returns the next combined reports; `None` if reports of a carrier are still missing.
    pub fn pop(&mut self) -> Option<Fused> {
        self.fusion.pop()
    }

    /// Returns the next combined reports after the end of the input, complete or not.
    pub fn flush(&mut self) -> Option<Fused> {
        self.fusion.flush()
    }

    /// Returns the number of a carrier's subframes that arrived too late, and are not contained in any report.
    pub fn too_late(&self, carrier: CarrierId) -> u64 {
        self.fusion.too_late(carrier)
    }

    fn own_side(&mut self, carrier: CarrierId) -> Option<&mut OwnSide> {
        self.own.get_mut(usize::from(carrier.0))?.as_mut()
    }
}
