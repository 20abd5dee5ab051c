//! Modes of the unit, and which may follow which.
//!
//! *Invariant:* from every mode but BOOT a way of commands leads to STANDBY, and safe mode follows any.

enumeration! {
    /// What the unit is about.
    Mode: u8, Enumeration, "mode" {
        /// Begins to run: reads its store.
        Boot = 0, "BOOT";
        /// High voltage off, outputs 0; waits for the ground.
        Safe = 1, "SAFE";
        /// Ready.
        Standby = 2, "STANDBY";
        /// Being configured.
        Config = 3, "CONFIG";
        /// Langmuir probe and electric field.
        AcqEnv = 4, "ACQ_ENV";
        /// Sweeps of the Langmuir probe.
        Sweep = 5, "SWEEP";
        /// Dust, under high voltage.
        AcqDust = 6, "ACQ_DUST";
        /// All probes, under high voltage.
        AcqFull = 7, "ACQ_FULL";
        /// Stored science goes to the ground.
        Dump = 8, "DUMP";
    }
}

/// A set of modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modes(u16);

impl Modes {
    /// All.
    pub const ANY: Self = Self(0x1ff);
    /// All but BOOT.
    pub const RUNNING: Self = Self(0x1fe);
    /// Those in which probes are acquired.
    pub const ACQUISITION: Self = Self::of(&[Mode::AcqEnv, Mode::AcqDust, Mode::AcqFull]);

    /// Those of a list.
    #[must_use]
    pub const fn of(modes: &[Mode]) -> Self {
        let mut set = 0;
        let mut index = 0;
        while index < modes.len() {
            set |= 1 << modes[index] as u16;
            index += 1;
        }
        Self(set)
    }

    /// Those, and others.
    #[must_use]
    pub const fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Whether a mode is one of them.
    #[must_use]
    pub const fn contains(self, mode: Mode) -> bool {
        self.0 >> (mode as u16) & 1 == 1
    }
}

/// The modes that may follow a mode on command. From BOOT the unit goes to SAFE by itself, to SAFE from any when
/// something is wrong, and from an acquisition or sweep that has ended to STANDBY.
#[must_use]
pub const fn transitions(from: Mode) -> Modes {
    let back = Modes::of(&[Mode::Safe, Mode::Standby]);
    match from {
        Mode::Boot => Modes::of(&[]),
        Mode::Safe => back,
        Mode::Standby => Modes::RUNNING,
        Mode::Config | Mode::Dump => back,
        Mode::AcqEnv | Mode::Sweep | Mode::AcqDust | Mode::AcqFull => {
            back.and(Modes::of(&[Mode::Dump]))
        }
    }
}
