//! Table of `airpace agree`: one row per flow and transport, next to the simulator's results.

use std::io::Write;

use airpace_run::wire::{Beside, Spread, Verdict};

use crate::terminal::{self, Paint, Table};

/// Prints the table, then the spread of the simulator's runs for each differing row, and the reasons why runs are
/// unfit.
pub fn write(rows: &[Beside], out: &mut dyn Write, paint: Paint) -> std::io::Result<()> {
    let mut table =
        Table::new(&["scheme", "over", "flow", "Mbit/s", "sim", "apart", "delay, ms", "sim", "apart", ""], 3);
    for row in rows {
        let [simulated, wire] = row.throughput_mbps;
        let delays = row.one_way_delay_ms.map(|[simulated, wire]| {
            [format!("{wire:.1}"), format!("{simulated:.1}"), format!("{:+.1}", wire - simulated)]
        });
        let verdict = match row.verdict {
            Verdict::Agrees => "agrees",
            Verdict::WithinSpread => "in spread",
            Verdict::Differs => "differs",
            Verdict::Unfit => "unfit",
        };
        let apart = match simulated > 0.0 {
            true => format!("{:+.1} %", 100.0 * (wire - simulated) / simulated),
            false => "–".to_owned(),
        };
        let mut cells = vec![row.scheme.clone(), row.transport.clone(), row.flow.clone()];
        cells.extend([format!("{wire:.2}"), format!("{simulated:.2}"), apart]);
        cells.extend(delays.unwrap_or_else(|| [(); 3].map(|()| "–".to_owned())));
        cells.push(verdict.to_owned());
        table.row(cells);
    }
    table.write(out, paint)?;
    for row in rows.iter().filter(|row| matches!(row.verdict, Verdict::WithinSpread | Verdict::Differs)) {
        if let Some(spread) = &row.spread {
            writeln!(out, "{}", terminal::fit(&format!("- {}", spread_of(row, spread))))?;
        }
    }
    let of =
        |row: &Beside| format!("{} over {}: {}", row.scheme, row.transport, row.unfit_because.join("; "));
    let mut unfit: Vec<String> = rows.iter().filter(|row| !row.unfit_because.is_empty()).map(of).collect();
    unfit.dedup();
    for line in unfit {
        writeln!(out, "{}", terminal::fit(&format!("- {line}")))?;
    }
    Ok(())
}

/// Range of the simulator's runs, as text.
fn spread_of(row: &Beside, spread: &Spread) -> String {
    let [least, most] = spread.throughput_mbps;
    let delays = spread
        .one_way_delay_ms
        .map_or_else(String::new, |[least, most]| format!(", {least:.1} to {most:.1} ms"));
    format!(
        "{} over {}, {}: {} of the simulator whose flows begin within 1 ms have {least:.2} to {most:.2} Mbit/s{delays}",
        row.scheme,
        row.transport,
        row.flow,
        terminal::count(spread.runs as u64, "run")
    )
}
