//! Radio reports as text: one line of JSON for each subframe of all carriers, for storage and transfer.
//!
//! ```text
//! {"subframe_index":211,"reports":[{"carrier":0,"numerology":0,"slot":211,"time_ms":11.0,"scope":"everyone",
//!   "carrier_prbs":50,"idle_prbs":38,"cfi":1,"layer":"physical",
//!   "dcis":[{"rnti":4660,"dir":"DL","format":"1A","prb":[[0,11]],"mcs":[9,null],"tbs":[1928,0],"rv":[0,null],"ndi":[1,null],
//!            "harq":3,"layers":1,"retransmission":[false,false]}],
//!   "own":{"rnti":4660,"active":true,"sinr_db":20.1,"bits_per_prb":160.7,"decoded":true}}]}
//! ```
//!
//! `scope` is the scope of the grants in the report: `everyone`, `own`, or `partly`. With `partly`, `unexplained` is
//! the number of control channel elements with undecoded transmissions. Such a report may contain `missed`, an estimate
//! of the undecoded messages, with `recall`, `messages`, `cces` and `prbs` (see [`Missed`]); without this field, the
//! report has no estimate. `prb` contains ranges of PRBs in the first slot, including their last PRB. Lists of two have
//! an entry per codeword; a codeword is transmitted if its `mcs` is not null or its `tbs` is not 0. `own` is null if
//! the reporter is a bystander. `decoded` is null if the report has no grant for the device or the outcome of this
//! grant is unknown. Unknown values are null. `idle_prbs` follows from the other fields, so the parser ignores it.
//!
//! Reports about NR carriers may have further fields, which are absent if the value is unknown: `symbols`, the number of
//! symbols of the slot for downlink data; in a grant, `symbols`, the number of symbols of its data, and `offset_slots`,
//! the number of slots from the DCI to its data (K0 or K2).

use airpace_core::{Bits, Bytes, Direction, Time};
use serde::de::Error as _;
use serde::{Deserialize, Serialize};

use crate::grant::{Dci, DciFormat, Rnti};
use crate::prb::PrbSet;
use crate::report::{BitLayer, CarrierId, Missed, OwnRadio, RadioReport, Scope};
use crate::slot::{Numerology, Slot};

/// Error for a line that does not contain the reports of a subframe.
#[derive(Debug, thiserror::Error)]
#[error("column {}: {source}; a line has the radio reports of one subframe, as the decoder writes them", source.column())]
pub struct Unreadable {
    #[from]
    source: serde_json::Error,
}

/// Formats the reports of all carriers in a subframe as a line, without the line end.
pub fn to_line(index: u64, reports: &[RadioReport]) -> String {
    let line = Line { subframe_index: index, reports: reports.iter().map(Report::of).collect() };
    serde_json::to_string(&line).expect("numbers, texts and lists are JSON")
}

/// Parses the reports of a line.
///
/// # Errors
/// If the line is not JSON, or if a field is missing or has an invalid value.
pub fn from_line(line: &str) -> Result<Vec<RadioReport>, Unreadable> {
    let Line { subframe_index, reports } = serde_json::from_str(line)?;
    let read = |report: Report| report.read(subframe_index).map_err(serde_json::Error::custom);
    Ok(reports.into_iter().map(read).collect::<Result<_, _>>()?)
}

#[derive(Serialize, Deserialize)]
struct Line {
    subframe_index: u64,
    reports: Vec<Report>,
}

#[derive(Serialize, Deserialize)]
struct Report {
    carrier: u8,
    numerology: u8,
    slot: u64,
    time_ms: f64,
    scope: Whose,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unexplained: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    missed: Option<Lack>,
    carrier_prbs: Option<u16>,
    #[serde(skip_deserializing)]
    idle_prbs: Option<u16>,
    cfi: Option<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    symbols: Option<u8>,
    layer: Layer,
    dcis: Vec<Grant>,
    own: Option<Own>,
}

#[derive(Serialize, Deserialize)]
struct Lack {
    recall: f64,
    messages: f64,
    cces: f64,
    prbs: f64,
}

#[derive(Serialize, Deserialize)]
struct Grant {
    rnti: u16,
    dir: Way,
    format: Format,
    #[serde(with = "ranges")]
    prb: PrbSet,
    mcs: [Option<u8>; 2],
    tbs: [u64; 2],
    rv: [Option<u8>; 2],
    ndi: [Option<u8>; 2],
    harq: Option<u8>,
    layers: u8,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    symbols: Option<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    offset_slots: Option<u8>,
    retransmission: [bool; 2],
}

