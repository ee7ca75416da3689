//! Default time-domain allocations of PDSCH and PUSCH, which apply while the base station has configured no others.

use super::spectrum::SubcarrierSpacing;

/// Mapping type of PDSCH or PUSCH, which determines the position of the first DMRS symbol.
///
/// Source: TS 38.211 §7.4.1.1.2 and §6.4.1.1.3
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MappingType {
    /// The first DMRS symbol is symbol 2 or 3 of the slot.
    A,
    /// The first DMRS symbol is the first symbol of the allocation.
    B,
}

/// Position of the first DMRS symbol of mapping type A in the slot (`dmrs-TypeA-Position` of the MIB).
///
/// Source: TS 38.211 §7.4.1.1.2
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DmrsTypeAPosition {
    /// Symbol 2.
    Pos2,
    /// Symbol 3.
    Pos3,
}

/// A time-domain allocation of PDSCH or PUSCH.
///
/// Source: TS 38.214 §5.1.2.1 and §6.1.2.1
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimeAllocation {
    /// Mapping type.
    pub mapping: MappingType,
    /// Number of slots from the slot with the DCI to the slot with the data: K0 of PDSCH, K2 of PUSCH. The slots are
    /// those of the data.
    pub slot_offset: u8,
    /// First symbol S of the slot, 0…13.
    pub start: u8,
    /// Number of symbols L, 1…14.
    pub symbols: u8,
}

/// The default tables of PDSCH for normal cyclic prefix.
///
/// Source: TS 38.214 §5.1.2.1.1 Table 5.1.2.1.1-1
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DefaultPdschTable {
    /// Table A, for system information with multiplexing pattern 1 of SS block and CORESET, and for all other PDSCH
    /// without configured allocations.
    A,
    /// Table B, for system information and paging with multiplexing pattern 2.
    B,
    /// Table C, for system information and paging with multiplexing pattern 3.
    C,
}

impl DefaultPdschTable {
    /// The allocation that the value `field` (0…15) of the DCI field "time domain resource assignment" signals; row
    /// `field` + 1 of the table. `None` for a reserved row and above 15.
    ///
    /// Source: TS 38.214 §5.1.2.1.1 Tables 5.1.2.1.1-2, -4 and -5
    pub fn allocation(self, field: u8, position: DmrsTypeAPosition) -> Option<TimeAllocation> {
        let rows = match self {
            DefaultPdschTable::A => &PDSCH_A,
            DefaultPdschTable::B => &PDSCH_B,
            DefaultPdschTable::C => &PDSCH_C,
        };
        let row = rows.get(usize::from(field)).copied().flatten()?;
        let (start, symbols) = match position {
            DmrsTypeAPosition::Pos2 => row.pos2,
            DmrsTypeAPosition::Pos3 => row.pos3,
        };
        Some(TimeAllocation { mapping: row.mapping, slot_offset: row.k0, start, symbols })
    }
}

/// The allocation of default PUSCH table A for normal cyclic prefix that the value `field` (0…15) of the DCI field
/// "time domain resource assignment" signals, on a carrier with subcarrier spacing `spacing`. `None` above 15, and for
/// 240 kHz.
///
/// K2 contains the offset j of the subcarrier spacing. It does not contain the additional delay Δ of a PUSCH that a
/// random access response grants.
///
/// Source: TS 38.214 §6.1.2.1.1 Tables 6.1.2.1.1-2 and 6.1.2.1.1-4
pub fn default_pusch_allocation(field: u8, spacing: SubcarrierSpacing) -> Option<TimeAllocation> {
    let j = match spacing {
        SubcarrierSpacing::Khz15 | SubcarrierSpacing::Khz30 => 1,
        SubcarrierSpacing::Khz60 => 2,
        SubcarrierSpacing::Khz120 => 3,
        SubcarrierSpacing::Khz240 => return None,
    };
    let row = *PUSCH_A.get(usize::from(field))?;
    Some(TimeAllocation { slot_offset: row.slot_offset + j, ..row })
}

