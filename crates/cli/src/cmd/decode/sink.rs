//! Where all that decoders say goes: lines, tables, reports, and words at the end.

use std::io::{IsTerminal, Write};

use airpace_core::Rnti;
use airpace_core::radio::Direction;
use airpace_phy::Cell;
use airpace_phy::decoder::{Output, Reading};
use airpace_phy::follow::{Follower, Own};
use airpace_phy::found::Found;
use airpace_phy::ladder::Rung;
use anyhow::anyhow;
use indicatif::ProgressBar;
use serde_json::{Value, json};

use super::Args;
use super::cell::{Ending, Event, Told};
use super::columns::Columns;
use super::fused::Reports;
use super::message::{self, Name};
use super::pseudonym::Pseudonyms;
use super::stats::{self, Stats};
use super::subframes::{self, Held};
use crate::cmd::Verdict;
use crate::terminal::{self, Paint};

/// Throughput of who is followed is over so many subframes.
const WINDOW: u64 = 1000;

/// Where all goes.
pub struct Sink<'o> {
    args: &'o Args,
    out: &'o mut dyn Write,
    recordings: Vec<Recording>,
    columns: Option<Columns>,
    reports: Option<Reports>,
    has_head: bool,
    bar: ProgressBar,
}

/// What is kept of one recording.
struct Recording {
    name: String,
    rate_hz: f64,
    /// The cell that was found last.
    cell: Option<Cell>,
    /// The last subframe, and when it began, in milliseconds from the first sample.
    last: (u64, f64),
    stats: Stats,
    held: Held,
    names: Option<Pseudonyms>,
    follower: Option<Follower>,
    totals: [Total; 2],
    end: Option<Result<Box<Ending>, anyhow::Error>>,
}

/// What who is followed got, one way.
#[derive(Clone, Copy, Debug, Default)]
struct Total {
    grants: u64,
    new_bits: u64,
    again: u64,
    unknown: u64,
}

impl Recording {
    fn time_ms(&self, index: u64) -> f64 {
        let (last, last_ms) = self.last;
        last_ms + index as f64 - last as f64
    }

    fn name_of(&mut self, found: &Found) -> Name {
        match &mut self.names {
            Some(names) => names.name(found),
            None => Name::plain(found),
        }
    }

    fn pci(&self) -> u16 {
        self.cell.map_or(0, |cell| cell.pci)
    }
}

