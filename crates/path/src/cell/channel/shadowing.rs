//! Log-normal shadowing: the variation of path loss by buildings, correlated along the device's path.

use airpace_core::Rng;

/// Shadowing in dB along a straight path. Values are computed at points along the path that are a twentieth of the
/// decorrelation distance d_cor apart, and interpolated linearly between these points. They form a first-order
/// autoregressive process with correlation exp(-d / d_cor).
///
/// The values of the points are drawn in order of distance, so the shadowing at a time does not depend on the other
/// times for which it was computed.
///
/// Source: TR 36.942
#[derive(Clone, Debug)]
pub struct Shadowing {
    sigma_db: f64,
    metres_per_ms: f64,
    place_m: f64,
    correlation: f64,
    /// Index of the last point that the device has passed. The next fields are the shadowing (dB) at this point and at
    /// the next point.
    place: u64,
    behind_db: f64,
    ahead_db: f64,
    rng: Rng,
}

impl Shadowing {
    /// Shadowing with this standard deviation and decorrelation distance for a device with this speed.
    pub fn new(sigma_db: f64, decorrelation_m: f64, speed_kmh: f64, mut rng: Rng) -> Shadowing {
        let correlation = libm::exp(-1.0 / PLACES_PER_DECORRELATION);
        let behind_db = sigma_db * rng.normal();
        let mut shadowing = Shadowing {
            sigma_db,
            metres_per_ms: speed_kmh / 3600.0,
            place_m: decorrelation_m / PLACES_PER_DECORRELATION,
            correlation,
            place: 0,
            behind_db,
            ahead_db: behind_db,
            rng,
        };
        shadowing.ahead_db = shadowing.place_after(behind_db);
        shadowing
    }

    /// Whether the value never changes.
    pub fn is_static(&self) -> bool {
        self.metres_per_ms == 0.0
    }

    /// Shadowing in dB (positive: more power) at a time, in milliseconds from the start of the run. The time must not
    /// decrease from call to call.
    pub fn at(&mut self, time_ms: f64) -> f64 {
        let way = time_ms * self.metres_per_ms / self.place_m;
        while self.place < way as u64 {
            self.place += 1;
            self.behind_db = self.ahead_db;
            self.ahead_db = self.place_after(self.behind_db);
        }
        self.behind_db + (way - self.place as f64) * (self.ahead_db - self.behind_db)
    }

    fn place_after(&mut self, value_db: f64) -> f64 {
        let fresh = libm::sqrt(1.0 - self.correlation * self.correlation);
        self.correlation * value_db + fresh * self.sigma_db * self.rng.normal()
    }
}

const PLACES_PER_DECORRELATION: f64 = 20.0;

#[cfg(test)]
mod tests {
    use super::*;
    use airpace_core::Streams;

    /// Shadowing of a device with a speed of 36 km/h, which moves one metre in 100 subframes.
    fn walk(seed: u64) -> Shadowing {
        Shadowing::new(8.0, 50.0, 36.0, Streams::new(seed).stream("shadowing"))
    }

    #[test]
    fn it_spreads_as_told_and_forgets_over_the_decorrelation_distance() {
        let mut shadowing = walk(1);
        let metres: Vec<f64> = (0..400_000).map(|metre| shadowing.at(f64::from(metre * 100))).collect();
        let mean = |values: &mut dyn Iterator<Item = f64>| {
            let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
            sum / count
        };
        let power = mean(&mut metres.iter().map(|s| s * s));
        assert!((power.sqrt() - 8.0).abs() < 0.4, "standard deviation {} dB", power.sqrt());
        let after_50_m = mean(&mut metres.windows(51).map(|w| w[0] * w[50])) / power;
        assert!((after_50_m - (-1.0_f64).exp()).abs() < 0.05, "correlation after 50 m is {after_50_m}");
    }

    #[test]
    fn asking_rarely_gives_the_same_walk() {
        let (mut often, mut rarely) = (walk(2), walk(2));
        let each: Vec<f64> = (0..100_000).map(|subframe| often.at(f64::from(subframe))).collect();
        for subframe in (0..100_000_u32).step_by(7_919) {
            assert_eq!(rarely.at(f64::from(subframe)), each[subframe as usize]);
        }
    }

    #[test]
    fn a_device_at_rest_keeps_its_shadow() {
        let mut shadowing = Shadowing::new(8.0, 50.0, 0.0, Streams::new(3).stream("shadowing"));
        assert_eq!(shadowing.at(0.0), shadowing.at(1e6));
        assert!(shadowing.is_static());
    }
}
