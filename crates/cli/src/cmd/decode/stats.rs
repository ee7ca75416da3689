//! Statistics of a recording, and the list of decoding stages, which shows the last stage that decoding reached.

use std::cmp::Reverse;
use std::io::{self, Write};

use airpace_phy::ladder::Rung;
use airpace_phy::search::Work;
use airpace_phy::{Cell, CyclicPrefix, Ladder, PhichDuration};
use airpace_sdr::decode::recording::{Followed, Total};
use airpace_sdr::decode::tally::Tally;

use crate::terminal::{Paint, Table, count, thousands};

/// Maximum number of users that are listed if the requested user did not appear.
const MAX_NAMED: usize = 8;

/// Texts about a recording's counters.
pub struct Stats<'t>(pub &'t Tally);

impl Stats<'_> {
    /// Lists the users that appeared, the most frequent first.
    pub fn who(&self) -> String {
        let mut users: Vec<_> = self.0.users.iter().map(|(&rnti, &messages)| (messages, rnti)).collect();
        users.sort_by_key(|&(messages, rnti)| (Reverse(messages), rnti));
        let some = users.iter().take(MAX_NAMED);
        let some = some.map(|&(messages, rnti)| format!("{} ({})", rnti.0, count(messages, "message")));
        let some = some.collect::<Vec<_>>().join(", ");
        match users.len() {
            0 => "no other user was detected".to_owned(),
            1 => format!("one user was detected: {some}"),
            all if all <= MAX_NAMED => format!("{all} users were detected: {some}"),
            all => format!("{} users were detected, the most frequent: {some}", thousands(all as u64)),
        }
    }

    /// Reports the number of users that appeared, for use where RNTIs must not be shown.
    pub fn how_many(&self) -> String {
        let users = count(self.0.users.len() as u64, "other user");
        format!("{users} detected; --rnti needs the RNTI that the cell uses, also with --anonymize")
    }

    /// Writes all statistics as text.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn write(
        &self,
        ladder: &Ladder,
        work: Option<Work>,
        out: &mut dyn Write,
        paint: Paint,
    ) -> io::Result<()> {
        if let Some(subframes) = self.0.subframes() {
            self.write_counts(subframes, out, paint)?;
        }
        write_ladder(ladder, out, paint)?;
        if let Some(work) = work {
            writeln!(
                out,
                "search: {}, {} of them used; candidates {} by algebra, {} by trellis ({}), {} by users",
                count(work.cces, "CCE"),
                thousands(work.active),
                thousands(work.by_algebra),
                thousands(work.by_trellis),
                count(work.trellis, "word"),
                thousands(work.by_users),
            )?;
            if work.given_up > 0 {
                writeln!(
                    out,
                    "search: cut off in {}: {} too many to decode",
                    count(work.cut, "subframe"),
                    count(work.given_up, "word"),
                )?;
            }
        }
        if let Some([median, most, mean]) = self.0.cost.summary() {
            writeln!(
                out,
                "processor time: {:.1} ms until cells were found; then per subframe: median {median:.0} us, 99 % below {most:.0} us, mean {mean:.0} us \
                 ({:.1} x real time on one core)",
                self.0.cost.search_us / 1e3,
                1e3 / mean.max(1e-3),
            )?;
        }
        Ok(())
    }

    /// Writes the counters, and a table of messages by kind of RNTI, direction and format.
    fn write_counts(&self, subframes: u64, out: &mut dyn Write, paint: Paint) -> io::Result<()> {
        let per = |sum: u64| sum as f64 / subframes as f64;
        let cfis: Vec<String> = self.0.cfis.iter().map(|(cfi, count)| format!("{cfi}: {count}")).collect();
        writeln!(
            out,
            "{}, SNR {:.1} dB, CFI {}; {:.1} of {:.0} PRB pairs used; {}; {}, {} of frame numbers",
            count(subframes, "subframe"),
            self.0.snr_db / subframes as f64,
            cfis.join(", "),
            per(self.0.prbs_used),
            per(self.0.prbs),
            count(self.0.users.len() as u64, "user"),
            count(self.0.gaps, "gap"),
            count(self.0.leaps, "leap"),
        )?;
        let mut table = Table::new(
            &["RNTI", "dir", "format", "messages", "PRBs", "new Mbit/s", "retransmitted", "error prob."],
            3,
        );
        for ((kind, way, format), sum) in &self.0.sorts {
            table.row(vec![
                (*kind).to_owned(),
                (*way).to_owned(),
                (*format).to_owned(),
                thousands(sum.messages),
                thousands(sum.prbs),
                format!("{:.3}", per(sum.new_bits) / 1e3),
                thousands(sum.again),
                format!("{:.4}", sum.doubt / sum.messages.max(1) as f64),
            ]);
        }
        table.write(out, paint)?;
        if self.0.answers > 0 {
            let (all, refused) = (count(self.0.answers, "answer"), count(self.0.refusals, "NACK"));
            writeln!(out, "PHICH: {all} to uplink blocks, among them {refused}")?;
        }
        if self.0.unread.0 > 0 {
            let (subframes, cces) = (count(self.0.unread.0, "subframe"), count(self.0.unread.1, "CCE"));
            writeln!(
                out,
                "unread: {subframes} with {cces} that may contain messages that could not be decoded"
            )?;
        }
        Ok(())
    }
}

