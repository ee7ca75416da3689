//! Samples of KPIs as JSON, as rows of a table and as text, with one line per sample.

use super::{json, shown, signed, verified_word};
use crate::kpi::{Sample, Wanted, What};
use crate::layout::Verified;

/// The columns of a table of samples.
pub const HEAD: &str = "time_utc,kpi,value,unit,radio,carrier,subframe\n";

/// Appends a sample as one object with a line end:
///
/// ```json
/// {"time_utc":"…","kpi":"lte.rsrp","value":-95.5,"unit":"dBm","radio":1,"carrier":0,"subframe":3105}
/// ```
///
/// `subframe` is ten times the frame number plus the subframe number, or null. `verified` is present if the layout was
/// never verified with a real log.
pub fn as_json(sample: &Sample, wanted: &Wanted, out: &mut Vec<u8>) {
    shown(format_args!("{{\"time_utc\":\"{}\",\"kpi\":\"", sample.stamp), out);
    name(wanted, out);
    out.extend(b"\",\"value\":");
    json::real(sample.value, out);
    out.extend(b",\"unit\":");
    json::string(wanted.unit(), out);
    shown(format_args!(",\"radio\":{},\"carrier\":{},\"subframe\":", wanted.radio.0, sample.carrier), out);
    match sample.subframe {
        Some(subframe) => signed(i64::from(subframe), out),
        None => out.extend(b"null"),
    }
    if sample.verified != Verified::Checked {
        shown(format_args!(",\"verified\":\"{}\"", verified_word(sample.verified)), out);
    }
    out.extend(b"}\n");
}

/// Appends a sample as a line of comma-separated values.
pub fn as_csv(sample: &Sample, wanted: &Wanted, out: &mut Vec<u8>) {
    shown(format_args!("{},", sample.stamp), out);
    name(wanted, out);
    let (radio, carrier) = (wanted.radio.0, sample.carrier);
    shown(format_args!(",{},{},{radio},{carrier},", sample.value, wanted.unit()), out);
    if let Some(subframe) = sample.subframe {
        signed(i64::from(subframe), out);
    }
    out.push(b'\n');
}

/// Appends a sample as a human-readable line.
pub fn as_text(sample: &Sample, wanted: &Wanted, out: &mut Vec<u8>) {
    shown(format_args!("{}  {wanted} = {}", sample.stamp, sample.value), out);
    if !wanted.unit().is_empty() {
        shown(format_args!(" {}", wanted.unit()), out);
    }
    if sample.carrier > 0 {
        shown(format_args!(", carrier {}", sample.carrier), out);
    }
    if let Some(subframe) = sample.subframe {
        shown(format_args!(", frame {}, subframe {}", subframe / 10, subframe % 10), out);
    }
    if sample.verified != Verified::Checked {
        shown(format_args!(" (unverified: {})", verified_word(sample.verified)), out);
    }
    out.push(b'\n');
}

/// Appends the name of a selected value, without its radio. The name consists of words, digits and dots.
pub fn name(wanted: &Wanted, out: &mut Vec<u8>) {
    match &wanted.what {
        What::Kpi(kpi) => out.extend(kpi.name.as_bytes()),
        What::Field(code, path) => shown(format_args!("{}:{path}", code.code), out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stamp::Stamp;

    #[test]
    fn a_sample_is_the_same_in_all_forms() {
        let wanted: Wanted = "lte.rsrp@2".parse().unwrap();
        let sample = Sample {
            wanted: 0,
            value: -95.5,
            stamp: Stamp(68_112_019_993_554_611),
            subframe: Some(3105),
            carrier: 1,
            verified: Verified::Read,
        };
        let told = |write: fn(&Sample, &Wanted, &mut Vec<u8>)| {
            let mut out = vec![];
            write(&sample, &wanted, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(
            told(as_json),
            "{\"time_utc\":\"2021-03-07T06:28:02.128221\",\"kpi\":\"lte.rsrp\",\"value\":-95.5,\"unit\":\"dBm\",\
             \"radio\":2,\"carrier\":1,\"subframe\":3105,\"verified\":\"read\"}\n"
        );
        assert_eq!(told(as_csv), "2021-03-07T06:28:02.128221,lte.rsrp,-95.5,dBm,2,1,3105\n");
        assert_eq!(
            told(as_text),
            "2021-03-07T06:28:02.128221  lte.rsrp@2 = -95.5 dBm, carrier 1, frame 310, subframe 5 (unverified: read)\n"
        );
    }
}
