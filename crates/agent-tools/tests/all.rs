//! Mistakes that must not compile.

#[test]
fn nothing_runs_unchecked() {
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}
