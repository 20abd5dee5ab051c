//! Real programs do on every heap exactly what they do without.
//!
//! Each runs once as it is and once on every heap; exit status, output and
//! files must be equal byte for byte.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::{directory, heaps, is_slow, preload, run};

/// What a run left: status, output, and the files of its directory.
#[derive(PartialEq, Eq)]
struct Outcome {
    status: String,
    output: Vec<u8>,
    errors: Vec<u8>,
    files: BTreeMap<String, Vec<u8>>,
}

impl std::fmt::Debug for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes);
            let beginning: String = text.chars().take(600).collect();
            format!("{} bytes: {beginning}", bytes.len())
        };
        writeln!(f, "{}", self.status)?;
        writeln!(f, "output {}", shown(&self.output))?;
        writeln!(f, "errors {}", shown(&self.errors))?;
        for (name, bytes) in &self.files {
            writeln!(f, "{name}: {} bytes", bytes.len())?;
        }
        Ok(())
    }
}

/// A program run in a directory with `files`; `SIZE` in its text stands for
/// how much it does.
struct Job<'a> {
    command: &'a [&'a str],
    files: &'a [(&'a str, &'a str)],
    variables: &'a [(&'a str, &'a str)],
    /// How much on quick heaps, and on those that search lists.
    sizes: [u32; 2],
}

impl Job<'_> {
    fn outcome(&self, heap: Option<&str>, size: u32) -> Outcome {
        let directory = directory("job");
        let sized = |text: &str| text.replace("SIZE", &size.to_string());
        for (name, text) in self.files {
            fs::write(directory.join(name), sized(text)).expect("a new directory is writable");
        }
        let mut command = Command::new(self.command[0]);
        command
            .args(self.command[1..].iter().map(|word| sized(word)))
            .envs(self.variables.iter().copied())
            .env("LC_ALL", "C.UTF-8")
            .env("HOME", &directory)
            .current_dir(&directory);
        if let Some(heap) = heap {
            preload(&mut command, heap);
        }
        let done = run(&mut command);
        let outcome = Outcome {
            status: done.status.to_string(),
            output: done.stdout,
            errors: done.stderr,
            files: files(&directory),
        };
        fs::remove_dir_all(&directory).expect("its own directory can be removed");
        outcome
    }

    #[track_caller]
    fn same_everywhere(&self) {
        let plain = self.sizes.map(|size| self.outcome(None, size));
        for outcome in &plain {
            assert_eq!(outcome.status, "exit status: 0", "{outcome:?}");
            let silent = outcome.output.is_empty() && outcome.files.len() == self.files.len();
            assert!(!silent, "the program did nothing: {outcome:?}");
        }
        for heap in heaps() {
            let kind = usize::from(is_slow(heap));
            let outcome = self.outcome(Some(heap), self.sizes[kind]);
            assert!(
                outcome == plain[kind],
                "on {heap}: {outcome:?}\nwithout: {:?}",
                plain[kind]
            );
        }
    }
}

/// The plain files of a directory (not of those within it).
fn files(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(directory).expect("its own directory can be read");
    entries
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
        .map(|entry| {
            let bytes = fs::read(entry.path()).expect("its own file can be read");
            (entry.file_name().to_string_lossy().into_owned(), bytes)
        })
        .collect()
}

