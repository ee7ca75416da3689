//! Prints the downlink rate of this phone, computed from the modem's byte counter. A transport could pace at this rate.
//!
//! ```text
//! cargo run -p airpace-od --example rate [KPI]
//! ```
//!
//! Subscribes to a KPI that counts a total (default: `lte.dl.bytes`), so that readings between two samples need not be
//! read. Prints the rate every 100 ms until the daemon stops.

use std::time::Duration;

use od::{Error, Od, Reading};

const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Maximum age of a reading for which the example prints a rate. An older reading means that the modem sends no reports
/// or the phone is suspended.
const TOO_OLD: Duration = Duration::from_secs(1);

fn main() -> Result<(), Error> {
    let name = std::env::args().nth(1).unwrap_or_else(|| "lte.dl.bytes".to_owned());
    let od = Od::open(None)?;
    let total = od.subscribe(&name)?;
    let mut before = total.wait(0, Duration::from_secs(10))?;
    while od.is_alive() {
        std::thread::sleep(LOOK_EVERY);
        let Some(now) = total.latest() else { continue };
        match rate(&before, &now) {
            Some(bits_per_second) => println!("{:8.2} Mbit/s, {:?} old", bits_per_second * 1e-6, now.age()),
            None if now.gaps != before.gaps => println!("     ??? the port was lost in between"),
            None if now.age() > TOO_OLD => println!("     ??? the last reading is {:?} old", now.age()),
            None => println!("    0.00 Mbit/s"),
        }
        before = now;
    }
    Err(Error::Stale)
}

/// Rate between two readings by the modem's clock, in bit/s; `None` if the readings do not determine it.
fn rate(before: &Reading, now: &Reading) -> Option<f64> {
    let is_new = now.sequence > before.sequence && now.gaps == before.gaps;
    let seconds = now.modem_ns.saturating_sub(before.modem_ns) as f64 * 1e-9;
    (is_new && seconds > 0.0).then(|| (now.value - before.value) * 8.0 / seconds)
}
