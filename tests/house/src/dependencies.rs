//! The rules for registry crates: licences that a product may carry, one version of each, none that is known to be
//! forsaken, none that asks for a newer compiler than the workspace promises. Nothing is asked of the network.
//!
//! Invariant: an exception stands here with its reason, and one that is no longer needed breaks the rule, too.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use spdx::Expression;

/// Licences that any product may carry: permissive ones.
pub const LICENCES: [&str; 13] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Crates in the tree in two versions, and who holds the older one.
pub const TWICE: [(&str, &str); 12] = [
    ("allocator-api2", "regalloc2 and bumpalo, of cranelift"),
    ("bitflags", "region, of cranelift-jit"),
    ("cpufeatures", "sha2, of wasmtime"),
    ("getrandom", "ahash"),
    ("hashbrown", "cranelift-codegen and regalloc2"),
    ("itertools", "criterion"),
    ("libloading", "ash"),
    ("miniz_oxide", "png"),
    ("num-bigint", "num-rational"),
    ("signal-hook", "crossterm"),
    ("syn", "procedural macros that have not moved on"),
    ("wasmparser", "wasmi"),
];

/// Crates that advisories of RustSec call unmaintained: none of them may come in unseen. The list can only be as new
/// as this file; whoever has the advisories asks `cargo deny check advisories`.
pub const FORSAKEN: [(&str, &str); 14] = [
    ("ansi_term", "RUSTSEC-2021-0139"),
    ("atty", "RUSTSEC-2024-0375"),
    ("backoff", "RUSTSEC-2025-0012"),
    ("bincode", "RUSTSEC-2025-0141"),
    ("derivative", "RUSTSEC-2024-0388"),
    ("fxhash", "RUSTSEC-2025-0057"),
    ("instant", "RUSTSEC-2024-0384"),
    ("number_prefix", "RUSTSEC-2025-0119"),
    ("paste", "RUSTSEC-2024-0436"),
    ("proc-macro-error", "RUSTSEC-2024-0370"),
    ("rustls-pemfile", "RUSTSEC-2025-0134"),
    ("term_size", "RUSTSEC-2020-0163"),
    ("wee_alloc", "RUSTSEC-2022-0054"),
    ("yaml-rust", "RUSTSEC-2024-0320"),
];

/// Those that are in the tree nonetheless, and why they may stay.
pub const KEPT: [(&str, &str); 1] = [(
    "paste",
    "spacepackets makes names of its counters with it: a macro, of which nothing is in what is built",
)];

/// A crate that is built for this machine, by `cargo tree`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Built {
    /// Its name.
    pub name: String,
    /// Its version, as it stands in the lock file.
    pub version: String,
    /// Its licence, an expression of SPDX; empty if it names none.
    pub licence: String,
}

/// What `cargo tree --prefix none -f '{p}|{l}'` lists, each crate once, without those of the workspace.
#[must_use]
pub fn built(tree: &str) -> BTreeSet<Built> {
    tree.lines()
        .filter_map(|line| {
            let (package, licence) = line.split_once('|')?;
            let mut words = package.split_whitespace();
            let (name, version) = (words.next()?, words.next()?);
            // Behind the version: the path of a crate of the workspace.
            let ours = words.any(|word| word.starts_with("(/"));
            (!ours).then(|| Built {
                name: name.to_owned(),
                version: version.trim_start_matches('v').to_owned(),
                licence: licence.trim_end_matches(" (*)").to_owned(),
            })
        })
        .collect()
}

