//! Options of `morc` that users may set.

use std::time::Duration;

use super::target::Shape;

/// Options of the learner `ahead`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Profile {
    /// The target of the queueing delay.
    pub shape: Shape,
    /// The time H by which the rule looks ahead, in multiples of (RTTmin + one target).
    pub ahead_loops: f64,
    /// Queueing delay that the window permits, in multiples of the target; `None`: the window of PCC.
    pub window_targets: Option<f64>,
    /// Whether the gain grows while the queue stays empty.
    pub boost: bool,
    /// Period over which the maximum received rate is taken, in multiples of (RTTmin + one target); 0: the maximum is
    /// not used.
    pub memory_loops: f64,
    /// Maximum time without an empty queue, after which the queue is drained; `None`: no such drains.
    pub drain: Option<Duration>,
    /// Queueing delay, in multiples of the target, above which the queue is also drained; `None`: no such drains.
    pub drain_above: Option<f64>,
    /// Whether overflows of a short buffer lower the target.
    pub overflow: bool,
    /// Whether `morc` competes with flows that do not drain a queue.
    pub rival: bool,
}
