//! The delay profile: the delay measured for each window, and the curve that gives the window for a delay.
//!
//! Source: Verus §4

use super::spline;

/// Maximum window (packets).
///
/// Source: verus src/verus.hpp (`MAX_W_DELAY_CURVE`)
const MAX_PACKETS: usize = 40_000;

/// Weight of the old value in a window's delay when a packet of that window is acknowledged.
///
/// Source: verus src/verus_server.cpp
const KEPT: f64 = 0.875;

/// Minimum window that the profile must reach for a curve to be fitted.
///
/// Source: verus src/verus_server.cpp
const MIN_PACKETS: usize = 5;

/// The method of fitting the curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// A natural cubic spline through all points. The window of a delay is the largest window whose delay on the curve
    /// is not longer. If noise made the delay of a window too long, larger windows can still be found.
    ///
    /// Source: Verus §4
    Interpolated,
    /// A smooth cubic spline between the points. Its knots are 15 packets apart, or closer if there would be fewer than
    /// five knots. The window of a delay is the window before the first window whose delay is longer.
    ///
    /// Source: verus src/verus_server.cpp
    Penalised,
}

impl Fit {
    /// Returns `delays_ms`, modified so that the delays never fall from one window to the next.
    fn rising(self, delays_ms: &[f64]) -> Vec<f64> {
        let mut rising = delays_ms.to_vec();
        match self {
            Fit::Interpolated => {
                for index in (1..rising.len()).rev() {
                    rising[index - 1] = rising[index - 1].min(rising[index]);
                }
            }
            Fit::Penalised => {
                for index in 1..rising.len() {
                    rising[index] = rising[index].max(rising[index - 1]);
                }
            }
        }
        rising
    }
}

/// Delays per window, and the last fitted curve.
#[derive(Clone, Debug)]
pub struct DelayProfile {
    fit: Fit,
    /// Mean delay in ms of windows 0, 1, …; NaN for windows without a delay.
    points_ms: Vec<f64>,
    curve: Option<Curve>,
}

/// The fitted curve as a table.
#[derive(Clone, Debug)]
struct Curve {
    /// Delay in ms of windows 0, 1, …
    delays_ms: Vec<f64>,
    /// The delays from window 2 on, modified so that they rise. Each delay then occurs once.
    rising_ms: Vec<f64>,
    /// Slope of the curve beyond the end of the table, in ms per packet.
    slope_ms: f64,
}

impl DelayProfile {
    /// An empty profile.
    pub fn new(fit: Fit) -> DelayProfile {
        DelayProfile { fit, points_ms: vec![], curve: None }
    }

    /// Records the delay `delay_ms` of a packet that left with `window`.
    pub fn record(&mut self, window: f64, delay_ms: f64) {
        let window = (window as usize).clamp(1, MAX_PACKETS - 1);
        if window >= self.points_ms.len() {
            self.points_ms.resize(window + 1, f64::NAN);
        }
        let point = &mut self.points_ms[window];
        *point = if point.is_nan() { delay_ms } else { *point * KEPT + delay_ms * (1.0 - KEPT) };
    }

    /// Discards the delays of all windows from `window` on.
    pub fn forget_from(&mut self, window: f64) {
        self.points_ms.truncate(window as usize);
        while self.points_ms.last().is_some_and(|point| point.is_nan()) {
            self.points_ms.pop();
        }
    }

    /// The largest window whose delay is known.
    pub fn largest(&self) -> usize {
        self.points_ms.len().saturating_sub(1)
    }

    /// Fits the curve again. Returns false if there are too few points.
    pub fn fit(&mut self) -> bool {
        let points: Vec<(f64, f64)> = self
            .points_ms
            .iter()
            .enumerate()
            .filter(|(_, delay_ms)| !delay_ms.is_nan())
            .map(|(window, delay_ms)| (window as f64, *delay_ms))
            .collect();
        let largest = self.largest();
        if largest < MIN_PACKETS || points.len() < 2 {
            return false;
        }
        let (delays_ms, slope_ms) = match self.fit {
            Fit::Interpolated => (spline::interpolated(&points, largest), slope_of_upper_half(&points)),
            Fit::Penalised => {
                let knots = (largest as f64 / 15.0).max(5.0) as usize;
                let parts = knots - 1;
                let delays_ms = spline::penalised(&points, largest, parts);
                let slope_ms = delays_ms[largest] - delays_ms[largest - 1];
                (delays_ms, slope_ms)
            }
        };
        let rising_ms = self.fit.rising(&delays_ms[2..]);
        self.curve = Some(Curve { delays_ms, rising_ms, slope_ms });
        true
    }

    /// The delay of `window`, in ms; `None` if there is no curve.
    pub fn delay_ms(&self, window: f64) -> Option<f64> {
        let curve = self.curve.as_ref()?;
        let last = curve.delays_ms.len() - 1;
        let below = (window.max(0.0) as usize).min(last);
        let next = curve.delays_ms[(below + 1).min(last)];
        let beyond = (window - last as f64).max(0.0) * curve.slope_ms;
        let within = (next - curve.delays_ms[below]) * (window - below as f64).clamp(0.0, 1.0);
        Some(curve.delays_ms[below] + within + beyond)
    }

    /// The window whose delay is `delay_ms`; `None` if the curve never reaches that delay.
    ///
    /// Source: Verus §4
    ///
    /// Chosen: the result is at most twice the maximum window observed, because the curve gives no information about
    /// larger windows.
    pub fn window(&self, delay_ms: f64) -> Option<f64> {
        let curve = self.curve.as_ref()?;
        let longer = 2 + curve.rising_ms.partition_point(|rising| *rising <= delay_ms);
        if longer < curve.delays_ms.len() {
            return Some((longer - 1) as f64);
        }
        let last = curve.delays_ms.len() - 1;
        let beyond = (delay_ms - curve.delays_ms[last]) / curve.slope_ms;
        let rises = curve.slope_ms > 0.0 && beyond.is_finite();
        let most = (2 * last).min(MAX_PACKETS - 1) as f64;
        rises.then(|| libm::floor(last as f64 + beyond).clamp(1.0, most))
    }
}

/// Mean slope of the upper half of the points, in ms per packet.
///
/// Chosen: this is the slope of an interpolated curve beyond its end. The slope at the end of the curve depends only on
/// the noise of the last two points.
fn slope_of_upper_half(points: &[(f64, f64)]) -> f64 {
    let (last, middle) = (points[points.len() - 1], points[(points.len() - 1) / 2]);
    (last.1 - middle.1) / (last.0 - middle.0)
}