/// A row of a default PDSCH table.
#[derive(Clone, Copy)]
struct PdschRow {
    mapping: MappingType,
    k0: u8,
    /// S and L with `dmrs-TypeA-Position` 2.
    pos2: (u8, u8),
    /// S and L with `dmrs-TypeA-Position` 3.
    pos3: (u8, u8),
}

/// A row with mapping type A.
const fn a(pos2: (u8, u8), pos3: (u8, u8)) -> Option<PdschRow> {
    Some(PdschRow { mapping: MappingType::A, k0: 0, pos2, pos3 })
}

/// A row with mapping type B.
const fn b(k0: u8, pos2: (u8, u8), pos3: (u8, u8)) -> Option<PdschRow> {
    Some(PdschRow { mapping: MappingType::B, k0, pos2, pos3 })
}

/// A row with mapping type B and the same symbols for both positions of the DMRS.
const fn b_of(k0: u8, start: u8, symbols: u8) -> Option<PdschRow> {
    b(k0, (start, symbols), (start, symbols))
}

/// A row with mapping type A and the same symbols for both positions of the DMRS.
const fn a_of(start: u8, symbols: u8) -> Option<PdschRow> {
    a((start, symbols), (start, symbols))
}

/// Default table A of PDSCH, rows 1 to 16.
///
/// Source: TS 38.214 §5.1.2.1.1 Table 5.1.2.1.1-2
#[rustfmt::skip]
static PDSCH_A: [Option<PdschRow>; 16] = [
    a((2, 12), (3, 11)), a((2, 10), (3, 9)), a((2, 9), (3, 8)), a((2, 7), (3, 6)), a((2, 5), (3, 4)),
    b(0, (9, 4), (10, 4)), b(0, (4, 4), (6, 4)), b_of(0, 5, 7), b_of(0, 5, 2), b_of(0, 9, 2), b_of(0, 12, 2),
    a_of(1, 13), a_of(1, 6), a_of(2, 4), b_of(0, 4, 7), b_of(0, 8, 4),
];

/// Default table B of PDSCH, rows 1 to 16; row 16 is reserved.
///
/// Source: TS 38.214 §5.1.2.1.1 Table 5.1.2.1.1-4
#[rustfmt::skip]
static PDSCH_B: [Option<PdschRow>; 16] = [
    b_of(0, 2, 2), b_of(0, 4, 2), b_of(0, 6, 2), b_of(0, 8, 2), b_of(0, 10, 2), b_of(1, 2, 2), b_of(1, 4, 2),
    b_of(0, 2, 4), b_of(0, 4, 4), b_of(0, 6, 4), b_of(0, 8, 4), b_of(0, 10, 4), b_of(0, 2, 7),
    a((2, 12), (3, 11)), b_of(1, 2, 4), None,
];

/// Default table C of PDSCH, rows 1 to 16; rows 6 and 7 are reserved.
///
/// Source: TS 38.214 §5.1.2.1.1 Table 5.1.2.1.1-5
#[rustfmt::skip]
static PDSCH_C: [Option<PdschRow>; 16] = [
    b_of(0, 2, 2), b_of(0, 4, 2), b_of(0, 6, 2), b_of(0, 8, 2), b_of(0, 10, 2), None, None,
    b_of(0, 2, 4), b_of(0, 4, 4), b_of(0, 6, 4), b_of(0, 8, 4), b_of(0, 10, 4), b_of(0, 2, 7),
    a((2, 12), (3, 11)), a_of(0, 6), a_of(2, 6),
];

/// A row of the default PUSCH table. The slot offset is K2 without j.
const fn pusch(mapping: MappingType, slot_offset: u8, start: u8, symbols: u8) -> TimeAllocation {
    TimeAllocation { mapping, slot_offset, start, symbols }
}

