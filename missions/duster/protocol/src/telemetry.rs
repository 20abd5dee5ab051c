//! Telemetry in packets: written by the unit, read by the ground's side of tests.
//!
//! *Invariant:* what is written is a whole packet of at most [`MAX_PACKET`] bytes with a right checksum, and is read as it
//! was; reading is total.

use core::ops::Range;

use arbitrary_int::{traits::Integer, u11, u14};
use spacepackets::ecss::MessageTypeId;
use spacepackets::ecss::tm::{
    PusTmCreatorWithReservedSourceData, PusTmReader, PusTmSecondaryHeader, ReaderConfig,
};
use spacepackets::{CcsdsPacket, PacketType, SpHeader};

use crate::definitions::{Event, Housekeeping, Probe, Report, ScienceKind};
use crate::time::Time;
use crate::value::{Reader, Value, Writer};
use crate::{APID, MAX_PACKET, checksum};

/// Bytes before the source data: primary header, secondary header, time.
pub const HEADER: usize = 6 + 7 + Time::SIZE;
/// Bytes behind the source data.
pub const TRAILER: usize = 2;
/// Most bytes of source data.
pub const MAX_DATA: usize = MAX_PACKET - HEADER - TRAILER;
/// Bytes that a block of science has free in front, for the headers.
pub const HEADROOM: usize = 32;
/// Bytes of the header of science, the first of its source data.
pub const SCIENCE_HEADER: usize = 20;

/// Anything that the unit sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Telemetry<'a> {
    /// A report.
    Report(Report<'a>),
    /// Housekeeping, 3/25.
    Housekeeping(Housekeeping<'a>),
    /// An event, 5/1 to 5/4.
    Event(Event),
}

/// A packet that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received<'a> {
    /// Its sequence count.
    pub sequence: u16,
    /// When it was made.
    pub time: Time,
    /// What it says.
    pub telemetry: Telemetry<'a>,
}

/// Why bytes are no telemetry of this unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// Their number is not what they say.
    Length,
    /// The checksum is wrong.
    Checksum,
    /// They are no telemetry packet of PUS-C, or of another application process.
    Version,
    /// There is no such report.
    Unknown,
    /// The content is none that the report has.
    Content,
}

impl Telemetry<'_> {
    /// Service and subtype.
    #[must_use]
    pub const fn kind(&self) -> (u8, u8) {
        match self {
            Self::Report(report) => report.key(),
            Self::Housekeeping(_) => (3, 25),
            Self::Event(event) => (5, event.extra() as u8),
        }
    }

    /// Writes the source data alone; its length, or none when it does not fit into `bytes`.
    pub fn write_data(&self, bytes: &mut [u8]) -> Option<usize> {
        let mut writer = Writer::new(bytes);
        match self {
            Self::Report(report) => report.write(&mut writer),
            Self::Housekeeping(housekeeping) => {
                writer.put(&[housekeeping.key().0]);
                housekeeping.write(&mut writer);
            }
            Self::Event(event) => {
                writer.put(&[event.number()]);
                event.write(&mut writer);
            }
        }
        writer.length()
    }

    /// Writes the packet; its length, or none when it does not fit.
    pub fn write(&self, bytes: &mut [u8], sequence: u16, time: Time) -> Option<usize> {
        let length = self.write_data(bytes.get_mut(HEADER..)?)?;
        seal(bytes, self.kind(), length, sequence, time)
    }

    /// Reads the packet that `bytes` are.
    ///
    /// # Errors
    /// Why they are none.
    pub fn decode(bytes: &[u8]) -> Result<Received<'_>, Damage> {
        if bytes.len() < HEADER + TRAILER {
            return Err(Damage::Length);
        }
        let (header, _) = SpHeader::from_be_bytes(bytes).map_err(|_| Damage::Length)?;
        if header.packet_len() != bytes.len() {
            return Err(Damage::Length);
        }
        if checksum::of(bytes) != 0 {
            return Err(Damage::Checksum);
        }
        let secondary = bytes.get(6).ok_or(Damage::Length)?;
        if header.packet_type() != PacketType::Tm
            || !header.sec_header_flag()
            || header.apid().value() != APID
            || secondary >> 4 != 2
        {
            return Err(Damage::Version);
        }
        let layout = ReaderConfig {
            timestamp_len: Time::SIZE,
            has_checksum: true,
        };
        let packet =
            PusTmReader::new_no_checksum_verification(bytes, layout).map_err(|_| Damage::Length)?;
        let mut stamp = Reader::new(packet.timestamp());
        let time = Time::read(&mut stamp).map_err(|_| Damage::Length)?;
        let kind = (packet.service_type_id(), packet.message_subtype_id());
        let mut data = Reader::new(packet.source_data());
        let telemetry = content(kind, &mut data)?;
        if !data.is_empty() {
            return Err(Damage::Content);
        }
        Ok(Received {
            sequence: header.seq_count().value(),
            time,
            telemetry,
        })
    }
}

