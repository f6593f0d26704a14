//! What the attribute writes: the `ToolConfig` that one would write by hand.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Attribute, Error, ItemFn, Path, Result};

use crate::options::{Options, Subject, SubjectKind};
use crate::signature::{Field, Input, Signature};

/// The function that gives the tool, in place of the one that was written; that one moves into it.
pub(crate) fn expand(options: TokenStream, item: TokenStream, home: &str) -> Result<TokenStream> {
    let options: Options = syn::parse2(options)?;
    let not_a_function = |error: Error| Error::new(error.span(), "#[tool] stands above an `async fn`");
    let mut function: ItemFn = syn::parse2(item).map_err(not_a_function)?;
    let signature = Signature::take(&mut function)?;
    if let Some(subject) = &options.subject {
        signature.has(subject)?;
    }
    let home: Path = match &options.home {
        Some(home) => home.clone(),
        None => syn::parse_str(home)?,
    };
    let support = quote!(#home::__macro);
    let config = config(&options, &signature, &function.sig.ident, &support)?;

    let (outer, inner) = std::mem::take(&mut function.attrs).into_iter().partition::<Vec<_>, _>(is_for_both);
    function.attrs = inner;
    let visibility = std::mem::replace(&mut function.vis, syn::Visibility::Inherited);
    let (name, returns) = (&function.sig.ident, &signature.returns);
    let (declared, shown) = match &signature.input {
        Input::Fields(fields) => {
            let shown = quote!(impl #support::DeserializeOwned + #support::JsonSchema + ::core::marker::Send + 'static);
            (declared(fields, &support), shown)
        }
        Input::Whole(kind) => (TokenStream::new(), quote!(#kind)),
    };
    let lenient = lenient();
    let output = quote_spanned!(returns.span()=> <#returns as #support::ToolReturn>::Output);
    Ok(quote! {
        #(#outer)*
        #visibility fn #name() -> #support::ToolConfig<#shown, #output> {
            #declared
            #[#lenient(clippy::too_many_arguments, reason = "each argument is a field of the input")]
            #function
            #config
        }
    })
}

/// The mistake, and the function as it would be without the attribute.
pub(crate) fn refused(error: &Error, item: TokenStream) -> TokenStream {
    let error = error.to_compile_error();
    let Ok(mut function) = syn::parse2::<ItemFn>(item) else { return error };
    for argument in &mut function.sig.inputs {
        match argument {
            syn::FnArg::Typed(argument) => argument.attrs.clear(),
            syn::FnArg::Receiver(receiver) => receiver.attrs.clear(),
        }
    }
    let lenient = lenient();
    quote!(#error #[#lenient(unused, reason = "it stands in for the tool that it is not")] #function)
}

/// The input as a type of its own.
fn declared(fields: &[Field], support: &TokenStream) -> TokenStream {
    let serde = quote!(#support::serde).to_string().replace(' ', "");
    let schemars = quote!(#support::schemars).to_string().replace(' ', "");
    let are_fields = fields.iter().map(|Field { kind, .. }| {
        let field = quote_spanned!(kind.span()=> #support::is_field::<#kind>());
        quote!(const _: () = #field;)
    });
    let fields = fields.iter().map(|Field { name, kind, attributes }| quote!(#(#attributes)* #name: #kind));
    quote! {
        #(#are_fields)*
        #[derive(#support::serde::Deserialize, #support::schemars::JsonSchema)]
        #[serde(crate = #serde)]
        #[schemars(crate = #schemars)]
        struct __ToolInput { #(#fields,)* }
    }
}

fn config(
    options: &Options,
    signature: &Signature,
    name: &Ident,
    support: &TokenStream,
) -> Result<TokenStream> {
    let called = match &options.name {
        Some(name) => name.value(),
        None => name.unraw().to_string(),
    };
    let access = variant(options.access()?);
    let description = &signature.description;
    let (taken, call) = match signature.takes_call {
        true => (quote!(call), quote!(call,)),
        false => (quote!(_), quote!()),
    };
    let (kind, given) = match &signature.input {
        Input::Whole(kind) => (quote!(#kind), quote!(input)),
        Input::Fields(fields) => {
            let names = fields.iter().map(|field| &field.name);
            (quote!(__ToolInput), quote!(#(input.#names),*))
        }
    };
    let unused = match &signature.input {
        Input::Fields(fields) if fields.is_empty() => quote!(let _ = input;),
        Input::Fields(_) | Input::Whole(_) => quote!(),
    };
    let settings = settings(options, &kind, support);
    let into_result = quote_spanned!(signature.returns.span()=> #support::ToolReturn::into_result);
    Ok(quote! {
        #support::ToolConfig::new(#called, #description, #support::Access::#access, |#taken, input: #kind| {
            #unused
            async move { #into_result(#name(#call #given).await) }
        })
        #settings
    })
}

fn settings(options: &Options, kind: &TokenStream, support: &TokenStream) -> TokenStream {
    let idempotent = options.idempotent.then(|| quote!(.idempotent()));
    let summarise = options.summarise.then(|| quote!(.summarise()));
    let deadline = options.deadline.map(|deadline| {
        let (seconds, nanos) = (deadline.as_secs(), deadline.subsec_nanos());
        quote!(.deadline(::core::time::Duration::new(#seconds, #nanos)))
    });
    let concurrency = options.concurrency.map(|word| {
        let word = variant(word);
        quote!(.concurrency(#support::Concurrency::#word))
    });
    let permission = options.permission.map(|word| {
        let word = variant(word);
        quote!(.permission(#support::PermissionDecision::#word))
    });
    let limits = [("bytes", &options.cap_bytes), ("lines", &options.cap_lines)];
    let limits: Vec<_> = limits
        .into_iter()
        .filter_map(|(field, limit)| {
            let field = variant(field);
            limit.as_ref().map(|limit| quote!(#field: #limit))
        })
        .collect();
    let cap = (!limits.is_empty())
        .then(|| quote!(.cap(#support::OutputCap { #(#limits,)* ..::core::default::Default::default() })));
    let subject = options.subject.as_ref().map(|subject| looks(subject, kind, support));
    quote!(#idempotent #summarise #deadline #concurrency #permission #cap #subject)
}

fn looks(
    Subject { kind: looked_at, field }: &Subject,
    kind: &TokenStream,
    support: &TokenStream,
) -> TokenStream {
    let text = quote!(::std::string::ToString::to_string(&input.#field));
    let subject = match looked_at {
        SubjectKind::Command => quote!(Command(#text)),
        SubjectKind::Text => quote!(Text(#text)),
        SubjectKind::Path => quote!(Path { given: #text, real: ::core::option::Option::None }),
    };
    quote!(.subject(|input: #kind| #support::Subject::#subject))
}

/// What says whether there is a function, and what it is, holds for the one that gives the tool.
fn is_for_both(attribute: &Attribute) -> bool {
    ["doc", "cfg", "deprecated"].iter().any(|known| attribute.path().is_ident(known))
}

/// The level for lints that may or may not find something in what a user wrote: an expectation would complain then.
fn lenient() -> Ident {
    variant("allow")
}

fn variant(name: &str) -> Ident {
    Ident::new(name, Span::call_site())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fails(options: &str, item: &str) -> String {
        let (options, item) = (options.parse().unwrap(), item.parse().unwrap());
        expand(options, item, "::agent_tools").unwrap_err().to_string()
    }

    #[test]
    fn options_that_are_none() {
        let check = |options: &str, expect: &str| {
            let error = fails(
                options,
                "/** Greets. */ async fn greet(name: String) -> Result<String, ToolError> { }",
            );
            assert!(error.contains(expect), "{options}: {error}");
        };
        check("", "there is no default");
        check("access = write", "`access` is one of: read, session, edit, execute, network");
        check("access = \"read\"", "write it without quotes");
        check("access", "write `access = read`");
        check("access = read, access = edit", "`access` is given twice");
        check("access = read, acess", "`acess` is no option of a tool; there are: access, idempotent");
        check("access = read, idempotent = true", "`idempotent` takes no value");
        check("access = read, deadline = \"30\"", "with ms, s or m");
        check("access = read, deadline = \"0s\"", "with ms, s or m");
        check("access = read, deadline = 30", "write `deadline = \"30s\"`, in quotes");
        check("access = read, cap_bytes = many", "write a whole number");
        check("access = read, concurrency = twice", "`concurrency` is one of: parallel, serial");
        check("access = read, permission = maybe", "`permission` is one of: allow, ask, deny");
        check("access = read, subject = url(name)", "use `ToolConfig::subject`");
        check("access = read, subject = path", "write `subject = path(ARGUMENT)`");
        check("access = read, subject = path(nam)", "no argument is called `nam`; there are: name");
        check("access = read, name = \"two words\"", "1 to 64 of the letters");
        check("access = read idempotent", "expected `,`");
    }

    #[test]
    fn functions_that_are_no_tools() {
        let check = |item: &str, expect: &str| {
            let error = fails("access = read", item);
            assert!(error.contains(expect), "{item}: {error}");
        };
        let result = "-> Result<String, ToolError> { }";
        check(&format!("async fn greet(name: String) {result}"), "`greet` has no doc comment");
        check(&format!("/** A. */ fn greet(name: String) {result}"), "write `async fn greet(..)`");
        check(&format!("/** A. */ async fn greet(&self) {result}"), "a free function without `self`");
        check(&format!("/** A. */ async fn greet<T>(it: T) {result}"), "has no generics");
        check(
            &format!("/** A. */ async fn greet(it: impl Into<String>) {result}"),
            "the type is written out",
        );
        check(&format!("/** A. */ async fn greet(name: &str) {result}"), "write `String` for `&str`");
        check(&format!("/** A. */ async fn greet(name: String, call: Call) {result}"), "the first argument");
        check(&format!("/** A. */ async fn greet((a, b): (u8, u8)) {result}"), "it needs a name");
        check(
            &format!("/** A. */ async fn greet(#[cfg(x)] a: u8) {result}"),
            "an argument takes a doc comment",
        );
        check(&format!("/** A. */ async fn greet(#[input] a: A, b: u8) {result}"), "is all of the input");
        check(&format!("/** A. */ async unsafe fn greet() {result}"), "a plain function");
        check("/** A. */ async fn greet(name: String) { }", "write `-> Result<String, ToolError>`");
        check("struct Greet;", "stands above an `async fn`");
    }
}
