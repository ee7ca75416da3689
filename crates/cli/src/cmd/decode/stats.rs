//! Statistics of a recording, and the list of decoding stages, which shows the last stage that decoding reached.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Write};

use airpace_phy::answers::Answered;
use airpace_phy::decoder::Reading;
use airpace_phy::found::{Found, RntiKind};
use airpace_phy::ladder::Rung;
use airpace_phy::search::Work;
use airpace_phy::{Cell, CyclicPrefix, Ladder, PhichDuration};
use airpace_radio::Rnti;

use super::message::direction_of;
use super::subframes::used_prbs;
use crate::terminal::{Paint, Table, count, thousands};

/// Kind of a message: kind of RNTI, direction and format.
type Sort = (&'static str, &'static str, &'static str);

/// Maximum number of users that are listed if the requested user did not appear.
const MAX_NAMED: usize = 8;

/// Counters of one recording.
#[derive(Debug, Default)]
pub struct Stats {
    sorts: BTreeMap<Sort, Sum>,
    /// Number of messages to each user.
    users: BTreeMap<Rnti, u64>,
    subframes: u64,
    cfis: BTreeMap<u8, u64>,
    prbs: u64,
    prbs_used: u64,
    /// Number of subframes that may contain unread messages, and number of CCEs of these messages.
    unread: (u64, u64),
    snr_db: f64,
    gaps: u64,
    leaps: u64,
    answers: u64,
    refusals: u64,
    cost: Cost,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    messages: u64,
    prbs: u64,
    new_bits: u64,
    again: u64,
    doubt: f64,
}

impl Stats {
    /// Counts a message that is accepted.
    pub fn message(&mut self, found: &Found) {
        let sum = self.sorts.entry((found.kind.name(), direction_of(found), found.format())).or_default();
        sum.messages += 1;
        sum.doubt += 1.0 - f64::from(found.confidence);
        if let Some(dci) = &found.dci {
            sum.prbs += u64::from(dci.prbs.len());
            sum.new_bits += dci.new_bits().0;
            sum.again += (0..2).filter(|&at| dci.mcs[at].is_some() && dci.retransmission[at]).count() as u64;
        }
        if found.kind == RntiKind::User {
            *self.users.entry(found.rnti).or_default() += 1;
        }
    }

    /// Called when a cell was found.
    pub fn locked(&mut self) {
        self.cost.has_searched = true;
    }

    /// Counts a decoded subframe.
    pub fn heard(&mut self, reading: &Reading) {
        self.subframes += 1;
        *self.cfis.entry(reading.cfi).or_default() += 1;
        self.snr_db += f64::from(reading.snr_db);
        self.cost.subframe();
    }

    /// Counts a completed subframe, to which no further messages are added.
    pub fn whole(&mut self, reading: &Reading) {
        self.prbs += u64::from(reading.prbs);
        self.prbs_used += u64::from(used_prbs(reading));
        let unread = reading.unread().len() as u64;
        self.unread.0 += u64::from(unread > 0);
        self.unread.1 += unread;
    }

    /// Lists the users that appeared, the most frequent first.
    pub fn who(&self) -> String {
        let mut users: Vec<_> = self.users.iter().map(|(&rnti, &messages)| (messages, rnti)).collect();
        users.sort_by_key(|&(messages, rnti)| (Reverse(messages), rnti));
        let some = users.iter().take(MAX_NAMED);
        let some = some.map(|&(messages, rnti)| format!("{} ({})", rnti.0, count(messages, "message")));
        let some = some.collect::<Vec<_>>().join(", ");
        match users.len() {
            0 => "nor was any other user".to_owned(),
            1 => format!("one user was: {some}"),
            all if all <= MAX_NAMED => format!("{all} users were: {some}"),
            all => format!("{} users were, most of all {some}", thousands(all as u64)),
        }
    }

    /// Reports the number of users that appeared, for use where RNTIs must not be shown.
    pub fn how_many(&self) -> String {
        let users = count(self.users.len() as u64, "other user");
        format!("{users} heard; beside --anonymize too, --rnti wants the number that the cell uses")
    }

    /// Number of decoded subframes; `None` if there are none.
    pub fn subframes(&self) -> Option<u64> {
        (self.subframes > 0).then_some(self.subframes)
    }

    /// Counts an answer to an uplink block.
    pub fn answer(&mut self, answer: &Answered) {
        self.answers += 1;
        self.refusals += u64::from(!answer.ack);
    }

    /// Counts a gap of samples. Returns the number of gaps so far.
    pub fn gap(&mut self) -> u64 {
        self.gaps += 1;
        self.gaps
    }

    /// Counts a jump of frame numbers. Returns the number of jumps so far.
    pub fn leap(&mut self) -> u64 {
        self.leaps += 1;
        self.leaps
    }

    /// Adds processor time.
    pub fn spent(&mut self, us: f64) {
        self.cost.spent(us);
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
        if self.subframes > 0 {
            self.write_counts(out, paint)?;
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
        if let Some([median, most, mean]) = self.cost.summary() {
            writeln!(
                out,
                "processor time: {:.1} ms until cells were found; then per subframe: median {median:.0} us, 99 % below {most:.0} us, mean {mean:.0} us \
                 ({:.1} x real time on one core)",
                self.cost.search_us / 1e3,
                1e3 / mean.max(1e-3),
            )?;
        }
        Ok(())
    }

    /// Writes the counters, and a table of messages by kind of RNTI, direction and format.
    fn write_counts(&self, out: &mut dyn Write, paint: Paint) -> io::Result<()> {
        let per = |sum: u64| sum as f64 / self.subframes.max(1) as f64;
        let cfis: Vec<String> = self.cfis.iter().map(|(cfi, count)| format!("{cfi}: {count}")).collect();
        writeln!(
            out,
            "{}, SNR {:.1} dB, CFI {}; {:.1} of {:.0} PRB pairs used; {}; {}, {} of frame numbers",
            count(self.subframes, "subframe"),
            self.snr_db / self.subframes.max(1) as f64,
            cfis.join(", "),
            per(self.prbs_used),
            per(self.prbs),
            count(self.users.len() as u64, "user"),
            count(self.gaps, "gap"),
            count(self.leaps, "leap"),
        )?;
        let mut table = Table::new(
            &["RNTI", "dir", "format", "messages", "PRBs", "new Mbit/s", "sent again", "doubt"],
            3,
        );
        for ((kind, way, format), sum) in &self.sorts {
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
        if self.answers > 0 {
            let (all, refused) = (count(self.answers, "answer"), count(self.refusals, "NACK"));
            writeln!(out, "PHICH: {all} to uplink blocks, among them {refused}")?;
        }
        if self.unread.0 > 0 {
            let (subframes, cces) = (count(self.unread.0, "subframe"), count(self.unread.1, "CCE"));
            writeln!(
                out,
                "unread: {subframes} with {cces} in which there may be messages that could not be read"
            )?;
        }
        Ok(())
    }
}

/// Processor time per subframe. For percentiles, times above 100 ms count as 100 ms.
#[derive(Debug, Default)]
struct Cost {
    /// Number of subframes by processor time in whole microseconds.
    by_us: BTreeMap<u32, u64>,
    since_us: f64,
    subframes: u32,
    total_us: f64,
    /// Whether a cell was found since processor time was last added. The search's processor time must not count as that
    /// of a subframe.
    has_searched: bool,
    search_us: f64,
}

impl Cost {
    const MAX_US: f64 = 1e5;

    fn subframe(&mut self) {
        self.subframes += 1;
    }

    /// Adds processor time: the cost of the subframes since the last call.
    fn spent(&mut self, us: f64) {
        self.since_us += us;
        if std::mem::take(&mut self.has_searched) {
            self.search_us += self.since_us;
            (self.since_us, self.subframes) = (0.0, 0);
        } else if self.subframes > 0 {
            self.total_us += self.since_us;
            let each = (self.since_us / f64::from(self.subframes)).clamp(0.0, Cost::MAX_US);
            *self.by_us.entry(each as u32).or_default() += u64::from(self.subframes);
            (self.since_us, self.subframes) = (0.0, 0);
        }
    }

    /// Median, 99th percentile and mean of the processor time per subframe (µs).
    fn summary(&self) -> Option<[f64; 3]> {
        let count: u64 = self.by_us.values().sum();
        let at = |share: f64| {
            let mut left = (count as f64 * share) as u64;
            for (&us, &subframes) in &self.by_us {
                if left < subframes {
                    return Some(f64::from(us));
                }
                left -= subframes;
            }
            None
        };
        Some([at(0.5)?, at(0.99)?, self.total_us / count as f64])
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
        Rung::Samples => format!("samples, {} said to be lost", thousands(ladder.lost_samples)),
        Rung::Primary if ladder.searches == 1 => "of 1 search heard a primary signal".to_owned(),
        Rung::Primary => format!("of {} searches heard a primary signal", thousands(ladder.searches)),
        Rung::Secondary => format!("named a cell, last {:+.0} Hz off", ladder.cfo_hz),
        Rung::Broadcast => "read the master information block".to_owned(),
        Rung::Bandwidth => format!("times locked, {} lost", count(ladder.losses, "time")),
        Rung::Cfi => format!(
            "subframes with a sure CFI of {} heard, {} faint, {} in gaps",
            thousands(ladder.subframes),
            thousands(ladder.faint),
            thousands(ladder.gaps)
        ),
        Rung::Candidates => "possible messages".to_owned(),
        Rung::Rntis if ladder.messages == 1 => "RNTIs in 1 message that is believed".to_owned(),
        Rung::Rntis => format!("RNTIs in {} messages that are believed", thousands(ladder.messages)),
    }
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
