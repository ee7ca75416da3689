//! The configuration of a cell and its devices: the `[cell]` and `[device.radio]` tables of a scenario.

use serde::{Deserialize, Serialize};

use super::adaptation::{AdaptationConfig, CqiScope, GrantMcs};
use super::bler::{BlerConfig, Combining};
use super::channel::ChannelConfig;
use super::channel::blockage::{BeamConfig, BlockageConfig};
use uplink::UplinkConfig;

mod carrier;
mod dual_connectivity;
mod life_cycle;
mod nr;
pub mod uplink;
mod validate;

pub use carrier::{CarrierConfig, NrCarrier, Rat};
pub use dual_connectivity::{Bearer, DualConnectivityConfig, SplitBy, UplinkPath};
pub use life_cycle::{DrxConfig, RrcConfig};
pub use nr::{ConfiguredGrantConfig, NrConfig, SsbConfig};

/// One cell with up to five component carriers of LTE FDD or NR.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CellConfig {
    /// Radio access technology of each carrier: LTE or NR.
    pub rat: Rat,
    /// PRB pairs of each carrier of LTE: 6, 15, 25, 50, 75 or 100. If absent: 100.
    pub prbs: Option<u16>,
    /// Band of each carrier of NR, such as n78. It determines whether the carrier is FDD or TDD.
    ///
    /// Source: TS 38.101-1 §5.2, TS 38.101-2 §5.2
    pub band: Option<String>,
    /// Channel bandwidth of each carrier of NR in MHz; the number of PRBs follows from it. If absent: 20 in FDD bands and
    /// 100 in TDD bands, or the widest permitted bandwidth below.
    ///
    /// Source: TS 38.104 §5.3.5
    pub bandwidth_mhz: Option<u16>,
    /// Subcarrier spacing of each carrier of NR in kHz. If absent: 15 in FDD bands, 30 in TDD bands of FR1 and 120 in FR2.
    pub scs_khz: Option<u16>,
    /// TDD pattern of each carrier of NR: D, S and U are downlink, special and uplink slots. Two patterns that alternate
    /// are separated by a space. If absent: DDDSU.
    ///
    /// Source: TS 38.213 §11.1
    pub tdd: Option<String>,
    /// Downlink, guard and uplink symbols of a special slot of NR; 14 in total. If absent: [10, 2, 2].
    pub special_symbols: Option<[u8; 3]>,
    /// Number of carriers, 1…5.
    pub carriers: u8,
    /// Settings of single carriers, in order; carriers beyond the list use the cell's settings.
    pub carrier: Vec<CarrierConfig>,
    /// Carrier frequency in GHz. If absent: 1.94 for LTE, and the centre of the band for NR.
    pub frequency_ghz: Option<f64>,
    /// Antenna ports of carriers of LTE with cell-specific reference signals: 1, 2 or 4. If absent: 2.
    pub crs_ports: Option<u8>,
    /// OFDM symbols of the control region of carriers of LTE, 1…3. If absent, the number of symbols depends on the number
    /// of DCIs.
    pub cfi: Option<u8>,
    /// Scheduling policy: allocation of PRBs to users.
    pub scheduler: Policy,
    /// Averaging time of proportional fair in ms.
    pub pf_time_constant_ms: f64,
    /// The largest number of data users in one subframe of a carrier of LTE, or in one slot of a carrier of NR.
    pub max_users_per_subframe: u8,
    /// Time from a packet's arrival until it may be scheduled, in ms.
    pub enb_processing_ms: f64,
    /// Time from the end of a subframe until the device passes on the packets received in it, in ms.
    pub ue_processing_ms: f64,
    /// Follow ns-3's LENA where it departs from the standard, to compare results with LENA. This replaces the keys of
    /// CQI, MCS, HARQ combining and layer 2 headers that have different values in LENA.
    pub lena_compat: bool,
    /// What all carriers of NR have in common.
    pub nr: NrConfig,
    /// Hybrid ARQ.
    pub harq: HarqConfig,
    /// Radio link control.
    pub rlc: RlcConfig,
    /// Block errors.
    pub bler: BlerConfig,
    /// Channel reports and the choice of MCS.
    pub adaptation: AdaptationConfig,
    /// Activation of further carriers.
    pub aggregation: AggregationConfig,
    /// Devices on carriers of LTE and NR at the same time (EN-DC). Only cells with carriers of both have this table.
    pub dual_connectivity: Option<DualConnectivityConfig>,
    /// RRC states of devices without data.
    pub rrc: RrcConfig,
    /// Discontinuous reception.
    pub drx: DrxConfig,
    /// Interruption at a handover.
    pub handover: HandoverConfig,
    /// The uplink, from devices to the cell.
    pub uplink: UplinkConfig,
    /// Users that are not devices of the scenario.
    pub background: BackgroundConfig,
    /// Reports to a device that decodes the control channel.
    pub telemetry: TelemetryConfig,
}

