//! Checks of SVG text: well-formed XML, short numbers, coordinates inside the `viewBox`.

/// An element with its attributes.
#[derive(Debug)]
pub struct Element {
    pub name: String,
    pub attributes: Vec<(String, String)>,
    /// Whether the element is below `defs`, where coordinates are those of a pattern.
    pub is_definition: bool,
}

impl Element {
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|attribute| attribute.0 == name).map(|attribute| attribute.1.as_str())
    }

    fn number(&self, name: &str) -> f64 {
        self.attribute(name).map_or(0.0, |value| value.parse().unwrap_or_else(|_| panic!("{self:?}: {name}")))
    }
}

/// The elements of an XML text, in order.
///
/// # Panics
/// If the text is not well-formed. The rules are those of XML 1.0 as far as this crate uses it: no comments, no processing
/// instructions, and no other entities than `&amp;`, `&lt;`, `&gt;` and `&quot;`.
pub fn elements(xml: &str) -> Vec<Element> {
    let mut elements = Vec::new();
    let mut open: Vec<String> = Vec::new();
    let mut rest = xml.trim_end();
    while !rest.is_empty() {
        let Some(tag) = rest.strip_prefix('<') else {
            let end = rest.find('<').unwrap_or_else(|| panic!("text after the last element: {rest}"));
            assert!(!open.is_empty(), "text outside of elements: {}", &rest[..end]);
            check_text(&rest[..end]);
            rest = &rest[end..];
            continue;
        };
        let end = tag.find('>').unwrap_or_else(|| panic!("an unfinished tag: {rest}"));
        let (tag, after) = (&tag[..end], &tag[end + 1..]);
        rest = after;
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "elements are closed in order");
            continue;
        }
        let is_empty = tag.ends_with('/');
        let element = element(tag.trim_end_matches('/'), open.iter().any(|name| name == "defs"));
        if !is_empty {
            open.push(element.name.clone());
        }
        elements.push(element);
    }
    assert!(open.is_empty(), "elements without an end: {open:?}");
    elements
}

fn element(tag: &str, is_definition: bool) -> Element {
    let (name, mut rest) = tag.split_once(' ').unwrap_or((tag, ""));
    assert!(!name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric()), "<{tag}>");
    let mut attributes: Vec<(String, String)> = Vec::new();
    while !rest.trim_start().is_empty() {
        let (name, after) = rest.trim_start().split_once("=\"").unwrap_or_else(|| panic!("<{tag}>"));
        let (value, after) = after.split_once('"').unwrap_or_else(|| panic!("<{tag}>"));
        assert!(
            name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-'),
            "{name} in <{tag}>"
        );
        assert!(attributes.iter().all(|other| other.0 != name), "two attributes {name} in <{tag}>");
        assert!(after.is_empty() || after.starts_with(' '), "<{tag}>");
        check_text(value);
        attributes.push((name.to_owned(), value.to_owned()));
        rest = after;
    }
    Element { name: name.to_owned(), attributes, is_definition }
}

fn check_text(text: &str) {
    assert!(
        text.chars()
            .all(|letter| letter >= ' ' && letter != '\u{fffe}' && letter != '\u{ffff}' || letter == '\n')
    );
    assert!(!text.contains('>'), "{text}");
    for (at, _) in text.match_indices('&') {
        let is_entity =
            ["&amp;", "&lt;", "&gt;", "&quot;"].iter().any(|entity| text[at..].starts_with(entity));
        assert!(is_entity, "{text}");
    }
}

/// Checks the elements of an SVG: all numbers of attributes are finite and have at most two decimals, and all points are
/// inside the `viewBox`.
pub fn check(svg: &str) -> Vec<Element> {
    let elements = elements(svg);
    let view: Vec<f64> = numbers(elements[0].attribute("viewBox").expect("the root has a viewBox"));
    let [left, top, width, height] = view[..] else { panic!("{view:?}") };
    for element in &elements {
        for (name, value) in &element.attributes {
            if !["id", "aria-labelledby", "xmlns"].contains(&name.as_str()) {
                check_numbers(value);
            }
        }
        for (x, y) in points(element) {
            let is_inside = (left - 0.1..=left + width + 0.1).contains(&x)
                && (top - 0.1..=top + height + 0.1).contains(&y);
            assert!(is_inside || element.is_definition, "({x}, {y}) is outside of {view:?}: {element:?}");
        }
    }
    elements
}

fn check_numbers(value: &str) {
    for number in value.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '.') {
        assert!(!["NaN", "nan", "inf", "infinity"].contains(&number), "{value}");
        let decimals = number.split_once('.').map_or("", |parts| parts.1);
        let digits = decimals.chars().take_while(char::is_ascii_digit).count();
        assert!(digits <= 2, "more than two decimals: {value}");
    }
}

fn numbers(text: &str) -> Vec<f64> {
    text.split_whitespace().map(|number| number.parse().unwrap_or_else(|_| panic!("{text}"))).collect()
}

/// The points that an element names.
fn points(element: &Element) -> Vec<(f64, f64)> {
    let at = |x: &str, y: &str| (element.number(x), element.number(y));
    match element.name.as_str() {
        "text" => vec![at("x", "y")],
        "line" => vec![at("x1", "y1"), at("x2", "y2")],
        "rect" => {
            let (corner, size) = (at("x", "y"), at("width", "height"));
            assert!(size.0 >= 0.0 && size.1 >= 0.0, "{element:?}");
            vec![corner, (corner.0 + size.0, corner.1 + size.1)]
        }
        "path" => path_points(element.attribute("d").expect("a path has points")),
        _ => Vec::new(),
    }
}

/// Ends of the steps of a path of absolute `M`, `L`, `A` and `Z`; `H` and `V` occur in patterns only.
fn path_points(d: &str) -> Vec<(f64, f64)> {
    let starts: Vec<usize> =
        d.char_indices().filter(|(_, letter)| letter.is_ascii_alphabetic()).map(|(at, _)| at).collect();
    assert_eq!(starts.first(), Some(&0), "{d}");
    let mut points = Vec::new();
    for (index, start) in starts.iter().enumerate() {
        let end = starts.get(index + 1).copied().unwrap_or(d.len());
        let values = numbers(&d[start + 1..end]);
        match (&d[*start..=*start], &values[..]) {
            ("M" | "L", [x, y]) | ("A", [_, _, _, _, _, x, y]) => points.push((*x, *y)),
            ("H" | "V", [_]) | ("Z", []) => {}
            step => panic!("{step:?} in {d}"),
        }
    }
    points
}
