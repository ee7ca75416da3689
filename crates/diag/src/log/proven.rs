//! 0xB0C8, 0xB0E4, 0xB0E6, 0xB12A, 0xB133, 0xB18F and 0xB1DC: codes without a public layout. The layouts contain only
//! fields that real logs verify: lengths, counters, times, and values that other codes report at the same time. The
//! test `derived.rs` repeats the verification.

use crate::layout::{Code, Field, Layout, Part, Repeat, Verified, Version, VersionAt, u8, u16, u32};
use crate::packet::LogCode;

/// Name of packets whose subject is not public.
const NAMELESS: &str = "LTE, subject not public";

/// Data about cells, the serving cell first.
pub static B0C8: Code = code(
    0xB0C8,
    NAMELESS,
    &[layout(&[v(1)], Part::root(200, CELLS_V1, &[])), layout(&[v(2)], Part::root(346, CELLS_V2, &[]))],
);
/// Change of a bearer's state.
pub static B0E4: Code =
    code(0xB0E4, "LTE NAS ESM bearer context state", &[layout(&[v(1)], Part::root(4, BEARER, &[]))]);
/// Change of state in a procedure of session management.
pub static B0E6: Code =
    code(0xB0E6, "LTE NAS ESM procedure state", &[layout(&[v(1)], Part::root(7, PROCEDURE, &[]))]);
/// Data about each subframe.
pub static B12A: Code =
    code(0xB12A, NAMELESS, &[layout(&[v(42), v(161)], Part::root(16, &[u8("version", 0)], &[SUBFRAMES]))]);
/// Data about one subframe.
pub static B133: Code = code(0xB133, NAMELESS, &[layout(&[v(161)], Part::root(32, SUBFRAME, &[]))]);
/// Measured cells.
pub static B18F: Code = code(
    0xB18F,
    NAMELESS,
    &[layout(&[v(2)], Part::root(424, CELL_V2, &[])), layout(&[v(48)], Part::root(572, CELL_V48, &[]))],
);
/// Data about a frame.
pub static B1DC: Code = code(0xB1DC, NAMELESS, &[layout(&[v(48)], Part::root(296, FRAME, &[]))]);

const fn v(number: u8) -> Version {
    Version::Single(number)
}

const fn code(code: u16, name: &'static str, layouts: &'static [Layout]) -> Code {
    Code { code: LogCode(code), name, version: VersionAt::Byte, layouts }
}

const fn layout(versions: &'static [Version], root: Part) -> Layout {
    Layout { versions, verified: Verified::Guess, root }
}

/// In all 65 packets of real logs, the channel is that of the cell of the last RRC message (0xB0C0). The remaining
/// bytes, which repeat like a list of cells, are not verified.
const CELLS_V1: &[Field] = &[u8("version", 0), u16("e_arfcn", 1)];

const CELLS_V2: &[Field] = &[u8("version", 0), u32("e_arfcn", 1)];

/// In real logs, the bearer and its state equal those in 0xB0E5 at the same time.
const BEARER: &[Field] = &[u8("version", 0), u8("eps_bearer_id", 1), u8("eps_bearer_state", 2)];

/// In real logs, the identity is that of the procedure's messages (0xB0E2, 0xB0E3). A procedure starts in state 0 and
/// ends in state 2.
const PROCEDURE: &[Field] = &[u8("version", 0), u8("procedure_transaction_id", 3), u8("procedure_state", 6)];

/// Twenty records, which fill the packet. In real logs, count and subframe advance by the same number between
/// consecutive used records.
const SUBFRAMES: Part = Part::once("records", 8, &[u16("count", 0), u8("sub_frame_number", 5).bits(0, 3)])
    .repeated(Repeat::Times(20));

/// In real logs, frame and subframe advance with the time, and the count advances by one or two from packet to packet.
const SUBFRAME: &[Field] = &[
    u8("version", 0),
    u16("sub_frame_number", 1).bits(0, 3),
    u16("system_frame_number", 1).bits(4, 13),
    u16("count", 5),
];

/// In real logs, channel, serving cell and power are those of 0xB179 at the same time. The cells after the serving cell
/// cannot be distinguished from unused space.
const CELL_V2: &[Field] = &[
    u8("version", 0),
    u32("e_arfcn", 12),
    u16("serving_physical_cell_id", 16),
    u16("rsrp", 20).bits(0, 11).scaled(16.0, -180.0),
];

const CELL_V48: &[Field] = &[
    u8("version", 0),
    u32("e_arfcn", 16),
    u16("serving_physical_cell_id", 28),
    u16("rsrp", 36).bits(0, 11).scaled(16.0, -180.0),
];

/// In real logs, frames advance with the time, and the clock runs at 32,768 ticks per second.
const FRAME: &[Field] = &[u8("version", 0), u32("system_frame_number", 4).bits(0, 9), u32("clock_32khz", 8)];
