//! The output of commands.

use std::fmt::Arguments;
use std::io::Write;
use std::process;

/// Prints text. If nobody reads it any more, as behind `| head`, the command ends quietly.
pub(crate) fn write(text: Arguments<'_>) {
    if std::io::stdout().lock().write_fmt(text).is_err() {
        process::exit(0);
    }
}

/// Prints a line of the output of a command.
macro_rules! say {
    ($($text:tt)*) => {
        crate::output::write(format_args!("{}\n", format_args!($($text)*)))
    };
}

pub(crate) use say;
