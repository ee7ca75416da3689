//! What a packet costs in processor time: ours beside quinn, s2n-quic and quiche, over the loopback, in one run.
//!
//! ```text
//! cargo run --release --features quiche -- [--rounds N] [--seconds N] [--only NAME]… [--json]
//! ```
//!
//! | module | what it is |
//! | --- | --- |
//! | `side` | a process that is one side of a flow, and what is measured of it |
//! | `rounds` | the two processes of a flow, and rounds of flows |
//! | `table` | medians, and what is printed |
//! | `by_ours`, `by_quinn`, `by_s2n`, `by_quiche` | the stacks |

mod by_ours;
#[cfg(feature = "quiche")]
mod by_quiche;
mod by_quinn;
mod by_s2n;
mod rounds;
mod side;
mod table;

use std::time::Duration;

/// As in the `airpace` binary, for all stacks.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A stack: its name, and what runs one side of a flow by it.
pub type Stack = (&'static str, fn(&side::Side));

/// All that were built, in the order of their turns.
pub const STACKS: &[Stack] = &[
    ("ours quic", by_ours::quic),
    ("quinn", by_quinn::run),
    ("s2n-quic", by_s2n::run),
    #[cfg(feature = "quiche")]
    ("quiche", by_quiche::run),
    ("ours udp", by_ours::udp),
];

const USAGE: &str = "usage: airpace-beside [--rounds N] [--seconds N] [--only NAME]… [--json]";

fn main() {
    let mut words = std::env::args().skip(1).peekable();
    if words.peek().is_some_and(|word| word == side::WORD) {
        return side::run(words.skip(1).collect());
    }
    let (mut rounds, mut seconds, mut only, mut json) = (5, 2.0, vec![], false);
    while let Some(word) = words.next() {
        let mut value = || words.next().unwrap_or_else(|| give_up(&format!("{word} needs a value; {USAGE}")));
        match word.as_str() {
            "--rounds" => rounds = number(&value()),
            "--seconds" => seconds = number(&value()),
            "--only" => only.push(value()),
            "--json" => json = true,
            _ => give_up(&format!("{word} is unknown; {USAGE}")),
        }
    }
    let is_wanted = |stack: &&Stack| only.is_empty() || only.iter().any(|name| name == stack.0);
    let stacks: Vec<&Stack> = STACKS.iter().filter(is_wanted).collect();
    if stacks.is_empty() {
        let names: Vec<&str> = STACKS.iter().map(|stack| stack.0).collect();
        give_up(&format!("there is no such stack; choose one of {}", names.join(", ")));
    }
    if !(0.1..=600.0).contains(&seconds) || rounds == 0 {
        give_up("at least one round of 0.1 to 600 seconds can be measured");
    }
    match rounds::run(&stacks, rounds, Duration::from_secs_f64(seconds)) {
        Ok(flows) if json => println!("{}", table::json(&stacks, &flows, seconds)),
        Ok(flows) => print!("{}", table::text(&stacks, &flows)),
        Err(why) => give_up(&why),
    }
}

fn number<N: std::str::FromStr>(text: &str) -> N {
    text.parse().unwrap_or_else(|_| give_up(&format!("{text} is no number; {USAGE}")))
}

fn give_up(why: &str) -> ! {
    eprintln!("airpace-beside: {why}");
    std::process::exit(2)
}
