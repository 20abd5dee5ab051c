//! The values of one parameter as a space file spells them: one, a list, or a
//! range `{ from, to, step }`.
//!
//! Invariant: a parameter has at least one value and none twice.

use std::fmt;
use std::marker::PhantomData;

use metes_heap::description::GROWING_SPAN;
use metes_heap::index::lea::LARGEST_KEPT;
use metes_heap::{Fit, Links, Order, SizeTable};
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use super::axes::AxisValue;

/// What a value can be read from.
pub(super) trait Item: Sized + Clone + PartialEq {
    /// What is expected, for errors.
    const EXPECTED: &'static str;

    fn integer(number: u64) -> Result<Self, String> {
        Err(format!("{} is expected, not {number}", Self::EXPECTED))
    }

    fn word(text: &str) -> Result<Self, String> {
        Err(format!("{} is expected, not `{text}`", Self::EXPECTED))
    }

    /// A list as one value.
    fn nested<'d, A: SeqAccess<'d>>(_list: &mut A) -> Result<Self, A::Error> {
        let message = format!("{} is expected, not a list in a list", Self::EXPECTED);
        Err(de::Error::custom(message))
    }

    /// The value for whoever chooses one: what a space file would say.
    fn value(&self) -> AxisValue;

    /// As the manifest of an exploration has it: two spellings of one value are
    /// the same there.
    fn spelt(&self) -> String {
        self.value().to_string()
    }
}

fn number(number: usize) -> AxisValue {
    AxisValue::Number(number as u64)
}

fn word(text: &str) -> AxisValue {
    AxisValue::Word(text.to_owned())
}

/// The values of one parameter.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Values<T>(pub(super) Vec<T>);

fn one_of<T: Item>(known: &[(&'static str, T)], text: &str) -> Result<T, String> {
    let found = known.iter().find(|(name, _)| *name == text);
    found.map(|(_, value)| value.clone()).ok_or_else(|| {
        let help = metes_config::suggest(text, known.iter().map(|(name, _)| *name));
        let help = help.map_or(String::new(), |help| format!(" ({help})"));
        format!("{} is expected, not `{text}`{help}", T::EXPECTED)
    })
}

fn name_of<T: PartialEq>(known: &[(&'static str, T)], value: &T) -> AxisValue {
    let found = known.iter().find(|(_, own)| own == value);
    word(found.map_or("", |(name, _)| name))
}

macro_rules! words {
    ($kind:ty, $known:ident, $expected:literal, $($name:literal => $value:expr),+ $(,)?) => {
        const $known: &[(&str, $kind)] = &[$(($name, $value)),+];
        impl Item for $kind {
            const EXPECTED: &'static str = $expected;
            fn word(text: &str) -> Result<Self, String> {
                one_of($known, text)
            }
            fn value(&self) -> AxisValue {
                name_of($known, self)
            }
        }
    };
}

words!(Fit, FITS, "a fit", "first" => Fit::First, "next" => Fit::Next,
    "best" => Fit::Best, "worst" => Fit::Worst, "exact" => Fit::Exact);
words!(Order, ORDERS, "an order", "lifo" => Order::Lifo, "fifo" => Order::Fifo,
    "address" => Order::Address);

/// What general pools are indexed by, before parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    List,
    Classes,
    Kingsley,
    Buddy,
    Lea,
    Ose,
    Tree,
}

words!(Family, FAMILIES, "an index", "list" => Family::List, "classes" => Family::Classes,
    "kingsley" => Family::Kingsley, "buddy" => Family::Buddy, "lea" => Family::Lea,
    "ose" => Family::Ose, "tree" => Family::Tree);

/// What a tree keeps of each group of granules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Summary {
    Exact,
    Class,
}

words!(Summary, SUMMARIES, "a summary", "exact" => Summary::Exact, "class" => Summary::Class);

/// What of a heap follows from the trace.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fitted {
    /// The table of block sizes that suits it.
    pub(super) table: SizeTable,
    /// What a tree is laid out for.
    pub(super) span: usize,
}

impl Fitted {
    /// For no trace.
    pub(super) const NONE: Fitted = Fitted {
        table: SizeTable::DEFAULT,
        span: GROWING_SPAN,
    };
}

/// Bytes up to which freed blocks are kept aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Keep(pub(super) u32);

impl Item for Keep {
    const EXPECTED: &'static str = "a multiple of 16 up to 256 bytes, or `never`,";

    fn integer(number: u64) -> Result<Self, String> {
        match u32::try_from(number) {
            Ok(size) if size <= LARGEST_KEPT && size.is_multiple_of(16) => Ok(Keep(size)),
            _ => Err(format!("{} is expected, not {number}", Self::EXPECTED)),
        }
    }

    fn word(text: &str) -> Result<Self, String> {
        one_of(&[("never", Keep(0))], text)
    }

    fn value(&self) -> AxisValue {
        match self.0 {
            0 => word("never"),
            size => AxisValue::Number(size.into()),
        }
    }
}

/// The block sizes of a heap of fixed sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Table {
    /// Powers of two, as the named heap has them.
    Default,
    /// Those that suit the trace best.
    Fitted,
    Sizes(SizeTable),
}

