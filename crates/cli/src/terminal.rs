//! What people see: aligned tables, colour where it is wanted, progress where someone watches.

use std::io::{IsTerminal, Write};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Rows of cells, aligned: the first columns to the left, numbers to the right.
pub struct Table {
    head: Vec<&'static str>,
    left: usize,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with this head, whose first `left` columns hold words.
    pub fn new(head: &[&'static str], left: usize) -> Table {
        Table { head: head.to_vec(), left, rows: Vec::new() }
    }

    /// Adds a row; cells beyond the head are a mistake.
    pub fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.head.len());
        self.rows.push(cells);
    }

    /// Writes it, the head in bold if colours are wanted.
    pub fn write(&self, out: &mut dyn Write, paint: Paint) -> std::io::Result<()> {
        let width = |column: usize| {
            let cells = self.rows.iter().map(|row| row[column].chars().count());
            cells.chain([self.head[column].chars().count()]).max().unwrap_or(0)
        };
        let widths: Vec<_> = (0..self.head.len()).map(width).collect();
        let line = |cells: &mut dyn Iterator<Item = &str>| {
            let mut line = String::new();
            for (column, cell) in cells.enumerate() {
                let pad = " ".repeat(widths[column] - cell.chars().count());
                let gap = if column == 0 { "" } else { "  " };
                match column < self.left {
                    true => line.extend([gap, cell, &pad]),
                    false => line.extend([gap, &pad, cell]),
                }
            }
            line.trim_end().to_owned()
        };
        writeln!(out, "{}", paint.bold(&line(&mut self.head.iter().copied())))?;
        for row in &self.rows {
            writeln!(out, "{}", line(&mut row.iter().map(String::as_str)))?;
        }
        Ok(())
    }
}

/// Whether colours are wanted on a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paint(bool);

impl Paint {
    /// For standard output.
    pub fn stdout() -> Paint {
        Paint(std::io::stdout().is_terminal() && is_colour_welcome())
    }

    /// For standard error.
    pub fn stderr() -> Paint {
        Paint(std::io::stderr().is_terminal() && is_colour_welcome())
    }

    /// Whether there are any.
    pub fn is_on(self) -> bool {
        self.0
    }

    /// Stands out.
    pub fn bold(self, text: &str) -> String {
        self.wrap("1", text)
    }

    /// Good news.
    pub fn good(self, text: &str) -> String {
        self.wrap("32", text)
    }

    /// Bad news.
    pub fn bad(self, text: &str) -> String {
        self.wrap("31", text)
    }

    fn wrap(self, code: &str, text: &str) -> String {
        if self.0 { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// Conventions of the terminal: `NO_COLOR` (any text but the empty one) and a dumb `TERM` mean no.
fn is_colour_welcome() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Says a line on standard error. Nobody has to hear it: a full disk below a log is no reason to stop working.
pub fn say(line: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Prints a line of a log on standard output, at once. What a full disk does not take is lost.
///
/// # Errors
/// A reader who is gone.
pub fn log(out: &mut dyn Write, line: impl std::fmt::Display) -> std::io::Result<()> {
    let written = writeln!(out, "{line}").and_then(|()| out.flush());
    match written {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

/// A number with its thousands apart: `12,345`.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// So many of something: `1 port`, `2,500 ports`.
pub fn count(number: u64, of: &str) -> String {
    format!("{} {of}{}", thousands(number), if number == 1 { "" } else { "s" })
}

/// A bar with an estimate of the time left, on standard error; hidden where nobody watches.
pub fn progress(is_quiet: bool) -> ProgressBar {
    bar(is_quiet, "{bar:30} {percent:>3} %  {msg}, {eta} left")
}

/// The same for what has no end that is known: a word on how it goes, and for how long.
pub fn activity(is_quiet: bool) -> ProgressBar {
    bar(is_quiet, "{spinner} {msg}, {elapsed} so far")
}

fn bar(is_quiet: bool, template: &str) -> ProgressBar {
    let is_watched = std::io::stderr().is_terminal() && !is_quiet;
    let target = if is_watched { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let style = ProgressStyle::with_template(template);
    let style = style.expect("the template is valid").progress_chars("━╸ ");
    ProgressBar::with_draw_target(None, target).with_style(style)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_stand_apart() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn tables_align_words_left_and_numbers_right() {
        let mut table = Table::new(&["scheme", "Mbit/s"], 1);
        table.row(vec!["pbe".to_owned(), "9.1".to_owned()]);
        table.row(vec!["größer".to_owned(), "100.0".to_owned()]);
        let mut text = Vec::new();
        table.write(&mut text, Paint(false)).unwrap();
        assert_eq!(String::from_utf8(text).unwrap(), "scheme  Mbit/s\npbe        9.1\ngrößer   100.0\n");
    }
}