/// Default table A of PUSCH, rows 1 to 16, without j.
///
/// Source: TS 38.214 §6.1.2.1.1 Table 6.1.2.1.1-2
static PUSCH_A: [TimeAllocation; 16] = {
    use MappingType::{A, B};
    [
        pusch(A, 0, 0, 14),
        pusch(A, 0, 0, 12),
        pusch(A, 0, 0, 10),
        pusch(B, 0, 2, 10),
        pusch(B, 0, 4, 10),
        pusch(B, 0, 4, 8),
        pusch(B, 0, 4, 6),
        pusch(A, 1, 0, 14),
        pusch(A, 1, 0, 12),
        pusch(A, 1, 0, 10),
        pusch(A, 2, 0, 14),
        pusch(A, 2, 0, 12),
        pusch(A, 2, 0, 10),
        pusch(B, 0, 8, 6),
        pusch(A, 3, 0, 14),
        pusch(A, 3, 0, 10),
    ]
};

#[cfg(test)]
mod tests {
    use super::*;
    use DefaultPdschTable as Table;
    use DmrsTypeAPosition::{Pos2, Pos3};
    use SubcarrierSpacing::{Khz15, Khz30, Khz60, Khz120, Khz240};

    /// Mapping type, slot offset, S and L.
    fn parts(allocation: Option<TimeAllocation>) -> Option<(MappingType, u8, u8, u8)> {
        allocation.map(|it| (it.mapping, it.slot_offset, it.start, it.symbols))
    }

    #[test]
    fn default_pdsch_allocations_are_those_of_the_specification() {
        use MappingType::{A, B};
        let row = |table: Table, field, position| parts(table.allocation(field, position));
        assert_eq!(row(Table::A, 0, Pos2), Some((A, 0, 2, 12)));
        assert_eq!(row(Table::A, 0, Pos3), Some((A, 0, 3, 11)));
        assert_eq!(row(Table::A, 6, Pos3), Some((B, 0, 6, 4)));
        assert_eq!(row(Table::A, 11, Pos2), Some((A, 0, 1, 13)));
        assert_eq!(row(Table::A, 15, Pos3), Some((B, 0, 8, 4)));
        assert_eq!(row(Table::B, 6, Pos2), Some((B, 1, 4, 2)));
        assert_eq!(row(Table::B, 13, Pos3), Some((A, 0, 3, 11)));
        assert_eq!(row(Table::B, 14, Pos2), Some((B, 1, 2, 4)));
        assert_eq!(row(Table::C, 14, Pos2), Some((A, 0, 0, 6)));
        let reserved = [(Table::B, 15), (Table::C, 5), (Table::C, 6), (Table::A, 16), (Table::C, 255)];
        assert!(reserved.iter().all(|&(table, field)| row(table, field, Pos2).is_none()));
    }

    #[test]
    fn every_row_of_the_pdsch_tables_is_that_of_a_second_copy() {
        // Mapping type, S and L of each row with `dmrs-TypeA-Position` 2 and 3; K0 is 1 in rows with `+`.
        let tables = [
            (
                Table::A,
                Pos2,
                "A2-12 A2-10 A2-9 A2-7 A2-5 B9-4 B4-4 B5-7 B5-2 B9-2 B12-2 A1-13 A1-6 A2-4 B4-7 B8-4",
            ),
            (
                Table::A,
                Pos3,
                "A3-11 A3-9 A3-8 A3-6 A3-4 B10-4 B6-4 B5-7 B5-2 B9-2 B12-2 A1-13 A1-6 A2-4 B4-7 B8-4",
            ),
            (
                Table::B,
                Pos2,
                "B2-2 B4-2 B6-2 B8-2 B10-2 B2-2+ B4-2+ B2-4 B4-4 B6-4 B8-4 B10-4 B2-7 A2-12 B2-4+ -",
            ),
            (
                Table::B,
                Pos3,
                "B2-2 B4-2 B6-2 B8-2 B10-2 B2-2+ B4-2+ B2-4 B4-4 B6-4 B8-4 B10-4 B2-7 A3-11 B2-4+ -",
            ),
            (Table::C, Pos2, "B2-2 B4-2 B6-2 B8-2 B10-2 - - B2-4 B4-4 B6-4 B8-4 B10-4 B2-7 A2-12 A0-6 A2-6"),
            (Table::C, Pos3, "B2-2 B4-2 B6-2 B8-2 B10-2 - - B2-4 B4-4 B6-4 B8-4 B10-4 B2-7 A3-11 A0-6 A2-6"),
        ];
        for (table, position, copy) in tables {
            let rows = (0..16).map(|field| match table.allocation(field, position) {
                Some(row) => {
                    let k0 = "+".repeat(usize::from(row.slot_offset));
                    format!("{:?}{}-{}{k0}", row.mapping, row.start, row.symbols)
                }
                None => "-".to_owned(),
            });
            assert_eq!(rows.collect::<Vec<_>>().join(" "), copy, "{table:?}, {position:?}");
        }
    }

