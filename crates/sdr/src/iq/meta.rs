//! Parsing and writing of SigMF descriptions.

use std::path::Path;

use serde_json::{Map, Value};

use super::{Error, Format, NoFormat};

/// Description of a recording.
#[derive(Clone, Debug, PartialEq)]
pub struct Meta {
    /// Encoding of a sample.
    pub format: Format,
    /// Samples per second, of each antenna.
    pub sample_rate_hz: f64,
    /// Number of antennas (SigMF: channels). The samples of the antennas are interleaved instant by instant. In all
    /// counts, one sample of a recording is one instant of all antennas.
    pub antennas: usize,
    /// Name of the file of samples, if the name does not follow SigMF's rules; the file is next to the description.
    pub dataset: Option<String>,
    /// Number of bytes after the last sample that are not samples.
    pub trailing_bytes: u64,
    /// Segments without a gap, in order; at least one.
    pub segments: Vec<Segment>,
    /// All fields of the `global` object, unchanged (`core:description`, `lte:…`).
    pub extra: Map<String, Value>,
}

/// A segment of a recording without a gap: a SigMF capture.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Segment {
    /// Position of the first sample in the file.
    pub start: u64,
    /// Number of the first sample by the receiver's count. If samples were lost, it is larger than the end of the
    /// previous segment.
    pub global_index: Option<u64>,
    /// Number of bytes before the first sample that are not samples.
    pub header_bytes: u64,
    /// Centre frequency of the receiver, in Hz.
    pub frequency_hz: Option<f64>,
}

/// Maximum number of samples or bytes: every JSON parser represents numbers up to this value exactly.
const MAX_COUNT: u64 = 1 << 53;

/// Maximum number of antennas of a recording.
///
/// Chosen: more than any radio with a shared clock has. All samples of an instant must fit into one read.
pub const MAX_ANTENNAS: usize = 64;

impl Meta {
    /// Creates the description of samples with this format and rate only.
    pub fn raw(format: Format, sample_rate_hz: f64) -> Meta {
        Meta {
            format,
            sample_rate_hz,
            antennas: 1,
            dataset: None,
            trailing_bytes: 0,
            segments: vec![Segment::default()],
            extra: Map::new(),
        }
    }

    /// Parses a description; `path` is for errors only.
    ///
    /// # Errors
    /// The text is not JSON, or a required field is missing or invalid.
    pub fn parse(path: &Path, text: &[u8]) -> Result<Meta, Error> {
        Meta::parse_but(path, text, (None, None))
    }

    /// Parses a description; a given rate or format replaces the description's value.
    pub(super) fn parse_but(
        path: &Path,
        text: &[u8],
        known: (Option<f64>, Option<Format>),
    ) -> Result<Meta, Error> {
        // Some systems start every text file with a byte order mark.
        let text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
        let root: Value = serde_json::from_slice(text).map_err(|error| {
            let what = error.to_string();
            let what = what.split(" at line ").next().unwrap_or_default().to_owned();
            Error::Json { path: path.to_owned(), line: error.line(), column: error.column(), what }
        })?;
        let refused =
            |(field, what): Wrong| Error::Field { path: path.to_owned(), field, what: what.to_owned() };
        let Some(global) = root.get("global").and_then(Value::as_object) else {
            let what = "is not there; a SigMF description has an object of this name".to_owned();
            return Err(refused(("global".to_owned(), what)));
        };
        Meta::of(global, root.get("captures"), known).map_err(refused)
    }

    fn of(
        global: &Map<String, Value>,
        captures: Option<&Value>,
        known: (Option<f64>, Option<Format>),
    ) -> Result<Meta, Wrong> {
        let format = match known.1 {
            Some(format) => format,
            None => datatype(global.get("core:datatype")).map_err(wrong("core:datatype"))?,
        };
        let sample_rate_hz = match known.0 {
            Some(rate) => rate,
            None => sample_rate(global.get("core:sample_rate")).map_err(wrong("core:sample_rate"))?,
        };
        let antennas = whole(global.get("core:num_channels"), 1).map_err(wrong("core:num_channels"))?;
        let antennas = usize::try_from(antennas).ok().filter(|count| (1..=MAX_ANTENNAS).contains(count));
        let antennas = antennas.ok_or_else(|| {
            wrong("core:num_channels")(format!("must be the number of antennas, from 1 to {MAX_ANTENNAS}"))
        })?;
        if global.get("core:metadata_only") == Some(&Value::Bool(true)) {
            return Err(wrong("core:metadata_only")("says that the recording has no samples"));
        }
        let dataset = match global.get("core:dataset") {
            None | Some(Value::Null) => None,
            Some(Value::String(name))
                if Path::new(name).file_name().is_some_and(|file| file == &name[..]) =>
            {
                Some(name.clone())
            }
            Some(_) => {
                return Err(wrong("core:dataset")("must be the name of a file in the same folder"));
            }
        };
        let trailing_bytes =
            whole(global.get("core:trailing_bytes"), 0).map_err(wrong("core:trailing_bytes"))?;
        let captures = match captures {
            None | Some(Value::Null) => &[][..],
            Some(Value::Array(captures)) => captures,
            Some(_) => return Err(wrong("captures")("must be a list")),
        };
        let mut segments: Vec<Segment> = vec![];
        for (at, capture) in captures.iter().enumerate() {
            let within = |(field, what): Wrong| (format!("captures[{at}].{field}"), what);
            let segment = Segment::of(capture).map_err(within)?;
            let follows = segments.last().map_or(segment.start == 0, |last| last.start < segment.start);
            if !follows {
                let what = "captures must begin at sample 0 and come in order";
                return Err(within(wrong("core:sample_start")(what)));
            }
            segments.push(segment);
        }
        if segments.is_empty() {
            segments.push(Segment::default());
        }
        Ok(Meta {
            format,
            sample_rate_hz,
            antennas,
            dataset,
            trailing_bytes,
            segments,
            extra: global.clone(),
        })
    }

