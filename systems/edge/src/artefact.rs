//! Compiled code on disk, found by content, and believed only with our seal.
//!
//! Deserialising compiled code is executing it. So a file is read only from a directory that belongs to
//! this user and to nobody else, and only if its seal (HMAC-SHA-256, RFC 2104) under a key that lies in
//! that directory fits its bytes and its name. The name is the hash of the module as it is compiled and of everything in the engine that code depends on.
//!
//! *Invariant:* bytes that [`Artefacts::load`] deserialises were written by [`Artefacts::store`].

use std::fs::{self, File, OpenOptions};
use std::hash::{Hash, Hasher};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use wasmtime::Engine;

use crate::error::EngineError;

const KEY: usize = 32;
const SEAL: usize = 32;

/// A directory of compiled code.
#[derive(Debug)]
pub(crate) struct Artefacts {
    directory: PathBuf,
    key: [u8; KEY],
}

impl Artefacts {
    /// Opens or makes the directory and its key.
    pub(crate) fn open(directory: &Path) -> Result<Artefacts, EngineError> {
        let refused = |cause: String| EngineError::Artefacts {
            path: directory.display().to_string(),
            cause,
        };
        let told = |error: io::Error| refused(error.to_string());
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)
            .map_err(told)?;
        let status = fs::symlink_metadata(directory).map_err(told)?;
        if !status.is_dir() || !private(&status) {
            return Err(refused(
                "it is not a directory of this user alone".to_owned(),
            ));
        }
        let place = directory.join("key");
        let key = match File::open(&place) {
            Ok(mut file) => {
                if !private(&file.metadata().map_err(told)?) {
                    return Err(refused("others may read or write its key".to_owned()));
                }
                let mut key = [0; KEY];
                file.read_exact(&mut key).map_err(told)?;
                key
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let mut key = [0; KEY];
                File::open("/dev/urandom")
                    .and_then(|mut random| random.read_exact(&mut key))
                    .map_err(told)?;
                let mut file = OpenOptions::new()
                    .write(true)
                    .create_new(true)
                    .mode(0o600)
                    .open(&place)
                    .map_err(told)?;
                file.write_all(&key).map_err(told)?;
                key
            }
            Err(error) => return Err(told(error)),
        };
        Ok(Artefacts {
            directory: directory.to_owned(),
            key,
        })
    }

    /// The code of a module, if it is there and sealed; anything else is as if it were not there.
    pub(crate) fn load(&self, engine: &Engine, wasm: &[u8]) -> Option<wasmtime::Module> {
        let name = name(engine, wasm);
        let bytes = fs::read(self.directory.join(&name)).ok()?;
        let (seal, code) = bytes.split_at_checked(SEAL)?;
        if !equal(seal, &self.seal(&name, code)) {
            return None;
        }
        // SAFETY: the seal says that `store` wrote these bytes for an engine with the same settings, and
        // nobody else has the key.
        unsafe { wasmtime::Module::deserialize(engine, code) }.ok()
    }

    /// Keeps code. Where that fails there is one artefact less, and nothing else.
    pub(crate) fn store(&self, engine: &Engine, wasm: &[u8], code: &[u8]) {
        let name = name(engine, wasm);
        let partial = self
            .directory
            .join(format!("{name}.{}.partial", std::process::id()));
        let written = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&partial)
            .and_then(|mut file| {
                file.write_all(&self.seal(&name, code))?;
                file.write_all(code)
            });
        if written
            .and_then(|()| fs::rename(&partial, self.directory.join(&name)))
            .is_err()
        {
            // It may never have been made.
            let _ = fs::remove_file(&partial);
        }
    }

    fn seal(&self, name: &str, code: &[u8]) -> [u8; SEAL] {
        let padded = |with: u8| {
            let mut block = [with; 64];
            for (byte, key) in block.iter_mut().zip(&self.key) {
                *byte ^= key;
            }
            block
        };
        let inner = Sha256::new()
            .chain_update(padded(0x36))
            .chain_update(name)
            .chain_update([0])
            .chain_update(code);
        Sha256::new()
            .chain_update(padded(0x5c))
            .chain_update(inner.finalize())
            .finalize()
            .into()
    }
}

/// Whether it belongs to this user, and others may do nothing with it.
fn private(status: &fs::Metadata) -> bool {
    // SAFETY: asks for a number.
    let user = unsafe { libc::geteuid() };
    status.uid() == user && status.mode() & 0o077 == 0
}

/// In a time that does not depend on where they differ.
fn equal(left: &[u8], right: &[u8]) -> bool {
    left.len() == right.len()
        && left
            .iter()
            .zip(right)
            .fold(0, |all, (left, right)| all | (left ^ right))
            == 0
}

fn name(engine: &Engine, wasm: &[u8]) -> String {
    let mut settings = Settings(Sha256::new());
    engine.precompile_compatibility_hash().hash(&mut settings);
    let hash = settings.0.chain_update([0]).chain_update(wasm).finalize();
    let mut name = String::with_capacity(2 * hash.len());
    for byte in hash {
        name.push_str(&format!("{byte:02x}"));
    }
    name
}

/// Feeds what is hashed into a hash that cannot be made to collide.
struct Settings(Sha256);

impl Hasher for Settings {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        0
    }
}
