//! `airpace diag info`: summarises the contents of logs.

use std::io::Write;
use std::path::PathBuf;

use airpace_diag::layout::{Verified, Version};
use airpace_diag::source::{Item, Place};
use airpace_diag::tally::{CodeTally, Tally};
use airpace_diag::{Format, LogCode, log};
use serde_json::{Map, Value, json};

use super::input::{self, Sink, Source};
use crate::cmd::Verdict;
use crate::terminal::{Paint, Table, count, fit, thousands};

/// Summarises logs: codes with their versions, counts and gaps, radios, and faults.
///
/// A log is the recorded byte stream of a diagnostic port (.qmdl, .qmdl2, .mi2log) or a sequence of log packets (.dlf).
/// Files compressed by gzip or zstd are decompressed; `-` is standard input. Several files are read as one log, in the
/// given order; a message that spans two files counts for the first of them.
///
/// The duration is measured from the earliest to the latest packet with a time stamp of the network's time. If no packet
/// has one, the duration is that of the modem's own clock, which starts in 1980.
#[derive(clap::Args)]
#[command(
    before_help = "Example: airpace diag info phone.qmdl\n         airpace diag info --json *.mi2log | jq .codes"
)]
pub struct Args {
    /// Logs; `-` is standard input.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Prints one JSON object per file.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let mut tallies = Tallies(vec![]);
    let sources = input::read(&args.files, &mut tallies)?;
    tallies.0.resize_with(sources.len(), Tally::default);
    let found = sources.iter().zip(&tallies.0).filter(|(source, _)| source.has_found);
    for (at, (source, tally)) in found.enumerate() {
        if args.json {
            writeln!(out, "{}", as_json(source, tally))?;
        } else {
            if at > 0 {
                writeln!(out)?;
            }
            write_text(source, tally, out, Paint::stdout())?;
        }
    }
    input::check(&sources)?;
    Ok(Verdict::Fine)
}

/// Counts the contents of each file.
struct Tallies(Vec<Tally>);

impl Sink for Tallies {
    type Error = anyhow::Error;

    fn item(&mut self, place: Place, item: Item<'_>) -> anyhow::Result<()> {
        if self.0.len() <= place.file {
            self.0.resize_with(place.file + 1, Tally::default);
        }
        self.0[place.file].add(place.offset, item);
        Ok(())
    }
}

/// Verification level of a version's layout; `None` if there is no layout.
fn known(code: LogCode, version: Version) -> Option<Verified> {
    log::code(code)?.layout(version).map(|layout| layout.verified)
}

/// The kind of a message, from its command code.
fn command_name(command: u8) -> &'static str {
    match command {
        0x00 => "version number",
        0x0C => "status",
        0x13 => "error: bad command",
        0x14 => "error: bad parameters",
        0x15 => "error: bad length",
        0x18 => "error: bad mode",
        0x1C => "protocol version",
        0x1D => "time",
        0x4B => "subsystem's answer",
        0x60 => "event",
        0x63 => "status snapshot",
        0x73 => "log masks",
        0x79 | 0x92 | 0x99 | 0x9D => "debug text",
        0x7C => "build id",
        0x7D => "levels of debug texts",
        0x81 | 0x82 => "event masks",
        0x9E => "protected log packet",
        _ => "unknown",
    }
}

fn form_name(form: Format) -> &'static str {
    match form {
        Format::Hdlc => "hdlc",
        Format::Plain => "plain",
        Format::Dlf => "dlf",
    }
}

fn as_json(source: &Source, tally: &Tally) -> Value {
    let span = tally.clock.span();
    let codes: Map<_, _> =
        tally.codes.iter().map(|(&code, of_code)| (code.to_string(), code_as_json(code, of_code))).collect();
    let by_radio: Map<_, _> =
        tally.radios.iter().map(|(radio, packets)| (radio.0.to_string(), json!(packets))).collect();
    let messages: Map<_, _> = tally
        .commands
        .iter()
        .map(|(command, count)| {
            (format!("0x{command:02X}"), json!({"about": command_name(*command), "count": count}))
        })
        .collect();
    let faults = tally.faults.iter().map(|(kind, faults)| {
        let mut told = json!({"count": faults.count, "first_offsets": faults.offsets});
        if faults.bytes > 0 {
            told["bytes"] = json!(faults.bytes);
        }
        ((*kind).to_owned(), told)
    });
    json!({
        "file": source.name,
        "packets": tally.packets,
        "duration_s": tally.clock.seconds(),
        "begin_utc": span.map(|span| span.0.to_string()),
        "end_utc": span.map(|span| span.1.to_string()),
        "clock": {
            "packets_before_network_time": tally.clock.unset_packets,
            "seconds_before_network_time": tally.clock.unset_seconds(),
            "steps_back": tally.clock.steps_back,
        },
        "radios": tally.radios.keys().map(|radio| radio.0).collect::<Vec<_>>(),
        "packets_by_radio": by_radio,
        "rats": tally.rats(),
        "codes": codes,
        "messages": messages,
        "faults": faults.collect::<Map<_, _>>(),
        "bytes": source.bytes,
        "form": form_name(source.form),
        "compression": source.compression,
    })
}

