//! The floors of the house: every arrow between crates points strictly down.

use std::collections::BTreeMap;

use crate::Shop;
use crate::error::Error;
use crate::workspace::{self, Arrow, Kind, Member};

pub(crate) fn run(shop: &mut Shop<'_>) -> Result<(), Error> {
    let plan = read(shop)?;
    let findings = findings(&plan);
    for finding in &findings {
        writeln!(shop.out, "layers: {finding}")?;
    }
    if let Some(tree) = plan.trees.get(CORE) {
        writeln!(shop.out, "layers: {CORE} stands on {} crates ({CORE_TREE} wanted at most)", tree.len())?;
    }
    match findings.len() {
        0 => {
            let crates = plan.members.iter().filter(|member| member.is_on_a_floor()).count();
            Ok(writeln!(shop.out, "layers: {crates} crates, every arrow points down")?)
        }
        count => Err(Error::Findings { verb: "layers", count }),
    }
}

/// All that the check looks at.
#[derive(Debug, Default)]
struct Plan {
    members: Vec<Member>,
    /// For each crate of the lowest floors, the names in its normal dependency tree with default features.
    trees: BTreeMap<String, Vec<String>>,
}

fn read(shop: &Shop<'_>) -> Result<Plan, Error> {
    let members = workspace::members(&shop.root)?;
    let mut trees = BTreeMap::new();
    for member in members.iter().filter(|member| is_runtime_free(member)) {
        trees.insert(member.name.clone(), workspace::tree(&shop.root, &member.name)?);
    }
    Ok(Plan { members, trees })
}

fn findings(plan: &Plan) -> Vec<String> {
    let mut found = Vec::new();
    if !plan.members.iter().any(Member::is_on_a_floor) {
        found.push("no crates found: look at `members` in the root Cargo.toml".to_owned());
    }
    for member in &plan.members {
        found.extend(place(member));
        found.extend(member.arrows.iter().filter_map(|arrow| look_along(arrow, member, plan)));
        found.extend(runtimes(member, plan));
    }
    found
}

/// Where a crate stands: on a stated floor, in the folder of its name.
fn place(member: &Member) -> Vec<String> {
    let mut found = Vec::new();
    if !member.is_on_a_floor() {
        return found;
    }
    let Member { name, folder, .. } = member;
    if member.floor.is_none() {
        found.push(format!(
            "{name} states no floor: add `[package.metadata.layers] floor = N` to {folder}/Cargo.toml"
        ));
    }
    if *folder != format!("crates/{name}") {
        found.push(format!("{name} lives in {folder}: move it to crates/{name}"));
    }
    found
}

fn look_along(arrow: &Arrow, from: &Member, plan: &Plan) -> Option<String> {
    let to = plan.members.iter().find(|member| member.name == arrow.to)?;
    let arrow_text = format!("{} -> {}", from.name, to.name);
    if arrow.kind == Kind::Dev {
        let forbidden = to.name == TESTKIT && arrow.versioned;
        return forbidden.then(|| {
            format!("{arrow_text}: a dev-dependency on {TESTKIT} names a path and no version (nor `workspace = true`)")
        });
    }
    if from.is_a_helper() {
        // It is run by xtask, and nothing is built on it.
        return to
            .floor
            .is_none()
            .then(|| format!("{arrow_text}: a helper of xtask depends on floors alone"));
    }
    if !from.is_on_a_floor() {
        return Some(format!("{arrow_text}: {} depends on no crate of the workspace, drop it", from.name));
    }
    if !to.is_on_a_floor() {
        return Some(format!("{arrow_text}: it stands on no floor, so nothing is built on it"));
    }
    // A missing floor is a finding of its own.
    let (above, below) = (from.floor?, to.floor?);
    let fault = match above.cmp(&below) {
        std::cmp::Ordering::Greater => return None,
        std::cmp::Ordering::Equal => "is a sibling arrow",
        std::cmp::Ordering::Less => "points up",
    };
    Some(format!(
        "{arrow_text} {fault} (floor {above} to floor {below}): move what they share down, as data in {CORE}"
    ))
}

fn runtimes(member: &Member, plan: &Plan) -> Vec<String> {
    if !is_runtime_free(member) {
        return Vec::new();
    }
    let tree = plan.trees.get(&member.name).map_or(&[][..], Vec::as_slice);
    let banned = RUNTIMES.iter().filter(|runtime| tree.iter().any(|name| name == *runtime));
    banned
        .map(|runtime| {
            let name = &member.name;
            format!(
                "{name} pulls in {runtime} by default: put it behind a feature (path: cargo tree -p {name} -e normal -i {runtime})"
            )
        })
        .collect()
}

fn is_runtime_free(member: &Member) -> bool {
    member.is_on_a_floor() && member.floor.is_some_and(|floor| floor <= HIGHEST_RUNTIME_FREE_FLOOR)
}

