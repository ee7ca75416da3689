//! Reports that another thread produces from a libOD daemon, a modem or radio samples, and sends over a channel.
//!
//! Reading a modem or decoding samples may take time. The thread of the event loop must not wait for it.

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use airpace_core::Time;
use airpace_radio::RadioReport;
use rustix::event::{EventfdFlags, eventfd};

use super::{Heard, Mapping, Numbers, Radio, STALE_AFTER};

/// Maximum number of reports in the channel. Further reports are dropped.
///
/// Chosen: a second of reports of one carrier.
const MAX_WAITING: usize = 1_024;

/// A report and its arrival time.
type Told = (RadioReport, Time);

/// A source whose reports another thread produces. Dropping this value stops the thread and waits until it has ended.
pub struct Fed {
    reports: Receiver<Told>,
    shared: Arc<Shared>,
    feeder: Option<JoinHandle<()>>,
}

/// Interface by which the producing thread delivers reports to its source.
pub struct Feeder {
    send: SyncSender<Told>,
    shared: Arc<Shared>,
    mapping: Mapping,
    numbers: Numbers,
}

struct Shared {
    heard: Arc<Heard>,
    bell: OwnedFd,
    is_over: AtomicBool,
}

impl Fed {
    /// Runs `find` on a new thread, which produces reports until [`Feeder::is_over`] returns true. `name` is the name
    /// of the source for users, and `thread` is the name of the thread.
    ///
    /// # Errors
    /// The operating system has no thread or descriptor left.
    pub fn start(
        name: String,
        thread: &str,
        find: impl FnOnce(&mut Feeder) + Send + 'static,
    ) -> std::io::Result<Fed> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let heard = Heard::of(name);
        heard.close("no report has arrived yet".to_owned());
        let shared = Arc::new(Shared { heard: Arc::new(heard), bell, is_over: AtomicBool::new(false) });
        let (send, reports) = sync_channel(MAX_WAITING);
        let mut feeder = Feeder {
            send,
            shared: Arc::clone(&shared),
            mapping: Mapping::default(),
            numbers: Numbers::default(),
        };
        let feeder = std::thread::Builder::new().name(thread.to_owned()).spawn(move || find(&mut feeder))?;
        Ok(Fed { reports, shared, feeder: Some(feeder) })
    }
}

impl Feeder {
    /// Whether nobody needs the reports any more. The producing thread should check this several times per second.
    pub fn is_over(&self) -> bool {
        self.shared.is_over.load(Ordering::Acquire)
    }

    /// Notes that the source was opened.
    pub fn open(&mut self) {
        self.mapping = Mapping::default();
        self.numbers.begin_anew();
        self.shared.heard.open();
    }

    /// Notes that the source is unavailable, with the reason.
    pub fn close(&mut self, why: impl fmt::Display) {
        self.shared.heard.close(why.to_string());
    }

    /// Notes that the source has ended permanently, with the reason.
    pub fn end(&mut self, why: impl fmt::Display) {
        self.shared.heard.end(why.to_string());
    }

    /// Counts an unreadable part of the source.
    pub fn count_unreadable(&self) {
        self.shared.heard.count_unreadable();
    }

    /// Sends a report that arrived at `came`. The time in the report is by the reporter's clock. Returns whether the
    /// channel had space.
    pub fn tell(&mut self, came: Time, mut report: RadioReport) -> bool {
        report.time = self.mapping.instant(came, report.time);
        self.tell_as_it_is(came, report)
    }

    /// Sends a report whose time is by the machine's monotonic clock. Returns whether the channel had space.
    pub fn tell_as_it_is(&mut self, came: Time, mut report: RadioReport) -> bool {
        self.numbers.place(&mut report);
        let has_room = self.send.try_send((report, came)).is_ok();
        if has_room {
            // The write fails only if the counter reaches 2^64 - 1.
            let _ = rustix::io::write(&self.shared.bell, &1u64.to_ne_bytes());
        } else {
            self.shared.heard.count_unreadable();
        }
        has_room
    }

