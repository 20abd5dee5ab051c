//! Progress of what lasts, on stderr and only on a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A turning wheel with a text.
pub(crate) fn spinner(text: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed:.dim}") {
        bar.set_style(style);
    }
    bar.set_message(text.to_owned());
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}

/// A text that moves only when it is told to: while programs run nothing may be printed.
pub(crate) fn still(text: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("  {msg}") {
        bar.set_style(style);
    }
    bar.set_message(text.to_owned());
    bar
}

/// A bar over thousandths of a time budget, with a text.
pub(crate) fn budget(text: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(1000), ProgressDrawTarget::stderr());
    if let Ok(style) =
        ProgressStyle::with_template("{spinner} {msg} {wide_bar:.green/dim} {percent:>3} %")
    {
        bar.set_style(style);
    }
    bar.set_message(text.to_owned());
    bar
}
