//! What happens next: the deadlines of a run's components.

use airpace_core::{Direction, Rng, Time};

/// A component of the run that has a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    LastHop,
    /// The Internet's queue of one direction.
    Internet(Direction),
    Tick,
    /// Of a flow, by its place in the scenario.
    Forward(usize),
    Reverse(usize),
    Acker(usize),
    Traffic(usize),
    Sender(usize),
}

/// Deadlines, one per component.
///
/// What is due at the same instant comes in this order: links before what feeds them (so that a link has let go
/// of its packets before it gets more), then both ends; flows among each other in an order drawn for the run, so
/// that none is favoured. Wires may come at any place: they have room for whatever they get.
#[derive(Clone, Debug)]
pub(crate) struct Agenda {
    deadlines: Vec<Time>,
    /// Whose each deadline is.
    parts: Vec<Part>,
    /// Where a flow comes among the others.
    place: Vec<usize>,
}

/// Components that flows share; theirs come after these, kind by kind.
const SHARED: [Part; 4] =
    [Part::Internet(Direction::Uplink), Part::LastHop, Part::Internet(Direction::Downlink), Part::Tick];

const OF_A_FLOW: [fn(usize) -> Part; 5] =
    [Part::Forward, Part::Reverse, Part::Acker, Part::Traffic, Part::Sender];

impl Agenda {
    pub(crate) fn new(flows: usize, rng: &mut Rng) -> Agenda {
        let mut order: Vec<usize> = (0..flows).collect();
        rng.shuffle(&mut order);
        let mut place = vec![0; flows];
        for (at, &flow) in order.iter().enumerate() {
            place[flow] = at;
        }
        let of_flows = OF_A_FLOW.iter().flat_map(|part| order.iter().map(|&flow| part(flow)));
        let parts: Vec<Part> = SHARED.into_iter().chain(of_flows).collect();
        Agenda { deadlines: vec![Time::NEVER; parts.len()], parts, place }
    }

    pub(crate) fn set(&mut self, part: Part, deadline: Option<Time>) {
        let index = self.index(part);
        self.deadlines[index] = deadline.unwrap_or(Time::NEVER);
    }

    /// The next deadline and whose it is.
    pub(crate) fn next(&self) -> (Time, Part) {
        let (mut first, mut earliest) = (0, self.deadlines[0]);
        for (index, &deadline) in self.deadlines.iter().enumerate().skip(1) {
            if deadline < earliest {
                (first, earliest) = (index, deadline);
            }
        }
        (earliest, self.parts[first])
    }

    fn index(&self, part: Part) -> usize {
        let of_flow = |kind: usize, flow: usize| SHARED.len() + kind * self.place.len() + self.place[flow];
        match part {
            Part::Internet(Direction::Uplink) => 0,
            Part::LastHop => 1,
            Part::Internet(Direction::Downlink) => 2,
            Part::Tick => 3,
            Part::Forward(flow) => of_flow(0, flow),
            Part::Reverse(flow) => of_flow(1, flow),
            Part::Acker(flow) => of_flow(2, flow),
            Part::Traffic(flow) => of_flow(3, flow),
            Part::Sender(flow) => of_flow(4, flow),
        }
    }
}

#[cfg(test)]
mod tests {
    use airpace_core::Streams;

    use super::*;

    #[test]
    fn what_is_due_first_comes_first_and_links_before_what_feeds_them() {
        let mut agenda = Agenda::new(3, &mut Streams::new(1).stream("ties"));
        assert_eq!(agenda.next().0, Time::NEVER);
        let at = |ms| Some(Time::from_millis(ms));
        agenda.set(Part::Sender(2), at(5));
        agenda.set(Part::Forward(1), at(5));
        agenda.set(Part::LastHop, at(5));
        agenda.set(Part::Reverse(0), at(4));
        for &part in &agenda.parts {
            assert_eq!(agenda.parts[agenda.index(part)], part);
        }
        let mut order = Vec::new();
        while agenda.next().0 < Time::NEVER {
            let (_, part) = agenda.next();
            agenda.set(part, None);
            order.push(part);
        }
        assert_eq!(order, [Part::Reverse(0), Part::LastHop, Part::Forward(1), Part::Sender(2)]);
    }

    #[test]
    fn seeds_favour_different_flows() {
        let first = |seed| {
            let mut agenda = Agenda::new(4, &mut Streams::new(seed).stream("ties"));
            (0..4).for_each(|flow| agenda.set(Part::Sender(flow), Some(Time::ZERO)));
            agenda.next().1
        };
        assert!((1..20).any(|seed| first(seed) != first(0)));
    }
}
