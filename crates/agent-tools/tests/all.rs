//! Mistakes that must not compile, and the attribute that makes tools.

#[cfg(feature = "macros")]
mod attribute;

#[test]
fn nothing_runs_unchecked() {
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}
