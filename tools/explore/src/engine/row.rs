//! What became of a configuration, and its form on disk while an exploration
//! runs: 89 bytes a row, and 8 more where it is known what heaps guarantee.
//!
//! Invariant: decoding what was encoded gives the same rows; anything else that
//! is decoded is refused.

/// What became of a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// Replayed to the end; its metrics are exact.
    Complete,
    /// The replay ended early because what it needed so far, and at least for
    /// the rest, was beaten already; its metrics are lower bounds.
    Beaten,
    /// The replay ended early because it took too long; lower bounds.
    Slow,
    /// A request failed, or the heap could not be set up in its levels.
    Failed,
    /// It guarantees less than was asked for, and was not replayed.
    Beyond,
}

impl Status {
    const ALL: [Status; 5] = [
        Status::Complete,
        Status::Beaten,
        Status::Slow,
        Status::Failed,
        Status::Beyond,
    ];

    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Status::Complete => "complete",
            Status::Beaten => "beaten",
            Status::Slow => "slow",
            Status::Failed => "failed",
            Status::Beyond => "beyond",
        }
    }
}

/// What a replay measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Metrics {
    /// Bytes taken from the system; of several runs by the one that takes most.
    pub footprint: u64,
    /// Bytes taken by several runs together, each as often as its share says.
    #[serde(skip)]
    pub footprint_sum: u64,
    /// Words read and written: records, and the application's own.
    pub accesses: u64,
    /// Record words read.
    pub record_reads: u64,
    /// Record words written.
    pub record_writes: u64,
    /// Energy of all accesses, without leakage, in femtojoule; 0 without levels.
    pub energy_fj: u64,
    /// Time of the whole run in picoseconds; 0 without levels.
    pub time_ps: u64,
    /// Modelled cycles of all operations.
    pub cycles: u64,
    /// Most modelled cycles of one operation.
    pub cycles_max: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Bytes that are proved to suffice for a demand: [`NO_GUARANTEE`] where no finite size is, 0 where nobody
    /// asked.
    #[serde(skip_serializing_if = "is_unasked", serialize_with = "finite")]
    pub guarantee: u64,
}

/// The guarantee of a heap for which no finite size is proved to suffice: more than any other.
pub const NO_GUARANTEE: u64 = u64::MAX;

fn is_unasked(guarantee: &u64) -> bool {
    *guarantee == 0
}

/// A guarantee as JSON: null where there is none.
fn finite<S: serde::Serializer>(guarantee: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    let bytes = Some(guarantee).filter(|bytes| **bytes != NO_GUARANTEE);
    serde::Serialize::serialize(&bytes, serializer)
}

/// What rows on disk have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// What replays measured.
    Measured,
    /// And what heaps guarantee.
    Guaranteed,
}

impl Form {
    /// Bytes of a row.
    const fn bytes(self) -> usize {
        8 + 1
            + 8 * match self {
                Form::Measured => WORDS - 1,
                Form::Guaranteed => WORDS,
            }
    }
}

/// Metrics of a row; the last is the guarantee.
const WORDS: usize = 11;

impl Metrics {
    fn words(&self) -> [u64; WORDS] {
        [
            self.footprint,
            self.footprint_sum,
            self.accesses,
            self.record_reads,
            self.record_writes,
            self.energy_fj,
            self.time_ps,
            self.cycles,
            self.cycles_max,
            self.failed,
            self.guarantee,
        ]
    }

    fn from_words(words: [u64; WORDS]) -> Self {
        let [
            footprint,
            footprint_sum,
            accesses,
            record_reads,
            record_writes,
            energy_fj,
            time_ps,
            cycles,
            cycles_max,
            failed,
            guarantee,
        ] = words;
        Metrics {
            footprint,
            footprint_sum,
            accesses,
            record_reads,
            record_writes,
            energy_fj,
            time_ps,
            cycles,
            cycles_max,
            failed,
            guarantee,
        }
    }
}

/// A configuration and what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Row {
    /// Its number in the space.
    pub number: u64,
    /// What became of it.
    pub status: Status,
    /// Its metrics.
    pub metrics: Metrics,
}

/// Rows as bytes.
pub fn encode_rows(rows: &[Row], form: Form) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(rows.len() * form.bytes());
    for row in rows {
        let end = bytes.len() + form.bytes();
        bytes.extend(row.number.to_le_bytes());
        bytes.push(row.status as u8);
        let words = row.metrics.words();
        bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        bytes.truncate(end);
    }
    bytes
}

/// Rows from bytes; `None` where they are no rows of this form.
pub fn decode_rows(bytes: &[u8], form: Form) -> Option<Vec<Row>> {
    if !bytes.len().is_multiple_of(form.bytes()) {
        return None;
    }
    let rows = bytes.chunks_exact(form.bytes());
    rows.map(|row| {
        let (number, rest) = row.split_first_chunk::<8>()?;
        let (status, rest) = rest.split_first()?;
        let (words, _) = rest.as_chunks::<8>();
        let mut metrics = [0; WORDS];
        for (metric, word) in metrics.iter_mut().zip(words) {
            *metric = u64::from_le_bytes(*word);
        }
        Some(Row {
            number: u64::from_le_bytes(*number),
            status: *Status::ALL.get(usize::from(*status))?,
            metrics: Metrics::from_words(metrics),
        })
    })
    .collect()
}
