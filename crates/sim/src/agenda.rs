//! Deadlines of the endpoints of flows: the simulator's event queue, in addition to the network's event queue.

use airpace_core::{Deadlines, Time};

/// A component of a flow that has a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlowPart {
    /// The flow's acker. Each variant contains the flow's index in the scenario.
    Acker(usize),
    Traffic(usize),
    Sender(usize),
    Transfer(usize),
}

/// Deadlines, one per component of a flow. Components with equal deadlines are processed kind by kind, in the order of
/// [`FlowPart`]. Within a kind, flows are processed in an order drawn for the run, so that no flow is favoured. Events
/// of the network at the same instant are processed before all of these components
/// ([`Driver::run`](crate::driver::Driver::run)).
#[derive(Clone, Debug)]
pub(crate) struct Agenda {
    deadlines: Deadlines,
    /// The component of a flow to which each deadline belongs.
    parts: Vec<FlowPart>,
    /// Position of each flow in the drawn order.
    turn: Vec<usize>,
}

const OF_A_FLOW: [fn(usize) -> FlowPart; 4] =
    [FlowPart::Acker, FlowPart::Traffic, FlowPart::Sender, FlowPart::Transfer];

impl Agenda {
    /// Creates an agenda without deadlines. `order` contains the numbers of all flows.
    pub(crate) fn new(order: &[usize]) -> Agenda {
        let mut turn = vec![0; order.len()];
        for (place, &flow) in order.iter().enumerate() {
            turn[flow] = place;
        }
        let of_flows = OF_A_FLOW.iter().flat_map(|part| order.iter().map(|&flow| part(flow)));
        let parts: Vec<FlowPart> = of_flows.collect();
        Agenda { deadlines: Deadlines::new(parts.len()), parts, turn }
    }

    pub(crate) fn set(&mut self, part: FlowPart, deadline: Option<Time>) {
        let place = match part {
            FlowPart::Acker(flow) => self.place(0, flow),
            FlowPart::Traffic(flow) => self.place(1, flow),
            FlowPart::Sender(flow) => self.place(2, flow),
            FlowPart::Transfer(flow) => self.place(3, flow),
        };
        self.deadlines.set(place, deadline);
    }

    /// Returns the next deadline.
    pub(crate) fn first(&self) -> Time {
        self.deadlines.first()
    }

    /// Returns the next deadline and its component.
    pub(crate) fn next(&self) -> (Time, FlowPart) {
        let (deadline, place) = self.deadlines.next();
        (deadline, self.parts[place])
    }

    fn place(&self, kind: usize, flow: usize) -> usize {
        kind * self.turn.len() + self.turn[flow]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_first_comes_first_then_kind_by_kind() {
        let mut agenda = Agenda::new(&[2, 0, 1]);
        assert_eq!(agenda.next().0, Time::NEVER);
        let at = |ms| Some(Time::from_millis(ms));
        agenda.set(FlowPart::Sender(2), at(5));
        agenda.set(FlowPart::Sender(0), at(5));
        agenda.set(FlowPart::Traffic(1), at(5));
        agenda.set(FlowPart::Acker(0), at(4));
        let mut order = vec![];
        while agenda.next().0 < Time::NEVER {
            let (_, part) = agenda.next();
            agenda.set(part, None);
            order.push(part);
        }
        let expected = [FlowPart::Acker(0), FlowPart::Traffic(1), FlowPart::Sender(2), FlowPart::Sender(0)];
        assert_eq!(order, expected);
    }
}
