//! Composer of log packets: the packets that a modem would log, made from a device's own radio reports.
//!
//! ```text
//! RadioReport (its own grants, SINR, whether a block was received)
//!    ├─▶ 0xB130  DCIs of a subframe, at once
//!    ├─▶ 0xB173  results of downlink grants, in batches
//!    ├─▶ 0xB139  uplink transmissions, in batches
//!    ├─▶ 0xB193  signal measurements, every 10 ms
//!    ├─▶ 0xB883  uplink transmissions of NR, in batches
//!    └─▶ 0xB888  counters of downlink blocks of NR, every 100 ms
//! ```
//!
//! The first four packets are about carriers of LTE. On NR, no public layout contains the DCIs or the single blocks of the
//! downlink, so the grants of the downlink cannot be read back: the packets contain only their sums.
//!
//! Versions and intervals of the packets are those of recorded phones. [`grant`](crate::grant) and [`kpi`](crate::kpi)
//! read the values of the reports back from the packets.

mod dci;
mod nr;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use airpace_core::tables::{Modulation, lte};
use airpace_core::{Bits, Direction, Time};
use airpace_radio::{CarrierId, Dci, DciFormat, RadioReport};

use crate::grant::UPLINK_DELAY;
use crate::layout::{Fill, Version};
use crate::log;
use crate::packet::LogCode;

/// Properties of the cell and the modem that reports do not contain.
#[derive(Clone, Debug, PartialEq)]
pub struct ComposeOptions {
    /// Physical cell id of the first carrier; further carriers have consecutive ids.
    pub physical_cell: u16,
    /// EARFCN of the first carrier; further carriers have consecutive EARFCNs.
    pub earfcn: u32,
    /// Antenna ports of the cell: 2 or 4.
    pub ports: u8,
    /// Maximum number of records in a packet of the shared channels.
    pub batch: usize,
    /// Maximum time for which the first record of a batch waits.
    pub batch_for: Duration,
    /// Interval of signal measurements.
    pub measures_every: Duration,
    /// Power of noise and interference per subcarrier, in dBm. RSRP is this power plus the SINR.
    pub noise_dbm: f64,
}

impl Default for ComposeOptions {
    fn default() -> ComposeOptions {
        ComposeOptions {
            physical_cell: 1,
            earfcn: 1_850,
            ports: 2,
            // Source: our measurement of recorded phones: 0xB173 has 25 records at most and comes every 44 ms
            batch: 25,
            batch_for: Duration::from_millis(44),
            // Source: our measurement of recorded phones: 0xB193 comes every 10 ms
            measures_every: Duration::from_millis(10),
            // Chosen: -132 dBm of thermal noise in 15 kHz, 7 dB noise figure of the receiver, 5 dB of interference from
            // other cells.
            noise_dbm: -120.0,
        }
    }
}

/// A composed log packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Composed {
    /// Time at which the modem sends the packet.
    pub at: Time,
    /// Log code of the packet.
    pub code: LogCode,
    /// The content of the packet.
    pub payload: Vec<u8>,
}

/// Composes log packets.
#[derive(Clone, Debug)]
pub struct Composer {
    options: ComposeOptions,
    /// Carriers in the order of their first report; the first is the primary carrier.
    carriers: Vec<CarrierId>,
    /// Block in each HARQ process; the key is direction, carrier, process and codeword.
    processes: BTreeMap<(Direction, usize, Option<u8>, usize), Carried>,
    down: Batch,
    up: Batch,
    /// Time of the next signal measurement of each carrier.
    measures: BTreeMap<usize, Time>,
    /// Packets about carriers of NR.
    nr: nr::Nr,
    /// Time up to which the modem has sent its packets.
    now: Time,
}

/// Block in a HARQ process.
#[derive(Clone, Copy, Debug)]
struct Carried {
    bits: Bits,
    modulation: Modulation,
    /// Number of retransmissions of the block.
    again: u8,
}

/// Records of a packet that is not complete yet.
#[derive(Clone, Debug, Default)]
struct Batch {
    records: Vec<Fill>,
    since: Time,
}

/// Time from the end of a subframe to the first packet about it.
///
/// Chosen: the modem decodes while the next subframe is on the air.
const DECODES_IN: Duration = Duration::from_millis(1);
/// Length of a block's checksum, which the sizes in 0xB173 include (bytes).
const CHECKSUM_BYTES: u64 = 3;
/// Maximum number of carriers, because log packets cannot contain more.
const MAX_CARRIERS: usize = 3;

const B130: LogCode = LogCode(0xB130);
const B139: LogCode = LogCode(0xB139);
const B173: LogCode = LogCode(0xB173);
const B193: LogCode = LogCode(0xB193);

