//! `decode --users`: totals of each user over a recording, as text.

use std::io::Write;

use airpace_radio::Rnti;
use airpace_sdr::decode::users::{Sums, Users};

use crate::terminal::{Paint, Table, thousands};

/// Prints the users as a table, with rates over this many subframes. `called` returns the printed name of a user.
///
/// # Errors
/// The output cannot be written.
pub fn write(
    users: &Users,
    subframes: u64,
    mut called: impl FnMut(Rnti) -> Rnti,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    let heads = ["RNTI", "type", "messages", "down", "Mbit/s", "PRBs", "up", "Mbit/s", "PRBs", "again"];
    let mut table = Table::new(&heads, 2);
    for (rnti, user) in users.sorted() {
        let of = |sums: &Sums| {
            [thousands(sums.grants), format!("{:.3}", sums.mbps(subframes)), thousands(sums.prbs)]
        };
        let [down, up] = &user.ways;
        let names = [called(rnti).0.to_string(), user.kind.to_owned(), thousands(user.messages)];
        let again = thousands(down.again + up.again);
        table.row(names.into_iter().chain(of(down)).chain(of(up)).chain([again]).collect());
    }
    table.write(out, Paint::stdout())
}
