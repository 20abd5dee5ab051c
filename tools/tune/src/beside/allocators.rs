//! Today's allocators, as far as they are installed as shared libraries.
//!
//! They are looked for where the loader would: in `LD_LIBRARY_PATH`, in its cache, in the usual directories. What is found
//! is tried: a loader passes over a library that it cannot use, and the program would run on the C library's allocator.
//!
//! Invariant: of each allocator one library is named, the first of its file names that is there, of the newest version.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use metes_explore::report::Missing;

/// Where libraries lie, if nothing says otherwise.
const PLACES: [&str; 6] = [
    "/usr/local/lib64",
    "/usr/local/lib",
    "/usr/lib64",
    "/usr/lib",
    "/lib64",
    "/lib",
];

/// What an allocator is known by.
pub(super) struct Known {
    pub(super) name: &'static str,
    /// Beginnings of file names; what follows is a version.
    files: &'static [&'static str],
    /// Who has it.
    from: &'static str,
}

pub(super) const KNOWN: [Known; 4] = [
    Known {
        name: "jemalloc",
        files: &["libjemalloc.so"],
        from: "Debian package libjemalloc2",
    },
    Known {
        name: "mimalloc",
        files: &["libmimalloc.so"],
        from: "Debian package libmimalloc2.0, or libmimalloc3",
    },
    Known {
        name: "tcmalloc",
        files: &["libtcmalloc_minimal.so", "libtcmalloc.so"],
        from: "Debian package libtcmalloc-minimal4",
    },
    Known {
        name: "snmalloc",
        files: &["libsnmallocshim.so", "libsnmallocshim-rust.so"],
        from: "no Debian package: libsnmallocshim.so of its sources, in LD_LIBRARY_PATH",
    },
];

impl Known {
    pub(super) fn missing(&self) -> Missing {
        Missing {
            allocator: self.name,
            from: self.from,
        }
    }

    /// Its library among some files by name: the first name's, of the greatest version.
    fn among<'p>(&self, files: &'p BTreeMap<String, PathBuf>) -> Option<&'p PathBuf> {
        let of = |stem: &&str| {
            let own = files
                .iter()
                .filter_map(|(file, path)| Some((version(file.strip_prefix(stem)?)?, path)));
            own.max_by(|one, other| one.0.cmp(&other.0))
                .map(|(_, path)| path)
        };
        self.files.iter().find_map(of)
    }
}

/// What follows `.so` in a file name, if it is nothing or numbers.
fn version(rest: &str) -> Option<Vec<u32>> {
    match rest.strip_prefix('.') {
        None => rest.is_empty().then(Vec::new),
        Some(numbers) => numbers
            .split('.')
            .map(|number| number.parse().ok())
            .collect(),
    }
}

/// The library of each allocator; none where it is not installed.
pub(super) fn installed() -> Vec<(&'static Known, Option<PathBuf>)> {
    let places = || {
        let own = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
        let own: Vec<PathBuf> = std::env::split_paths(&own).collect();
        // An empty entry stands for the working directory, which no library is looked for in here.
        own.into_iter()
            .filter(|place| !place.as_os_str().is_empty())
    };
    let own = in_directories(places());
    let cached = cached();
    let usual = PLACES.iter().map(PathBuf::from);
    let multiarch = format!("{}-linux-gnu", std::env::consts::ARCH);
    let usual = in_directories(usual.flat_map(|place| [place.join(&multiarch), place]));
    let libraries = [own, cached, usual];
    KNOWN
        .iter()
        .map(|known| {
            let found = libraries.iter().find_map(|files| known.among(files));
            (
                known,
                found.and_then(|path| std::fs::canonicalize(path).ok()),
            )
        })
        .collect()
}

/// The files that are called as an allocator's library is, of the first directory that has each.
fn in_directories(places: impl Iterator<Item = PathBuf>) -> BTreeMap<String, PathBuf> {
    let mut files = BTreeMap::new();
    for place in places {
        let Ok(entries) = std::fs::read_dir(&place) else {
            continue;
        };
        for path in entries.flatten().map(|entry| entry.path()) {
            enter(&mut files, path);
        }
    }
    files
}