impl Default for CellConfig {
    fn default() -> CellConfig {
        CellConfig {
            rat: Rat::Lte,
            prbs: None,
            band: None,
            bandwidth_mhz: None,
            scs_khz: None,
            tdd: None,
            special_symbols: None,
            carriers: 1,
            carrier: Vec::new(),
            frequency_ghz: None,
            crs_ports: None,
            cfi: None,
            scheduler: Policy::ProportionalFair,
            pf_time_constant_ms: 100.0,
            max_users_per_subframe: 8,
            enb_processing_ms: 1.0,
            ue_processing_ms: 1.0,
            lena_compat: false,
            nr: NrConfig::default(),
            harq: HarqConfig::default(),
            rlc: RlcConfig::default(),
            bler: BlerConfig::default(),
            adaptation: AdaptationConfig::default(),
            aggregation: AggregationConfig::default(),
            dual_connectivity: None,
            rrc: RrcConfig::default(),
            drx: DrxConfig::default(),
            handover: HandoverConfig::default(),
            uplink: UplinkConfig::default(),
            background: BackgroundConfig::default(),
            telemetry: TelemetryConfig::default(),
        }
    }
}

/// Allocation of the PRBs that remain after retransmissions and control users.
///
/// Source: Jalali, Padovani, Pankaj 2000 (proportional fair); Knopp, Humblet 1995 (max C/I)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// Every user with data gets an equal number of RBGs.
    RoundRobin,
    /// Each RBG goes to the user whose rate is highest relative to its recent average rate.
    #[default]
    ProportionalFair,
    /// Each RBG goes to the user whose rate is highest.
    MaxCi,
}

/// Hybrid ARQ.
///
/// Source: TS 36.321 §5.3.2, TS 36.213 §7.3
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HarqConfig {
    /// Maximum number of HARQ retransmissions of a transport block.
    ///
    /// Source: PBE-CC §3 ("repeats the retransmission at most three times")
    pub max_retransmissions: u8,
}

impl Default for HarqConfig {
    fn default() -> HarqConfig {
        HarqConfig { max_retransmissions: 3 }
    }
}

/// Radio link control and the headers of layer 2.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RlcConfig {
    /// Whether data is retransmitted by RLC after HARQ has failed.
    pub mode: RlcMode,
    /// Maximum time for which the receiver waits for a missing PDU in unacknowledged mode, in ms.
    ///
    /// Source: TS 36.322 §7.3. Chosen: 40 ms, above three HARQ rounds.
    pub t_reordering_ms: u32,
    /// Time from HARQ's last failure until RLC may send again in acknowledged mode, in ms.
    ///
    /// Chosen: the receiver's t-Reordering plus 8 ms for its STATUS.
    pub status_delay_ms: u32,
    /// PDCP header of each packet, in bytes.
    pub pdcp_header_bytes: u32,
    /// Fixed part of the RLC header of each PDU, in bytes.
    pub rlc_header_bytes: u32,
    /// MAC header of each transport block, in bytes.
    pub mac_header_bytes: u32,
    /// In acknowledged mode, the sender requests a STATUS with the last PDU in its queue, and at least once per this
    /// number of PDUs (pollPDU).
    ///
    /// Source: TS 36.322 §5.2.2.1. Chosen: 128, as on the bearers on which handsets are tested (TS 36.508).
    pub poll_pdus: u32,
    /// In acknowledged mode, the sender also requests a STATUS at least once per this many bytes (pollByte).
    ///
    /// Source: TS 36.322 §5.2.2.1. Chosen: 125 kB, as on the bearers for `poll_pdus`.
    pub poll_bytes: u64,
    /// Minimum time between two STATUS PDUs (t-StatusProhibit), in ms.
    ///
    /// Source: TS 36.322 §5.2.3. Chosen: 60 ms, as on the bearers for `poll_pdus`.
    pub status_prohibit_ms: u32,
    /// Whether the transport block of a STATUS contains nothing else, as in ns-3's LENA; otherwise the block also
    /// contains data.
    pub status_alone: bool,
}

