//! Reads the table `departures` of an emulated run back.

use airpace_core::{Bytes, DeviceId, Direction, Time};
use airpace_tables::direction;
use airpace_tables::error::FileError;
use airpace_tables::read::{Part, Words};
use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, UInt16Type, UInt32Type};

use super::largest::Flows;
use crate::error::RunError;
use crate::folder::RunFolder;

/// A packet that entered an emulated network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Time at which the packet was read from its TUN device.
    pub at: Time,
    /// The device that sends or receives the packet.
    pub device: DeviceId,
    /// Direction of the packet.
    pub direction: Direction,
    /// Size of the IP packet.
    pub bytes: Bytes,
}

/// The packets that entered an emulated network, without duplicates, in the order in which they left it.
///
/// # Errors
/// The folder does not hold a completed emulated run, or a table cannot be read.
pub fn arrivals(folder: &RunFolder) -> Result<Vec<Arrival>, RunError> {
    let path = folder.root().join("manifest.json");
    let is_emulated = folder.manifest()?.emulation.is_some();
    let summary = folder.summary()?;
    let Some(run) = summary.runs.first().filter(|_| is_emulated) else {
        let reason = "it is no emulated run that came to its end".to_owned();
        return Err(FileError::Malformed { path, reason }.into());
    };
    let mut arrivals = vec![];
    const COLUMNS: [&str; 5] = ["in_ms", "bytes", "device", "direction", "duplicate"];
    Part::of(folder.root(), "departures", run.key()).for_each(&COLUMNS, |batch| {
        let entered = batch["in_ms"].as_primitive::<Float64Type>();
        let bytes = batch["bytes"].as_primitive::<UInt32Type>();
        let device = batch["device"].as_primitive::<UInt16Type>();
        let duplicate = batch["duplicate"].as_boolean();
        let ways = Words::of(batch, "direction");
        for row in (0..batch.num_rows()).filter(|&row| !duplicate.value(row)) {
            let ms = entered.value(row);
            if !(0.0..1e12).contains(&ms) {
                return Err(format!("`in_ms` is {ms}"));
            }
            arrivals.push(Arrival {
                at: Time::from_nanos((ms * 1e6).round() as u64),
                device: DeviceId(device.value(row)),
                direction: direction::of_word(ways.word(row)),
                bytes: Bytes(bytes.value(row).into()),
            });
        }
        Ok(())
    })?;
    Ok(arrivals)
}

/// A row that was read back from the table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Departed<'a> {
    /// Time at which the packet was read from its TUN device (ms).
    pub in_ms: f64,
    /// Time at which the network released or dropped the packet (ms).
    pub release_ms: f64,
    /// Time at which the packet was handed to the other endpoint (ms); `None` if it was not handed over.
    pub out_ms: Option<f64>,
    /// One-way delay (ms). This field and `queueing_delay_ms` are valid only if `out_ms` is present.
    pub one_way_delay_ms: f32,
    /// Delay beyond the propagation delay (ms).
    pub queueing_delay_ms: f32,
    /// Delay of the empty network (ms).
    pub propagation_delay_ms: f32,
    /// Size of the IP packet.
    pub bytes: u32,
    /// Delivered, or the cause of the drop.
    pub fate: &'a str,
    /// Whether another copy of the packet had left the network before.
    pub duplicate: bool,
}

/// Calls `each` with the table's rows and the flow of each row. Rows without a flow are skipped.
pub fn read(
    part: &Part,
    flows: &Flows,
    mut each: impl FnMut(usize, &Departed<'_>) -> Result<(), String>,
) -> Result<(), FileError> {
    const COLUMNS: [&str; 12] = [
        "in_ms",
        "release_ms",
        "out_ms",
        "one_way_delay_ms",
        "queueing_delay_ms",
        "propagation_delay_ms",
        "bytes",
        "device",
        "direction",
        "connection",
        "fate",
        "duplicate",
    ];
    part.for_each(&COLUMNS, |batch| {
        let times = |column: &str| batch[column].as_primitive::<Float64Type>();
        let spans = |column: &str| batch[column].as_primitive::<Float32Type>();
        let (entered, released, handed) = (times("in_ms"), times("release_ms"), times("out_ms"));
        let (one_way, queueing) = (spans("one_way_delay_ms"), spans("queueing_delay_ms"));
        let propagation = spans("propagation_delay_ms");
        let bytes = batch["bytes"].as_primitive::<UInt32Type>();
        let device = batch["device"].as_primitive::<UInt16Type>();
        let duplicate = batch["duplicate"].as_boolean();
        let (ways, fates) = (Words::of(batch, "direction"), Words::of(batch, "fate"));
        let connections = Words::of(batch, "connection");
        let named = connections.map(|name| flows.named(name));
        let directions = ways.map(|word| direction::of_word(word));
        for row in 0..batch.num_rows() {
            let side = (DeviceId(device.value(row)), directions[ways.place(row)]);
            let Some(flow) = flows.index(&named[connections.place(row)], side) else { continue };
            let departed = Departed {
                in_ms: entered.value(row),
                release_ms: released.value(row),
                out_ms: handed.is_valid(row).then(|| handed.value(row)),
                one_way_delay_ms: one_way.value(row),
                queueing_delay_ms: queueing.value(row),
                propagation_delay_ms: propagation.value(row),
                bytes: bytes.value(row),
                fate: fates.word(row),
                duplicate: duplicate.value(row),
            };
            each(flow, &departed)?;
        }
        Ok(())
    })
}
