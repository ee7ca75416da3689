//! Decoding stages: counters per stage, the last stage reached, and a hint about the cause of a failure.

use num_complex::Complex32;

use crate::{Bandwidth, Cell, Ports};

/// Counters of each decoding stage, in the order of processing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ladder {
    /// Sample rate (Hz); 0 if unknown.
    pub rate_hz: u64,
    /// Number of processed samples.
    pub samples: u64,
    /// Number of samples reported as lost.
    pub lost_samples: u64,
    /// Number of inspected samples whose value is exactly zero.
    pub silent: u64,
    /// Number of inspected samples at full scale.
    pub clipped: u64,
    /// Number of inspected samples with both parts within half of full scale.
    pub inner: u64,
    /// Sums of the squared in-phase and quadrature parts of the inspected samples.
    pub power: [f64; 2],
    /// Number of samples inspected for silence, clipping and signs of another sample format.
    pub inspected: u64,
    /// Number of searches for cells, one per block of samples.
    pub searches: u64,
    /// Number of searches that detected a PSS.
    pub primaries: u64,
    /// Number of searches in which an SSS identified a cell.
    pub secondaries: u64,
    /// Number of searches that found a TDD cell.
    pub tdd: u64,
    /// Carrier frequency offset of the last identified cell (Hz).
    pub cfo_hz: f64,
    /// PCI of the requested cell, if the user requested only one cell.
    pub wanted: Option<u16>,
    /// Other cells with a decoded master information block.
    pub others: [Option<u16>; 4],
    /// Number of searches that decoded a master information block.
    pub broadcasts: u64,
    /// A cell with more bandwidth than the sample rate allows.
    pub too_wide: Option<Cell>,
    /// Number of locks on a cell.
    pub locks: u64,
    /// Number of losses of a cell.
    pub losses: u64,
    /// Number of subframes in which the locked cell was received.
    pub subframes: u64,
    /// Number of subframes in which the cell was not received.
    pub faint: u64,
    /// Number of subframes with lost samples.
    pub gaps: u64,
    /// Number of subframes with a certain CFI.
    pub sure_cfis: u64,
    /// Number of candidate messages.
    pub candidates: u64,
    /// Number of accepted messages.
    pub messages: u64,
    /// Number of different RNTIs in accepted messages.
    pub rntis: u64,
}

/// A decoding stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rung {
    /// There are non-zero samples.
    Samples,
    /// A primary synchronisation signal (PSS) was detected.
    Primary,
    /// A secondary synchronisation signal (SSS) identified a cell.
    Secondary,
    /// A master information block (MIB) was decoded.
    Broadcast,
    /// The samples cover the cell's bandwidth.
    Bandwidth,
    /// The CFI of subframes was decoded.
    Cfi,
    /// There are candidate messages.
    Candidates,
    /// Some messages were accepted.
    Rntis,
}

impl Rung {
    /// All stages, in the order of processing.
    pub const ALL: [Rung; 8] = [
        Rung::Samples,
        Rung::Primary,
        Rung::Secondary,
        Rung::Broadcast,
        Rung::Bandwidth,
        Rung::Cfi,
        Rung::Candidates,
        Rung::Rntis,
    ];

    /// Name of the stage in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Rung::Samples => "samples",
            Rung::Primary => "PSS",
            Rung::Secondary => "SSS",
            Rung::Broadcast => "MIB",
            Rung::Bandwidth => "bandwidth",
            Rung::Cfi => "CFI",
            Rung::Candidates => "candidates",
            Rung::Rntis => "RNTIs",
        }
    }
}

/// Minimum duration of samples that contains one complete transmission of the PBCH (ms). The PBCH is sent once per
/// frame.
///
/// Source: TS 36.211 §6.6.4
const MIN_MS: f64 = 10.0;

/// Threshold of full scale. Samples range from −1 to 1; eight-bit samples reach 127/128.
const FULL_SCALE: f32 = 0.99;

/// Threshold for the share of samples at full scale: above it, the receiver is overdriven.
///
/// Chosen: a tenth of the samples is far more than the peaks of OFDM explain.
const OVERDRIVEN: f64 = 0.1;

/// Minimum share of samples within half of full scale, for any signal: even if a receiver clips a third of its samples,
/// half of them are within half of full scale.
const MIN_INNER_SHARE: f64 = 0.05;

/// Threshold of the power difference between in-phase and quadrature parts (dB). Above it, one part probably consists
/// of the high bytes of wider numbers, and the other part consists of their low bytes.
///
/// Chosen: the I/Q imbalance of receivers is below 1 dB; a signal at a third of full scale has a difference of 5 dB.
const IMBALANCE_DB: f64 = 4.0;

impl Ladder {
    /// Moves a subframe from the received to the not received subframes, because nothing confirms that it was received.
    pub fn doubt(&mut self) {
        self.subframes = self.subframes.saturating_sub(1);
        self.faint += 1;
    }