    /// Returns, as text, the description's rate and format if values given by the caller replaced them. Returns `None`
    /// if the description contains the same values or no values.
    pub fn overruled(&self) -> Option<String> {
        let format = self.extra.get("core:datatype").and_then(Value::as_str);
        let format = format.filter(|format| format.parse() != Ok(self.format));
        let rate = self.extra.get("core:sample_rate").and_then(Value::as_f64);
        let rate =
            rate.filter(|rate| *rate != self.sample_rate_hz).map(|rate| format!("{rate} samples per second"));
        let said: Vec<_> = format.map(str::to_owned).into_iter().chain(rate).collect();
        (!said.is_empty()).then(|| said.join(" at "))
    }

    /// Returns the description as SigMF's JSON.
    pub fn to_json(&self) -> String {
        let mut global = self.extra.clone();
        global.insert("core:datatype".into(), self.format.name().into());
        global.insert("core:sample_rate".into(), self.sample_rate_hz.into());
        global.insert("core:version".into(), "1.0.0".into());
        global.insert("core:num_channels".into(), self.antennas.into());
        global.extend(self.dataset.as_ref().map(|name| ("core:dataset".into(), name.as_str().into())));
        if self.trailing_bytes > 0 {
            global.insert("core:trailing_bytes".into(), self.trailing_bytes.into());
        }
        let captures: Vec<Value> = self
            .segments
            .iter()
            .map(|segment| {
                let mut capture = Map::new();
                capture.insert("core:sample_start".into(), segment.start.into());
                capture.extend(segment.global_index.map(|index| ("core:global_index".into(), index.into())));
                if segment.header_bytes > 0 {
                    capture.insert("core:header_bytes".into(), segment.header_bytes.into());
                }
                capture.extend(segment.frequency_hz.map(|hz| ("core:frequency".into(), hz.into())));
                capture.into()
            })
            .collect();
        let root = serde_json::json!({ "global": global, "captures": captures, "annotations": [] });
        format!("{root:#}\n")
    }
}

impl Segment {
    fn of(capture: &Value) -> Result<Segment, Wrong> {
        let field = |name: &str| capture.get(name).filter(|value| !value.is_null());
        let number = |name: &'static str| whole(field(name), 0).map_err(wrong(name));
        if !capture.is_object() {
            return Err(wrong("core:sample_start")("is not there; a capture is an object that has it"));
        }
        if field("core:sample_start").is_none() {
            return Err(wrong("core:sample_start")("is not there; give the first sample of the capture"));
        }
        let frequency_hz = match field("core:frequency") {
            None => None,
            Some(value) => {
                let hz = value.as_f64().ok_or("must be a number, in Hz");
                Some(hz.map_err(wrong("core:frequency"))?)
            }
        };
        Ok(Segment {
            start: number("core:sample_start")?,
            global_index: field("core:global_index").map(|_| number("core:global_index")).transpose()?,
            header_bytes: number("core:header_bytes")?,
            frequency_hz,
        })
    }
}

/// A field, and its error.
type Wrong = (String, String);

fn wrong<What: Into<String>>(field: &str) -> impl Fn(What) -> Wrong + '_ {
    move |what| (field.to_owned(), what.into())
}

fn datatype(value: Option<&Value>) -> Result<Format, String> {
    match value.and_then(Value::as_str) {
        Some(name) => name.parse().map_err(|error: NoFormat| error.to_string()),
        None => Err(format!("is not there; give {}", Format::NAMES)),
    }
}

