//! From one description of a message, its type, its row in a table, and its codec.
//!
//! *Invariant:* a field is described once; table, reader and writer cannot disagree.

/// An enumeration with the numbers of its values, and their names.
macro_rules! enumeration {
    (
        $(#[doc = $doc:literal])+
        $name:ident: $wide:ty, $kind:ident, $called:literal {
            $( $(#[doc = $value_doc:literal])+ $value:ident = $number:literal, $value_name:literal; )+
        }
    ) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $( $(#[doc = $value_doc])+ $value = $number, )+
        }

        impl $name {
            /// All values with numbers, names and what they mean.
            pub const DEFINITION: $crate::definitions::Enumeration = $crate::definitions::Enumeration {
                name: $called,
                doc: concat!($($doc),+),
                values: &[ $( ($number, $value_name, concat!($($value_doc),+)), )+ ],
            };

            /// The value of a number.
            #[must_use]
            pub const fn of(number: $wide) -> Option<Self> {
                match number {
                    $( $number => Some(Self::$value), )+
                    _ => None,
                }
            }

            /// Its name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $( Self::$value => $value_name, )+
                }
            }
        }

        impl $crate::value::Value<'_> for $name {
            const KIND: $crate::value::Kind = $crate::value::Kind::$kind($called);
            const SIZE: usize = size_of::<$wide>();

            fn read(reader: &mut $crate::value::Reader<'_>) -> Result<Self, $crate::definitions::Failure> {
                let number = <$wide>::read(reader)?;
                Self::of(number).ok_or($crate::definitions::Failure::Argument)
            }

            fn write(&self, writer: &mut $crate::value::Writer<'_>) {
                (*self as $wide).write(writer);
            }
        }
    };
}

/// A group of fields.
macro_rules! structure {
    (
        $(#[doc = $doc:literal])+
        $name:ident $(each $names:ident)? {
            $( $(#[doc = $field_doc:literal])+ $field:ident: $type:ty, $unit:literal; )+
        }
    ) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
        pub struct $name {
            $( $(#[doc = $field_doc])+ pub $field: $type, )+
        }

        impl $name {
            /// Its fields.
            pub const FIELDS: &'static [$crate::value::Field] = &[ $( $crate::value::Field {
                name: stringify!($field),
                doc: concat!($($field_doc),+),
                kind: <$type as $crate::value::Value<'static>>::KIND,
                unit: $unit,
                range: None,
            }, )+ ];
        }

        $( impl $crate::value::Named for $name {
            const NAMES: &'static [&'static str] = $names;
        } )?

        impl $crate::value::Value<'_> for $name {
            const KIND: $crate::value::Kind = $crate::value::Kind::Group(Self::FIELDS);
            const SIZE: usize = 0 $( + <$type as $crate::value::Value<'static>>::SIZE )+;

            fn read(reader: &mut $crate::value::Reader<'_>) -> Result<Self, $crate::definitions::Failure> {
                $( let $field = $crate::value::Value::read(reader)?; )+
                Ok(Self { $( $field ),+ })
            }

            fn write(&self, writer: &mut $crate::value::Writer<'_>) {
                $( $crate::value::Value::write(&self.$field, writer); )+
            }
        }
    };
}

/// Messages that a key tells apart: a type, a table of them, and their codec.
macro_rules! messages {
    (
        $(#[doc = $doc:literal])+
        $name:ident $(<$life:lifetime>)?, $table:ident, key $key_type:ty, with $extra_type:ty {
            $(
                $(#[doc = $message_doc:literal])+
                $message:ident $called:literal ($($key:literal),+) $extra:expr => {
                    $( $(#[doc = $field_doc:literal])+ $field:ident: $type:ty, $unit:literal $(, $least:literal..=$greatest:literal)?; )*
                }
            )+
        }
    ) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name $(<$life>)? {
            $( $(#[doc = $message_doc])+ $message { $( $(#[doc = $field_doc])+ $field: $type, )* }, )+
        }

        /// The table of them.
        pub const $table: &[$crate::definitions::Message<$key_type, $extra_type>] = $name::MESSAGES;

        impl $(<$life>)? $name $(<$life>)? {
            /// All of them, in the order of the table.
            const MESSAGES: &'static [$crate::definitions::Message<$key_type, $extra_type>] = &[ $(
            $crate::definitions::Message {
                key: ($($key,)+),
                name: $called,
                doc: concat!($($message_doc),+),
                extra: $extra,
                fields: &[ $( $crate::value::Field {
                    name: stringify!($field),
                    doc: concat!($($field_doc),+),
                    kind: <$type as $crate::value::Value>::KIND,
                    unit: $unit,
                    range: messages!(@range $($least, $greatest)?),
                }, )* ],
            },
        )+ ];

            /// What tells it apart.
            #[must_use]
            pub const fn key(&self) -> $key_type {
                match self {
                    $( Self::$message { .. } => ($($key,)+), )+
                }
            }

            /// What else its row of the table says.
            #[allow(clippy::must_use_unit, reason = "some tables say nothing else")]
            #[must_use]
            pub const fn extra(&self) -> $extra_type {
                match self {
                    $( Self::$message { .. } => $extra, )+
                }
            }

            /// Its name.
            #[must_use]
            pub const fn name(&self) -> &'static str {
                match self {
                    $( Self::$message { .. } => $called, )+
                }
            }

            /// Reads the fields of the message with that key; none when there is no such message.
            ///
            /// # Errors
            /// What is wrong with the fields.
            pub fn read(
                key: $key_type,
                reader: &mut $crate::value::Reader $(<$life>)?,
            ) -> Result<Option<Self>, $crate::definitions::Failure> {
                Ok(Some(match key {
                    $( ($($key,)+) => {
                        $(
                            let $field = <$type as $crate::value::Value>::read(reader)?;
                            $( if !$crate::value::Value::within(&$field, $least, $greatest) {
                                return Err($crate::definitions::Failure::Argument);
                            } )?
                        )*
                        Self::$message { $( $field ),* }
                    } )+
                    _ => return Ok(None),
                }))
            }

            /// Writes the fields.
            pub fn write(&self, writer: &mut $crate::value::Writer<'_>) {
                match self {
                    $( Self::$message { $( $field ),* } => {
                        let _ = &writer;
                        $( $crate::value::Value::write($field, writer); )*
                    } )+
                }
            }
        }
    };
    (@range) => { None };
    (@range $least:literal, $greatest:literal) => { Some(($least, $greatest)) };
}