    /// Removes a subframe that was decoded before: after a cell is found again, its first subframes may be decoded
    /// twice.
    pub fn repeat(&mut self) {
        self.subframes = self.subframes.saturating_sub(1);
    }

    /// Inspects one sample; not all samples are inspected.
    pub fn inspect(&mut self, sample: Complex32) {
        let most = sample.re.abs().max(sample.im.abs());
        self.inspected += 1;
        self.silent += u64::from(sample == Complex32::default());
        self.clipped += u64::from(most >= FULL_SCALE);
        self.inner += u64::from(most < 0.5);
        for (sum, part) in self.power.iter_mut().zip([sample.re, sample.im]) {
            *sum += f64::from(part * part);
        }
    }

    /// Records a cell that was found but not requested.
    pub fn hear_other(&mut self, pci: u16) {
        if let Some(place) = self.others.iter_mut().find(|place| place.is_none()) {
            *place = Some(pci);
        }
    }

    /// Counter of a stage.
    pub fn count(&self, rung: Rung) -> u64 {
        match rung {
            Rung::Samples if self.inspected > 0 && self.silent == self.inspected => 0,
            Rung::Samples => self.samples,
            Rung::Primary => self.primaries,
            Rung::Secondary => self.secondaries,
            Rung::Broadcast => self.broadcasts,
            Rung::Bandwidth => self.locks,
            Rung::Cfi => self.sure_cfis,
            Rung::Candidates => self.candidates,
            Rung::Rntis => self.rntis,
        }
    }

    /// The first stage that was not reached, with a hint about the cause; `None` if the last stage was reached.
    pub fn broken(&self) -> Option<(Rung, String)> {
        // A weak cell may be decoded even if its PSS was not detected separately.
        let rungs = Rung::ALL.into_iter().filter(|rung| self.subframes == 0 || *rung > Rung::Cfi);
        let rung = rungs.into_iter().find(|&rung| self.count(rung) == 0)?;
        Some((rung, self.hint(rung)))
    }

    fn hint(&self, rung: Rung) -> String {
        let signs = if rung == Rung::Samples { None } else { self.signs_of_another_format() };
        match (rung, signs) {
            (Rung::Samples, _) if self.samples == 0 => "there are no samples: is the file empty?".to_owned(),
            (Rung::Samples, _) => "all samples are zero: check the sample format and the receiver".to_owned(),
            (Rung::Primary | Rung::Secondary | Rung::Broadcast, _)
                if self.others[0].is_none() && self.span_ms() < MIN_MS =>
            {
                format!(
                    "{:.1} ms of samples are too short: a cell sends the signals that a decoder needs every \
                     {MIN_MS:.0} ms; record at least 20 ms (of LTE: NR is not decoded)",
                    self.span_ms()
                )
            }
            (Rung::Primary, Some(signs)) => format!("no synchronisation signal was detected, and {signs}"),
            (Rung::Primary, None) if self.clipped_share() > OVERDRIVEN => format!(
                "no synchronisation signal was detected, and {:.0} % of the samples are clipped: lower the gain",
                100.0 * self.clipped_share()
            ),
            (Rung::Primary, None) => "no synchronisation signal of LTE was detected: check the centre \
                                      frequency, the sample format and rate, and the antenna; a receiver \
                                      with a large frequency error needs a larger carrier offset; NR is not \
                                      decoded"
                .to_owned(),
            (Rung::Secondary | Rung::Broadcast, _) if self.others[0].is_some() => self.hint_of_others(),
            (Rung::Secondary, _) => {
                "a primary synchronisation signal was detected, but no secondary one that identifies a cell: \
                 the signal is weak, several cells interfere, or the cell is NR, which is not decoded; more \
                 gain, a better place or a longer recording may help"
                    .to_owned()
            }
            (Rung::Broadcast | Rung::Bandwidth, _) if self.is_tdd() => {
                "the cell shares one carrier between both directions (TDD), which is recognised but not decoded"
                    .to_owned()
            }
            (Rung::Broadcast, _) => format!(
                "a cell was identified ({:+.0} Hz off), but its master information block cannot be decoded: \
                 record at least ten milliseconds; the signal may be weak, or I and Q exchanged",
                self.cfo_hz
            ),
            (Rung::Bandwidth, _) => match self.too_wide {
                Some(cell) => format!(
                    "cell {} has {} PRBs, sent from {}: record at {:.2} Msps or more",
                    cell.pci,
                    cell.bandwidth.prbs(),
                    if cell.ports == Ports::One { "one port".to_owned() } else { format!("{} ports", cell.ports.count()) },
                    least_rate_hz(cell.bandwidth) as f64 / 1e6
                ),
                None => "a master information block was decoded, but no subframes around it: it was decoded \
                         by chance, or the samples have another rate or format than configured"
                    .to_owned(),
            },
            (Rung::Cfi, None) => "the receiver is locked to the cell, but cannot decode its control region: \
                                  there is too much noise, or another cell is as strong"
                .to_owned(),
            (Rung::Cfi, Some(signs)) => {
                format!("the receiver is locked to the cell, but cannot decode its control region: {signs}")
            }
            (Rung::Candidates, None) => {
                "control regions are decoded, but contain no message: the cell is idle, or there is too much noise"
                    .to_owned()
            }
            (Rung::Candidates, Some(signs)) => {
                format!("control regions are decoded, but contain no message: {signs}")
            }
            (Rung::Rntis, _) => {
                "candidate messages were found, but none was accepted yet: a longer recording gives more evidence"
                    .to_owned()
            }
        }
    }

