//! Processes all events of the decoders; writes lines, tables, reports, and a summary at the end.

use std::io::{BufWriter, IsTerminal, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use airpace_core::Refused;
use airpace_phy::answers::Answered;
use airpace_phy::decoder::{Output, Reading};
use airpace_phy::found::Found;
use airpace_phy::ladder::Rung;
use airpace_phy::pseudonym::{Name, Pseudonyms};
use airpace_radio::align::{Leap, Shift};
use airpace_radio::{CarrierId, Rnti};
use airpace_sdr::decode::recording::Recording;
use airpace_sdr::decode::users as of_users;
use airpace_sdr::decode::{CarrierEvent, DecodeEvent, End};
use airpace_sdr::iq::Source;
use airpace_tables::csv;
use airpace_tables::decoded::{Gain, json as as_json};
use anyhow::anyhow;
use indicatif::ProgressBar;
use serde_json::{Value, json};

use super::Args;
use super::align;
use super::answer;
use super::message::Layout;
use super::pcap::PcapFile;
use super::probe;
use super::reports::ReportFile;
use super::stats::{self, Stats};
use super::subframes;
use super::tables::{At, Tables};
use super::users;
use crate::cmd::Verdict;
use crate::explain::explained;
use crate::terminal::{self, Paint};

/// Interval between updates of the progress bar.
const REFRESH: Duration = Duration::from_millis(100);

/// Processes and writes all events of the decoders.
pub struct Sink<'o> {
    args: &'o Args,
    out: BufWriter<&'o mut dyn Write>,
    recordings: Vec<Recording>,
    names: Option<Pseudonyms>,
    tables: Option<Tables>,
    pcap: Option<PcapFile>,
    reports: Option<ReportFile>,
    /// Time without data after which other recordings do not wait for a live recording.
    stall: Duration,
    has_head: bool,
    bar: ProgressBar,
    started: Instant,
    refreshed: Option<Instant>,
}

