//! Table of KPIs: last value, age, rate, and a curve of recent values.

use std::collections::{BTreeMap, VecDeque};

use airpace_modem::watch::Seen;

/// Duration of a cell of the curve (ns).
const BIN_NS: u64 = 500_000_000;
/// Number of cells of the curve: 30 s.
const BINS: u64 = 60;
/// Number of cells over which the rate is computed: 2 s.
const RATE_BINS: u64 = 4;
/// Age above which a value is shown as old (ns).
const OLD_NS: u64 = 2_000_000_000;
/// Characters of the curve, from the lowest to the highest value.
const CURVE: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Contents of the table.
pub struct View {
    title: String,
    names: Vec<(String, &'static str)>,
    /// Rows by KPI and carrier.
    rows: BTreeMap<(usize, u8), Row>,
    notice: String,
}

#[derive(Default)]
struct Row {
    value: f64,
    arrival_ns: u64,
    /// Number of the newest cell since the clock's zero.
    bin: u64,
    /// Cells of the curve, the oldest first.
    bins: VecDeque<Bin>,
}

#[derive(Clone, Copy, Default)]
struct Bin {
    count: u64,
    sum: f64,
}

impl View {
    /// A view without samples.
    pub fn new(title: &str, names: &[(String, &'static str)]) -> View {
        let names = names.to_vec();
        View { title: title.to_owned(), names, rows: BTreeMap::new(), notice: String::new() }
    }

    /// Sets the notice to show.
    pub fn note(&mut self, notice: String) {
        self.notice = notice;
    }

    /// Adds a sample.
    pub fn push(&mut self, seen: &Seen) {
        let row = self.rows.entry((seen.kpi, seen.carrier)).or_default();
        row.value = seen.value;
        row.arrival_ns = seen.arrival_ns;
        row.turn_to(seen.arrival_ns / BIN_NS);
        if let Some(bin) = row.bins.back_mut() {
            bin.count += 1;
            bin.sum += seen.value;
        }
    }

    /// Renders the lines for a terminal of this many columns and rows.
    pub fn render(&mut self, now_ns: u64, (columns, height): (usize, usize)) -> Vec<String> {
        let name_width =
            self.names.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0).max(3) + 3;
        let curve_width = columns.saturating_sub(name_width + 42).min(BINS as usize);
        let mut lines = vec![
            format!("airpace diag watch  {}", self.title),
            self.notice.clone(),
            format!(
                "{:name_width$}{:>14} {:6} {:>9} {:>8}  last half minute",
                "KPI", "value", "unit", "age", "rate"
            ),
        ];
        for (kpi, (name, unit)) in self.names.iter().enumerate() {
            let mut rows = self.rows.range_mut((kpi, 0)..=(kpi, u8::MAX)).peekable();
            if rows.peek().is_none() {
                lines.push(format!("{name:name_width$}{:>14} {unit:6}", "–"));
            }
            for ((_, carrier), row) in rows {
                row.turn_to(now_ns / BIN_NS);
                let name = if *carrier == 0 { name.clone() } else { format!("{name} /{carrier}") };
                let age_ns = now_ns.saturating_sub(row.arrival_ns);
                let age = if age_ns < OLD_NS {
                    format!("{} ms", age_ns / 1_000_000)
                } else {
                    format!("{} s old", age_ns / 1_000_000_000)
                };
                let line = format!(
                    "{name:name_width$}{:>14} {unit:6} {age:>9} {:>6}/s  {}",
                    short(row.value),
                    short(row.rate()),
                    row.curve(curve_width)
                );
                lines.push(line);
            }
        }
        lines.truncate(height);
        lines.into_iter().map(|line| line.chars().take(columns).collect()).collect()
    }
}

impl Row {
    /// Advances to a cell. The cells in between stay empty.
    fn turn_to(&mut self, bin: u64) {
        let steps = if self.bins.is_empty() { 1 } else { bin.saturating_sub(self.bin).min(BINS) };
        for _ in 0..steps {
            self.bins.push_back(Bin::default());
        }
        self.bin = self.bin.max(bin);
        while self.bins.len() as u64 > BINS {
            self.bins.pop_front();
        }
    }