/// What crates break of the rules, a sentence each.
#[must_use]
pub fn broken_dependencies(built: &BTreeSet<Built>) -> Vec<String> {
    let mut broken = Vec::new();
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for Built {
        name,
        version,
        licence,
    } in built
    {
        versions.entry(name).or_default().push(version);
        if !permits(licence) {
            broken.push(format!(
                "{name} {version} is under '{licence}': no licence of LICENCES allows it"
            ));
        }
        let kept = KEPT.iter().any(|(kept, _)| kept == name);
        if let Some((_, advisory)) = FORSAKEN
            .iter()
            .find(|(forsaken, _)| forsaken == name && !kept)
        {
            broken.push(format!("{name} {version} is unmaintained: {advisory}"));
        }
    }
    for (name, versions) in &versions {
        let known = TWICE.iter().any(|(twice, _)| twice == name);
        if versions.len() > 1 && !known {
            broken.push(format!(
                "{name} is there as {}: move to one, or name in TWICE who holds the older",
                versions.join(" and ")
            ));
        }
    }
    for (name, why) in KEPT {
        if !versions.contains_key(name) {
            broken.push(format!("{name} is not there: take it from KEPT ({why})"));
        }
    }
    for (name, holder) in TWICE {
        if versions.get(name).is_none_or(|versions| versions.len() < 2) {
            broken.push(format!(
                "{name} is there once: take it from TWICE ({holder})"
            ));
        }
    }
    broken
}

/// Whether a licence, an expression of SPDX or several names with a slash, lets any product carry the crate.
fn permits(licence: &str) -> bool {
    let named = licence.replace('/', " OR ");
    Expression::parse(&named).is_ok_and(|expression| {
        expression.evaluate(|asked| LICENCES.contains(&asked.to_string().as_str()))
    })
}

/// Crates of the full metadata (`cargo metadata`) among `built` that ask for a newer compiler than `promised`.
///
/// # Panics
/// When it is no such metadata.
#[must_use]
pub fn too_new(metadata: &Value, built: &BTreeSet<Built>, promised: &str) -> Vec<String> {
    let packages = metadata["packages"].as_array().expect("packages");
    packages
        .iter()
        .filter_map(|package| {
            let (name, version) = (package["name"].as_str()?, package["version"].as_str()?);
            let asked = package["rust_version"].as_str()?;
            let is_built = built
                .iter()
                .any(|crate_| crate_.name == name && crate_.version == version);
            (is_built && minor(asked) > minor(promised))
                .then(|| format!("{name} {version} asks for Rust {asked}; {promised} is promised"))
        })
        .collect()
}

/// What packages of the full metadata (`cargo metadata`) are made of that asks for a newer compiler than they promise
/// themselves. What only tests need is left out: who uses a package does not build its tests.
///
/// # Panics
/// When it is no such metadata.
#[must_use]
pub fn broken_promises(metadata: &Value) -> Vec<String> {
    let list = |value: &Value| value.as_array().expect("a list").clone();
    let packages: BTreeMap<String, Value> = list(&metadata["packages"])
        .into_iter()
        .map(|package| (package["id"].as_str().expect("an id").to_owned(), package))
        .collect();
    let needs: BTreeMap<String, Vec<String>> = list(&metadata["resolve"]["nodes"])
        .iter()
        .map(|node| {
            let kept = list(&node["deps"])
                .into_iter()
                .filter(|dependency| {
                    list(&dependency["dep_kinds"])
                        .iter()
                        .any(|kind| kind["kind"] != "dev")
                })
                .filter_map(|dependency| Some(dependency["pkg"].as_str()?.to_owned()))
                .collect();
            (node["id"].as_str().expect("an id").to_owned(), kept)
        })
        .collect();
    let mut broken = Vec::new();
    for own in list(&metadata["workspace_members"]) {
        let own = own.as_str().expect("an id");
        let (name, promised) = (
            &packages[own]["name"],
            packages[own]["rust_version"].as_str().unwrap_or("0.0"),
        );
        let (mut seen, mut ahead) = (BTreeSet::new(), vec![own.to_owned()]);
        while let Some(id) = ahead.pop() {
            if !seen.insert(id.clone()) {
                continue;
            }
            ahead.extend(needs.get(&id).into_iter().flatten().cloned());
            let asked = packages[&id]["rust_version"].as_str().unwrap_or("0.0");
            if minor(asked) > minor(promised) {
                let other = &packages[&id]["name"];
                broken.push(format!("{name} promises Rust {promised}, but is made of {other}, which asks for {asked}"));
            }
        }
    }
    broken
}