impl<'o> Sink<'o> {
    /// Of recordings with these names and sample rates.
    ///
    /// # Errors
    /// If a file cannot be made.
    pub fn new(
        args: &'o Args,
        sources: &[(String, f64)],
        out: &'o mut dyn Write,
    ) -> anyhow::Result<Sink<'o>> {
        let recording = |(name, rate_hz): &(String, f64)| Recording {
            name: name.clone(),
            rate_hz: *rate_hz,
            cell: None,
            last: (0, 0.0),
            stats: Stats::default(),
            held: Held::default(),
            names: args.anonymize.then(Pseudonyms::default),
            follower: args.rnti.map(|rnti| Follower::new(rnti, WINDOW)),
            totals: [Total::default(); 2],
            end: None,
        };
        let reports = args.reports.as_deref();
        // Lines that run through a terminal are progress enough.
        let bar = terminal::progress(std::io::stdout().is_terminal());
        bar.set_length(1000);
        bar.set_message("decoding");
        Ok(Sink {
            args,
            out,
            recordings: sources.iter().map(recording).collect(),
            columns: args.parquet.as_deref().map(Columns::create).transpose()?,
            reports: reports.map(|path| Reports::create(path, sources.len(), args.rnti)).transpose()?,
            has_head: false,
            bar,
        })
    }

    /// How much of all recordings is read, 0 to 1.
    pub fn progress(&self, share: f64) {
        self.bar.set_position((1000.0 * share) as u64);
    }

    /// A word to who watches.
    pub fn say(&self, word: &str) {
        self.bar.suspend(|| eprintln!("airpace: {word}"));
    }

    /// Takes what a recording's decoder says.
    ///
    /// # Errors
    /// If something cannot be written.
    pub fn take(&mut self, carrier: usize, told: Told) -> anyhow::Result<()> {
        let recording = &mut self.recordings[carrier];
        match told.event {
            Event::Heard(output) => self.output(carrier, *output)?,
            Event::Gap => recording.stats.gap(),
            Event::Progress { cost_us, .. } => recording.stats.spent(cost_us),
            Event::End(ending) => self.end(carrier, Ok(ending))?,
            Event::Failed(error) => self.end(carrier, Err(error))?,
        }
        Ok(())
    }

    fn output(&mut self, carrier: usize, output: Output) -> anyhow::Result<()> {
        let recording = &mut self.recordings[carrier];
        match output {
            Output::Locked(lock) => {
                recording.cell = Some(lock.cell);
                recording.stats.locked();
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
                let at_ms = reading.sample as f64 * 1e3 / recording.rate_hz;
                recording.last = (reading.index, at_ms);
                recording.stats.heard(&reading);
                if let Some(follower) = &mut recording.follower {
                    follower.advance(reading.index);
                }
                if let Some(reports) = &mut self.reports {
                    reports.align(carrier, reading.index, at_ms);
                }
                for found in reading.found.iter().chain(&reading.late) {
                    self.message(carrier, found)?;
                }
                let mut whole = vec![];
                self.recordings[carrier].held.push(reading, &mut whole);
                for reading in whole {
                    self.whole(carrier, &reading)?;
                }
            }
            Output::Late(late) => {
                for found in &late {
                    self.message(carrier, found)?;
                }
                self.recordings[carrier].held.add(late);
            }
            Output::Lost => {
                let word = format!("{}: the cell is lost; the search goes on", recording.name);
                self.say(&word);
            }
        }
        Ok(())
    }

    /// One message, as soon as it is believed.
    fn message(&mut self, carrier: usize, found: &Found) -> anyhow::Result<()> {
        let is_one_of_many = self.recordings.len() > 1;
        let recording = &mut self.recordings[carrier];
        recording.stats.message(found);
        if self.args.rnti.is_some_and(|rnti| rnti != found.rnti) {
            return Ok(());
        }
        let own = recording.follower.as_mut().and_then(|follower| follower.take(found));
        if let Some(own) = &own {
            let total = &mut recording.totals[way(own.dci.direction)];
            total.grants += 1;
            total.new_bits += own.new_bits.0;
            total.again += u64::from(own.again);
            total.unknown += u64::from(own.unknown);
        }
        let name = recording.name_of(found);
        let time_ms = recording.time_ms(found.index);
        if let Some(columns) = &mut self.columns {
            columns.add(carrier, time_ms, found, name)?;
        }
        if self.args.subframes {
            return Ok(());
        }
        let throughput = own.zip(recording.follower.as_ref());
        if self.args.json {
            let mut object = message::json(found, name);
            if is_one_of_many {
                object["carrier"] = json!(carrier);
            }
            if let Some((own, follower)) = throughput {
                object["own"] = json_of_own(&own, follower);
            }
            writeln!(self.out, "{object}")?;
            return Ok(());
        }
        if !std::mem::replace(&mut self.has_head, true) {
            writeln!(self.out, "{}", message::HEAD)?;
        }
        write!(self.out, "{}", message::line(found, name))?;
        if let Some((own, follower)) = throughput {
            let rate = follower.throughput(own.dci.direction).as_bps() as f64 / 1e6;
            write!(self.out, "  new {} bits, {} sent again, {rate:.3} Mbit/s", own.new_bits.0, own.again)?;
        }
        writeln!(self.out)?;
        Ok(())
    }

    /// One subframe that has all its messages.
    fn whole(&mut self, carrier: usize, reading: &Reading) -> anyhow::Result<()> {
        let recording = &mut self.recordings[carrier];
        recording.stats.whole(reading);
        if self.args.subframes && self.args.json {
            let mut object = subframes::json(recording.pci(), reading);
            if self.recordings.len() > 1 {
                object["carrier"] = json!(carrier);
            }
            writeln!(self.out, "{object}")?;
        } else if self.args.subframes {
            writeln!(self.out, "{}", subframes::line(recording.pci(), reading))?;
        }
        let recording = &mut self.recordings[carrier];
        if let Some(reports) = &mut self.reports {
            let at_ms = reading.sample as f64 * 1e3 / recording.rate_hz;
            let names = &mut recording.names;
            let mut name = |rnti: Rnti| names.as_mut().map_or(rnti, |names| names.of(rnti));
            reports.push(carrier, reading, at_ms, &mut name)?;
        }
        Ok(())
    }

    fn end(&mut self, carrier: usize, end: Result<Box<Ending>, anyhow::Error>) -> anyhow::Result<()> {
        for reading in self.recordings[carrier].held.finish() {
            self.whole(carrier, &reading)?;
        }
        if let Some(reports) = &mut self.reports {
            reports.end(carrier);
        }
        self.recordings[carrier].end = Some(end);
        Ok(())
    }

    /// Ends all files, and says what there is to say.
    ///
    /// # Errors
    /// If a file cannot be written, or no cell could be read in a recording.
    pub fn finish(self) -> anyhow::Result<Verdict> {
        self.bar.finish_and_clear();
        self.out.flush()?;
        if let Some(columns) = self.columns {
            columns.finish()?;
        }
        if let Some(mut reports) = self.reports {
            reports.finish()?;
        }
        let mut failures = vec![];
        let (mut err, paint) = (std::io::stderr(), Paint::stderr());
        for recording in self.recordings {
            let Recording { name, stats, totals, follower, end, .. } = recording;
            let ending = match end {
                Some(Ok(ending)) => ending,
                Some(Err(error)) => {
                    failures.push(error);
                    continue;
                }
                None => continue,
            };
            if let (Some(follower), Some(followed)) = (&follower, stats.subframes()) {
                writeln!(err, "{}", summary(follower, &totals, followed))?;
            }
            let broken = ending.ladder.broken();
            if self.args.stats {
                writeln!(err, "{}", paint.bold(&name))?;
                stats.write(&ending, &mut err, paint)?;
            } else if broken.is_some() {
                writeln!(err, "{}", paint.bold(&name))?;
                stats::write_ladder(&ending.ladder, &mut err, paint)?;
            }
            if let Some((rung, hint)) = broken.filter(|(rung, _)| *rung < Rung::Candidates) {
                failures.push(anyhow!("{name}: no cell could be read: stopped at {}: {hint}", rung.name()));
            }
        }
        let last = failures.pop();
        for failure in failures {
            eprintln!("airpace: {failure:#}");
        }
        last.map_or(Ok(Verdict::Fine), Err)
    }
}

fn way(direction: Direction) -> usize {
    usize::from(direction == Direction::Uplink)
}

fn json_of_own(own: &Own, follower: &Follower) -> Value {
    let sent = own.dci.mcs.iter().zip(own.dci.retransmission).filter(|(mcs, _)| mcs.is_some());
    json!({
        "new_bits": own.new_bits.0,
        "retransmission": sent.map(|(_, again)| again).collect::<Vec<_>>(),
        "again": own.again,
        "unknown": own.unknown,
        "throughput_bps": follower.throughput(own.dci.direction).as_bps(),
    })
}

/// What who is followed got in all.
fn summary(follower: &Follower, totals: &[Total; 2], subframes: u64) -> String {
    let of = |name: &str, total: &Total| {
        format!(
            "{name} {} grants, {:.3} Mbit/s, {} blocks sent again, {} of unknown size",
            total.grants,
            total.new_bits as f64 / subframes as f64 / 1e3,
            total.again,
            total.unknown
        )
    };
    format!(
        "RNTI {} over {subframes} subframes: {}; {}",
        follower.rnti().0,
        of("down", &totals[0]),
        of("up", &totals[1])
    )
}