#[derive(Serialize, Deserialize)]
struct Own {
    rnti: u16,
    active: bool,
    /// Null if the SINR was not measured.
    sinr_db: Option<f64>,
    bits_per_prb: Option<f64>,
    decoded: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    uplink_queue_bytes: Option<u64>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Whose {
    Everyone,
    Partly,
    Own,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Layer {
    Physical,
    Transport,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
enum Way {
    #[serde(rename = "DL")]
    Down,
    #[serde(rename = "UL")]
    Up,
}

/// Names of the DCI formats.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(remote = "DciFormat")]
enum Named {
    #[serde(rename = "0")]
    F0,
    #[serde(rename = "1")]
    F1,
    #[serde(rename = "1A")]
    F1A,
    #[serde(rename = "1B")]
    F1B,
    #[serde(rename = "1C")]
    F1C,
    #[serde(rename = "1D")]
    F1D,
    #[serde(rename = "2")]
    F2,
    #[serde(rename = "2A")]
    F2A,
    #[serde(rename = "2B")]
    F2B,
    #[serde(rename = "0_0")]
    Nr00,
    #[serde(rename = "0_1")]
    Nr01,
    #[serde(rename = "1_0")]
    Nr10,
    #[serde(rename = "1_1")]
    Nr11,
}

#[derive(Serialize, Deserialize)]
struct Format(#[serde(with = "Named")] DciFormat);

/// PRB sets as ranges that include their last PRB.
mod ranges {
    use serde::de::{Deserialize, Deserializer, Error};
    use serde::ser::Serializer;

    use crate::prb::PrbSet;

    pub(super) fn serialize<S: Serializer>(set: &PrbSet, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(set.runs().map(|(start, len)| [start, start + len - 1]))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PrbSet, D::Error> {
        let mut set = PrbSet::EMPTY;
        for [first, last] in Vec::<[u16; 2]>::deserialize(deserializer)? {
            let len = last.checked_sub(first).and_then(|more| more.checked_add(1));
            let run = len.and_then(|len| PrbSet::checked_run(first, len)).ok_or_else(|| {
                let highest = PrbSet::CAPACITY - 1;
                D::Error::custom(format!("[{first},{last}] is no range of PRBs between 0 and {highest}"))
            })?;
            set = set.union(run);
        }
        Ok(set)
    }
}

impl Report {
    fn of(report: &RadioReport) -> Report {
        let (scope, unexplained) = match report.scope {
            Scope::Everyone => (Whose::Everyone, None),
            Scope::EveryoneBut { unexplained, .. } => (Whose::Partly, Some(unexplained)),
            Scope::Own => (Whose::Own, None),
        };
        let lack = |Missed { recall, messages, cces, prbs }: Missed| Lack { recall, messages, cces, prbs };
        Report {
            carrier: report.carrier.0,
            numerology: report.slot.numerology.mu(),
            slot: report.slot.index,
            // A division by 1e6 gives the shortest text: the product of 997999980 and 1e-6 is 997.9999799999999.
            time_ms: report.time.as_nanos() as f64 / 1e6,
            scope,
            unexplained,
            missed: report.missed().map(lack),
            carrier_prbs: report.carrier_prbs,
            idle_prbs: report.idle_prbs(),
            cfi: report.cfi,
            symbols: report.symbols,
            layer: match report.layer {
                BitLayer::Physical => Layer::Physical,
                BitLayer::Transport => Layer::Transport,
            },
            dcis: report.dcis.iter().map(Grant::of).collect(),
            own: report.own.as_ref().map(Own::of),
        }
    }

    /// Converts to a report; an error names the invalid value.
    fn read(self, subframe_index: u64) -> Result<RadioReport, String> {
        let numerology = Numerology::new(self.numerology)
            .ok_or_else(|| format!("`numerology` is {}; there are 0 to 4", self.numerology))?;
        let slot = Slot { numerology, index: self.slot };
        if slot.subframe() != subframe_index {
            return Err(format!("`slot` {} is not in subframe {subframe_index}", self.slot));
        }
        let lack = |Lack { recall, messages, cces, prbs }: Lack| Missed { recall, messages, cces, prbs };
        let missed = self.missed.map(lack);
        if missed.is_some_and(|missed| !missed.is_possible()) {
            return Err("`missed` has a number below 0, or a `recall` above 1".to_owned());
        }
        let scope = match (self.scope, self.unexplained) {
            (Whose::Partly, Some(unexplained @ 1..)) => Scope::EveryoneBut { unexplained, missed },
            _ if missed.is_some() => return Err("`missed` goes with the scope `partly`".to_owned()),
            (Whose::Everyone, None) => Scope::Everyone,
            (Whose::Own, None) => Scope::Own,
            _ => return Err("`unexplained` goes with the scope `partly`, and is at least 1".to_owned()),
        };
        let counts = self.dcis.iter().filter_map(|dci| dci.symbols).chain(self.symbols);
        if let Some(symbols) = counts.max().filter(|&symbols| symbols > 14) {
            return Err(format!("`symbols` is {symbols}; a slot has 14"));
        }
        let end = self.dcis.iter().filter(|dci| matches!(dci.dir, Way::Down)).map(|dci| dci.prb.end()).max();
        if let (Some(end), Some(prbs)) = (end, self.carrier_prbs)
            && end > prbs
        {
            return Err(format!("PRB {} is granted on a carrier of {prbs} PRBs", end - 1));
        }
        Ok(RadioReport {
            carrier: CarrierId(self.carrier),
            slot,
            time: Time::from_nanos((self.time_ms * 1e6).round() as u64),
            scope,
            carrier_prbs: self.carrier_prbs,
            cfi: self.cfi,
            symbols: self.symbols,
            dcis: self.dcis.into_iter().map(Grant::read).collect(),
            own: self.own.map(Own::read),
            layer: match self.layer {
                Layer::Physical => BitLayer::Physical,
                Layer::Transport => BitLayer::Transport,
            },
        })
    }
}

impl Grant {
    fn of(dci: &Dci) -> Grant {
        Grant {
            rnti: dci.rnti.0,
            dir: match dci.direction {
                Direction::Downlink => Way::Down,
                Direction::Uplink => Way::Up,
            },
            format: Format(dci.format),
            prb: dci.prbs,
            mcs: dci.mcs,
            tbs: dci.tbs.map(|bits| bits.0),
            rv: dci.rv,
            ndi: dci.ndi.map(|ndi| ndi.map(u8::from)),
            harq: dci.harq,
            layers: dci.layers,
            symbols: dci.symbols,
            offset_slots: dci.offset_slots,
            retransmission: dci.retransmission,
        }
    }

    fn read(self) -> Dci {
        Dci {
            rnti: Rnti(self.rnti),
            direction: match self.dir {
                Way::Down => Direction::Downlink,
                Way::Up => Direction::Uplink,
            },
            format: self.format.0,
            prbs: self.prb,
            mcs: self.mcs,
            tbs: self.tbs.map(Bits),
            rv: self.rv,
            ndi: self.ndi.map(|ndi| ndi.map(|ndi| ndi != 0)),
            harq: self.harq,
            layers: self.layers,
            symbols: self.symbols,
            offset_slots: self.offset_slots,
            retransmission: self.retransmission,
        }
    }
}

impl Own {
    fn of(own: &OwnRadio) -> Own {
        Own {
            rnti: own.rnti.0,
            active: own.active,
            sinr_db: own.sinr_db.filter(|sinr_db| sinr_db.is_finite()),
            bits_per_prb: own.bits_per_prb,
            decoded: own.decoded,
            uplink_queue_bytes: own.uplink_queue.map(|bytes| bytes.0),
        }
    }

    fn read(self) -> OwnRadio {
        OwnRadio {
            rnti: Rnti(self.rnti),
            active: self.active,
            sinr_db: self.sinr_db,
            bits_per_prb: self.bits_per_prb,
            decoded: self.decoded,
            uplink_queue: self.uplink_queue_bytes.map(Bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_come_back_as_they_were() {
        let dci = Dci {
            rnti: Rnti(4660),
            direction: Direction::Uplink,
            format: DciFormat::F2A,
            prbs: PrbSet::run(0, 4).union(PrbSet::run(99, 1)),
            mcs: [Some(28), None],
            tbs: [Bits(75_376), Bits(0)],
            rv: [Some(0), None],
            ndi: [Some(true), None],
            harq: Some(7),
            layers: 2,
            symbols: None,
            offset_slots: None,
            retransmission: [false, true],
        };
        let own = OwnRadio {
            rnti: Rnti(4660),
            active: true,
            sinr_db: Some(20.25),
            bits_per_prb: Some(160.5),
            decoded: Some(false),
            uplink_queue: Some(Bytes(1500)),
        };
        let report = |carrier, own, layer| RadioReport {
            carrier: CarrierId(carrier),
            slot: Slot::subframe_of_lte(211),
            time: Time::from_micros(11_250),
            scope: Scope::Everyone,
            carrier_prbs: Some(100),
            cfi: Some(3),
            symbols: None,
            dcis: vec![dci, Dci::default()],
            own,
            layer,
        };
        let wide = Dci {
            prbs: PrbSet::run(200, 73),
            format: DciFormat::Nr11,
            symbols: Some(9),
            offset_slots: Some(2),
            ..Dci::default()
        };
        let reports = [
            report(0, Some(own), BitLayer::Physical),
            report(1, None, BitLayer::Transport),
            RadioReport {
                slot: Slot { numerology: Numerology::KHZ_30, index: 423 },
                scope: Scope::EveryoneBut {
                    unexplained: 2,
                    missed: Some(Missed { recall: 0.625, messages: 0.75, cces: 1.875, prbs: 7.5 }),
                },
                carrier_prbs: Some(273),
                cfi: None,
                symbols: Some(9),
                dcis: vec![wide],
                ..report(2, None, BitLayer::Physical)
            },
            RadioReport { scope: Scope::Own, carrier_prbs: None, ..report(3, Some(own), BitLayer::Physical) },
            RadioReport {
                scope: Scope::EveryoneBut { unexplained: 1, missed: None },
                ..report(4, None, BitLayer::Physical)
            },
        ];
        assert_eq!(from_line(&to_line(211, &reports)).unwrap(), reports);
    }

    #[test]
    fn what_is_no_report_is_refused_with_its_place() {
        let with_prbs = |ranges: &str| {
            let report = RadioReport {
                carrier: CarrierId(0),
                slot: Slot::subframe_of_lte(1),
                time: Time::ZERO,
                scope: Scope::Everyone,
                carrier_prbs: Some(50),
                cfi: Some(1),
                symbols: None,
                dcis: vec![Dci { prbs: PrbSet::run(7, 1), ..Dci::default() }],
                own: None,
                layer: BitLayer::Physical,
            };
            let line = to_line(1, &[report]);
            assert!(line.contains("[[7,7]]"), "{line}");
            line.replace("[[7,7]]", ranges)
        };
        let missed = |scope: &str, unexplained: &str, recall: f64, cces: i8| {
            let said =
                format!("\"missed\":{{\"recall\":{recall},\"messages\":1,\"cces\":{cces},\"prbs\":2}}");
            with_prbs("[]")
                .replace("\"scope\":\"everyone\",", &format!("\"scope\":\"{scope}\",{unexplained}{said},"))
        };
        for (line, says) in [
            ("", "column 0"),
            ("{\"subframe_index\":1}", "missing field `reports`"),
            ("{\"subframe_index\":1,\"reports\":[{\"carrier\":300}]}", "invalid value: integer `300`"),
            (&with_prbs("[[3,2]]"), "[3,2] is no range of PRBs"),
            (&with_prbs("[[40,50]]"), "PRB 50 is granted on a carrier of 50 PRBs"),
            (&with_prbs("[]").replace("\"slot\":1", "\"slot\":2"), "`slot` 2 is not in subframe 1"),
            (&with_prbs("[]").replace("\"numerology\":0", "\"numerology\":9"), "`numerology` is 9"),
            (&with_prbs("[]").replace("\"cfi\":1", "\"cfi\":null,\"symbols\":15"), "`symbols` is 15"),
            (&with_prbs("[]").replace("everyone", "partly"), "`unexplained` goes with the scope `partly`"),
            (&missed("everyone", "", 0.5, 1), "`missed` goes with the scope `partly`"),
            (&missed("partly", "\"unexplained\":1,", 1.5, 1), "a `recall` above 1"),
            (&missed("partly", "\"unexplained\":1,", 0.5, -1), "a number below 0"),
            (&with_prbs("[[0,5],[270,275]]"), "[270,275] is no range of PRBs between 0 and 274"),
        ] {
            let refusal = from_line(line).unwrap_err().to_string();
            assert!(refusal.contains(says) && refusal.contains("as the decoder writes them"), "{refusal}");
        }
    }
}