impl Composer {
    /// A composer without any report.
    pub fn new(options: ComposeOptions) -> Composer {
        Composer {
            options,
            carriers: vec![],
            processes: BTreeMap::new(),
            down: Batch::default(),
            up: Batch::default(),
            measures: BTreeMap::new(),
            nr: nr::Nr::default(),
            now: Time::ZERO,
        }
    }

    /// Log codes of the packets that a composer makes.
    pub fn codes() -> [LogCode; 6] {
        [B130, B139, B173, B193, nr::B883, nr::B888]
    }

    /// Processes a report of one carrier and slot that contains only the device's own grants. Calls `say` for each
    /// packet that the modem sends up to now, in order of time. Reports must arrive in order of time. Reports of a
    /// fourth carrier of LTE and of a ninth carrier of NR are ignored, because the packets cannot contain it.
    pub fn push(&mut self, report: &RadioReport, mut say: impl FnMut(Composed)) {
        // A slot of NR ends before a subframe of LTE that started at the same time.
        let now = (report.time + report.slot.numerology.slot_duration() + DECODES_IN).max(self.now);
        self.now = now;
        self.flush(now, &mut say);
        if nr::is_nr(report) {
            self.nr.push(report, now);
            return self.flush_full(now, &mut say);
        }
        let Some(carrier) = carrier_number(&mut self.carriers, report.carrier, MAX_CARRIERS) else { return };
        if !report.dcis.is_empty() {
            say(Composed { at: now, code: B130, payload: self.control_channel(report, carrier) });
        }
        for dci in &report.dcis {
            match dci.direction {
                Direction::Downlink => {
                    let record = self.received(report, carrier, dci);
                    self.down.add(now, record);
                }
                Direction::Uplink => {
                    let record = self.sent(report, carrier, dci);
                    self.up.add(now, record);
                }
            }
        }
        let active = report.own.as_ref().filter(|own| own.active);
        if let Some(sinr_db) = active.and_then(|own| own.sinr_db) {
            let due = self.measures.entry(carrier).or_insert(report.time);
            if *due <= report.time {
                *due = report.time + self.options.measures_every;
                let payload = self.signal(report, carrier, sinr_db);
                say(Composed { at: now, code: B193, payload });
            }
        }
        self.flush_full(now, &mut say);
    }

    /// Sends the incomplete batches after the last report.
    pub fn finish(&mut self, mut say: impl FnMut(Composed)) {
        self.flush(Time::NEVER, &mut say);
    }

    /// Sends the batches whose waiting time has expired by `now`.
    fn flush(&mut self, now: Time, say: &mut impl FnMut(Composed)) {
        let due = |batch: &Batch| batch.since + self.options.batch_for;
        let is_due = |batch: &Batch| !batch.records.is_empty() && due(batch) <= now;
        let (down, up) = (is_due(&self.down), is_due(&self.up));
        let at = |batch: &Batch| due(batch).min(now);
        let (down, up) = (down.then(|| at(&self.down)), up.then(|| at(&self.up)));
        let of_nr = self.nr.due(now, &self.options);
        self.say_batches(down, up, of_nr, say);
    }

    fn flush_full(&mut self, now: Time, say: &mut impl FnMut(Composed)) {
        let is_full = |batch: &Batch| batch.records.len() >= self.options.batch;
        let (down, up) = (is_full(&self.down).then_some(now), is_full(&self.up).then_some(now));
        let of_nr = self.nr.full(now, &self.options).into_iter().collect();
        self.say_batches(down, up, of_nr, say);
    }

    /// Sends the batches of LTE that are due, together with the packets about NR.
    fn say_batches(
        &mut self,
        down: Option<Time>,
        up: Option<Time>,
        of_nr: Vec<Composed>,
        say: &mut impl FnMut(Composed),
    ) {
        let mut said = of_nr;
        if let Some(at) = down {
            let fill = Fill::new().parts("records", std::mem::take(&mut self.down.records));
            said.push(Composed { at, code: B173, payload: written(B173, Version::Single(36), fill) });
        }
        if let Some(at) = up {
            let fill = Fill::new()
                .number("serving_cell_id", self.options.physical_cell)
                .parts("records", std::mem::take(&mut self.up.records));
            said.push(Composed { at, code: B139, payload: written(B139, Version::Single(102), fill) });
        }
        said.sort_by_key(|composed| composed.at);
        said.into_iter().for_each(say);
    }

