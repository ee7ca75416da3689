//! Commands that users can paste into a shell.

/// The command that runs a scenario, with the options that affect the results and differ from their defaults.
pub fn sim(
    program: &str,
    scenario: &str,
    schemes: &[String],
    seeds: &[u64],
    set: &[(String, String)],
) -> String {
    let mut words = vec![program.to_owned(), "sim".to_owned(), scenario.to_owned()];
    if !schemes.is_empty() {
        words.extend(["--scheme".to_owned(), schemes.join(",")]);
    }
    words.extend(["--seeds".to_owned(), seeds_text(seeds)]);
    for (key, value) in set {
        words.extend(["--set".to_owned(), format!("{key}={value}")]);
    }
    join(&words)
}

/// Joins commands with `&&`, without consecutive duplicates.
pub fn one_after_another(commands: impl IntoIterator<Item = String>) -> String {
    let mut commands: Vec<String> = commands.into_iter().collect();
    commands.dedup();
    commands.join(" && ")
}

/// Joins words to a command line. Words that a shell would split are quoted.
pub fn join(words: &[String]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| quote(word)).collect();
    quoted.join(" ")
}

/// `1..5` for consecutive seeds, otherwise `1,3,9`.
pub fn seeds_text(seeds: &[u64]) -> String {
    match seeds {
        [only] => only.to_string(),
        [first, .., last] if seeds.windows(2).all(|pair| pair[0].checked_add(1) == Some(pair[1])) => {
            format!("{first}..{last}")
        }
        _ => seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(","),
    }
}

/// Quotes a word if a shell would split it.
pub fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_can_be_pasted() {
        let set = [("trace".to_owned(), "my trace's.up".to_owned())];
        assert_eq!(
            sim("./airpace", "cell.toml", &["pbe".to_owned(), "bbr".to_owned()], &[1, 2, 3], &set),
            r"./airpace sim cell.toml --scheme pbe,bbr --seeds 1..3 --set 'trace=my trace'\''s.up'"
        );
        assert_eq!(sim("airpace", "trace", &[], &[4, 9], &[]), "airpace sim trace --seeds 4,9");
    }
}
