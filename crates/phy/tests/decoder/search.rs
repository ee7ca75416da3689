//! Cell search without prior knowledge.

use crate::recordings;

use airpace_phy::resample::Resampler;
use airpace_phy::sync::broadcast::BroadcastReader;
use airpace_phy::sync::search::{Candidate, Duplex, Search};
use airpace_phy::sync::{VIEW_HZ, VIEW_PASSBAND_HZ};
use airpace_phy::{Complex32, CyclicPrefix};
use recordings::{Description, data};

fn view(rate_hz: u64, samples: &[Complex32]) -> Vec<Complex32> {
    if rate_hz == VIEW_HZ {
        return samples.to_vec();
    }
    let mut out = Vec::new();
    Resampler::new(rate_hz, VIEW_HZ, VIEW_PASSBAND_HZ).expect("a higher rate").push(samples, &mut out);
    out
}

/// Checks the best candidate in a block of samples, and the MIB in its first frame.
fn check(about: &Description, name: &str, samples: &[Complex32], ms: usize) {
    let rate_hz = about.rate_hz();
    let view = view(rate_hz, &samples[..samples.len().min(ms * rate_hz as usize / 1000)]);
    let found = Search::new(12_000.0).find(&view, 3);
    let best: &Candidate = found.first().unwrap_or_else(|| panic!("{name}: no cell in {ms} ms"));
    assert_eq!((best.pci, best.cp, best.duplex), (about.cell.pci, CyclicPrefix::Normal, Duplex::Fdd));
    assert!((best.cfo_hz - about.cfo_hz).abs() < 60.0, "{name}: {} Hz", best.cfo_hz);
    let frame = VIEW_HZ as f64 / 100.0;
    let start = about.start as f64 * VIEW_HZ as f64 / rate_hz as f64
        - about.subframe as f64 * VIEW_HZ as f64 / 1000.0;
    let off = (best.frame_start - start + frame / 2.0).rem_euclid(frame) - frame / 2.0;
    // The strongest path may be up to a microsecond after the first path.
    assert!((-0.8..2.0).contains(&off), "{name}: {off} samples off");
    let mut reader = BroadcastReader::new(best.pci, best.cp);
    let mut frames = 0;
    for frame in 0.. {
        let begin = best.frame_start.round() as i64 + frame * VIEW_HZ as i64 / 100;
        let Ok(begin) = usize::try_from(begin) else { continue };
        let Some(here) = view.get(begin..begin + VIEW_HZ as usize / 1000) else { break };
        let read =
            reader.read([here], best.cfo_hz).unwrap_or_else(|| panic!("{name}: frame {frame} is mute"));
        let cell = &about.cell;
        assert_eq!((read.mib.bandwidth, read.ports), (cell.bandwidth, cell.ports));
        assert_eq!(
            (read.mib.phich_duration, read.mib.phich_resource),
            (cell.phich_duration, cell.phich_resource)
        );
        let subframes = (begin as f64 - start) / (VIEW_HZ as f64 / 1000.0);
        assert_eq!(i64::from(read.sfn), i64::from(about.sfn) + (subframes / 10.0).round() as i64);
        frames += 1;
    }
    assert!(frames > 0, "{name} has no subframe 0 within {ms} ms");
}

#[test]
fn recorded_cells_are_found_within_twenty_milliseconds() {
    let Some(folder) = data("radio") else { return };
    for name in recordings::NAMES {
        let about = Description::load(&folder, name);
        let samples = about.raw_samples(&folder, name);
        check(&about, name, &samples, 20);
    }
}
