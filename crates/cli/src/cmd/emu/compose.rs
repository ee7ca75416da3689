//! Composition of several forms (`delay`, `loss`, `link`, …) of `airpace emu` on one command line. Options belong to
//! the form before them; options before the name of the first form belong to the first form.
//!
//! In `airpace emu delay 20 loss up 0.01 -- ping HOST`, the form `delay` runs inside no other form, and the program that
//! it emulates is `airpace emu loss up 0.01 -- ping HOST`. This module finds the place where such an inner form starts.

use std::ffi::OsString;

use clap::{Arg, Command};

/// Option that separates a form from the inner form; hidden from help.
pub const INSIDE: &str = "inside";

/// Converts a command line for clap: the words after the outermost form's values and options become its program, after
/// `--inside --`. `command` is that of the whole program. A command line without composition is returned unchanged.
pub fn in_order(command: &Command, mut words: Vec<OsString>) -> Vec<OsString> {
    let [_, first, ..] = &words[..] else { return words };
    let Some(emu) = command.find_subcommand("emu").filter(|_| first == "emu") else { return words };
    let Some(name) = next_value(emu, &words, 2) else { return words };
    let Some(form) = words[name].to_str().and_then(|word| emu.find_subcommand(word)) else { return words };
    if !form.get_arguments().any(|argument| argument.get_id() == INSIDE) {
        return words;
    }
    // Move options that stand before the form's name behind the name.
    words[2..=name].rotate_right(1);
    let mut place = 3;
    for _ in form.get_positionals().filter(|argument| !argument.is_last_set()) {
        let Some(value) = next_value(form, &words, place) else { return words };
        place = value + 1;
    }
    if let Some(inner) = next_value(form, &words, place) {
        words.splice(inner..inner, [format!("--{INSIDE}"), "--".to_owned()].map(OsString::from));
    }
    words
}

/// Index of the first word at or after `place` that is neither an option nor the value of an option; `None` if the
/// program after `--` comes first.
fn next_value(command: &Command, words: &[OsString], mut place: usize) -> Option<usize> {
    loop {
        let word = words.get(place)?;
        match word.to_str() {
            Some("--") => return None,
            Some(option) if is_option(option) => place += 1 + usize::from(takes_next(command, option)),
            _ => return Some(place),
        }
    }
}

/// Whether a word is an option. A negative number is not an option.
fn is_option(word: &str) -> bool {
    word.starts_with('-') && word.len() > 1 && word.parse::<f64>().is_err()
}

/// Whether this option takes the next word as its value.
fn takes_next(command: &Command, option: &str) -> bool {
    let Some(name) = option.strip_prefix("--").filter(|name| !name.contains('=')) else { return false };
    let is_meant = |argument: &&Arg| {
        argument.get_long() == Some(name) || argument.get_all_aliases().is_some_and(|all| all.contains(&name))
    };
    command.get_arguments().find(is_meant).is_some_and(|argument| argument.get_action().takes_values())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn read(line: &str) -> String {
        let words = in_order(&crate::Cli::command(), line.split(' ').map(OsString::from).collect());
        words.join(std::ffi::OsStr::new(" ")).into_string().unwrap()
    }

    #[test]
    fn options_belong_to_the_form_before_them() {
        for (typed, read_as) in [
            (
                "airpace emu delay 20 link UP DOWN --downlink-queue droptail:packets=100 -- ping -c 3 HOST",
                "airpace emu delay 20 --inside -- link UP DOWN --downlink-queue droptail:packets=100 -- ping -c 3 HOST",
            ),
            (
                "airpace emu --out X loss up 0.01 delay 5 loss down 0.1",
                "airpace emu loss --out X up 0.01 --inside -- delay 5 loss down 0.1",
            ),
            (
                "airpace emu link UP --uplink-queue pie DOWN --quiet scenario.toml --seed=3",
                "airpace emu link UP --uplink-queue pie DOWN --quiet --inside -- scenario.toml --seed=3",
            ),
        ] {
            assert_eq!(read(typed), read_as);
            let words = read_as.split(' ');
            let parsed = crate::Cli::command().try_get_matches_from(words);
            assert!(parsed.is_ok(), "{read_as}: {}", parsed.unwrap_err());
        }
    }

    #[test]
    fn what_is_no_composition_stays_as_it_is() {
        for line in [
            "airpace",
            "airpace sim competitor --scheme pbe",
            "airpace emu delay 20 -- link UP DOWN",
            "airpace emu delay",
            "airpace emu delay -5",
            "airpace emu stationary-busy --out delay -- sh -c delay",
            "airpace emu stationary-busy delay 5",
            "airpace emu agree --out X wire.toml",
            "airpace emu",
        ] {
            assert_eq!(read(line), line);
        }
    }
}
