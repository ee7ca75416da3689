//! Replacement of a flow's endpoints.

use airpace_cc::{Ends, SchemeSpec};

/// A function that receives the endpoints of a scheme, and returns the endpoints that replace them.
pub type Replace = Box<dyn FnOnce(Ends, &SchemeSpec) -> Ends>;

/// A replacement of the endpoints of a flow's first connection.
pub struct EndpointReplacement {
    /// Index of the flow in the scenario.
    pub flow: usize,
    /// Returns the endpoints that the connection uses.
    pub replace: Replace,
}
