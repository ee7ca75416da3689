//! The slope of round-trip times over the sending times of their packets, by least squares, in six sums.

/// The sums from which mean and slope are computed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Regression {
    count: f64,
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
    yy: f64,
    /// The first value. All values are stored relative to this value, because sums of small numbers are more precise.
    origin: f64,
}

/// The slope of a straight line, and its error.
///
/// The slope of a queue's delay over the sending time is (arrival rate − capacity) / capacity.
///
/// Source: Dong et al., PCC Vivace, NSDI 2018, §4.1
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Trend {
    /// Slope, in seconds of round-trip time per second of sending; zero with fewer than two sending times.
    pub slope: f64,
    /// Standard error of the slope; zero with fewer than three samples.
    pub error: f64,
}

impl Regression {
    /// Adds a packet sent at `x_s` with the value `y_s`.
    pub fn add(&mut self, x_s: f64, y_s: f64) {
        if self.count == 0.0 {
            self.origin = y_s;
        }
        let y = y_s - self.origin;
        self.count += 1.0;
        self.x += x_s;
        self.y += y;
        self.xx += x_s * x_s;
        self.xy += x_s * y;
        self.yy += y * y;
    }

    /// The mean of the values; `None` without any.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0.0).then(|| self.origin + self.y / self.count)
    }

    /// The line through the samples.
    pub fn trend(&self) -> Trend {
        let n = self.count;
        let spread_x = self.xx - self.x * self.x / n.max(1.0);
        // Sending times less than a nanosecond apart count as one.
        if n < 2.0 || spread_x < 1e-18 {
            return Trend::default();
        }
        let slope = (self.xy - self.x * self.y / n) / spread_x;
        let residual = (self.yy - self.y * self.y / n - slope * slope * spread_x).max(0.0);
        let error = if n < 3.0 { 0.0 } else { libm::sqrt(residual / (n - 2.0) / spread_x) };
        Trend { slope, error }
    }
}
