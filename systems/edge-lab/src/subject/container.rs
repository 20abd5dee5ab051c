//! Layers around a program that needs no library: namespaces, OCI runtimes, engines of images.
//!
//! *Invariant:* all run one program from one file tree without a network; nothing is started that stays, and what an
//! engine was given is taken from it again.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::json;

use crate::process;

/// Where the program lies in its tree.
const INSIDE: &str = "/kernel";
/// The image that an engine is given.
const IMAGE: &str = "metes-edge-lab:kernel";

/// What is put around a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Container {
    /// Namespaces, by util-linux.
    Unshare,
    /// Namespaces, by bubblewrap.
    Bubblewrap,
    /// A container, by an OCI runtime.
    Runtime(&'static str),
    /// A container, by podman.
    Podman,
    /// A container, by docker.
    Docker,
}

/// Whether a runtime wants the unified hierarchy of control groups away.
static WITHOUT_UNIFIED: AtomicBool = AtomicBool::new(false);
static NEXT: AtomicU64 = AtomicU64::new(0);

impl Container {
    /// What starts the program with these words.
    pub(crate) fn command(
        self,
        program: &Path,
        words: &[String],
        directory: &Path,
    ) -> Result<Command, String> {
        let bundle = bundle(program, directory)?;
        let root = bundle.join("rootfs");
        let mut command = match self {
            Container::Unshare => {
                let mut command = Command::new("unshare");
                command.args(["--mount", "--pid", "--fork", "--net", "--ipc", "--uts"]);
                command.arg("--root").arg(root).arg(INSIDE).args(words);
                command
            }
            Container::Bubblewrap => {
                let mut command = Command::new("bwrap");
                command
                    .args(["--unshare-all", "--die-with-parent", "--ro-bind"])
                    .arg(root)
                    .arg("/");
                command
                    .args(["--proc", "/proc", "--dev", "/dev", INSIDE])
                    .args(words);
                command
            }
            Container::Runtime(name) => {
                let path = bundle.join("config.json");
                fs::write(&path, specification(words)).map_err(|error| told(&path, &error))?;
                let number = NEXT.fetch_add(1, Ordering::Relaxed);
                let mut command = Command::new(name);
                command.args(["run", "--bundle"]).arg(bundle);
                command.arg(format!("metes-{}-{number}", std::process::id()));
                command
            }
            Container::Podman => {
                let mut command = Command::new("podman");
                command.args(["--cgroup-manager=cgroupfs", "run", "--rm", "--network=none"]);
                // Its defaults are above what some machines let even root have.
                command.args([
                    "--ulimit",
                    "nofile=1024:1024",
                    "--ulimit",
                    "nproc=1024:1024",
                ]);
                command.arg("--rootfs").arg(root).arg(INSIDE).args(words);
                command
            }
            Container::Docker => {
                import(&root)?;
                let mut command = Command::new("docker");
                command
                    .args(["run", "--rm", "--network=none", IMAGE, INSIDE])
                    .args(words);
                command
            }
        };
        if WITHOUT_UNIFIED.load(Ordering::Relaxed) && self.may_be_crun() {
            process::without_unified_groups(&mut command);
        }
        Ok(command)
    }

    /// crun is the runtime that refuses machines with both hierarchies of control groups, and podman's choice.
    fn may_be_crun(self) -> bool {
        matches!(self, Container::Runtime("crun") | Container::Podman)
    }

    /// What can be done where it has failed, and then whether that suffices.
    pub(crate) fn remedy(
        self,
        why: &str,
        again: impl FnOnce() -> Result<(), String>,
    ) -> Option<String> {
        if self.may_be_crun() && why.contains("hybrid") {
            WITHOUT_UNIFIED.store(true, Ordering::Relaxed);
            return again().err();
        }
        Some(why.to_owned())
    }
}

