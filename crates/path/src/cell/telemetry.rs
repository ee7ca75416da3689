//! Telemetry: reports to a device that decodes the control channel, derived from the cell's record with delay and errors.
//!
//! The input is the cell's own record of a subframe. The output is a copy of this record with the configured errors,
//! and is available after the configured latency. Reports to one device are in order. Report buffers are reused, so
//! nothing is allocated after the start.
//!
//! Source: PBE-CC §5 (the decoder's errors and delays are the listener's, not the cell's)

use std::collections::VecDeque;
use std::time::Duration;

use airpace_core::tables::lte;
use airpace_core::tables::nr::{self, Allocation};
use airpace_core::{Bits, DeviceId, Direction, Draws, Time};
use airpace_event::Owner;
use airpace_radio::{BitLayer, CarrierId, Dci, DciFormat, OwnRadio, PrbSet, RadioReport, Rnti, Scope, Slot};

use super::config::TelemetryConfig;
use super::region::DataRegion;

/// The cell's own record of one subframe of one carrier.
#[derive(Debug)]
pub(super) struct Account {
    pub report: RadioReport,
    carrier_prbs: u16,
    /// The owner (user) of each DCI.
    pub owners: Vec<Owner>,
    /// The reserved MCS of each DCI, used if retransmissions do not contain their block size.
    pub reserved_mcs: Vec<[Option<u8>; 2]>,
}

impl Account {
    pub(super) fn new(carrier: CarrierId, carrier_prbs: u16) -> Account {
        let report = RadioReport {
            carrier,
            slot: Slot::subframe_of_lte(0),
            time: Time::ZERO,
            scope: Scope::Everyone,
            carrier_prbs: Some(carrier_prbs),
            cfi: None,
            symbols: None,
            dcis: Vec::new(),
            own: None,
            layer: BitLayer::Physical,
        };
        Account { report, carrier_prbs, owners: Vec::new(), reserved_mcs: Vec::new() }
    }

    /// Starts a new slot, which starts at `now`.
    pub(super) fn begin(&mut self, slot: Slot, now: Time, region: DataRegion) {
        self.report.time = now;
        self.report.slot = slot;
        (self.report.cfi, self.report.symbols) = match region {
            DataRegion::Lte { cfi } => (Some(cfi), None),
            DataRegion::Nr { symbols, .. } => (None, Some(symbols)),
        };
        self.report.dcis.clear();
        self.owners.clear();
        self.reserved_mcs.clear();
    }

    pub(super) fn add(&mut self, dci: Dci, owner: Owner, reserved_mcs: [Option<u8>; 2]) {
        self.report.dcis.push(dci);
        self.owners.push(owner);
        self.reserved_mcs.push(reserved_mcs);
    }
}

/// Reports to listening devices.
#[derive(Debug)]
pub(super) struct Telemetry {
    config: TelemetryConfig,
    /// Whose grants a listener receives: the control channel contains the grants of all users, a modem's log only the
    /// device's own grants.
    scope: Scope,
    listeners: Vec<Listener>,
    spare: Vec<RadioReport>,
    /// The report that was returned last; its buffer becomes free when the next report is popped.
    current: Option<RadioReport>,
}

#[derive(Debug)]
struct Listener {
    is_listening: bool,
    waiting: VecDeque<(Time, RadioReport)>,
    last_due: Time,
    draws: Draws,
}

impl Telemetry {
    pub(super) fn new(config: &TelemetryConfig, scope: Scope, draws: Vec<Draws>) -> Telemetry {
        let listener =
            |draws| Listener { is_listening: false, waiting: VecDeque::new(), last_due: Time::ZERO, draws };
        Telemetry {
            config: config.clone(),
            scope,
            listeners: draws.into_iter().map(listener).collect(),
            spare: Vec::new(),
            current: None,
        }
    }

    pub(super) fn set_listening(&mut self, device: usize, is_listening: bool) {
        let listener = &mut self.listeners[device];
        listener.is_listening = is_listening;
        if !is_listening {
            self.spare.extend(listener.waiting.drain(..).map(|(_, report)| report));
        }
    }

    pub(super) fn is_listening(&self, device: usize) -> bool {
        self.listeners[device].is_listening
    }

    pub(super) fn has_listeners(&self) -> bool {
        self.listeners.iter().any(|listener| listener.is_listening)
    }

    /// Time at which the next report is due.
    pub(super) fn poll_timeout(&self) -> Option<Time> {
        self.listeners.iter().filter_map(|listener| Some(listener.waiting.front()?.0)).min()
    }

    /// Returns the earliest report that is due at `now`. If several reports have this time, the report of the device
    /// with the lowest index.
    pub(super) fn pop(&mut self, now: Time) -> Option<(DeviceId, &mut RadioReport)> {
        let first = |listener: &Listener| Some(listener.waiting.front()?.0).filter(|&due| due <= now);
        let due = self.listeners.iter().enumerate().filter_map(|(device, l)| Some((first(l)?, device))).min();
        let (_, device) = due?;
        let (_, report) = self.listeners[device].waiting.pop_front()?;
        self.spare.extend(self.current.replace(report));
        Some((DeviceId(device as u16), self.current.as_mut()?))
    }

