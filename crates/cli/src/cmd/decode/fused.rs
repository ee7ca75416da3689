//! Radio reports of several cells, brought together by subframe, in a file that controllers can read.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use airpace_core::radio::{BitLayer, CarrierId, Direction, OwnRadio};
use airpace_core::{RadioReport, Rnti, Time};
use airpace_phy::decoder::Reading;
use airpace_phy::fuse::{Fused, Fusion};
use anyhow::Context;
use serde_json::{Value, json};

use super::message::{direction, ranges};

/// Subframes that one cell may be behind another; a cell is not waited for longer.
const PATIENCE: u64 = 1000;

/// Frame numbers of two recordings that began at the same time differ by no more than this many subframes if both
/// cells count frames alike.
///
/// Chosen: people do not start two receivers within a tenth of a second by hand, programs do.
const ALIKE: i64 = 100;

/// Subframes after which frame numbers begin again.
const WRAP: i64 = 10_240;

/// A file of reports.
pub struct Reports {
    path: PathBuf,
    file: BufWriter<File>,
    fusion: Fusion,
    /// A subframe of the first carrier that was heard, and when it was.
    reference: Option<(u64, f64)>,
    is_aligned: Vec<bool>,
    has_ended: Vec<bool>,
    /// Bits that a PRB pair last carried for who is followed, per carrier.
    bits_per_prb: Vec<Option<f64>>,
    own: Option<Rnti>,
}

impl Reports {
    /// Of so many cells; `own` is who is followed.
    ///
    /// # Errors
    /// If the file cannot be made.
    pub fn create(path: &Path, cells: usize, own: Option<Rnti>) -> anyhow::Result<Reports> {
        let file = File::create(path).with_context(|| {
            format!("cannot write `{}`; give --reports a file you may write", path.display())
        })?;
        Ok(Reports {
            path: path.to_owned(),
            file: BufWriter::new(file),
            fusion: Fusion::new((0..cells).map(|carrier| CarrierId(carrier as u8)), PATIENCE),
            reference: None,
            is_aligned: vec![false; cells],
            has_ended: vec![false; cells],
            bits_per_prb: vec![None; cells],
            own,
        })
    }

    /// Tells when a cell's subframe was: the first tells how its frames are counted.
    pub fn align(&mut self, carrier: usize, index: u64, at_ms: f64) {
        if std::mem::replace(&mut self.is_aligned[carrier], true) {
            return;
        }
        let (first, first_ms) = *self.reference.get_or_insert((index, at_ms));
        let offset = first as i64 + (at_ms - first_ms).round() as i64 - index as i64;
        let within = (offset + WRAP / 2).rem_euclid(WRAP) - WRAP / 2;
        if within.abs() <= ALIKE {
            self.fusion.align(CarrierId(carrier as u8), offset - within);
        } else {
            eprintln!(
                "airpace: recording {} counts frames otherwise than the first ({within} subframes): they are brought \
                 together by their samples' time, as if both began at once",
                carrier + 1
            );
            self.fusion.align(CarrierId(carrier as u8), offset);
        }
    }

    /// Takes a whole subframe that began `at_ms` after the first sample; `name` says how users are called.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn push(
        &mut self,
        carrier: usize,
        reading: &Reading,
        at_ms: f64,
        name: &mut dyn FnMut(Rnti) -> Rnti,
    ) -> anyhow::Result<()> {
        let time = Time::from_secs_f64(at_ms.max(0.0) / 1e3);
        let mut report = reading.report(CarrierId(carrier as u8), time);
        report.layer = BitLayer::Physical;
        if let Some(rnti) = self.own {
            report.own = self.own_radio(carrier, rnti, reading, &report);
        }
        for dci in &mut report.dcis {
            dci.rnti = name(dci.rnti);
        }
        if let Some(own) = &mut report.own {
            own.rnti = name(own.rnti);
        }
        self.fusion.push(report);
        while let Some(fused) = self.fusion.pop() {
            self.write(fused)?;
        }
        Ok(())
    }

    /// The side of who is followed, as far as a bystander can know it: from its first grant on.
    fn own_radio(
        &mut self,
        carrier: usize,
        rnti: Rnti,
        reading: &Reading,
        report: &RadioReport,
    ) -> Option<OwnRadio> {
        let known = &mut self.bits_per_prb[carrier];
        let grants =
            report.dcis.iter().filter(|dci| dci.rnti == rnti && dci.direction == Direction::Downlink);
        for dci in grants.filter(|dci| dci.bits().0 > 0 && !dci.prbs.is_empty()) {
            *known = Some(dci.bits().0 as f64 / f64::from(dci.prbs.len()));
        }
        let bits_per_prb = (*known)?;
        Some(OwnRadio {
            rnti,
            active: true,
            sinr_db: f64::from(reading.snr_db),
            bits_per_prb,
            decoded: None,
            uplink_queue: None,
        })
    }

    /// A recording is over: it is no news that it falls behind.
    pub fn end(&mut self, carrier: usize) {
        self.has_ended[carrier] = true;
    }

    /// Writes what is left.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finish(&mut self) -> anyhow::Result<()> {
        while let Some(fused) = self.fusion.flush() {
            self.write(fused)?;
        }
        self.file.flush().with_context(|| format!("cannot write `{}`", self.path.display()))
    }

    fn write(&mut self, fused: Fused) -> anyhow::Result<()> {
        match fused {
            Fused::Subframe { index, reports } => {
                let object = json!({
                    "subframe_index": index,
                    "reports": reports.iter().map(json_of).collect::<Vec<_>>(),
                });
                writeln!(self.file, "{object}")
                    .with_context(|| format!("cannot write `{}`", self.path.display()))?;
            }
            Fused::Stalled(carrier) if self.has_ended[usize::from(carrier.0)] => {}
            Fused::Stalled(carrier) => {
                eprintln!("airpace: recording {} is behind and not waited for any more", carrier.0 + 1);
            }
            Fused::Back(carrier) => eprintln!("airpace: recording {} has caught up", carrier.0 + 1),
        }
        Ok(())
    }
}

fn json_of(report: &RadioReport) -> Value {
    let dcis = report.dcis.iter().map(|dci| {
        json!({
            "rnti": dci.rnti.0,
            "dir": direction(Some(dci.direction)),
            "format": format!("{:?}", dci.format).trim_start_matches('F'),
            "prb": ranges(dci.prbs),
            "mcs": dci.mcs,
            "tbs": dci.tbs.map(|bits| bits.0),
            "rv": dci.rv,
            "ndi": dci.ndi.map(u8::from),
            "harq": dci.harq,
            "layers": dci.layers,
            "retransmission": dci.retransmission,
        })
    });
    let own = report
        .own
        .map(|own| json!({ "rnti": own.rnti.0, "bits_per_prb": own.bits_per_prb, "sinr_db": own.sinr_db }));
    json!({
        "carrier": report.carrier.0,
        "time_ms": report.time.as_millis_f64(),
        "carrier_prbs": report.carrier_prbs,
        "idle_prbs": report.idle_prbs(),
        "cfi": report.cfi,
        "dcis": dcis.collect::<Vec<_>>(),
        "own": own,
    })
}
