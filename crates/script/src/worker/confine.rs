//! Gives up the rights of the process: limits of resources, lowest priority, and a filter of system calls.
//!
//! The filter lets through what memory, time and the pipe need; everything else fails with EPERM, so there are no
//! files, sockets, processes or signals, and no memory becomes executable. Whatever the kernel refuses is reported to
//! the server, which logs it once, and the worker goes on with the rest.

use super::peak;
use rustix::process::{Resource, Rlimit, getpid, setpriority_process, setrlimit};
use rustix::time::{ClockId, clock_gettime};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};
use std::collections::BTreeMap;
use std::os::fd::RawFd;
use std::time::{Duration, Instant};

/// Address space beyond that of the started program and the heap of a script: messages, queued operations, spare
/// runtimes and what the allocators hold.
const ADDRESS_SPACE_MARGIN: u64 = 160 << 20;

/// Processor time beyond the budget of a call after which the kernel ends the worker, in seconds. The kernel counts whole
/// seconds, and a limit serves the calls of [`LIMIT_AGE_MAX`].
const PROCESSOR_MARGIN_SECONDS: u64 = 4;

/// How long a limit of processor time serves. To set one for each call is a part of what a short call takes.
const LIMIT_AGE_MAX: Duration = Duration::from_secs(1);

/// The lowest priority, whatever that of the server is.
const NICE_MAX: i32 = 19;

/// Confines the process; returns what could not be set up.
pub(super) fn confine(memory_bytes: u64) -> Vec<String> {
    let mut missing = Vec::new();
    let mut note = |what: &str, result: Result<(), String>| {
        if let Err(error) = result {
            missing.push(format!("{what}: {error}"));
        }
    };
    note("priority", setpriority_process(None, NICE_MAX).map_err(|error| error.to_string()));
    // Before no file can be opened any more.
    let files = peak::open_files().ok();
    note("address space", limit_address_space(memory_bytes));
    for (what, resource) in [
        ("core files", Resource::Core),
        ("file size", Resource::Fsize),
        ("open files", Resource::Nofile),
        ("processes", Resource::Nproc),
    ] {
        note(what, limit(resource, 0));
    }
    note("system calls", filter_system_calls(files));
    missing
}

/// Lets the kernel end the worker if a call uses much more processor time than it may. The server kills it earlier,
/// unless the server is gone.
#[derive(Debug, Default)]
pub(super) struct ProcessorLimit {
    budget: Duration,
    until: Option<Instant>,
}

impl ProcessorLimit {
    /// Sets the limit for a call, unless it was set lately: the one thread uses no more processor time than has passed.
    pub(super) fn renew(&mut self, budget: Duration) {
        let now = Instant::now();
        if self.budget == budget && self.until.is_some_and(|until| now < until) {
            return;
        }
        let used = clock_gettime(ClockId::ProcessCPUTime).tv_sec.cast_unsigned();
        let seconds = used + budget.as_secs() + PROCESSOR_MARGIN_SECONDS;
        // Without it the worker ends when it next reads from its pipe.
        let _ = setrlimit(Resource::Cpu, Rlimit { current: Some(seconds), maximum: None });
        *self = ProcessorLimit { budget, until: Some(now + LIMIT_AGE_MAX) };
    }
}

fn limit(resource: Resource, most: u64) -> Result<(), String> {
    setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })
        .map_err(|error| error.to_string())
}

fn limit_address_space(memory_bytes: u64) -> Result<(), String> {
    let pages = std::fs::read_to_string("/proc/self/statm").map_err(|error| error.to_string())?;
    let pages: u64 = pages
        .split(' ')
        .next()
        .and_then(|pages| pages.parse().ok())
        .ok_or_else(|| "size of the process is unknown".to_owned())?;
    let now = pages * rustix::param::page_size() as u64;
    limit(Resource::As, now.saturating_add(memory_bytes).saturating_add(ADDRESS_SPACE_MARGIN))
}

fn filter_system_calls(peak: Option<(RawFd, RawFd)>) -> Result<(), String> {
    let program = program(peak).map_err(|error| error.to_string())?;
    seccompiler::apply_filter(&program).map_err(|error| error.to_string())
}

/// `peak` are the files of the peak of memory: that to read and that to write.
fn program(peak: Option<(RawFd, RawFd)>) -> Result<BpfProgram, seccompiler::BackendError> {
    let always = [
        libc::SYS_brk,
        libc::SYS_clock_gettime,
        libc::SYS_exit,
        libc::SYS_exit_group,
        libc::SYS_futex,
        libc::SYS_getpid,
        libc::SYS_getrandom,
        libc::SYS_gettid,
        libc::SYS_gettimeofday,
        libc::SYS_madvise,
        libc::SYS_mremap,
        libc::SYS_munmap,
        libc::SYS_restart_syscall,
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_sched_yield,
        libc::SYS_sigaltstack,
    ];
    let equals = |argument: u8, value: u64| {
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
    };
    let not_executable = || {
        let executable = SeccompCmpOp::MaskedEq(libc::PROT_EXEC.cast_unsigned().into());
        SeccompCondition::new(2, SeccompCmpArgLen::Dword, executable, 0)
    };
    let this_process = u64::from(getpid().as_raw_nonzero().get().cast_unsigned());
    let sometimes = [
        (libc::SYS_read, vec![equals(0, 0)?]),
        (libc::SYS_write, vec![equals(0, 1)?]),
        (libc::SYS_mmap, vec![not_executable()?]),
        (libc::SYS_mprotect, vec![not_executable()?]),
        // An abort of its own.
        (libc::SYS_tgkill, vec![equals(0, this_process)?]),
        // The limit of processor time, of this process.
        (libc::SYS_prlimit64, vec![equals(0, 0)?, equals(1, libc::RLIMIT_CPU.into())?]),
    ];
    let file = |number: RawFd| equals(0, u64::from(number.cast_unsigned()));
    let of_peak = match peak {
        Some((status, reset)) => {
            vec![(libc::SYS_pread64, vec![file(status)?]), (libc::SYS_pwrite64, vec![file(reset)?])]
        }
        None => Vec::new(),
    };
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = always.map(|call| (call, Vec::new())).into();
    for (call, conditions) in sometimes.into_iter().chain(of_peak) {
        rules.insert(call, vec![SeccompRule::new(conditions)?]);
    }
    let architecture = std::env::consts::ARCH.try_into()?;
    let refuse = SeccompAction::Errno(libc::EPERM.cast_unsigned());
    SeccompFilter::new(rules, refuse, SeccompAction::Allow, architecture)?.try_into()
}
