//! `airpace doctor --emu`: measures the emulator's capacity on this machine, and shows how to increase it.

use std::io::Write;

use airpace_core::Refused;
use airpace_emu::Audit;
use airpace_emu::machine::Lateness;
use airpace_lab::machine::{self, Examined, STEPS};
use airpace_lab::selftest::Carried;
use serde_json::{Value, json};

use crate::terminal::{self, Paint, Table};

/// Performs all checks and measurements; takes about 25 s.
pub fn examine() -> Examined {
    let bar = terminal::progress(false);
    bar.set_length(STEPS as u64);
    let examined = machine::examine(|step, test| {
        bar.set_position(step as u64);
        bar.set_message(match test {
            Some(test) => format!("{} Mbit/s {}", test.rate_mbps, test.way()),
            None => "timers".to_owned(),
        });
    });
    bar.finish_and_clear();
    examined
}

/// The results as members of the object that `--json` prints.
pub fn json(examined: &Examined) -> Value {
    let timers: Vec<Value> = [true, false]
        .into_iter()
        .zip(&examined.timers)
        .filter_map(|(has, late)| {
            let late = late.as_ref()?;
            Some(json!({
                "realtime_priority": has,
                "late_p50_us": late.p50_us,
                "late_p99_us": late.p99_us,
                "late_p999_us": late.p999_us,
                "late_max_us": late.max_us,
            }))
        })
        .collect();
    let carried: Vec<Value> = examined.carried.iter().flatten().map(Carried::json).collect();
    let error = examined.carried.as_ref().err().map(|error| Refused::of(error).to_string());
    json!({ "timers": timers, "throughput": carried, "throughput_error": error })
}

/// Prints the findings and measurements.
pub fn write(examined: &Examined, out: &mut dyn Write, paint: Paint) -> anyhow::Result<()> {
    writeln!(out, "\nHow late timers wake a thread, in µs:")?;
    let mut table = Table::new(&["thread", "p50", "p99", "p99.9", "max"], 1);
    for (name, late) in ["with priority", "without"].into_iter().zip(&examined.timers) {
        let number =
            |of: fn(&Lateness) -> f64| late.as_ref().map_or("-".to_owned(), |it| format!("{:.0}", of(it)));
        table.row(vec![
            name.to_owned(),
            number(|it| it.p50_us),
            number(|it| it.p99_us),
            number(|it| it.p999_us),
            number(|it| it.max_us),
        ]);
    }
    table.write(out, paint)?;
    let carried = match &examined.carried {
        Err(error) => {
            writeln!(
                out,
                "\n{}",
                terminal::fit(&format!("The emulator does not run: {}", Refused::of(error)))
            )?;
            return Ok(());
        }
        Ok(carried) => carried,
    };
    writeln!(out, "\nWhat the emulator carries (TCP through a link of this rate, both in Mbit/s):")?;
    let head = ["link", "way", "goodput", "packets/s", "late p50, ms", "p99.9", "core", "fit"];
    let mut table = Table::new(&head, 0);
    for it in carried {
        let Audit { lateness_p50_ms, lateness_p999_ms, cpu, .. } = it.audit;
        table.row(vec![
            it.test.rate_mbps.to_string(),
            it.test.way().to_owned(),
            format!("{:.1}", it.goodput_mbps),
            format!("{:.0}", it.packets_per_s()),
            format!("{lateness_p50_ms:.2}"),
            format!("{lateness_p999_ms:.2}"),
            format!("{:.0} %", cpu * 100.0),
            if it.audit.is_fit() { "yes" } else { "no" }.to_owned(),
        ]);
    }
    table.write(out, paint)?;
    let mut told: Vec<&str> = vec![];
    for reason in carried.iter().flat_map(|it| &it.audit.unfit_because) {
        // Print one sentence per kind of reason.
        let kind = |text: &str| text.chars().filter(|it| !it.is_ascii_digit()).collect::<String>();
        if !told.iter().any(|it| kind(it) == kind(reason)) {
            told.push(reason);
        }
    }
    for reason in told {
        writeln!(out, "{}", terminal::hang("Not fit: ", reason, 9, terminal::columns()))?;
    }
    Ok(())
}
