//! Why numbers differ from the papers'. A cause names the runs that show it; a number that differs only in our world is not
//! called wrong.

use std::fmt;

use serde::Serialize;

use crate::number::{Number, Verdict};

/// Where the cause of a difference lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// The network of our experiment is another than the paper's, or the paper does not describe its own.
    World,
    /// Our model of the cell, or of a scheme or a program of others, behaves in another way.
    Model,
    /// An implementation of the text of the paper does not give the numbers that the paper reports.
    Text,
    /// The cause is not known.
    Open,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Place::World => "our world",
            Place::Model => "our model",
            Place::Text => "the paper's text",
            Place::Open => "not known",
        })
    }
}

/// Why some numbers of an experiment differ.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Cause {
    /// Name of the experiment.
    pub experiment: &'static str,
    /// Texts. A number belongs to this cause if its description contains one of them.
    pub numbers: &'static [&'static str],
    /// Where the cause lies.
    pub place: Place,
    /// The cause.
    pub why: &'static str,
    /// The runs that show it: rows of the same table, or a command with its result.
    pub seen: &'static str,
}

impl Cause {
    /// The causes of the numbers of an experiment that differ, each with those numbers. A number has the first cause that
    /// names it.
    pub fn of<'n>(experiment: &str, numbers: &'n [Number]) -> Vec<(&'static Cause, Vec<&'n Number>)> {
        let mut found: Vec<(&'static Cause, Vec<&'n Number>)> = Vec::new();
        for number in numbers.iter().filter(|number| number.verdict() == Verdict::Differs) {
            let Some(cause) = Cause::named(experiment, &number.what) else { continue };
            match found.iter_mut().find(|(known, _)| std::ptr::eq(*known, cause)) {
                Some((_, its)) => its.push(number),
                None => found.push((cause, vec![number])),
            }
        }
        found
    }

    /// The cause of a number with this description.
    pub fn named(experiment: &str, what: &str) -> Option<&'static Cause> {
        let names = |cause: &&Cause| {
            cause.experiment == experiment && cause.numbers.iter().any(|part| what.contains(part))
        };
        CAUSES.iter().find(names)
    }

    /// The numbers, where the cause lies, the cause, and the runs, as sentences.
    pub fn text(&self, numbers: &[&Number]) -> String {
        let which = match numbers {
            [one] => format!("\"{}\"", one.what),
            [one, ..] => format!("\"{}\" and {} more", one.what, numbers.len() - 1),
            [] => String::new(),
        };
        format!("{which} ({}): {} Evidence: {}", self.place, self.why, self.seen)
    }
}

