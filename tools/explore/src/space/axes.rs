//! The parameters of a space by name, with their values as a space file spells
//! them: how people and other programs choose a configuration.
//!
//! Invariant: the values of a number name that number again; parameters that
//! cannot matter have their first value and may be left out.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// A value of a parameter, as a space file has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum AxisValue {
    /// Bytes, percent, or how many.
    Number(u64),
    /// Such as `first`, `any`, `all`.
    Word(String),
    /// Several that belong together, such as one a pool.
    List(Vec<AxisValue>),
}

impl AxisValue {
    /// Several values, or the only one.
    pub(super) fn of(mut values: Vec<AxisValue>) -> AxisValue {
        match (values.pop(), values.is_empty()) {
            (Some(only), true) => only,
            (last, _) => {
                values.extend(last);
                AxisValue::List(values)
            }
        }
    }

    /// A list of one is that one.
    fn plain(&self) -> &AxisValue {
        match self {
            AxisValue::List(values) if values.len() == 1 => values[0].plain(),
            value => value,
        }
    }
}

impl fmt::Display for AxisValue {
    /// Lists are joined by `+`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AxisValue::Number(number) => number.fmt(f),
            AxisValue::Word(word) => f.write_str(word),
            AxisValue::List(values) => {
                for (place, value) in values.iter().enumerate() {
                    let joint = if place == 0 { "" } else { "+" };
                    write!(f, "{joint}{value}")?;
                }
                Ok(())
            }
        }
    }
}

/// Values of parameters by name, such as `list.fit`.
pub type AxisValues = BTreeMap<String, AxisValue>;

/// A parameter of a space: a section and a key of its file, and the values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Axis {
    /// Section and key, such as `list.fit`; `level.NAME` for a level's size.
    pub name: String,
    /// At least one, in the order of the file.
    pub values: Vec<AxisValue>,
    /// The values of `general.index` with which it matters; none: any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<Vec<AxisValue>>,
}

impl Axis {
    /// A parameter that matters with any index.
    pub(super) fn new(name: &str, values: Vec<AxisValue>) -> Self {
        Axis {
            name: name.to_owned(),
            values,
            index: None,
        }
    }

    /// Whether a space file could say its values: what has no word there is no
    /// parameter of this space.
    fn spelt(&self) -> bool {
        let empty = |value: &AxisValue| matches!(value, AxisValue::List(list) if list.is_empty());
        !self.values.is_empty() && !self.values.iter().any(empty)
    }

    /// The place of a value.
    fn place(&self, value: &AxisValue) -> Result<usize, AxisError> {
        let wanted = value.plain();
        let found = self.values.iter().position(|own| own.plain() == wanted);
        found.ok_or_else(|| AxisError::NoValue {
            name: self.name.clone(),
            value: value.clone(),
            known: self.values.clone(),
        })
    }
}

/// Why values name no configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AxisError {
    /// No parameter has this name.
    #[error("the space has no parameter `{name}`{}", .help.as_ref().map_or(String::new(), |help| format!(" ({help})")))]
    NoAxis {
        /// The name.
        name: String,
        /// The nearest one.
        help: Option<String>,
    },
    /// The parameter does not have this value.
    #[error("`{name}` is not {value} in this space: its values are {}", list(.known))]
    NoValue {
        /// The parameter.
        name: String,
        /// What was asked for.
        value: AxisValue,
        /// What there is.
        known: Vec<AxisValue>,
    },
    /// These values together are no heap.
    #[error(
        "these values together are no heap, as more pools are asked for than one can have: choose other ones"
    )]
    NoHeap,
}

fn list(values: &[AxisValue]) -> String {
    let spelt: Vec<String> = values.iter().map(AxisValue::to_string).collect();
    spelt.join(", ")
}

/// The parameters of a space, in the order of its grids.
#[derive(Clone, Debug)]
pub(super) struct Axes {
    /// Of structures.
    pub(super) structure: Vec<Axis>,
    /// The families of kinds.
    pub(super) family: Axis,
    /// Of the kinds of each family.
    pub(super) kinds: Vec<Vec<Axis>>,
}

impl Axes {
    /// All of them, each once.
    pub(super) fn all(&self) -> Vec<Axis> {
        let mut all: Vec<Axis> = self.structure.clone();
        all.push(self.family.clone());
        for (family, axes) in self.kinds.iter().enumerate() {
            let word = &self.family.values[family];
            for axis in axes {
                match all.iter_mut().find(|own| own.name == axis.name) {
                    Some(own) => own.index.get_or_insert_default().push(word.clone()),
                    None => all.push(Axis {
                        index: Some(vec![word.clone()]),
                        ..axis.clone()
                    }),
                }
            }
        }
        all.retain(Axis::spelt);
        all
    }

    /// The values at a grid point.
    pub(super) fn values(&self, structure: &[usize], family: usize, kind: &[usize]) -> AxisValues {
        let mut values = AxisValues::new();
        let mut put = |axis: &Axis, digit: usize| {
            if axis.spelt() {
                values.insert(axis.name.clone(), axis.values[digit].clone());
            }
        };
        for (axis, &digit) in self.structure.iter().zip(structure) {
            put(axis, digit);
        }
        put(&self.family, family);
        for (axis, &digit) in self.kinds[family].iter().zip(kind) {
            put(axis, digit);
        }
        values
    }

    /// The grid point of values: digits of the structure, family, digits of the
    /// kind. What is left out has its first value.
    pub(super) fn point(
        &self,
        values: &AxisValues,
    ) -> Result<(Vec<usize>, usize, Vec<usize>), AxisError> {
        let all = self.all();
        for (name, value) in values {
            let Some(axis) = all.iter().find(|axis| axis.name == *name) else {
                let names = all.iter().map(|axis| axis.name.as_str());
                return Err(AxisError::NoAxis {
                    name: name.clone(),
                    help: metes_config::suggest(name, names),
                });
            };
            axis.place(value)?;
        }
        let place = |axis: &Axis| match values.get(&axis.name) {
            Some(value) => axis.place(value),
            None => Ok(0),
        };
        let digits = |axes: &[Axis]| axes.iter().map(place).collect::<Result<Vec<_>, _>>();
        let family = place(&self.family)?;
        Ok((
            digits(&self.structure)?,
            family,
            digits(&self.kinds[family])?,
        ))
    }
}