fn sample_rate(value: Option<&Value>) -> Result<f64, &'static str> {
    match value.map(Value::as_f64) {
        Some(Some(rate)) if rate.is_finite() && rate > 0.0 => Ok(rate),
        Some(_) => Err("must be a number above 0, in samples per second"),
        None => Err("is not there; give the samples per second"),
    }
}

/// Returns a whole number in any notation; returns `or` if the field is missing.
fn whole(value: Option<&Value>, or: u64) -> Result<u64, &'static str> {
    let Some(value) = value else { return Ok(or) };
    let whole_float = |value: f64| (value >= 0.0 && value.fract() == 0.0).then_some(value as u64);
    let number = value.as_u64().or_else(|| value.as_f64().and_then(whole_float));
    number.filter(|&number| number <= MAX_COUNT).ok_or("must be a whole number from 0 to 2^53")
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
        (meta.dataset, meta.trailing_bytes) = (Some("cell.iq".to_owned()), 12);
        meta.antennas = 2;
        meta.segments.push(Segment {
            start: 1000,
            global_index: Some(1500),
            header_bytes: 8,
            frequency_hz: Some(806e6),
        });
        let back = parse(&meta.to_json()).unwrap();
        assert_eq!(
            (back.format, back.sample_rate_hz, &back.segments, &back.dataset, back.trailing_bytes),
            (Format::Ci16, 1.92e6, &meta.segments, &meta.dataset, 12)
        );
        assert_eq!(back.antennas, 2);
        assert_eq!(parse(&back.to_json()).unwrap(), back);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_field() {
        let of = |fields: &str| parse(&format!(r#"{{"global": {{{fields}}}}}"#)).unwrap_err();
        assert!(of("").contains("core:datatype: is not there"));
        let of_type = |name: &str| of(&format!(r#""core:datatype": "{name}""#));
        assert!(of_type("rf32_le").contains("a.sigmf-meta: core:datatype: `rf32_le` has real samples"));
        assert!(of_type("ci16_be").contains("big-endian"));
        assert!(of_type("ci32_le").contains("use ci8, cu8, ci16_le or cf32_le"));
        assert!(of(r#""core:datatype": "ci8""#).contains("core:sample_rate: is not there"));
        assert!(of(r#""core:datatype": "ci8", "core:sample_rate": -3"#).contains("above 0"));
        assert_eq!(
            parse("{").unwrap_err(),
            "a.sigmf-meta is not JSON: line 1, column 1: EOF while parsing an object"
        );
        assert!(parse("[]").unwrap_err().starts_with("a.sigmf-meta: global: is not there"));
        let known = r#""core:datatype": "ci8", "core:sample_rate": 1e6"#;
        for (more, field) in [
            (r#""core:trailing_bytes": -1"#, "core:trailing_bytes"),
            (r#""core:num_channels": 0"#, "core:num_channels"),
            (r#""core:num_channels": 65"#, "core:num_channels"),
            (r#""core:num_channels": "two""#, "core:num_channels"),
            (r#""core:dataset": "a/b""#, "core:dataset"),
            (r#""core:dataset": 7"#, "core:dataset"),
            (r#""core:metadata_only": true"#, "core:metadata_only"),
        ] {
            let refused = of(&format!("{known}, {more}"));
            assert!(refused.starts_with(&format!("a.sigmf-meta: {field}: ")), "{refused}");
        }
        let capture = |capture: &str| {
            let text =
                format!(r#"{{"global": {{{known}}}, "captures": [{{"core:sample_start": 0}}, {capture}]}}"#);
            parse(&text)
        };
        for (fields, field) in [
            ("7", "core:sample_start"),
            ("{}", "core:sample_start"),
            (r#"{"core:sample_start": 0}"#, "core:sample_start"),
            (r#"{"core:sample_start": 1.5}"#, "core:sample_start"),
            (r#"{"core:sample_start": 9, "core:global_index": 1e300}"#, "core:global_index"),
            (r#"{"core:sample_start": 9, "core:header_bytes": "x"}"#, "core:header_bytes"),
            (r#"{"core:sample_start": 9, "core:frequency": "x"}"#, "core:frequency"),
        ] {
            let refused = capture(fields).unwrap_err();
            assert!(refused.starts_with(&format!("a.sigmf-meta: captures[1].{field}: ")), "{refused}");
        }
        // Some programs write every number with a decimal point.
        let meta = capture(r#"{"core:sample_start": 9.0, "core:global_index": 2e3}"#).unwrap();
        assert_eq!((meta.segments[1].start, meta.segments[1].global_index), (9, Some(2000)));
        let late = r#"{"global": {"core:datatype": "ci8", "core:sample_rate": 1e6}, "captures": [{"core:sample_start": 5}]}"#;
        assert!(parse(late).unwrap_err().contains("captures[0].core:sample_start"));
    }
}
