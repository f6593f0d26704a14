//! HTML as Markdown and as plain text, with bounds on what a page may cost.

use std::io;
use std::rc::Rc;

use agent_core::Cancel;
use htmd::HtmlToMarkdown;
use htmd::options::{BulletListMarker, HrStyle, Options};
use html5ever::ParseOpts;
use html5ever::driver::parse_document;
use html5ever::tendril::{StrTendril, TendrilSink};
use html5ever::tree_builder::TreeBuilderOpts;
use markup5ever_rcdom::{Node, NodeData};
use url::Url;

use super::sink::Bounded;

/// How a page is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Markdown,
    Text,
}

/// A page as it is shown.
#[derive(Debug)]
pub(super) struct Converted {
    /// Empty where the page names none.
    pub(super) title: String,
    pub(super) text: String,
    /// Whether parsing stopped, because the page would have cost too much.
    pub(super) is_cut: bool,
}

/// Converts on a thread of its own, whose stack holds what the deepest page that is let through needs.
pub(super) fn convert(html: String, base: Url, form: Form, told: &Cancel) -> io::Result<Converted> {
    let told = told.clone();
    let work = move || {
        let without_navigation = write(&html, &base, form, &told, &[ALWAYS_NOISE, NAVIGATION].concat());
        if !without_navigation.text.is_empty() {
            return without_navigation;
        }
        // A page of nothing but navigation is a list of links, and those are what it is read for.
        write(&html, &base, form, &told, ALWAYS_NOISE)
    };
    let thread = std::thread::Builder::new().name("web_fetch".to_owned()).stack_size(STACK).spawn(work)?;
    thread.join().map_err(|_| io::Error::other("the parser failed"))
}

fn write(html: &str, base: &Url, form: Form, told: &Cancel, noise: &[&str]) -> Converted {
    let (document, is_cut) = parse(html, told);
    let title = prune(&document, base, noise);
    let body = match form {
        Form::Markdown => markdown(&document),
        Form::Text => text_of(&document),
    };
    Converted { title: title.unwrap_or_default(), text: tidy(&body), is_cut }
}

/// Fed in small pieces, so that it can be stopped before one of them costs too much.
fn parse(html: &str, told: &Cancel) -> (Rc<Node>, bool) {
    let tree_builder = TreeBuilderOpts { scripting_enabled: false, ..TreeBuilderOpts::default() };
    let options = ParseOpts { tree_builder, ..ParseOpts::default() };
    let (sink, bounds) = Bounded::new();
    let mut parser = parse_document(sink, options);
    let (mut rest, mut is_cut) = (html, false);
    while !rest.is_empty() {
        let (piece, behind) = rest.split_at(agent_core::ceil_boundary(rest, PIECE.min(rest.len())));
        parser.process(StrTendril::from(piece));
        rest = behind;
        if bounds.are_passed() || told.is_cancelled() {
            is_cut = !rest.is_empty();
            break;
        }
    }
    (parser.finish(), is_cut)
}

fn markdown(document: &Rc<Node>) -> String {
    let options = Options {
        bullet_list_marker: BulletListMarker::Dash,
        ul_bullet_spacing: 1,
        ol_number_spacing: 1,
        hr_style: HrStyle::Dashes,
        ..Options::default()
    };
    HtmlToMarkdown::builder().options(options).scripting_enabled(false).build().tree_to_markdown(document)
}

/// Takes out what nobody reads, makes links whole, and gives the title.
fn prune(document: &Rc<Node>, base: &Url, noise: &[&str]) -> Option<String> {
    let mut title = None;
    let mut open = vec![Rc::clone(document)];
    while let Some(node) = open.pop() {
        if name_of(&node) == Some("title") && title.is_none() {
            title = Some(collapse(&text_of(&node)));
        }
        complete_links(&node, base);
        let is_kept = |child: &Rc<Node>| match name_of(child) {
            Some(name) => !noise.contains(&name),
            None => !matches!(child.data, NodeData::Comment { .. } | NodeData::ProcessingInstruction { .. }),
        };
        node.children.borrow_mut().retain(is_kept);
        open.extend(node.children.borrow().iter().rev().cloned());
        if name_of(&node) == Some("head") {
            node.children.borrow_mut().clear();
        }
    }
    title
}

