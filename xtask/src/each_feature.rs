//! Compiles every crate bare and with each of its features alone, since features only ever add.

use crate::Shop;
use crate::command::Call;
use crate::error::Error;
use crate::workspace::{self, Member};

pub(crate) fn run(shop: &mut Shop<'_>) -> Result<(), Error> {
    let members = workspace::members(&shop.root)?;
    let calls: Vec<Call> = members.iter().flat_map(calls).collect();
    for (done, call) in calls.iter().enumerate() {
        writeln!(shop.out, "[{}/{}] {call}", done + 1, calls.len())?;
        shop.out.flush()?;
        call.run(&shop.root)?;
    }
    Ok(())
}

fn calls(member: &Member) -> Vec<Call> {
    let bare = format!("check --package {} --no-default-features", member.name);
    let alone = member.features.iter().map(|feature| format!("{bare} --features {feature}"));
    std::iter::once(bare.clone()).chain(alone).map(|line| Call::cargo(&line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_is_compiled_bare_and_with_each_feature() {
        let member = Member {
            name: "agent-store".to_owned(),
            features: vec!["default".to_owned(), "sqlite".to_owned()],
            ..Member::default()
        };
        let lines: Vec<String> = calls(&member).iter().map(ToString::to_string).collect();
        assert_eq!(
            lines,
            [
                "cargo check --package agent-store --no-default-features",
                "cargo check --package agent-store --no-default-features --features default",
                "cargo check --package agent-store --no-default-features --features sqlite",
            ]
        );
    }
}
