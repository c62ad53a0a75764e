//! Limits of a query's text. Each is tested on both sides.

/// Longest text of a query in bytes.
pub const TEXT_BYTES_MAX: usize = 512 * 1024;
/// Most levels of an expression. A chain of AND, OR or `||` and a list of IN are one level each.
pub const EXPRESSION_DEPTH_MAX: usize = 200;
/// Most levels of nested queries, not counting the outermost.
pub const SUBQUERY_DEPTH_MAX: usize = 32;
/// Most members of a chain of AND, OR or `||`.
pub const CHAIN_MEMBERS_MAX: usize = 2_000;
/// Most values of an IN list.
pub const IN_VALUES_MAX: usize = 16_000;
/// Most JOINs of one FROM clause.
pub const JOINS_MAX: usize = 10;
/// Most calls of user-defined functions in a query, including its subqueries.
pub const USER_CALLS_MAX: usize = 10;
/// Most expressions of a GROUP BY clause.
pub const GROUP_KEYS_MAX: usize = 100;
/// Most different aggregates of one query.
pub const AGGREGATES_MAX: usize = 1_000;
/// Largest count of TOP, OFFSET and LIMIT.
pub const COUNT_MAX: u64 = u32::MAX as u64;
/// Most faults that are reported at once.
pub const FAULTS_MAX: usize = 20;
