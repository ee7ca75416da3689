//! Whole subframes to radio reports, brought together over all carriers.

use airpace_core::Time;
use airpace_phy::decoder::Reading;
use airpace_phy::follow::OwnSide;
use airpace_phy::found::Found;
use airpace_radio::fusion::{Fused, Fusion};
use airpace_radio::{CarrierId, Rnti};

/// Makes a radio report of every whole subframe of every carrier, and brings those of one time together.
#[derive(Clone, Debug)]
pub struct Reports {
    fusion: Fusion,
    /// The side of who is followed, by carrier.
    own: Vec<Option<OwnSide>>,
}

impl Reports {
    /// Reports of the carriers 0 to `carriers` − 1, at most 256. `own` is who is followed: its side is in the reports.
    /// Recordings wait for each other as long as it takes; live cells wait for [`Fusion::LIVE_PATIENCE`].
    pub fn new(carriers: usize, own: Option<Rnti>, are_live: bool) -> Reports {
        let patience = if are_live { Fusion::LIVE_PATIENCE } else { Fusion::WITHOUT_END };
        Reports {
            fusion: Fusion::new((0..=u8::MAX).take(carriers).map(CarrierId), patience),
            own: vec![own.map(OwnSide::new); carriers],
        }
    }

    /// Adds `subframes` to the numbers of a carrier, from its subframe `from` on, as
    /// [`Shift`](airpace_radio::align::Shift) says.
    pub fn shift(&mut self, carrier: CarrierId, from: u64, subframes: i64) {
        self.fusion.align(carrier, from, subframes);
    }

    /// A message is believed, whose subframe may come later.
    pub fn hear(&mut self, carrier: CarrierId, found: &Found) {
        if let Some(own) = self.own_side(carrier) {
            own.hear(found);
        }
    }

    /// Takes a whole subframe of a carrier, in the carrier's order. It began `at_ms` milliseconds after the carrier's first
    /// sample. `name` says what RNTI stands for a user in the reports.
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

    /// A carrier is silent, and not waited for until it has caught up.
    pub fn stall(&mut self, carrier: CarrierId) {
        self.fusion.stall(carrier);
    }

    /// A carrier is over, but for the subframes that waited for messages.
    pub fn leave(&mut self, carrier: CarrierId) {
        self.fusion.leave(carrier);
    }

    /// A carrier is over.
    pub fn end(&mut self, carrier: CarrierId) {
        self.fusion.end(carrier);
    }

    /// What comes out next; `None` if a carrier has to report first.
    pub fn pop(&mut self) -> Option<Fused> {
        self.fusion.pop()
    }

    /// Nothing more will come. Returns what comes out next, complete or not.
    pub fn flush(&mut self) -> Option<Fused> {
        self.fusion.flush()
    }

    /// Subframes of a carrier that came after theirs had come out, and are in no report.
    pub fn too_late(&self, carrier: CarrierId) -> u64 {
        self.fusion.too_late(carrier)
    }

    fn own_side(&mut self, carrier: CarrierId) -> Option<&mut OwnSide> {
        self.own.get_mut(usize::from(carrier.0))?.as_mut()
    }
}
