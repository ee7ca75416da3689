//! Which way data goes between a cell and its devices.

/// Which way data goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// From the cell to the device.
    #[default]
    Downlink,
    /// From the device to the cell.
    Uplink,
}
