//! Mistakes with the facade that must not compile, and what the compiler says then.

#[test]
fn misuse_is_explained() {
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}