    /// Signs that the samples have another format than the configured one.
    fn signs_of_another_format(&self) -> Option<String> {
        if self.inspected == 0 {
            return None;
        }
        if (self.inner as f64) < MIN_INNER_SHARE * self.inspected as f64 {
            return Some(
                "almost no sample is in the middle of the range, as if unsigned bytes were read as signed \
                 ones or signed as unsigned: try the other of ci8 and cu8"
                    .to_owned(),
            );
        }
        let [in_phase, quadrature] = self.power.map(|power| 10.0 * libm::log10(power.max(f64::MIN_POSITIVE)));
        let apart_db = (in_phase - quadrature).abs();
        (apart_db > IMBALANCE_DB).then(|| {
            // If one part is zero, the ratio is infinite.
            let apart = if apart_db < 100.0 { format!("by {apart_db:.0} dB") } else { "beyond measure".to_owned() };
            format!(
                "in-phase and quadrature differ {apart}, as if longer numbers were read as bytes: try ci16_le or \
                 cf32_le"
            )
        })
    }

    /// Duration of the samples (ms); infinite if the sample rate is unknown.
    fn span_ms(&self) -> f64 {
        if self.rate_hz == 0 { f64::INFINITY } else { 1e3 * self.samples as f64 / self.rate_hz as f64 }
    }

    fn clipped_share(&self) -> f64 {
        self.clipped as f64 / self.inspected.max(1) as f64
    }

    /// Whether the cell is a TDD cell. In one or two searches, the master information block of a TDD cell may be
    /// decoded by chance.
    fn is_tdd(&self) -> bool {
        self.tdd > 0 && 2 * self.tdd >= self.searches
    }

    /// Hint for the case that cells were found, but not the requested one.
    fn hint_of_others(&self) -> String {
        let others: Vec<String> = self.others.iter().flatten().map(u16::to_string).collect();
        let wanted = self.wanted.map_or_else(String::new, |pci| format!(" {pci}"));
        let (is, one_of) = if others.len() == 1 { ("was", "that cell") } else { ("were", "one of those") };
        format!(
            "cell{wanted} was not detected, but {} {is}: select {one_of}, or the strongest",
            others.join(" and ")
        )
    }
}

/// Minimum sample rate for a bandwidth, with cyclic prefixes of whole samples and a margin for the filter.
///
/// Chosen: the smallest multiple of 1.92 Msps that exceeds the occupied bandwidth.
pub const fn least_rate_hz(bandwidth: Bandwidth) -> u64 {
    ((bandwidth.subcarriers() + 1).next_multiple_of(128) * 15_000) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CyclicPrefix, PhichDuration, PhichResource};

    #[test]
    fn the_lowest_rung_that_breaks_is_named() {
        let mut ladder = Ladder::default();
        assert_eq!(ladder.broken().map(|(rung, _)| rung), Some(Rung::Samples));
        ladder.samples = 30_000;
        ladder.inspected = 3000;
        ladder.silent = 3000;
        assert!(ladder.broken().is_some_and(|(_, hint)| hint.contains("zero")));
        ladder.silent = 0;
        ladder.rate_hz = 7_680_000;
        assert!(ladder.broken().is_some_and(|(_, hint)| hint.contains("3.9 ms of samples are too short")));
        ladder.rate_hz = 1_000_000;
        assert!(ladder.broken().is_some_and(|(_, hint)| hint.contains("no synchronisation signal")));
        ladder.searches = 3;
        (ladder.primaries, ladder.secondaries, ladder.broadcasts) = (3, 2, 1);
        ladder.too_wide = Some(Cell {
            pci: 150,
            bandwidth: Bandwidth::from_prbs(50).expect("a bandwidth"),
            ports: Ports::Two,
            cp: CyclicPrefix::Normal,
            phich_duration: PhichDuration::Normal,
            phich_resource: PhichResource::One,
        });
        let (rung, hint) = ladder.broken().expect("a rung is missing");
        assert_eq!(
            (rung, hint.as_str()),
            (Rung::Bandwidth, "cell 150 has 50 PRBs, sent from 2 ports: record at 9.60 Msps or more")
        );
        (ladder.locks, ladder.sure_cfis, ladder.candidates, ladder.rntis) = (1, 1, 1, 1);
        assert_eq!(ladder.broken(), None);
    }
}