impl Default for RlcConfig {
    fn default() -> RlcConfig {
        RlcConfig {
            mode: RlcMode::Acknowledged,
            t_reordering_ms: 40,
            status_delay_ms: 48,
            pdcp_header_bytes: 2,
            rlc_header_bytes: 2,
            mac_header_bytes: 3,
            poll_pdus: 128,
            poll_bytes: 125_000,
            status_prohibit_ms: 60,
            status_alone: false,
        }
    }
}

/// Modes of RLC for data.
///
/// Source: TS 36.322 §4.2.1
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RlcMode {
    /// RLC retransmits data after HARQ has failed: no data is lost.
    #[default]
    Acknowledged,
    /// Data is lost if HARQ fails.
    Unacknowledged,
}

/// Activation and deactivation of a device's further carriers. The decision depends on the device's load and queue, not
/// on its flows.
///
/// Source: PBE-CC §3 Fig. 2 for the times; the rule itself is the operator's
///
/// Chosen: TS 36.321 §5.13 leaves activation to the network. Here a device gets a further carrier when it uses most of
/// the PRBs that the scheduler could assign to it on its present carriers: the PRBs that other users leave, or an equal
/// share among all users with data, whichever is more. A sender without a standing queue therefore also gets further
/// carriers, even if other devices are active, like the paper's own sender (PBE-CC Fig. 13).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AggregationConfig {
    /// Minimum share of the assignable PRBs that a device must use, on average over `on_ms`.
    pub on_share: f64,
    /// Alternative condition: bytes that must be queued for the device throughout `on_ms`.
    pub on_queue_bytes: u64,
    /// Duration for which either condition must hold, in ms.
    pub on_ms: u32,
    /// Time from the decision until the carrier carries data, in ms.
    ///
    /// Source: TS 36.133 §7.7.2 (at most 24 ms for a known carrier)
    pub activation_delay_ms: u32,
    /// A carrier is deactivated if, for `off_ms`, the device's PRBs would fill less than this share of the PRBs that
    /// the other active carriers offer the device.
    pub off_share: f64,
    /// Duration for which the condition of `off_share` must hold, in ms.
    pub off_ms: u32,
    /// Time without an assignment after which a carrier is deactivated (sCellDeactivationTimer), in ms.
    ///
    /// Source: TS 36.321 §5.13, TS 36.331 (20…1280 ms)
    pub deactivation_timer_ms: u32,
    /// Whether every carrier that a device can use is active for the whole run.
    pub always_active: bool,
}

impl Default for AggregationConfig {
    fn default() -> AggregationConfig {
        AggregationConfig {
            on_share: 0.85,
            on_queue_bytes: 50_000,
            on_ms: 120,
            activation_delay_ms: 24,
            off_share: 0.7,
            off_ms: 200,
            deactivation_timer_ms: 320,
            always_active: false,
        }
    }
}

/// Handover between cells of the same kind: the device's data is interrupted, then restarts on a cell with the same
/// properties.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HandoverConfig {
    /// Shortest interruption in ms.
    ///
    /// Source: TR 36.881 §5.2, TS 36.133 §5.1.2.1
    pub interruption_min_ms: f64,
    /// Longest interruption in ms.
    pub interruption_max_ms: f64,
}

