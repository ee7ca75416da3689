//! The contract of what runs over an endpoint: a transfer, a measurement, a server of files.

use airpace_core::Time;

use crate::endpoint::{ConnectionId, Endpoint, Event};

/// What runs over an endpoint. It reads and writes the streams of connections when events say that it can.
pub trait App {
    /// Something happened to a connection.
    fn on_event(&mut self, now: Time, endpoint: &mut dyn Endpoint, connection: ConnectionId, event: Event);

    /// The instant that [`App::next`] returned has come, or the driver woke for another reason. A call at any time
    /// does no harm.
    fn on_timeout(&mut self, now: Time, endpoint: &mut dyn Endpoint);

    /// When to call [`App::on_timeout`], if nothing happens earlier.
    fn next(&self) -> Option<Time>;

    /// Whether nothing is left to do. The driver then lets the endpoint send its last datagrams, and ends.
    fn is_done(&self) -> bool;

    /// Whether the driver, when nothing is left to do, waits until each peer knows that its connection is over: the datagram
    /// that says so may be lost. Without it the peer waits until it has heard nothing for long enough.
    fn waits_for_peers(&self) -> bool {
        false
    }
}
