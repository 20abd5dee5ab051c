//! Whether the process of a rank has ended, where it is on this host.
//!
//! Who says that a node is dead must be sure; a process that the system does not know any more, or knows as ended, takes no
//! further step. Numbers of processes come again, so the time at which it was started is part of its name. Of a rank on
//! another host nothing is said: that is for whoever runs the hosts.
//!
//! Invariant: a process that runs is not taken for one that has ended.

use std::hash::{DefaultHasher, Hash, Hasher};

/// A process of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) number: u64,
    /// When it was started, in the system's unit.
    pub(crate) started: u64,
    pub(crate) host: u64,
}

impl Process {
    /// This one.
    pub(crate) fn own() -> Process {
        let number = std::process::id().into();
        let mut host = DefaultHasher::new();
        // The same on each boot of a host alone.
        std::fs::read("/proc/sys/kernel/random/boot_id")
            .ok()
            .hash(&mut host);
        Process {
            number,
            started: state(number).map_or(0, |(_, started)| started),
            host: host.finish(),
        }
    }

    /// Whether it has ended for sure; `here` is the own one.
    pub(crate) fn has_ended(self, here: Process) -> bool {
        if self.host != here.host || self.started == 0 {
            return false;
        }
        match state(self.number) {
            Some((state, started)) => started != self.started || matches!(state, 'Z' | 'X'),
            None => true,
        }
    }
}

/// The state of a process, and when it was started; nothing if there is none.
fn state(number: u64) -> Option<(char, u64)> {
    let text = std::fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
    // Behind the name, which may hold anything.
    let (_, fields) = text.rsplit_once(") ")?;
    let mut fields = fields.split(' ');
    let state = fields.next()?.chars().next()?;
    let started = fields.nth(18)?.parse().ok()?;
    Some((state, started))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_runs_has_not_ended() {
        let own = Process::own();
        assert!(own.started > 0);
        assert!(!own.has_ended(own));
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .expect("a process is started");
        let number = u64::from(child.id());
        let other = Process {
            number,
            started: state(number).expect("it runs").1,
            ..own
        };
        assert!(!other.has_ended(own));
        // Another one that had its number; one of another host.
        assert!(
            Process {
                started: 1,
                ..other
            }
            .has_ended(own)
        );
        child.kill().expect("it is killed");
        while !other.has_ended(own) {
            std::thread::yield_now();
        }
        assert!(!Process { host: 0, ..other }.has_ended(own));
        child.wait().expect("it has ended");
        assert!(other.has_ended(own));
    }
}
