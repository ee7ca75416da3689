//! What `--radio` names: where this machine's radio reports come from.

use std::os::unix::fs::FileTypeExt;
use std::path::PathBuf;
use std::sync::Arc;

use airpace_core::Time;
use airpace_net::radio::{Board, Heard, Lines, Place, Radio, State};
use anyhow::{Context, anyhow, bail};

/// The source that `text` names.
///
/// # Errors
/// It is none, or it must be decoded first; the sentence says how.
pub fn open(text: &str) -> anyhow::Result<Box<dyn Radio>> {
    let board = match text.split_once(':') {
        _ if text == "od" => Some(None),
        Some(("od", folder)) if !folder.is_empty() => Some(Some(PathBuf::from(folder))),
        _ => None,
    };
    if let Some(folder) = board {
        let board = Board::open(folder).context("--radio od: the system has no thread left")?;
        return Ok(Box::new(board));
    }
    let place: Place = text.parse().map_err(|why| anyhow!("--radio: {why}"))?;
    if let Place::Path(path) = &place {
        if text.contains("driver=") {
            bail!(
                "--radio {text} is a radio, whose samples must be decoded first: run airpace decode --device {text} \
                 --freq HZ --reports FILE beside this, and give --radio FILE"
            );
        }
        if std::fs::metadata(path).is_ok_and(|there| there.file_type().is_char_device()) {
            bail!(
                "--radio {text} is a device, and no source of reports: a modem's port is read by `airpace diag serve`, \
                 beside which --radio od hears the phone's own grants"
            );
        }
    }
    Ok(Box::new(Lines::new(place)))
}

/// How the reports are, in words for a line of progress.
pub fn state(heard: &Heard, now: Time) -> String {
    let warning = heard.scope_warning();
    match heard.state(now) {
        State::Waiting if !heard.is_open() => "radio is not there".to_owned(),
        State::Waiting => "radio waiting".to_owned(),
        State::Fresh if warning.is_some() => "radio of wrong scope".to_owned(),
        other => format!("radio {other}"),
    }
}

/// The same for programs: `waiting`, `fresh`, `stale` or `wrong-scope`.
pub fn word(heard: &Heard, now: Time) -> &'static str {
    match heard.state(now) {
        State::Waiting => "waiting",
        State::Stale(_) => "stale",
        State::Fresh if heard.scope_warning().is_some() => "wrong-scope",
        State::Fresh => "fresh",
    }
}

/// What a watcher knows of the radio.
pub type Ear = Option<Arc<Heard>>;
