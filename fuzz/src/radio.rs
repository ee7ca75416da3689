//! Properties that must hold for any reports of a radio, and for any lines that claim to be reports.

use std::cell::Cell;

use airpace_core::Time;
use airpace_radio::fusion::{Fused, Fusion};
use airpace_radio::{BitLayer, CarrierId, Numerology, RadioReport, Scope, Slot, line};

use super::choices::Choices;

/// Flags that two closures share.
#[derive(Default)]
struct Flags([Cell<bool>; 5]);

impl Flags {
    fn set(&self, at: usize, flag: bool) -> bool {
        self.0[at].replace(flag)
    }
}

/// Lines of reports: a parsed line is unchanged after it is written and parsed again.
pub fn report(input: &[u8]) {
    const LINE: &str = r#"{"subframe_index":211,"reports":[{"carrier":0,"numerology":0,"slot":211,"time_ms":11.0,"scope":"everyone","carrier_prbs":50,"cfi":1,"layer":"physical","dcis":[{"rnti":4660,"dir":"DL","format":"1A","prb":[[0,11]],"mcs":[9,null],"tbs":[1928,0],"rv":[0,0],"ndi":[1,0],"harq":3,"layers":1,"retransmission":[false,false]}],"own":{"rnti":4660,"active":true,"sinr_db":20.1,"bits_per_prb":160.7,"decoded":true}}]}"#;
    const PARTLY: &str =
        r#""partly","unexplained":3,"missed":{"recall":0.62,"messages":1.25,"cces":1.875,"prbs":7.5}"#;
    let mut choices = Choices(input);
    // In half of the lines, the scope is `partly`: some messages were not decoded.
    let line = if choices.byte() % 2 == 0 { LINE.to_owned() } else { LINE.replace("\"everyone\"", PARTLY) };
    let mut text = line.into_bytes();
    while !choices.is_over() && !text.is_empty() {
        let at = choices.below(text.len());
        match choices.byte() % 4 {
            0 => _ = text.remove(at),
            1 => text[at] = choices.byte(),
            2 => text.insert(at, b"0123456789-.e,[]{}\""[usize::from(choices.byte()) % 19]),
            _ => {
                let number = choices.number().to_string();
                text.splice(at..at, number.bytes());
            }
        }
        text.truncate(2000);
    }
    let text = String::from_utf8_lossy(&text);
    let Ok(reports) = line::from_line(&text) else { return };
    for report in &reports {
        let granted = report.carrier_prbs.map(|prbs| prbs.saturating_sub(report.granted_prbs().len()));
        let most = granted.map_or(0.0, f64::from);
        assert!(report.idle_estimate().is_none_or(|idle| (0.0..=most).contains(&idle)), "{text}");
    }
    let index = reports.first().map_or(0, |report| report.slot.subframe());
    let written = line::to_line(index, &reports);
    let again = line::from_line(&written).unwrap_or_else(|error| panic!("{error}: {written}"));
    let said = |reports: &[RadioReport]| -> Vec<_> {
        let of = |report: &RadioReport| {
            (report.carrier, report.slot, report.scope, report.carrier_prbs, report.cfi, report.dcis.clone())
        };
        reports.iter().map(of).collect()
    };
    assert_eq!(said(&again), said(&reports), "{text}");
}

/// Reports in any order: subframes are returned in order, each report once, and the reports of a subframe in the order
/// of carriers. A carrier is reported as returned only after it was reported as stalled.
pub fn fusion(input: &[u8]) {
    let mut choices = Choices(input);
    let carriers = choices.byte() % 5;
    let patience = choices.number();
    let mut fusion = Fusion::new((0..carriers).map(CarrierId), patience);
    let stalled = Flags::default();
    let (mut pushed, mut popped, mut last) = (0, 0, None);
    let mut take = |fused: Fused| match fused {
        Fused::Subframe { index, reports } => {
            assert!(last < Some(index), "subframe {index} comes after {last:?}");
            last = Some(index);
            assert!(
                !reports.is_empty() && reports.is_sorted_by_key(|report| (report.carrier, report.slot.index))
            );
            assert!(
                reports.iter().all(|report| report.slot.subframe() == index && report.carrier.0 < carriers)
            );
            popped += reports.len() as u64;
        }
        Fused::Stalled(carrier) | Fused::Back(carrier) => {
            let is_stall = matches!(fused, Fused::Stalled(_));
            let was_stalled = stalled.set(usize::from(carrier.0), is_stall);
            // A carrier that `Fusion::stall` has marked as stalled may be reported as stalled again.
            assert!(is_stall || was_stalled, "{carrier:?} comes back without having stalled");
        }
    };
    let mut index = choices.number();
    while !choices.is_over() {
        let carrier = CarrierId(choices.byte() % (carriers + 1));
        match choices.byte() {
            0..8 => fusion.align(carrier, choices.number(), choices.number() as i64),
            8..16 => index = choices.number(),
            16..24 => {
                if let Some(fused) = fusion.flush() {
                    take(fused);
                }
            }
            24..28 => fusion.end(carrier),
            28..32 => {
                while let Some(fused) = fusion.pop() {
                    take(fused);
                }
                fusion.stall(carrier);
                if carrier.0 < carriers {
                    stalled.set(usize::from(carrier.0), true);
                }
            }
            32..160 => {
                index = index.saturating_add(u64::from(choices.byte() % 4));
                pushed += u64::from(carrier.0 < carriers);
                let numerology = Numerology::new(carrier.0 % 2).expect("LTE's, or 30 kHz");
                fusion.push(RadioReport {
                    carrier,
                    slot: Slot { numerology, index },
                    time: Time::ZERO,
                    scope: Scope::Everyone,
                    carrier_prbs: Some(50),
                    cfi: Some(1),
                    symbols: None,
                    dcis: vec![],
                    own: None,
                    layer: BitLayer::Physical,
                });
            }
            _ => {
                while let Some(fused) = fusion.pop() {
                    take(fused);
                }
            }
        }
    }
    while let Some(fused) = fusion.flush() {
        take(fused);
    }
    let too_late: u64 = (0..carriers).map(|carrier| fusion.too_late(CarrierId(carrier))).sum();
    assert_eq!(popped + too_late, pushed, "every report should come out, unless it came too late");
}
