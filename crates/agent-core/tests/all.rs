//! Mistakes that must not compile.

#[test]
fn history_cannot_be_misused() {
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}
