//! Validation of transfers: a flow of limited size has one transfer, or repeated transfers, and a video one per segment.

use airpace_core::remedy::explain_plainly;
use airpace_core::{Direction, Refused};
use airpace_path::ConfigError;
use airpace_path::config_error::positive;
use airpace_path::network::DATA_BYTES;

use crate::document::{Document, Flow};

/// Minimum interval between two transfers of a flow, in milliseconds.
///
/// Chosen: the duration of a subframe.
const MIN_EVERY_MS: f64 = 1.0;

/// Maximum number of transfers of all flows of a run together: the times of each transfer are kept.
///
/// Chosen: so that the times take some megabytes of memory.
const MAX_TRANSFERS: f64 = 1e5;

impl Document {
    /// Rejects invalid transfers, and more transfers than the maximum.
    pub(super) fn check_transfers(&self) -> Result<(), ConfigError> {
        let mut transfers = 0.0;
        for (index, flow) in self.flow.iter().enumerate() {
            flow.check_transfers().map_err(|error| error.within(&format!("flow.{index}")))?;
            transfers += flow.video.as_ref().map_or(0.0, |video| f64::from(video.segments()));
            if transfers > MAX_TRANSFERS {
                let reason = format!(
                    "has too many segments: flows make more than {MAX_TRANSFERS} transfers; shorten it"
                );
                return Err(ConfigError::new(format!("flow.{index}.video"), reason));
            }
            let Some(every_ms) = flow.every_ms else { continue };
            transfers += self.duration_s * 1e3 / every_ms;
            if transfers > MAX_TRANSFERS {
                let reason = format!(
                    "is {every_ms}: flows make more than {MAX_TRANSFERS} transfers; give a longer time"
                );
                return Err(ConfigError::new(format!("flow.{index}.every_ms"), reason));
            }
        }
        Ok(())
    }
}

impl Flow {
    fn check_transfers(&self) -> Result<(), ConfigError> {
        self.check_video()?;
        if let Some(every_ms) = self.every_ms
            && positive("every_ms", every_ms)? < MIN_EVERY_MS
        {
            let reason = format!("is {every_ms}; the least is {MIN_EVERY_MS}");
            return Err(ConfigError::new("every_ms", reason));
        }
        let asks = [("every_ms", self.every_ms.is_some()), ("request_bytes", self.request_bytes > 0)];
        for (key, _) in asks.into_iter().filter(|(_, is_there)| *is_there && self.video.is_none()) {
            if self.bytes.is_none() {
                let reason = "stands without `bytes`, the size of a transfer; add it";
                return Err(ConfigError::new(key, reason));
            }
            for (other, is_there) in [("on_s", self.on_s.is_some()), ("rate_mbps", self.rate_mbps.is_some())]
            {
                if is_there {
                    let reason = format!(
                        "stands beside `{other}`, but a transfer is sent as fast as its scheme allows; remove either"
                    );
                    return Err(ConfigError::new(key, reason));
                }
            }
        }
        if self.connection.is_some() && self.every_ms.is_none() {
            let reason = "stands without `every_ms`; a single transfer has a single connection: remove it";
            return Err(ConfigError::new("connection", reason));
        }
        if self.request_bytes > 0 && self.direction == Direction::Uplink {
            let reason = "is for downloads; the sender of an upload needs no request: remove it";
            return Err(ConfigError::new("request_bytes", reason));
        }
        if self.request_bytes > DATA_BYTES.0 {
            let reason = format!(
                "is {}; a request is one packet of at most {} bytes",
                self.request_bytes, DATA_BYTES.0
            );
            return Err(ConfigError::new("request_bytes", reason));
        }
        if self.start_up_bytes == 0 {
            let reason = "is 0; give 1 for the first byte";
            return Err(ConfigError::new("start_up_bytes", reason));
        }
        Ok(())
    }

    fn check_video(&self) -> Result<(), ConfigError> {
        if let Some(viewing) = &self.viewing {
            viewing.validate().map_err(|refused| named(&refused, "viewing"))?;
            if self.video.is_none() {
                let reason = "stands without `video`, which is viewed; add it";
                return Err(ConfigError::new("viewing", reason));
            }
        }
        let Some(video) = &self.video else { return Ok(()) };
        video.validate().map_err(|refused| named(&refused, "video"))?;
        let others = [
            ("bytes", self.bytes.is_some()),
            ("every_ms", self.every_ms.is_some()),
            ("rate_mbps", self.rate_mbps.is_some()),
            ("on_s", self.on_s.is_some()),
        ];
        if let Some((key, _)) = others.into_iter().find(|(_, is_there)| *is_there) {
            let reason =
                "stands beside `video`, whose player decides when and what it requests; remove either";
            return Err(ConfigError::new(key, reason));
        }
        if self.direction == Direction::Uplink {
            let reason = "is `up`, but the player of a `video` is at the device; leave it out";
            return Err(ConfigError::new("direction", reason));
        }
        if self.request_bytes == 0 {
            let reason = "is 0, but a player requests each segment of a `video`; give the size of a request, such as 400";
            return Err(ConfigError::new("request_bytes", reason));
        }
        Ok(())
    }
}

/// The error of a key in `table`, which starts with the key in backticks.
fn named(refused: &Refused, table: &str) -> ConfigError {
    let text = explain_plainly(refused);
    let parts = text.strip_prefix('`').and_then(|rest| rest.split_once("` "));
    let error = match parts {
        Some((key, reason)) => ConfigError::new(key, reason),
        None => return ConfigError::new(table, text),
    };
    error.within(table)
}
