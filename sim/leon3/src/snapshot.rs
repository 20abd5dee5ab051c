//! A machine in a file: everything that decides how it goes on.

/// Arrays of 64 words, which serde knows up to 32.
pub(crate) mod words {
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        words: &[u32; 64],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        words.as_slice().serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<[u32; 64], D::Error> {
        let words = Vec::<u32>::deserialize(deserializer)?;
        words
            .try_into()
            .map_err(|_| D::Error::custom("not 64 registers"))
    }
}