/// Writes the decoding stages one by one, and the reason why decoding stopped at the last one.
///
/// # Errors
/// The output cannot be written.
pub fn write_ladder(ladder: &Ladder, out: &mut dyn Write, paint: Paint) -> io::Result<()> {
    let broken = ladder.broken();
    for rung in Rung::ALL {
        let is_broken = broken.as_ref().is_some_and(|(at, _)| *at == rung);
        let is_beyond = broken.as_ref().is_some_and(|(at, _)| *at < rung);
        let mark = match (is_broken, is_beyond) {
            (true, _) => paint.bad("fails"),
            (_, true) => "-    ".to_owned(),
            _ => paint.good("ok   "),
        };
        // Counts of stages after the failed stage are omitted, because they are at best due to chance.
        let (count, meaning) = match is_beyond {
            true => (String::new(), String::new()),
            false => (thousands(shown(ladder, rung)), meaning(ladder, rung)),
        };
        let line = format!("  {:<10} {mark} {count:>12}  {meaning}", rung.name());
        writeln!(out, "{}", line.trim_end())?;
    }
    // If decoding stops at an earlier stage, the command fails with an error that contains the same hint.
    if let Some((rung, hint)) = broken.filter(|(rung, _)| *rung >= Rung::Candidates) {
        writeln!(out, "  stopped at {}: {hint}", rung.name())?;
    }
    Ok(())
}

/// The count of a decoding stage. Samples are counted even if all of them are zero.
fn shown(ladder: &Ladder, rung: Rung) -> u64 {
    if rung == Rung::Samples { ladder.samples } else { ladder.count(rung) }
}

/// Describes the quantity that a decoding stage counts.
fn meaning(ladder: &Ladder, rung: Rung) -> String {
    match rung {
        Rung::Samples if ladder.samples > 0 && ladder.count(rung) == 0 => {
            "samples, all of them zero".to_owned()
        }
        Rung::Samples => format!("samples, {} reported as lost", thousands(ladder.lost_samples)),
        Rung::Primary if ladder.searches == 1 => "of 1 search detected a primary signal".to_owned(),
        Rung::Primary => format!("of {} searches detected a primary signal", thousands(ladder.searches)),
        Rung::Secondary => format!("identified a cell, last frequency offset {:+.0} Hz", ladder.cfo_hz),
        Rung::Broadcast => "decoded the master information block".to_owned(),
        Rung::Bandwidth => format!("times locked, {} lost", count(ladder.losses, "time")),
        Rung::Cfi => format!(
            "subframes with a reliable CFI, of {} received; {} faint, {} in gaps",
            thousands(ladder.subframes),
            thousands(ladder.faint),
            thousands(ladder.gaps)
        ),
        Rung::Candidates => "candidate messages".to_owned(),
        Rung::Rntis if ladder.messages == 1 => "RNTIs in 1 accepted message".to_owned(),
        Rung::Rntis => format!("RNTIs in {} accepted messages", thousands(ladder.messages)),
    }
}

/// Summary of the followed user's totals over this many subframes.
pub fn summary(followed: &Followed, subframes: u64) -> String {
    let of = |name: &str, total: &Total| {
        format!(
            "{name} {}, {:.3} Mbit/s, {} retransmitted, {} of unknown size",
            count(total.grants, "grant"),
            total.new_bits as f64 / subframes.max(1) as f64 / 1e3,
            count(total.again, "block"),
            total.unknown
        )
    };
    let [down, up] = followed.totals();
    format!("over {}: {}; {}", count(subframes, "subframe"), of("down", down), of("up", up))
}

/// Describes a cell in one line of text.
pub fn describe(cell: &Cell) -> String {
    let cp = if cell.cp == CyclicPrefix::Normal { "normal" } else { "extended" };
    let duration = if cell.phich_duration == PhichDuration::Normal { "normal" } else { "extended" };
    format!(
        "cell {}: {} PRB pairs, {}, {cp} prefix, PHICH {duration} with Ng {}",
        cell.pci,
        cell.bandwidth.prbs(),
        count(cell.ports.count() as u64, "port"),
        cell.phich_resource.name(),
    )
}
