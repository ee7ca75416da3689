//! Parses a page of the guide: the reader's input, and the output on the page.
//!
//! A block between fences is `sh` (commands), `console` (commands after `$ `, each with its output), `python`, or a
//! block that is only for reading. A comment on the lines before the fence marks special blocks:
//!
//! ```text
//! <!-- not run: REASON -->       nobody can run it in a test: it needs a modem, a radio, root
//! <!-- slow: REASON -->          only docs/try runs it
//! <!-- needs: jq python:pandas -->   programs, and modules of Python; skipped where one is missing
//! <!-- exit 1: REASON -->        it ends with this code (`sh` of one command, `console`)
//! <!-- file: NAME -->            the reader keeps the block under this name
//! <!-- output -->                this is what the block before prints
//! ```
//!
//! A page with `<!-- in a checkout -->` is followed in a checkout; other pages can be followed anywhere.

/// A page of Markdown.
#[derive(Debug, PartialEq, Eq)]
pub struct Page {
    /// Path of the page in the repository.
    pub path: String,
    /// Whether the page is for a reader who has a checkout.
    pub is_in_checkout: bool,
    /// Blocks of the page, from top to bottom.
    pub blocks: Vec<Block>,
}

/// A block that is run, or kept as a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// Line of the fence, from 1.
    pub line: usize,
    pub kind: Kind,
    /// Reason why the block is never run.
    pub not_run: Option<String>,
    /// Reason why only `docs/try` runs the block.
    pub slow: Option<String>,
    /// Programs and Python modules that the block needs.
    pub needs: Vec<String>,
    /// Exit code of the block's commands.
    pub exit: i32,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Kind {
    /// Commands, each with its output if the page shows it.
    Commands(Vec<Typed>),
    Python(Typed),
    /// A file: name and contents.
    File(String, String),
}

impl Default for Kind {
    fn default() -> Kind {
        Kind::Commands(vec![])
    }
}

/// The reader's input, and the output on the page.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Typed {
    pub text: String,
    pub output: Option<Output>,
}

/// Output on the page.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// First line of the output in the page, from 1.
    pub line: usize,
    pub text: String,
}

/// Languages of blocks that are only for reading.
const READ_ONLY: [&str; 5] = ["text", "toml", "rust", "json", "c"];

impl Page {
    /// Parses a page.
    ///
    /// # Errors
    /// A fence without a language, or an unknown mark. The message contains the position.
    pub fn read(path: &str, text: &str) -> Result<Page, String> {
        let mut page = Page { path: path.to_owned(), is_in_checkout: false, blocks: vec![] };
        let mut marks: Vec<(usize, &str)> = vec![];
        let mut lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
        while let Some((number, line)) = lines.next() {
            let at = |what: &str| format!("{path}:{number}: {what}");
            if let Some(mark) = line.strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix(" -->")) {
                match mark {
                    "in a checkout" => page.is_in_checkout = true,
                    mark => marks.push((number, mark)),
                }
                continue;
            }
            let Some(language) = line.trim_start().strip_prefix("```") else {
                if let Some((number, mark)) = marks.first() {
                    return Err(format!("{path}:{number}: `{mark}` stands before no block"));
                }
                continue;
            };
            let indent = line.len() - line.trim_start().len();
            let mut inside = vec![];
            loop {
                match lines.next() {
                    None => return Err(at("the block has no end")),
                    Some((_, line)) if line.trim() == "```" => break,
                    Some((_, line)) => inside.push(line.get(indent..).unwrap_or_default()),
                }
            }
            page.add(number, language, &inside, &std::mem::take(&mut marks)).map_err(|what| at(&what))?;
        }
        Ok(page)
    }

    fn add(
        &mut self,
        line: usize,
        language: &str,
        inside: &[&str],
        marks: &[(usize, &str)],
    ) -> Result<(), String> {
        let mut block = Block { line, ..Block::default() };
        let (mut file, mut is_output) = (None, false);
        for (_, mark) in marks {
            match mark.split_once(": ").unwrap_or((mark, "")) {
                ("not run", why) if !why.is_empty() => block.not_run = Some(why.to_owned()),
                ("slow", why) if !why.is_empty() => block.slow = Some(why.to_owned()),
                ("needs", what) => block.needs = what.split_whitespace().map(str::to_owned).collect(),
                ("file", name) if !name.is_empty() => file = Some(name.to_owned()),
                ("output", "") => is_output = true,
                (exit, why) if exit.starts_with("exit ") && !why.is_empty() => {
                    block.exit = exit[5..].parse().map_err(|_| format!("`{mark}` has no exit code"))?;
                }
                _ => return Err(format!("`{mark}` is no mark that has a meaning, or lacks its reason")),
            }
        }
        let text = inside.iter().map(|line| format!("{line}\n")).collect::<String>();
        block.kind = match language {
            _ if file.is_some() => Kind::File(file.unwrap_or_default(), text),
            "sh" => Kind::Commands(vec![Typed { text, output: None }]),
            "console" => Kind::Commands(console(line, inside)?),
            "python" => Kind::Python(Typed { text, output: None }),
            "text" if is_output => {
                let output = Some(Output { line: line + 1, text });
                let typed = match self.blocks.last_mut().map(|block| &mut block.kind) {
                    Some(Kind::Commands(typed)) => typed.last_mut(),
                    Some(Kind::Python(typed)) => Some(typed),
                    _ => None,
                };
                typed.ok_or("no block before it could have this output")?.output = output;
                return Ok(());
            }
            language if READ_ONLY.contains(&language) => return Ok(()),
            "" => return Err("say after the fence what the block is: sh, console, text …".to_owned()),
            other => return Err(format!("`{other}` is no language of a block: sh, console, text …")),
        };
        self.blocks.push(block);
        Ok(())
    }
}

