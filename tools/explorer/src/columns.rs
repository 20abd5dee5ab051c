//! The configurations of an exploration, column by column.
//!
//! Invariant: every column has a value, or its absence, for each row.

/// The values of one column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Values {
    /// Numbers; absent ones are `None`.
    Integers(Vec<Option<u64>>),
    /// Words: which of the dictionary each row has; absent ones are `None`.
    Words {
        /// Each word once, in the order of first appearance.
        dictionary: Vec<String>,
        /// A position in the dictionary for each row.
        codes: Vec<Option<u32>>,
    },
}

impl Values {
    /// Rows.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Values::Integers(values) => values.len(),
            Values::Words { codes, .. } => codes.len(),
        }
    }

    /// Whether there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The exact text of a row's value; `None` where it is absent.
    #[must_use]
    pub fn text(&self, row: usize) -> Option<String> {
        match self {
            Values::Integers(values) => values[row].map(|value| value.to_string()),
            Values::Words { dictionary, codes } => {
                codes[row].map(|code| dictionary[code as usize].clone())
            }
        }
    }
}

/// A named column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// As in the file.
    pub name: String,
    /// One for each row.
    pub values: Values,
}

/// All columns, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    /// The columns; all have the same number of rows.
    pub list: Vec<Column>,
}

impl Columns {
    /// Configurations.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.list.first().map_or(0, |column| column.values.len())
    }

    /// A column by name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Values> {
        let column = self.list.iter().find(|column| column.name == name)?;
        Some(&column.values)
    }

    /// Number of a row's value in a column of numbers.
    #[must_use]
    pub fn integer(&self, name: &str, row: usize) -> Option<u64> {
        match self.get(name)? {
            Values::Integers(values) => values.get(row).copied()?,
            Values::Words { .. } => None,
        }
    }

    /// The row of the configuration with this number. O(rows).
    #[must_use]
    pub fn row_of(&self, number: u64) -> Option<usize> {
        match self.get("number")? {
            Values::Integers(values) => values.iter().position(|&value| value == Some(number)),
            Values::Words { .. } => None,
        }
    }
}
