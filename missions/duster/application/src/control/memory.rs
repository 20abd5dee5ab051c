//! Service 6: memory dumped and checked in steps.
//!
//! *Invariant:* nothing outside of what [`Hardware::memory`] allows is read.

use metes_duster_protocol::definitions::{Command, Failure, Report};
use metes_duster_protocol::telecommand::Request;
use metes_duster_protocol::value::Bytes;
use metes_duster_protocol::{Acknowledge, RequestId, Telemetry, checksum};

use super::Control;
use crate::hardware::Hardware;

/// Bytes of a packet of a dump.
const DUMPED: u32 = 960;
/// Bytes whose checksum is taken in one activation.
const CHECKED: u32 = 1024;
/// Packets that may wait before a dump goes on.
const WAITING: usize = 8;

/// A dump or check under way.
pub(super) struct MemoryJob {
    request: Option<(RequestId, Acknowledge)>,
    checks: bool,
    address: u32,
    length: u32,
    done: u32,
    checksum: u16,
}

impl Control {
    /// Begins a dump or check, which was checked.
    pub(super) fn begin_memory(&mut self, request: &Request<'_>) {
        let (Command::DumpMemory { address, length } | Command::CheckMemory { address, length }) =
            request.command
        else {
            return;
        };
        self.memory_job = Some(MemoryJob {
            request: Some((request.id, request.acknowledge)),
            checks: matches!(request.command, Command::CheckMemory { .. }),
            address,
            length,
            done: 0,
            checksum: 0xffff,
        });
    }

    /// Goes on with a dump or check: one packet, or [`CHECKED`] bytes.
    pub(super) fn memory_step(&mut self, hardware: &mut impl Hardware) {
        let Some(mut job) = self.memory_job.take() else {
            return;
        };
        let left = job.length - job.done;
        let part = left.min(if job.checks { CHECKED } else { DUMPED });
        let address = job.address.wrapping_add(job.done);
        let Some(bytes) = hardware.memory(address, part) else {
            self.failed(hardware, job.request, Failure::Address);
            return;
        };
        if job.checks {
            job.checksum = checksum::of_more(job.checksum, bytes);
        } else {
            let room = self.normal.len() < WAITING;
            let data = Bytes(bytes);
            if !room
                || !self.queue(
                    hardware,
                    &Telemetry::Report(Report::MemoryDump { address, data }),
                )
            {
                self.memory_job = Some(job);
                return;
            }
        }
        job.done += part;
        if job.done < job.length {
            self.memory_job = Some(job);
            return;
        }
        if job.checks {
            let MemoryJob {
                address,
                length,
                checksum,
                ..
            } = job;
            self.report(
                hardware,
                Report::MemoryCheck {
                    address,
                    length,
                    checksum,
                },
            );
        }
        self.completed(hardware, job.request);
    }
}