/// The commands of a `console` block, with their outputs.
fn console(fence: usize, inside: &[&str]) -> Result<Vec<Typed>, String> {
    let mut all: Vec<Typed> = vec![];
    let mut goes_on = false;
    for (index, line) in inside.iter().enumerate() {
        let number = fence + 1 + index;
        if let Some(command) = line.strip_prefix("$ ") {
            let output = Some(Output { line: number + 1, text: String::new() });
            all.push(Typed { text: format!("{command}\n"), output });
            goes_on = command.ends_with('\\');
            continue;
        }
        let Some(Typed { text, output: Some(output) }) = all.last_mut() else {
            return Err("a console block begins with `$ ` and a command".to_owned());
        };
        if goes_on {
            *text += &format!("{line}\n");
            output.line = number + 1;
            goes_on = line.ends_with('\\');
        } else {
            output.text += &format!("{line}\n");
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Page, String> {
        Page::read("page.md", text)
    }

    #[test]
    fn blocks_come_with_what_is_said_of_them() {
        let page = read(concat!(
            "# Page\n<!-- in a checkout -->\n\n```sh\none\ntwo\n```\n\n",
            "<!-- not run: needs a modem -->\n```sh\nthree\n```\n",
            "<!-- needs: jq python:pandas -->\n<!-- slow: a minute -->\n```console\n$ four \\\n   --more\nsaid\n$ five\n```\n",
            "```text\nlooked at\n```\n<!-- file: a.toml -->\n```toml\nkey = 1\n```\n",
            "  ```python\n  if six:\n      seven\n  ```\n<!-- output -->\n```text\neight\n```\n",
        ))
        .unwrap();
        assert!(page.is_in_checkout);
        let [first, second, third, file, python] = &page.blocks[..] else { panic!("{page:?}") };
        assert_eq!((first.line, &first.not_run, first.exit), (4, &None, 0));
        let typed = |text: &str, output: Option<(usize, &str)>| Typed {
            text: text.to_owned(),
            output: output.map(|(line, text)| Output { line, text: text.to_owned() }),
        };
        assert_eq!(first.kind, Kind::Commands(vec![typed("one\ntwo\n", None)]));
        assert_eq!(second.not_run.as_deref(), Some("needs a modem"));
        assert_eq!(
            (&third.needs[..], third.slow.as_deref()),
            (&["jq".to_owned(), "python:pandas".to_owned()][..], Some("a minute"))
        );
        let commands =
            vec![typed("four \\\n   --more\n", Some((18, "said\n"))), typed("five\n", Some((20, "")))];
        assert_eq!(third.kind, Kind::Commands(commands));
        assert_eq!(file.kind, Kind::File("a.toml".to_owned(), "key = 1\n".to_owned()));
        assert_eq!(python.kind, Kind::Python(typed("if six:\n    seven\n", Some((34, "eight\n")))));
    }

    #[test]
    fn what_could_be_passed_over_unseen_is_refused() {
        for (text, said) in [
            ("```\nls\n```\n", "page.md:1: say after the fence"),
            ("```bash\nls\n```\n", "`bash` is no language"),
            (
                "\n<!-- not run: because -->\n\n```sh\nls\n```\n",
                "page.md:2: `not run: because` stands before no block",
            ),
            ("<!-- not run -->\n```sh\nls\n```\n", "lacks its reason"),
            ("<!-- slwo: because -->\n```sh\nls\n```\n", "no mark that has a meaning"),
            ("```sh\nls\n", "page.md:1: the block has no end"),
            ("```console\nls\n```\n", "begins with `$ `"),
            ("<!-- output -->\n```text\nls\n```\n", "no block before it"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(said), "{text} says `{said}`, but said: {error}");
        }
    }
}
