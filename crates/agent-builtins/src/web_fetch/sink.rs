//! A tree that counts what a page makes of it, so that a hostile page is stopped.

use std::borrow::Cow;
use std::cell::Cell;
use std::rc::Rc;

use html5ever::interface::{ElementFlags, NodeOrText, QuirksMode, TreeSink};
use html5ever::tendril::StrTendril;
use html5ever::{Attribute, ExpandedName, QualName};
use markup5ever_rcdom::{Node, RcDom};

/// A document as it is built. The converter calls itself for every level, and elements that are never closed multiply:
/// levels and elements are counted.
#[derive(Default)]
pub(super) struct Bounded {
    dom: RcDom,
    counts: Bounds,
}

/// What a document has become so far.
#[derive(Clone, Default)]
pub(super) struct Bounds(Rc<Counts>);

#[derive(Default)]
struct Counts {
    parts: Cell<usize>,
    templates: Cell<usize>,
    is_too_deep: Cell<bool>,
}

impl Bounded {
    pub(super) fn new() -> (Self, Bounds) {
        let bounds = Bounds::default();
        (Self { dom: RcDom::default(), counts: bounds.clone() }, bounds)
    }

    fn count(&self) {
        self.counts.0.parts.set(self.counts.0.parts.get() + 1);
    }

    fn measure(&self, parent: &Rc<Node>) {
        let mut above = Rc::clone(parent);
        for _ in 0..DEEPEST {
            let next = above.parent.take();
            above.parent.set(next.clone());
            let Some(next) = next.and_then(|next| next.upgrade()) else { return };
            above = next;
        }
        self.counts.0.is_too_deep.set(true);
    }
}

impl Bounds {
    /// Whether the document is too deep or too large to go on.
    pub(super) fn are_passed(&self) -> bool {
        let Counts { parts, templates, is_too_deep } = &*self.0;
        is_too_deep.get() || parts.get() > MOST || templates.get() > MOST_TEMPLATES
    }
}

impl TreeSink for Bounded {
    type Handle = Rc<Node>;
    type Output = Rc<Node>;
    type ElemName<'a> = ExpandedName<'a>;

    fn finish(self) -> Rc<Node> {
        self.dom.document
    }

    // Nobody reads them, and a page may have millions.
    fn parse_error(&self, _: Cow<'static, str>) {}

    fn get_document(&self) -> Rc<Node> {
        self.dom.get_document()
    }

    fn elem_name<'a>(&'a self, target: &'a Rc<Node>) -> ExpandedName<'a> {
        self.dom.elem_name(target)
    }

    fn create_element(&self, name: QualName, attrs: Vec<Attribute>, flags: ElementFlags) -> Rc<Node> {
        self.count();
        // What is in one has no parent there, so that levels of them are not seen.
        if flags.template {
            self.counts.0.templates.set(self.counts.0.templates.get() + 1);
        }
        self.dom.create_element(name, attrs, flags)
    }

    fn create_comment(&self, text: StrTendril) -> Rc<Node> {
        self.count();
        self.dom.create_comment(text)
    }

    fn create_pi(&self, target: StrTendril, data: StrTendril) -> Rc<Node> {
        self.count();
        self.dom.create_pi(target, data)
    }

    fn append(&self, parent: &Rc<Node>, child: NodeOrText<Rc<Node>>) {
        self.measure(parent);
        self.dom.append(parent, child);
    }

    fn append_based_on_parent_node(
        &self,
        element: &Rc<Node>,
        previous: &Rc<Node>,
        child: NodeOrText<Rc<Node>>,
    ) {
        self.measure(element);
        self.dom.append_based_on_parent_node(element, previous, child);
    }

    fn append_doctype_to_document(&self, name: StrTendril, public_id: StrTendril, system_id: StrTendril) {
        self.dom.append_doctype_to_document(name, public_id, system_id);
    }

    fn get_template_contents(&self, target: &Rc<Node>) -> Rc<Node> {
        self.dom.get_template_contents(target)
    }

    fn same_node(&self, one: &Rc<Node>, other: &Rc<Node>) -> bool {
        self.dom.same_node(one, other)
    }

    fn set_quirks_mode(&self, mode: QuirksMode) {
        self.dom.set_quirks_mode(mode);
    }

    fn append_before_sibling(&self, sibling: &Rc<Node>, child: NodeOrText<Rc<Node>>) {
        self.measure(sibling);
        self.dom.append_before_sibling(sibling, child);
    }

    fn add_attrs_if_missing(&self, target: &Rc<Node>, attrs: Vec<Attribute>) {
        self.dom.add_attrs_if_missing(target, attrs);
    }

    fn remove_from_parent(&self, target: &Rc<Node>) {
        self.dom.remove_from_parent(target);
    }

    fn reparent_children(&self, node: &Rc<Node>, new_parent: &Rc<Node>) {
        self.dom.reparent_children(node, new_parent);
    }

    fn is_mathml_annotation_xml_integration_point(&self, target: &Rc<Node>) -> bool {
        self.dom.is_mathml_annotation_xml_integration_point(target)
    }
}

/// Levels of a page; those that people write have fewer than a hundred.
const DEEPEST: usize = 300;
/// Elements and comments of a page; the longest that people write have some hundred thousand.
const MOST: usize = 400_000;
const MOST_TEMPLATES: usize = 5_000;