    /// 0xB130: the DCIs of a subframe.
    fn control_channel(&self, report: &RadioReport, carrier: usize) -> Vec<u8> {
        let hypotheses = report.dcis.iter().filter_map(|dci| {
            let (word, bits) = dci::write(dci, report.carrier_prbs?)?;
            let (format, verdict) = match dci.format {
                DciFormat::F0 => (0u8, 1u8),
                DciFormat::F1 => (1, 2),
                DciFormat::F1A => (2, 3),
                DciFormat::F2 => (6, 6),
                DciFormat::F2A => (7, 6),
                DciFormat::F1B | DciFormat::F1C | DciFormat::F1D | DciFormat::F2B => return None,
                DciFormat::Nr00 | DciFormat::Nr01 | DciFormat::Nr10 | DciFormat::Nr11 => return None,
            };
            Some(
                Fill::new()
                    .bytes("payload", &word.to_le_bytes())
                    // Reports do not contain the aggregation level. A weak device gets eight CCEs, a device with good
                    // reception gets one or two CCEs.
                    .number("aggregation_level", 1u8)
                    .number("search_space_type", 1u8)
                    .number("dci_format", format)
                    .number("payload_size", bits + crate::grant::dci::CHECKSUM_BITS)
                    .number("tail_match", 1u8)
                    .number("prune_status", verdict),
            )
        });
        let width =
            lte::BANDWIDTH_PRBS.iter().position(|prbs| Some(*prbs) == report.carrier_prbs).unwrap_or(0);
        let fill = Fill::new()
            .number("subframe_number", report.slot.subframe() % 10)
            .number("system_frame_number", report.slot.subframe() / 10 % 1_024)
            .number("band_width_mhz", width as u64)
            .number("num_enb_antennas", if self.options.ports == 4 { 2u8 } else { 1 })
            .number("carrier_index", carrier as u64)
            .parts("hypotheses", hypotheses.collect());
        written(B130, Version::Single(101), fill)
    }

    /// A record of 0xB173: reception of one subframe.
    fn received(&mut self, report: &RadioReport, carrier: usize, dci: &Dci) -> Fill {
        let is_received = report.own.as_ref().is_some_and(|own| own.decoded == Some(true));
        let prbs = u64::from(dci.prbs.len());
        let count = dci.mcs.iter().flatten().count();
        let layers_each = (usize::from(dci.layers) / count.max(1)).max(1) as u8;
        let blocks = (0..2).filter_map(|codeword| {
            let mcs = dci.mcs[codeword]?;
            let carried = self.carried(carrier, dci, codeword, |bits| {
                let has_size = |table: &lte::McsTable| {
                    (1..=layers_each.max(2))
                        .any(|layers| table.tbs(mcs, dci.prbs.len(), layers) == Some(bits))
                };
                let tables = [lte::McsTable::Qam64, lte::McsTable::Qam256];
                let table = tables.into_iter().find(has_size).unwrap_or(lte::McsTable::Qam64);
                table.mcs(mcs).map(|row| row.modulation)
            });
            Some(
                Fill::new()
                    .number("harq_id", dci.harq.unwrap_or(0))
                    .number("rv", dci.rv[codeword].unwrap_or(0))
                    .number("ndi", dci.ndi[codeword].unwrap_or(false))
                    .number("crc_result", is_received)
                    .number("tb_index", codeword as u64)
                    .number("tb_size", carried.bits.bytes().0 + CHECKSUM_BYTES)
                    .number("mcs", mcs)
                    .number("num_rbs", prbs)
                    .number("modulation_type", carried.modulation.bits_per_symbol() as u64),
            )
        });
        let blocks = blocks.collect();
        Fill::new()
            .number("subframe_num", report.slot.subframe() % 10)
            .number("frame_num", report.slot.subframe() / 10 % 1_024)
            .number("num_rbs", prbs)
            .number("num_layers", dci.layers)
            .number("serving_cell_index", carrier as u64)
            .parts("transport_blocks", blocks)
    }

    /// A record of 0xB139: an uplink transmission, four subframes after its grant.
    fn sent(&mut self, report: &RadioReport, carrier: usize, dci: &Dci) -> Fill {
        let mcs = dci.mcs[0].unwrap_or(0);
        let row = lte::uplink_mcs(mcs);
        let carried = self.carried(carrier, dci, 0, |_| Some(row?.initial?.0));
        let order = match carried.modulation {
            Modulation::Qpsk => 1u8,
            Modulation::Qam16 => 2,
            Modulation::Qam64 | Modulation::Qam256 => 3,
        };
        let (first, prbs) = (dci.prbs.runs().next().map_or(0, |(first, _)| first), dci.prbs.len());
        // Twelve of a subframe's fourteen symbols carry data in the uplink.
        let coded = f64::from(prbs) * 12.0 * 12.0 * f64::from(carried.modulation.bits_per_symbol());
        let code_rate = if coded > 0.0 { (carried.bits.0 + 24) as f64 / coded } else { 0.0 };
        Fill::new()
            .number("current_sfn_sf", (report.slot.subframe() + UPLINK_DELAY) % 10_240)
            .number("carrier_index", carrier as u64)
            .number("re_tx_index", carried.again.min(31))
            .number("redund_ver", row.map_or(0, |row| row.rv))
            .number("start_rb_slot_0", first)
            .number("start_rb_slot_1", first)
            .number("num_of_rb", prbs)
            .number("pusch_tb_size", carried.bits.bytes().0)
            .real("coding_rate", code_rate.min(1.0))
            .number("pusch_mod_order", order)
    }

