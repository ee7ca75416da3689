//! Plan of a network: validated configurations that can be instantiated for any seed.

use std::time::Duration;

use airpace_core::{DeviceId, Direction, FlowId, Rate, Streams};

use super::flow_config::{ACK_BYTES, FlowConfig};
use super::last_hop::{CellularPlan, LastHop, LastHopPlan, TracePlan};
use crate::config_error::{ConfigError, duration_ms};
use crate::link::Link;
use crate::queue::{Queue, QueueConfig};
use crate::wire::{WireConfig, WirePlan};

/// Configuration of a network.
#[derive(Clone, Debug)]
pub struct NetworkConfig<'a> {
    /// The configuration of each flow's wire for data; its delay comes from the flow's `rtt_ms`.
    pub forward: &'a WireConfig,
    /// The configuration of each flow's wire for ACKs; its delay comes from the flow's `rtt_ms`.
    pub reverse: &'a WireConfig,
    /// The configuration of the queues between last hop and servers, one for each direction; `None` if there are none.
    pub internet: Option<&'a QueueConfig>,
    /// The last hop.
    pub last_hop: LastHopPlan,
    /// Number of devices.
    pub devices: usize,
    /// The flows, in the order of their numbers.
    pub flows: Vec<FlowConfig>,
}

/// A network that can be instantiated any number of times.
#[derive(Clone, Debug)]
pub struct NetworkPlan {
    pub(super) forward: WirePlan,
    pub(super) reverse: WirePlan,
    /// An empty queue with the configuration of the Internet queue.
    pub(super) internet: Option<Queue>,
    pub(super) last_hop: LastHopPlan,
    pub(super) devices: usize,
    pub(super) flows: Vec<FlowConfig>,
    /// Whether the packets opposite to a flow's data are also data, and not just ACKs.
    pub(super) is_two_way: bool,
    /// Flows whose senders are directly at the first link that they may share: their data crosses no wire before it.
    pub(super) near: Vec<FlowId>,
}

impl NetworkPlan {
    /// The plan of a network.
    ///
    /// # Errors
    /// The configuration is invalid; the error names the key (such as `internet.rate_mbps` or `flow.0.rtt_ms`) and the
    /// remedy.
    pub fn new(config: NetworkConfig<'_>) -> Result<NetworkPlan, ConfigError> {
        let plan_of = |name: &str, wire: &WireConfig| {
            if wire.delay_ms != 0.0 {
                let reason = "is made from each flow's `rtt_ms`; set that instead";
                return Err(ConfigError::new(format!("{name}.delay_ms"), reason));
            }
            wire.plan().map_err(|error| error.within(name))
        };
        let internet = config.internet.map(Queue::new).transpose();
        let plan = NetworkPlan {
            forward: plan_of("forward", config.forward)?,
            reverse: plan_of("reverse", config.reverse)?,
            internet: internet.map_err(|error| error.within("internet"))?,
            last_hop: config.last_hop,
            devices: config.devices,
            flows: config.flows,
            is_two_way: false,
            near: vec![],
        };
        plan.check_round_trips(&(0..plan.flows.len()).collect::<Vec<_>>())?;
        Ok(plan)
    }

    /// The network with one flow per device. This flow has the number of the device and carries all packets that the
    /// device sends and receives, so it has data in both directions.
    ///
    /// A device's flow has the properties of the first flow of that device in this plan, or of the first flow of the
    /// plan if the device has none. But packets in both directions cross the last hop, if it carries their direction,
    /// and the Internet queue of their direction, if the flow crosses the Internet queue. [`Load::Data`] travels in the
    /// flow's direction, [`Load::Ack`] in the opposite direction; packets of both may have any size, and capacities are
    /// reported for both.
    ///
    /// [`Load::Data`]: super::Load::Data
    /// [`Load::Ack`]: super::Load::Ack
    ///
    /// # Errors
    /// The `rtt_ms` of one of these flows is shorter than the round trip over the empty links, which the error names. Or
    /// this plan has no flow.
    pub fn for_devices(&self) -> Result<NetworkPlan, ConfigError> {
        let first = |device: usize| self.flows.iter().position(|flow| usize::from(flow.device.0) == device);
        let chosen: Vec<usize> = (0..self.devices).map(|device| first(device).unwrap_or_default()).collect();
        let flow_of = |(device, &flow): (usize, &usize)| {
            let flow = self.flows.get(flow).ok_or_else(|| {
                ConfigError::new("flow", "is missing; add a `[[flow]]`, whose `rtt_ms` the devices have")
            })?;
            Ok(FlowConfig { device: DeviceId(device as u16), acks_cross_cell: true, ..*flow })
        };
        let flows = chosen.iter().enumerate().map(flow_of).collect::<Result<_, _>>()?;
        let plan = NetworkPlan { flows, is_two_way: true, ..self.clone() };
        plan.check_round_trips(&chosen)?;
        Ok(plan)
    }

    /// The network with the senders of these flows directly at the first link that they may share: their data crosses
    /// no wire before it. This network provides the observations of the scheme `oracle`.
    pub fn seen_from_near(&self, flows: Vec<FlowId>) -> NetworkPlan {
        NetworkPlan { near: flows, ..self.clone() }
    }

    /// Whether a flow gets the same results with its sender at the first shared link ([`NetworkPlan::seen_from_near`])
    /// as with its sender behind the wire, if the latter sends each packet earlier by the packet's delay over the wire.
    /// The results differ if this delay depends on the departure time.
    pub fn is_same_from_near(&self) -> bool {
        self.forward.seen_from_far_end().is_some()
    }