impl Default for HandoverConfig {
    fn default() -> HandoverConfig {
        HandoverConfig { interruption_min_ms: 30.0, interruption_max_ms: 50.0 }
    }
}

/// Users that are not devices of the scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BackgroundConfig {
    /// A measured hour whose values are the defaults; single keys override them.
    pub hour: Option<Hour>,
    /// Arrivals per second, on each carrier, of users that only exchange control messages.
    pub control_per_second: Option<f64>,
    /// Number of users per carrier that only exchange control messages; they appear one after the other.
    pub population: Option<u16>,
    /// Demand of background data users as a share of the carrier's PRBs, 0…1.
    pub load: Option<f64>,
    /// Mean amount of data of one background user, in kB (exponentially distributed).
    pub mean_kilobytes: f64,
    /// Rate at which a background user's data arrives, in Mbit/s; 0: all data arrives immediately.
    pub rate_mbps: f64,
    /// Mean SINR of background users in dB.
    pub sinr_mean_db: f64,
    /// Standard deviation of the SINR of background users in dB.
    pub sinr_deviation_db: f64,
    /// Spatial layers of background users.
    pub layers: u8,
    /// Number of users with an infinite queue on each carrier.
    pub full_buffer: u16,
}

impl Default for BackgroundConfig {
    /// By default, there are no background users.
    ///
    /// Chosen: 20 Mbit/s and 500 kB per user. With two layers at 10 ± 6 dB, three quarters of the users are below half
    /// of the peak rate, as measured (PBE-CC SIGCOMM §6.2).
    fn default() -> BackgroundConfig {
        BackgroundConfig {
            hour: None,
            control_per_second: None,
            population: None,
            load: None,
            mean_kilobytes: 500.0,
            rate_mbps: 20.0,
            sinr_mean_db: 10.0,
            sinr_deviation_db: 6.0,
            layers: 2,
            full_buffer: 0,
        }
    }
}

/// Hours of the day whose users were measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hour {
    /// A night hour, with a few control messages and almost no data.
    Idle,
    /// A daytime hour, with about 15 users in 40 ms, nearly all of which only exchange control messages.
    Busy,
}

impl BackgroundConfig {
    /// Appearances of control-only users per second.
    ///
    /// Source: PBE-CC §4.2.1 (15 users in 40 ms before the filter, 1.3 after it); idle: Chosen.
    pub fn control_per_second(&self) -> f64 {
        self.control_per_second.unwrap_or(match self.hour {
            Some(Hour::Busy) => 340.0,
            Some(Hour::Idle) => 30.0,
            None => 0.0,
        })
    }

    /// Number of different control-only users, which appear one after the other.
    ///
    /// Source: PBE-CC SIGCOMM §6.2 (181 users per hour; 13 at the quietest); PBE-CC §4.2.1 (68 % are control only)
    pub fn population(&self) -> u16 {
        self.population.unwrap_or(match self.hour {
            Some(Hour::Busy) => 123,
            Some(Hour::Idle) => 9,
            None => 60,
        })
    }

    /// Demand of data users as a share of the PRBs.
    ///
    /// Source: PBE-CC §4.2.1 for what it must come to: 1.3 users in 40 ms that pass the filter, a flow's own included.
    /// Chosen: 0.12 in few fast downloads gives that result, and leaves fewer than four control messages in over 95 %
    /// of the subframes while a flow is running.
    pub fn load(&self) -> f64 {
        self.load.unwrap_or(match self.hour {
            Some(Hour::Busy) => 0.12,
            Some(Hour::Idle) => 0.01,
            None => 0.0,
        })
    }
}

