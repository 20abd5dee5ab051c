//! The text of this crate, for programs that hand on a heap as source code.
//!
//! What `metes emit` writes builds without a network, and against the very heap that was
//! predicted, because it carries this text with it.
//!
//! Invariant: every file of the crate is here, but modules of tests and this one; a test
//! compares the list with the folder.

/// A file of the crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// Where it belongs, below the crate's folder, with `/` between its parts.
    pub path: &'static str,
    /// What it says.
    pub text: &'static str,
}

macro_rules! files {
    ($($path:literal)*) => {
        &[$(SourceFile {
            path: concat!("src/", $path),
            text: include_str!($path),
        }),*]
    };
}

/// The files below `src`, by path.
pub const FILES: &[SourceFile] = files! {
    "bounds.rs"
    "bounds/any_fit.rs"
    "bounds/block_table.rs"
    "bounds/compact.rs"
    "bounds/composite.rs"
    "bounds/demand.rs"
    "bounds/describe.rs"
    "bounds/error.rs"
    "bounds/first_fit.rs"
    "bounds/fragmented.rs"
    "bounds/heap.rs"
    "bounds/ordered.rs"
    "bounds/storage.rs"
    "bounds/text.rs"
    "compact/apart.rs"
    "compact/automaton.rs"
    "compact/automaton/inspect.rs"
    "compact/automaton/pins.rs"
    "compact/automaton/whole.rs"
    "compact/backing.rs"
    "compact/bits.rs"
    "compact/block_table.rs"
    "compact/cells.rs"
    "compact/complexity.rs"
    "compact/entries.rs"
    "compact/handles.rs"
    "compact/heap.rs"
    "compact/heap/access.rs"
    "compact/heap/inspect.rs"
    "compact/heap/moves.rs"
    "compact/instances.rs"
    "compact/layout.rs"
    "compact/mod.rs"
    "compact/moving.rs"
    "compact/options.rs"
    "compact/plain.rs"
    "compact/refusal.rs"
    "compact/shared/access.rs"
    "compact/shared/locks.rs"
    "compact/shared/mod.rs"
    "compact/shared/moves.rs"
    "compact/shared/resize.rs"
    "compact/shared/verify.rs"
    "compact/table.rs"
    "compact/typed/mod.rs"
    "compact/typed/owned.rs"
    "compact/typed/pinned.rs"
    "complexity.rs"
    "composite.rs"
    "description.rs"
    "fragmented/blocks.rs"
    "fragmented/chain.rs"
    "fragmented/heap.rs"
    "fragmented/mod.rs"
    "fragmented/options.rs"
    "fragmented/tree.rs"
    "global.rs"
    "heap.rs"
    "heap/grow.rs"
    "heap/inspect.rs"
    "heap/rebuild.rs"
    "heap/resize.rs"
    "heap/verify.rs"
    "index/any.rs"
    "index/buddy.rs"
    "index/classes.rs"
    "index/dedicated.rs"
    "index/first_fit.rs"
    "index/first_fit/groups.rs"
    "index/first_fit/runs.rs"
    "index/first_fit/summary.rs"
    "index/first_fit/tree.rs"
    "index/fixed.rs"
    "index/forward.rs"
    "index/kingsley.rs"
    "index/lea.rs"
    "index/links.rs"
    "index/list.rs"
    "index/mod.rs"
    "levels.rs"
    "lib.rs"
    "lock.rs"
    "mapped.rs"
    "objects.rs"
    "objects/slabs.rs"
    "objects/table.rs"
    "statistics.rs"
    "store/counted.rs"
    "store/distant.rs"
    "store/hardened.rs"
    "store/hardened/blocks.rs"
    "store/hardened/verify.rs"
    "store/ledger.rs"
    "store/ledger/lookup.rs"
    "store/ledger/record.rs"
    "store/mod.rs"
    "store/tagged.rs"
    "store/tagged/probe.rs"
};

/// The licences, of which the user has the choice.
pub const LICENCES: [SourceFile; 2] = [
    SourceFile {
        path: "LICENSE-APACHE",
        text: include_str!("../LICENSE-APACHE"),
    },
    SourceFile {
        path: "LICENSE-MIT",
        text: include_str!("../LICENSE-MIT"),
    },
];

/// The crate's manifest: that of this version, without the features that need other crates,
/// so that nothing has to be fetched.
///
/// The version is marked as `emitted`: a program may use this text beside another copy of
/// the same version without Cargo taking one for the other.
pub const MANIFEST: &str = concat!(
    "# The heaps of Metes, as the emitted heap was predicted on them.\n",
    "[package]\n",
    "name = \"metes-heap\"\n",
    "description = \"",
    env!("CARGO_PKG_DESCRIPTION"),
    "\"\n",
    "version = \"",
    env!("CARGO_PKG_VERSION"),
    "+emitted\"\n",
    "edition = \"2024\"\n",
    "rust-version = \"",
    env!("CARGO_PKG_RUST_VERSION"),
    "\"\n",
    "license = \"",
    env!("CARGO_PKG_LICENSE"),
    "\"\n",
    "publish = false\n",
    "\n",
    "[lints.rust]\n",
    "unexpected_cfgs = { level = \"warn\", check-cfg = [\n",
    "    'cfg(loom)', 'cfg(feature, values(\"lock_api\", \"critical-section\", \"source\"))',\n",
    "] }\n",
);

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::format;
    use std::fs;
    use std::path::Path;
    use std::string::String;

    use super::FILES;

    /// Modules of tests, and this file, which nobody needs twice.
    const LEFT_OUT: &[&str] = &[
        "src/bounds/lowest.rs",
        "src/bounds/lowest/attacks.rs",
        "src/bounds/properties.rs",
        "src/bounds/real_heaps.rs",
        "src/bounds/tests.rs",
        "src/compact/plain/tests.rs",
        "src/compact/shared/interleavings.rs",
        "src/compact/shared/tests.rs",
        "src/compact/tests.rs",
        "src/compact/typed/tests.rs",
        "src/fragmented/tests.rs",
        "src/source.rs",
        "src/store/distant/tests.rs",
        "src/store/ledger/tests.rs",
    ];

    fn walk(folder: &Path, path: &str, found: &mut BTreeSet<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let path = format!("{path}/{}", entry.file_name().to_str().unwrap());
            match entry.file_type().unwrap().is_dir() {
                true => walk(&entry.path(), &path, found),
                false => assert!(found.insert(path)),
            }
        }
    }

    #[test]
    fn licences_are_those_of_the_project() {
        for name in ["LICENSE-APACHE", "LICENSE-MIT"] {
            let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
            let project = ours.ancestors().nth(3).unwrap().join(name);
            assert_eq!(
                fs::read(&ours).unwrap(),
                fs::read(project).unwrap(),
                "{name}"
            );
        }
    }

    #[test]
    fn the_list_is_the_folder() {
        let mut found = BTreeSet::new();
        walk(
            &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
            "src",
            &mut found,
        );
        let listed: BTreeSet<String> = (FILES.iter().map(|file| file.path))
            .chain(LEFT_OUT.iter().copied())
            .map(String::from)
            .collect();
        assert_eq!(
            listed, found,
            "a file of the crate belongs into `FILES` of source.rs, a module of tests into `LEFT_OUT`"
        );
    }
}