/// All causes. The first that names a number is taken.
pub static CAUSES: &[Cause] = &[
    Cause {
        experiment: "pbe/table1",
        numbers: &["no losses, deep queues"],
        place: Place::World,
        why: "Without losses in the Internet and with deep queues, no scheme loses throughput, and CUBIC and Verus fill the queues.",
        seen: "The rows without this suffix have the same places with losses and queues.",
    },
    Cause {
        experiment: "pbe/table1",
        numbers: &["throughput, PBE-CC ÷ BBR, idle"],
        place: Place::World,
        why: "BBR loses throughput only if the queue of the base station is shallow, and most of our places have a deeper one.",
        seen: "`airpace sweep stationary-idle --set device.0.radio.queue_bytes=200000,6000000 --scheme pbe,bbr --seeds 1..3`: PBE-CC ÷ BBR is 1.04 with 0.2 MB, and 1.01 with 6 MB.",
    },
    Cause {
        experiment: "pbe/fig2",
        numbers: &["time until the queue is drained"],
        place: Place::World,
        why: "The time follows from the capacities of the carriers, which the paper does not state: two of ours carry more than the 40 Mbit/s by a larger margin.",
        seen: "The rows of the activation and of the longest wait, from which it follows.",
    },
    Cause {
        experiment: "pbe/fig3",
        numbers: &["8 blocks later"],
        place: Place::Model,
        why: "In the eighth subframe, our phone gets the retransmission only, because FDD of LTE has one downlink assignment per subframe. The packet of this subframe waits for the ninth.",
        seen: "The row before, whose packet has no such wait.",
    },
    Cause {
        experiment: "pbe/fig6",
        numbers: &["headers and padding"],
        place: Place::World,
        why: "The headers of the cell are those of PDCP, RLC and MAC, and the packets are large. The paper's share contains what its operator adds, which the paper does not describe.",
        seen: "The rows without padding: headers alone have 2.2 %.",
    },
    Cause {
        experiment: "pbe/fig11s",
        numbers: &["users with less than half"],
        place: Place::Model,
        why: "Nine of ten detected users only exchange control messages here, in small blocks of the lowest rates; in the paper, two of three.",
        seen: "pbe/users, users that only exchange control messages.",
    },
    Cause {
        experiment: "pbe/fig10",
        numbers: &["p95 delay at which PBE-CC is not above CUBIC"],
        place: Place::World,
        why: "At places with losses and shallow queues, CUBIC leaves the cell empty, and then has the shorter delay.",
        seen: "pbe/table1: without losses and with deep queues, CUBIC has 8 times the p95 delay of PBE-CC.",
    },
    Cause {
        experiment: "pbe/fig13",
        numbers: &["gets further carriers"],
        place: Place::Model,
        why: "Our Copa, PCC and Vivace carry about half of PBE-CC's rate at these places, and so load the primary carrier for some time. In the paper, Copa carries a tenth.",
        seen: "pbe/table1, throughput, PBE-CC ÷ Copa, and pbe/fig11.",
    },
    Cause {
        experiment: "pbe/states",
        numbers: &["busy"],
        place: Place::World,
        why: "No other traffic is on the Internet of our places, so that it is hardly ever the bottleneck.",
        seen: "`airpace sim wired-bottleneck --scheme pbe,pbe@paper --seeds 1..3`: both presets see the bottleneck in the Internet for 33 to 41 % of the time.",
    },
    Cause {
        experiment: "pbe/fig14",
        numbers: &["no losses"],
        place: Place::World,
        why: "Without losses, CUBIC fills the queue. The losses were fitted to CUBIC's throughput.",
        seen: "The rows without this suffix.",
    },
    Cause {
        experiment: "pbe/fig16",
        numbers: &["BBR, throughput"],
        place: Place::Open,
        why: "BBR has less than PBE-CC here under all that was tried.",
        seen: "`airpace sweep competitor --set flow.0.rtt_ms=42,92 --set forward.loss=0,0.0001 --set device.0.radio.queue_bytes=600000,2200000,6000000 --scheme pbe,bbr --seeds 1..3`: BBR has 0.87 to 0.95 of PBE-CC's throughput.",
    },
    Cause {
        experiment: "pbe/fig18b",
        numbers: &["PBE-CC as printed"],
        place: Place::Text,
        why: "The text of the paper does not converge beside phones of another round trip or scheme. What our PBE-CC does otherwise is listed in docs/papers/pbe-departures.md.",
        seen: "The rows of PBE-CC, which have the departures.",
    },
    Cause {
        experiment: "pbe/fig18c",
        numbers: &["PBE-CC as printed"],
        place: Place::Text,
        why: "The text of the paper does not converge beside phones of another round trip or scheme. What our PBE-CC does otherwise is listed in docs/papers/pbe-departures.md.",
        seen: "The rows of PBE-CC, which have the departures.",
    },
    Cause {
        experiment: "pbe/fig18d",
        numbers: &["PBE-CC as printed"],
        place: Place::Text,
        why: "The text of the paper does not converge beside phones of another round trip or scheme. What our PBE-CC does otherwise is listed in docs/papers/pbe-departures.md.",
        seen: "The rows of PBE-CC, which have the departures.",
    },
    Cause {
        experiment: "biscay/table1",
        numbers: &["÷ BBR, BISCAY as printed"],
        place: Place::Text,
        why: "As printed, BISCAY stays in its fallback too long and loses throughput (docs/papers/biscay-departures.md).",
        seen: "The row of BISCAY without this suffix.",
    },
    Cause {
        experiment: "biscay/table1",
        numbers: &["÷ CUBIC"],
        place: Place::World,
        why: "CUBIC's delay is that of the full buffer, which the paper does not state; ours has 3 MB.",
        seen: "`airpace sweep biscay-links --set variant=lte-mobile-peak-01,lte-static-peak-01,lte-mobile-off-01,nr-mobile-peak-01,nr-static-peak-01,nr-mobile-off-01 --set flow.0.rtt_ms=1,8 --set trace.link.buffer.bytes=3000000,10000000`: over six links with 10 MB, the mean is 0.018 and the p95 0.013 of CUBIC's.",
    },
    Cause {
        experiment: "biscay/table1",
        numbers: &["÷ PCC", "÷ Vivace", "÷ Verus"],
        place: Place::World,
        why: "On the paper's emulator, links have no delay of their own; ours have 8 ms. The shorter the round trip, the longer the queues of learning schemes.",
        seen: "`airpace sweep biscay-links --set variant=lte-mobile-peak-01,lte-static-peak-01,lte-mobile-off-01,nr-mobile-peak-01,nr-static-peak-01,nr-mobile-off-01 --set flow.0.rtt_ms=1,8 --set trace.link.buffer.bytes=3000000,10000000`: over six links with 1 ms and 3 MB, BISCAY has 0.013 of PCC's and Vivace's mean delay, 0.28 of Verus' mean and 0.08 of its p95; with 8 ms 0.16, 0.02, 0.41 and 0.21.",
    },
    Cause {
        experiment: "biscay/table1",
        numbers: &["÷ Copa", "÷ LEDBAT", "÷ Sprout"],
        place: Place::Open,
        why: "A shorter round trip explains a part.",
        seen: "`airpace sweep biscay-links --set variant=lte-mobile-peak-01,lte-static-peak-01,lte-mobile-off-01,nr-mobile-peak-01,nr-static-peak-01,nr-mobile-off-01 --set flow.0.rtt_ms=1,8 --set trace.link.buffer.bytes=3000000,10000000`: over six links with 1 ms, BISCAY has 0.19 of Copa's, 0.27 of LEDBAT's and 0.46 of Sprout's mean delay; with 8 ms 0.27, 0.33 and 0.6; the paper has 0.04, 0.07 and 0.19.",
    },
    Cause {
        experiment: "biscay/fig6",
        numbers: &["mean delay", "p95 delay"],
        place: Place::World,
        why: "The effect of the interval depends on the link. On these, delays change little, and the fallback limits what an old sample does.",
        seen: "docs/papers/biscay-departures.md has the same intervals over three recorded uplinks with the commands: there, 1 ms has up to four times the delay of 100 ms.",
    },
    Cause {
        experiment: "biscay/table2",
        numbers: &["three flows ÷ two flows"],
        place: Place::Open,
        why: "The bound is missed by 0.02 to 0.05.",
        seen: "The rows of both delays.",
    },
    Cause {
        experiment: "biscay/table2",
        numbers: &["BBR ÷ BISCAY"],
        place: Place::Open,
        why: "The other ratios to BBR agree.",
        seen: "The rows beside it.",
    },
    Cause {
        experiment: "biscay/table2",
        numbers: &["BISCAY, mean delay", "BISCAY, p95 delay", "CUBIC ÷ BISCAY"],
        place: Place::World,
        why: "Our links have more delay of their own than the paper's: a grant has to be requested, and a lost block is sent again. CUBIC's ratio is smaller for this reason, and because its buffer is the smaller one.",
        seen: "`airpace sweep biscay-links --set variant=lte-mobile-peak-01,lte-static-peak-01,lte-mobile-off-01,nr-mobile-peak-01,nr-static-peak-01,nr-mobile-off-01 --set flow.0.rtt_ms=1,8 --set trace.link.buffer.bytes=3000000,10000000`: over six links with 1 ms, BISCAY has a mean of 21 ms and the Oracle, which knows the link, 10 ms.",
    },
    Cause {
        experiment: "biscay/fig9",
        numbers: &["BISCAY as printed"],
        place: Place::Text,
        why: "As printed, each flow has its fallback for itself (docs/papers/biscay-departures.md).",
        seen: "The rows of BISCAY, whose flows of a phone share their state.",
    },
    Cause {
        experiment: "biscay/fig9",
        numbers: &["BBR", "CUBIC"],
        place: Place::World,
        why: "The paper shows one link and two regions of it; ours are means over all links.",
        seen: "The row of BISCAY, whose regions are fair, and of BBR's and CUBIC's whole runs, which are fairer than their regions.",
    },
    Cause {
        experiment: "biscay/fig10",
        numbers: &["5 Mbit/s"],
        place: Place::Model,
        why: "The change takes ten rounds, until the filter of BBR has no sample of the cell. At 5 Mbit/s, these rounds have the longest queue.",
        seen: "The rows of 10 and 15 Mbit/s.",
    },
    Cause {
        experiment: "biscay/fig11a",
        numbers: &["÷ PBE-CC"],
        place: Place::World,
        why: "In our cells, PBE-CC as printed carries a quarter less than BISCAY, and so has no longer queue. Our PBE-CC carries more than BISCAY, with 1.25 times its delay and not twice.",
        seen: "`airpace sim trace --set trace.file=FILE --scheme biscay,pbe@paper,pbe` over five recorded downlinks: BISCAY has 0.32 to 0.5 of the p95 delay of PBE-CC as printed (docs/papers/biscay-departures.md).",
    },
    Cause {
        experiment: "morc/fig4",
        numbers: &["12 ms in all"],
        place: Place::World,
        why: "The paper's downloads crossed the Internet to a server in the cloud. With 12 ms in all, CUBIC recovers from losses too fast.",
        seen: "The rows without this suffix have 30 ms.",
    },
    Cause {
        experiment: "morc/fig4",
        numbers: &["CUBIC, median"],
        place: Place::World,
        why: "CUBIC's median agrees with 12 ms in all, and its mean and longest download with 30 ms: the paper's path varied.",
        seen: "The rows of 12 ms in all.",
    },
    Cause {
        experiment: "morc/fig4",
        numbers: &["MORC, most", "MORC, deviation"],
        place: Place::World,
        why: "Our link is the same in every run, and only its losses vary.",
        seen: "The deviation of CUBIC, which the losses cause.",
    },
    Cause {
        experiment: "morc/table1",
        numbers: &["MORC, rank correlation"],
        place: Place::World,
        why: "MORC has 91 to 99 % in all rows here, so that their order says little.",
        seen: "The mean of the 14 rows.",
    },
    Cause {
        experiment: "morc/table1",
        numbers: &["BBR"],
        place: Place::Open,
        why: "Neither reordering nor a longer round trip lowers BBR to the paper's numbers.",
        seen: "`airpace sweep morc-table1 --set forward.sway.may_reorder=false,true --scheme bbr --seeds 1..2`: 84 % both times; with `flow.0.rtt_ms=24` BBR has more, not less.",
    },
    Cause {
        experiment: "morc/fig5",
        numbers: &["MORC as printed"],
        place: Place::Text,
        why: "The text of the paper cannot converge (docs/papers/morc-departures.md).",
        seen: "The row of MORC.",
    },
    Cause {
        experiment: "morc/fig6",
        numbers: &["CUBIC, mean score"],
        place: Place::World,
        why: "The paper's score is that of an application whose formulas are not published.",
        seen: "The other rows, which compare scores of one formula.",
    },
    Cause {
        experiment: "morc/fig6",
        numbers: &["variance of the score over phones and runs, MORC ÷ CUBIC, 1 % losses"],
        place: Place::Open,
        why: "The scores of both schemes vary little.",
        seen: "The row of the score with 1 % losses.",
    },
    Cause {
        experiment: "morc/fig6",
        numbers: &["MORC ÷ CUBIC"],
        place: Place::World,
        why: "MORC gains where packets are lost on the radio; the paper does not describe the losses of its cells.",
        seen: "The rows with 1 % losses, where MORC has the higher score.",
    },
    Cause {
        experiment: "morc/video-lab",
        numbers: &["variation of the throughput per second", "stalls per video"],
        place: Place::Open,
        why: "The player pauses between segments, so that the throughput per second shows its rhythm more than the scheme's.",
        seen: "The rows of both ladders.",
    },
    Cause {
        experiment: "morc/video-lab",
        numbers: &["start-up time", "throughput of the first segment"],
        place: Place::World,
        why: "The first segment of the adaptive player has 72 kB, which arrive before a scheme has found the rate, so that the initial window decides.",
        seen: "The rows of 8.1 Mbit/s only, whose first segment has 4 MB: MORC starts 3 % before CUBIC there, and 4 % after BBR.",
    },
    Cause {
        experiment: "morc/table2",
        numbers: &["quality of video", "varying bandwidth", "RTT jitter"],
        place: Place::World,
        why: "The paper has ticks and crosses without a rule, and its BBR carries less (see morc/table1).",
        seen: "morc/table1 and morc/video-lab, from which the marks follow.",
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::list::EXPERIMENTS;

    /// The numbers of the published page that differ, each with its experiment. Measured ones depend on the machine.
    fn published() -> Vec<(&'static str, &'static str)> {
        let page = include_str!("../../../docs/evaluation/reproduction.md");
        let is_measured = |id: &str| EXPERIMENTS.iter().any(|one| one.id == id && one.is_measured());
        let mut experiment = "";
        let mut found = Vec::new();
        for line in page.lines() {
            if let Some((id, _)) = line.strip_prefix("## ").and_then(|heading| heading.split_once(": ")) {
                experiment = id;
            }
            if line.ends_with("| differs |") && !is_measured(experiment) {
                let what = line.trim_start_matches("| ").split(" | ").next().expect("a first cell");
                found.push((experiment, what));
            }
        }
        found
    }

    #[test]
    fn each_number_of_the_published_page_that_differs_has_a_cause() {
        let without: Vec<_> =
            published().into_iter().filter(|(id, what)| Cause::named(id, what).is_none()).collect();
        assert!(without.is_empty(), "{without:#?}");
    }

    #[test]
    fn each_cause_explains_a_number_of_the_published_page() {
        let published = published();
        for cause in CAUSES {
            let explains = |(id, what): &(&str, &str)| {
                Cause::named(id, what).is_some_and(|known| std::ptr::eq(known, cause))
            };
            assert!(published.iter().any(explains), "{}: {:?}", cause.experiment, cause.numbers);
        }
    }
}