impl Table {
    fn of(sizes: &[u64]) -> Result<Self, String> {
        let sizes: Option<Vec<u32>> = sizes.iter().map(|&size| size.try_into().ok()).collect();
        let table = sizes.and_then(|sizes| SizeTable::new(&sizes));
        table.map(Table::Sizes).ok_or_else(|| {
            "up to 8 block sizes are expected, rising multiples of 32 up to 2 GiB, as in \
             [64, 256, 1024]"
                .to_owned()
        })
    }
}

impl Item for Table {
    const EXPECTED: &'static str = "a list of block sizes, `fitted` or `default`,";

    fn integer(number: u64) -> Result<Self, String> {
        Table::of(&[number])
    }

    fn word(text: &str) -> Result<Self, String> {
        one_of(
            &[("default", Table::Default), ("fitted", Table::Fitted)],
            text,
        )
    }

    fn nested<'d, A: SeqAccess<'d>>(list: &mut A) -> Result<Self, A::Error> {
        let Set(sizes) = Set::<Size>::nested(list)?;
        let sizes: Vec<u64> = sizes.iter().map(|size| size.bytes() as u64).collect();
        Table::of(&sizes).map_err(de::Error::custom)
    }

    fn value(&self) -> AxisValue {
        match self {
            Table::Default => word("default"),
            Table::Fitted => word("fitted"),
            Table::Sizes(table) => {
                AxisValue::of(table.iter().map(|size| number(size as usize)).collect())
            }
        }
    }
}

/// A number of things.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Count(pub(super) usize);

impl Item for Count {
    const EXPECTED: &'static str = "a number";

    fn integer(number: u64) -> Result<Self, String> {
        usize::try_from(number).map(Count).map_err(|_| {
            let expected = Self::EXPECTED;
            format!("{expected} of pools is expected, not {number}")
        })
    }

    fn value(&self) -> AxisValue {
        number(self.0)
    }
}

/// Most blocks that a dedicated list keeps; `None`: all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kept(pub(super) Option<u32>);

impl Item for Kept {
    const EXPECTED: &'static str = "a limit of 1 to 4294967294 blocks, or `none`,";

    fn integer(number: u64) -> Result<Self, String> {
        match u32::try_from(number) {
            Ok(most) if most > 0 && most < u32::MAX => Ok(Kept(Some(most))),
            _ => Err(format!("{} is expected, not {number}", Self::EXPECTED)),
        }
    }

    fn word(text: &str) -> Result<Self, String> {
        one_of(&[("none", Kept(None))], text)
    }

    fn value(&self) -> AxisValue {
        let limit = self.0.map(|most| AxisValue::Number(most.into()));
        limit.unwrap_or_else(|| word("none"))
    }
}

/// A share of the list, in percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Depth(pub(super) u32);

