//! The table of a run: case, figures, ratio, goal, verdict.

/// On which side of its goal a figure must be.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Goal {
    AtLeast(f64),
    AtMost(f64),
}

/// One line of the table.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) case: &'static str,
    pub(crate) what: String,
    pub(crate) figures: String,
    pub(crate) ratio: f64,
    pub(crate) goal: Option<Goal>,
}

/// Prints the table as Markdown.
pub(crate) fn show(rows: &[Row]) {
    show_heading();
    rows.iter().for_each(show_row);
}

/// Prints the heading of the table, for rows that are shown as they are measured.
#[allow(clippy::print_stdout)] // what the program is for
pub(crate) fn show_heading() {
    println!("| case | what | figures | ratio | goal | |");
    println!("|---|---|---|---|---|---|");
}

/// Prints one line of the table.
#[allow(clippy::print_stdout)] // what the program is for
pub(crate) fn show_row(row: &Row) {
    let (goal, verdict) = match row.goal {
        Some(Goal::AtLeast(bound)) => (format!("≥ {bound}"), row.ratio >= bound),
        Some(Goal::AtMost(bound)) => (format!("≤ {bound}"), row.ratio <= bound),
        None => (String::new(), true),
    };
    let verdict = if verdict { "✓" } else { "short" };
    println!("| {} | {} | {} | {:.2} | {goal} | {verdict} |", row.case, row.what, row.figures, row.ratio);
}
