//! The existing name that a user may have meant by a wrong one.

/// The name in `known` that is most like `wrong`; `None` if none is like it. Upper and lower case are the same.
///
/// Chosen: one typing error, and one more for every three letters; or `wrong` has at least two letters and is the
/// beginning of the name. Of equally similar names, the first in the alphabet is taken.
pub fn nearest<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wrong = wrong.to_lowercase();
    let distance = |known: &str| strsim::damerau_levenshtein(&wrong, &known.to_lowercase());
    let slips = |known: &str| 1 + known.chars().count().max(wrong.chars().count()) / 3;
    let is_begun = |known: &str| wrong.chars().count() >= 2 && known.to_lowercase().starts_with(&wrong);
    let like = known.into_iter().filter(|known| distance(known) <= slips(known) || is_begun(known));
    like.min_by_key(|known| (distance(known), *known))
}

/// The end of an error message about `wrong`: the name that was probably meant, if there is one, and all names, after
/// `words` such as `there are`.
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
