//! What a process has used so far, from /proc.

use std::fs;

/// The kernel reports CPU time in ticks of USER_HZ, which is 100 on every Linux that this runs on.
const MS_PER_TICK: u64 = 10;

/// CPU time and memory of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Usage {
    /// CPU time of all its threads, in user and kernel mode.
    pub(super) cpu_ms: u64,
    /// Memory it holds at this moment.
    pub(super) rss_kib: u64,
}

/// What the process `pid` has used; `None` if it is gone or there is no /proc.
pub(super) fn usage(pid: u32) -> Option<Usage> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    Some(Usage {
        cpu_ms: cpu_ms(&stat)?,
        rss_kib: rss_kib(&status)?,
    })
}

/// Fields 14 and 15 of /proc/PID/stat. The second field is a name in parentheses that may hold anything.
fn cpu_ms(stat: &str) -> Option<u64> {
    let (_, after_name) = stat.rsplit_once(") ")?;
    let mut fields = after_name.split(' ').skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some((user + system) * MS_PER_TICK)
}

fn rss_kib(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_found_behind_a_strange_name() {
        let stat = "42 (a) S (b) R 1 42 42 0 -1 4194560 900 0 0 0 150 25 7 8 20 0 3 0 100 1 2";
        assert_eq!(cpu_ms(stat), Some(1750));
    }

    #[test]
    fn memory_is_the_resident_set() {
        let status = "Name:\tx\nVmHWM:\t  900 kB\nVmRSS:\t    812 kB\nThreads:\t1\n";
        assert_eq!(rss_kib(status), Some(812));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_uses_memory() {
        let usage = usage(std::process::id()).expect("we are running");
        assert!(usage.rss_kib > 0);
    }
}