fn code_as_json(code: LogCode, tally: &CodeTally) -> Value {
    let of = |version: &Version| match known(code, *version) {
        Some(Verified::Checked) => "checked",
        Some(Verified::Read) => "read",
        Some(Verified::Guess) => "guess",
        None => "unknown",
    };
    let versions = |value: &dyn Fn(&Version, u64) -> Value| -> Map<_, _> {
        tally.versions.iter().map(|(version, count)| (version.to_string(), value(version, *count))).collect()
    };
    json!({
        "name": log::code(code).map(|known| known.name),
        "count": tally.count,
        "versions": versions(&|_, count| json!(count)),
        "layouts": versions(&|version, _| json!(of(version))),
        "misfits": tally.misfits,
        "payload_bytes": tally.bytes,
        "gap_ms": {"median": tally.gap_ms(0.5), "p90": tally.gap_ms(0.9)},
    })
}

fn write_text(source: &Source, tally: &Tally, out: &mut dyn Write, paint: Paint) -> anyhow::Result<()> {
    let seconds =
        tally.clock.seconds().map_or_else(|| "no time".to_owned(), |seconds| format!("{seconds:.3} s"));
    let head = format!(
        "{}: {} in {seconds}, {}{}",
        source.name,
        count(tally.packets, "log packet"),
        count(source.bytes, "byte"),
        source.compression.map(|by| format!(" expanded ({by})")).unwrap_or_default()
    );
    writeln!(out, "{}", fit(&head).replacen(&source.name, &paint.bold(&source.name), 1))?;
    if let Some((begin, end)) = tally.clock.span() {
        writeln!(out, "{}", fit(&format!("from {begin} to {end} UTC")))?;
    }
    let radios: Vec<_> = tally
        .radios
        .iter()
        .map(|(radio, packets)| format!("radio {} ({})", radio.0, count(*packets, "packet")))
        .collect();
    if !radios.is_empty() {
        writeln!(out, "{}", fit(&format!("{}: {}", radios.join(", "), tally.rats().join(", "))))?;
    }
    let has_unknown = write_codes(tally, out, paint)?;
    if has_unknown {
        let marks = "? there is no layout for this version; * its layout was never checked with a real log";
        writeln!(out, "{}", fit(marks))?;
    }
    if tally.clock.unset_packets > 0 {
        let unset = format!(
            "{} stamped from 1980 on, before the modem knew the network's time{}",
            count(tally.clock.unset_packets, "packet"),
            tally.clock.unset_seconds().map(|seconds| format!(": {seconds:.3} s")).unwrap_or_default()
        );
        writeln!(out, "{}", fit(&unset))?;
    }
    if tally.clock.steps_back > 0 {
        writeln!(out, "{}", fit(&format!("its clock steps back {}", count(tally.clock.steps_back, "time"))))?;
    }
    for (command, messages) in &tally.commands {
        let others =
            format!("{} 0x{command:02X} ({})", count(*messages, "other message"), command_name(*command));
        writeln!(out, "{}", fit(&others))?;
    }
    for (kind, faults) in &tally.faults {
        let offsets: Vec<_> = faults.offsets.iter().take(5).map(u64::to_string).collect();
        let more = if faults.count > 5 { ", …" } else { "" };
        let bytes =
            if faults.bytes > 0 { format!(" ({})", count(faults.bytes, "byte")) } else { String::new() };
        let line = format!("{} × {kind}{bytes}, at byte {}{more}", faults.count, offsets.join(", "));
        writeln!(out, "{}", paint.bad(&fit(&line)))?;
    }
    Ok(())
}

/// Writes a row per code. Returns whether a version was marked.
fn write_codes(tally: &Tally, out: &mut dyn Write, paint: Paint) -> anyhow::Result<bool> {
    let mut table = Table::new(&["code", "name", "versions", "packets", "median gap ms", "90 %"], 3);
    let mut has_mark = false;
    for (&code, of_code) in &tally.codes {
        let versions: Vec<_> = of_code
            .versions
            .iter()
            .map(|(version, count)| {
                let mark = match known(code, *version) {
                    Some(Verified::Checked) => "",
                    Some(_) => "*",
                    None => "?",
                };
                has_mark |= !mark.is_empty();
                let times = if of_code.versions.len() > 1 { format!(" ({count})") } else { String::new() };
                format!("{version}{mark}{times}")
            })
            .collect();
        let gap = |quantile| of_code.gap_ms(quantile).map(|gap| format!("{gap:.1}")).unwrap_or_default();
        table.row(vec![
            code.to_string(),
            log::code(code).map_or("", |known| known.name).to_owned(),
            versions.join(" "),
            thousands(of_code.count),
            gap(0.5),
            gap(0.9),
        ]);
    }
    table.write(out, paint)?;
    Ok(has_mark)
}