/// The first two numbers of a version.
fn minor(version: &str) -> (u32, u32) {
    let mut numbers = version.split('.').map(|part| part.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use serde_json::json;

    use super::*;

    fn cargo(arguments: &[&str]) -> String {
        let output = Command::new(env!("CARGO"))
            .args(arguments)
            .args(["--offline", "--locked"])
            .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
            .output()
            .expect("cargo runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        String::from_utf8(output.stdout).expect("text")
    }

    fn tree() -> BTreeSet<Built> {
        let arguments = "tree --workspace --edges normal,build,dev --prefix none --format {p}|{l}";
        built(&cargo(&arguments.split(' ').collect::<Vec<_>>()))
    }

    #[test]
    fn registry_crates_keep_the_rules() {
        let tree = tree();
        assert!(tree.len() > 100, "{} crates", tree.len());
        let broken = broken_dependencies(&tree);
        assert!(
            broken.is_empty(),
            "\n{}\n(the rules: tests/house/src/dependencies.rs)",
            broken.join("\n")
        );
    }

    #[test]
    fn no_crate_asks_for_a_newer_compiler() {
        let host = Command::new("rustc").arg("-vV").output().expect("rustc");
        let host = String::from_utf8_lossy(&host.stdout).into_owned();
        let host = host
            .lines()
            .find_map(|line| line.strip_prefix("host: "))
            .expect("a host");
        let text = cargo(&[
            "metadata",
            "--format-version",
            "1",
            "--filter-platform",
            host,
        ]);
        let metadata = serde_json::from_str(&text).expect("metadata");
        let newer = too_new(&metadata, &tree(), env!("CARGO_PKG_RUST_VERSION"));
        assert!(newer.is_empty(), "\n{}", newer.join("\n"));
        let broken = broken_promises(&metadata);
        assert!(broken.is_empty(), "\n{}", broken.join("\n"));
    }

    #[test]
    fn what_breaks_a_rule_is_named() {
        let listed = "metes-heap v0.1.0 (/w/core/heap)|MIT\na v1.0.0|GPL-3.0-only (*)\nb v1.0.0|MIT/Apache-2.0\n\
                      b v2.0.0|MIT OR GPL-2.0-only\natty v0.2.14|MIT AND GPL-2.0-only\nc v1.0.0 (proc-macro)|\n";
        let mut broken = broken_dependencies(&built(listed));
        broken.retain(|line| !line.contains("take it from"));
        assert_eq!(
            broken,
            [
                "a 1.0.0 is under 'GPL-3.0-only': no licence of LICENCES allows it",
                "atty 0.2.14 is under 'MIT AND GPL-2.0-only': no licence of LICENCES allows it",
                "atty 0.2.14 is unmaintained: RUSTSEC-2024-0375",
                "c 1.0.0 is under '': no licence of LICENCES allows it",
                "b is there as 1.0.0 and 2.0.0: move to one, or name in TWICE who holds the older",
            ]
        );
        assert!(broken_dependencies(&built(listed)).len() == 5 + KEPT.len() + TWICE.len());
        let metadata =
            json!({ "packages": [{ "name": "b", "version": "2.0.0", "rust_version": "1.91.1" }] });
        assert_eq!(
            too_new(&metadata, &built(listed), "1.90"),
            ["b 2.0.0 asks for Rust 1.91.1; 1.90 is promised"]
        );
        assert!(too_new(&metadata, &built(listed), "1.91").is_empty());
        let made_of = |kind: &str| {
            json!({
                "packages": [{ "id": "a", "name": "a", "rust_version": "1.90" },
                             { "id": "b", "name": "b", "rust_version": "1.91.1" }],
                "workspace_members": ["a"],
                "resolve": { "nodes": [{ "id": "a", "deps": [{ "pkg": "b", "dep_kinds": [{ "kind": kind }] }] },
                                       { "id": "b", "deps": [] }] },
            })
        };
        assert_eq!(
            broken_promises(&made_of("build")),
            ["\"a\" promises Rust 1.90, but is made of \"b\", which asks for 1.91.1"]
        );
        assert!(broken_promises(&made_of("dev")).is_empty());
    }
}