#[test]
fn python() {
    let script = r#"
import collections, json, re, zlib
words = ["w%d" % (i * 7919 % 5003) for i in range(SIZE)]
count = collections.Counter(words)
tree = {}
for word in words:
    node = tree
    for letter in word:
        node = node.setdefault(letter, {})
text = json.dumps(tree, sort_keys=True)
assert json.loads(text) == tree
print(len(text), count.most_common(3), zlib.crc32(text.encode()))
print(len(re.findall(r"\d+", " ".join(words))), sum(len(str(3 ** i)) for i in range(300)))
keep = [bytearray(i % 5000) for i in range(SIZE // 10)]
del keep[::2]
print(sum(map(len, keep)), sorted(set(words))[:5])
"#;
    Job {
        command: &["/usr/bin/python3", "script.py"],
        files: &[("script.py", script)],
        // Every object of Python by malloc, not only the large ones.
        variables: &[
            ("PYTHONMALLOC", "malloc"),
            ("PYTHONHASHSEED", "0"),
            ("PYTHONDONTWRITEBYTECODE", "1"),
        ],
        sizes: [20000, 2000],
    }
    .same_everywhere();
}

#[test]
fn sqlite3() {
    let script = "
create table item(id integer primary key, name text, weight real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < SIZE)
  insert into item select i, printf('item %d', i * 7919 % 104729), i * 0.37 from n;
create index by_name on item(name);
begin;
update item set weight = weight * 2 where id % 3 = 0;
delete from item where id % 7 = 0;
commit;
select count(*), sum(weight), min(name), max(name) from item;
select a.name, b.weight from item a join item b on a.id = b.id + 1 order by a.name limit 20;
select substr(name, 1, 7) as n, count(*), group_concat(id, '-') from item group by n order by n limit 5;
vacuum;
";
    Job {
        command: &[
            "sqlite3",
            "-batch",
            "-init",
            "script.sql",
            "items.db",
            ".quit",
        ],
        files: &[("script.sql", script)],
        variables: &[],
        sizes: [20000, 5000],
    }
    .same_everywhere();
}

#[test]
fn gcc() {
    let source = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define REPEAT(n) \
    int f##n(int x) { int s = 0; for (int i = 0; i < x; i++) { switch (i % 7) { \
        case 0: s += i * n; break; case 1: s ^= i; break; default: s -= x / (i + 1); } } \
        return s; }
REPEAT(1) REPEAT(2) REPEAT(3) REPEAT(4) REPEAT(5) REPEAT(6) REPEAT(7) REPEAT(8)
struct node { struct node *left, *right; char name[16]; };
struct node *insert(struct node *root, const char *name) {
    if (!root) { root = calloc(1, sizeof *root); strncpy(root->name, name, 15); return root; }
    if (strcmp(name, root->name) < 0) root->left = insert(root->left, name);
    else root->right = insert(root->right, name);
    return root;
}
int main(int argc, char **argv) {
    struct node *root = NULL;
    for (int i = 0; i < argc; i++) root = insert(root, argv[i]);
    printf("%d %d %s\n", f1(SIZE), f2(3) + f3(4) + f4(5) + f5(6) + f6(7) + f7(8) + f8(9), root->name);
}
"#;
    Job {
        command: &["gcc", "-O2", "-Wall", "-c", "source.c", "-o", "source.o"],
        files: &[("source.c", source)],
        variables: &[],
        sizes: [1000, 1000],
    }
    .same_everywhere();
}

#[test]
fn perl() {
    let script = r#"
use strict;
my %count;
my @lines = map { join ' ', map { 'k' . ($_ * 31 % 997) } $_ .. $_ + 9 } 1 .. SIZE;
for my $line (@lines) { $count{$_}++ for split / /, $line; }
my $text = join "\n", @lines;
my $n = () = $text =~ /k(\d)\1/g;
$text =~ s/k(\d+)/<$1>/g;
print scalar(keys %count), " $n ", length $text, "\n";
print "$_ $count{$_}\n" for (sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count)[0 .. 9];
my @tree = ([]); for (1 .. SIZE) { my $node = [$_, [@{$tree[-1]}[0 .. 3]]]; push @tree, $node; shift @tree if @tree > 50; }
printf "%d %s\n", scalar @tree, join ',', map { $_->[0] } @tree[0 .. 3];
"#;
    Job {
        command: &["perl", "script.pl"],
        files: &[("script.pl", script)],
        variables: &[("PERL_HASH_SEED", "0")],
        sizes: [3000, 1000],
    }
    .same_everywhere();
}

