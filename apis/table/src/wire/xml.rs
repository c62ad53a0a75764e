//! A small reader and writer of XML: elements and texts, for service properties and access policies.
//!
//! Attributes, comments and declarations are skipped; document types are refused, so there are no entities but the five
//! of XML and characters by number.

/// Begins every document.
pub(crate) const DECLARATION: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>";

/// Most levels of elements.
const DEPTH_MAX: usize = 16;
/// Most elements of a document.
const ELEMENTS_MAX: usize = 1000;

/// An element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Element {
    pub(crate) name: String,
    pub(crate) children: Vec<Element>,
    /// Its own text, without that of its children.
    pub(crate) text: String,
}

impl Element {
    /// The first child with this name.
    pub(crate) fn child(&self, name: &str) -> Option<&Element> {
        self.children.iter().find(|child| child.name == name)
    }

    /// The trimmed text of the first child with this name.
    pub(crate) fn child_text(&self, name: &str) -> Option<&str> {
        self.child(name).map(|child| child.text.trim())
    }
}

/// Parses a document; `None` if it is malformed or too large.
pub(crate) fn parse(text: &str) -> Option<Element> {
    let text = text.trim_start_matches('\u{feff}');
    let mut reader = Reader { rest: text, elements: 0 };
    let mut stack: Vec<Element> = Vec::new();
    loop {
        match reader.next()? {
            Event::Open { name, is_closed } => {
                if stack.len() == DEPTH_MAX || reader.elements > ELEMENTS_MAX {
                    return None;
                }
                let element = Element { name: name.to_owned(), children: Vec::new(), text: String::new() };
                if !is_closed {
                    stack.push(element);
                    continue;
                }
                match stack.last_mut() {
                    Some(parent) => parent.children.push(element),
                    None => return reader.is_at_end().then_some(element),
                }
            }
            Event::Close { name } => {
                let element = stack.pop().filter(|element| element.name == name)?;
                match stack.last_mut() {
                    Some(parent) => parent.children.push(element),
                    None => return reader.is_at_end().then_some(element),
                }
            }
            Event::Text(text) => match stack.last_mut() {
                Some(element) => push_unescaped(text, &mut element.text)?,
                None if text.trim().is_empty() => {}
                None => return None,
            },
        }
    }
}

enum Event<'a> {
    Open { name: &'a str, is_closed: bool },
    Close { name: &'a str },
    Text(&'a str),
}

struct Reader<'a> {
    rest: &'a str,
    elements: usize,
}

impl<'a> Reader<'a> {
    /// The next event; `None` at the end or if it is malformed.
    fn next(&mut self) -> Option<Event<'a>> {
        loop {
            let Some(tag) = self.rest.strip_prefix('<') else {
                let end = self.rest.find('<').filter(|end| *end > 0)?;
                let (text, rest) = self.rest.split_at(end);
                self.rest = rest;
                return Some(Event::Text(text));
            };
            if let Some(comment) = tag.strip_prefix("!--") {
                self.rest = comment.split_once("-->")?.1;
            } else if let Some(declaration) = tag.strip_prefix('?') {
                self.rest = declaration.split_once("?>")?.1;
            } else if tag.starts_with('!') {
                return None;
            } else {
                return self.tag(tag);
            }
        }
    }

    fn tag(&mut self, tag: &'a str) -> Option<Event<'a>> {
        let (tag, rest) = tag.split_at(tag_end(tag)?);
        self.rest = rest.strip_prefix('>')?;
        if let Some(name) = tag.strip_prefix('/') {
            return local_name(name.trim_end()).map(|name| Event::Close { name });
        }
        let (tag, is_closed) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
        let name = tag.split(|character: char| character.is_ascii_whitespace()).next()?;
        self.elements += 1;
        local_name(name).map(|name| Event::Open { name, is_closed })
    }

    /// Whether only white space, comments and declarations follow.
    fn is_at_end(&mut self) -> bool {
        self.rest.trim().is_empty()
    }
}

/// The place of the bracket that ends a tag; brackets in quotes do not.
fn tag_end(tag: &str) -> Option<usize> {
    let mut quote = None;
    tag.bytes().position(|byte| {
        match (quote, byte) {
            (None, b'>') => return true,
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), byte) if open == byte => quote = None,
            (None | Some(_), _) => {}
        }
        false
    })
}

/// A name without its prefix.
fn local_name(name: &str) -> Option<&str> {
    let name = name.rsplit(':').next()?;
    let is_valid = !name.is_empty()
        && name.chars().all(|character| character.is_alphanumeric() || matches!(character, '_' | '-' | '.'));
    is_valid.then_some(name)
}

fn push_unescaped(text: &str, out: &mut String) -> Option<()> {
    let mut pieces = text.split('&');
    out.push_str(pieces.next()?);
    for piece in pieces {
        let (entity, rest) = piece.split_once(';')?;
        out.push(match entity {
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            "quot" => '"',
            "apos" => '\'',
            number => {
                let number = number.strip_prefix('#')?;
                let code = match number.strip_prefix('x') {
                    Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                    None => number.parse().ok()?,
                };
                char::from_u32(code)?
            }
        });
        out.push_str(rest);
    }
    Some(())
}

/// Appends a text.
pub(crate) fn push_text(text: &str, out: &mut String) {
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\n' | '\t' => out.push(character),
            control if control.is_control() => out.push(' '),
            other => out.push(other),
        }
    }
}

/// Appends an element with a text.
pub(crate) fn push_element(name: &str, text: &str, out: &mut String) {
    out.push_str(&format!("<{name}>"));
    push_text(text, out);
    out.push_str(&format!("</{name}>"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_and_texts_are_read() {
        let text = "\u{feff}<?xml version='1.0'?>\n<!-- c --><a x='>' y=\"/\"><b>1 &lt; &#50;&#x33;</b><n:c/><b></b></a>\n";
        let root = parse(text).unwrap();
        assert_eq!((root.name.as_str(), root.children.len()), ("a", 3));
        assert_eq!(root.child_text("b"), Some("1 < 23"));
        assert_eq!(root.child("c").map(|child| child.children.len()), Some(0));
    }

    #[test]
    fn malformed_documents_are_refused() {
        for text in [
            "",
            "x",
            "<a>",
            "<a></b>",
            "<a/><b/>",
            "<a>&x;</a>",
            "<a>&lt</a>",
            "<!DOCTYPE a><a/>",
            "<a",
            "<a>&#xD800;</a>",
            "</a>",
            "<>x</>",
            "<a/>x",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
        let nested = |depth: usize| "<a>".repeat(depth) + &"</a>".repeat(depth);
        assert!(parse(&nested(16)).is_some() && parse(&nested(17)).is_none());
        let wide = |count: usize| format!("<r>{}</r>", "<a/>".repeat(count));
        assert!(parse(&wide(999)).is_some() && parse(&wide(1000)).is_none());
    }

    #[test]
    fn texts_are_escaped() {
        let mut out = String::new();
        push_element("a", "<&>\"\u{1}", &mut out);
        assert_eq!(out, "<a>&lt;&amp;&gt;\" </a>");
    }
}
