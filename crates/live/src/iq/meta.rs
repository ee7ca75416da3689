//! What a SigMF description says of its samples.

use std::path::Path;

use serde_json::{Map, Value};

use super::{Error, Format};

/// What is known of a recording.
#[derive(Clone, Debug, PartialEq)]
pub struct Meta {
    /// How a sample is written.
    pub format: Format,
    /// Samples per second.
    pub sample_rate_hz: f64,
    /// Bytes before the first sample, and after the last.
    pub header_bytes: u64,
    /// Bytes after the last sample that are none.
    pub trailing_bytes: u64,
    /// Stretches without a gap, in order; at least one.
    pub segments: Vec<Segment>,
    /// Everything else at the top, as it is written there (`core:description`, `lte:…`).
    pub extra: Map<String, Value>,
}

/// A stretch of a recording without a gap: a SigMF capture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Segment {
    /// Its first sample, by place in the file.
    pub start: u64,
    /// Its first sample, by the receiver's count; larger than where the last segment ended if samples were lost.
    pub global_index: Option<u64>,
    /// Where the receiver was tuned to.
    pub frequency_hz: Option<f64>,
}

impl Meta {
    /// Of samples of which only this is known.
    pub fn raw(format: Format, sample_rate_hz: f64) -> Meta {
        Meta {
            format,
            sample_rate_hz,
            header_bytes: 0,
            trailing_bytes: 0,
            segments: vec![Segment { start: 0, global_index: None, frequency_hz: None }],
            extra: Map::new(),
        }
    }

    /// Reads a description; `path` is for errors only.
    ///
    /// # Errors
    /// If it is not JSON, or a field that matters is missing or impossible.
    pub fn parse(path: &Path, text: &[u8]) -> Result<Meta, Error> {
        let refused =
            |field: &str, what: String| Error::Field { path: path.to_owned(), field: field.to_owned(), what };
        let root: Value = serde_json::from_slice(text).map_err(|error| Error::Json {
            path: path.to_owned(),
            line: error.line(),
            column: error.column(),
            what: error.to_string(),
        })?;
        let Some(global) = root.get("global").and_then(Value::as_object) else {
            return Err(refused(
                "global",
                "is not there; a SigMF description has an object of this name".into(),
            ));
        };
        let Some(datatype) = global.get("core:datatype").and_then(Value::as_str) else {
            return Err(refused("core:datatype", format!("is not there; give {}", Format::NAMES)));
        };
        let format = datatype.parse().map_err(|error| refused("core:datatype", format!("{error}")))?;
        let sample_rate_hz = match global.get("core:sample_rate").map(Value::as_f64) {
            Some(Some(rate)) if rate.is_finite() && rate > 0.0 => rate,
            Some(_) => {
                return Err(refused(
                    "core:sample_rate",
                    "must be a number above 0, in samples per second".into(),
                ));
            }
            None => {
                return Err(refused("core:sample_rate", "is not there; give the samples per second".into()));
            }
        };
        let channels = global.get("core:num_channels").map_or(Some(1), Value::as_u64);
        if channels != Some(1) {
            let what = "must be 1: a file of several antennas has to be split into one file each".into();
            return Err(refused("core:num_channels", what));
        }
        let bytes = |object: &Map<String, Value>, field: &str| match object.get(field) {
            None => Ok(0),
            Some(value) => value
                .as_u64()
                .ok_or_else(|| refused(field, "must be a whole number of bytes, 0 or more".into())),
        };
        let captures = match root.get("captures") {
            None => &[][..],
            Some(Value::Array(captures)) => captures,
            Some(_) => return Err(refused("captures", "must be a list".into())),
        };
        let mut segments: Vec<Segment> = vec![];
        let mut header_bytes = 0;
        for (at, capture) in captures.iter().enumerate() {
            let field = |name: &str| format!("captures[{at}].{name}");
            let Some(capture) = capture.as_object() else {
                return Err(refused(&field(""), "must be an object".into()));
            };
            let Some(start) = capture.get("core:sample_start").and_then(Value::as_u64) else {
                return Err(refused(&field("core:sample_start"), "must be a whole number, 0 or more".into()));
            };
            if segments.last().is_some_and(|last| last.start >= start) || segments.is_empty() && start != 0 {
                let what = "captures must begin at sample 0 and come in order".into();
                return Err(refused(&field("core:sample_start"), what));
            }
            match (at, bytes(capture, "core:header_bytes")?) {
                (0, header) => header_bytes = header,
                (_, 0) => {}
                _ => {
                    return Err(refused(
                        &field("core:header_bytes"),
                        "is read for the first capture only".into(),
                    ));
                }
            }
            let segment = Segment {
                start,
                global_index: capture.get("core:global_index").and_then(Value::as_u64),
                frequency_hz: capture.get("core:frequency").and_then(Value::as_f64),
            };
            segments.push(segment);
        }
        if segments.is_empty() {
            segments = Meta::raw(format, sample_rate_hz).segments;
        }
        let trailing_bytes = bytes(global, "core:trailing_bytes")?;
        Ok(Meta { format, sample_rate_hz, header_bytes, trailing_bytes, segments, extra: global.clone() })
    }

    /// The description as SigMF writes it.
    pub fn to_json(&self) -> String {
        let mut global = self.extra.clone();
        global.insert("core:datatype".into(), self.format.name().into());
        global.insert("core:sample_rate".into(), self.sample_rate_hz.into());
        global.insert("core:version".into(), "1.0.0".into());
        global.insert("core:num_channels".into(), 1.into());
        let captures: Vec<Value> = self
            .segments
            .iter()
            .map(|segment| {
                let mut capture = Map::new();
                capture.insert("core:sample_start".into(), segment.start.into());
                capture.extend(segment.global_index.map(|index| ("core:global_index".into(), index.into())));
                capture.extend(segment.frequency_hz.map(|hz| ("core:frequency".into(), hz.into())));
                capture.into()
            })
            .collect();
        let root = serde_json::json!({ "global": global, "captures": captures, "annotations": [] });
        format!("{root:#}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Meta, String> {
        Meta::parse(Path::new("a.sigmf-meta"), text.as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_description_comes_back_from_its_text() {
        let mut meta = Meta::raw(Format::Ci16, 1.92e6);
        meta.segments.push(Segment { start: 1000, global_index: Some(1500), frequency_hz: Some(806e6) });
        let back = parse(&meta.to_json()).unwrap();
        assert_eq!(
            (back.format, back.sample_rate_hz, &back.segments),
            (Format::Ci16, 1.92e6, &meta.segments)
        );
        assert_eq!(parse(&back.to_json()).unwrap(), back);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_field() {
        let of = |fields: &str| parse(&format!(r#"{{"global": {{{fields}}}}}"#)).unwrap_err();
        assert!(of("").contains("core:datatype: is not there"));
        assert!(of(r#""core:datatype": "rf32_le""#).contains("use ci8, cu8, ci16_le or cf32_le"));
        assert!(of(r#""core:datatype": "ci8""#).contains("core:sample_rate: is not there"));
        assert!(of(r#""core:datatype": "ci8", "core:sample_rate": -3"#).contains("above 0"));
        let two = r#""core:datatype": "ci8", "core:sample_rate": 1e6, "core:num_channels": 2"#;
        assert!(of(two).contains("split"));
        assert!(parse("{").unwrap_err().starts_with("a.sigmf-meta: line 1, column"));
        let late = r#"{"global": {"core:datatype": "ci8", "core:sample_rate": 1e6}, "captures": [{"core:sample_start": 5}]}"#;
        assert!(parse(late).unwrap_err().contains("captures[0].core:sample_start"));
    }
}
