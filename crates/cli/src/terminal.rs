//! Output for people: tables and text at the terminal's width, colours if wanted, progress if standard error is a
//! terminal.

mod table;
mod wrap;

use std::fmt;
use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;
use std::time::Duration;

use airpace_core::plain::plain;
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

pub use airpace_core::count::{count, thousands};
pub use table::Table;
#[cfg(test)]
pub use wrap::columns_of;
pub use wrap::hang;

/// Default number of columns: for a terminal without a reported width, for a file and for a pipe.
const USUAL_COLUMNS: usize = 80;

/// Width of standard output (columns).
pub fn columns() -> usize {
    columns_of_stream(&std::io::stdout())
}

/// A heading of twelve columns and a text for standard error, in lines as wide as the terminal. The lines of the text
/// are aligned.
pub fn noted(heading: &str, text: &str) -> String {
    hang(&format!("{heading:<12}"), text, 12, columns_of_stream(&std::io::stderr()))
}

/// Breaks text into lines as wide as the terminal. Text that cannot be broken, such as a path, stays whole.
pub fn fit(text: &str) -> String {
    hang("", text, 0, columns())
}

fn columns_of_stream(stream: &(impl IsTerminal + AsFd)) -> usize {
    let size = stream.is_terminal().then(|| rustix::termios::tcgetwinsize(stream).ok()).flatten();
    size.map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0).unwrap_or(USUAL_COLUMNS)
}

/// Whether colours are wanted on a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paint(bool);

impl Paint {
    /// The colours for standard output.
    pub fn stdout() -> Paint {
        Paint(std::io::stdout().is_terminal() && is_colour_welcome())
    }

    /// The colours for standard error.
    pub fn stderr() -> Paint {
        Paint(std::io::stderr().is_terminal() && is_colour_welcome())
    }

    /// Whether colours are used.
    pub fn is_on(self) -> bool {
        self.0
    }

    /// Bold text.
    pub fn bold(self, text: &str) -> String {
        self.wrap("1", text)
    }

    /// Text in the colour of good results.
    pub fn good(self, text: &str) -> String {
        self.wrap("32", text)
    }

    /// Text in the colour of bad results.
    pub fn bad(self, text: &str) -> String {
        self.wrap("31", text)
    }

    fn wrap(self, code: &str, text: &str) -> String {
        if self.0 { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// Whether the environment allows colours. By convention, a non-empty `NO_COLOR` and `TERM=dumb` turn colours off.
fn is_colour_welcome() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Prints a line on standard error; unsafe characters are escaped. A failure is ignored: a full disk below a log is no
/// reason to stop.
pub fn say(line: impl std::fmt::Display) {
    say_painted(plain(&line.to_string()));
}

/// Prints a line that this program has coloured. The caller must have escaped untrusted text.
pub fn say_painted(line: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Prints a line of a log on standard output, and flushes it. If the disk is full, the line is lost.
///
/// # Errors
/// The reader of the output is gone.
pub fn log(out: &mut dyn Write, line: impl std::fmt::Display) -> std::io::Result<()> {
    let written = writeln!(out, "{line}").and_then(|()| out.flush());
    match written {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

/// A progress bar with an estimate of the remaining time, on standard error. It is hidden if `is_quiet` or if standard
/// error is not a terminal.
pub fn progress(is_quiet: bool) -> ProgressBar {
    bar(is_quiet, progress_template(columns_of_stream(&std::io::stderr())))
}

/// Like [`progress`], with a message that is cut at the end of the line.
pub fn wordy_progress(is_quiet: bool) -> ProgressBar {
    bar(is_quiet, wordy_template(columns_of_stream(&std::io::stderr())))
}

/// Like [`progress`], for work of unknown length: shows a message and the elapsed time.
pub fn activity(is_quiet: bool) -> ProgressBar {
    bar(is_quiet, "{spinner} {msg}, {elapsed} so far")
}

/// Template of a progress line for a terminal of this many columns. Words and numbers come first; the bar gets the
/// remaining columns.
fn progress_template(columns: usize) -> &'static str {
    match columns {
        0..50 => "{percent:>3} %  {msg}{left}",
        50..70 => "{bar:10} {percent:>3} %  {msg}{left}",
        _ => "{bar:30} {percent:>3} %  {msg}{left}",
    }
}

/// Like [`progress_template`], for messages that are more important than the bar.
fn wordy_template(columns: usize) -> &'static str {
    match columns {
        0..120 => "{percent:>3} %  {wide_msg}{left}",
        _ => "{bar:30} {percent:>3} %  {wide_msg}{left}",
    }
}

fn bar(is_quiet: bool, template: &str) -> ProgressBar {
    let is_watched = std::io::stderr().is_terminal() && !is_quiet;
    let target = if is_watched { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let style = ProgressStyle::with_template(template);
    let style = style.expect("the template is valid").progress_chars("━╸ ");
    let style = style.with_key("left", |state: &ProgressState, out: &mut dyn fmt::Write| {
        if let Some(left) = time_left(state.elapsed(), state.fraction().into()) {
            let _ = write!(out, ", {:#} left", HumanDuration(left));
        }
    });
    ProgressBar::with_draw_target(None, target).with_style(style)
}

/// Remaining time at the present average speed; `None` until enough is done for an estimate.
///
/// Chosen: 1 % of the work and 1 s. Before that, the estimate fluctuates.
fn time_left(elapsed: Duration, fraction: f64) -> Option<Duration> {
    let is_told = fraction >= 0.01 && elapsed >= Duration::from_secs(1);
    is_told.then(|| elapsed.mul_f64((1.0 - fraction).max(0.0) / fraction))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_is_told_when_there_is_something_to_tell_it_from() {
        let seconds = Duration::from_secs;
        assert_eq!(time_left(Duration::ZERO, 0.0), None, "nothing is done: not 0 s left");
        assert_eq!(time_left(Duration::from_millis(500), 0.5), None);
        assert_eq!(time_left(seconds(30), 0.001), None);
        assert_eq!(time_left(seconds(30), 0.25), Some(seconds(90)));
        assert_eq!(time_left(seconds(30), 1.0), Some(Duration::ZERO));
    }

    #[test]
    fn progress_fits_the_terminal() {
        // The longest message of a run of a thousand schemes and seeds.
        let words = "100 %  10000 of 10000 runs, 59m left".len();
        for (columns, bar) in [(40, 0), (50, 11), (70, 31), (80, 31), (200, 31)] {
            let template = progress_template(columns);
            let has = if template.contains("{bar:30}") {
                31
            } else {
                usize::from(template.contains("{bar:10}")) * 11
            };
            assert_eq!(has, bar, "{template}");
            assert!(has + words <= columns.max(words), "{columns} columns: {template}");
        }
    }
}
