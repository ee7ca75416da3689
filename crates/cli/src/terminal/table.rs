//! Tables that fit the terminal: with one line per row if possible, else with cells of several lines, else as a block
//! per row.

use std::collections::HashMap;
use std::io::{IsTerminal, Write};

use airpace_core::plain::plain;

use super::wrap::{Breaks, columns_of, widest_piece, wrap};
use super::{Paint, columns};

/// Rows of aligned cells: the first columns are aligned to the left, numbers to the right.
pub struct Table {
    head: Vec<&'static str>,
    left: usize,
    /// Number of first columns whose cells are not broken between the parts of a name.
    whole: usize,
    rows: Vec<Vec<String>>,
}

/// A line of a table.
#[derive(Debug, PartialEq, Eq)]
struct Line {
    /// Whether the line is a heading.
    is_head: bool,
    text: String,
}

impl Table {
    /// Creates a table with these headings. Its first `left` columns contain words.
    pub fn new(head: &[&'static str], left: usize) -> Table {
        Table { head: head.to_vec(), left, whole: 0, rows: Vec::new() }
    }

    /// Sets the number of first columns whose names are never broken, because users copy them or programs search for
    /// them.
    pub fn with_whole(self, whole: usize) -> Table {
        Table { whole, ..self }
    }

    /// Adds a row with one cell per heading. Unsafe characters are escaped.
    pub fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.head.len());
        self.rows.push(cells.into_iter().map(|cell| plain(&cell).into_owned()).collect());
    }

    /// Writes the table at the width of standard output, with bold headings if colours are wanted.
    pub fn write(&self, out: &mut dyn Write, paint: Paint) -> std::io::Result<()> {
        for Line { is_head, text } in self.lines(columns()) {
            writeln!(out, "{}", if is_head { paint.bold(&text) } else { text })?;
        }
        Ok(())
    }

    /// Like [`Table::write`], but with one line per row of any length if standard output is not a terminal.
    pub fn write_for_programs(&self, out: &mut dyn Write, paint: Paint) -> std::io::Result<()> {
        if std::io::stdout().is_terminal() {
            return self.write(out, paint);
        }
        self.lines(usize::MAX).iter().try_for_each(|line| writeln!(out, "{}", line.text))
    }

    /// The table's text for a terminal of this many columns.
    #[cfg(test)]
    pub fn text(&self, columns: usize) -> String {
        let lines: Vec<String> = self.lines(columns).into_iter().map(|line| line.text).collect();
        lines.join("\n")
    }

    /// The table's lines for a terminal of this many columns.
    fn lines(&self, columns: usize) -> Vec<Line> {
        let room = |gap: usize| columns.checked_sub(gap * self.head.len().saturating_sub(1));
        let fitting = [2, 1].into_iter().find_map(|gap| Some((gap, self.widths(room(gap)?)?)));
        match fitting {
            Some((gap, widths)) => self.grid(gap, &widths),
            None => self.blocks(columns),
        }
    }

    /// The width of each column, so that all columns together take at most `room`; `None` if the pieces that cannot be
    /// broken need more.
    ///
    /// Narrows columns by one space at a time. Each step takes the column that adds the fewest lines, and of equal
    /// columns the widest.
    fn widths(&self, room: usize) -> Option<Vec<usize>> {
        let all = 0..self.head.len();
        let mut widths: Vec<usize> =
            all.clone().map(|at| self.column(at).map(columns_of).max().unwrap_or(0)).collect();
        let least: Vec<usize> = all
            .clone()
            .map(|at| self.column(at).map(|cell| widest_piece(cell, self.breaks(at))).max().unwrap_or(0))
            .collect();
        if least.iter().sum::<usize>() > room {
            return None;
        }
        let mut heights = Heights { table: self, known: HashMap::new() };
        while widths.iter().sum::<usize>() > room {
            let narrower = all.clone().filter(|at| widths[*at] > least[*at]);
            let (_, _, at) = narrower
                .map(|at| {
                    let mut tried = widths.clone();
                    tried[at] -= 1;
                    (heights.sum(&tried), usize::MAX - widths[at], at)
                })
                .min()?;
            widths[at] -= 1;
        }
        Some(widths)
    }

    fn grid(&self, gap: usize, widths: &[usize]) -> Vec<Line> {
        let row = |cells: &mut dyn Iterator<Item = &str>, is_head: bool| {
            let cells: Vec<Vec<String>> =
                cells.enumerate().map(|(at, cell)| wrap(cell, widths[at], self.breaks(at))).collect();
            let height = cells.iter().map(Vec::len).max().unwrap_or(0);
            let line = move |line: usize| {
                let mut text = String::new();
                for (at, cell) in cells.iter().enumerate() {
                    // A heading of several lines ends just above its numbers; a cell of several lines starts in the
                    // line of its row's name.
                    let from_top = if is_head { (line + cell.len()).checked_sub(height) } else { Some(line) };
                    let part = from_top.and_then(|line| cell.get(line)).map_or("", String::as_str);
                    let pad = " ".repeat(widths[at].saturating_sub(columns_of(part)));
                    let gap = " ".repeat(if at == 0 { 0 } else { gap });
                    match at < self.left {
                        true => text.extend([&gap, part, &pad]),
                        false => text.extend([gap.as_str(), &pad, part]),
                    }
                }
                Line { is_head, text: text.trim_end().to_owned() }
            };
            (0..height).map(line).collect::<Vec<_>>()
        };
        let mut lines = row(&mut self.head.iter().copied(), true);
        lines.extend(self.rows.iter().flat_map(|cells| row(&mut cells.iter().map(String::as_str), false)));
        lines
    }

    /// One block per row: its words, then one line per number.
    fn blocks(&self, columns: usize) -> Vec<Line> {
        let names = self.head[self.left..].iter().map(|name| columns_of(name)).max().unwrap_or(0);
        let numbers = (self.left..self.head.len()).flat_map(|at| self.column(at).skip(1));
        let numbers = numbers.map(columns_of).max().unwrap_or(0);
        let mut lines = Vec::new();
        for cells in &self.rows {
            let words = cells[..self.left].join("  ");
            let words = wrap(&words, columns, Breaks::Joints).into_iter();
            lines.extend(words.map(|text| Line { is_head: true, text }));
            for (name, number) in self.head[self.left..].iter().zip(&cells[self.left..]) {
                let name_pad = " ".repeat(names - columns_of(name));
                let number_pad = " ".repeat(numbers - columns_of(number));
                lines
                    .push(Line { is_head: false, text: format!("  {name}{name_pad}  {number_pad}{number}") });
            }
        }
        lines
    }

    /// Heading and cells of a column.
    fn column(&self, at: usize) -> impl Iterator<Item = &str> {
        std::iter::once(self.head[at]).chain(self.rows.iter().map(move |row| row[at].as_str()))
    }

    /// Names may be broken between their parts, numbers must not.
    fn breaks(&self, column: usize) -> Breaks {
        if (self.whole..self.left).contains(&column) { Breaks::Joints } else { Breaks::Spaces }
    }
}

