//! Lines of radio reports in a file.

use std::io::Write;
use std::time::Duration;

use airpace_core::Time;
use airpace_feed::{Lines, Place, Radio};
use airpace_radio::line;

use super::choices::Choices;

/// A file of lines that grows in pieces: the reports do not depend on the pieces, and every other line is counted.
pub fn lines(input: &[u8]) {
    const LINE: &str = r#"{"subframe_index":211,"reports":[{"carrier":0,"numerology":0,"slot":211,"time_ms":11.0,"scope":"everyone","carrier_prbs":50,"cfi":1,"layer":"physical","dcis":[]}]}"#;
    let mut choices = Choices(input);
    let (mut text, mut cuts) = (vec![], vec![]);
    while !choices.is_over() && text.len() < 20_000 {
        match choices.byte() % 8 {
            0..3 => text.extend_from_slice(LINE.as_bytes()),
            3 => text.extend_from_slice(choices.take(9)),
            4 if !text.is_empty() => {
                let at = choices.below(text.len());
                text[at] = choices.byte();
            }
            5 => cuts.push(text.len()),
            _ => text.extend_from_slice(b"\n"),
        }
    }
    text.push(b'\n');
    let (mut expected, mut unreadable) = (vec![], 0);
    for line in
        text.split(|byte| *byte == b'\n').map(|line| line.trim_ascii()).filter(|line| !line.is_empty())
    {
        match std::str::from_utf8(line).ok().and_then(|line| line::from_line(line).ok()) {
            Some(reports) => expected.extend(reports.iter().map(|report| (report.carrier, report.slot))),
            None => unreadable += 1,
        }
    }
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    let mut lines = Lines::new(Place::Path(file.path().to_owned()));
    let mut got = vec![];
    let mut now = Time::from_secs(100);
    let mut take = |lines: &mut Lines| {
        now += Duration::from_millis(2);
        lines.take(now, &mut |report| got.push((report.carrier, report.slot)));
    };
    take(&mut lines);
    cuts.push(text.len());
    let mut from = 0;
    for cut in cuts {
        file.write_all(&text[from..cut.max(from)]).and_then(|()| file.flush()).expect("a file takes bytes");
        from = cut.max(from);
        take(&mut lines);
    }
    take(&mut lines);
    assert_eq!(got, expected);
    assert_eq!((lines.heard().unreadable(), lines.heard().reports()), (unreadable, expected.len() as u64));
}
