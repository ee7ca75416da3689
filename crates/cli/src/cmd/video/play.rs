//! `airpace video play`: plays the video of a server.

use std::io::Write;
use std::time::Duration;

use airpace_core::{Refused, Time};
use airpace_run::metrics::Video;
use airpace_run::videos;
use airpace_transfer::video::client::{Ending, MonotonicClock, Progress, Report, Settings, play};
use airpace_video::{Rule, Session, State, Viewing};
use indicatif::ProgressBar;
use serde_json::{Value, json};

use super::Source;
use crate::cmd::{Verdict, on_interrupt, positive, wire, within};
use crate::explain::explained;
use crate::terminal::{self, Paint, Table};

/// Plays the video of `airpace video serve`, and reports the quality for the viewer.
///
/// Nothing is decoded: the player requests segments, buffers them, and plays them in real time, as the player of the simulator
/// does. The report has the metrics of simulated videos. Start-up counts from the request of the first segment. Ctrl-C ends the
/// session with a report. Ends with 1 if the server cannot be reached or the session fails.
#[derive(clap::Args)]
#[command(before_help = "Example: airpace video play server.example\n         \
                         airpace video play server.example --rule buffer --duration 60 --json")]
pub struct Args {
    /// The machine on which `airpace video serve` runs. [default port: 47474]
    #[arg(value_name = "HOST[:PORT]", value_parser = wire::host_and_port)]
    server: (String, u16),
    #[command(flatten)]
    source: Source,
    /// The rule by which the player chooses bitrates: rate or buffer. [default: that of the scenario, or rate]
    #[arg(long, value_name = "RULE", value_parser = rule)]
    rule: Option<Rule>,
    /// Maximum buffer in seconds. [default: that of the scenario, or 50]
    #[arg(long, value_name = "SECONDS", value_parser = positive)]
    max_buffer: Option<f64>,
    /// Abandons a segment that would arrive too late, and requests it at a lower bitrate.
    #[arg(long)]
    abandon: bool,
    /// Time after which the viewer closes the video, in seconds. [default: the end of the video]
    #[arg(long, value_name = "SECONDS", value_parser = positive)]
    duration: Option<f64>,
    /// Time without an answer after which the session fails, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, value_parser = within::<1, 1_000_000>)]
    patience: f64,
    /// Prints one JSON object at the end: the metrics, and the session with all segments and stalls.
    #[arg(long)]
    json: bool,
    /// Prints only errors.
    #[arg(long)]
    quiet: bool,
}

fn rule(name: &str) -> Result<Rule, String> {
    name.parse().map_err(|error: Refused| explained(&error))
}

/// Plays the video.
///
/// # Errors
/// The arguments are invalid. A server that cannot be reached is a failed verdict.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let mut watched = args.source.load()?;
    let player = &mut watched.player;
    player.rule = args.rule.unwrap_or(player.rule);
    player.max_buffer_s = args.max_buffer.unwrap_or(player.max_buffer_s);
    player.abandon |= args.abandon;
    let (host, port) = &args.server;
    let server = match wire::look_up(host, *port) {
        Ok(server) => server,
        Err(error) => {
            terminal::say(format_args!("airpace: {}", explained(error.as_ref())));
            return Ok(Verdict::Failed);
        }
    };
    let seconds = |seconds: f64| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
    let settings = Settings {
        server,
        host: if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") },
        player: watched.player,
        duration: args.duration.map(seconds),
        patience: seconds(args.patience),
    };
    let stop = on_interrupt()?;
    let bar = terminal::wordy_progress(args.quiet || args.json);
    let report = play(&settings, &mut MonotonicClock::start(), &stop, &mut |progress| show(&bar, progress));
    bar.finish_and_clear();
    let video = report.session.as_ref().map(|session| metrics(session, &watched.viewing)).transpose()?;
    if args.json {
        terminal::log(out, object(&settings, &report, video.as_ref()))?;
    } else if !args.quiet {
        match (&video, &report.session) {
            (Some(video), Some(session)) => write(video, session, &report, out)?,
            _ if report.ending.is_ok() => terminal::say("stopped before the video started"),
            _ => {}
        }
    }
    match report.ending {
        Ok(_) => Ok(Verdict::Fine),
        Err(error) => {
            terminal::say(format_args!("airpace: {}", explained(&error)));
            Ok(Verdict::Failed)
        }
    }
}

/// The metrics of a session, as those of a simulated video.
fn metrics(session: &Session, viewing: &Viewing) -> anyhow::Result<Video> {
    Ok(Video::of(&airpace_sim::viewed(session, viewing, Time::ZERO)?))
}

/// Shows the progress.
fn show(bar: &ProgressBar, progress: &Progress) {
    bar.set_length(progress.length.as_millis() as u64);
    bar.set_position(progress.position.as_millis() as u64);
    bar.set_message(line(progress));
}

/// The progress as words.
fn line(progress: &Progress) -> String {
    let state = match progress.state {
        State::StartUp => "starting",
        State::Stalled => "stalled",
        State::Playing | State::Waiting | State::Ended => "playing",
    };
    let clock = |time: Duration| format!("{}:{:02}", time.as_secs() / 60, time.as_secs() % 60);
    format!(
        "{state} {} of {}, buffer {:.1} s, {}p at {} Mbit/s",
        clock(progress.position),
        clock(progress.length),
        progress.buffered.as_secs_f64(),
        progress.representation.height,
        progress.representation.bitrate_mbps,
    )
}

/// The report as a JSON object.
fn object(settings: &Settings, report: &Report, video: Option<&Video>) -> Value {
    let (ending, error) = match &report.ending {
        Ok(ending) => (ending.name(), None),
        Err(error) => ("failed", Some(explained(error))),
    };
    json!({
        "server": settings.server.to_string(), "ending": ending, "error": error,
        "set_up_s": report.set_up.as_secs_f64(), "video": video, "session": report.session,
    })
}

/// Writes the report as a table.
fn write(video: &Video, session: &Session, report: &Report, out: &mut dyn Write) -> std::io::Result<()> {
    let heads = ["rule"].into_iter().chain(videos::COLUMNS.iter().map(|(head, ..)| *head));
    let mut table = Table::new(&heads.collect::<Vec<_>>(), 1);
    table.row(std::iter::once(session.rule.to_string()).chain(videos::texts(video)).collect());
    table.write(out, Paint::stdout())?;
    let ending = match report.ending {
        Ok(Ending::Complete) => "to its end",
        Ok(Ending::Closed | Ending::Stopped) | Err(_) => "not to its end",
    };
    let note = format!(
        "Played {:.1} s of the video, {ending}. Start-up counts from the first request, {:.2} s after the connection was \
         started. The score is 1 (bad) to 5 (excellent).",
        session.played_s,
        report.set_up.as_secs_f64(),
    );
    writeln!(out, "{}", terminal::fit(&note))
}

#[cfg(test)]
mod tests {
    use airpace_video::{Codec, Representation};

    use super::*;

    #[test]
    fn progress_is_a_line_of_words() {
        let representation =
            Representation { bitrate_mbps: 5.8, width: 1920, height: 1080, fps: 30.0, codec: Codec::Hevc };
        let seconds = Duration::from_secs_f64;
        let progress = Progress {
            state: State::Stalled,
            position: seconds(62.5),
            length: seconds(120.0),
            buffered: seconds(1.25),
            representation,
        };
        assert_eq!(line(&progress), "stalled 1:02 of 2:00, buffer 1.2 s, 1080p at 5.8 Mbit/s");
    }
}