impl<'o> Sink<'o> {
    /// Creates the sink for these recordings. A message waits for confirmation for at most `patience` subframes. A live
    /// recording without data for `stall` is not waited for.
    ///
    /// # Errors
    /// A file cannot be created.
    pub fn new(
        args: &'o Args,
        sources: &[(String, Box<dyn Source>)],
        (patience, stall): (u64, Duration),
        out: &'o mut dyn Write,
    ) -> anyhow::Result<Sink<'o>> {
        let are_live = sources.iter().all(|(_, source)| source.is_live());
        let reports = args.reports.as_deref();
        let tables = args.parquet.as_deref().map(|path| Tables::create(path, args));
        let name_of = |(name, _): &(String, Box<dyn Source>)| name.clone();
        let names = || sources.iter().map(name_of).collect();
        // Lines that are printed on a terminal already show the progress.
        let is_quiet = std::io::stdout().is_terminal();
        let bar = match sources.iter().all(|(_, source)| source.progress().is_some()) {
            true => terminal::progress(is_quiet),
            false => terminal::activity(is_quiet),
        };
        bar.set_length(1000);
        bar.set_message("decoding");
        let recording = |(carrier, (name, source)): (CarrierId, &(String, Box<dyn Source>))| {
            Recording::new((name.clone(), carrier), source.sample_rate_hz(), args.rnti, patience)
        };
        Ok(Sink {
            args,
            out: BufWriter::new(out),
            recordings: (0..=u8::MAX).map(CarrierId).zip(sources).map(recording).collect(),
            names: args.anonymize.then(Pseudonyms::default),
            tables: tables.transpose()?,
            pcap: args.pcap.as_deref().map(PcapFile::create).transpose()?,
            reports: reports
                .map(|path| ReportFile::create(path, names(), args.rnti, are_live))
                .transpose()?,
            stall,
            has_head: false,
            bar,
            started: Instant::now(),
            refreshed: None,
        })
    }

    /// Shows the fraction of all recordings that has been read (0 to 1, if known), and the position in milliseconds
    /// from their start.
    pub fn progress(&mut self, share: Option<f64>, at_ms: f64) {
        if self.bar.is_hidden() || self.refreshed.is_some_and(|last| last.elapsed() < REFRESH) {
            return;
        }
        self.refreshed = Some(Instant::now());
        let seconds = at_ms / 1e3;
        let pace = seconds / self.started.elapsed().as_secs_f64().max(1e-3);
        self.bar.set_message(format!("{seconds:.1} s decoded, {pace:.2} x real time"));
        self.bar.set_position((1000.0 * share.unwrap_or(0.0)) as u64);
    }

    /// Prints a line for the user.
    pub fn say(&self, word: &str) {
        let text = format!("airpace: {word}");
        let text = if std::io::stderr().is_terminal() { terminal::fit(&text) } else { text };
        self.bar.suspend(|| terminal::say(text));
    }

    /// Flushes the output.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn flush(&mut self) -> anyhow::Result<()> {
        self.out.flush()?;
        self.reports.as_mut().map_or(Ok(()), ReportFile::flush)
    }

    /// Processes an event of a recording.
    ///
    /// # Errors
    /// The output or a file cannot be written.
    pub fn take(&mut self, event: CarrierEvent) -> anyhow::Result<()> {
        let carrier = usize::from(event.carrier.0);
        match event.event {
            DecodeEvent::Shift { from, shift } => self.align(carrier, from, &shift),
            DecodeEvent::Leap { leap, shift } => self.leap(carrier, leap, shift),
            DecodeEvent::Heard(output) => self.output(carrier, *output)?,
            DecodeEvent::Gap => self.gap(carrier),
            DecodeEvent::Flaw(flaw) => {
                let text = Refused::of(&flaw).at(&self.recordings[carrier].name);
                let text = flaw.remedy().map_or(text.clone(), |remedy| text.but(remedy));
                self.say(&explained(&text));
            }
            DecodeEvent::Cost(us) => self.recordings[carrier].tally.spent(us),
            DecodeEvent::Stalled => {
                let (name, seconds) = (&self.recordings[carrier].name, self.stall.as_secs_f64());
                self.say(&format!("{name} has sent nothing for {seconds} s; the others continue without it"));
                if let Some(file) = &mut self.reports {
                    file.reports.stall(event.carrier);
                }
            }
            DecodeEvent::Back => self.say(&format!("{} goes on", self.recordings[carrier].name)),
            DecodeEvent::End(end) => {
                self.end(carrier)?;
                self.recordings[carrier].end = Some(end);
            }
        }
        Ok(())
    }

    /// Counts a gap of samples. For radios, prints a hint at the 1st, 10th, 100th, ... gap: the user can reduce the
    /// rate.
    fn gap(&mut self, carrier: usize) {
        let is_radio = carrier >= self.args.files.len();
        let recording = &mut self.recordings[carrier];
        let gaps = recording.tally.gap();
        if is_radio && gaps == 10_u64.pow(gaps.ilog10()) {
            let word = format!(
                "{}: samples were lost, {} so far: this machine or the way from the radio is too slow for \
                 its rate; give a lower --rate",
                recording.name,
                terminal::count(gaps, "time")
            );
            self.say(&word);
        }
    }

    fn output(&mut self, carrier: usize, output: Output) -> anyhow::Result<()> {
        let recording = &mut self.recordings[carrier];
        match output {
            Output::Locked(lock) => {
                recording.tally.locked();
                if let Some(reports) = &mut self.reports {
                    reports.begin()?;
                }
                let after_ms = lock.after as f64 * 1e3 / recording.rate_hz;
                let word = format!(
                    "{}: {}, {:+.0} Hz off, found after {after_ms:.0} ms",
                    recording.name,
                    stats::describe(&lock.cell),
                    lock.cfo_hz
                );
                self.say(&word);
            }
            Output::Subframe(reading) => {
                recording.advance(&reading);
                recording.tally.heard(&reading);
                for found in reading.found.iter().chain(&reading.late) {
                    self.message(carrier, found)?;
                }
                for answer in &reading.answers {
                    self.answer(carrier, &reading, answer)?;
                }
                let mut whole = vec![];
                self.recordings[carrier].pending.push(reading, &mut whole);
                for reading in whole {
                    self.whole(carrier, &reading)?;
                }
            }
            Output::Late(late) => {
                for found in &late {
                    self.message(carrier, found)?;
                }
                self.recordings[carrier].pending.add(late);
            }
            Output::Lost => {
                let word = format!("{}: the cell is lost; the search goes on", recording.name);
                self.say(&word);
            }
            Output::Moved(moved) => {
                let word = format!(
                    "{}: cell {} is left for cell {}, which is {:.0} dB louder (--cell {} keeps it)",
                    recording.name, moved.from, moved.to, moved.louder_db, moved.from
                );
                self.say(&word);
            }
        }
        Ok(())
    }

    fn align(&mut self, carrier: usize, from: u64, shift: &Shift) {
        self.shift(carrier, from, shift);
        if let Some(doubt) = shift.doubt.filter(|_| self.reports.is_some()) {
            self.say(&format!("{} {}", self.recordings[carrier].name, align::words(doubt)));
        }
    }

    /// Processes a jump of frame numbers. Prints the 1st, 10th, 100th, ... jump, because a recording that is played in
    /// a loop has many jumps.
    fn leap(&mut self, carrier: usize, leap: Leap, shift: Option<Shift>) {
        let leaps = self.recordings[carrier].tally.leap();
        let taken_for = match &shift {
            Some(_) => "its subframes continue at the position of the other recordings",
            None => "its subframes continue by time",
        };
        if leaps == 10_u64.pow(leaps.ilog10()) {
            let word = format!(
                "{}: after {:.2} s frame numbers leap by {:+.2} s, {} so far: {}; {taken_for}",
                self.recordings[carrier].name,
                leap.at_ms / 1e3,
                leap.by as f64 / 1e3,
                terminal::count(leaps, "time"),
                if leap.is_same_cell {
                    "samples are missing, or the cell was restarted"
                } else {
                    "another cell"
                },
            );
            self.say(&word);
        }
        if let Some(shift) = shift {
            self.shift(carrier, leap.index, &shift);
        }
    }

    fn shift(&mut self, carrier: usize, from: u64, shift: &Shift) {
        if let Some(file) = &mut self.reports {
            file.reports.shift(self.recordings[carrier].carrier, from, shift.subframes);
        }
    }

    /// Processes an accepted message: counters, tables, capture, reports and output.
    fn message(&mut self, carrier: usize, found: &Found) -> anyhow::Result<()> {
        // Assign a pseudonym to every user that appears, whether the message is printed or not.
        let name = match &mut self.names {
            Some(names) => names.name(found),
            None => Name::plain(found),
        };
        let recording = &mut self.recordings[carrier];
        if let Some(file) = &mut self.reports {
            file.reports.hear(recording.carrier, found);
        }
        recording.tally.message(found);
        if self.args.rnti.is_some_and(|rnti| rnti != found.rnti) {
            return Ok(());
        }
        let own = recording.followed.as_mut().and_then(|followed| followed.take(found));
        let gain = own.map(|(own, throughput)| Gain::of(&own, throughput));
        if let Some(tables) = &mut self.tables {
            let at = At { carrier: recording.carrier, time_ms: recording.time_ms(found.index) };
            tables.message(at, found, name, gain.as_ref())?;
        }
        if let Some(pcap) = &mut self.pcap {
            pcap.message(recording.carrier, recording.time_ms(found.index), found, name)?;
        }
        if self.args.users {
            recording.users.take(found);
        }
        if self.args.subframes || self.args.users {
            return Ok(());
        }
        if self.args.json || self.args.csv {
            let mut object = as_json::message(found, name);
            if let Some(gain) = gain {
                object["own"] = as_json::gain(&gain);
            }
            return self.object(carrier, object);
        }
        let layout = self.layout();
        self.line(carrier, &layout.head(), &layout.line(found, name, gain.as_ref()))
    }

    /// Layout of message lines, with space for the recording's number if there are several recordings.
    fn layout(&self) -> Layout {
        Layout::of_output(if self.recordings.len() > 1 { 3 } else { 0 }, self.args.rnti.is_some())
    }

    /// Processes an answer to an uplink block, and prints it if `--phich` is given.
    fn answer(&mut self, carrier: usize, reading: &Reading, answer: &Answered) -> anyhow::Result<()> {
        let recording = &mut self.recordings[carrier];
        recording.tally.answer(answer);
        let is_wanted = self.args.rnti.is_none_or(|rnti| rnti == answer.rnti);
        if !self.args.phich || !is_wanted {
            return Ok(());
        }
        let rnti = self.names.as_mut().map_or(answer.rnti, |names| names.of(answer.rnti));
        if let Some(tables) = &mut self.tables {
            let at = At { carrier: recording.carrier, time_ms: recording.time_ms(reading.index) };
            tables.answer(at, reading, answer, rnti)?;
        }
        if self.args.json {
            return self.object(carrier, as_json::answer(reading, answer, rnti));
        }
        self.line(carrier, &self.layout().head(), &answer::line(reading, answer, rnti))
    }

    /// Prints a JSON object of a recording, or the object's row of the CSV table. The object contains the recording's
    /// number if there are several recordings.
    fn object(&mut self, carrier: usize, mut object: Value) -> anyhow::Result<()> {
        if self.recordings.len() > 1 {
            object["carrier"] = json!(carrier);
        }
        if self.args.csv {
            if !std::mem::replace(&mut self.has_head, true) {
                writeln!(self.out, "{}", csv::head(&object))?;
            }
            return Ok(writeln!(self.out, "{}", csv::row(&object))?);
        }
        Ok(writeln!(self.out, "{object}")?)
    }

    /// Prints a line of a recording, after the recording's number if there are several recordings. A heading precedes
    /// the first line.
    fn line(&mut self, carrier: usize, head: &str, line: &str) -> anyhow::Result<()> {
        let is_one_of_many = self.recordings.len() > 1;
        if !std::mem::replace(&mut self.has_head, true) {
            let number = if is_one_of_many { " # " } else { "" };
            writeln!(self.out, "{}", Paint::stdout().bold(&format!("{number}{head}")))?;
        }
        if is_one_of_many {
            write!(self.out, "{carrier:>2} ")?;
        }
        Ok(writeln!(self.out, "{line}")?)
    }

    /// Processes a completed subframe, to which no further messages are added.
    fn whole(&mut self, carrier: usize, reading: &Reading) -> anyhow::Result<()> {
        let recording = &mut self.recordings[carrier];
        recording.tally.whole(reading);
        let at_ms = reading.sample as f64 * 1e3 / recording.rate_hz;
        if let Some(tables) = &mut self.tables {
            tables.subframe(At { carrier: recording.carrier, time_ms: at_ms }, reading)?;
        }
        if self.args.subframes && (self.args.json || self.args.csv) {
            self.object(carrier, as_json::subframe(reading))?;
        } else if self.args.subframes {
            self.line(carrier, subframes::HEAD, &subframes::line(reading))?;
        }
        if let Some(reports) = &mut self.reports {
            let names = &mut self.names;
            let name = |rnti: Rnti| names.as_mut().map_or(rnti, |names| names.of(rnti));
            reports.push(self.recordings[carrier].carrier, reading, at_ms, name)?;
        }
        Ok(())
    }

    fn end(&mut self, carrier: usize) -> anyhow::Result<()> {
        let id = self.recordings[carrier].carrier;
        if let Some(file) = &mut self.reports {
            file.reports.leave(id);
        }
        for reading in self.recordings[carrier].pending.finish() {
            self.whole(carrier, &reading)?;
        }
        if let Some(reports) = &mut self.reports {
            reports.end(id)?;
        }
        Ok(())
    }

    /// Completes all files, and prints statistics, errors and hints.
    ///
    /// # Errors
    /// A file cannot be written, or no cell could be decoded in a recording.
    pub fn finish(mut self) -> anyhow::Result<Verdict> {
        self.bar.finish_and_clear();
        self.out.flush()?;
        // Without any decoded subframe, keep existing tables and captures.
        let has_read = self.recordings.iter().any(|recording| recording.tally.subframes().is_some());
        if let Some(tables) = self.tables.filter(|_| has_read) {
            tables.finish()?;
        }
        if let Some(pcap) = self.pcap.filter(|_| has_read) {
            pcap.finish()?;
        }
        if let Some(reports) = self.reports {
            reports.finish()?;
        }
        let names = &mut self.names;
        let is_one_of_many = self.recordings.len() > 1;
        let mut failures = vec![];
        let (mut err, paint) = (std::io::stderr(), Paint::stderr());
        for recording in self.recordings {
            let Recording { name, carrier, tally, users: heard, followed: own, end, .. } = recording;
            let Some(End { ladder, work, failure }) = end.map(|end| *end) else { continue };
            let is_cut = failure.is_some();
            failures.extend(failure.map(anyhow::Error::from));
            let Some(ladder) = ladder else { continue };
            if let Some(subframes) = tally.subframes().filter(|_| self.args.users) {
                let called = |rnti: Rnti| names.as_mut().map_or(rnti, |names| names.of(rnti));
                let of_carrier = |mut object: Value| {
                    if is_one_of_many {
                        object["carrier"] = json!(carrier.0);
                    }
                    object
                };
                if self.args.json {
                    for object in heard.objects(subframes, called) {
                        writeln!(self.out, "{}", of_carrier(object))?;
                    }
                } else if self.args.csv {
                    if !std::mem::replace(&mut self.has_head, true) {
                        writeln!(self.out, "{}", csv::head(&of_carrier(of_users::flat(of_users::nobody()))))?;
                    }
                    for object in heard.objects(subframes, called) {
                        writeln!(self.out, "{}", csv::row(&of_carrier(of_users::flat(object))))?;
                    }
                } else {
                    if is_one_of_many {
                        writeln!(self.out, "{}", Paint::stdout().bold(&name))?;
                    }
                    users::write(&heard, subframes, called, &mut self.out)?;
                }
                self.out.flush()?;
            }
            if let (Some(own), Some(subframes)) = (own, tally.subframes()) {
                let whose = if is_one_of_many { format!("{name}: ") } else { String::new() };
                let mut called = |rnti: Rnti| names.as_mut().map_or(rnti, |names| names.of(rnti));
                if own.was_heard() {
                    let (rnti, summary) = (called(own.rnti()).0, stats::summary(&own, subframes));
                    terminal::say(format_args!("{whose}RNTI {rnti} {summary}"));
                } else {
                    let stats = Stats(&tally);
                    let who = if self.args.anonymize { stats.how_many() } else { stats.who() };
                    terminal::say(format_args!("airpace: {whose}the requested RNTI was not detected; {who}"));
                }
            }
            // If a recording ended with a failure, report only the failure, and not the decoding stage at which
            // decoding stopped.
            let broken = ladder.broken().filter(|_| !is_cut);
            if self.args.stats {
                writeln!(err, "{}", paint.bold(&name))?;
                Stats(&tally).write(&ladder, work, &mut err, paint)?;
            } else if broken.is_some() {
                writeln!(err, "{}", paint.bold(&name))?;
                stats::write_ladder(&ladder, &mut err, paint)?;
            }
            let is_nowhere =
                broken.as_ref().is_some_and(|(rung, _)| (Rung::Primary..Rung::Bandwidth).contains(rung));
            if is_nowhere
                && ladder.others[0].is_none()
                && let Some(word) = probe::other_reading(Path::new(&name), self.args.rate, self.args.format)
            {
                terminal::say(format_args!("airpace: {word}"));
            }
            if let Some((rung, hint)) = broken.filter(|(rung, _)| *rung < Rung::Candidates) {
                failures.push(anyhow!("{name}: no cell could be read: stopped at {}: {hint}", rung.name()));
            }
        }
        let last = failures.pop();
        for failure in failures {
            terminal::say(format_args!("airpace: {failure:#}"));
        }
        last.map_or(Ok(Verdict::Fine), Err)
    }
}
