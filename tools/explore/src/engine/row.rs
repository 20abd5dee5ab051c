//! What became of a configuration, and its form on disk while an exploration
//! runs: 89 bytes a row.
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
}

impl Status {
    const ALL: [Status; 4] = [
        Status::Complete,
        Status::Beaten,
        Status::Slow,
        Status::Failed,
    ];

    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Status::Complete => "complete",
            Status::Beaten => "beaten",
            Status::Slow => "slow",
            Status::Failed => "failed",
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
}

/// Metrics of a row.
const WORDS: usize = 10;

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

const BYTES: usize = 8 + 1 + WORDS * 8;

/// Rows as bytes.
pub fn encode_rows(rows: &[Row]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(rows.len() * BYTES);
    for row in rows {
        bytes.extend(row.number.to_le_bytes());
        bytes.push(row.status as u8);
        bytes.extend(
            row.metrics
                .words()
                .iter()
                .flat_map(|word| word.to_le_bytes()),
        );
    }
    bytes
}

/// Rows from bytes; `None` where they are no rows.
pub fn decode_rows(bytes: &[u8]) -> Option<Vec<Row>> {
    let (rows, []) = bytes.as_chunks::<BYTES>() else {
        return None;
    };
    rows.iter()
        .map(|row| {
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