/// Takes from an engine what it was given.
pub(super) fn forget_image() {
    if IMPORTED.swap(false, Ordering::Relaxed) {
        // An image that stays behind is no reason to lose what was measured.
        let _ = process::run(Command::new("docker").args(["image", "rm", "--force", IMAGE]));
    }
}

static IMPORTED: AtomicBool = AtomicBool::new(false);

fn import(root: &Path) -> Result<(), String> {
    if IMPORTED.load(Ordering::Relaxed) {
        return Ok(());
    }
    let archive = root.with_extension("tar");
    let tar = |command: &mut Command| match process::run(command) {
        Ok(run) if run.status == 0 => Ok(()),
        Ok(run) => Err(run.complaint()),
        Err(error) => Err(error.reason()),
    };
    // Asked first, or an archive would be made for a daemon that is not there.
    tar(Command::new("docker")
        .arg("info")
        .arg("--format={{.ServerVersion}}"))?;
    tar(Command::new("tar")
        .arg("-C")
        .arg(root)
        .arg("-cf")
        .arg(&archive)
        .arg("."))?;
    tar(Command::new("docker")
        .arg("import")
        .arg(&archive)
        .arg(IMAGE))?;
    IMPORTED.store(true, Ordering::Relaxed);
    Ok(())
}

fn told(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

/// The bundle around a program: its tree holds nothing else.
fn bundle(program: &Path, directory: &Path) -> Result<PathBuf, String> {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let bundle = directory.join(format!("{name}.bundle"));
    let root = bundle.join("rootfs");
    let inside = root.join(&INSIDE[1..]);
    if !inside.is_file() {
        for name in ["proc", "dev", "sys", "tmp", "etc", "run"] {
            let path = root.join(name);
            fs::create_dir_all(&path).map_err(|error| told(&path, &error))?;
        }
        fs::copy(program, &inside).map_err(|error| told(&inside, &error))?;
        let executable = fs::Permissions::from_mode(0o755);
        fs::set_permissions(&inside, executable).map_err(|error| told(&inside, &error))?;
    }
    Ok(bundle)
}

/// What an OCI runtime is told: namespaces of its own for all there are, and little else.
fn specification(words: &[String]) -> String {
    let arguments: Vec<&str> = [INSIDE]
        .into_iter()
        .chain(words.iter().map(String::as_str))
        .collect();
    let namespaces = ["pid", "network", "ipc", "uts", "mount"].map(|kind| json!({ "type": kind }));
    json!({
        "ociVersion": "1.0.2",
        "process": {
            "terminal": false,
            "user": { "uid": 0, "gid": 0 },
            "args": arguments,
            "env": ["PATH=/"],
            "cwd": "/",
            "capabilities": { "bounding": [], "effective": [], "permitted": [] },
            "noNewPrivileges": true,
        },
        "root": { "path": "rootfs", "readonly": true },
        "hostname": "kernel",
        "mounts": [
            { "destination": "/proc", "type": "proc", "source": "proc" },
            { "destination": "/dev", "type": "tmpfs", "source": "tmpfs",
              "options": ["nosuid", "strictatime", "mode=755", "size=65536k"] },
        ],
        "linux": { "namespaces": namespaces },
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runtime_is_told_what_to_run_and_what_to_keep_from_it() {
        let words = ["gemm", "mini", "1"].map(str::to_owned);
        let told: serde_json::Value = serde_json::from_str(&specification(&words)).expect("JSON");
        assert_eq!(
            told["process"]["args"],
            json!(["/kernel", "gemm", "mini", "1"])
        );
        assert_eq!(
            told["linux"]["namespaces"].as_array().map(Vec::len),
            Some(5)
        );
        assert_eq!(told["root"]["readonly"], true);
    }

    #[test]
    fn a_complaint_without_a_remedy_is_the_reason() {
        let never = || -> Result<(), String> { panic!("there is no remedy to try") };
        let why = Container::Unshare.remedy("not permitted", never);
        assert_eq!(why.as_deref(), Some("not permitted"));
    }
}