fn complete_links(node: &Node, base: &Url) {
    let NodeData::Element { attrs, .. } = &node.data else { return };
    attrs.borrow_mut().retain_mut(|attribute| {
        if !matches!(&*attribute.name.local, "href" | "src") {
            return true;
        }
        let whole = base.join(&attribute.value).ok();
        // The rest runs programs or holds whole pictures.
        let whole = whole.filter(|url| matches!(url.scheme(), "http" | "https" | "mailto"));
        if let Some(url) = &whole {
            attribute.value = StrTendril::from(url.as_str());
        }
        whole.is_some()
    });
}

fn name_of(node: &Node) -> Option<&str> {
    match &node.data {
        NodeData::Element { name, .. } => Some(&name.local),
        NodeData::Document
        | NodeData::Doctype { .. }
        | NodeData::Text { .. }
        | NodeData::Comment { .. }
        | NodeData::ProcessingInstruction { .. } => None,
    }
}

/// One step of a walk.
enum Walk {
    Enter(Rc<Node>, bool),
    Break,
}

/// The words alone: blocks on lines of their own, space as a browser shows it.
fn text_of(top: &Rc<Node>) -> String {
    let mut out = String::new();
    let mut open = vec![Walk::Enter(Rc::clone(top), false)];
    while let Some(step) = open.pop() {
        let Walk::Enter(node, is_pre) = step else {
            end_line(&mut out);
            continue;
        };
        if let NodeData::Text { contents } = &node.data {
            push_text(&mut out, &contents.borrow(), is_pre);
        }
        let name = name_of(&node).unwrap_or_default();
        match name {
            "br" => out.push('\n'),
            "td" | "th" if !out.ends_with(['\n', '\t']) => out.push('\t'),
            _ => {}
        }
        if BLOCKS.contains(&name) {
            end_line(&mut out);
            open.push(Walk::Break);
        }
        let is_pre = is_pre || matches!(name, "pre" | "textarea");
        open.extend(node.children.borrow().iter().rev().map(|child| Walk::Enter(Rc::clone(child), is_pre)));
    }
    out
}

fn push_text(out: &mut String, text: &str, is_pre: bool) {
    if is_pre {
        out.push_str(text);
        return;
    }
    for c in text.chars() {
        if !c.is_ascii_whitespace() {
            out.push(c);
        } else if !out.is_empty() && !out.ends_with([' ', '\n', '\t']) {
            out.push(' ');
        }
    }
}

fn end_line(out: &mut String) {
    out.truncate(out.trim_end_matches([' ', '\t']).len());
    if !out.is_empty() && !out.ends_with('\n') {
        out.push('\n');
    }
}

