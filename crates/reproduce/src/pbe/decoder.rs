//! Speed of the decoder of the control channel, measured on this machine.

use airpace_run::statistics::Estimate;

use crate::experiment::{Evidence, Experiment, Findings};
use crate::measure::Measurement;
use crate::number::{Number, Rule};
use crate::results::Results;

/// Speed of the decoder.
pub(crate) static DECODER: Experiment = Experiment {
    id: "pbe/decoder",
    title: "Speed of the decoder of the control channel",
    source: "PBE-CC §5",
    world: "The paper decodes six cells on a computer with six cores, and the load of each core is below 40 %; the samples come \
            from radios. Ours come from the recording of one simulated cell of 20 MHz with two antenna ports, in busy hours, \
            with 20 dB of SNR, which is decoded six times at once. The time contains the search for the cell.",
    evidence: Evidence::Measured(&[DECODED]),
    findings,
};

/// Duration of the recording (s).
const RECORDED_S: f64 = 4.0;

/// Number of cells that the paper decodes at once.
const CELLS: f64 = 6.0;

const DECODED: Measurement = Measurement {
    name: "six-cells",
    takes_s: 15,
    scenario: "",
    commands: &[
        "encode stationary-busy --set cell.prbs=100 --seconds 4 --snr 20 --format ci8 --out {folder}/cell --json",
        "decode {folder}/cell.sigmf-meta {folder}/cell.sigmf-meta {folder}/cell.sigmf-meta {folder}/cell.sigmf-meta \
         {folder}/cell.sigmf-meta {folder}/cell.sigmf-meta --users --json",
        "decode {folder}/cell.sigmf-meta --users --json",
    ],
    result: "",
};

fn findings(results: &Results) -> Findings {
    let took = |command: usize| results.measured(&DECODED)?.took.get(command).copied();
    let of = |value: Option<f64>| value.map(|value| Estimate { value, interval: None });
    let load_percent = took(1).map(|took| 100.0 * took.cpu_s / (CELLS * RECORDED_S));
    let speed = took(2).map(|took| RECORDED_S / took.wall_s);
    let numbers = vec![
        Number::new("load of a core for each of six cells", "%", 40.0, of(load_percent), Rule::AtMost(40.0)),
        Number::claim(
            "one cell: recorded time ÷ time of decoding; the paper: real time",
            "",
            of(speed),
            Rule::AtLeast(1.0),
        ),
    ];
    Findings { numbers, pictures: Vec::new() }
}
