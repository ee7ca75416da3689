//! What users may set of `morc`.

use std::time::Duration;

use super::target::Shape;

/// What the user may set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Profile {
    /// The target.
    pub shape: Shape,
    /// H, in loops of RTTmin and one target.
    pub ahead_loops: f64,
    /// Targets of queue for which the window has room; `None`: the frame's window.
    pub window_targets: Option<f64>,
    /// Whether the gain grows while the queue stays empty.
    pub boost: bool,
    /// For how many such loops the best received rate is remembered; 0: not.
    pub memory_loops: f64,
    /// Time without an empty queue after which it is drained; `None`: never.
    pub drain: Option<Duration>,
    /// It is also drained if it is longer than this many targets; `None`: however long it is.
    pub drain_above: Option<f64>,
    /// Whether losses of a short buffer count.
    pub overflow: bool,
    /// Whether it competes with flows that do not drain a queue.
    pub rival: bool,
}