    #[test]
    fn the_tables_of_pdsch_contain_permitted_symbols_only() {
        for table in [Table::A, Table::B, Table::C] {
            for (field, position) in (0..16).flat_map(|field| [(field, Pos2), (field, Pos3)]) {
                let Some(row) = table.allocation(field, position) else { continue };
                // TS 38.214 Table 5.1.2.1-1
                let is_permitted = match row.mapping {
                    MappingType::A => {
                        row.start <= 3 && row.symbols >= 3 && (row.start < 3 || position == Pos3)
                    }
                    MappingType::B => row.start <= 12 && [2, 4, 7].contains(&row.symbols),
                };
                assert!(is_permitted && row.start + row.symbols <= 14, "{table:?}, {field}: {row:?}");
            }
        }
    }

    #[test]
    fn the_position_of_the_dmrs_moves_the_start_and_not_the_end() {
        for table in [Table::A, Table::B, Table::C] {
            for field in 0..16 {
                let Some(early) = table.allocation(field, Pos2) else { continue };
                let late = table.allocation(field, Pos3).unwrap();
                let end = |it: TimeAllocation| it.start + it.symbols;
                let is_moved = table == Table::A && [5, 6].contains(&field); // the length stays in these rows
                assert_eq!(end(early) == end(late), !is_moved, "{table:?}, {field}");
                assert_eq!((early.mapping, early.slot_offset), (late.mapping, late.slot_offset));
            }
        }
    }

    #[test]
    fn default_pusch_allocations_start_later_with_wider_spacings() {
        use MappingType::{A, B};
        let row = |field, spacing| parts(default_pusch_allocation(field, spacing));
        let first = [Khz15, Khz30, Khz60, Khz120].map(|spacing| row(0, spacing));
        assert_eq!(first, [1, 1, 2, 3].map(|k2| Some((A, k2, 0, 14))));
        assert_eq!(row(6, Khz30), Some((B, 1, 4, 6)));
        assert_eq!(row(13, Khz30), Some((B, 1, 8, 6)));
        assert_eq!(row(14, Khz120), Some((A, 6, 0, 14)));
        assert_eq!(row(15, Khz30), Some((A, 4, 0, 10)));
        assert_eq!((row(16, Khz30), row(0, Khz240)), (None, None));
    }

    #[test]
    fn the_table_of_pusch_contains_permitted_symbols_only() {
        for field in 0..16 {
            let row = default_pusch_allocation(field, Khz15).unwrap();
            // TS 38.214 Table 6.1.2.1-1
            let is_permitted = match row.mapping {
                MappingType::A => row.start == 0 && row.symbols >= 4,
                MappingType::B => row.start <= 13,
            };
            assert!(is_permitted && row.start + row.symbols <= 14, "{field}: {row:?}");
        }
    }
}