impl Item for Depth {
    const EXPECTED: &'static str = "a depth of search from 1 to 100 percent";

    fn integer(number: u64) -> Result<Self, String> {
        match number {
            1..=100 => Ok(Depth(number as u32)),
            _ => Err(format!("{} is expected, not {number}", Self::EXPECTED)),
        }
    }

    fn value(&self) -> AxisValue {
        AxisValue::Number(self.0.into())
    }
}

/// The largest block that qualifies, in percent of the need; 0: any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MaxFit(pub(super) u32);

impl Item for MaxFit {
    const EXPECTED: &'static str = "a maximum fit of 100 to 65535 percent, or `any`,";

    fn integer(number: u64) -> Result<Self, String> {
        match number {
            100..=65_535 => Ok(MaxFit(number as u32)),
            _ => Err(format!("{} is expected, not {number}", Self::EXPECTED)),
        }
    }

    fn word(text: &str) -> Result<Self, String> {
        one_of(&[("any", MaxFit(0))], text)
    }

    fn value(&self) -> AxisValue {
        match self.0 {
            0 => word("any"),
            percent => AxisValue::Number(percent.into()),
        }
    }
}

/// Blocks of the request's own class that are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Probes(pub(super) usize);

impl Item for Probes {
    const EXPECTED: &'static str = "a number of probes, or `all`,";

    fn integer(number: u64) -> Result<Self, String> {
        Count::integer(number).map(|Count(number)| Probes(number))
    }

    fn word(text: &str) -> Result<Self, String> {
        one_of(&[("all", Probes(usize::MAX))], text)
    }

    fn value(&self) -> AxisValue {
        match self.0 {
            usize::MAX => word("all"),
            probes => number(probes),
        }
    }
}

/// Bytes; `None`: any.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Size(pub(super) Option<usize>);

impl Size {
    pub(super) fn bytes(self) -> usize {
        self.0.unwrap_or(0)
    }
}

impl Item for Size {
    const EXPECTED: &'static str = "a size";

    fn integer(number: u64) -> Result<Self, String> {
        match usize::try_from(number) {
            Ok(0) => Err("a size of at least one byte is expected".to_owned()),
            Ok(number) => Ok(Size(Some(number))),
            Err(_) => Err(format!("{number} bytes are more than a machine word holds")),
        }
    }

    fn word(text: &str) -> Result<Self, String> {
        match text {
            "any" => Ok(Size(None)),
            text => Size::integer(metes_config::read_size(text)? as u64),
        }
    }

    fn value(&self) -> AxisValue {
        self.0.map_or_else(|| word("any"), number)
    }
}

/// Bytes of a page, or no pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Page(pub(super) Option<usize>);

impl Item for Page {
    const EXPECTED: &'static str = "the size of a page, or `none`,";

    fn integer(number: u64) -> Result<Self, String> {
        Size::integer(number).map(|Size(bytes)| Page(bytes))
    }

    fn word(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Page(None)),
            text => Page::integer(metes_config::read_size(text)? as u64),
        }
    }

    fn value(&self) -> AxisValue {
        self.0.map_or_else(|| word("none"), number)
    }
}

/// A growth factor, in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Factor(pub(super) u32);

impl Item for Factor {
    const EXPECTED: &'static str = "a factor above 1 with three decimal places, such as 1.125,";

    fn integer(number: u64) -> Result<Self, String> {
        Factor::word(&number.to_string())
    }

    fn word(text: &str) -> Result<Self, String> {
        let thousandths = text.parse::<f64>().unwrap_or(0.0) * 1000.0;
        let whole = (thousandths - thousandths.round()).abs() < 1e-6;
        match whole && thousandths > 1000.0 && thousandths <= 1e6 {
            true => Ok(Factor(thousandths.round() as u32)),
            false => Err(format!("{} is expected, not {text}", Self::EXPECTED)),
        }
    }

    fn value(&self) -> AxisValue {
        word(&format!("{}.{:03}", self.0 / 1000, self.0 % 1000))
    }
}

