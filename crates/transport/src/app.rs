//! The contract of an application that runs over an endpoint: a file transfer, a measurement, a file server.

use airpace_core::Time;

use crate::endpoint::{ConnectionId, Endpoint, Event};

/// An application over an endpoint. It reads and writes the streams of connections when events report that it can.
pub trait App {
    /// Processes an event of a connection.
    fn on_event(&mut self, now: Time, endpoint: &mut dyn Endpoint, connection: ConnectionId, event: Event);

    /// Runs the timers that are due. The driver calls this at the instant that [`App::poll_timeout`] returned, and whenever
    /// it wakes up for another reason. A call at any time does no harm.
    fn handle_timeout(&mut self, now: Time, endpoint: &mut dyn Endpoint);

    /// Deadline at which to call [`App::handle_timeout`], if nothing happens earlier.
    fn poll_timeout(&self) -> Option<Time>;

    /// Whether the application has finished. The driver then lets the endpoint send its last datagrams, and stops.
    fn is_done(&self) -> bool;

    /// Whether the driver, after the application has finished, waits until each peer knows that its connection is
    /// closed, because the datagram with the close may be lost. Without this wait, such a peer keeps the connection
    /// until its idle timeout.
    fn waits_for_peers(&self) -> bool {
        false
    }
}
