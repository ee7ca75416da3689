//! Comparison of a command's output with the output on the page.

/// Placeholder: within a line it matches any text, alone on a line any number of lines.
const ANYTHING: char = '…';

/// Compares the output on the page with the real output. Spaces at line ends are ignored.
///
/// # Errors
/// A message with the first line that differs.
pub fn compare(page: &str, came: &str) -> Result<(), String> {
    let said: Vec<&str> = page.lines().map(str::trim_end).collect();
    let came: Vec<&str> = came.lines().map(str::trim_end).collect();
    // The furthest position that matches; the error shows its lines.
    let mut furthest = (0, 0);
    if lines_match(&said, &came, (0, 0), &mut furthest) {
        return Ok(());
    }
    let (line, at) = furthest;
    let wanted = said.get(line).map_or("nothing more", |line| line);
    let found = came.get(at).map_or("nothing more", |line| line);
    Err(format!("the page says   {wanted}\n    but there came  {found}"))
}

/// Whether the page contains the output word for word, without placeholders, so that new output can replace it.
pub fn is_literal(page: &str) -> bool {
    !page.contains(ANYTHING)
}

fn lines_match(said: &[&str], came: &[&str], at: (usize, usize), furthest: &mut (usize, usize)) -> bool {
    *furthest = (*furthest).max(at);
    match (said.first(), came.first()) {
        (None, None) => true,
        (Some(line), _) if line.trim() == "…" => (0..=came.len())
            .any(|more| lines_match(&said[1..], &came[more..], (at.0 + 1, at.1 + more), furthest)),
        (Some(line), Some(other)) if line_matches(line, other) => {
            lines_match(&said[1..], &came[1..], (at.0 + 1, at.1 + 1), furthest)
        }
        _ => false,
    }
}

fn line_matches(said: &str, came: &str) -> bool {
    let mut parts = said.split(ANYTHING);
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = came.strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ellipsis_stands_for_anything_and_nothing_else_does() {
        let came = "scheme  Mbit/s\npbe       45.1\nbbr       42.9  \n\nRun folder: runs/a-001\n";
        for page in [
            came,
            "scheme  Mbit/s\npbe       45.1\n…\n",
            "…\nRun folder: …\n",
            "…\nbbr …2.9\n\nRun … runs/…-001\n…\n",
        ] {
            assert_eq!(compare(page, came), Ok(()), "{page}");
        }
        for (page, wanted, found) in [
            ("scheme  Mbit/s\npbe       45.2\n…\n", "pbe       45.2", "pbe       45.1"),
            ("…\nbbr …3.9\n…\n", "bbr …3.9", "nothing more"),
            ("…\nbbr       42.9\n", "nothing more", ""),
            ("…\nRun folder: runs/a-001\nmore\n", "more", "nothing more"),
        ] {
            let error = compare(page, came).unwrap_err();
            assert!(
                error.contains(&format!("says   {wanted}")) && error.contains(&format!("came  {found}")),
                "{error}"
            );
        }
    }
}