    /// Sends a report decoded from samples, `behind` after the reception of the samples. A report with a longer delay
    /// than [`STALE_AFTER`] is dropped and counted, because it does not describe the cell's current state. Returns
    /// whether the report was sent.
    pub fn tell_late(&mut self, came: Time, behind: Duration, report: RadioReport) -> bool {
        self.shared.heard.fall_behind(behind);
        if behind <= STALE_AFTER {
            return self.tell(came, report);
        }
        self.shared.heard.count_late();
        false
    }
}

impl Radio for Fed {
    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.shared.bell.as_fd())
    }

    fn take(&mut self, _: Time, each: &mut dyn FnMut(RadioReport)) {
        let _ = rustix::io::read(&self.shared.bell, &mut [0; 8]);
        for (report, came) in self.reports.try_iter().take(MAX_WAITING) {
            self.shared.heard.hear(came, &report);
            each(report);
        }
    }

    fn poll_timeout(&self) -> Option<Time> {
        None
    }

    fn heard(&self) -> Arc<Heard> {
        Arc::clone(&self.shared.heard)
    }
}

impl Drop for Fed {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Release);
        if let Some(feeder) = self.feeder.take() {
            // A thread that panicked has printed the panic already.
            let _ = feeder.join();
        }
    }
}

impl fmt::Debug for Fed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fed").field("name", &self.shared.heard.name()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use airpace_radio::Scope;

    use super::super::tests::report;
    use super::super::{Need, State};
    use super::*;
    use airpace_rt::clock;

    /// Takes this many reports.
    fn take(fed: &mut Fed, wanted: usize) -> Vec<RadioReport> {
        let mut told = vec![];
        while told.len() < wanted {
            fed.take(clock::now(), &mut |report| told.push(report));
            std::thread::yield_now();
        }
        told
    }

    #[test]
    fn what_a_thread_finds_comes_in_order_with_times_of_this_machine() {
        let mut fed = Fed::start("a modem".to_owned(), "modem", |feeder| {
            feeder.open();
            let came = clock::now();
            for subframe in 0..3 {
                assert!(feeder.tell(came, report(subframe, Scope::Own)));
            }
            feeder.close("it was unplugged");
            feeder.end("it was thrown away");
        })
        .unwrap();
        let told = take(&mut fed, 3);
        let now = clock::now();
        assert_eq!(told.iter().map(|report| report.slot.subframe()).collect::<Vec<_>>(), [0, 1, 2]);
        assert!(told.iter().all(|report| report.time <= now && report.time > Time::from_millis(2)));
        // The thread may not have written its last state yet.
        fed.feeder.take().unwrap().join().unwrap();
        let account = fed.heard().account(now, Need::Own);
        assert_eq!((account.reports, account.opened, account.name.as_str()), (3, 1, "a modem"));
        assert_eq!(account.problem.as_deref(), Some("it was thrown away"));
        assert!(account.is_over);
    }

    #[test]
    fn reports_of_samples_that_are_read_too_slowly_are_left_out_and_counted() {
        let mut fed = Fed::start("samples".to_owned(), "samples", |feeder| {
            feeder.open();
            for behind in [0, 50, 100, 101, 3_000, 20] {
                let behind = Duration::from_millis(behind);
                let is_told = feeder.tell_late(clock::now(), behind, report(7, Scope::Everyone));
                assert_eq!(is_told, behind <= STALE_AFTER);
            }
        })
        .unwrap();
        take(&mut fed, 4);
        let account = fed.heard().account(clock::now(), Need::Everyone);
        assert_eq!((account.reports, account.late, account.behind), (4, 2, Duration::from_millis(20)));
        assert_ne!(account.state, State::Waiting);
    }

    #[test]
    fn a_thread_that_nobody_listens_to_any_more_is_told_so() {
        let fed = Fed::start("a board".to_owned(), "board", |feeder| {
            while !feeder.is_over() {
                std::thread::yield_now();
            }
            assert!(feeder.tell(clock::now(), report(1, Scope::Own)), "nobody takes it, and nobody minds");
        })
        .unwrap();
        drop(fed);
    }
}