/// Cache of the number of lines of each cell at each width.
struct Heights<'a> {
    table: &'a Table,
    /// Number of lines of each cell of a column, by column and width.
    known: HashMap<(usize, usize), Vec<usize>>,
}

impl Heights<'_> {
    /// Number of lines of the whole table.
    fn sum(&mut self, widths: &[usize]) -> usize {
        let mut rows = vec![0; self.table.rows.len() + 1];
        for (column, width) in widths.iter().enumerate() {
            let cells = self.known.entry((column, *width)).or_insert_with(|| {
                let breaks = self.table.breaks(column);
                self.table.column(column).map(|cell| wrap(cell, *width, breaks).len()).collect()
            });
            rows.iter_mut().zip(cells).for_each(|(row, cell)| *row = (*row).max(*cell));
        }
        rows.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> Table {
        let mut table = Table::new(&["scheme", "flow", "Mbit/s", "queueing p95"], 2);
        table.row(vec!["pbe".into(), "phone".into(), "44.60 ±0.12".into(), "17.5 ±1.2".into()]);
        table.row(vec![
            "größer".into(),
            "other (cbr:rate_mbps=60)".into(),
            "100.00 ±20.00".into(),
            "–".into(),
        ]);
        table
    }

    #[test]
    fn tables_align_words_left_and_numbers_right() {
        let mut table = Table::new(&["scheme", "Mbit/s"], 1);
        table.row(vec!["pbe".to_owned(), "9.1".to_owned()]);
        table.row(vec!["größer".to_owned(), "100.0".to_owned()]);
        assert_eq!(table.text(80), "scheme  Mbit/s\npbe        9.1\ngrößer   100.0");
    }

    #[test]
    fn what_does_not_fit_takes_more_lines_and_then_a_block_per_row() {
        let shown = [80, 50, 40, 20, 1].map(|columns| format!("{columns}:\n{}", small().text(columns)));
        insta::assert_snapshot!(shown.join("\n\n"));
    }

    #[test]
    fn a_whole_name_is_not_broken_where_others_are() {
        let mut table = Table::new(&["KPI", "about"], 2).with_whole(1);
        table.row(vec!["lte.rsrp.filtered".to_owned(), "smoothed by the modem".to_owned()]);
        for columns in [usize::MAX, 40, 30, 27] {
            let text = table.text(columns);
            assert!(text.contains("lte.rsrp.filtered"), "{columns} columns:\n{text}");
        }
        assert_eq!(table.text(usize::MAX).lines().count(), 2);
    }

    #[test]
    fn no_number_is_lost_or_broken_at_any_width() {
        let table = small();
        let widest_number = 13;
        for columns in 0..=100 {
            let text = table.text(columns);
            for number in ["44.60", "±0.12", "17.5", "±1.2", "100.00", "±20.00", "–"] {
                assert!(text.contains(number), "{columns} columns show {number}:\n{text}");
            }
            let widest = text.lines().map(columns_of).max().unwrap();
            assert!(widest <= columns.max(4 + 12 + widest_number), "{columns} columns are enough:\n{text}");
        }
    }
}
