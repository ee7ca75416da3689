//! Processing times of a device: minimum delays of the HARQ-ACK after a PDSCH and of the PUSCH after a grant.

use super::spectrum::SubcarrierSpacing;

/// Additional DMRS symbols of the PDSCH (`dmrs-AdditionalPosition`).
///
/// Source: TS 38.214 §5.3
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AdditionalDmrs {
    /// Position `pos0`: the PDSCH has no additional DMRS.
    None,
    /// Any other position. This also applies before the base station has configured one.
    Present,
    /// Any other position, with the additional DMRS in symbol 12 instead of 11. A carrier that shares its spectrum
    /// with LTE can have this position.
    InSymbol12,
}

/// PDSCH processing time N1 of capability 1, in symbols: minimum time from the end of the PDSCH to the start of its
/// HARQ-ACK, without the terms d for short allocations. `spacing` is the smallest subcarrier spacing of PDCCH, PDSCH and
/// uplink. `None` for 240 kHz.
///
/// Source: TS 38.214 §5.3 Table 5.3-1
pub const fn pdsch_processing_symbols(spacing: SubcarrierSpacing, dmrs: AdditionalDmrs) -> Option<u8> {
    let (without, with) = match spacing {
        SubcarrierSpacing::Khz15 => match dmrs {
            AdditionalDmrs::InSymbol12 => (8, 14),
            _ => (8, 13),
        },
        SubcarrierSpacing::Khz30 => (10, 13),
        SubcarrierSpacing::Khz60 => (17, 20),
        SubcarrierSpacing::Khz120 => (20, 24),
        SubcarrierSpacing::Khz240 => return None,
    };
    match dmrs {
        AdditionalDmrs::None => Some(without),
        _ => Some(with),
    }
}

/// PUSCH preparation time N2 of capability 1, in symbols: minimum time from the end of the PDCCH with the grant to the
/// start of the PUSCH, without the terms d. `spacing` is the smaller subcarrier spacing of PDCCH and PUSCH. `None` for
/// 240 kHz.
///
/// Source: TS 38.214 §6.4 Table 6.4-1
pub const fn pusch_preparation_symbols(spacing: SubcarrierSpacing) -> Option<u8> {
    match spacing {
        SubcarrierSpacing::Khz15 => Some(10),
        SubcarrierSpacing::Khz30 => Some(12),
        SubcarrierSpacing::Khz60 => Some(23),
        SubcarrierSpacing::Khz120 => Some(36),
        SubcarrierSpacing::Khz240 => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processing_times_are_those_of_the_specification() {
        let pdsch = |dmrs| SubcarrierSpacing::ALL.map(|spacing| pdsch_processing_symbols(spacing, dmrs));
        assert_eq!(pdsch(AdditionalDmrs::None), [Some(8), Some(10), Some(17), Some(20), None]);
        assert_eq!(pdsch(AdditionalDmrs::Present), [Some(13), Some(13), Some(20), Some(24), None]);
        assert_eq!(pdsch(AdditionalDmrs::InSymbol12), [Some(14), Some(13), Some(20), Some(24), None]);
        let pusch = SubcarrierSpacing::ALL.map(pusch_preparation_symbols);
        assert_eq!(pusch, [Some(10), Some(12), Some(23), Some(36), None]);
    }

    #[test]
    fn a_wider_spacing_needs_more_symbols_and_less_time() {
        for pair in SubcarrierSpacing::ALL[..4].windows(2) {
            let times = |spacing: SubcarrierSpacing| {
                let symbols = [
                    pdsch_processing_symbols(spacing, AdditionalDmrs::None).unwrap(),
                    pdsch_processing_symbols(spacing, AdditionalDmrs::Present).unwrap(),
                    pusch_preparation_symbols(spacing).unwrap(),
                ];
                // Time in units of an eighth of a symbol of 15 kHz.
                symbols.map(|symbols| (symbols, (u32::from(symbols) * 8) >> spacing.mu()))
            };
            for (narrow, wide) in times(pair[0]).into_iter().zip(times(pair[1])) {
                assert!(narrow.0 <= wide.0 && narrow.1 > wide.1, "{pair:?}: {narrow:?}, {wide:?}");
            }
        }
    }
}
