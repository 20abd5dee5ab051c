//! The programs of `metes reproduce compact-fit-partition`.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use metes_cases::partition::{Beside, Program, reproduce};
use metes_lab::Report;

use super::recorded::Recorder;
use crate::error::Failure;

/// Rows with an index, a join, a delete and a vacuum, in memory.
const SQL: &str = "create table t(a integer primary key, b text, c real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 40000)
insert into t select i, 'row ' || i || hex(zeroblob(i % 40)), i * 0.5 from n;
create index u on t(b); create table s as select a, b from t where a % 3 = 0;
select count(*) from t join s using (b); delete from t where a % 7 = 0; vacuum;
select sum(length(b)) from t;";

/// Lists in a hash, strings built and cut, as an editor keeps lines.
const PERL: &str = r#"my %lines; for my $i (1..20000) {
push @{$lines{$i % 997}}, join(" ", map { "word" . ($i * $_ % 211) } 1..($i % 9)); }
for my $k (keys %lines) { my $text = join("\n", @{$lines{$k}}); $text =~ s/word(\d)/w$1/g;
$lines{$k} = [split /\n/, $text] if $k % 3; delete $lines{$k} if $k % 5 == 0; }
print scalar(keys %lines), "\n";"#;

/// Trees of small objects with text, built and torn down, as a browser keeps pages.
const PYTHON: &str = "import json, random
random.seed(1)
def tree(d):
    return {'tag': 'n%d' % d, 'text': 'x' * random.randrange(200),
            'children': [tree(d - 1) for _ in range(random.randrange(1, 6))] if d else []}
pages = []
for i in range(60):
    pages.append(tree(5))
    if len(pages) > 20: pages.pop(random.randrange(20))
print(sum(len(json.dumps(p)) for p in pages))";

/// The C that the compiler compiles: many functions over a few structures.
fn source() -> String {
    let mut text = String::from(
        "struct node { struct node *left, *right; long key; double weight; char name[24]; };\n",
    );
    for number in 0..300 {
        text += &format!(
            "static double f{number}(struct node *n, long k) {{\n    double s = 0;\n    \
             while (n) {{ if (n->key < k + {number}) {{ s += n->weight * {number}; n = n->left; }}\n    \
             else {{ switch (n->name[{index}]) {{ case 'a': s -= k; break; case 'b': s *= 2; break;\n    \
             default: for (long i = 0; i < k; i++) s += i * n->key; }} n = n->right; }} }}\n    \
             return s; }}\n",
            index = number % 24
        );
    }
    text += "double all(struct node *n, long k) {\n    double s = 0;\n";
    for number in 0..300 {
        text += &format!("    s += f{number}(n, k);\n");
    }
    text += "    return s;\n}\n";
    text
}

/// The compiler proper, which gcc would start.
fn compiler() -> Option<OsString> {
    let output = Command::new("gcc")
        .arg("-print-prog-name=cc1")
        .output()
        .ok()?;
    let path = String::from_utf8(output.stdout).ok()?;
    let path = path.trim();
    Path::new(path).is_absolute().then(|| OsString::from(path))
}

/// A program by name, how it is called, and what others measured of it.
type Recorded = (&'static str, Vec<OsString>, Vec<Beside>);

fn commands(directory: &Path) -> Result<Vec<Recorded>, Failure> {
    let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
    let traces = |compact, tlsf, wanted| Beside::Traces {
        compact,
        tlsf,
        wanted,
    };
    let mut commands = vec![
        (
            "sqlite3",
            words(&["sqlite3", ":memory:", SQL]),
            vec![traces(1.24, 1.01, 1.10)],
        ),
        (
            "perl",
            words(&["perl", "-e", PERL]),
            vec![
                traces(1.51, 1.25, 1.25),
                Beside::Program {
                    name: "Emacs",
                    tlsf: 25.7,
                    compact: 34.6,
                },
            ],
        ),
        (
            "python3",
            words(&["env", "PYTHONMALLOC=malloc", "python3", "-S", "-c", PYTHON]),
            vec![Beside::Program {
                name: "Hummingbird",
                tlsf: 203.7,
                compact: 245.3,
            }],
        ),
    ];
    if let Some(compiler) = compiler() {
        let file = directory.join("all.c");
        crate::output::write_file(&file, source().as_bytes())?;
        let mut command = vec![compiler];
        command.extend(words(&["-quiet", "-O2", "-o", "/dev/null"]));
        command.push(file.into_os_string());
        commands.insert(2, ("cc1", command, vec![traces(2.17, 1.14, 1.30)]));
    }
    Ok(commands)
}

/// Records the programs and explores partitions on them.
pub(super) fn run(tell: &dyn Fn(&str)) -> Result<Report, Failure> {
    let mut recorder = Recorder::new(tell)?;
    let mut programs = Vec::new();
    for (name, command, beside) in commands(recorder.directory())? {
        if let Some(events) = recorder.record(name, &command)? {
            programs.push(Program {
                name: name.to_owned(),
                events,
                beside,
            });
        }
    }
    let mut report = reproduce(&programs, tell);
    report.assumptions.extend(recorder.missing());
    Ok(report)
}
