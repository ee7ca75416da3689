//! Colours and patterns of controller states, in one table, so that no two states of a page look the same.

use serde::Serialize;

use super::colour::Shade;

/// Patterns over a state's colour. The page draws them (`web/look.js`).
const PATTERNS: [&str; 7] = ["plain", "rising", "falling", "upright", "level", "dots", "cross"];

/// A colour for each kind of state, with the states of this kind in the order of [`PATTERNS`].
///
/// Chosen: the colours of Okabe and Ito, which colour-blind readers can distinguish (without the vermilion, which
/// resembles dark orange), and an indigo of Tol's for the Internet. Each kind has one colour, so that schemes can be
/// compared. Patterns distinguish the states of a kind.
const STATES: [(&str, &[&str]); 8] = [
    // Fast growth at the start.
    ("#E69F00", &["SlowStart", "Startup", "Start", "Starting", "ConservativeSlowStart"]),
    // States of steady operation.
    (
        "#009E73",
        &["Wireless", "ProbeBW", "CongestionAvoidance", "Biscay", "Tracking", "Ledbat", "ProbeBW_CRUISE"],
    ),
    // Probes of a higher or lower rate.
    (
        "#0072B2",
        &[
            "Probing",
            "ProbeBW_UP",
            "DecisionMaking",
            "DecisionMode",
            "RateAdjusting",
            "Moving",
            "ProbeBW_REFILL",
        ],
    ),
    // Draining of the queue.
    ("#56B4E9", &["Drain", "ProbeBW_DOWN", "Biscay.Drain", "Slowdown", "Return", "Waiting"]),
    // Measurement of the round-trip time, and the states of schemes that have only one or two states.
    ("#CC79A7", &["ProbeRTT", "Wireless.ProbeRTT", "Default", "Sending", "Constant", "Idle"]),
    // Reaction to a loss, to competing flows that fill queues, or to a receiver with implausible reports.
    (
        "#000000",
        &["Recovery", "LossRecovery", "Competitive", "Competing", "Held.ProbeBW", "Held.ProbeRTT", "Check"],
    ),
    ("#332288", &["Internet.ProbeBW", "Internet.Startup", "Internet.Drain", "Internet.ProbeRTT"]),
    // Operation without the information that the scheme needs.
    (
        "#57606a",
        &[
            "Fallback",
            "Fallback.ProbeBW",
            "Fallback.Startup",
            "Fallback.Drain",
            "Fallback.ProbeRTT",
            "Unknown",
            "Blind",
        ],
    ),
];

/// Colour and pattern of a state in every figure of a page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct StateLook {
    state: String,
    colour: Shade,
    pattern: &'static str,
}

/// Returns colour and pattern of each of a page's states. All combinations differ. A state that is not in the table
/// gets an unused combination.
pub(super) fn looks<'a>(states: impl Iterator<Item = &'a str>) -> Vec<StateLook> {
    let mut looks: Vec<StateLook> = Vec::new();
    for state in states {
        if looks.iter().any(|look| look.state == state) {
            continue;
        }
        let (colour, pattern) = in_table(state).unwrap_or_else(|| free(&looks));
        looks.push(StateLook { state: state.to_owned(), colour: Shade::of(colour), pattern });
    }
    looks
}

fn in_table(state: &str) -> Option<(&'static str, &'static str)> {
    STATES.iter().find_map(|(colour, states)| {
        let place = states.iter().position(|known| *known == state)?;
        Some((*colour, PATTERNS[place]))
    })
}

/// The first combination of colour and pattern that neither the table nor the page uses. If all are used, the last
/// combination of the table.
fn free(taken: &[StateLook]) -> (&'static str, &'static str) {
    let all = STATES
        .iter()
        .flat_map(|(colour, states)| PATTERNS.iter().skip(states.len()).map(|pattern| (*colour, *pattern)));
    let is_taken = |colour: &str, pattern: &str| {
        taken.iter().any(|look| look.pattern == pattern && look.colour == Shade::of(colour))
    };
    let mut all = all.peekable();
    while let Some((colour, pattern)) = all.next() {
        if !is_taken(colour, pattern) || all.peek().is_none() {
            return (colour, pattern);
        }
    }
    unreachable!("the table leaves looks free")
}

#[cfg(test)]
mod tests {
    use super::super::colour::sight::SIGHTS;
    use super::*;

    #[test]
    fn no_two_states_look_alike() {
        let known = STATES.iter().flat_map(|(_, states)| states.iter().copied());
        let others = ["Hovering", "Landing", "Taxiing", "Boarding", "Waiting.ForGate"];
        let looks = looks(known.chain(others));
        assert!(looks.len() > 45, "{}", looks.len());
        for (index, one) in looks.iter().enumerate() {
            for other in &looks[..index] {
                assert!(
                    (&one.colour, one.pattern) != (&other.colour, other.pattern),
                    "{} and {} look alike",
                    one.state,
                    other.state
                );
            }
        }
        assert!(STATES.iter().all(|(_, states)| states.len() <= PATTERNS.len()));
    }

    #[test]
    fn kinds_of_states_are_told_apart_by_colour_blind_readers() {
        for sight in SIGHTS {
            for (index, (one, states)) in STATES.iter().enumerate() {
                for (other, others) in &STATES[..index] {
                    for theme in [|shade: Shade| shade.light, |shade: Shade| shade.dark] {
                        let distance = sight.distance(&theme(Shade::of(one)), &theme(Shade::of(other)));
                        assert!(
                            distance >= 0.04,
                            "{} and {} are {distance:.3} apart to {sight:?}",
                            states[0],
                            others[0]
                        );
                    }
                }
            }
        }
    }

    /// Reads the states from the source code of the schemes, so that a state missing in the table is detected.
    #[test]
    fn the_table_knows_every_state_that_a_scheme_names() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../cc/src");
        let mut found = 0;
        let mut folders = vec![folder];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("the sources of the schemes").flatten() {
                let path = entry.path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|ending| ending == "rs") && !path.ends_with("tests.rs")
                {
                    let text = std::fs::read_to_string(&path).expect("a source");
                    for state in states_in(text.split("#[cfg(test)]").next().unwrap_or_default()) {
                        assert!(
                            in_table(state).is_some(),
                            "{}: `{state}` has no look; give it one in STATES",
                            path.display()
                        );
                        found += 1;
                    }
                }
            }
        }
        assert!(found > 40, "only {found} states were found: do schemes still use `out.state = `?");
    }

    /// The string literals between each `out.state = ` and the end of the statement.
    fn states_in(source: &str) -> Vec<&str> {
        source
            .split("out.state = ")
            .skip(1)
            .flat_map(|rest| {
                let statement = rest.split(";\n").next().unwrap_or_default();
                statement.lines().filter_map(|line| {
                    // In a match arm, the literal after the last arrow is the state, and a literal before the arrow is a
                    // pattern.
                    let said = line.rsplit("=>").next()?;
                    said.split('"').nth(1)
                })
            })
            .collect()
    }
}