    /// Samples per second over the last complete cells.
    fn rate(&self) -> f64 {
        let full = self.bins.iter().rev().skip(1).take(RATE_BINS as usize);
        let (count, cells) = full.fold((0, 0), |(count, cells), bin| (count + bin.count, cells + 1));
        if cells == 0 { 0.0 } else { count as f64 / (cells as f64 * BIN_NS as f64 * 1e-9) }
    }

    /// The curve: the means of the last cells, scaled from the lowest to the highest mean. Cells without samples are
    /// blank.
    fn curve(&self, width: usize) -> String {
        let means = || {
            let last = self.bins.iter().skip(self.bins.len().saturating_sub(width));
            last.map(|bin| (bin.count > 0).then(|| bin.sum / bin.count as f64))
        };
        let lowest = means().flatten().fold(f64::INFINITY, f64::min);
        let highest = means().flatten().fold(f64::NEG_INFINITY, f64::max);
        let height = |mean: f64| match highest - lowest {
            0.0 => CURVE[3],
            span => CURVE[((mean - lowest) / span * 7.999) as usize % CURVE.len()],
        };
        means().map(|mean| mean.map_or(' ', height)).collect()
    }
}

/// Formats a number with the digits that are meaningful.
fn short(value: f64) -> String {
    if value == value.trunc() && value.abs() < 1e15 {
        format!("{value:.0}")
    } else if value.abs() >= 100.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(kpi: usize, carrier: u8, value: f64, arrival_ns: u64) -> Seen {
        Seen { kpi, value, radio: 1, carrier, subframe: None, sequence: 1, modem_ns: 0, arrival_ns }
    }

    #[test]
    fn a_row_has_the_last_value_its_age_and_rate_and_a_curve() {
        let names = [("lte.rsrp".to_owned(), "dBm"), ("lte.dl.prb".to_owned(), "")];
        let mut view = View::new("/dev/ttyUSB2", &names);
        for step in 0..400 {
            view.push(&seen(0, 0, -110.0 + step as f64 * 0.05, 10_000_000_000 + step * 10_000_000));
        }
        view.push(&seen(0, 1, -95.0, 11_000_000_000));
        view.note("port opened".to_owned());
        let lines = view.render(14_000_000_000, (80, 24));
        assert_eq!(lines[1], "port opened");
        let words: Vec<_> = lines[3].split_whitespace().collect();
        assert_eq!(words, ["lte.rsrp", "-90.05", "dBm", "10", "ms", "100/s", "▁▂▃▄▅▆▇█"], "{}", lines[3]);
        assert!(lines[4].starts_with("lte.rsrp /1"), "a row for each carrier: {}", lines[4]);
        assert!(lines[4].contains("3 s old"), "{}", lines[4]);
        assert!(lines[5].contains('–'), "nothing came of the other: {}", lines[5]);
        assert_eq!(view.render(14_000_000_000, (30, 4)).len(), 4, "no more than there is room for");
        assert!(view.render(14_000_000_000, (30, 4)).iter().all(|line| line.chars().count() <= 30));
    }

    #[test]
    fn after_a_silence_the_curve_is_blank_and_memory_bounded() {
        let mut view = View::new("", &[("nr.rsrp".to_owned(), "dBm")]);
        view.push(&seen(0, 0, -80.0, BIN_NS));
        view.push(&seen(0, 0, -80.0, 1_000_000 * BIN_NS));
        let row = &view.rows[&(0, 0)];
        assert_eq!(row.bins.len(), BINS as usize);
        assert_eq!(row.curve(4), "   ▄", "what does not change runs in the middle");
    }
}
