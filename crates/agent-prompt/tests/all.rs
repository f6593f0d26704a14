//! Mistakes that must not compile, and whole prompts: their bytes, their authority, their stability.

#[cfg(test)]
mod assembled;
#[cfg(test)]
mod property;

#[test]
fn volatile_values_stay_out_of_the_system_prompt() {
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}
