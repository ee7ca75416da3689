//! KPIs: a line, an object or a row per sample.

use std::io::Write;
use std::path::Path;

use airpace_diag::LogPacket;
use airpace_diag::export::sample;
use airpace_diag::kpi::{Extractor, Reason, Sample, Subscription, Wanted};
use airpace_tables::log::SampleFile;

use super::packets::ENOUGH;
use super::{Kind, Writer};
use crate::called;
use crate::cmd::parquet_file::refused;
use crate::cmd::{NothingFound, outputs};
use crate::terminal::count;

/// Output format of samples.
enum Form<'o> {
    /// Lines on a stream.
    Lines(fn(&Sample, &Wanted, &mut Vec<u8>), &'o mut dyn Write),
    /// Parquet file; `None` once it is complete.
    Parquet(Option<Box<SampleFile>>),
}

/// Extracts the samples of KPIs and writes them.
pub struct Kpis<'o> {
    subscription: Subscription,
    extractor: Extractor,
    form: Form<'o>,
    /// Data that is not written yet.
    buffer: Vec<u8>,
    samples: u64,
}

impl<'o> Kpis<'o> {
    /// Prints samples as text.
    pub fn text(subscription: Subscription, out: &'o mut dyn Write) -> Kpis<'o> {
        Kpis::new(subscription, Form::Lines(sample::as_text, out), b"")
    }

    /// Prints samples as JSON.
    pub fn json(subscription: Subscription, out: &'o mut dyn Write) -> Kpis<'o> {
        Kpis::new(subscription, Form::Lines(sample::as_json, out), b"")
    }

    /// Prints samples as comma-separated values.
    pub fn csv(subscription: Subscription, out: &'o mut dyn Write) -> Kpis<'o> {
        Kpis::new(subscription, Form::Lines(sample::as_csv, out), sample::HEAD.as_bytes())
    }

    /// Writes samples into a Parquet file.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn parquet(subscription: Subscription, path: &Path) -> anyhow::Result<Kpis<'o>> {
        let file = SampleFile::new(outputs::whole("--parquet", path)?).map_err(refused)?;
        Ok(Kpis::new(subscription, Form::Parquet(Some(Box::new(file))), b""))
    }

    fn new(subscription: Subscription, form: Form<'o>, head: &[u8]) -> Kpis<'o> {
        let extractor = Extractor::new(&subscription);
        Kpis { subscription, extractor, form, buffer: head.to_vec(), samples: 0 }
    }

    fn write(&mut self) -> anyhow::Result<()> {
        if let Form::Lines(_, out) = &mut self.form {
            out.write_all(&self.buffer)?;
            self.buffer.clear();
        }
        Ok(())
    }
}

impl Writer for Kpis<'_> {
    fn packet(&mut self, packet: &LogPacket<'_>) -> anyhow::Result<Option<Kind>> {
        let (subscription, form, buffer) = (&self.subscription, &mut self.form, &mut self.buffer);
        let (mut failed, samples) = (None, &mut self.samples);
        self.extractor.push(packet, |sample| {
            let wanted = subscription.wanted(sample.wanted);
            *samples += 1;
            match form {
                Form::Lines(write, _) => write(&sample, wanted, buffer),
                Form::Parquet(file) => {
                    let added = file.as_mut().map_or(Ok(()), |file| file.add(&sample, wanted));
                    failed = added.err().or(failed.take());
                }
            }
        });
        if self.buffer.len() >= ENOUGH {
            self.write()?;
        }
        failed.map_or(Ok(None), |error| Err(refused(error)))
    }

    fn pause(&mut self) -> anyhow::Result<()> {
        self.write()?;
        match &mut self.form {
            Form::Lines(_, out) => Ok(out.flush()?),
            Form::Parquet(_) => Ok(()),
        }
    }

    fn finish(&mut self) -> anyhow::Result<Option<NothingFound>> {
        self.write()?;
        // Without any sample, keep an existing file.
        if let Form::Parquet(file) = &mut self.form
            && self.samples > 0
            && let Some(file) = file.take()
        {
            file.finish().map_err(refused)?;
        }
        for trouble in self.extractor.troubles() {
            match trouble.reason {
                Reason::MissingKpi(wanted) => crate::terminal::say(format_args!(
                    "airpace: {} of {} {} nothing for {}",
                    count(trouble.count, "packet"),
                    trouble.code,
                    if trouble.count == 1 { "has" } else { "have" },
                    self.subscription.wanted(wanted)
                )),
                _ => crate::terminal::say(format_args!(
                    "airpace: {} of {trouble}",
                    count(trouble.count, "packet")
                )),
            }
        }
        let nothing = || {
            let codes: Vec<_> = self.subscription.codes().iter().map(ToString::to_string).collect();
            NothingFound(format!(
                "no sample of what is wanted; it needs packets of {}; {} lists what the log contains",
                codes.join(", "),
                called::command("diag info")
            ))
        };
        Ok((self.samples == 0).then(nothing))
    }
}