    /// The block of a grant. A retransmission has the size and modulation of its first transmission.
    fn carried(
        &mut self,
        carrier: usize,
        dci: &Dci,
        codeword: usize,
        modulation: impl FnOnce(Bits) -> Option<Modulation>,
    ) -> Carried {
        let process = (dci.direction, carrier, dci.harq, codeword);
        let before = self.processes.get(&process).copied();
        let bits = dci.tbs[codeword];
        let carried = match before.filter(|_| dci.retransmission[codeword]) {
            Some(before) => Carried { again: before.again.saturating_add(1), ..before },
            None => Carried { bits, modulation: modulation(bits).unwrap_or(Modulation::Qpsk), again: 0 },
        };
        self.processes.insert(process, carried);
        carried
    }

    /// 0xB193: the signal of the serving cell.
    fn signal(&self, report: &RadioReport, carrier: usize, sinr_db: f64) -> Vec<u8> {
        let sinr = libm::pow(10.0, sinr_db / 10.0);
        let rsrp = (self.options.noise_dbm + sinr_db).clamp(-140.0, -44.0);
        // RSSI is the power of the cell and of the noise in N PRBs, for a cell that transmits in all of its
        // subcarriers.
        let per_prb = 10.0 * libm::log10(12.0 * (1.0 + 1.0 / sinr.max(1e-3)));
        let rssi = rsrp + per_prb + 10.0 * libm::log10(f64::from(report.carrier_prbs.unwrap_or(0).max(1)));
        // Source: TS 36.214 §5.1.3
        let rsrq = (-per_prb).clamp(-30.0, 0.0);
        let snr = sinr_db.clamp(-20.0, 30.0);
        let mut cell = Fill::new()
            .number("physical_cell_id", (u64::from(self.options.physical_cell) + carrier as u64) % 504)
            .number("serving_cell_index", carrier as u64)
            .number("is_serving_cell", 1u8)
            .number("current_sfn", report.slot.subframe() / 10 % 1_024)
            .number("current_subframe_number", report.slot.subframe() % 10);
        for name in ["rsrp_rx_0", "rsrp_rx_1", "rsrp", "filtered_rsrp"] {
            cell = cell.real(name, rsrp);
        }
        for name in ["rsrq_rx_0", "rsrq_rx_1", "rsrq", "filtered_rsrq"] {
            cell = cell.real(name, rsrq);
        }
        for name in ["rssi_rx_0", "rssi_rx_1", "rssi"] {
            cell = cell.real(name, rssi.clamp(-110.0, 0.0));
        }
        for name in ["ftl_snr_rx_0", "ftl_snr_rx_1"] {
            cell = cell.real(name, snr);
        }
        let subpacket = Fill::new()
            .number("subpacket_id", 25u8)
            .number("subpacket_version", 36u8)
            .number("e_arfcn", u64::from(self.options.earfcn) + carrier as u64)
            .number("valid_rx", 3u8)
            .parts("cells", vec![cell]);
        written(B193, Version::Single(1), Fill::new().parts("subpackets", vec![subpacket]))
    }
}

impl Batch {
    fn add(&mut self, now: Time, record: Fill) {
        if self.records.is_empty() {
            self.since = now;
        }
        self.records.push(record);
    }
}

/// The number of a carrier in packets: its place in `known`, the carriers in the order of their first report. `None` for a
/// carrier beyond `most`, which packets cannot contain.
fn carrier_number(known: &mut Vec<CarrierId>, carrier: CarrierId, most: usize) -> Option<usize> {
    let number = known.iter().position(|other| *other == carrier).unwrap_or(known.len());
    if number >= most {
        return None;
    }
    if number == known.len() {
        known.push(carrier);
    }
    Some(number)
}

/// The bytes of a packet.
fn written(code: LogCode, version: Version, fill: Fill) -> Vec<u8> {
    let code = log::code(code).expect("the packets that are made have layouts");
    code.write(version, fill).expect("what a report says has room in its packet")
}
