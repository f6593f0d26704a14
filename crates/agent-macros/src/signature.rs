//! The function under the attribute, as far as it can be a tool.

use proc_macro2::{Ident, Span};
use syn::spanned::Spanned;
use syn::{Attribute, Error, FnArg, ItemFn, LitStr, Pat, PatType, Result, ReturnType, Type};

use crate::options::Subject;

/// What of a function makes the tool.
pub(crate) struct Signature {
    /// The doc comment.
    pub(crate) description: String,
    /// Whether the first argument is the call.
    pub(crate) takes_call: bool,
    pub(crate) input: Input,
    /// What it returns: a `Result`.
    pub(crate) returns: Type,
}

/// Where the input goes.
pub(crate) enum Input {
    /// Each argument is a field of it.
    Fields(Vec<Field>),
    /// One argument is all of it.
    Whole(Box<Type>),
}

/// An argument that is a field of the input.
pub(crate) struct Field {
    pub(crate) name: Ident,
    pub(crate) kind: Type,
    /// Doc comment, and what serde and schemars are to know.
    pub(crate) attributes: Vec<Attribute>,
}

impl Signature {
    /// Reads a function, and takes from its arguments what belongs to the fields.
    pub(crate) fn take(function: &mut ItemFn) -> Result<Self> {
        plain(function)?;
        let description = description(&function.attrs);
        if description.is_empty() {
            let words = format!(
                "`{}` has no doc comment, and that is what the model reads: write above it what the tool does, when to use it and what to do next",
                function.sig.ident
            );
            return Err(Error::new(function.sig.ident.span(), words));
        }
        let ReturnType::Type(_, returns) = &function.sig.output else {
            let words = "a tool returns a result: write `-> Result<String, ToolError>`, or another type that is `IntoEnd` in place of `String`";
            return Err(Error::new(function.sig.ident.span(), words));
        };
        let returns = (**returns).clone();
        let mut arguments = Vec::new();
        for argument in &mut function.sig.inputs {
            match argument {
                FnArg::Typed(argument) => arguments.push(argument),
                FnArg::Receiver(receiver) => return Err(Error::new(receiver.span(), RECEIVER)),
            }
        }
        let takes_call = arguments.first().is_some_and(|argument| is_call(&argument.ty));
        let given = arguments.into_iter().skip(usize::from(takes_call));
        Ok(Self { description, takes_call, input: Input::of(given.collect())?, returns })
    }

    /// Whether the subject is an argument of the function; what a whole input holds, the compiler knows.
    pub(crate) fn has(&self, subject: &Subject) -> Result<()> {
        let Input::Fields(fields) = &self.input else { return Ok(()) };
        if fields.iter().any(|field| field.name == subject.field) {
            return Ok(());
        }
        let names: Vec<_> = fields.iter().map(|field| field.name.to_string()).collect();
        let words = format!("no argument is called `{}`; there are: {}", subject.field, names.join(", "));
        Err(Error::new(subject.field.span(), words))
    }
}

impl Input {
    fn of(arguments: Vec<&mut PatType>) -> Result<Self> {
        let mut fields = Vec::new();
        let mut whole: Option<(Span, Type)> = None;
        for argument in arguments {
            let is_whole = argument.attrs.iter().any(is_input);
            if is_whole {
                whole = Some((argument.span(), (*argument.ty).clone()));
            }
            fields.push(if is_whole { None } else { Some(Field::of(argument)?) });
            owned(&argument.ty)?;
            argument.attrs.clear();
        }
        match whole {
            None => Ok(Self::Fields(fields.into_iter().flatten().collect())),
            Some((_, kind)) if fields.len() == 1 => Ok(Self::Whole(Box::new(kind))),
            Some((span, _)) => Err(Error::new(
                span,
                "an argument that is `#[input]` is all of the input, so there is no other beside it but the call: make the others fields of its type",
            )),
        }
    }
}

impl Field {
    fn of(argument: &PatType) -> Result<Self> {
        let Pat::Ident(name) = &*argument.pat else {
            return Err(Error::new(
                argument.pat.span(),
                "an argument is a field of the input, so it needs a name; mark it `#[input]` when it is all of the input",
            ));
        };
        if is_call(&argument.ty) {
            return Err(Error::new(
                argument.span(),
                "the call is the first argument of a tool; put it there",
            ));
        }
        for attribute in &argument.attrs {
            if !["doc", "serde", "schemars"].iter().any(|known| attribute.path().is_ident(known)) {
                let words = "an argument takes a doc comment, which describes it to the model, `#[serde(..)]`, `#[schemars(..)]`, or `#[input]` when it is all of the input";
                return Err(Error::new(attribute.span(), words));
            }
        }
        Ok(Self {
            name: name.ident.clone(),
            kind: (*argument.ty).clone(),
            attributes: argument.attrs.clone(),
        })
    }
}

/// What no tool can be.
fn plain(function: &ItemFn) -> Result<()> {
    let signature = &function.sig;
    let name = &signature.ident;
    if signature.asyncness.is_none() {
        let words = format!("a tool is an async function: write `async fn {name}(..)`");
        return Err(Error::new(signature.fn_token.span(), words));
    }
    if !signature.generics.params.is_empty() || signature.generics.where_clause.is_some() {
        let words = "a tool has one schema, so its function has no generics; write the types out";
        let span = signature.generics.params.span();
        return Err(Error::new(if signature.generics.params.is_empty() { name.span() } else { span }, words));
    }
    let odd = signature.unsafety.map(|word| word.span());
    let odd = odd.or_else(|| signature.abi.as_ref().map(Spanned::span));
    match odd.or_else(|| signature.variadic.as_ref().map(Spanned::span)) {
        Some(span) => {
            Err(Error::new(span, format!("a tool is a plain function: write `async fn {name}(..)`")))
        }
        None => Ok(()),
    }
}

/// Input is read from JSON that ends before the call does.
fn owned(kind: &Type) -> Result<()> {
    if matches!(kind, Type::Reference(_)) {
        return Err(Error::new(
            kind.span(),
            "an input is handed over, so its type holds no borrow: write `String` for `&str`, `Vec<T>` for `&[T]`",
        ));
    }
    if matches!(kind, Type::ImplTrait(_)) {
        return Err(Error::new(kind.span(), "a tool has one schema, so the type is written out"));
    }
    Ok(())
}

fn is_input(attribute: &Attribute) -> bool {
    attribute.path().is_ident("input")
}

fn is_call(kind: &Type) -> bool {
    let Type::Path(kind) = kind else { return false };
    kind.path.segments.last().is_some_and(|last| last.ident == "Call")
}

/// The words of a doc comment as they are written, without the space behind each `///`.
fn description(attributes: &[Attribute]) -> String {
    let docs = attributes.iter().filter(|attribute| attribute.path().is_ident("doc"));
    let lines = docs.filter_map(|attribute| match &attribute.meta {
        syn::Meta::NameValue(doc) => syn::parse2::<LitStr>(quote::ToTokens::to_token_stream(&doc.value)).ok(),
        syn::Meta::Path(_) | syn::Meta::List(_) => None,
    });
    let lines: Vec<String> = lines.map(|line| line.value()).collect();
    let text = lines.join("\n");
    let stripped = text.lines().map(|line| line.strip_prefix(' ').unwrap_or(line).trim_end());
    stripped.collect::<Vec<_>>().join("\n").trim().to_owned()
}

const RECEIVER: &str = "a tool is a free function without `self`: what it shares with the program is in `call.cx.context`; for state of your own use `ToolConfig::new` with a closure";
