//! Division of a device's bandwidth among its flows.

use crate::registry::DeviceFlows;

/// Weight of the equal share in [`Split::Proportional`]. The share of the recent use has the remaining weight.
///
/// Chosen: flows that are not application-limited have equal shares after a dozen of the registry's use windows. An
/// application-limited flow leaves most of its unused share to others.
const EQUALITY: f64 = 0.25;

/// How a device's bandwidth is divided among its flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    /// Every active flow gets an equal share.
    ///
    /// Source: BISCAY §A.5.1 (`BWSplitPolicy`); BISCAY §A.5.2
    Equal,
    /// Every application gets an equal share, and divides it equally among its flows.
    ///
    /// Source: BISCAY §A.5.2
    App,
    /// Every flow gets the weighted mean of its share of the recently used bandwidth and the equal share.
    ///
    /// Source: BISCAY §A.5.2 (proportional fairness, without a rule)
    Proportional,
}

impl Split {
    /// This flow's share of the device's bandwidth, 0…1.
    pub fn share(self, device: &DeviceFlows) -> f64 {
        let part = |of: u16| 1.0 / f64::from(of.max(1));
        match self {
            Split::Equal => part(device.flows),
            Split::App => part(device.apps) * part(device.app_flows),
            Split::Proportional => (1.0 - EQUALITY) * device.used_share + EQUALITY * part(device.flows),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEVICE: DeviceFlows = DeviceFlows { flows: 6, apps: 2, app_flows: 5, used_share: 0.5 };

    #[test]
    fn flows_or_applications_are_equal() {
        assert_eq!(Split::Equal.share(&DEVICE), 1.0 / 6.0);
        assert_eq!(Split::App.share(&DEVICE), 0.1, "five sockets get no more than one socket");
        assert_eq!(Split::App.share(&DeviceFlows { app_flows: 1, ..DEVICE }), 0.5);
    }

    #[test]
    fn proportional_shares_of_bulk_flows_become_equal_and_always_are_the_whole() {
        let mut shares = [0.9, 0.08, 0.02];
        for _ in 0..20 {
            shares = shares.map(|used_share| {
                Split::Proportional.share(&DeviceFlows { flows: 3, apps: 3, app_flows: 1, used_share })
            });
            assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        }
        assert!(shares.iter().all(|share| (share - 1.0 / 3.0).abs() < 0.01), "{shares:?}");
    }
}