fn enter(files: &mut BTreeMap<String, PathBuf>, path: PathBuf) {
    let name = path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    let Some(name) = name.filter(|name| is_one(name)) else {
        return;
    };
    if path.is_file() {
        files.entry(name).or_insert(path);
    }
}

fn is_one(file: &str) -> bool {
    let mut stems = KNOWN.iter().flat_map(|known| known.files);
    stems.any(|stem| file.strip_prefix(stem).and_then(version).is_some())
}

/// What the loader's cache has for this machine. Where there is none it has nothing.
fn cached() -> BTreeMap<String, PathBuf> {
    let tools = ["ldconfig", "/sbin/ldconfig", "/usr/sbin/ldconfig"];
    let printed = tools.iter().find_map(|tool| {
        let output = Command::new(tool)
            .arg("-p")
            .env_remove("LD_PRELOAD")
            .output();
        output.ok().filter(|output| output.status.success())
    });
    let text = printed.map_or_else(String::new, |output| {
        String::from_utf8_lossy(&output.stdout).into_owned()
    });
    let mut files = BTreeMap::new();
    for path in paths_in(&text, std::env::consts::ARCH) {
        enter(&mut files, path.to_owned());
    }
    files
}

/// The paths in what `ldconfig -p` prints that are for a machine: `libc.so.6 (libc6,x86-64) => /lib/libc.so.6`.
fn paths_in<'t>(text: &'t str, machine: &str) -> impl Iterator<Item = &'t Path> {
    let mark = match machine {
        "x86_64" => Some("x86-64"),
        "aarch64" => Some("AArch64"),
        // Where the cache has no word for it, trying tells.
        _ => None,
    };
    text.lines().filter_map(move |line| {
        let (what, path) = line.split_once(" => ")?;
        let fits = mark.is_none_or(|mark| what.contains(mark));
        fits.then(|| Path::new(path.trim()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_is_read_for_one_machine() {
        let text = "3 libs found in cache `/etc/ld.so.cache'\n\
            \tlibjemalloc.so.2 (libc6,x86-64) => /lib/x86_64-linux-gnu/libjemalloc.so.2\n\
            \tlibjemalloc.so.2 (libc6) => /lib/i386-linux-gnu/libjemalloc.so.2\n\
            \tlibjemalloc.so.2 (libc6,AArch64) => /lib/aarch64-linux-gnu/libjemalloc.so.2\n";
        let on = |machine| {
            let paths: Vec<_> = paths_in(text, machine).collect();
            paths
        };
        let x86 = Path::new("/lib/x86_64-linux-gnu/libjemalloc.so.2");
        assert_eq!(on("x86_64"), [x86]);
        assert_eq!(on("aarch64").len(), 1);
        assert_eq!(on("riscv64").len(), 3);
    }

    #[test]
    fn the_first_name_and_the_newest_version_count() {
        let names = [
            "libtcmalloc.so.9",
            "libtcmalloc_minimal.so.4",
            "libtcmalloc_minimal.so.4.5.16",
            "libtcmalloc_minimal.so.4.5.9",
            "libtcmalloc_minimal_debug.so.7",
            "libmimalloc.so.2.0",
            "libmimalloc.so.10",
            "libjemalloc.so.2.bak",
        ];
        let files = names.map(|name| (name.to_owned(), PathBuf::from(name)));
        let files = BTreeMap::from(files);
        let of = |name: &str| {
            let known = KNOWN.iter().find(|known| known.name == name)?;
            known.among(&files)?.to_str().map(str::to_owned)
        };
        assert_eq!(
            of("tcmalloc").as_deref(),
            Some("libtcmalloc_minimal.so.4.5.16")
        );
        assert_eq!(of("mimalloc").as_deref(), Some("libmimalloc.so.10"));
        assert_eq!(of("jemalloc"), None, "a copy is no version");
        assert!(!is_one("libtcmalloc_minimal_debug.so.7"));
        assert!(is_one("libsnmallocshim.so"));
    }
}
