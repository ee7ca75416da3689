//! Suggestions for misspelt names.

/// Returns the name in `known` that is most similar to `wrong`; `None` if no name is similar. The comparison ignores
/// case.
///
/// Chosen: a name is similar if it differs from `wrong` by at most one typing error plus one per three letters, or if
/// `wrong` has at least two letters and is a prefix of the name. Of equally similar names, the first in alphabetical
/// order is returned.
pub fn nearest<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wrong = wrong.to_lowercase();
    let distance = |known: &str| strsim::damerau_levenshtein(&wrong, &known.to_lowercase());
    let slips = |known: &str| 1 + known.chars().count().max(wrong.chars().count()) / 3;
    let is_begun = |known: &str| wrong.chars().count() >= 2 && known.to_lowercase().starts_with(&wrong);
    let like = known.into_iter().filter(|known| distance(known) <= slips(known) || is_begun(known));
    like.min_by_key(|known| (distance(known), *known))
}

/// Formats the last part of an error message about `wrong`: the most similar name, if there is one, and then all names.
/// `words` introduces the list of names, for example `there are`.
pub fn instead(wrong: &str, known: &[&str], words: &str) -> String {
    let all = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    match nearest(wrong, known.iter().copied()) {
        Some(meant) => {
            let (first, rest) = words.split_at(words.chars().next().map_or(0, char::len_utf8));
            format!("; did you mean `{meant}`? {}{rest} {all}", first.to_uppercase())
        }
        None => format!("; {words} {all}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMES: [&str; 6] = ["pbe", "biscay", "bbr", "bbr3", "cubic", "vivace"];

    #[test]
    fn slips_of_the_finger_are_understood_and_other_words_are_not() {
        let meant = |wrong: &str| nearest(wrong, SCHEMES);
        assert_eq!(meant("cubci"), Some("cubic"), "two letters have changed places");
        assert_eq!(meant("bbrr"), Some("bbr"));
        assert_eq!(meant("BBR3"), Some("bbr3"), "capitals");
        assert_eq!(meant("PBE-CC"), Some("pbe"));
        assert_eq!(meant("biscuit"), Some("biscay"));
        assert_eq!(meant("quic"), Some("cubic"));
        assert_eq!(meant("westwood"), None);
        assert_eq!(meant("viv"), Some("vivace"), "the name begins with it");
        assert_eq!(
            nearest("rtt", ["app", "rtt_ms"]),
            Some("rtt_ms"),
            "`app` is equally far away, and too far for three letters"
        );
        assert_eq!(nearest("anything", []), None);
        assert_eq!(
            instead("vivacce", &["vivace", "bbr"], "there are"),
            "; did you mean `vivace`? There are vivace, bbr"
        );
        assert_eq!(instead("westwood", &["vivace", "bbr"], "there are"), "; there are vivace, bbr");
        assert_eq!(instead("westwood", &[], "it has:"), "; it has: none");
    }
}
