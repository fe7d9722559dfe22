//! The kernels in the cache as text.
//! Not here: finding them (`list`).

use super::list::Kept;

/// The kernels, one a line; what a built one differs in below it.
#[must_use]
pub fn table(all: &[Kept]) -> String {
    let width = all.iter().map(|one| one.word.len()).max().unwrap_or_default();
    let mut text = String::new();
    for one in all {
        let origin = match &one.build {
            Some(build) => {
                let seconds = build.took.as_secs();
                let took = format!("{} min {} s", seconds / 60, seconds % 60);
                format!("{} driver, from {}, by {} in {took}", build.driver, build.source, build.tools)
            }
            None => "fetched".to_owned(),
        };
        let megabytes = one.bytes as f64 / 1e6;
        text += &format!("{:width$}  {:<6}  {megabytes:>5.1} MB  {origin}\n", one.word, one.arch.to_string());
        let Some(build) = &one.build else { continue };
        if !build.patches.is_empty() {
            text += &format!("    patches: {}\n", build.patches.join(", "));
        }
        if !build.differs.is_empty() {
            text += &format!("    differs from the usual kernel: {}\n", build.differs.join(", "));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::list::Explained;
    use super::*;
    use crate::arch::Arch;

    #[test]
    fn the_list_says_where_each_kernel_is_from_and_how_it_differs() {
        let build = Explained {
            source: "debian:7.2".to_owned(),
            driver: "c".to_owned(),
            tools: "gcc".to_owned(),
            took: Duration::from_secs(492),
            patches: vec!["fix.patch".to_owned()],
            differs: vec!["CONFIG_PREEMPT_RT=y".to_owned(), "-CONFIG_X=y".to_owned()],
        };
        let one = |word: &str, build| Kept {
            word: word.to_owned(),
            release: String::new(),
            arch: Arch::X86,
            bytes: 4_100_000,
            build,
        };
        assert_eq!(
            table(&[one("6.1.0-50-amd64", None), one("built:7.2.13-c-rt", Some(build))]),
            "6.1.0-50-amd64     x86_64    4.1 MB  fetched\n\
             built:7.2.13-c-rt  x86_64    4.1 MB  c driver, from debian:7.2, by gcc in 8 min 12 s\n\
             \x20   patches: fix.patch\n\
             \x20   differs from the usual kernel: CONFIG_PREEMPT_RT=y, -CONFIG_X=y\n"
        );
    }
}
