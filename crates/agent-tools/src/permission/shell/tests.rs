//! Shell texts as rows: which commands are seen in them, and what stays unknown.

use std::collections::BTreeSet;
use std::process::{Command as Process, Stdio};

use proptest::prelude::*;

use super::*;

/// Commands one a line, with what else the text does.
fn shown(text: &str) -> String {
    let Script { commands, beside } = script(text);
    let commands = commands.iter().map(|command| {
        let through = match command.through {
            Through::Shell => "",
            Through::Wrapper => "wrapped: ",
            Through::Limiter => "limited: ",
        };
        let words = command.words.iter().map(|word| match word.is_known {
            true => format!("[{}]", word.text),
            false => format!("?{}?", word.text),
        });
        format!("{through}{}", words.collect::<Vec<_>>().join(" "))
    });
    commands.chain(beside.iter().map(|beside| format!("! {beside}"))).collect::<Vec<_>>().join("\n")
}

#[test]
fn forms() {
    let check = |text: &str, expect: &str| assert_eq!(shown(text), expect, "{text}");
    check("git status", "[git] [status]");
    check("git  'status'   \"-s\" # all", "[git] [status] [-s]");
    check("g\\it \\\n  push", "[git] [push]");
    check("'g'i\"t\" push", "[git] [push]");
    check("a; b && c || d | e & f", "[a]\n[b]\n[c]\n[d]\n[e]\n[f]");
    check("a\nb", "[a]\n[b]");
    check("a |& b", "[a]\n[b]");
    check("(a; (b))", "[a]\n[b]");
    check("{ a; b; }", "[a]\n[b]");
    check("! a", "[a]");
    check("a $(b `c`)", "[a] ?$(b `c`)?\n[b] ?`c`?\n[c]");
    check("a \"x $(b) y\"", "[a] ?\"x $(b) y\"?\n[b]");
    check("a <(b) >(c)", "[a] ?<(b)? ?>(c)?\n[b]\n[c]");
    check("a <<EOF\n$(b)\nEOF\n", "[a]\n[b]");
    check("a <<'EOF'\n$(b)\nEOF\n", "[a]");
    check("a <<< \"$(b)\"", "[a]\n[b]");
    check("if a; then b; elif c; then d; else e; fi", "[a]\n[b]\n[c]\n[d]\n[e]");
    check("while a; do b; done; until c; do d; done", "[a]\n[b]\n[c]\n[d]");
    check("for i in $(a) b; do c $i; done", "[a]\n[c] ?$i?");
    check("for PATH in b; do c; done", "[c]\n! it sets PATH");
    check("case $(a) in x) b ;; *) c ;; esac", "[a]\n[b]\n[c]");
    check("f() { a; }; f", "[a]\n[f]");
    check("function f { a; }", "[a]");
    check("[ -f x ] && a", "[a]");
    check("[[ $(a) == b ]] && c", "[a]\n[c]");
    check("[[ x -eq 1 ]]", "! [[ x -eq 1 ]], which is only known when it runs");
    check("echo $((1 + 2))", "[echo] ?$((1 + 2))?");
    check("echo $((x))", "[echo] ?$((x))?\n! $((x)), which is only known when it runs");
    check("echo ${x@P}", "[echo] ?${x@P}?\n! ${x@P}, which is only known when it runs");
    check("echo ${x:-y} ${#x} ${x%.*}", "[echo] ?${x:-y}? ?${#x}? ?${x%.*}?");
    check("x=1", "");
    check("PATH=/tmp a", "[a]\n! it sets PATH");
    check("LD_PRELOAD=x.so git status", "[git] [status]\n! it sets LD_PRELOAD");
    check("export PATH=/tmp; a", "[export] ?PATH=/tmp?\n[a]\n! it sets PATH");
    check("a > out 2>&1", "[a]\n! it writes out");
    check("a >/dev/null 2>&1 < in", "[a]");
    check("a &> out", "[a]\n! it writes out");
    check("a >| out", "[a]\n! it writes out");
    check("a > $x", "[a]\n! > $x, which is only known when it runs");
    check("cat < /dev/tcp/evil/80", "[cat]\n! < /dev/tcp/evil/80, which is only known when it runs");
    check("$x -rf /", "?$x? [-rf] [/]\n! $x -rf /, which is only known when it runs");
    check("\"$(a)\" b", "?\"$(a)\"? [b]\n[a]\n! \"$(a)\" b, which is only known when it runs");
    check("ls *.rs ~ {a,b}", "[ls] ?*.rs? ?~? ?{a,b}?");
    check("echo $'a\\x41'", "[echo] ?$'a\\x41'?");
    check("coproc a", "[coproc] [a]\nwrapped: [a]");
}

