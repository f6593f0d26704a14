//! Which commands only read, whatever the files they are given hold.

use super::{Command, Script, Word};

/// A command that does more than read only where its words say so.
struct Reader {
    name: &'static str,
    /// Letters of options that do more, anywhere among those behind one dash.
    letters: &'static str,
    /// Long options that do more; they may be cut short.
    long: &'static [&'static str],
    /// What words that do more begin with.
    begins: &'static [&'static str],
    /// Whether a word that is no option is only read.
    takes_words: bool,
}

impl Script {
    /// Whether every command of it only reads, and it does nothing beside. What cannot be known is not known to.
    ///
    /// Programs that take others from settings, such as git, are not among them: what its pager or its filters do, no text
    /// tells.
    pub(crate) fn only_reads(&self) -> bool {
        !self.commands.is_empty() && self.beside.is_empty() && self.commands.iter().all(Command::only_reads)
    }
}

impl Command {
    fn only_reads(&self) -> bool {
        let Some((name, rest)) = self.words.split_first() else { return false };
        let is_named = |named: &str| name.is_known && name.text == named;
        HARMLESS.iter().any(|harmless| is_named(harmless))
            || READERS.iter().any(|reader| is_named(reader.name) && reader.only_reads(rest))
    }
}

impl Reader {
    fn only_reads(&self, words: &[Word]) -> bool {
        // A word that is only known when it runs may be one of the options that do more.
        words.iter().all(|word| word.is_known && !self.does_more(&word.text))
    }

    fn does_more(&self, word: &str) -> bool {
        if self.begins.iter().any(|begin| word.starts_with(begin)) {
            return true;
        }
        if let Some(long) = word.strip_prefix("--") {
            let name = long.split('=').next().unwrap_or(long);
            return self.long.iter().any(|option| option.starts_with(name));
        }
        match word.strip_prefix('-') {
            Some(letters) => letters.contains(|letter| self.letters.contains(letter)),
            None => !self.takes_words && !word.starts_with('+'),
        }
    }
}

/// Commands without any option to write, to run another program or to reach the network.
const HARMLESS: [&str; 38] = [
    "[",
    "basename",
    "cat",
    "cd",
    "cksum",
    "cmp",
    "comm",
    "cut",
    "df",
    "dirname",
    "du",
    "echo",
    "egrep",
    "expr",
    "false",
    "fgrep",
    "fold",
    "grep",
    "head",
    "id",
    "join",
    "ls",
    "md5sum",
    "nl",
    "od",
    "paste",
    "pwd",
    "readlink",
    "realpath",
    "seq",
    "sha256sum",
    "stat",
    "tail",
    "test",
    "tr",
    "true",
    "wc",
    "whoami",
];

const READERS: [Reader; 6] = [
    Reader { name: "date", letters: "s", long: &["set"], begins: &[], takes_words: false },
    Reader { name: "diff", letters: "l", long: &["paginate"], begins: &[], takes_words: true },
    Reader {
        name: "find",
        letters: "",
        long: &[],
        begins: &["-exec", "-ok", "-delete", "-fprint", "-fls"],
        takes_words: true,
    },
    Reader { name: "printf", letters: "v", long: &[], begins: &[], takes_words: true },
    Reader {
        name: "sort",
        letters: "o",
        long: &["output", "compress-program"],
        begins: &[],
        takes_words: true,
    },
    // Its second word is a file that it writes.
    Reader { name: "uniq", letters: "", long: &[], begins: &[], takes_words: false },
];

#[cfg(test)]
#[cfg(feature = "shell")]
mod tests {
    use super::super::script;

    #[test]
    fn what_only_reads() {
        let check = |text: &str, expect: bool| {
            let script = script(text);
            assert_eq!(script.only_reads(), expect, "{text}: {script:?}");
        };
        for text in [
            "ls -la src",
            "cat *.md | head -n 3; wc -l < README.md",
            "cd src && grep -rn \"$word\" . 2>/dev/null",
            "find . -name '*.rs' -newer Cargo.toml -print",
            "for f in a b; do cat \"$f\"; done",
            "if test -f a; then cat a; else echo none >&2; fi",
            "cat <<'END'\nwords\nEND",
            "printf '%s\\n' a | sort -k1,2 -u | uniq -c",
            "date +%s; date -u",
            "diff -u a b",
            "cat <(ls a) <(ls b)",
        ] {
            check(text, true);
        }
        for text in [
            "rm x",
            "ls; rm x",
            "cat a > b",
            "cat a >> b",
            "ls | tee b",
            "cat $(rm x)",
            "cat <(rm x)",
            "$x a",
            "x=rm; $x a",
            "PATH=/tmp cat a",
            "LD_PRELOAD=./x.so ls",
            "find . -delete",
            "find . -exec cat {} ;",
            "find . -fprint0 x",
            "find . $how",
            "sort -o a a",
            "sort -uo a a",
            "sort --outp=a a",
            "sort $a",
            "sort *",
            "uniq a b",
            "date -s now",
            "date --se=now",
            "date 01010000",
            "printf -v x y",
            "cat() { rm x; }; cat",
            "sudo cat a",
            "xargs cat",
            "bash -c 'cat a'",
            "./cat a",
            "eval ls",
            "alias ls=rm; ls",
            "git status",
            "rg x",
            "curl a",
            "ls > $x",
            "cat < /dev/tcp/host/1",
            "echo ${x:=y}",
            "ls (",
            "",
            "# nothing",
        ] {
            check(text, false);
        }
    }
}
