//! Telecommands from the line: framed, verified, executed.
//!
//! *Invariant:* each packet that came whole is answered by its verification reports; bytes are only taken off the line while
//! there is room for those, so no telecommand is executed unheard.

use metes_duster_protocol::definitions::{Event, Failure, Report, RequestId};
use metes_duster_protocol::telecommand::{Refusal, Request, decode};
use metes_duster_protocol::{Acknowledge, Frame};

use super::{Control, Progress};
use crate::declared::TASK_INGEST;
use crate::hardware::Hardware;
use crate::partition::Block;

/// Telecommands executed in one activation, and bytes taken off the line for each: together what it brings in 20 ms and a
/// little more.
const PACKETS: usize = 4;
const BYTES: usize = 400;
/// Reports that a telecommand may need at once: three of verification, one of its own, events.
const REPORTS: usize = 8;
/// Activations without a byte after which the line is silent.
const SILENCE: u8 = 2;

/// A frame in a block, or what is known of it when there was no memory; and whether it is whole.
type Framed = (Result<Block, RequestId>, bool);

impl Control {
    /// The task `ingest`, each 20 milliseconds: takes telecommands, executes them, and goes on with what lasts. Time:
    /// `PACKETS` times `BYTES` and a telecommand, one step of a job.
    pub fn ingest(&mut self, hardware: &mut impl Hardware) {
        self.ran_task(TASK_INGEST);
        let mut heard = false;
        for _ in 0..PACKETS {
            if self.urgent.room() < REPORTS {
                // The line is full, not silent.
                heard = true;
                break;
            }
            let (frame, some) = self.gather(hardware);
            heard |= some;
            if let Some((block, whole)) = frame {
                self.packet(hardware, block, whole);
            }
        }
        self.silent = if heard {
            0
        } else {
            self.silent.saturating_add(1)
        };
        if self.silent == SILENCE
            && let Some(Frame::Cut(packet)) = self.framer.silence()
        {
            let block = keep(&mut self.partitions.tc, packet);
            self.packet(hardware, block, false);
        }
        self.tell_garbage(hardware);
        self.memory_step(hardware);
    }

    /// Takes bytes until a frame is complete, and says whether there were any.
    #[inline(never)]
    fn gather(&mut self, hardware: &mut impl Hardware) -> (Option<Framed>, bool) {
        for taken in 0..BYTES {
            let Some(byte) = hardware.line_receive() else {
                return (None, taken > 0);
            };
            match self.framer.push(byte) {
                None => {}
                Some(Frame::Packet(packet)) => {
                    return (Some((keep(&mut self.partitions.tc, packet), true)), true);
                }
                Some(Frame::Cut(packet)) => {
                    return (Some((keep(&mut self.partitions.tc, packet), false)), true);
                }
            }
        }
        (None, true)
    }

    /// A frame that came.
    #[inline(never)]
    fn packet(
        &mut self,
        hardware: &mut impl Hardware,
        packet: Result<Block, RequestId>,
        whole: bool,
    ) {
        self.counts.received = self.counts.received.wrapping_add(1);
        let block = match packet {
            Ok(block) => block,
            Err(id) => {
                self.refuse(
                    hardware,
                    Refusal {
                        id,
                        code: Failure::Memory,
                    },
                );
                return;
            }
        };
        let decoded = if whole {
            decode(block.bytes())
        } else {
            Err(Refusal {
                id: RequestId::of(block.bytes()),
                code: Failure::Length,
            })
        };
        match decoded {
            Ok(request) => {
                // What fails here is reported there.
                let _ = self.execute(hardware, &request);
            }
            Err(refusal) => {
                if matches!(refusal.code, Failure::Checksum) {
                    self.framer.disown();
                }
                self.refuse(hardware, refusal);
            }
        }
        self.partitions.tc.free(block);
    }