/// Reports to a device that decodes the control channel, with decoding errors. By default the device receives all
/// messages, immediately and without errors.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TelemetryConfig {
    /// Probability that a DCI is missed.
    pub missed_dci: f64,
    /// Mean number of false DCIs per subframe, which no base station sent.
    pub false_dci_per_subframe: f64,
    /// Time from the end of a subframe until its report, in ms.
    pub latency_ms: f64,
    /// Mean of an exponentially distributed addition to `latency_ms`, in ms; reports stay in order.
    pub latency_jitter_ms: f64,
    /// Whether retransmissions have MCS 29…31, which do not contain the transport block size.
    pub reserved_mcs_on_retransmission: bool,
    /// Whether retransmissions are not marked, so that only the NDI identifies them.
    pub hide_retransmissions: bool,
    /// Carriers whose reports are missing for an interval.
    pub lost_carrier: Vec<LostCarrier>,
}

/// A carrier that a device cannot decode for an interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LostCarrier {
    /// Index of the carrier in the cell.
    pub carrier: u8,
    /// Start of the interval, in s.
    pub from_s: f64,
    /// End of the interval, in s.
    pub until_s: f64,
}

/// The radio side of one device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DeviceRadioConfig {
    /// The channel between cell and device.
    pub channel: ChannelConfig,
    /// Blockage of the path between cell and device in both directions: on all carriers, or in cells with carriers of FR2 on
    /// those only; absent: none.
    pub blockage: Option<BlockageConfig>,
    /// Changes of the beam between cell and device, on the same carriers; absent: none.
    pub beam: Option<BeamConfig>,
    /// Indices of the cell's carriers that the device can use, its primary carrier first; empty: all carriers, in the
    /// cell's order.
    pub carriers: Vec<u8>,
    /// Whether the device uses 256QAM.
    pub qam256: bool,
    /// Size of the device's queue in the base station, in bytes.
    ///
    /// Chosen: 6 MB; operators' queues hold seconds of data and have no active queue management.
    pub queue_bytes: u64,
    /// Times at which the device changes cells, in s.
    pub handover_s: Vec<f64>,
    /// Spans `[from, until]` in s in which NR does not cover the device, in a cell with carriers of LTE and NR. The device
    /// is handed over from NR to LTE at the start of a span, and back at its end.
    pub without_nr_s: Vec<[f64; 2]>,
}

impl Default for DeviceRadioConfig {
    fn default() -> DeviceRadioConfig {
        DeviceRadioConfig {
            channel: ChannelConfig::default(),
            blockage: None,
            beam: None,
            carriers: Vec::new(),
            qam256: false,
            queue_bytes: 6_000_000,
            handover_s: Vec::new(),
            without_nr_s: Vec::new(),
        }
    }
}

impl CellConfig {
    /// Antenna ports of carriers of LTE with cell-specific reference signals.
    pub fn crs_ports(&self) -> u8 {
        self.crs_ports.unwrap_or(2)
    }

    /// The configuration with all changes that `lena_compat` implies; an unchanged copy if `lena_compat` is off.
    ///
    /// Source: our measurements of ns-3.37
    pub(super) fn resolved(&self) -> CellConfig {
        let mut config = self.clone();
        config.adaptation.antenna_ports = config.crs_ports();
        if config.lena_compat {
            config.adaptation.lena_compat = true;
            config.adaptation.cqi_scope = match config.scheduler {
                Policy::RoundRobin => CqiScope::Wideband,
                Policy::ProportionalFair | Policy::MaxCi => CqiScope::Subband,
            };
            // A report is sent in every subframe.
            config.adaptation.cqi_period_ms = 1;
            config.adaptation.grant_mcs = GrantMcs::WorstRbg;
            config.bler.implementation_loss_db = 0.0;
            config.bler.combining = Combining::IncrementalRedundancy;
            config.bler.by_code_block = true;
            config.rlc.mac_header_bytes = 0;
            if config.rlc.mode == RlcMode::Acknowledged {
                // Every data PDU has the header of a segment and polls; a STATUS has a separate transmission opportunity.
                config.rlc.rlc_header_bytes = 4;
                config.rlc.poll_pdus = 1;
                config.rlc.status_prohibit_ms = 10;
                config.rlc.status_alone = true;
            }
            config.pf_time_constant_ms = 99.0;
            config.aggregation.always_active = true;
            config.cfi = Some(1);
        }
        config
    }
}
