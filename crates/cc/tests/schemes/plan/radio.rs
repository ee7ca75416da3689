//! Radio reports: receivers get reports of a cell's control channel, senders get reports of the modem of their device.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use airpace_cc::registry::{FlowKey, Protocol};
use airpace_core::{Bits, Direction};
use airpace_radio::{BitLayer, CarrierId, Dci, OwnRadio, PrbSet, RadioReport, Rnti, Scope, Slot};

use super::Plan;

/// PRB pairs of the carrier that the bottleneck simulates.
const PRBS: u16 = 100;

/// The kind of reports of the modem on an uplink's device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Modem {
    /// The modem reports the maximum that the cell could have granted, independent of requests, as in a recording of a
    /// saturated link.
    Saturated,
    /// The modem reports the actual grants. The cell grants the requested amount, up to the capacity.
    Granted,
}

/// The key of flow `index` on the device. Every third flow is UDP, the others are TCP.
pub fn key(index: usize) -> FlowKey {
    let address = |last, port| SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)), port);
    let protocol = if index % 3 == 2 { Protocol::Udp } else { Protocol::Tcp };
    FlowKey { protocol, local: address(2, 40_000 + index as u16), remote: address(1, 443) }
}

impl Plan {
    /// Reports the subframe that ends now to every sender, from the device's modem and registry.
    pub fn report_uplink(&mut self, modem: Modem) {
        self.count_served();
        let subframe_bits = self.rates[0].1.as_bps() as f64 * 1e-3;
        let served: f64 = self.flows.iter_mut().map(|flow| std::mem::take(&mut flow.served_bits)).sum();
        let rnti = Rnti(0x100);
        // A finer unit of PRBs needs less padding. A modem reports the number of bits as well as the PRBs.
        let grant = Dci {
            rnti,
            direction: Direction::Uplink,
            prbs: PrbSet::run(0, (f64::from(PRBS) * served / subframe_bits.max(1.0)).ceil() as u16),
            mcs: [Some(20), None],
            tbs: [Bits(served as u64), Bits::ZERO],
            layers: 1,
            ..Dci::default()
        };
        let report = RadioReport {
            carrier: CarrierId(0),
            time: self.now - Duration::from_millis(1),
            slot: Slot::subframe_of_lte(self.now.as_millis() - 1),
            scope: Scope::Everyone,
            carrier_prbs: Some(PRBS),
            cfi: Some(1),
            symbols: None,
            dcis: if served >= 1.0 { vec![grant] } else { vec![] },
            own: Some(OwnRadio {
                rnti,
                active: true,
                sinr_db: Some(20.0),
                bits_per_prb: Some(subframe_bits / f64::from(PRBS)),
                decoded: None,
                uplink_queue: Some(self.queued),
            }),
            layer: match modem {
                Modem::Saturated => BitLayer::Transport,
                Modem::Granted => BitLayer::Physical,
            },
        };
        for index in 0..self.flows.len() {
            if self.flows[index].sees[0].is_device() {
                let seen = self.registry.view(self.now, &key(index));
                self.flows[index].sender.on_device(self.now, &seen);
                self.flows[index].sender.on_radio(self.now, &report);
            }
            self.drain(index);
        }
    }

    /// Reports to every receiver the grants of the subframe that ends now.
    pub fn report_radio(&mut self) {
        self.count_served();
        let bits_per_prb = self.rates[0].1.as_bps() as f64 * 1e-3 / f64::from(PRBS);
        let mut start = 0;
        let mut dcis = vec![];
        for (index, flow) in self.flows.iter_mut().enumerate() {
            let served_bits = std::mem::replace(&mut flow.served_bits, 0.0);
            let prbs = if bits_per_prb > 0.0 { (served_bits / bits_per_prb).ceil() as u16 } else { 0 };
            let prbs = prbs.min(PRBS - start);
            if prbs > 0 {
                dcis.push(Dci {
                    rnti: Rnti(0x100 + index as u16),
                    prbs: PrbSet::run(start, prbs),
                    mcs: [Some(20), None],
                    // A PRB that is not full is padded, as in a cell.
                    tbs: [Bits((f64::from(prbs) * bits_per_prb) as u64), Bits::ZERO],
                    layers: 1,
                    ..Dci::default()
                });
                start += prbs;
            }
        }
        let listeners = self.flows.iter_mut().enumerate().filter(|(_, flow)| flow.sees[1].is_device());
        for (index, flow) in listeners {
            let rnti = Rnti(0x100 + index as u16);
            let granted = dcis.iter().any(|dci| dci.rnti == rnti);
            flow.acker.on_radio(&RadioReport {
                carrier: CarrierId(0),
                time: self.now - Duration::from_millis(1),
                slot: Slot::subframe_of_lte(self.now.as_millis() - 1),
                scope: Scope::Everyone,
                carrier_prbs: Some(PRBS),
                cfi: Some(1),
                symbols: None,
                dcis: dcis.clone(),
                own: Some(OwnRadio {
                    rnti,
                    active: true,
                    sinr_db: Some(20.0),
                    bits_per_prb: Some(bits_per_prb),
                    decoded: granted.then_some(true),
                    uplink_queue: None,
                }),
                layer: BitLayer::Transport,
            });
        }
    }
}
