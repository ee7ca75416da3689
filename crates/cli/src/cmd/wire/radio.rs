//! Sources of radio reports for `--radio`, and their present state.

mod samples;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use airpace_core::Time;
use airpace_feed::{Account, Board, Heard, Lack, Lines, Need, Place, Radio, STALE_AFTER, State};
use airpace_modem::reports::{self, OpenError, about_grants};
use airpace_modem::source::Source;
pub use airpace_transfer::steering::{need, need_of};
use anyhow::{Context, anyhow};
use serde_json::{Value, json};

use crate::called;
use crate::cmd::diag::port::ListenArgs;

/// Text about `--radio` in `--help`.
pub const HELP: &str = "Source of this machine's radio reports, for schemes that use them: a file, FIFO or socket of lines, \
                        tcp:HOST:PORT, - (standard input), od[:DIR] (KPIs published by airpace diag serve), a modem's port \
                        (/dev/ttyUSB0, modem:tcp:HOST:PORT), a recording (cell.sigmf-meta,rnti=R) or a radio \
                        (driver=rtlsdr,freq=806M,rnti=R)";

/// Opens the source that `text` names.
///
/// # Errors
/// `text` names no source, or the source cannot be opened; the message contains a remedy.
pub fn open(text: &str) -> anyhow::Result<Box<dyn Radio>> {
    let no_thread = || format!("--radio {text}: the system has no thread left; end other programs");
    let board = match text.split_once(':') {
        _ if text == "od" => Some(None),
        Some(("od", folder)) if !folder.is_empty() => Some(Some(PathBuf::from(folder))),
        _ => None,
    };
    if let Some(folder) = board {
        return Ok(Box::new(Board::open(folder).with_context(no_thread)?));
    }
    if let Some(source) = Source::named(text) {
        return open_modem(text, source);
    }
    if samples::is_meant(text) {
        return samples::open(text);
    }
    let place: Place = text.parse().map_err(|why| anyhow!("--radio: {why}"))?;
    Ok(Box::new(Lines::new(place)))
}

/// Opens the modem at this port.
fn open_modem(text: &str, source: Source) -> anyhow::Result<Box<dyn Radio>> {
    let options = ListenArgs::default().options(source.lasting(), &about_grants(), None)?;
    let fed = reports::open(options, crate::terminal::say).map_err(|error| match error {
        OpenError::Start(error) => anyhow!(error).context(format!(
            "--radio {text} is no modem's port that can be read; if {} reads the modem, give --radio od",
            called::command("diag serve")
        )),
        error @ OpenError::Thread(_) => error.into(),
    })?;
    Ok(Box::new(fed))
}

/// Files that the source reads. No transfer may overwrite them.
pub fn files(text: &str) -> Vec<PathBuf> {
    let is_other = text == "od" || text == "-" || ["od:", "tcp:"].iter().any(|name| text.starts_with(name));
    if is_other || Source::named(text).is_some() {
        return vec![];
    }
    match samples::is_meant(text) {
        true => samples::files(text),
        false => vec![PathBuf::from(text)],
    }
}

/// Whether [`open`] interprets the text as something other than the path of a file, a FIFO or a socket.
#[cfg(feature = "bpf")]
pub fn is_no_file(text: &str) -> bool {
    let is_board = text == "od" || text.starts_with("od:");
    is_board || text.starts_with("tcp:") || Source::named(text).is_some() || samples::is_meant(text)
}

/// State of the reports as text for the progress line.
pub fn state(heard: &Heard, now: Time, need: Need) -> String {
    let account = heard.account(now, need);
    match account.state {
        State::Waiting if account.problem.is_some() => "radio unavailable".to_owned(),
        State::WrongScope(_) => "radio of wrong scope".to_owned(),
        _ if is_behind(&account) => format!("radio {:.1} s behind", account.behind.as_secs_f64()),
        state => format!("radio {state}"),
    }
}

/// State of the reports for programs: `waiting`, `fresh`, `stale` or `wrong-scope`.
fn word(state: State) -> &'static str {
    match state {
        State::Waiting => "waiting",
        State::Stale(_) => "stale",
        State::WrongScope(_) => "wrong-scope",
        State::Fresh => "fresh",
    }
}

/// Whether this machine decodes samples too slowly, so that their reports are too old to be used.
fn is_behind(account: &Account) -> bool {
    account.state != State::Fresh && account.behind > STALE_AFTER
}

/// All data about the reports as JSON.
pub fn object(heard: &Heard, now: Time, need: Need) -> Value {
    let account = heard.account(now, need);
    let millis = |span: Duration| span.as_secs_f64() * 1e3;
    json!({
        "source": account.name,
        "state": word(account.state),
        "why": why(&account, need),
        "reports": account.reports,
        "refused": account.refused,
        "unreadable": account.unreadable,
        "late": account.late,
        "behind_ms": millis(account.behind),
        "opened": account.opened,
        "age_ms": account.age.map(millis),
        "gaps": account.gaps,
        "rnti": account.own.map(|rnti| rnti.0),
    })
}