    /// The jitter of each data packet of a flow on its wire, in a run with these random numbers: an infinite sequence
    /// in the order of the packets. `None` if the wire has no jitter.
    pub fn jitters(&self, flow: FlowId, streams: &Streams) -> Option<impl Iterator<Item = Duration> + use<>> {
        self.forward.jitters(streams, &forward_wire(flow))
    }

    /// The network with this trace as its last hop. An empty trace link has no delay, so the flows' `rtt_ms` need not
    /// be checked again.
    pub fn over_trace(&self, trace: TracePlan) -> NetworkPlan {
        NetworkPlan { last_hop: LastHopPlan::Trace(Box::new(trace)), ..self.clone() }
    }

    /// The network with this cellular link as its last hop.
    ///
    /// # Errors
    /// The `rtt_ms` of a flow is shorter than the base delays of the link, which the error names.
    pub fn over_cellular(&self, link: CellularPlan) -> Result<NetworkPlan, ConfigError> {
        let plan = NetworkPlan { last_hop: LastHopPlan::Cellular(Box::new(link)), ..self.clone() };
        plan.check_round_trips(&(0..plan.flows.len()).collect::<Vec<_>>())?;
        Ok(plan)
    }

    /// Minimum `rtt_ms` of the flow with this number: the delay of its round trip over the links without the wires.
    ///
    /// # Panics
    /// If there is no such flow.
    pub fn least_rtt(&self, flow: usize) -> Duration {
        let last_hop = LastHop::new(&self.last_hop, &self.flows, &Streams::new(0));
        self.delay_of_others(&self.flows[flow], &last_hop)
    }

    /// Whether packets of a flow in this direction cross an Internet queue: this is the case for data of a flow that
    /// crosses the queue, and for both directions of a flow with data in both directions.
    pub(super) fn crosses_internet(&self, flow: &FlowConfig, direction: Direction) -> bool {
        let is_data = self.is_two_way || direction == flow.direction;
        self.internet.is_some() && flow.crosses_internet && is_data
    }

    /// The rate of a flow's wire in this direction; `None` is no limit.
    pub(super) fn rate_of_wire(&self, flow: &FlowConfig, direction: Direction) -> Option<Rate> {
        if flow.has_plain_wires {
            return None;
        }
        if direction == flow.direction { self.forward.rate() } else { self.reverse.rate() }
    }

    /// Rejects round trips that are shorter than the delay of the links without the wires, which does not depend on the
    /// seed. `keys` are the flow numbers for error messages.
    fn check_round_trips(&self, keys: &[usize]) -> Result<(), ConfigError> {
        let last_hop = LastHop::new(&self.last_hop, &self.flows, &Streams::new(0));
        for (flow, index) in self.flows.iter().zip(keys) {
            duration_ms(&format!("flow.{index}.rtt_ms"), flow.rtt_ms)?;
            let others = self.delay_of_others(flow, &last_hop);
            if flow.rtt_ms < others.as_secs_f64() * 1e3 {
                // The value in the error is rounded up, so that it is accepted if the user enters it.
                let least_ms = others.as_nanos().div_ceil(1000) as f64 * 1e-3;
                let reason = format!(
                    "is {}, but the empty links alone take {least_ms:.3} ms; give at least that",
                    flow.rtt_ms
                );
                return Err(ConfigError::new(format!("flow.{index}.rtt_ms"), reason));
            }
        }
        Ok(())
    }

    /// The delay of each of a flow's two wires: half of the difference between the flow's RTT and the delay of the
    /// other links.
    pub(super) fn wire_delay(&self, flow: &FlowConfig, last_hop: &LastHop) -> Duration {
        let others_ms = self.delay_of_others(flow, last_hop).as_secs_f64() * 1e3;
        let delay_ms = (flow.rtt_ms - others_ms) / 2.0;
        Duration::from_nanos(libm::round(delay_ms * 1e6) as u64)
    }

    /// Delay of a round trip on an empty path, without the delays of the wires.
    fn delay_of_others(&self, flow: &FlowConfig, last_hop: &LastHop) -> Duration {
        let back = flow.direction.opposite();
        let queue = |direction, bytes| {
            let queue = self.internet.as_ref().filter(|_| self.crosses_internet(flow, direction));
            queue.map_or(Duration::ZERO, |queue| queue.base_delay(bytes))
        };
        let mut delay = queue(flow.direction, flow.data_bytes).saturating_add(queue(back, ACK_BYTES));
        if flow.crosses_last_hop {
            delay = delay.saturating_add(last_hop.base_delay(flow.direction, flow.data_bytes));
        }
        if flow.crosses_last_hop && flow.acks_cross_cell {
            delay = delay.saturating_add(last_hop.base_delay(back, ACK_BYTES));
        }
        let serialisation = |direction, bytes| {
            let rate = self.rate_of_wire(flow, direction);
            rate.map_or(Duration::ZERO, |rate| rate.time_for(bytes))
        };
        delay
            .saturating_add(serialisation(flow.direction, flow.data_bytes))
            .saturating_add(serialisation(back, ACK_BYTES))
    }
}

/// The name of a flow's wire for its data.
pub(super) fn forward_wire(flow: FlowId) -> String {
    format!("flow.{}.forward", flow.0)
}