const CORE: &str = "agent-core";
const TESTKIT: &str = "agent-testkit";
const RUNTIMES: [&str; 3] = ["tokio", "reqwest", "rusqlite"];
const HIGHEST_RUNTIME_FREE_FLOOR: u64 = 1;
const CORE_TREE: usize = 25;

#[cfg(test)]
mod tests {
    use super::*;

    /// A plan is one line a crate: `NAME FLOOR -> DEP ~> DEV_DEP => VERSIONED_DEV_DEP +> BUILD_DEP % IN_TREE @ FOLDER`.
    fn plan(text: &str) -> Plan {
        let mut plan = Plan::default();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let mut words = line.split_whitespace();
            let name = words.next().unwrap().to_owned();
            let folder = if name == "xtask" { "xtask".to_owned() } else { format!("crates/{name}") };
            let floor = words.next().unwrap().parse().ok();
            let mut member = Member { name: name.clone(), folder, floor, ..Member::default() };
            while let (Some(sign), Some(word)) = (words.next(), words.next()) {
                let (kind, versioned) = match sign {
                    "->" => (Kind::Normal, true),
                    "+>" => (Kind::Build, true),
                    "~>" => (Kind::Dev, false),
                    "=>" => (Kind::Dev, true),
                    "%" => {
                        plan.trees.entry(name.clone()).or_default().push(word.to_owned());
                        continue;
                    }
                    "@" => {
                        word.clone_into(&mut member.folder);
                        continue;
                    }
                    other => panic!("unknown sign {other}"),
                };
                member.arrows.push(Arrow { to: word.to_owned(), kind, versioned });
            }
            plan.members.push(member);
        }
        plan
    }

    #[track_caller]
    fn check(text: &str, expect: &[&str]) {
        let found = findings(&plan(text));
        assert_eq!(found.len(), expect.len(), "{found:#?}");
        for (finding, part) in found.iter().zip(expect) {
            assert!(finding.contains(part), "{finding:?} does not say {part:?}");
        }
    }

    #[test]
    fn a_sound_house_has_no_findings() {
        check(
            "agent-core 0 ~> agent-testkit % serde
             agent-turn 1 -> agent-core -> serde => agent-store
             agent-store 1 -> agent-core % serde
             agent-testkit 2 -> agent-turn -> tokio
             agent 3 -> agent-turn +> agent-core
             xtask ? -> serde",
            &[],
        );
    }

    #[test]
    fn arrows_that_do_not_point_down_are_refused() {
        let house = "agent-core 0\n agent-turn 1 -> agent-core\n";
        check(
            &format!("{house} agent-store 1 -> agent-turn"),
            &["agent-store -> agent-turn is a sibling arrow (floor 1"],
        );
        check(
            &format!("{house} agent-store 0 -> agent-turn"),
            &["agent-store -> agent-turn points up (floor 0 to floor 1)"],
        );
        check(&format!("{house} agent-store 0 +> agent-turn"), &["points up"]);
        check(&format!("{house} xtask ? -> agent-core"), &["xtask depends on no crate of the workspace"]);
    }

    #[test]
    fn a_helper_of_xtask_stands_on_the_floors() {
        let house = "agent-core 0\n agent-bench ? @ xtask/bench";
        check(&format!("{house} -> agent-core"), &[]);
        check(&format!("{house} -> agent-core\n xtask ? -> agent-bench"), &["xtask depends on no crate"]);
        check(
            &format!("{house} -> agent-core\n agent-turn 1 -> agent-bench"),
            &["agent-turn -> agent-bench: it stands on no floor"],
        );
        check(&format!("{house} -> xtask\n xtask ?"), &["depends on floors alone"]);
    }

    #[test]
    fn every_crate_states_its_floor_and_lives_under_its_name() {
        check("agent-core ?\n agent-turn 1 -> agent-core", &["agent-core states no floor"]);
        check(
            "agent-core 0 @ crates/core",
            &["agent-core lives in crates/core: move it to crates/agent-core"],
        );
    }

    #[test]
    fn the_testkit_is_a_path_only_dev_dependency() {
        check("agent-core 0 => agent-testkit\n agent-testkit 2", &["names a path and no version"]);
        check("agent-core 0 -> agent-testkit\n agent-testkit 2", &["points up"]);
    }

    #[test]
    fn the_lowest_floors_pull_in_no_runtime() {
        check("agent-store 1 % serde % tokio", &["agent-store pulls in tokio by default"]);
        check("agent-core 0 % rusqlite % reqwest", &["pulls in reqwest", "pulls in rusqlite"]);
        check("agent-harness 2 % tokio", &[]);
    }

    #[test]
    fn an_empty_house_is_a_finding() {
        check("", &["no crates found"]);
        check("xtask ?", &["no crates found"]);
    }

    #[test]
    fn this_workspace_keeps_its_floors() {
        let mut out = Vec::new();
        let result = run(&mut Shop { root: workspace::root(), out: &mut out });
        assert!(result.is_ok(), "{}", String::from_utf8_lossy(&out));
    }
}
