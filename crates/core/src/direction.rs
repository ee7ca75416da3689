//! The direction of data between a cell and its devices.

/// The direction of data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// From the cell to the device.
    #[default]
    Downlink,
    /// From the device to the cell.
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
