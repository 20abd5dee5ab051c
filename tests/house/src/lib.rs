//! The rules of the house: what a folder is for, which folders a crate in it may know, and that crates
//! reach each other through their interfaces alone. `docs/architecture.md` has the same table in words.
//!
//! Invariant: a rule is broken only by an arrow that cargo follows or a file that a compiler includes, so
//! whoever reads the message knows the line to change.

pub mod dependencies;

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use serde_json::Value;

/// A folder of the workspace, what its crates are for, and the folders that they may know beside it.
/// Tests of a crate may know every folder but `apps`.
pub const ROLES: [(&str, &str, &[&str]); 9] = [
    (
        "core",
        "what runs anywhere: heaps, curves, contracts, layouts",
        &[],
    ),
    (
        "memory",
        "memories other than a host's own, and what is seen of them",
        &["core"],
    ),
    ("sim", "machines that are not there", &["core", "memory"]),
    (
        "tools",
        "what records, explores, proves, measures and draws, as libraries",
        &["core", "memory", "sim"],
    ),
    (
        "ffi",
        "libraries for other languages and for the loader",
        &["core", "memory", "tools"],
    ),
    (
        "missions",
        "flight software, its instruments and its ground",
        &["core", "memory", "sim", "tools"],
    ),
    (
        "systems",
        "systems that run on what the others prove: functions at the edge, frequencies under deadlines",
        &["core", "memory", "sim", "tools"],
    ),
    (
        "apps",
        "programs",
        &["core", "memory", "sim", "tools", "missions", "systems"],
    ),
    (
        "tests",
        "what tests of several crates share",
        &["core", "memory", "sim", "tools"],
    ),
];

/// Crates that know no other crate at all, in the program that they end up in.
pub const KNOW_NOBODY: [&str; 4] = [
    "metes-heap",
    "metes-layout",
    "metes-monitor",
    "metes-random",
];

/// What the workspace's metadata (`cargo metadata --no-deps`) breaks of the rules, a sentence each.
///
/// # Panics
/// When it is no such metadata.
#[must_use]
pub fn broken_arrows(metadata: &Value) -> Vec<String> {
    let packages = metadata["packages"].as_array().expect("packages");
    let role_of: BTreeMap<&str, String> = packages
        .iter()
        .map(|package| (text(&package["name"]), role(metadata, package)))
        .collect();
    let mut broken = Vec::new();
    for package in packages {
        let name = text(&package["name"]);
        let own = &role_of[name];
        let Some((_, _, may)) = ROLES.iter().find(|(role, ..)| role == own) else {
            broken.push(format!(
                "{name} lies in {own}/, which is no folder of the house"
            ));
            continue;
        };
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            let other = text(&dependency["name"]);
            let Some(theirs) = role_of.get(other) else {
                if dependency["kind"].is_null()
                    && dependency["optional"] == Value::Bool(false)
                    && KNOW_NOBODY.contains(&name)
                {
                    broken.push(format!("{name} must know nobody, but depends on {other}"));
                }
                continue;
            };
            let in_tests = dependency["kind"] == "dev";
            let allowed = match in_tests {
                true => theirs != "apps" || own == "apps",
                false => own == theirs || may.contains(&theirs.as_str()),
            };
            if !allowed {
                broken.push(format!(
                    "{name} ({own}) may not know {other} ({theirs}): {own} knows {}",
                    match may.is_empty() {
                        true => "only itself".to_owned(),
                        false => format!("itself and {}", may.join(", ")),
                    }
                ));
            }
            if !in_tests && KNOW_NOBODY.contains(&name) {
                broken.push(format!("{name} must know nobody, but depends on {other}"));
            }
            if other == "metes-cli" {
                broken.push(format!(
                    "{name} depends on metes-cli, which nobody may know"
                ));
            }
        }
    }
    broken
}

/// Files below `root` that reach into another package by `#[path]` or by including a file of it.
///
/// # Errors
/// Of reading the sources.
pub fn broken_walls(metadata: &Value, root: &Path) -> std::io::Result<Vec<String>> {
    let packages = metadata["packages"].as_array().expect("packages");
    let houses: Vec<PathBuf> = packages.iter().map(directory).collect();
    let mut broken = Vec::new();
    for own in &houses {
        let mut sources = Vec::new();
        collect(own, &mut sources)?;
        for source in sources {
            let text = std::fs::read_to_string(&source)?;
            for named in included(&text) {
                let target = plain(&source.parent().expect("a file").join(named));
                if let Some(other) = houses
                    .iter()
                    .find(|house| *house != own && target.starts_with(house))
                {
                    let short = |path: &Path| {
                        path.strip_prefix(root)
                            .unwrap_or(path)
                            .display()
                            .to_string()
                    };
                    broken.push(format!(
                        "{} includes {named}, a file of {}: let that crate export it",
                        short(&source),
                        short(other)
                    ));
                }
            }
        }
    }
    Ok(broken)
}

fn text(value: &Value) -> &str {
    value.as_str().expect("text")
}

fn directory(package: &Value) -> PathBuf {
    Path::new(text(&package["manifest_path"]))
        .parent()
        .expect("a file")
        .to_owned()
}

/// The folder of the workspace in which a package lies.
fn role(metadata: &Value, package: &Value) -> String {
    let root = Path::new(text(&metadata["workspace_root"]));
    let own = directory(package);
    let below = own.strip_prefix(root).expect("in the workspace");
    below
        .iter()
        .next()
        .map_or_else(String::new, |role| role.to_string_lossy().into_owned())
}

