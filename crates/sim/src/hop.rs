//! The last hop of a run, whatever it is: a cell, a trace, or nothing.

use std::sync::Arc;
use std::time::Duration;

use airpace_core::radio::{BitLayer, CarrierId, OwnRadio};
use airpace_core::{Bits, Bytes, Dci, DeviceId, Packet, PrbSet, RadioReport, Rate, Rnti, Streams, Time};
use airpace_path::cell::Cell;
use airpace_path::trace::{Trace, TraceLink};
use airpace_path::{ConfigError, Exit, Link};

use crate::scenario::Scenario;

/// One millisecond.
pub(crate) const MILLISECOND: Duration = Duration::from_millis(1);

/// The most PRBs that a carrier can be told to have: a trace with more chances in a millisecond is told short.
const WIDEST_CARRIER: u64 = 128;

/// RNTI of a trace's only device.
const TRACE_RNTI: Rnti = Rnti(61);

/// The last hop.
#[derive(Debug)]
pub(crate) enum LastHop {
    Cell(Box<Cell>),
    Trace(Box<TraceRadio>),
    Nothing,
}

impl LastHop {
    /// The last hop of a scenario whose trace, if it has one, was read.
    pub(crate) fn new(
        scenario: &Scenario,
        trace: Option<Arc<Trace>>,
        streams: &Streams,
    ) -> Result<LastHop, ConfigError> {
        if let Some(config) = &scenario.cell {
            return Ok(LastHop::Cell(Box::new(scenario.build_cell(config, streams)?)));
        }
        if let (Some(config), Some(trace)) = (&scenario.trace, trace) {
            let link = TraceLink::new(trace, &config.link).map_err(|error| error.within("trace.link"))?;
            return Ok(LastHop::Trace(Box::new(TraceRadio::new(link, config.telemetry))));
        }
        Ok(LastHop::Nothing)
    }

    /// Takes in a packet; `false` if there is nothing to cross.
    pub(crate) fn push(&mut self, now: Time, packet: Packet) -> bool {
        match self {
            LastHop::Cell(cell) => cell.push(now, packet),
            LastHop::Trace(trace) => trace.link.push(now, packet),
            LastHop::Nothing => return false,
        }
        true
    }

    pub(crate) fn pop(&mut self, now: Time) -> Option<Exit> {
        match self {
            LastHop::Cell(cell) => cell.pop(now),
            LastHop::Trace(trace) => trace.link.pop(now),
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

    pub(crate) fn base_delay(&self, bytes: Bytes) -> Duration {
        match self {
            LastHop::Cell(cell) => cell.base_delay(bytes),
            LastHop::Trace(trace) => trace.link.base_delay(bytes),
            LastHop::Nothing => Duration::ZERO,
        }
    }

    /// Bytes that wait here for a device.
    pub(crate) fn backlog_of(&self, device: DeviceId) -> Bytes {
        match self {
            LastHop::Cell(cell) => cell.backlog_of(device),
            LastHop::Trace(trace) => trace.link.backlog(),
            LastHop::Nothing => Bytes::ZERO,
        }
    }
}

/// A trace, and what a radio would tell of it: each millisecond is a subframe of one carrier that has a PRB for each
/// of the millisecond's delivery chances, own as far as packets used them, else idle.
#[derive(Debug)]
pub(crate) struct TraceRadio {
    pub(crate) link: TraceLink,
    pub(crate) has_telemetry: bool,
    used: Bytes,
}

impl TraceRadio {
    fn new(link: TraceLink, has_telemetry: bool) -> TraceRadio {
        TraceRadio { link, has_telemetry, used: Bytes::ZERO }
    }

    /// What the link can carry in the millisecond from `from` on; exact, whenever that is.
    pub(crate) fn capacity(&self, from: Time) -> Bytes {
        self.link.capacity_between(from, from + MILLISECOND)
    }

    /// The report of the millisecond that ends at `now`; `now` is whole milliseconds, one after the other.
    pub(crate) fn report(&mut self, now: Time) -> RadioReport {
        let start = now - MILLISECOND;
        let used = (self.link.used() - std::mem::replace(&mut self.used, self.link.used())).bits();
        let carrier_prbs = self.link.opportunities_in(start, now).min(WIDEST_CARRIER) as u16;
        let bits_per_prb = self.link.opportunity_bytes().bits().0;
        let prbs = PrbSet::run(0, carrier_prbs.min(used.0.div_ceil(bits_per_prb) as u16));
        let grant = Dci {
            rnti: TRACE_RNTI,
            prbs,
            mcs: [Some(0), None],
            tbs: [Bits(bits_per_prb * u64::from(prbs.len())), Bits::ZERO],
            layers: 1,
            ..Dci::default()
        };
        RadioReport {
            carrier: CarrierId(0),
            time: start,
            subframe_index: start.as_millis(),
            carrier_prbs,
            cfi: 1,
            dcis: if prbs.is_empty() { Vec::new() } else { vec![grant] },
            own: Some(OwnRadio {
                rnti: TRACE_RNTI,
                active: true,
                sinr_db: f64::NAN,
                bits_per_prb: bits_per_prb as f64,
                decoded: (!prbs.is_empty()).then_some(true),
                uplink_queue: None,
            }),
            layer: BitLayer::Transport,
        }
    }
}

/// What a cell could carry to a device, smoothed over the milliseconds.
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
