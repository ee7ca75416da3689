//! The size of the rate change for a gradient.
//!
//! Source: Dong et al., PCC Vivace, NSDI 2018, §5

/// Factor that converts a gradient to a change of the rate, in Mbit/s per unit of gradient.
///
/// Source: Dong et al., PCC Vivace, NSDI 2018, §5 (θ₀)
const THETA: f64 = 1.0;

/// Initial maximum change of the rate per step (the boundary), relative to the rate.
///
/// Source: Dong et al., PCC Vivace, NSDI 2018, §5 (ω₀)
const OMEGA: f64 = 0.05;

/// Upper limit of the boundary, relative to the rate.
///
/// Chosen: the paper has no upper limit. But a rate that falls to zero cannot rise again.
const WIDEST: f64 = 0.5;

/// How the confidence factor grows with the number τ of consecutive steps in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amplifier {
    /// The factor is τ up to 3, 2τ − 3 up to 6, 4τ − 9 up to 9, 9τ − 50 beyond.
    Pieces,
    /// The factor is τ^1.2.
    Power,
}

impl Amplifier {
    /// The factor of the τ-th step in one direction.
    pub fn of(self, steps: u32) -> f64 {
        let tau = f64::from(steps);
        match (self, steps) {
            (Amplifier::Power, _) => libm::pow(tau, 1.2),
            (_, 0..=3) => tau,
            (_, 4..=6) => 2.0 * tau - 3.0,
            (_, 7..=9) => 4.0 * tau - 9.0,
            _ => 9.0 * tau - 50.0,
        }
    }
}

/// The maximum change of the rate, relative to the rate. It becomes wider while changes reach it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Boundary {
    widening: f64,
    hits: u32,
}

impl Boundary {
    /// A boundary that widens by `widening` at each hit.
    pub fn new(widening: f64) -> Boundary {
        Boundary { widening, hits: 0 }
    }

    /// Returns the permitted part of the change `wanted`. Argument and result are absolute values relative to the rate.
    pub fn allow(&mut self, wanted: f64) -> f64 {
        let boundary = self.get();
        if wanted > boundary {
            if boundary < WIDEST {
                self.hits += 1;
            }
            return boundary;
        }
        // The number of hits falls to the minimum that permits the wanted change.
        while self.hits > 0 && wanted <= self.with(self.hits - 1) {
            self.hits -= 1;
        }
        wanted
    }

    /// The current boundary.
    pub fn get(&self) -> f64 {
        self.with(self.hits)
    }

    fn with(&self, hits: u32) -> f64 {
        (OMEGA + f64::from(hits) * self.widening).min(WIDEST)
    }
}

/// Converts gradients to changes of the rate, and counts consecutive steps in one direction.
#[derive(Clone, Copy, Debug)]
pub struct Stride {
    amplifier: Amplifier,
    boundary: Boundary,
    least_mbps: f64,
    is_up: bool,
    steps: u32,
}

impl Stride {
    /// State before the first step.
    pub fn new(amplifier: Amplifier, boundary: Boundary, least_mbps: f64) -> Stride {
        Stride { amplifier, boundary, least_mbps, is_up: true, steps: 0 }
    }

    /// Whether the gradient points in the direction of the last step.
    pub fn agrees(&self, gradient: f64) -> bool {
        self.steps > 0 && gradient != 0.0 && (gradient > 0.0) == self.is_up
    }

    /// The change of a rate, in Mbit/s, for the gradient.
    pub fn next(&mut self, rate_mbps: f64, gradient: f64) -> f64 {
        if !self.agrees(gradient) {
            self.reset();
            self.is_up = gradient > 0.0;
        }
        self.steps = self.steps.saturating_add(1);
        let wanted = self.amplifier.of(self.steps) * THETA * gradient.abs() / rate_mbps;
        let change = (self.boundary.allow(wanted) * rate_mbps).max(self.least_mbps);
        if self.is_up { change } else { -change }
    }

    /// Discards the direction of the last steps.
    pub fn reset(&mut self) {
        self.steps = 0;
        self.boundary.hits = 0;
    }

    /// Number of consecutive steps in one direction; negative if the rate falls.
    pub fn steps(&self) -> f64 {
        let steps = f64::from(self.steps);
        if self.is_up { steps } else { -steps }
    }

    /// The current maximum change, relative to the rate.
    pub fn boundary(&self) -> f64 {
        self.boundary.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn confidence_grows_in_pieces() {
        let of: Vec<f64> = (1..=11).map(|steps| Amplifier::Pieces.of(steps)).collect();
        assert_eq!(of, [1.0, 2.0, 3.0, 5.0, 7.0, 9.0, 19.0, 23.0, 27.0, 40.0, 49.0]);
    }

    #[test]
    fn the_boundary_widens_while_it_is_hit_and_narrows_to_what_is_wanted() {
        let mut boundary = Boundary::new(0.1);
        assert_eq!(boundary.allow(0.5), 0.05);
        assert!((boundary.allow(0.5) - 0.15).abs() < 1e-12);
        assert!((boundary.allow(0.5) - 0.25).abs() < 1e-12);
        assert_eq!(boundary.allow(0.08), 0.08, "within it");
        assert!((boundary.get() - 0.15).abs() < 1e-12, "one hit is enough for 0.08");
        for _ in 0..100 {
            assert!(boundary.allow(f64::INFINITY) <= WIDEST);
        }
    }

    #[test]
    fn a_flip_begins_anew() {
        let mut stride = Stride::new(Amplifier::Pieces, Boundary::new(0.1), 0.0);
        assert_eq!(stride.next(100.0, 1.0), 1.0);
        assert_eq!(stride.next(100.0, 1.0), 2.0, "the second step counts double");
        assert!(!stride.agrees(-1.0));
        assert_eq!(stride.next(100.0, -1.0), -1.0);
        assert_eq!(stride.next(100.0, -1000.0), -5.0, "bounded");
        assert_eq!(
            Stride::new(Amplifier::Power, Boundary::new(0.1), 0.5).next(2.0, 0.01),
            0.5,
            "the step is the least one"
        );
    }
}