#[test]
fn wrappers() {
    let check = |text: &str, expect: &str| assert_eq!(shown(text), expect, "{text}");
    check("timeout 5 cargo test", "[timeout] [5] [cargo] [test]\nlimited: [cargo] [test]");
    check(
        "timeout -s KILL 5 rm x",
        "[timeout] [-s] [KILL] [5] [rm] [x]\nwrapped: [KILL] [5] [rm] [x]\nwrapped: [5] [rm] [x]\nwrapped: [rm] [x]\nwrapped: [x]",
    );
    check(
        "sudo -u bob rm x",
        "[sudo] [-u] [bob] [rm] [x]\nwrapped: [bob] [rm] [x]\nwrapped: [rm] [x]\nwrapped: [x]",
    );
    check("env A=1 rm", "[env] [A=1] [rm]\nwrapped: [rm]");
    check("bash -c 'a; b'", "[bash] [-c] [a; b]\nwrapped: [a]\nwrapped: [b]");
    check("sh -ec \"a\"", "[sh] [-ec] [a]\nwrapped: [a]");
    check("bash -c \"$x\"", "[bash] [-c] ?\"$x\"?\n! \"$x\", which is only known when it runs");
    check("bash script.sh", "[bash] [script.sh]");
    check(
        "curl x | sh",
        "[curl] [x]\n[sh]\n! what a shell reads as its input, which is only known when it runs",
    );
    check("eval 'a b'", "[eval] [a b]\nwrapped: [a] [b]");
    check("eval a '|' b", "[eval] [a] [|] [b]\nwrapped: [a]\nwrapped: [b]");
    check("eval $x", "[eval] ?$x?\n! eval $x, which is only known when it runs");
    check("eval -- a", "[eval] [--] [a]\nwrapped: [a]");
    check("trap -- 'a' EXIT", "[trap] [--] [a] [EXIT]\nwrapped: [a]");
    check("./timeout 5 a", "[./timeout] [5] [a]");
    check("x=1 a", "[a]\n! it sets x");
    check("printf -v PATH a; b", "[printf] [-v] [PATH] [a]\n[b]\n! it sets PATH");
    check("time a.b=1 a", "[time] [a.b=1] [a]\nwrapped: [a.b=1] [a]\nwrapped: [a]");
    check("time x=1 a", "[time] [x=1] [a]\nwrapped: [a]");
    check("bash -ceuo pipefail 'a'", "[bash] [-ceuo] [pipefail] [a]\nwrapped: [a]");
    check("trap 'a' EXIT", "[trap] [a] [EXIT]\nwrapped: [a]");
    check(". ./x", "[.] [./x]\n! . ./x, which is only known when it runs");
    check(
        "find . -name x -exec rm {} +",
        "[find] [.] [-name] [x] [-exec] [rm] [{}] [+]\nwrapped: [rm] [{}] [+]\nwrapped: [{}] [+]\nwrapped: [+]",
    );
    check("xargs -n1 rm", "[xargs] [-n1] [rm]\nwrapped: [rm]");
    check(
        "printf -v 'a[$(b)]' x",
        "[printf] [-v] [a[$(b)]] [x]\n! printf -v a[$(b)] x, which is only known when it runs",
    );
}

#[test]
fn what_is_no_shell_text_is_unknown() {
    let check = |text: &str| assert!(script(text).unknown().is_some(), "{text}: {:?}", script(text));
    check("a (");
    check("if a; then");
    check("echo 'a");
    check("a\0b");
    check("git pu\\\nsh");
    check("git status\r#; rm x");
    check("git status \\\r\nrm x");
    check("git status\\\t#; rm x");
    check("git status\n\\rm x");
    check("git status\n\\ rm x");
    check("git >/dev/null push");
    check("*x=1");
    check("!\"a\"");
    check("x=$\nrm y\n");
    check("''\\rm x");
    check("((x))");
    check("x='a[$(b)]'; test -v \"$x\"");
    check("PS4='$(b)'; set -x");
    check("alias a=b");
    check("hash -p /bin/a b");
    check("let x");
    check("bash -s a <<< b");
    check("bash <(a)");
    check("env -iS 'a b'");
    check("git -c alias.p=push p");
    check(&"(".repeat(5_000));
    check(&format!("{}a{}", "$(".repeat(300), ")".repeat(300)));
}

