//! Memory of the processes of one context.
//! Facts: `proc(5)`: `smaps_rollup`'s Pss counts each page divided by the number of processes that map it, so
//! that a sum over processes counts shared pages once; it contains pages of memory files, but no page tables,
//! sockets or other memory of the kernel.

use std::fs;

/// Returns the proportional set size, in KiB, of all processes whose command line contains `word`.
///
/// # Errors
/// The files of a live process cannot be read.
pub(super) fn of_those_with(word: &str) -> Result<f64, String> {
    let failed = |error| format!("looking for processes: {}", sys::errno::describe(&error));
    let mut sum = 0.0;
    for entry in fs::read_dir("/proc").map_err(failed)?.flatten() {
        let is_process = entry.file_name().to_string_lossy().bytes().all(|byte| byte.is_ascii_digit());
        let words = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if is_process && String::from_utf8_lossy(&words).contains(word) {
            let path = entry.path().join("smaps_rollup");
            let text = fs::read_to_string(&path)
                .map_err(|error| format!("reading {}: {}", path.display(), sys::errno::describe(&error)))?;
            sum += pss(&text).ok_or_else(|| format!("{} has no Pss", path.display()))?;
        }
    }
    Ok(sum)
}

fn pss(text: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_of_parts_is_read() {
        let text =
            "55a0-7ffe ---p 00000000 00:00 0 [rollup]\nRss:  2000 kB\nPss:    1204 kB\nPss_Dirty: 7 kB\n";
        assert_eq!(pss(text), Some(1204.0));
        assert_eq!(pss("Rss: 2000 kB\n"), None);
    }

    #[test]
    fn a_process_is_found_by_its_words_and_nobody_else() {
        let word = std::env::args().next().expect("a name");
        assert!(of_those_with(&word).expect("readable") > 100.0);
        assert_eq!(
            of_those_with("no process has such words, but perhaps this\u{1}one").expect("readable"),
            0.0
        );
    }
}
