//! What is found of a trace, as JSON.

use metes_bounds::{Cause, Declared, Kept, Share};
use serde_json::{Value, json};

use super::super::guaranteed_document;
use super::{Report, number};
use crate::error::Failure;

impl Report<'_> {
    /// Arrival and release curves.
    pub(super) fn curves(&self) -> Result<Value, Failure> {
        let observed = &self.found.observed;
        let wrong = |error: metes_curve::Error| Failure::input(error.to_string());
        let of = |share: &Share| {
            let read = |curve: metes_curve::Curve| {
                serde_json::from_str::<Value>(&curve.to_json()).unwrap_or_default()
            };
            Ok::<_, Failure>(json!({
                "largest": share.largest,
                "arrival": read(share.arrival.curve().map_err(wrong)?),
                "release": read(share.release.curve().map_err(wrong)?),
                "exact": share.arrival.is_exact(),
            }))
        };
        let classes = observed.classes.iter().map(of);
        Ok(json!({
            "axis": observed.options.axis.name(),
            "total": of(&observed.total)?,
            "classes": classes.collect::<Result<Vec<_>, _>>()?,
        }))
    }

    pub(super) fn document(&self) -> Value {
        let observed = &self.found.observed;
        let share = |share: &Share| {
            json!({
                "largest": share.largest,
                "arrivals": share.arrivals,
                "bytes": number(share.bytes),
                "peak_live": number(share.peak),
                "rate": format!("{}/{}", share.bytes, u128::from(observed.end) + 1),
                "burst": number(share.burst),
                "lifetime": share.lifetime,
                "never_freed": share.never_freed,
                "bound": number(share.bound()),
                "method": share.bounds.first().map(|(method, _)| method.name()),
                "bounds": share.bounds.iter().map(|(method, bytes)| json!({
                    "method": method.name(),
                    "bytes": number(*bytes),
                })).collect::<Vec<_>>(),
                "cause": cause(share),
                "busy": share.busy,
                "exact": share.arrival.is_exact(),
            })
        };
        let total = share(&observed.total);
        json!({
            "trace": self.path,
            "events": self.trace.len(),
            "axis": observed.options.axis.name(),
            "divided_by": observed.options.classes.to_string(),
            "resolution": observed.options.resolution,
            "end": observed.end,
            "peak_live": number(observed.peak),
            "peak_event": observed.peak_event,
            "peak_live_resizing": total["peak_live"],
            "bound": total["bound"],
            "method": total["method"],
            "standing": "observed",
            "bound_in_blocks": number(self.found.in_blocks),
            "reclaim": self.found.reclaim.as_ref().map(ToString::to_string),
            "total": total,
            "classes": observed.classes.iter().map(share).collect::<Vec<_>>(),
            "declared": self.kept().map(|(file, kept)| declared(file, kept)),
            "heap": self.heap.as_ref().map(|needed| json!({
                "observed": guaranteed_document(&needed.observed),
                "declared": needed.declared.as_ref().map(guaranteed_document),
            })),
        })
    }
}

/// The window that makes the bound of a class.
fn cause(share: &Share) -> Value {
    let Cause {
        lifetimes_up_to,
        length,
        burst,
    } = share.cause;
    json!({
        "lifetimes_up_to": lifetimes_up_to,
        "length": length,
        "from_event": burst.from_event,
        "to_event": burst.to_event,
        "from": burst.from,
        "to": burst.to,
        "blocks": burst.blocks,
        "bytes": number(burst.bytes),
    })
}

fn declared(file: &str, kept: &Kept) -> Value {
    let classes = kept.contract.classes().iter().zip(&kept.observed);
    let class = |(class, (peak, bound)): (&Declared, &(u128, u128))| {
        json!({
            "largest": class.largest,
            "burst": class.burst,
            "rate": class.rate().to_string(),
            "lifetime": class.lifetime,
            "bound": class.bound().map(number),
            "peak_live": number(*peak),
            "observed_bound": number(*bound),
        })
    };
    json!({
        "file": file,
        "keeps": kept.breach.is_none(),
        "breach": kept.breach.as_ref().map(ToString::to_string),
        "bound": kept.contract.bound().map(number),
        "classes": classes.map(class).collect::<Vec<_>>(),
    })
}
