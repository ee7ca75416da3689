//! Trajectory: a level that is interpolated between points in time.

use airpace_core::Refused;

/// Linear interpolation between points (time in seconds, level in dB or dBm). Before the first point and after the last,
/// the level is constant.
#[derive(Clone, Debug)]
pub struct Trajectory {
    points: Vec<(f64, f64)>,
}

impl Trajectory {
    /// A trajectory through these points. Returns an error if there is no point, a number is not finite, or a time is
    /// not later than the previous time.
    pub fn new(points: &[(f64, f64)]) -> Result<Trajectory, Refused> {
        if points.is_empty() {
            return Err("has no point".into());
        }
        if let Some(point) = points.iter().find(|(time_s, level)| !time_s.is_finite() || !level.is_finite()) {
            return Err(format!("has a point that is not two finite numbers: {point:?}").into());
        }
        if let Some(pair) = points.windows(2).find(|pair| pair[0].0 >= pair[1].0) {
            return Err(format!("goes back in time, from {} s to {} s", pair[0].0, pair[1].0).into());
        }
        Ok(Trajectory { points: points.to_vec() })
    }

    /// Whether the level never changes.
    pub fn is_static(&self) -> bool {
        self.points.iter().all(|point| point.1 == self.points[0].1)
    }

    /// The highest level.
    pub fn highest(&self) -> f64 {
        self.points.iter().map(|point| point.1).fold(f64::NEG_INFINITY, f64::max)
    }

    /// The level at a time, in milliseconds from the start of the run.
    pub fn at(&self, time_ms: f64) -> f64 {
        let time_s = time_ms * 1e-3;
        let next = self.points.partition_point(|point| point.0 <= time_s);
        match (next.checked_sub(1).map(|last| self.points[last]), self.points.get(next)) {
            (Some((from_s, from)), Some(&(to_s, to))) => {
                from + (time_s - from_s) / (to_s - from_s) * (to - from)
            }
            (Some((_, level)), None) => level,
            (None, _) => self.points[0].1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_straight_from_point_to_point_and_stays_at_the_ends() {
        let trajectory = Trajectory::new(&[(1.0, -85.0), (3.0, -105.0)]).unwrap();
        assert_eq!(
            [0.0, 1000.0, 2000.0, 3000.0, 9000.0].map(|ms| trajectory.at(ms)),
            [-85.0, -85.0, -95.0, -105.0, -105.0]
        );
    }

    #[test]
    fn what_is_no_trajectory_is_refused_with_the_reason() {
        assert!(Trajectory::new(&[]).unwrap_err().to_string().contains("no point"));
        assert!(Trajectory::new(&[(0.0, 1.0), (0.0, 2.0)]).unwrap_err().to_string().contains("back in time"));
        assert!(Trajectory::new(&[(0.0, f64::NAN)]).unwrap_err().to_string().contains("finite"));
    }
}
