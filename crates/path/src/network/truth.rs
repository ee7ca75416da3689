//! Ground truth of a network: state that no endpoint can measure, such as capacity and packets in flight. It is used by
//! the scheme `oracle`, by metrics and by bounds.

use std::time::Duration;

use airpace_core::{Bytes, DeviceId, Direction, FlowId, Rate, Time};

use super::Network;
use super::last_hop::CellService;
use super::route::{Flow, Hop, Route};
use crate::link::Link;
use crate::trace::TraceLink;
use crate::trace::mmlink::Line;

/// A link that a flow's data may share with other flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedLink {
    /// The last hop: the flow shares it with the other flows of the device. Without a last hop, the wire is used
    /// instead.
    LastHop,
    /// The Internet queue: the flow shares it with all flows that cross it in the same direction.
    Internet,
}

/// The state of a link at a point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkState {
    /// Rate of the link; `None` is no limit.
    pub rate: Option<Rate>,
    /// Number of bytes queued at the link, over all flows that share the link.
    pub backlog: Bytes,
}

impl SharedLink {
    /// Both links.
    pub const ALL: [SharedLink; 2] = [SharedLink::LastHop, SharedLink::Internet];
}

impl<D, A> Network<D, A> {
    /// The state of a link for the data of a flow at `at`; `None` if the flow's data does not cross the link.
    pub fn shared_link(&self, flow: FlowId, link: SharedLink, at: Time) -> Option<LinkState> {
        let (direction, device) = self.ends(flow);
        match link {
            SharedLink::LastHop => Some(LinkState {
                rate: self.last_hop.rate(direction, device, at),
                backlog: self.last_hop.backlog_of(direction, device),
            }),
            SharedLink::Internet => {
                let is_crossed = self.forward(flow).crosses(Hop::Internet);
                let queue = self.queues[direction as usize].as_ref().filter(|_| is_crossed)?;
                Some(LinkState { rate: queue.rate(), backlog: queue.backlog() })
            }
        }
    }

    /// Service of the cell for the device of a flow; `None` if the last hop is not a cell.
    pub fn cell_service(&mut self, flow: FlowId) -> Option<CellService> {
        let (direction, device) = self.ends(flow);
        self.last_hop.cell_service(direction, device)
    }

    /// Whether the data of two flows shares a link.
    pub fn meet(&self, link: SharedLink, one: FlowId, other: FlowId) -> bool {
        let crosses = |flow| match link {
            SharedLink::LastHop => true,
            SharedLink::Internet => self.forward(flow).crosses(Hop::Internet),
        };
        let ((way, device), (other_way, other_device)) = (self.ends(one), self.ends(other));
        let is_same_link = link == SharedLink::Internet || device == other_device;
        way == other_way && is_same_link && crosses(one) && crosses(other)
    }

    /// Number of bytes of a flow's data before the first link at which they may be queued: bytes on the flow's wire, if
    /// the wire is the first hop, and bytes that a cellular link holds for its base delay.
    pub fn on_wire(&self, flow: FlowId) -> Bytes {
        self.forward(flow).on_wire + self.last_hop.held_of(self.ends(flow).0, flow).0
    }

    /// Bytes of a flow's data in the last hop and the Internet queue.
    pub fn in_links(&self, flow: FlowId) -> Bytes {
        self.forward(flow).in_links
    }

    /// Delay of a full-sized packet of a flow to the first link that the flow may share, without queueing before it: the
    /// delay of the flow's wire, or the wait for a grant of the cell's uplink; plus a cellular link's base delay.
    pub fn entry_delay(&self, flow: FlowId) -> Duration {
        let route = self.forward(flow);
        let (_, held) = self.last_hop.held_of(self.ends(flow).0, flow);
        held + match route.wire_comes_first() {
            true => route.wire.base_delay(self.flow(flow).config.data_bytes),
            false => self.last_hop.grant_delay(),
        }
    }

    /// Starts to record delays of a flow's data on its wire, for [`Network::crossings`].
    pub fn watch_wire(&mut self, flow: FlowId) {
        self.forward_mut(flow).crossings.get_or_insert_default();
    }

    /// Crossings of the wire by data of a watched flow since the last call, as end time and delay. The delay includes a
    /// cellular link's current base delay. The result is empty if the wire is behind the shared links.
    pub fn crossings(&mut self, flow: FlowId) -> impl Iterator<Item = (Time, Duration)> {
        let (_, held) = self.last_hop.held_of(self.ends(flow).0, flow);
        let crossings = self.forward_mut(flow).crossings.iter_mut().flat_map(|crossings| crossings.drain(..));
        crossings.map(move |(at, took)| (at, took + held))
    }

    /// The direction of a flow's data; its ACKs travel in the opposite direction.
    pub fn direction_of_data(&self, flow: FlowId) -> Direction {
        self.flow(flow).config.direction
    }

    /// Delay of a flow's packet of this size in this direction on an empty path, for data and for ACKs. One-way delay
    /// minus this delay is the queueing delay.
    pub fn propagation_delay(&self, flow: FlowId, direction: Direction, bytes: Bytes) -> Duration {
        let route = &self.flow(flow).routes[direction as usize];
        let queue = self.queues[direction as usize].as_ref().filter(|_| route.crosses(Hop::Internet));
        route.fixed_delay(direction, bytes, &self.last_hop)
            + queue.map_or(Duration::ZERO, |queue| queue.base_delay(bytes))
    }

    /// Starts to record events of trace links, for [`Network::link_lines`].
    pub fn watch_links(&mut self) {
        for direction in Direction::BOTH {
            self.last_hop.trace_mut(direction).into_iter().for_each(TraceLink::watch);
        }
    }

    /// Events of the watched last-hop link in this direction since the last call up to `now`, as lines for a
    /// [`LogWriter`]; empty if the last hop in that direction is not a trace. Each line needs memory until it is
    /// fetched. `now` must be the time of the last [`Network::pop`] or later.
    ///
    /// [`LogWriter`]: crate::trace::mmlink::LogWriter
    pub fn link_lines(&mut self, direction: Direction, now: Time) -> impl Iterator<Item = Line> {
        self.last_hop.trace_mut(direction).into_iter().flat_map(move |link| link.lines(now))
    }

    /// Number of copies of a flow's data packets in flight.
    pub fn under_way(&self, flow: FlowId) -> u64 {
        self.flow(flow).data.under_way()
    }

    /// Number of copies of a flow's data packets that its wire has added.
    pub fn duplicated(&self, flow: FlowId) -> u64 {
        self.forward(flow).duplicated
    }

    /// Number of stored loads of data packets of all flows: at least one for each packet in flight.
    pub fn loads(&self) -> usize {
        self.flows.iter().map(|flow| flow.data.kept()).sum()
    }

    fn flow(&self, flow: FlowId) -> &Flow<D, A> {
        &self.flows[usize::from(flow.0)]
    }

    /// The route of a flow's data.
    fn forward(&self, flow: FlowId) -> &Route {
        self.flow(flow).forward()
    }

    fn forward_mut(&mut self, flow: FlowId) -> &mut Route {
        let flow = &mut self.flows[usize::from(flow.0)];
        &mut flow.routes[flow.config.direction as usize]
    }

    /// The direction of a flow's data, and its device.
    fn ends(&self, flow: FlowId) -> (Direction, DeviceId) {
        let config = &self.flow(flow).config;
        (config.direction, config.device)
    }
}
