//! The isolated sandbox: what it needs, and what its commands cannot do.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use agent_builtins::{IsolatedSandbox, SandboxError, all};
use agent_tools::{Tool, ToolCx};
use serde_json::{Value, json};

use crate::support::{Bench, call, create_dir_all, write};

/// A workspace, and beside it a folder for programs.
fn with_programs(script: Option<&str>) -> (Bench, String) {
    let bench = Bench::new();
    let programs = bench.outside();
    if let Some(script) = script {
        let program = programs.join("bwrap");
        write(&program, script.as_bytes());
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = programs.display().to_string();
    (bench, path)
}

fn open(bench: &Bench, path: &str) -> Result<IsolatedSandbox, SandboxError> {
    IsolatedSandbox::open(&bench.root(), [("PATH".to_owned(), path.to_owned())])
}

async fn run(tools: &[Arc<dyn Tool>], tool: &str, input: Value) -> String {
    let cx = ToolCx::for_test("session", "call").unwrap();
    match call(tools, &cx, tool, &input).await {
        Ok(said) => said,
        Err(error) => format!("ERROR: {error}"),
    }
}

#[test]
fn without_bubblewrap_there_is_no_sandbox() {
    let end = "Nothing was run, and nothing runs unisolated in its place: mend this, or choose the local sandbox, which confines files only.";
    let check = |script: Option<&str>, expect: &str| {
        let (bench, path) = with_programs(script);
        let words = open(&bench, &path).unwrap_err().to_string().replace(&path, "DIR");
        assert_eq!(words, format!("Commands cannot be isolated: {expect}. {end}"));
    };
    check(
        None,
        "there is no `bwrap` in PATH; install bubblewrap, the package has that name on most Linux systems",
    );
    let old = "#!/bin/sh\ncase $1 in --version) echo bubblewrap 0.8.0;; *) echo 'bwrap: No permissions to create new namespace' >&2; exit 1;; esac\n";
    check(
        Some(old),
        "`bwrap` (bubblewrap 0.8.0) is installed and could not make a sandbox: bwrap: No permissions to create new namespace. On many systems unprivileged user namespaces must be allowed first; in a container, it must be started with that right",
    );
    check(
        Some("#!/no/such/shell\n"),
        "`DIR/bwrap` could not be started: No such file or directory (os error 2)",
    );
}

/// Does as bubblewrap is told, as far as that is `--chdir`, `--setenv` and the command.
const SHAM: &str = r#"#!/bin/sh
[ "$1" = --version ] && echo bubblewrap 0.8.0 && exit
told=
while [ "$1" != -- ]; do
    case $1 in --chdir) cd "$2" ;; --setenv) export "$2=$3" ;; --share-net) told="$told net" ;; esac
    shift
done
shift
export AGENT_CALL_SHAM="told$told"
exec "$@"
"#;

#[tokio::test]
async fn every_command_goes_through_bubblewrap() {
    let (bench, path) = with_programs(Some(SHAM));
    bench.put("sub/f", "hay\n");
    let path = format!("{path}:/usr/bin:/bin");
    let sandbox = open(&bench, &path).unwrap();
    let look = json!({"command": "echo $AGENT_CALL_SHAM $HOME $TMPDIR; pwd | tail -c 7", "cwd": "sub"});
    let said = run(&all(Arc::new(sandbox.clone())), "bash", look.clone()).await;
    assert!(said.starts_with("told /tmp /tmp\nws/sub\n[exit code 0, "), "{said}");
    let said = run(&all(Arc::new(sandbox.clone().network(true))), "bash", look.clone()).await;
    assert!(said.starts_with("told net /tmp /tmp\nws/sub\n[exit code 0, "), "{said}");

    let tools = all(Arc::new(sandbox));
    let begun =
        run(&tools, "bash", json!({"command": "echo $AGENT_CALL_SHAM; sleep 60", "background": true})).await;
    let job = begun.split('`').nth(1).unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    let killed = run(&tools, "bash_kill", json!({"job": job})).await;
    assert!(killed.starts_with("told\n[`job-") && killed.contains(" was stopped after "), "{killed}");
    assert_eq!(
        run(&tools, "grep", json!({"pattern": "hay"})).await,
        "sub/f\n[1 files with 1 matching lines]"
    );
    let outside = run(&tools, "read_file", json!({"path": "../outside/bwrap"})).await;
    assert!(outside.contains("leads outside the workspace"), "{outside}");

    // What is taken away later is missed, and not done without.
    crate::support::remove(&bench.outside().join("bwrap"));
    let said = run(&tools, "bash", json!({"command": "touch S"})).await;
    assert!(said.starts_with("ERROR: The command could not be started: "), "{said}");
    assert!(!bench.exists("S"));
}

/// Only where bubblewrap works.
#[tokio::test]
async fn what_isolated_commands_cannot_do() {
    let bench = Bench::new();
    let sandbox = match open(&bench, "/usr/local/bin:/usr/bin:/bin") {
        Ok(sandbox) => sandbox,
        Err(error) => {
            println!("skipped: {error}");
            return;
        }
    };
    let secret = bench.outside().join("secret");
    write(&secret, b"sesame");
    create_dir_all(&bench.root().join("sub"));
    let tools = all(Arc::new(sandbox));
    let check = async |command: &str, expect: &str| {
        let said = run(&tools, "bash", json!({"command": command, "timeout_ms": 5_000})).await;
        assert!(said.starts_with(expect), "{command}: {said}");
    };
    check("echo in > sub/f && cat sub/f", "in\n[exit code 0, ").await;
    assert_eq!(bench.text("sub/f"), "in\n");
    check(&format!("cat {} 2>/dev/null", secret.display()), "[exit code 1, ").await;
    check("touch /usr/made 2>/dev/null", "[exit code 1, ").await;
    check("touch /tmp/made && ls /tmp | grep -c made", "1\n[exit code 0, ").await;
    assert!(!Path::new("/tmp/made").exists());
    check(
        "ls /sys/class/net 2>/dev/null; tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '",
        "lo\n[exit code 0, ",
    )
    .await;
    check("ps -e 2>/dev/null | grep -c agent-guardian", "0\n[exit code 1, ").await;
    let stubborn = "setsid env -i bash -c 'trap \"\" TERM; sleep 7; touch S' & sleep 60";
    let begun = run(&tools, "bash", json!({"command": stubborn, "background": true})).await;
    let job = begun.split('`').nth(1).unwrap();
    let killed = run(&tools, "bash_kill", json!({"job": job})).await;
    assert!(killed.contains(" was stopped after "), "{killed}");
    check("trap '' TERM; (sleep 7; touch S) & sleep 60", "[timed_out: true; ").await;
    tokio::time::sleep(std::time::Duration::from_secs(4)).await;
    assert!(!bench.exists("S"));
}
