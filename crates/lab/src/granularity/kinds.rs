//! Kinds of packets that the emulated modem sends beside RSRP and grants, each with a KPI that it contains.

use airpace_diag::kpi::qualcomm::ORIGINS;
use airpace_diag::kpi::{Extractor, Subscription};
use airpace_diag::layout::Field;
use airpace_diag::log::CODES;
use airpace_diag::{LogCode, LogPacket, Radio, Stamp};

/// A kind of packet.
#[derive(Clone, Debug)]
pub(super) struct Kind {
    /// Its log code.
    pub code: LogCode,
    /// A KPI that the packet contains, and no other kind's packet.
    pub kpi: &'static str,
    /// The packet: an example of its layout.
    pub payload: Vec<u8>,
}

/// Numbers for the fields of an example. The first that gives a value of a KPI is taken.
const FILLINGS: [fn(&Field) -> u64; 3] = [|_| 1, |field| 1 << (field.width.clamp(1, 63) - 1), |_| 0];

/// KPI of the packets with RSRP.
pub(super) const RSRP: &str = "lte.rsrp";

/// KPI of the packets with grants.
const GRANTED: &str = "lte.dl.tb_bytes";

/// The kinds beyond RSRP and grants, if the daemon reads this number of kinds.
pub(super) fn further(kinds: usize) -> Vec<Kind> {
    match kinds.saturating_sub(2) {
        0 => Vec::new(),
        most => all().into_iter().take(most).collect(),
    }
}

/// Number of all kinds, with RSRP and grants.
pub fn number_of_kinds() -> usize {
    2 + all().len()
}

/// Names of the KPIs, separated by commas, if the daemon reads this number of kinds.
pub(super) fn kpis(kinds: usize) -> String {
    let mut kpis = vec![RSRP];
    kpis.extend((kinds > 1).then_some(GRANTED));
    kpis.extend(further(kinds).iter().map(|kind| kind.kpi));
    kpis.join(",")
}

/// All kinds after RSRP and grants, in the order of their codes.
fn all() -> Vec<Kind> {
    let mut all: Vec<Kind> = Vec::new();
    for code in CODES {
        let of_code = || ORIGINS.iter().filter(|origin| origin.code == code.code);
        // The modem sends RSRP and grants anyway.
        if of_code().any(|origin| [RSRP, GRANTED].contains(&origin.kpi)) {
            continue;
        }
        let versions = code.layouts.iter().rev().flat_map(|layout| layout.versions.iter().rev());
        let payloads =
            versions.flat_map(|version| FILLINGS.map(|number| code.example(*version, number))).flatten();
        let kind = payloads.into_iter().find_map(|payload| {
            let is_new = |kpi: &str| all.iter().all(|kind| kind.kpi != kpi);
            let kpi = of_code()
                .map(|origin| origin.kpi)
                .find(|kpi| is_new(kpi) && has(code.code, &payload, kpi))?;
            Some(Kind { code: code.code, kpi, payload })
        });
        all.extend(kind);
    }
    all
}

/// Whether a packet gives a value of this KPI.
fn has(code: LogCode, payload: &[u8], kpi: &str) -> bool {
    let Ok(subscription) = Subscription::new([kpi]) else { return false };
    let mut has = false;
    let packet = LogPacket { radio: Radio::FIRST, code, stamp: Stamp::from_nanos(0), payload };
    Extractor::new(&subscription).push(&packet, |_| has = true);
    has
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forty_kinds_can_be_subscribed_and_each_has_a_kpi_of_its_own() {
        assert!(number_of_kinds() >= 40, "{}", number_of_kinds());
        let text = kpis(40);
        let mut names: Vec<&str> = text.split(',').collect();
        assert_eq!(names.len(), 40);
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 40, "{text}");
        assert_eq!((kpis(1), kpis(2)), ("lte.rsrp".to_owned(), "lte.rsrp,lte.dl.tb_bytes".to_owned()));
    }
}
