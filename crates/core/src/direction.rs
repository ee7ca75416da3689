//! The direction of data between a cell and its devices.

/// The direction of data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// Data moves from the cell to the device.
    #[default]
    Downlink,
    /// Data moves from the device to the cell.
    Uplink,
}

impl Direction {
    /// Both directions, the downlink first.
    pub const BOTH: [Direction; 2] = [Direction::Downlink, Direction::Uplink];

    /// The opposite direction.
    pub const fn opposite(self) -> Direction {
        match self {
            Direction::Downlink => Direction::Uplink,
            Direction::Uplink => Direction::Downlink,
        }
    }
}