words!(Links, LINKS, "`single` or `double`", "single" => Links::Single, "double" => Links::Double);

/// A name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word(pub(super) String);

impl Item for Word {
    const EXPECTED: &'static str = "a name";

    fn word(text: &str) -> Result<Self, String> {
        Ok(Word(text.to_owned()))
    }

    fn value(&self) -> AxisValue {
        word(&self.0)
    }
}

/// Several values that belong together, such as one for each pool.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Set<T>(pub(super) Vec<T>);

impl<T: Item> Item for Set<T> {
    const EXPECTED: &'static str = T::EXPECTED;

    fn integer(number: u64) -> Result<Self, String> {
        T::integer(number).map(|value| Set(vec![value]))
    }

    fn word(text: &str) -> Result<Self, String> {
        T::word(text).map(|value| Set(vec![value]))
    }

    fn nested<'d, A: SeqAccess<'d>>(list: &mut A) -> Result<Self, A::Error> {
        let mut values = Vec::new();
        while let Some(One(more)) = list.next_element::<One<T>>()? {
            values.extend(more);
        }
        Ok(Set(values))
    }

    fn value(&self) -> AxisValue {
        AxisValue::of(self.0.iter().map(Item::value).collect())
    }
}

struct Reader<T> {
    nested: bool,
    marker: PhantomData<T>,
}

/// An element of a list: a value, a range of values or a list as one value.
struct One<T>(Vec<T>);

impl<'d, T: Item> Deserialize<'d> for One<T> {
    fn deserialize<D: Deserializer<'d>>(deserializer: D) -> Result<Self, D::Error> {
        let reader = Reader {
            nested: true,
            marker: PhantomData,
        };
        deserializer.deserialize_any(reader).map(One)
    }
}

impl<'d, T: Item> Visitor<'d> for Reader<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Vec<T>, E> {
        let number = u64::try_from(number)
            .map_err(|_| E::custom(format!("{} is expected, not {number}", T::EXPECTED)))?;
        self.visit_u64(number)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Vec<T>, E> {
        T::integer(number)
            .map(|value| vec![value])
            .map_err(E::custom)
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Vec<T>, E> {
        T::word(&number.to_string())
            .map(|value| vec![value])
            .map_err(E::custom)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Vec<T>, E> {
        T::word(text).map(|value| vec![value]).map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'d>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
        if self.nested {
            return T::nested(&mut list).map(|value| vec![value]);
        }
        let mut values: Vec<T> = Vec::new();
        while let Some(One(more)) = list.next_element::<One<T>>()? {
            for value in more {
                if values.contains(&value) {
                    let text = value.spelt();
                    return Err(de::Error::custom(format!("`{text}` is listed twice")));
                }
                values.push(value);
            }
        }
        if values.is_empty() {
            let message = "a parameter needs at least one value; leave the key out for its default";
            return Err(de::Error::custom(message));
        }
        Ok(values)
    }

    fn visit_map<A: MapAccess<'d>>(self, map: A) -> Result<Vec<T>, A::Error> {
        let Range { from, to, step } =
            Range::deserialize(de::value::MapAccessDeserializer::new(map))?;
        if step == 0 || from > to || (to - from) / step > 10_000 {
            let message = format!(
                "a range needs `from` <= `to` and a step of at least 1, not {from}, {to} and {step}"
            );
            return Err(de::Error::custom(message));
        }
        let numbers = (from..=to).step_by(usize::try_from(step).unwrap_or(usize::MAX));
        numbers
            .map(|number| T::integer(number).map_err(de::Error::custom))
            .collect()
    }
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Range {
    from: u64,
    to: u64,
    step: u64,
}

impl<'d, T: Item> Deserialize<'d> for Values<T> {
    fn deserialize<D: Deserializer<'d>>(deserializer: D) -> Result<Self, D::Error> {
        let reader = Reader {
            nested: false,
            marker: PhantomData,
        };
        deserializer.deserialize_any(reader).map(Values)
    }
}
