//! Event queue of the simulator and of the network: finds the part with the earliest deadline.

use crate::time::Time;

/// The deadlines of a fixed number of parts, by the index of each part. If the deadlines of several parts are equal,
/// the part with the lowest index comes first.
///
/// A change of a deadline and the search for the next part take logarithmic time in the number of parts.
#[derive(Clone, Debug)]
pub struct Deadlines {
    /// A binary tree in an array: node 1 is the root, nodes 2n and 2n + 1 are below node n, and the lowest row holds
    /// the deadlines of the parts. Each node holds the earliest deadline below the node.
    earliest: Vec<Time>,
    /// Index of the first node of the lowest row.
    leaves: usize,
}

impl Deadlines {
    /// Creates a queue for `parts` parts without deadlines.
    pub fn new(parts: usize) -> Deadlines {
        let leaves = parts.next_power_of_two();
        Deadlines { earliest: vec![Time::NEVER; 2 * leaves], leaves }
    }

    /// Sets the deadline of part `place`; `None` means that the part has no deadline.
    ///
    /// # Panics
    /// If `place` is not below the number of parts, rounded up to a power of two.
    #[inline]
    pub fn set(&mut self, place: usize, deadline: Option<Time>) {
        let mut node = self.leaves + place;
        let deadline = deadline.unwrap_or(Time::NEVER);
        if self.earliest[node] == deadline {
            return;
        }
        self.earliest[node] = deadline;
        while node > 1 {
            node /= 2;
            let earliest = self.earliest[2 * node].min(self.earliest[2 * node + 1]);
            if self.earliest[node] == earliest {
                return;
            }
            self.earliest[node] = earliest;
        }
    }

    /// The earliest deadline; [`Time::NEVER`] if no part has a deadline.
    #[inline]
    pub fn first(&self) -> Time {
        self.earliest[1]
    }

    /// The earliest deadline and the index of its part; [`Time::NEVER`] if no part has a deadline.
    #[inline]
    pub fn next(&self) -> (Time, usize) {
        let first = self.earliest[1];
        let mut node = 1;
        while node < self.leaves {
            node *= 2;
            if self.earliest[node] != first {
                node += 1;
            }
        }
        (first, node - self.leaves)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Streams;

    #[test]
    fn the_earliest_comes_first_and_the_lowest_place_among_equals() {
        let mut rng = Streams::new(7).stream("deadlines");
        for parts in [1, 2, 3, 5, 8, 33] {
            let mut deadlines = Deadlines::new(parts);
            let mut plain = vec![Time::NEVER; parts];
            for _ in 0..400 {
                let place = (rng.next_u64() % parts as u64) as usize;
                // The test uses few distinct instants, so that many deadlines are equal.
                let deadline = (!rng.chance(0.2)).then(|| Time::from_millis(rng.next_u64() % 5));
                deadlines.set(place, deadline);
                plain[place] = deadline.unwrap_or(Time::NEVER);
                let first = *plain.iter().min().unwrap();
                let (time, next) = deadlines.next();
                assert_eq!(deadlines.first(), time);
                assert_eq!((time, Some(next)), (first, plain.iter().position(|&time| time == first)));
            }
        }
    }
}