/// Reason why telemetry is unusable now; `None` if it is usable.
fn why(account: &Account, need: Need) -> Option<String> {
    match (&account.state, &account.problem) {
        (State::Fresh, _) => None,
        (State::WrongScope(lack), _) => Some(match (lack, need) {
            (Lack::Device, _) => {
                let name = called::name();
                format!("{lack}: give the decoder this device's RNTI ({name} decode --rnti)")
            }
            (_, Need::Everyone) => format!(
                "{lack}, and PBE-CC needs the grants of all users: use the reports of a decoder of the \
                 control channel ({name} decode --reports, or device-N.control of {name} emu --reports)",
                name = called::name()
            ),
            (_, Need::Own) => lack.to_string(),
        }),
        (_, Some(problem)) if account.is_over => Some(problem.clone()),
        _ if is_behind(account) => Some(format!(
            "this machine decodes too slowly: {:.1} s behind; end other programs, choose a carrier with \
             fewer PRBs, or let another machine decode",
            account.behind.as_secs_f64()
        )),
        (_, Some(problem)) => Some(format!("source unavailable: {problem}; retrying")),
        (_, None) => Some("no reports are received".to_owned()),
    }
}

/// Final summary of the reports as text.
pub fn summary(heard: &Heard, now: Time, need: Need) -> String {
    let account = heard.account(now, need);
    let mut parts = vec![crate::terminal::count(account.reports, "report")];
    if account.refused > 0 && need == Need::Everyone {
        parts.push(format!("{} of wrong scope", account.refused));
    }
    if account.late > 0 {
        parts.push(format!("{} too late", account.late));
    }
    if account.unreadable > 0 {
        parts.push(format!("{} that could not be read", account.unreadable));
    }
    if account.gaps > 0 {
        parts.push(crate::terminal::count(account.gaps, "gap"));
    }
    let end = match why(&account, need) {
        Some(why) => format!("at the end {}: {why}", word(account.state)),
        None => "fresh at the end".to_owned(),
    };
    format!("{}: {}; {end}", account.name, parts.join(", "))
}

/// State of the radio for a progress display; `None` without a radio.
pub type Ear = Option<Arc<Heard>>;

/// Detects when telemetry becomes unusable, and when it becomes usable again.
#[derive(Debug, Default)]
pub struct Changes {
    before: Option<&'static str>,
    said: u32,
}

/// Maximum number of reported changes. Later changes are visible in the progress line only.
const MAX_REPORTED: u32 = 10;

impl Changes {
    /// Returns a message if the state has changed.
    pub fn look(&mut self, heard: &Heard, now: Time, need: Need) -> Option<String> {
        let account = heard.account(now, need);
        let word = word(account.state);
        let before = self.before.replace(word);
        let is_news = match before {
            None => account.state == State::Waiting && account.problem.is_some(),
            Some("waiting") if account.state == State::Fresh => false,
            Some(before) => before != word,
        };
        if !is_news || self.said >= MAX_REPORTED {
            return None;
        }
        self.said += 1;
        Some(match why(&account, need) {
            Some(why) => format!("{}: {word}; schemes run without radio reports: {why}", account.name),
            None => format!("{}: fresh again", account.name),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "bpf")]
    #[test]
    fn what_is_no_file_is_known_by_its_name() {
        for other in [
            "od",
            "od:/run/od",
            "tcp:phone:9",
            "/dev/ttyUSB7",
            "modem:dm",
            "cell.sigmf-meta,rnti=70",
            "driver=rtlsdr,freq=806M,rnti=70",
        ] {
            assert!(is_no_file(other), "{other}");
        }
        for file in ["-", "reports.jsonl", "/run/modem/reports.sock", "flow.acks", "od.txt"] {
            assert!(!is_no_file(file), "{file}");
        }
    }

    #[test]
    fn a_source_that_is_not_there_is_said_once() {
        let radio = open("/nowhere/socket").unwrap();
        let (heard, mut changes, now) = (radio.heard(), Changes::default(), Time::from_secs(9));
        assert_eq!(state(&heard, now, Need::Own), "radio waiting", "it was not looked for yet");
        let mut radio = radio;
        radio.take(now, &mut |_| panic!("nobody reports"));
        assert_eq!(state(&heard, now, Need::Own), "radio unavailable");
        let said = changes.look(&heard, now, Need::Own).expect("news");
        assert!(said.contains("/nowhere/socket") && said.contains("retrying"), "{said}");
        assert_eq!(changes.look(&heard, now, Need::Own), None);
        let told = object(&heard, now, Need::Own);
        assert_eq!(
            (&told["state"], &told["reports"], &told["age_ms"]),
            (&json!("waiting"), &json!(0), &Value::Null)
        );
        assert!(summary(&heard, now, Need::Own).contains("0 reports; at the end waiting"), "{told}");
    }
}
