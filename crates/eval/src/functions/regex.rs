//! Regular expressions.
//!
//! The engine has no back references and no look-around, and therefore takes linear time on any pattern. A pattern it
//! refuses, one that compiles to more than [`PATTERN_SIZE_MAX`], and unknown modifiers yield undefined.

mod probe;

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use ::regex::{Regex, RegexBuilder};
use value::Value;

use self::probe::Probe;
use super::Call;
use super::strings::text_of;
use crate::EvalFault;
use crate::budget::WeightSum;
use crate::expression::{EvalResult, defined};

/// Most bytes of a compiled pattern.
pub(crate) const PATTERN_SIZE_MAX: usize = 1 << 20;

#[derive(Debug)]
pub(crate) struct Pattern {
    pub(crate) regex: Regex,
    modifiers: Box<str>,
    /// Created for the first text that needs it.
    probe: OnceLock<Probe>,
}

impl Pattern {
    /// `None` if the text is not a valid pattern.
    pub(crate) fn new(pattern: &str, modifiers: &str) -> Option<Pattern> {
        let regex = compile(pattern, modifiers)?;
        Some(Pattern { regex, modifiers: modifiers.into(), probe: OnceLock::new() })
    }

    /// Refuses a text that takes too long: a match cannot be interrupted.
    fn check_time(&self, text: &str, call: Call<'_>) -> Result<(), EvalFault> {
        if text.len() <= UNCHECKED_BYTES_MAX {
            return Ok(());
        }
        if self.probe.get().is_none() {
            call.charge(PROBE_STEPS)?;
        }
        let probe = self.probe.get_or_init(|| Probe::new(self.regex.as_str(), &self.modifiers));
        if probe.is_slow(text) { Err(EvalFault::PatternTooSlow { bytes: text.len() }) } else { Ok(()) }
    }
}

fn compile(pattern: &str, modifiers: &str) -> Option<Regex> {
    let mut builder = RegexBuilder::new(pattern);
    builder.size_limit(PATTERN_SIZE_MAX).dfa_size_limit(PATTERN_SIZE_MAX);
    for modifier in modifiers.chars() {
        match modifier {
            'i' => builder.case_insensitive(true),
            'm' => builder.multi_line(true),
            's' => builder.dot_matches_new_line(true),
            'x' => builder.ignore_whitespace(true),
            _ => return None,
        };
    }
    builder.build().ok()
}

/// The pattern of a call, from its second and third argument.
fn pattern(call: Call<'_>) -> Result<Option<Arc<Pattern>>, EvalFault> {
    let pattern = defined!(call.text(1));
    let modifiers = if call.has(2) { defined!(call.text(2)) } else { "".into() };
    call.frame.context.patterns.regex(&pattern, &modifiers, |steps| call.charge(steps))
}

/// Bytes of a text that are matched per step in the worst case.
const BYTES_PER_STEP: usize = 4;

/// A text of this length takes a hundredth of a second with the largest pattern that compiles; for a longer one the
/// size of the pattern is checked.
const UNCHECKED_BYTES_MAX: usize = 128;

/// Steps to create a probe.
const PROBE_STEPS: usize = 20_000;

/// A text and the pattern that it is matched with.
type RegexComparison<'a> = (Cow<'a, str>, Arc<Pattern>);

/// The text and the pattern of a call.
fn text_and_pattern(call: Call<'_>) -> Result<Option<RegexComparison<'_>>, EvalFault> {
    let text = defined!(call.text(0));
    let pattern = defined!(pattern(call));
    call.charge(text.len() / BYTES_PER_STEP)?;
    pattern.check_time(&text, call)?;
    Ok(Some((text, pattern)))
}

/// Whether the pattern matches anywhere in the text.
pub(super) fn matches(call: Call<'_>) -> EvalResult<'_> {
    let (text, pattern) = defined!(text_and_pattern(call));
    Ok(Some(pattern.regex.is_match(&text).into()))
}

/// The first match; undefined if there is none.
pub(super) fn extract(call: Call<'_>) -> EvalResult<'_> {
    let (text, pattern) = defined!(text_and_pattern(call));
    match pattern.regex.find(&text) {
        Some(found) => text_of(found.as_str().to_owned()),
        None => Ok(None),
    }
}

/// All matches in order.
pub(super) fn extract_all(call: Call<'_>) -> EvalResult<'_> {
    let (text, pattern) = defined!(text_and_pattern(call));
    let mut found = Vec::new();
    let mut scale = WeightSum::default();
    let mut end = 0;
    for one in pattern.regex.find_iter(&text) {
        // Here the work can be interrupted.
        call.charge((one.end() - end) / BYTES_PER_STEP + 1)?;
        end = one.end();
        let one = Value::from(one.as_str());
        scale.add_value(one.as_ref())?;
        found.push(one);
    }
    Ok(Some(Value::Array(found).into()))
}
