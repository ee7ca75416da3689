//! Proxies that split a flow's connection in two.

use airpace_core::{Bytes, Direction};
use airpace_path::ConfigError;
use airpace_path::config_error::positive;
use serde::Deserialize;

use super::{AckPath, Document, Flow};

/// A proxy on the path of a download, which splits its connection: the proxy acknowledges the server's data and sends them
/// again to the device. The flow's scheme controls the leg from the proxy to the device.
///
/// The proxy has a flow of its own in all results, the *server leg*, after all flows of the scenario.
///
/// Source: MORC §3.2
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proxy {
    /// Minimum round-trip time between proxy and device, in ms. The rest of the flow's `rtt_ms` is between server and proxy.
    pub rtt_ms: f64,
    /// Scheme of the server.
    #[serde(default = "usual_scheme")]
    pub scheme: String,
    /// The leg that crosses the `[internet]` queue, with the losses, jitter and rates of `[forward]` and `[reverse]`: `server` or
    /// `device`. The wires of the other leg have a delay only.
    #[serde(default)]
    pub internet: Leg,
    /// Maximum number of bytes that the proxy holds: bytes that the server has sent and the device has not acknowledged.
    #[serde(default = "usual_buffer")]
    pub buffer_bytes: u64,
}

/// A leg of a split connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Leg {
    /// From the server to the proxy.
    #[default]
    Server,
    /// From the proxy to the device.
    Device,
}

/// The part of its connection that a flow is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Part {
    /// All of it: there is no proxy.
    #[default]
    Whole,
    /// The leg from the server to the proxy.
    ToProxy {
        /// Index of the flow from the proxy to the device.
        device_leg: u16,
        /// Maximum number of bytes that the proxy holds.
        buffer: Bytes,
    },
    /// The leg from the proxy to the device.
    FromProxy {
        /// Index of the flow from the server to the proxy.
        server_leg: u16,
    },
}

/// Source: RFC 9438, the default of Linux and of other servers
fn usual_scheme() -> String {
    "cubic".to_owned()
}

/// Chosen: the maximum receive buffer of Linux (`tcp_rmem`), 6 MiB
fn usual_buffer() -> u64 {
    6 << 20
}

impl Document {
    /// Splits the flows with a proxy: the flow becomes the leg to the device, and a flow for the leg from the server is
    /// added after all others.
    ///
    /// # Errors
    /// A proxy cannot stand where it is.
    pub(crate) fn split_connections(&mut self) -> Result<(), ConfigError> {
        for index in 0..self.flow.len() {
            let Some(proxy) = self.flow[index].proxy.clone() else { continue };
            let (added, flow) = (self.flow.len() as u16, &mut self.flow[index]);
            let within = |error: ConfigError| error.within(&format!("flow.{index}"));
            flow.check_proxy(&proxy).map_err(within)?;
            let server_leg = Flow {
                label: format!("{}, server leg", flow.label),
                scheme: Some(proxy.scheme.clone()),
                rtt_ms: flow.rtt_ms - proxy.rtt_ms,
                internet: flow.internet && proxy.internet == Leg::Server,
                part: Part::ToProxy { device_leg: index as u16, buffer: Bytes(proxy.buffer_bytes) },
                ..flow.clone()
            };
            flow.rtt_ms = proxy.rtt_ms;
            flow.internet &= proxy.internet == Leg::Device;
            flow.part = Part::FromProxy { server_leg: added };
            self.flow.push(server_leg);
        }
        Ok(())
    }
}

impl Flow {
    /// Whether the wires of the flow have a delay only: it is the leg of a split connection that does not cross the Internet.
    pub(crate) fn has_plain_wires(&self) -> bool {
        let Some(proxy) = &self.proxy else { return false };
        match self.part {
            Part::Whole => false,
            Part::ToProxy { .. } => proxy.internet == Leg::Device,
            Part::FromProxy { .. } => proxy.internet == Leg::Server,
        }
    }

    /// Whether the flow ends at a proxy, before the last hop.
    pub fn ends_at_proxy(&self) -> bool {
        matches!(self.part, Part::ToProxy { .. })
    }

    fn check_proxy(&self, proxy: &Proxy) -> Result<(), ConfigError> {
        let within = |error: ConfigError| error.within("proxy");
        let rtt_ms = positive("rtt_ms", proxy.rtt_ms).map_err(within)?;
        if rtt_ms >= self.rtt_ms {
            let reason = format!(
                "is {rtt_ms}, but the whole round trip of the flow is {} (`rtt_ms`); give less, or a longer `rtt_ms`",
                self.rtt_ms
            );
            return Err(within(ConfigError::new("rtt_ms", reason)));
        }
        if proxy.buffer_bytes < self.mss_bytes {
            let reason = format!("is {}, less than a packet (`mss_bytes`); raise it", proxy.buffer_bytes);
            return Err(within(ConfigError::new("buffer_bytes", reason)));
        }
        if self.direction == Direction::Uplink {
            let reason = "splits downloads only; remove it, or set `direction` to `down`";
            return Err(ConfigError::new("proxy", reason));
        }
        let beside = [
            ("every_ms", self.every_ms.is_some()),
            ("request_bytes", self.request_bytes > 0),
            ("on_s", self.on_s.is_some()),
            ("rate_mbps", self.rate_mbps.is_some()),
            ("misreport", self.misreport.is_some()),
            ("acks", self.acks == AckPath::Cell),
        ];
        match beside.into_iter().find(|(_, is_there)| *is_there) {
            Some((key, _)) => {
                let reason = format!(
                    "stands beside `{key}`, but only unlimited data or one transfer can be split; remove either"
                );
                Err(ConfigError::new("proxy", reason))
            }
            None => Ok(()),
        }
    }
}
