//! Housekeeping structures.
//!
//! *Invariant:* a structure fits into a packet.

use super::{CHANNELS, Mode, PARTITIONS, PROBES, SupplyState};
use crate::value::Counted;

/// Parameters that a structure of the ground's choice may have.
pub const CUSTOM: usize = 16;

structure! {
    /// The unit.
    System {
        /// Time since boot.
        uptime: u32, "ms";
        /// How often the unit has begun to run, as far as the store tells.
        resets: u16, "";
        /// Time that core 0 was busy in the last second.
        load_0: u16, "permille";
        /// Time that core 1 was busy in the last second.
        load_1: u16, "permille";
        /// Telecommands received.
        received: u32, "";
        /// Telecommands accepted.
        accepted: u32, "";
        /// Telecommands refused, at any stage.
        refused: u32, "";
        /// Bytes that were no telecommand.
        garbage: u32, "B";
        /// Packets sent.
        sent: u32, "";
        /// Packets discarded for want of memory.
        lost: u32, "";
        /// Packets that wait.
        queued: u16, "";
        /// Entries of the schedule.
        scheduled: u16, "";
        /// Whether the schedule runs.
        schedule_enabled: u8, "";
        /// Acquisition under way, 0 if none.
        acquisition: u16, "";
        /// Records in the store.
        records: u32, "";
        /// Pages of the store that are used.
        pages: u32, "";
        /// Operations of the flash that failed.
        flash_failures: u32, "";
        /// Times that a task ran longer than its budget.
        budget_overruns: u32, "";
        /// Times that a task ended after its deadline.
        deadlines_missed: u32, "";
    }
}

structure! {
    /// A channel of low voltage.
    LowVoltage each CHANNELS {
        /// Voltage as told.
        voltage: u16, "cV";
        /// Current as told.
        current: u16, "mA";
    }
}

structure! {
    /// The power supplies.
    Supplies {
        /// Status bits of high voltage as told: on, stable, tripped, bad request.
        hv_status: u8, "";
        /// Voltage that it shall have.
        hv_target: u16, "V";
        /// Voltage as told.
        hv_voltage: u16, "V";
        /// Current as told.
        hv_current: u16, "uA";
        /// Trips since boot.
        hv_trips: u16, "";
        /// Requests to the supply of high voltage that were not answered.
        hv_timeouts: u16, "";
        /// Status bits of low voltage as told.
        lv_status: u8, "";
        /// Requests to the supply of low voltage that were not answered.
        lv_timeouts: u16, "";
        /// Its channels.
        lv: [LowVoltage; 4], "";
    }
}

structure! {
    /// A partition of memory.
    MemoryOfPartition each PARTITIONS {
        /// Bytes that it has.
        size: u32, "B";
        /// Bytes in use.
        used: u32, "B";
        /// Most bytes that were in use.
        peak: u32, "B";
        /// Largest block that is free.
        largest_free: u32, "B";
        /// Blocks given out.
        allocations: u32, "";
        /// Blocks taken back.
        frees: u32, "";
        /// Blocks refused.
        refusals: u32, "";
        /// Longest time that giving out or taking back took.
        worst: u32, "ns";
    }
}

structure! {
    /// All partitions.
    Memories {
        /// Each.
        partition: [MemoryOfPartition; 7], "";
    }
}

structure! {
    /// What was acquired of a probe.
    AcquisitionOfProbe each PROBES {
        /// Samples read.
        samples: u32, "";
        /// Samples lost.
        lost: u32, "";
        /// Most samples that waited in the front end.
        fifo_peak: u16, "";
    }
}

structure! {
    /// The acquisition.
    Acquisitions {
        /// Acquisition under way, 0 if none.
        acquisition: u16, "";
        /// Each probe.
        probe: [AcquisitionOfProbe; 3], "";
        /// Sweeps ended.
        sweeps: u32, "";
        /// Impacts detected.
        events: u32, "";
        /// Blocks of science received from core 1.
        blocks: u32, "";
    }
}

messages! {
    /// A housekeeping report: the structure with its content. What stands beside is its period when the unit begins to
    /// run, in units of 100 ms; 0: not periodic.
    Housekeeping<'a>, HOUSEKEEPING, key (u8,), with u16 {
        /// The unit.
        System "SYSTEM" (1) 10 => {
            /// Mode.
            mode: Mode, "";
            /// Content.
            system: System, "";
        }
        /// The power supplies.
        Supplies "SUPPLIES" (2) 10 => {
            /// What is known of the high voltage.
            hv_state: SupplyState, "";
            /// Content.
            supplies: Supplies, "";
        }
        /// The memory.
        Memory "MEMORY" (3) 50 => {
            /// Content.
            memory: Memories, "";
        }
        /// The acquisition.
        Acquisition "ACQUISITION" (4) 10 => {
            /// Content.
            acquisitions: Acquisitions, "";
        }
        /// Parameters of the ground's choice.
        Custom1 "CUSTOM_1" (16) 0 => {
            /// Their values, in the order in which they were named.
            values: Counted<'a, i32>, "", 0..=16;
        }
        /// Parameters of the ground's choice.
        Custom2 "CUSTOM_2" (17) 0 => {
            /// Their values, in the order in which they were named.
            values: Counted<'a, i32>, "", 0..=16;
        }
    }
}