    /// Queues a report of a subframe for a listening device. `account` is the cell's record, `own` is the part about
    /// the device itself, and `heard_at` is the end of the subframe.
    pub(super) fn hear(&mut self, device: usize, heard_at: Time, account: &Account, own: OwnRadio) {
        let listener = &mut self.listeners[device];
        let config = &self.config;
        let truth = &account.report;
        let time_s = truth.time.as_secs_f64();
        if config
            .lost_carrier
            .iter()
            .any(|lost| lost.carrier == truth.carrier.0 && (lost.from_s..lost.until_s).contains(&time_s))
        {
            return;
        }
        let mut report =
            self.spare.pop().unwrap_or_else(|| RadioReport { dcis: Vec::new(), ..truth.clone() });
        let mut dcis = std::mem::take(&mut report.dcis);
        dcis.clear();
        let only = (self.scope == Scope::Own).then_some(Owner::Device(DeviceId(device as u16)));
        let draws = listener.draws.at(truth.slot.index, truth.carrier.0.into()).draws();
        copy(config, account, only, &draws, &mut dcis);
        report = RadioReport {
            carrier: truth.carrier,
            slot: truth.slot,
            time: truth.time,
            scope: self.scope,
            carrier_prbs: truth.carrier_prbs,
            cfi: truth.cfi,
            symbols: truth.symbols,
            dcis,
            own: Some(own),
            layer: truth.layer,
        };
        let mut latency_ms = config.latency_ms;
        if config.latency_jitter_ms > 0.0 {
            latency_ms += draws.at(LATENCY, 0).exponential(config.latency_jitter_ms);
        }
        let due = heard_at + Duration::from_nanos(libm::round(latency_ms * 1e6) as u64);
        listener.last_due = listener.last_due.max(due);
        listener.waiting.push_back((listener.last_due, report));
    }
}

/// First part of the address of a random number for a given listener, subframe and carrier: the purpose of the random
/// number.
const LATENCY: u64 = 0;
const MISSED: u64 = 1;
const FALSE: u64 = 2;

/// Copies the DCIs of a subframe: all DCIs, or only the DCIs of the owner `only`. Whether a DCI is missed depends on
/// its user, not on its position in the list.
fn copy(config: &TelemetryConfig, truth: &Account, only: Option<Owner>, draws: &Draws, dcis: &mut Vec<Dci>) {
    let sent = &truth.report.dcis;
    let owners = truth.owners.iter();
    for (index, ((dci, &reserved_mcs), owner)) in sent.iter().zip(&truth.reserved_mcs).zip(owners).enumerate()
    {
        if only.is_some_and(|only| only != *owner) {
            continue;
        }
        if config.missed_dci > 0.0 {
            let is_to_same = |other: &&Dci| other.rnti == dci.rnti && other.direction == dci.direction;
            let earlier = sent[..index].iter().filter(is_to_same).count() as u64;
            let whose = u64::from(dci.rnti.0) << 1 | u64::from(dci.direction == Direction::Uplink);
            if draws.at(MISSED, earlier << 32 | whose).chance(config.missed_dci) {
                continue;
            }
        }
        dcis.push(as_read(config, *dci, reserved_mcs));
    }
    // An uplink slot of NR has no control region.
    if config.false_dci_per_subframe > 0.0 && truth.report.symbols != Some(0) {
        let per_slot =
            config.false_dci_per_subframe / truth.report.slot.numerology.slots_per_subframe() as f64;
        for index in 1..=u64::from(draws.at(FALSE, 0).poisson(per_slot)) {
            let draws = draws.at(FALSE, index).draws();
            dcis.push(false_dci(truth.carrier_prbs, truth.report.symbols, &draws));
        }
    }
}

/// A false DCI, which no base station sent: noise that passed the decoder's checks. Its fields are therefore valid. `symbols`
/// is the number of data symbols of a slot of NR.
fn false_dci(carrier_prbs: u16, symbols: Option<u8>, draws: &Draws) -> Dci {
    let start = draws.at(0, 0).below(u64::from(carrier_prbs)) as u16;
    let len = 1 + draws.at(1, 0).below(u64::from(carrier_prbs - start)) as u16;
    let mcs = draws.at(2, 0).below(29) as u8;
    let tbs = match symbols {
        None => lte::McsTable::Qam64.tbs(mcs, len, 1),
        Some(symbols) => {
            let allocation =
                Allocation { n_prb: len, symbols, dmrs_res_per_prb: 12, overhead_res_per_prb: 0 };
            nr::McsTable::Qam64.tbs(mcs, &allocation, 1)
        }
    };
    let tbs = tbs.unwrap_or(Bits::ZERO);
    let of_technology = match symbols {
        None => Dci::default(),
        Some(_) => Dci { format: DciFormat::Nr11, symbols, offset_slots: Some(0), ..Dci::default() },
    };
    Dci {
        rnti: Rnti(61 + draws.at(3, 0).below(65_463) as u16),
        direction: Direction::Downlink,
        prbs: PrbSet::run(start, len),
        mcs: [Some(mcs), None],
        tbs: [tbs, Bits::ZERO],
        ndi: [Some(draws.at(4, 0).chance(0.5)), None],
        harq: Some(draws.at(5, 0).below(8) as u8),
        layers: 1,
        ..of_technology
    }
}

/// Modifies a DCI so that it has the content that a decoder returns.
fn as_read(config: &TelemetryConfig, mut dci: Dci, reserved_mcs: [Option<u8>; 2]) -> Dci {
    for (codeword, reserved_mcs) in reserved_mcs.into_iter().enumerate() {
        if dci.retransmission[codeword] && config.reserved_mcs_on_retransmission {
            dci.mcs[codeword] = reserved_mcs;
            dci.tbs[codeword] = Bits::ZERO;
        }
        dci.retransmission[codeword] &= !config.hide_retransmissions;
    }
    dci
}
