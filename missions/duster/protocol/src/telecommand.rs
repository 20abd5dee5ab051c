//! Telecommands in packets: read by the unit, written by the ground's side of tests.
//!
//! *Invariant:* [`decode`] is total: any bytes give a request whose arguments are within their ranges and whose packet has
//! no byte too many, or the reason why not. What [`encode`] writes is read as it was.

use arbitrary_int::{traits::Integer, u4, u11, u14};
use spacepackets::ecss::MessageTypeId;
use spacepackets::ecss::tc::{
    AckFlags, CreatorConfig, GenericPusTcSecondaryHeader, PusTcCreator, PusTcReader,
    PusTcSecondaryHeader,
};
use spacepackets::{CcsdsPacket, PacketType, SpHeader};

use crate::definitions::{Command, Failure, RequestId, TELECOMMANDS};
use crate::value::{Reader, Writer};
use crate::{APID, MAX_PACKET, checksum};

/// Bytes of a telecommand without arguments: both headers and the checksum.
pub const MIN: usize = 6 + 5 + 2;
/// Version of PUS-C in the first half byte of the secondary header.
const PUS_C: u8 = 2;

/// Which reports the sender of a telecommand wants; failures are always reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Acknowledge(u8);

impl Acknowledge {
    /// All.
    pub const ALL: Self = Self(0xf);
    /// None.
    pub const NONE: Self = Self(0);

    /// From the four bits of the header.
    #[must_use]
    pub const fn of(bits: u8) -> Self {
        Self(bits & 0xf)
    }

    /// The four bits of the header.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Acceptance.
    #[must_use]
    pub const fn acceptance(self) -> bool {
        self.0 & 8 != 0
    }

    /// Begin of execution.
    #[must_use]
    pub const fn start(self) -> bool {
        self.0 & 4 != 0
    }

    /// Steps.
    #[must_use]
    pub const fn progress(self) -> bool {
        self.0 & 2 != 0
    }

    /// Completion.
    #[must_use]
    pub const fn completion(self) -> bool {
        self.0 & 1 != 0
    }
}

/// A telecommand that makes sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// Which one.
    pub id: RequestId,
    /// Which reports are wanted.
    pub acknowledge: Acknowledge,
    /// What is asked for.
    pub command: Command<'a>,
}

/// A packet that is no telecommand that makes sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Which one.
    pub id: RequestId,
    /// Why.
    pub code: Failure,
}

/// Service, subtype and function of each telecommand, without what else its table says.
const KEYS: [(u8, u8, u8); TELECOMMANDS.len()] = {
    let mut keys = [(0, 0, 0); TELECOMMANDS.len()];
    let mut index = 0;
    while index < keys.len() {
        keys[index] = TELECOMMANDS[index].key;
        index += 1;
    }
    keys
};

/// Reads the packet that `bytes` are.
///
/// # Errors
/// The first that is wrong of length, checksum, version, application process, service, subtype, function, arguments.
pub fn decode(bytes: &[u8]) -> Result<Request<'_>, Refusal> {
    let id = RequestId::of(bytes);
    read(bytes, id).map_err(|code| Refusal { id, code })
}

fn read(bytes: &[u8], id: RequestId) -> Result<Request<'_>, Failure> {
    if bytes.len() < MIN || bytes.len() > MAX_PACKET {
        return Err(Failure::Length);
    }
    let (header, _) = SpHeader::from_be_bytes(bytes).map_err(|_| Failure::Length)?;
    if header.packet_len() != bytes.len() {
        return Err(Failure::Length);
    }
    if checksum::of(bytes) != 0 {
        return Err(Failure::Checksum);
    }
    // The reader of spacepackets takes any version of PUS for its own, so that is looked at before.
    let secondary = bytes.get(6).ok_or(Failure::Length)?;
    if id.packet >> 13 != 0
        || header.packet_type() != PacketType::Tc
        || !header.sec_header_flag()
        || id.sequence >> 14 != 3
        || secondary >> 4 != PUS_C
    {
        return Err(Failure::Version);
    }
    if header.apid().value() != APID {
        return Err(Failure::Apid);
    }
    let packet =
        PusTcReader::new_no_checksum_verification(bytes, true).map_err(|_| Failure::Length)?;
    let MessageTypeId {
        type_id: service,
        subtype_id: subtype,
    } = GenericPusTcSecondaryHeader::message_type_id(&packet);
    let mut reader = Reader::new(packet.app_data());
    let function = if (service, subtype) == (8, 1) {
        reader.take(1)?.first().copied().unwrap_or(0)
    } else {
        0
    };
    let command = Command::read((service, subtype, function), &mut reader)?
        .ok_or_else(|| unknown(service, subtype))?;
    if !reader.is_empty() {
        return Err(Failure::Length);
    }
    // The one range that depends on another argument.
    if let Command::SetParameter { parameter, value } = command
        && let Some(row) = parameter.definition()
        && !(row.least..=row.greatest).contains(&value)
    {
        return Err(Failure::Argument);
    }
    Ok(Request {
        id,
        acknowledge: Acknowledge::of(packet.ack_flags().raw_value().value()),
        command,
    })
}

/// What is unknown of a telecommand that is in no table.
fn unknown(service: u8, subtype: u8) -> Failure {
    if !KEYS.iter().any(|key| key.0 == service) {
        Failure::Service
    } else if !KEYS.iter().any(|key| (key.0, key.1) == (service, subtype)) {
        Failure::Subtype
    } else {
        Failure::Function
    }
}

/// Writes the packet of a command; the length, or none when it does not fit into `bytes` or a packet.
pub fn encode(
    command: &Command<'_>,
    sequence: u16,
    acknowledge: Acknowledge,
    bytes: &mut [u8],
) -> Option<usize> {
    let (service, subtype, function) = command.key();
    let mut data = [0; MAX_PACKET];
    let mut writer = Writer::new(&mut data);
    if service == 8 {
        writer.put(&[function]);
    }
    command.write(&mut writer);
    let length = writer.length()?;
    let header = SpHeader::new_for_unseg_tc(u11::new(APID), u14::masked_new(sequence), 0);
    let flags = AckFlags::new_with_raw_value(u4::new(acknowledge.bits()));
    let secondary = PusTcSecondaryHeader::new(MessageTypeId::new(service, subtype), flags, 0);
    let packet = PusTcCreator::new(
        header,
        secondary,
        data.get(..length)?,
        CreatorConfig::default(),
    );
    (packet.len_written() <= MAX_PACKET)
        .then(|| packet.write_to_slice(bytes).ok())
        .flatten()
}
