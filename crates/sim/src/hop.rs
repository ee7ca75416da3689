//! The last hop of a run, whatever it is: a cell, a trace, or nothing.

use std::time::Duration;

use airpace_core::{Bytes, DeviceId, Direction, Packet, Rate, Streams, Time};
use airpace_path::cell::{Cell, CellConfig};
use airpace_path::{ConfigError, Exit, Link};

use crate::scenario::Scenario;
use crate::trace_radio::{Recording, TraceRadio};

/// One millisecond.
pub(crate) const MILLISECOND: Duration = Duration::from_millis(1);

/// The last hop.
#[derive(Debug)]
pub(crate) enum LastHop {
    Cell(Box<Cell>),
    Trace(Box<TraceRadio>),
    Nothing,
}

impl LastHop {
    /// The last hop of a scenario; a trace needs its recording, and is nothing without.
    pub(crate) fn new(
        scenario: &Scenario,
        recording: Option<Recording>,
        streams: &Streams,
    ) -> Result<LastHop, ConfigError> {
        if let Some(config) = &scenario.cell {
            return Ok(LastHop::Cell(Box::new(scenario.build_cell(config, streams)?)));
        }
        if let (Some(config), Some(recording)) = (&scenario.trace, recording) {
            let direction = scenario.flow[0].direction;
            let trace = TraceRadio::new(recording, direction, config.telemetry, &config.link)
                .map_err(|error| error.within("trace.link"))?;
            return Ok(LastHop::Trace(Box::new(trace)));
        }
        Ok(LastHop::Nothing)
    }

    /// Takes in a packet that goes this way; `false` if there is nothing to cross.
    pub(crate) fn push(&mut self, now: Time, direction: Direction, packet: Packet) -> bool {
        match (self, direction) {
            (LastHop::Cell(cell), Direction::Downlink) => cell.push(now, packet),
            (LastHop::Cell(cell), Direction::Uplink) => cell.push_uplink(now, packet),
            (LastHop::Trace(trace), _) => trace.link.push(now, packet),
            (LastHop::Nothing, _) => return false,
        }
        true
    }

    /// The next packet that has crossed or was lost, and which way it went.
    pub(crate) fn pop(&mut self, now: Time) -> Option<(Direction, Exit)> {
        match self {
            LastHop::Cell(cell) => {
                let down = cell.pop(now).map(|exit| (Direction::Downlink, exit));
                down.or_else(|| Some((Direction::Uplink, cell.pop_uplink(now)?)))
            }
            LastHop::Trace(trace) => Some((trace.direction, trace.link.pop(now)?)),
            LastHop::Nothing => None,
        }
    }

    pub(crate) fn next(&self) -> Option<Time> {
        match self {
            LastHop::Cell(cell) => cell.next(),
            LastHop::Trace(trace) => trace.link.next(),
            LastHop::Nothing => None,
        }
    }

    pub(crate) fn base_delay(&self, direction: Direction, bytes: Bytes) -> Duration {
        match (self, direction) {
            (LastHop::Cell(cell), Direction::Downlink) => cell.base_delay(bytes),
            (LastHop::Cell(cell), Direction::Uplink) => cell.uplink_base_delay(bytes),
            (LastHop::Trace(trace), _) => trace.link.base_delay(bytes),
            (LastHop::Nothing, _) => Duration::ZERO,
        }
    }

    /// Bytes that wait for this device to be carried this way.
    pub(crate) fn backlog_of(&self, direction: Direction, device: DeviceId) -> Bytes {
        match (self, direction) {
            (LastHop::Cell(cell), Direction::Downlink) => cell.backlog_of(device),
            (LastHop::Cell(cell), Direction::Uplink) => cell.uplink_backlog_of(device),
            (LastHop::Trace(trace), _) => trace.link.backlog(),
            (LastHop::Nothing, _) => Bytes::ZERO,
        }
    }
}

/// How long data waits at most before a busy device of this cell can send it: for the next buffer status report to ride on
/// a block, from that block to the grant that answers it, and from the grant to the block that it grants.
///
/// Source: TS 36.321 §5.4.5 (periodicBSR-Timer); TS 36.213 §8.0 (four subframes from a grant to its block)
pub(crate) fn grant_delay(config: &CellConfig) -> Duration {
    Duration::from_millis(u64::from(config.uplink.periodic_bsr_ms) + 4 + 4)
}

/// What a cell could carry for a device one way, smoothed over the milliseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SmoothedCapacity {
    bytes_per_ms: Option<f64>,
}

impl SmoothedCapacity {
    /// Chosen: an eighth per millisecond, a HARQ round trip.
    const GAIN: f64 = 1.0 / 8.0;

    pub(crate) fn observe(&mut self, bytes: Bytes) {
        let sample = bytes.0 as f64;
        let before = self.bytes_per_ms.unwrap_or(sample);
        self.bytes_per_ms = Some(before + (sample - before) * Self::GAIN);
    }

    pub(crate) fn rate(&self) -> Rate {
        Rate::from_bps_f64(self.bytes_per_ms.unwrap_or(0.0) * 8e3)
    }
}
