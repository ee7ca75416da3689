//! Calibration of confidences under noise: of the messages with a confidence of 0.9, nine of ten are correct.
//!
//! `AIRPACE_FIGURES=update cargo test -p airpace-phy --test decoder reliability` draws `docs/figures/reliability.svg`.

use crate::blind;
use crate::crowd;

use std::fmt::Write as _;

use airpace_phy::dci::Extras;
use airpace_phy::impair::DelayProfile;
use airpace_phy::{Bandwidth, Cell, CyclicPrefix, PhichDuration, PhichResource, Ports};
use crowd::Scene;

/// Bounds of the confidence bins.
const BOUNDS: [f64; 7] = [0.3, 0.86, 0.92, 0.97, 0.99, 0.998, 1.0];

/// Signal-to-noise ratios (dB).
const SNRS_DB: [f64; 5] = [4.5, 3.0, 1.5, 0.0, -2.0];

/// Messages of a bin.
#[derive(Clone, Copy, Default)]
struct Bin {
    confidence: f64,
    messages: f64,
    truths: f64,
}

impl Bin {
    fn mean(&self) -> f64 {
        self.confidence / self.messages
    }

    fn share(&self) -> f64 {
        self.truths / self.messages
    }

    /// Confidence interval for the probability of a correct message: Wilson's interval with `z` standard deviations.
    fn interval(&self, z: f64) -> (f64, f64) {
        let (n, p) = (self.messages, self.share());
        let centre = (p + z * z / (2.0 * n)) / (1.0 + z * z / n);
        let half = z / (1.0 + z * z / n) * libm::sqrt(p * (1.0 - p) / n + z * z / (4.0 * n * n));
        (centre - half, centre + half)
    }
}

/// Cells of our own encoder: with low and high load, static and fading.
fn scenes() -> impl Iterator<Item = Scene> {
    let cells = [
        (25, 384, Ports::Two, None),
        (25, 384, Ports::One, None),
        (25, 384, Ports::Two, Some((DelayProfile::Epa, 5.0))),
        (50, 768, Ports::Two, Some((DelayProfile::Eva, 70.0))),
        (50, 768, Ports::Four, Some((DelayProfile::Etu, 70.0))),
        (15, 256, Ports::One, Some((DelayProfile::Eva, 5.0))),
    ];
    cells.into_iter().enumerate().flat_map(|(at, (prbs, fft_size, ports, fading))| {
        let cell = Cell {
            pci: 100 + 7 * at as u16,
            bandwidth: Bandwidth::from_prbs(prbs).expect("a bandwidth of LTE"),
            ports,
            cp: CyclicPrefix::Normal,
            phich_duration: PhichDuration::Normal,
            phich_resource: PhichResource::One,
        };
        SNRS_DB.into_iter().enumerate().map(move |(nth, snr_db)| Scene {
            cell,
            fft_size,
            users: 16,
            tries: if nth % 2 == 0 { 12 } else { 3 },
            extras: Extras::NONE,
            snr_db,
            fading,
            subframes: 300,
            seed: (10 * at + nth) as u64,
        })
    })
}

/// Confidence of each output message, and whether it was transmitted.
fn outputs(scene: &Scene) -> Vec<(f64, bool)> {
    let (samples, sent) = scene.play();
    let believed = blind::believed(scene.fft_size as u64 * 15_000, &samples);
    let is_true = |found: &airpace_phy::found::Found| {
        let its = sent.iter().filter(|(index, _)| *index == found.index);
        its.map(|(_, sent)| (sent.rnti, sent.payload, sent.place))
            .any(|sent| sent == (found.rnti, found.payload, found.place))
    };
    believed.iter().map(|found| (f64::from(found.confidence), is_true(found))).collect()
}