#[test]
fn git() {
    let script = r#"
set -e
git init -q -b main repo
cd repo
i=0
while [ $i -lt SIZE ]; do
    i=$((i + 1))
    seq $i $((i * 50)) > file$((i % 5))
    mkdir -p d$((i % 3)) && echo "$i" > d$((i % 3))/n$i
    git add -A
    git commit -q -m "commit $i"
done
git log --stat --format='%h %s %an' | tail -n 40
git rev-parse HEAD
git -c pack.threads=2 gc -q
git fsck --strict
git log -p -3 --format=%H
git grep -c 1 HEAD | sort | head
git diff --stat HEAD~2
git blame file1 | tail -n 3
git status --short
"#;
    let date = "2026-01-02T03:04:05+0000";
    Job {
        command: &["sh", "script.sh"],
        files: &[("script.sh", script)],
        variables: &[
            ("GIT_AUTHOR_DATE", date),
            ("GIT_COMMITTER_DATE", date),
            ("GIT_AUTHOR_NAME", "A"),
            ("GIT_AUTHOR_EMAIL", "a@example.org"),
            ("GIT_COMMITTER_NAME", "A"),
            ("GIT_COMMITTER_EMAIL", "a@example.org"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_PAGER", "cat"),
        ],
        sizes: [6, 6],
    }
    .same_everywhere();
}

#[test]
fn jq() {
    let filter = "[range(SIZE) | {id: ., name: \"n\\(. * 7919 % 1009)\", tags: [range(. % 5)]}] \
                  | group_by(.name) | map({name: .[0].name, n: length, ids: map(.id)}) \
                  | sort_by(-.n, .name) | .[:20], (map(.n) | add), \
                  (tojson | fromjson | length)";
    Job {
        command: &["jq", "-n", filter],
        files: &[],
        variables: &[],
        sizes: [6000, 1500],
    }
    .same_everywhere();
}

#[test]
fn gawk() {
    let program = r#"
BEGIN {
    for (i = 1; i <= SIZE; i++) {
        key = "k" (i * 7919 % 3001)
        count[key]++
        line[i % 100] = line[i % 100] " " key
        if (i % 17 == 0) delete count["k" (i % 3001)]
    }
    n = asorti(count, sorted)
    for (i = 1; i <= 10; i++) print sorted[i], count[sorted[i]]
    for (i = 0; i < 100; i += 10) { gsub(/k1/, "<one>", line[i]); print length(line[i]), split(line[i], part) }
    print n, toupper(substr(line[3], 1, 30))
}
"#;
    Job {
        command: &["gawk", program],
        files: &[],
        variables: &[],
        sizes: [60000, 15000],
    }
    .same_everywhere();
}

#[test]
fn bash() {
    let script = r#"
declare -A count
for ((i = 0; i < SIZE; i++)); do
    word="w$((i * 31 % 97))"
    count[$word]=$((${count[$word]:-0} + 1))
    list+=("$word-$i")
done
echo "${#count[@]} ${count[w5]} ${#list[@]} ${list[7]} ${list[*]: -3}"
text="${list[*]}"
echo "${#text} ${text//w1/<one>}" | cksum
seq 20 | while read -r n; do echo "$(echo "$n" | tr 0-9 a-j)"; done
( exec sh -c 'echo in a child; exit 3' ) || echo "left with $?"
printf '%s\n' "${!count[@]}" | sort | head -n 4
mapfile -t lines < <(seq 500); echo "${lines[499]}"
"#;
    Job {
        command: &["bash", "script.sh"],
        files: &[("script.sh", script)],
        variables: &[],
        sizes: [3000, 1000],
    }
    .same_everywhere();
}

/// Text that compresses neither well nor not at all.
fn compressible() -> String {
    let mut state = 1u32;
    let mut text = String::new();
    while text.len() < 3 << 20 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        text.push_str(&format!(
            "line {} of {:x}\n",
            state >> 20,
            state >> (state >> 28)
        ));
    }
    text
}

#[test]
fn pigz() {
    let script = "set -e\npigz -p 4 -b 128 -k -n -9 text && pigz -d -p 4 -c text.gz | cmp - text && cksum text.gz\n";
    Job {
        command: &["sh", "script.sh"],
        files: &[("script.sh", script), ("text", &compressible())],
        variables: &[],
        sizes: [0, 0],
    }
    .same_everywhere();
}

#[test]
fn xz() {
    let script = "set -e\nxz -T2 -1 --block-size=512KiB -k text && xz -d -T2 -c text.xz | cmp - text && cksum text.xz\n";
    Job {
        command: &["sh", "script.sh"],
        files: &[("script.sh", script), ("text", &compressible())],
        variables: &[],
        sizes: [0, 0],
    }
    .same_everywhere();
}
