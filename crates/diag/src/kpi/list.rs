//! List of KPIs, in the order of the protocol layers.

use super::Kind::{Event, Level, Share, Total, Wait};
use super::Layer::{Mac, Nas, Pdcp, Phy, Rlc, Rrc};
use super::Scope::{Bearer, Carrier, Cell, Radio};
use super::{Kind, Kpi, Layer, Scope};

/// List of all metrics of a modem that can be selected by name. Any other field of a log packet can be selected by its
/// path: see [`Wanted`](super::Wanted).
#[rustfmt::skip]
pub static KPIS: &[Kpi] = &[
    // Reception of the serving cell.
    kpi("lte.rsrp", "dBm", Phy, Carrier, Level, "Power of the serving cell's reference signal, all antennas combined."),
    kpi("lte.rsrp.rx0", "dBm", Phy, Carrier, Level, "Power of the serving cell's reference signal at the first antenna."),
    kpi("lte.rsrp.rx1", "dBm", Phy, Carrier, Level, "Power of the serving cell's reference signal at the second antenna."),
    kpi("lte.rsrp.filtered", "dBm", Phy, Carrier, Level, "Power of the serving cell's reference signal, smoothed by the modem."),
    kpi("lte.rsrq", "dB", Phy, Carrier, Level, "Quality of the serving cell's reference signal: its share of the total received power."),
    kpi("lte.rsrq.filtered", "dB", Phy, Carrier, Level, "Quality of the serving cell's reference signal, smoothed by the modem."),
    kpi("lte.rssi", "dBm", Phy, Carrier, Level, "Total power received on the carrier."),
    kpi("lte.snr", "dB", Phy, Carrier, Level, "Signal to noise of the serving cell at the antenna with the best reception."),
    kpi("lte.snr.rx0", "dB", Phy, Carrier, Level, "Signal to noise of the serving cell at the first antenna."),
    kpi("lte.snr.rx1", "dB", Phy, Carrier, Level, "Signal to noise of the serving cell at the second antenna."),
    kpi("lte.sir", "dB", Phy, Carrier, Level, "Signal to interference that the modem expects."),
    kpi("lte.neighbor.pci", "", Phy, Cell, Event, "Physical identity of a neighbouring cell on the same frequency."),
    kpi("lte.neighbor.rsrp", "dBm", Phy, Cell, Event, "Power of a neighbouring cell's reference signal."),
    kpi("lte.neighbor.rsrq", "dB", Phy, Cell, Event, "Quality of a neighbouring cell's reference signal."),
    kpi("lte.rlm.out_of_sync_bler", "%", Phy, Radio, Level, "Estimated block error rate of the control channel, for the decision that the link is lost."),
    kpi("lte.rlm.in_sync_bler", "%", Phy, Radio, Level, "Estimated block error rate of the control channel, for the decision that the link is regained."),

    // Channel state reports of the phone.
    kpi("lte.cqi", "", Phy, Carrier, Level, "Channel quality that the phone reports for the whole band, first codeword, 0 to 15."),
    kpi("lte.cqi.second", "", Phy, Carrier, Level, "Channel quality that the phone reports for the whole band, second codeword, 0 to 15."),
    kpi("lte.ri", "", Phy, Carrier, Level, "Spatial layers that the phone requests."),
    kpi("lte.pmi", "", Phy, Carrier, Level, "Precoding that the phone requests."),
    kpi("lte.transmission_mode", "", Phy, Carrier, Level, "Transmission mode for which the phone reports: a number of the modem's list."),

    // Grants and transport blocks of the downlink.
    kpi("lte.dl.tb_bytes", "byte", Phy, Carrier, Event, "Size of a transport block for this phone, whether it was received correctly or not."),
    kpi("lte.dl.prb", "", Phy, Carrier, Event, "Resource blocks that were granted in a subframe."),
    kpi("lte.dl.mcs", "", Phy, Carrier, Event, "Modulation and coding scheme of a transport block, 0 to 31."),
    kpi("lte.dl.modulation", "bit", Phy, Carrier, Event, "Bits of a symbol: 2 for QPSK to 8 for 256QAM."),
    kpi("lte.dl.layers", "", Phy, Carrier, Event, "Spatial layers of a grant."),
    kpi("lte.dl.harq", "", Phy, Carrier, Event, "HARQ process of a transport block."),
    kpi("lte.dl.rv", "", Phy, Carrier, Event, "Redundancy version of a transport block."),
    kpi("lte.dl.crc", "", Phy, Carrier, Event, "Whether a transport block was received correctly: 1, or 0 if it must be retransmitted."),
    kpi("lte.dl.retransmission", "", Phy, Carrier, Event, "Number of earlier transmissions of a transport block."),
    kpi("lte.dl.bler", "", Phy, Carrier, Share, "Share of transport blocks that were not received correctly."),
    kpi("lte.dl.blocks", "", Phy, Radio, Total, "Transport blocks for this phone, whether they were received correctly or not."),
    kpi("lte.dl.failed_blocks", "", Phy, Radio, Total, "Transport blocks for this phone that were not received correctly."),
    kpi("lte.dl.granted_prb", "", Phy, Radio, Total, "Resource blocks granted, all carriers and subframes together."),
    kpi("lte.dl.bytes", "byte", Phy, Radio, Total, "Bytes of the transport blocks that were received correctly, all carriers together."),
    kpi("lte.dl.transmission_scheme", "", Phy, Carrier, Event, "How a subframe was sent: 1 one antenna, 2 transmit diversity, 3 and 4 open and closed loop, 6 closed loop with one layer."),
    kpi("lte.pdcch.aggregation_level", "CCE", Phy, Carrier, Event, "Control channel elements of a DCI for this phone: the worse the base station's estimate of the channel, the more."),
    kpi("lte.pdcch.dcis", "", Phy, Radio, Total, "DCIs for this phone."),

    // Transport blocks of the uplink.
    kpi("lte.ul.tb_bytes", "byte", Phy, Carrier, Event, "Size of a transport block that the phone sent."),
    kpi("lte.ul.prb", "", Phy, Carrier, Event, "Resource blocks of a transport block that the phone sent."),
    kpi("lte.ul.modulation", "bit", Phy, Carrier, Event, "Bits of a symbol that the phone sent."),
    kpi("lte.ul.code_rate", "", Phy, Carrier, Event, "Code rate of a transport block that the phone sent."),
    kpi("lte.ul.retransmission", "", Phy, Carrier, Event, "Number of earlier transmissions of a transport block."),
    kpi("lte.ul.blocks", "", Phy, Radio, Total, "Transport blocks that the phone sent; retransmissions count as well."),
    kpi("lte.ul.bytes", "byte", Phy, Radio, Total, "Bytes of the transport blocks that the phone sent for the first time, all carriers together."),
    kpi("lte.ul.ack", "", Phy, Carrier, Event, "The base station's answer to a transport block: 1 if it was received correctly, else 0."),
    kpi("lte.ul.bler", "", Phy, Carrier, Share, "Share of transport blocks that the base station did not receive correctly."),
    kpi("lte.ul.tx_power", "dBm", Phy, Carrier, Event, "Power that the data channel requires; if it exceeds the phone's maximum, the phone sends with the maximum."),
    kpi("lte.ul.actual_tx_power", "dBm", Phy, Carrier, Event, "Power with which the phone sent data."),
    kpi("lte.ul.max_tx_power", "dBm", Phy, Carrier, Event, "Maximum power with which the phone may send data."),
    kpi("lte.ul.path_loss", "dB", Phy, Carrier, Event, "Loss on the way from the base station, by which the phone sets its power."),
    kpi("lte.pucch.tx_power", "dBm", Phy, Carrier, Event, "Power that the control channel requires."),

    // MAC.
    kpi("lte.dl.mac_bytes", "byte", Mac, Carrier, Event, "Size of a transport block that the phone's MAC received."),
    kpi("lte.dl.padding_bytes", "byte", Mac, Carrier, Event, "Padding in a transport block that the phone's MAC received."),
    kpi("lte.timing_advance", "16Ts", Mac, Radio, Event, "Change of the phone's uplink timing that the base station commands."),
    kpi("lte.ul.grant_bytes", "byte", Mac, Carrier, Event, "Bytes that the phone may send by one grant."),
    kpi("lte.ul.padding_bytes", "byte", Mac, Carrier, Event, "Padding in a transport block that the phone sent."),
    kpi("lte.ul.bsr", "byte", Mac, Radio, Event, "Bytes waiting in the phone's buffers, as reported to the base station: upper limit of the reported range, by the table up to 150,000 bytes."),
    kpi("lte.ul.bsr.lcg0", "byte", Mac, Radio, Event, "Reported bytes of the first logical channel group, which carries signalling."),
    kpi("lte.ul.bsr.lcg1", "byte", Mac, Radio, Event, "Reported bytes of the second logical channel group."),
    kpi("lte.ul.bsr.lcg2", "byte", Mac, Radio, Event, "Reported bytes of the third logical channel group."),
    kpi("lte.ul.bsr.lcg3", "byte", Mac, Radio, Event, "Reported bytes of the fourth logical channel group."),
    kpi("lte.ul.phr", "dB", Mac, Radio, Event, "Power headroom that the phone reports: how much it could raise its power; negative if the power does not suffice."),
    kpi("lte.ul.buffer", "byte", Mac, Radio, Event, "Bytes that wait in the phone for grants, all channels together."),
    kpi("lte.ul.latency", "ms", Mac, Radio, Wait, "Time that bytes waited in the phone for a grant, in order of their arrival."),
    kpi("lte.ul.granted_bytes", "byte", Mac, Radio, Total, "Bytes that the phone was granted."),
    kpi("lte.ul.used_bytes", "byte", Mac, Radio, Total, "Bytes of its grants that the phone used."),

    // RLC and PDCP.
    kpi("lte.rlc.dl.pdu_bytes", "byte", Rlc, Bearer, Event, "Size of an RLC PDU received in acknowledged mode."),
    kpi("lte.rlc.dl.bytes", "byte", Rlc, Radio, Total, "Bytes of RLC PDUs received in acknowledged mode."),
    kpi("lte.rlc.dl.nacks", "", Rlc, Radio, Total, "RLC PDUs that the phone reported as missing."),
    kpi("lte.rlc.dl.again_pdus", "", Rlc, Bearer, Event, "RLC PDUs that a bearer received again, as counted by the modem."),
    kpi("lte.rlc.ul.pdu_bytes", "byte", Rlc, Bearer, Event, "Size of an RLC PDU sent in acknowledged mode."),
    kpi("lte.rlc.ul.bytes", "byte", Rlc, Radio, Total, "Bytes of RLC PDUs sent in acknowledged mode."),
    kpi("lte.rlc.ul.nacks", "", Rlc, Radio, Total, "RLC PDUs that the base station reported as missing."),
    kpi("lte.rlc.ul.retransmissions", "", Rlc, Radio, Total, "RLC PDUs that the phone retransmitted, whole or in pieces."),
    kpi("lte.rlc.ul.again_pdus", "", Rlc, Bearer, Event, "RLC PDUs that a bearer retransmitted, as counted by the modem."),
    kpi("lte.pdcp.dl.pdu_bytes", "byte", Pdcp, Bearer, Event, "Size of a PDCP PDU received."),
    kpi("lte.pdcp.dl.bytes", "byte", Pdcp, Radio, Total, "Bytes of PDCP PDUs received."),
    kpi("lte.pdcp.ul.pdu_bytes", "byte", Pdcp, Bearer, Event, "Size of a PDCP PDU sent."),
    kpi("lte.pdcp.ul.bytes", "byte", Pdcp, Radio, Total, "Bytes of PDCP PDUs sent."),

    // RRC.
    kpi("lte.pci", "", Rrc, Carrier, Level, "Physical identity of the serving cell, 0 to 503."),
    kpi("lte.earfcn", "", Rrc, Carrier, Level, "Channel number of the serving cell's downlink."),
    kpi("lte.ul.earfcn", "", Rrc, Radio, Level, "Channel number of the serving cell's uplink."),
    kpi("lte.band", "", Rrc, Radio, Level, "Band of the serving cell."),
    kpi("lte.dl.bandwidth", "MHz", Rrc, Radio, Level, "Bandwidth of the serving cell's downlink."),
    kpi("lte.ul.bandwidth", "MHz", Rrc, Radio, Level, "Bandwidth of the serving cell's uplink."),
    kpi("lte.antenna_ports", "", Rrc, Radio, Level, "Antenna ports of the serving cell."),
    kpi("lte.cell_identity", "", Rrc, Radio, Level, "Identity of the serving cell within its network."),
    kpi("lte.tac", "", Rrc, Radio, Level, "Tracking area of the serving cell."),
    kpi("lte.mcc", "", Rrc, Radio, Level, "Country of the network."),
    kpi("lte.mnc", "", Rrc, Radio, Level, "Network within its country."),
    kpi("lte.rrc.messages", "", Rrc, Radio, Total, "RRC messages, both ways."),
    kpi("lte.rrc.message_bytes", "byte", Rrc, Radio, Event, "Size of an RRC message."),
    kpi("lte.drx.event", "", Rrc, Radio, Event, "Change of a connected phone's sleep (DRX): a number of the modem's list."),
    kpi("lte.idle.rsrp", "dBm", Rrc, Radio, Level, "Power of the serving cell's reference signal, for the decision to leave the cell while idle."),
    kpi("lte.idle.rsrq", "dB", Rrc, Radio, Level, "Quality of the serving cell's reference signal, for the decision to leave the cell while idle."),

    // NAS.
    kpi("lte.emm_state", "", Nas, Radio, Level, "Registration: 1 not registered, 2 registering, 3 registered, 4 updating its area, 5 asking for service, 6 deregistering."),
    kpi("lte.bearer.id", "", Nas, Bearer, Event, "Identity of a bearer that changed."),
    kpi("lte.bearer.qci", "", Nas, Bearer, Event, "Quality class of a bearer that changed."),
    kpi("lte.bearer.state", "", Nas, Bearer, Event, "State of a bearer: a number of the modem's list."),
    kpi("lte.nas.messages", "", Nas, Radio, Total, "NAS messages, both ways, after deciphering."),

    // NB-IoT.
    kpi("nbiot.dl.tb_bytes", "byte", Phy, Radio, Event, "Size of an NB-IoT transport block received."),
    kpi("nbiot.dl.mcs", "", Phy, Radio, Event, "Modulation and coding scheme of an NB-IoT transport block received."),
    kpi("nbiot.dl.bler", "", Phy, Radio, Share, "Share of NB-IoT transport blocks that were not received correctly."),
    kpi("nbiot.ul.tx_power", "dBm", Phy, Radio, Event, "Power with which an NB-IoT phone sent."),
    kpi("nbiot.ul.repetitions", "", Phy, Radio, Event, "Number of repetitions of an NB-IoT transmission: a number of the modem's list."),

    // NR, physical layer.
    kpi("nr.rsrp", "dBm", Phy, Carrier, Level, "Power of the serving NR cell's reference signal at the antenna with the best reception."),
    kpi("nr.rsrp.rx0", "dBm", Phy, Carrier, Level, "Power of the serving NR cell's reference signal at the first antenna."),
    kpi("nr.rsrp.rx1", "dBm", Phy, Carrier, Level, "Power of the serving NR cell's reference signal at the second antenna."),
    kpi("nr.ssb", "", Phy, Carrier, Level, "Beam of the serving NR cell."),
    kpi("nr.cqi", "", Phy, Carrier, Level, "Channel quality that the phone reports for NR, mean of the last reports."),
    kpi("nr.ri", "", Phy, Carrier, Level, "Spatial layers that the phone requests for NR, mean of the last reports."),
    kpi("nr.pdcch.aggregation_level", "CCE", Phy, Carrier, Event, "Control channel elements of an NR DCI for this phone."),
    kpi("nr.dl.mcs", "", Phy, Carrier, Event, "Modulation and coding scheme of an NR downlink grant."),
    kpi("nr.cell.pci", "", Phy, Cell, Event, "Physical identity of a received NR cell."),
    kpi("nr.cell.rsrp", "dBm", Phy, Cell, Event, "Power of a received NR cell."),
    kpi("nr.cell.rsrq", "dB", Phy, Cell, Event, "Quality of a received NR cell."),
    kpi("nr.beam.rsrp", "dBm", Phy, Cell, Event, "Power of a beam of a received NR cell."),

    // NR, MAC and above.
    kpi("nr.dl.blocks", "", Mac, Radio, Total, "NR transport blocks that the phone tried to decode."),
    kpi("nr.dl.failed_blocks", "", Mac, Radio, Total, "NR transport blocks that were not received correctly."),
    kpi("nr.dl.bytes", "byte", Mac, Radio, Total, "Bytes of NR transport blocks that were received correctly."),
    kpi("nr.dl.padding_bytes", "byte", Mac, Radio, Total, "Padding in NR transport blocks that were received correctly."),
    kpi("nr.ul.tb_bytes", "byte", Mac, Carrier, Event, "Size of an NR transport block that the phone was scheduled to send."),
    kpi("nr.ul.prb", "", Mac, Carrier, Event, "Resource blocks of an NR transport block that the phone was scheduled to send."),
    kpi("nr.ul.mcs", "", Mac, Carrier, Event, "Modulation and coding scheme of an NR transport block that the phone was scheduled to send."),
    kpi("nr.ul.code_rate", "", Mac, Carrier, Event, "Code rate of an NR transport block that the phone was scheduled to send."),
    kpi("nr.ul.new_bytes", "byte", Mac, Radio, Total, "Bytes of NR transport blocks sent for the first time."),
    kpi("nr.ul.again_bytes", "byte", Mac, Radio, Total, "Bytes of NR transport blocks that were retransmitted."),
    kpi("nr.ul.grant_bytes", "byte", Mac, Carrier, Event, "Bytes that the phone may send by one NR grant."),
    kpi("nr.ul.built_bytes", "byte", Mac, Carrier, Event, "Bytes of one NR grant that the phone filled."),
    kpi("nr.rach.reason", "", Mac, Radio, Event, "Why the phone began a random access: 0 connection, 1 link lost, 2 handover, 3 data to send, 6 beam lost."),
    kpi("nr.rlc.dl.bytes", "byte", Rlc, Bearer, Event, "Bytes of RLC data that an NR bearer received, as counted by the modem."),
    kpi("nr.rlc.dl.again_pdus", "", Rlc, Bearer, Event, "RLC PDUs that an NR bearer received again, as counted by the modem."),

    // NR, RRC.
    kpi("nr.pci", "", Rrc, Carrier, Level, "Physical identity of the serving NR cell, 0 to 1007."),
    kpi("nr.arfcn", "", Rrc, Carrier, Level, "Channel number of the serving NR cell's downlink."),
    kpi("nr.band", "", Rrc, Radio, Level, "Band of the serving NR cell."),
    kpi("nr.dl.bandwidth", "MHz", Rrc, Radio, Level, "Bandwidth of the serving NR cell's downlink."),
    kpi("nr.ul.bandwidth", "MHz", Rrc, Radio, Level, "Bandwidth of the serving NR cell's uplink."),
    kpi("nr.subcarrier_spacing", "kHz", Rrc, Radio, Level, "Subcarrier spacing of the NR cell."),
    kpi("nr.tac", "", Rrc, Radio, Level, "Tracking area of the serving NR cell."),
    kpi("nr.mcc", "", Rrc, Radio, Level, "Country of the NR network."),
    kpi("nr.mnc", "", Rrc, Radio, Level, "NR network within its country."),
    kpi("nr.rrc.messages", "", Rrc, Radio, Total, "NR RRC messages, both ways."),
    kpi("nr.rrc.message_bytes", "byte", Rrc, Radio, Event, "Size of an NR RRC message."),
    kpi("nr.rrc.channel", "", Rrc, Radio, Event, "Channel of an NR RRC message: 1 BCCH-BCH, 2 BCCH-DL-SCH, 3 DL-CCCH, 4 DL-DCCH, 5 MCCH, 6 PCCH, 7 UL-CCCH, 8 UL-CCCH1, 9 UL-DCCH, 10 a bare reconfiguration, 11 its completion."),
    kpi("nr.rrc.message_type", "", Rrc, Radio, Event, "Type of an NR RRC message: its index among the messages of its channel in TS 38.331."),
    kpi("nr.rrc.pci", "", Rrc, Radio, Event, "Physical identity of the cell of an NR RRC message."),
    kpi("nr.rrc.arfcn", "", Rrc, Radio, Event, "Channel number of the cell of an NR RRC message."),
    kpi("nr.rrc.sfn", "", Rrc, Radio, Event, "System frame number of an NR RRC message, 0 to 1023."),
    kpi("nr.rrc.slot", "", Rrc, Radio, Event, "Slot of 1 ms of an NR RRC message within its frame, 0 to 9."),
];

const fn kpi(
    name: &'static str,
    unit: &'static str,
    layer: Layer,
    scope: Scope,
    kind: Kind,
    about: &'static str,
) -> Kpi {
    Kpi { name, unit, about, layer, scope, kind }
}