/// Libraries of which cargo builds no tests although they have some.
///
/// # Errors
/// A source that cannot be read.
pub fn hidden_tests(metadata: &Value) -> std::io::Result<Vec<String>> {
    let mut hidden = Vec::new();
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let targets = packages.flat_map(|package| package["targets"].as_array().into_iter().flatten());
    let libraries = targets.filter(|target| {
        let kind = text(&target["kind"][0]);
        kind.ends_with("lib") && target["test"] == Value::Bool(false)
    });
    for library in libraries {
        let root = Path::new(text(&library["src_path"]));
        let mut sources = Vec::new();
        collect(root.parent().unwrap_or(root), &mut sources)?;
        for source in sources {
            let written = std::fs::read_to_string(&source)?;
            if written.contains("#[test]") {
                hidden.push(format!(
                    "{}: never run, as the library has `test = false`",
                    source.display()
                ));
            }
        }
    }
    Ok(hidden)
}

fn collect(folder: &Path, sources: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "target") {
                collect(&path, sources)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            sources.push(path);
        }
    }
    Ok(())
}

/// Paths that a source names in `#[path]` and in the macros that include files.
fn included(source: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for opening in ["include!(", "include_str!(", "include_bytes!(", "#[path = "] {
        for (at, _) in source.match_indices(opening) {
            let rest = source[at + opening.len()..].trim_start();
            if let Some(named) = rest
                .strip_prefix('"')
                .and_then(|rest| rest.split('"').next())
            {
                found.push(named);
            }
        }
    }
    found
}

/// A path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use serde_json::json;

    use super::*;

    fn metadata() -> Value {
        let output = Command::new(env!("CARGO"))
            .args([
                "metadata",
                "--no-deps",
                "--format-version",
                "1",
                "--offline",
            ])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .expect("cargo runs");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        serde_json::from_slice(&output.stdout).expect("metadata")
    }

    #[test]
    fn arrows_point_one_way() {
        let broken = broken_arrows(&metadata());
        assert!(
            broken.is_empty(),
            "\n{}\n(the rules: tests/house/src/lib.rs)",
            broken.join("\n")
        );
    }

    #[test]
    fn all_tests_are_built() {
        let hidden = hidden_tests(&metadata()).unwrap();
        assert!(hidden.is_empty(), "\n{}", hidden.join("\n"));
        // This library has some.
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src/lib.rs");
        let planted = json!({"packages": [{"targets": [{"kind": ["lib"], "test": false, "src_path": source}]}]});
        assert!(!hidden_tests(&planted).unwrap().is_empty());
    }

    #[test]
    fn nobody_reaches_through_a_wall() {
        let metadata = metadata();
        let root = text(&metadata["workspace_root"]).to_owned();
        let broken = broken_walls(&metadata, Path::new(&root)).unwrap();
        assert!(broken.is_empty(), "\n{}", broken.join("\n"));
    }

    #[test]
    fn the_book_tells_every_crate_and_folder() {
        let metadata = metadata();
        let root = text(&metadata["workspace_root"]);
        let book = std::fs::read_to_string(Path::new(root).join("docs/architecture.md")).unwrap();
        for package in metadata["packages"].as_array().unwrap() {
            let name = text(&package["name"]);
            assert!(
                book.contains(&format!("| `{name}` |")),
                "docs/architecture.md has no row for {name}"
            );
        }
        for (role, what, _) in ROLES {
            assert!(
                book.contains(&format!("**`{role}/`**: {what}.")),
                "docs/architecture.md: {role}: {what}"
            );
        }
    }

    fn package(name: &str, role: &str, dependencies: Value) -> Value {
        json!({ "name": name, "manifest_path": format!("/w/{role}/{name}/Cargo.toml"), "dependencies": dependencies })
    }

    #[test]
    fn arrows_that_point_back_are_named() {
        let on =
            |name: &str, kind: Value| json!([{ "name": name, "kind": kind, "optional": false }]);
        let said = |packages: Value| {
            broken_arrows(&json!({ "workspace_root": "/w", "packages": packages }))
        };
        let explore = package("metes-explore", "tools", json!([]));
        let heap = package("metes-heap", "core", on("metes-explore", Value::Null));
        assert_eq!(
            said(json!([heap, explore])),
            [
                "metes-heap (core) may not know metes-explore (tools): core knows only itself",
                "metes-heap must know nobody, but depends on metes-explore"
            ]
        );
        let tested = package("metes-heap", "core", on("metes-explore", json!("dev")));
        assert!(said(json!([tested, explore])).is_empty());
        let app = package("metes-bench", "apps", json!([]));
        let tested = package("metes-heap", "core", on("metes-bench", json!("dev")));
        assert_eq!(said(json!([tested, app])).len(), 1);
        let foreign = package("metes-heap", "core", on("libc", Value::Null));
        assert_eq!(
            said(json!([foreign])),
            ["metes-heap must know nobody, but depends on libc"]
        );
        let lost = package("metes-heap", "attic", json!([]));
        assert_eq!(
            said(json!([lost])),
            ["metes-heap lies in attic/, which is no folder of the house"]
        );
    }

    #[test]
    fn included_files_are_found() {
        let source = "#[path = \"../b/x.rs\"]\nmod x;\nconst A: &str = include_str!(\n    \"../../c/y.txt\"\n);";
        assert_eq!(included(source), ["../../c/y.txt", "../b/x.rs"]);
        assert_eq!(
            plain(Path::new("/w/core/a/src/../../b/./x")),
            Path::new("/w/core/b/x")
        );
    }
}
