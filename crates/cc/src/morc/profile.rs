//! Options of `morc` that users may set.

use std::time::Duration;

use super::target::Shape;

/// Options of the learner `ahead`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Profile {
    /// The target of the queueing delay.
    pub shape: Shape,
    /// H, in multiples of RTTmin plus one target.
    pub ahead_loops: f64,
    /// Number of targets of queue that the window covers; `None`: the window of PCC.
    pub window_targets: Option<f64>,
    /// Whether the gain grows while the queue stays empty.
    pub boost: bool,
    /// Window of the best received rate, in multiples of RTTmin plus one target; 0: it is not used.
    pub memory_loops: f64,
    /// Maximum time without an empty queue, after which the queue is drained; `None`: no such drains.
    pub drain: Option<Duration>,
    /// The queue is also drained if it is longer than this many targets; `None`: no such drains.
    pub drain_above: Option<f64>,
    /// Whether overflows of a short buffer lower the target.
    pub overflow: bool,
    /// Whether `morc` competes with flows that do not drain a queue.
    pub rival: bool,
}