/// What source data says.
fn content<'a>(kind: (u8, u8), data: &mut Reader<'a>) -> Result<Telemetry<'a>, Damage> {
    let read = match kind {
        (3, 25) => u8::read(data)
            .and_then(|key| Housekeeping::read((key,), data))
            .map(|read| read.map(Telemetry::Housekeeping)),
        (5, 1..=4) => u8::read(data)
            .and_then(|key| Event::read((key,), data))
            .map(|read| {
                read.filter(|event| event.kind() == kind)
                    .map(Telemetry::Event)
            }),
        _ => Report::read(kind, data).map(|read| read.map(Telemetry::Report)),
    };
    read.map_err(|_| Damage::Content)?.ok_or(Damage::Unknown)
}

/// Puts headers and checksum around source data that stands in `bytes` behind [`HEADER`]; the length of the packet.
pub fn seal(
    bytes: &mut [u8],
    (service, subtype): (u8, u8),
    length: usize,
    sequence: u16,
    time: Time,
) -> Option<usize> {
    if length > MAX_DATA {
        return None;
    }
    let stamp = time.to_bytes();
    let header = SpHeader::new_for_unseg_tm(u11::new(APID), u14::masked_new(sequence), 0);
    let secondary = PusTmSecondaryHeader::new_simple(MessageTypeId::new(service, subtype), &stamp);
    // The checksum as if it were data: it is ours to compute.
    let packet =
        PusTmCreatorWithReservedSourceData::new(bytes, header, secondary, length + TRAILER, false);
    let written = packet.ok()?.finalize();
    let (packet, _) = bytes.split_at_mut_checked(written)?;
    let (content, place) = packet.split_last_chunk_mut::<TRAILER>()?;
    *place = checksum::of(content).to_be_bytes();
    Some(written)
}

/// Makes a packet of a block of science, in place: `length` bytes of source data stand behind [`HEADROOM`] bytes, and
/// [`TRAILER`] bytes are free behind them. Where in the block the packet lies.
pub fn seal_science(
    block: &mut [u8],
    length: usize,
    stored: bool,
    sequence: u16,
    time: Time,
) -> Option<Range<usize>> {
    const FIRST: usize = HEADROOM - HEADER;
    let kind = (128, if stored { 129 } else { 128 });
    let written = seal(block.get_mut(FIRST..)?, kind, length, sequence, time)?;
    Some(FIRST..FIRST + written)
}

/// Header of science: the first bytes of its source data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScienceHeader {
    /// What the data is.
    pub kind: ScienceKind,
    /// Of which probe.
    pub probe: Probe,
    /// Of which acquisition.
    pub acquisition: u16,
    /// Rate of the probe, in Hz.
    pub rate: u16,
    /// Index of the first sample, since the start of the rate.
    pub first: u32,
    /// When that sample was taken, in microseconds since boot.
    pub time: u64,
    /// Samples, steps or windows.
    pub count: u16,
}

impl ScienceHeader {
    /// Writes it at the beginning of `data`; none when that is too short.
    pub fn write(&self, data: &mut [u8]) -> Option<()> {
        let mut writer = Writer::new(data);
        self.kind.write(&mut writer);
        self.probe.write(&mut writer);
        self.acquisition.write(&mut writer);
        self.rate.write(&mut writer);
        self.first.write(&mut writer);
        self.time.write(&mut writer);
        self.count.write(&mut writer);
        writer.length().map(|_| ())
    }

    /// Reads it from the beginning of `data`.
    #[must_use]
    pub fn read(data: &[u8]) -> Option<Self> {
        let reader = &mut Reader::new(data);
        Some(Self {
            kind: Value::read(reader).ok()?,
            probe: Value::read(reader).ok()?,
            acquisition: Value::read(reader).ok()?,
            rate: Value::read(reader).ok()?,
            first: Value::read(reader).ok()?,
            time: Value::read(reader).ok()?,
            count: Value::read(reader).ok()?,
        })
    }
}

impl Event {
    /// Service and subtype of its report.
    #[must_use]
    pub const fn kind(&self) -> (u8, u8) {
        (5, self.extra() as u8)
    }
}
