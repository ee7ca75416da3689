//! What a subframe costs, by bandwidth and stage: `cargo bench -p airpace-phy --bench table`.
//!
//! Busy cells of two ports at 20 dB, one thread. Median and 99th percentile of the processor's time in µs.

#[path = "../tests/crowd/mod.rs"]
mod crowd;

use airpace_phy::dci::{Carrier, Extras};
use airpace_phy::evidence::{Caution, Evidence};
use airpace_phy::listen::{Heard, Listener, Options};
use airpace_phy::search::Search;
use airpace_phy::{Bandwidth, Cell, CyclicPrefix, PhichDuration, PhichResource, Ports};
use crowd::Scene;
use rustix::time::{ClockId, clock_gettime};

const CARRIERS: [(u16, usize); 6] = [(6, 128), (15, 256), (25, 384), (50, 768), (75, 1152), (100, 1536)];

/// Time that this thread had a processor, in ns.
fn now_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Costs of the stages of one subframe: listening, search, evidence, all.
#[derive(Default)]
struct Costs([Vec<f64>; 4]);

impl Costs {
    fn line(&mut self) -> String {
        let each = self.0.iter_mut().map(|costs| {
            costs.sort_by(f64::total_cmp);
            let at = |share: usize| costs.get(costs.len() * share / 100).copied().unwrap_or(f64::NAN);
            format!("{:7.1} {:7.1}", at(50), at(99))
        });
        each.collect::<Vec<_>>().join("  ")
    }
}

fn measure(prbs: u16, fft_size: usize, snr_db: f64) -> (Costs, usize, usize) {
    let cell = Cell {
        pci: 407,
        bandwidth: Bandwidth::from_prbs(prbs).expect("a bandwidth of LTE"),
        ports: Ports::Two,
        cp: CyclicPrefix::Normal,
        phich_duration: PhichDuration::Normal,
        phich_resource: PhichResource::One,
    };
    let extras = Extras::NONE;
    let scene =
        Scene { cell, fft_size, users: 40, tries: 60, extras, snr_db, fading: None, subframes: 400, seed: 1 };
    let (samples, sent) = scene.play();
    let carrier = Carrier::symmetric(prbs, cell.ports);
    let rate_hz = fft_size as u64 * 15_000;
    let mut listener = Listener::new(Options::new(rate_hz)).expect("a rate for a cell");
    let mut search = Search::new(&carrier);
    let mut evidence = Evidence::new(cell.pci, carrier, Caution::default());
    let (mut costs, mut out, mut index) = (Costs::default(), Vec::new(), 0u64);
    for samples in samples.chunks(rate_hz as usize / 1000) {
        let begin = now_ns();
        listener.push(samples);
        while let Some(heard) = listener.pop() {
            let listened = now_ns();
            let Heard::Subframe(observation) = heard else { continue };
            evidence.advance(index);
            let candidates = search.candidates(&observation, |rnti| evidence.history().prior(rnti, 0.0));
            let searched = now_ns();
            let before = out.len();
            evidence.judge(index, &observation, candidates, &mut out);
            for found in &out[before..] {
                search.believe(found.rnti, found.payload.len());
            }
            let judged = now_ns();
            // Until the cell is found samples are kept, and read all at once.
            if index >= 100 {
                let stages = [begin..listened, listened..searched, searched..judged, begin..judged];
                for (costs, stage) in costs.0.iter_mut().zip(stages) {
                    costs.push((stage.end - stage.start) as f64 / 1000.0);
                }
            }
            index += 1;
        }
    }
    evidence.finish(&mut out);
    (costs, out.len(), sent.len())
}

fn main() {
    println!("µs per subframe: median, 99th percentile");
    println!(
        "PRBs   dB  grants/subframe   listening         search            evidence          all               found"
    );
    for (prbs, fft_size) in CARRIERS {
        let noisy: &[f64] = if prbs == 100 { &[20.0, 10.0, 5.0] } else { &[20.0] };
        for &snr_db in noisy {
            let (mut costs, found, sent) = measure(prbs, fft_size, snr_db);
            let grants = sent as f64 / 400.0;
            println!(
                "{prbs:4} {snr_db:4} {grants:10.1}      {}   {:.4}",
                costs.line(),
                found as f64 / sent as f64
            );
        }
    }
}