#[test]
fn of_messages_with_a_confidence_of_nine_tenths_nine_of_ten_are_true() {
    let mut bins = [Bin::default(); BOUNDS.len() - 1];
    for scene in scenes() {
        let outputs = outputs(&scene);
        let others = outputs.iter().filter(|(_, is_true)| !is_true).count();
        let doubt: f64 = outputs.iter().map(|(confidence, _)| 1.0 - confidence).sum();
        println!(
            "{} PRBs, {:?}, {:?}, {} dB: {} come out, {others} are false, {doubt:.1} expected",
            scene.cell.bandwidth.prbs(),
            scene.cell.ports,
            scene.fading,
            scene.snr_db,
            outputs.len()
        );
        for (confidence, is_true) in outputs {
            let at = BOUNDS.iter().rposition(|low| *low <= confidence).unwrap_or(0).min(bins.len() - 1);
            bins[at].messages += 1.0;
            bins[at].confidence += confidence;
            bins[at].truths += f64::from(u8::from(is_true));
        }
    }
    println!("confidence     messages  mean    true    99.9 % of such samples");
    for (bin, bounds) in bins.iter().zip(BOUNDS.windows(2)) {
        let (low, high) = bin.interval(3.29);
        println!(
            "{:5}-{:5}  {:10}  {:.4}  {:.4}  {low:.4}-{high:.4}",
            bounds[0],
            bounds[1],
            bin.messages,
            bin.mean(),
            bin.share()
        );
    }
    if std::env::var_os("AIRPACE_FIGURES").is_some_and(|wish| wish == "update") {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/figures/reliability.svg");
        std::fs::write(file, figure(&bins)).expect("the folder of the figures is there");
    }
    let surest = bins[bins.len() - 1];
    let (are_false, expected) = (surest.messages - surest.truths, surest.messages - surest.confidence);
    println!("of the surest, {are_false} are false, {expected:.1} expected");
    assert!(are_false <= 3.0 * expected, "{are_false} of the surest are false, {expected:.1} expected");
    for bin in bins {
        assert!(bin.messages >= 30.0, "{} messages say too little", bin.messages);
        let (low, high) = bin.interval(3.29);
        let mean = bin.mean();
        assert!(
            (low - 0.02..high + 0.02).contains(&mean),
            "{mean:.4} is believed, {:.4} is true",
            bin.share()
        );
    }
}

/// The diagram. Both axes show odds, so the distance from 0.9 to 0.99 equals that from 0.99 to 0.999.
fn figure(bins: &[Bin]) -> String {
    const TICKS: [f64; 6] = [0.7, 0.8, 0.9, 0.97, 0.99, 0.999];
    let odds = |p: f64| libm::log(p / (1.0 - p));
    let (least, most) = (odds(0.6), odds(0.99995));
    let place = |p: f64| (odds(p.clamp(0.6, 0.99995)) - least) / (most - least) * 400.0;
    let (x, y) = (|p: f64| 70.0 + place(p), |p: f64| 430.0 - place(p));
    let mut svg = String::from(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"520\" height=\"500\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"520\" height=\"500\" fill=\"white\"/>\n",
    );
    for tick in TICKS {
        let (x, y) = (x(tick), y(tick));
        _ = writeln!(
            svg,
            "<path d=\"M{x:.1} 30V430M70 {y:.1}H470\" stroke=\"#ddd\"/>\n\
             <text x=\"{x:.1}\" y=\"448\" text-anchor=\"middle\">{tick}</text>\n\
             <text x=\"62\" y=\"{:.1}\" text-anchor=\"end\">{tick}</text>",
            y + 4.0
        );
    }
    _ = writeln!(svg, "<path d=\"M70 430L470 30\" stroke=\"#888\" stroke-dasharray=\"4\"/>");
    for bin in bins {
        let (x, (low, high)) = (x(bin.mean()), bin.interval(1.96));
        _ = writeln!(
            svg,
            "<path d=\"M{x:.1} {:.1}V{:.1}\" stroke=\"#0072B2\"/>\n\
             <circle cx=\"{x:.1}\" cy=\"{:.1}\" r=\"4\" fill=\"#0072B2\"/>\n\
             <text x=\"{:.1}\" y=\"{:.1}\" fill=\"#555\" font-size=\"10\">{}</text>",
            y(low),
            y(high),
            y(bin.share()),
            x + 7.0,
            y(bin.share()) + 12.0,
            bin.messages
        );
    }
    svg.push_str(
        "<text x=\"270\" y=\"475\" text-anchor=\"middle\">confidence (mean of the bin)</text>\n\
         <text x=\"20\" y=\"230\" text-anchor=\"middle\" transform=\"rotate(-90 20 230)\">share that is true, 95 % \
         interval</text>\n</svg>\n",
    );
    svg
}