    fn refuse(&mut self, hardware: &impl Hardware, refusal: Refusal) {
        self.counts.refused = self.counts.refused.wrapping_add(1);
        self.note_command(refusal.id, Some(refusal.code));
        let Refusal { id: request, code } = refusal;
        self.report(hardware, Report::Refused { request, code });
    }

    /// Executes a telecommand that makes sense: from the line, or of the schedule.
    ///
    /// # Errors
    /// Why it was not begun or not completed, which has been reported.
    pub(super) fn execute(
        &mut self,
        hardware: &mut impl Hardware,
        request: &Request<'_>,
    ) -> Result<(), Failure> {
        let (id, flags) = (request.id, request.acknowledge);
        self.counts.accepted = self.counts.accepted.wrapping_add(1);
        if flags.acceptance() {
            self.report(hardware, Report::Accepted { request: id });
        }
        let allowed = if request.command.extra().contains(self.mode) {
            self.check(hardware, &request.command)
        } else {
            Err(Failure::Mode)
        };
        if let Err(code) = allowed {
            self.counts.refused = self.counts.refused.wrapping_add(1);
            self.note_command(id, Some(code));
            self.report(hardware, Report::NotStarted { request: id, code });
            if code == Failure::ScheduleFull {
                self.event(hardware, Event::ScheduleFull { request: id });
            }
            return Err(code);
        }
        self.note_command(id, None);
        if flags.start() {
            self.report(hardware, Report::Started { request: id });
        }
        match self.perform(hardware, request) {
            Ok(Progress::Done) => self.completed(hardware, Some((id, flags))),
            Ok(Progress::UnderWay) => {}
            Err(code) => {
                self.failed(hardware, Some((id, flags)), code);
                return Err(code);
            }
        }
        Ok(())
    }

    /// Reports that a telecommand was completed.
    pub(super) fn completed(
        &mut self,
        hardware: &impl Hardware,
        pending: Option<(RequestId, Acknowledge)>,
    ) {
        if let Some((request, flags)) = pending
            && flags.completion()
        {
            self.report(hardware, Report::Completed { request });
        }
    }

    /// Reports that a telecommand was not completed.
    pub(super) fn failed(
        &mut self,
        hardware: &impl Hardware,
        pending: Option<(RequestId, Acknowledge)>,
        code: Failure,
    ) {
        if let Some((request, _)) = pending {
            self.counts.refused = self.counts.refused.wrapping_add(1);
            self.note_command(request, Some(code));
            self.report(hardware, Report::NotCompleted { request, code });
        }
    }

    /// Reports that a telecommand has come to a step.
    pub(super) fn progressed(
        &mut self,
        hardware: &impl Hardware,
        pending: Option<(RequestId, Acknowledge)>,
        step: u8,
    ) {
        if let Some((request, flags)) = pending
            && flags.progress()
        {
            self.report(hardware, Report::Progress { request, step });
        }
    }

    /// Reports bytes that were no telecommand, once for all that came in an activation.
    fn tell_garbage(&mut self, hardware: &impl Hardware) {
        let bytes = self.framer.discarded();
        if bytes != self.counts.garbage {
            self.counts.garbage = bytes;
            self.event(hardware, Event::Garbage { bytes });
        }
    }

    fn note_command(&mut self, id: RequestId, code: Option<Failure>) {
        let level = self.parameters[super::LOG_LEVEL];
        let wanted = if code.is_some() { level > 0 } else { level > 1 };
        if wanted {
            let number = u32::from(id.packet) << 16 | u32::from(id.sequence);
            self.log
                .line(b'C', &[number, code.map_or(0, |code| code as u32)]);
        }
    }
}

/// A copy of a packet in a block; what is known of it when there is no memory.
fn keep(partition: &mut crate::Partition, packet: &[u8]) -> Result<Block, RequestId> {
    let mut block = partition
        .allocate(packet.len())
        .ok_or_else(|| RequestId::of(packet))?;
    block.bytes_mut().copy_from_slice(packet);
    Ok(block)
}