fn collapse(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Without blank lines in a row, and without space around.
fn tidy(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut blank = 0;
    for line in text.trim().lines() {
        blank = if line.trim().is_empty() { blank + 1 } else { 0 };
        if blank < 2 {
            out.push_str(if blank == 1 { "" } else { line });
            out.push('\n');
        }
    }
    out.truncate(out.trim_end().len());
    out
}

/// Never words of the page.
const ALWAYS_NOISE: &[&str] = &[
    "script", "style", "template", "svg", "canvas", "iframe", "object", "embed", "audio", "video", "button",
    "input", "select", "dialog", "link", "meta",
];
/// What stands around the words.
const NAVIGATION: &[&str] = &["nav", "footer"];

const BLOCKS: [&str; 36] = [
    "address",
    "article",
    "aside",
    "blockquote",
    "body",
    "caption",
    "dd",
    "details",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hr",
    "li",
    "main",
    "nav",
    "ol",
    "p",
    "pre",
    "section",
    "summary",
    "table",
    "title",
    "tr",
    "ul",
];

/// Bytes that are parsed between two looks at what it costs.
const PIECE: usize = 512;
/// Enough for the deepest tree that [`Bounded`] and one more piece let through.
const STACK: usize = 64 * 1024 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn show(html: &str, form: Form) -> String {
        let base = Url::parse("https://host.example/docs/page").unwrap();
        let page = convert(html.to_owned(), base, form, &Cancel::new()).unwrap();
        if page.title.is_empty() { page.text } else { format!("{}\n\n{}", page.title, page.text) }
    }

    const PAGE: &str = r##"<!doctype html><html><head><title> The
        title </title><style>p { color: red }</style><script>run()</script></head><body>
        <nav><a href="/">Home</a></nav>
        <h1>Knots</h1><p>A <b>bowline</b> holds;  see <a href="../hitch?a=1#x">the hitch</a>
        and <a href="javascript:run()">more</a>.<br>Next.</p>
        <ul><li>one<li>two <code>rope -x</code></ul>
        <ol start=3><li>three</ol>
        <pre><code class="language-sh">tie   a
  knot</code></pre>
        <table><tr><th>Name<th>Use<tr><td>Bowline<td>Loop</table>
        <img src="data:image/png;base64,AAAA" alt="a picture"><img src="k.png" alt="a knot">
        <noscript>Words for readers</noscript>
        <blockquote>Said &amp; done &lt;b&gt;</blockquote><!-- nothing --><button>Buy</button>
        <footer>Imprint</footer></body></html>"##;

    #[test]
    fn markdown_of_a_page() {
        insta::assert_snapshot!(show(PAGE, Form::Markdown), @r"
        The title

        # Knots

        A **bowline** holds; see [the hitch](https://host.example/hitch?a=1#x) and more.  
        Next.

        - one
        - two `rope -x`

        3. three

        ```sh
        tie   a
          knot
        ```

        | Name    | Use  |
        | ------- | ---- |
        | Bowline | Loop |

        ![a knot](https://host.example/docs/k.png) Words for readers

        > Said & done \<b>
        ");
    }

    #[test]
    fn text_of_a_page() {
        insta::assert_snapshot!(show(PAGE, Form::Text), @"
        The title

        Knots
        A bowline holds; see the hitch and more.
        Next.
        one
        two rope -x
        three
        tie   a
          knot
        Name	Use
        Bowline	Loop
        Words for readers
        Said & done <b>
        ");
    }

    #[test]
    fn a_page_of_links_alone_is_shown() {
        let links = "<nav><a href='/a'>A</a> <a href='b'>B</a></nav>";
        assert_eq!(
            show(links, Form::Markdown),
            "[A](https://host.example/a) [B](https://host.example/docs/b)"
        );
        assert_eq!(show("", Form::Markdown), "");
        assert_eq!(show("<title>t</title><p>u</p>", Form::Text), "t\n\nu");
    }

    #[test]
    fn hostile_pages_end_soon() {
        let check = |unit: &str, count: usize, is_cut: bool| {
            let html = format!("<p>first</p>{}", unit.repeat(count));
            for form in [Form::Markdown, Form::Text] {
                let base = Url::parse("https://host.example/").unwrap();
                let shown = convert(html.clone(), base, form, &Cancel::new()).unwrap();
                assert_eq!(shown.is_cut, is_cut, "{unit}");
                assert!(
                    shown.text.starts_with("first"),
                    "{unit}: {:?}",
                    &shown.text[..shown.text.len().min(80)]
                );
            }
        };
        check("<div>", 20_000, true);
        check("<div><table></div></table>", 20_000, true);
        check("<table><td>", 20_000, true);
        check("<ul><li>", 20_000, true);
        check("<blockquote>", 20_000, true);
        check("<svg><g>", 20_000, true);
        check("<b a=1><i b=2><p>", 2_000, false);
        check("<template>", 20_000, true);
        check("<p>a</p>", 2_000, false);
        check("&lt;", 20_000, false);
        check("<", 20_000, false);
    }

    #[test]
    fn formatting_that_is_never_closed_does_not_multiply() {
        let opened: String = (0..150).map(|at| format!("<b a={at}>")).collect();
        let html = format!("<p>{opened}{}", "<p>x".repeat(5_000));
        let base = Url::parse("https://host.example/").unwrap();
        assert!(convert(html, base, Form::Text, &Cancel::new()).unwrap().is_cut);
    }
}