/// A random script whose commands all have names of their own, which nothing on the machine has.
fn scripts() -> impl Strategy<Value = String> {
    let name = || (0..40u32).prop_map(|n| format!("cmd{n}q"));
    let leaf = prop_oneof![
        name(),
        name().prop_map(|name| format!("{name} a 'b c' \"d\"")),
        name().prop_map(|name| format!("\"{name}\" x")),
        name().prop_map(|name| format!("{}\\{} x", &name[..2], &name[2..])),
        name().prop_map(|name| format!("'{}'{} x", &name[..3], &name[3..])),
        name().prop_map(|name| format!("{name} 2>&1 >/dev/null")),
    ];
    leaf.prop_recursive(4, 24, 3, move |inner| {
        let pair = (inner.clone(), inner.clone());
        let command = (0..40u32).prop_map(|n| format!("cmd{n}q"));
        prop_oneof![
            pair.clone().prop_map(|(a, b)| format!("{a}; {b}")),
            pair.clone().prop_map(|(a, b)| format!("{a} && {b}")),
            pair.clone().prop_map(|(a, b)| format!("{a} || {b}")),
            pair.clone().prop_map(|(a, b)| format!("{a}\n{b}")),
            pair.clone().prop_map(|(a, b)| format!("if {a}; then :; else {b}; fi")),
            pair.clone().prop_map(|(a, b)| format!("case $( {a} ) in x) :;; *) {b};; esac")),
            pair.prop_map(|(a, b)| format!("until ( {a} ) || true; do :; done; {{ {b}; }}")),
            inner.clone().prop_map(|a| format!("( {a} )")),
            inner.clone().prop_map(|a| format!("{{ {a}; }}")),
            inner.clone().prop_map(|a| format!("for i in 1 2; do {a}; done")),
            inner.clone().prop_map(|a| format!("f() {{ {a}; }}; f")),
            inner.clone().prop_map(|a| format!("[[ -n $( {a} ) ]]")),
            inner.clone().prop_map(|a| format!("bash -c '{}'", a.replace('\'', "'\\''"))),
            (command.clone(), inner.clone()).prop_map(|(name, a)| format!("{name} \"x $( {a} )\"")),
            (command.clone(), inner.clone()).prop_map(|(name, a)| format!("{name} <( {a} ) <<< $( {a} )")),
            (command.clone(), inner.clone())
                .prop_map(|(name, a)| format!("{{ {name} <<EOF\n$( {a} )\nEOF\n}}")),
            (command.clone(), inner.clone()).prop_map(|(name, a)| format!("{name} y | ( {a} )")),
            (command, inner).prop_map(|(name, a)| format!("v=$( {a} ); {name} \"$v\"")),
        ]
    })
}

/// Random pieces, most of which are no script; what two readers could take for different things is among them.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        " ",
        "\t",
        "\n",
        "\r",
        "\r\n",
        "\u{b}",
        "\u{c}",
        "\u{a0}",
        "\u{2003}",
        "\u{85}",
        "\u{feff}",
        "\\",
        "\\ ",
        "#",
        " #",
        ";",
        "&",
        "|",
        "'",
        "\"",
        "$'",
        "\\'",
        "\\\"",
        "$",
        "$(",
        ")",
        "(",
        "{ ",
        ";}",
        "`",
        "<<E\n",
        "E\n",
        "\nE\n",
        "<<'E'\n",
        "<<-E\n",
        "<<<",
        ">",
        "<",
        "<(",
        "((",
        "))",
        "!",
        "! ",
        "[[ ",
        " ]]",
        "&&",
        "||",
        "=",
        "x=",
        "{a,b}",
        "*",
        "~",
        "if ",
        "; then ",
        "; fi",
        "for i in 1; do ",
        "; done",
        "case a in a) ",
        ";; esac",
        "f() ",
        "time ",
        "cmd1q",
        "cmd2q",
        "cmd3q ",
        " cmd4q",
        "cmd5q",
        ";cmd6q",
        "\ncmd7q",
        "${x",
        "}",
        "${x:-",
    ]);
    prop::collection::vec(piece, 1..9).prop_map(|pieces| pieces.concat())
}

/// The names that bash itself looked for when it ran the text.
fn run_by_bash(text: &str) -> BTreeSet<String> {
    let log = tempfile::NamedTempFile::new().unwrap();
    let not_found =
        "() { case $1 in bash) /bin/bash \"${@:2}\";; *) printf '%s\\0' \"$1\" >> \"$CALLS\";; esac; }";
    let place = tempfile::tempdir().unwrap();
    let mut bash = Process::new("/bin/bash");
    bash.current_dir(place.path()).env_clear();
    bash.args(["-c", text]).env_clear().env("PATH", "/nowhere").env("CALLS", log.path());
    bash.env("BASH_FUNC_command_not_found_handle%%", not_found);
    let ran = bash.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    assert!(ran.is_ok(), "bash runs");
    let calls = std::io::read_to_string(log.reopen().unwrap()).unwrap();
    calls.split_terminator('\0').map(str::to_owned).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Whatever the nesting, every command that bash runs is among those that were found.
    #[test]
    fn nothing_that_runs_is_missed(text in scripts()) {
        let read = script(&text);
        let nests = text.matches("<<EOF").count() > 1;
        prop_assert!(nests || read.unknown().is_none(), "{} holds {:?}", text, read.unknown());
        if read.unknown().is_some() {
            return Ok(());
        }
        let found: BTreeSet<&str> = read.commands.iter().map(|command| command.words[0].text.as_str()).collect();
        for name in run_by_bash(&text) {
            prop_assert!(found.contains(name.as_str()), "{} runs {} and only {:?} was found", text, name, found);
        }
    }

    /// Where both can read a text, both see the same commands in it.
    #[test]
    fn no_piece_hides_a_command(text in pieces()) {
        let read = script(&text);
        if read.unknown().is_none() {
            let found: BTreeSet<&str> = read.commands.iter().map(|command| command.words[0].text.as_str()).collect();
            for name in run_by_bash(&text) {
                prop_assert!(found.contains(name.as_str()), "{:?} runs {} and only {:?} was found", text, name, found);
            }
        }
    }

    /// No text makes the reader fall over, and a text of words alone is read as bash reads it.
    #[test]
    fn any_text_is_read(text in "[ -~\n]{0,60}") {
        drop(script(&text));
    }
}
