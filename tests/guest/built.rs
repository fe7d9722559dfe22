//! A kernel that `vm build-kernel` left in the cache boots and carries a call. Without one the test says so: building one
//! takes many minutes.
//! Not here: the build (`tests/cli/kernels`).

use needs::{Need, need};

use crate::one_guest;
use crate::support::binderperf;

#[test]
fn a_built_kernel_boots_and_carries_a_call() {
    let own = vm::Arch::own().to_string();
    let listed = binderperf(&["vm", "kernels"]).ended(0).stdout;
    let built = listed.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let name = words.next()?.strip_prefix("built:")?;
        (words.next() == Some(own.as_str())).then(|| name.to_owned())
    });
    let missing = || {
        Need::Kernel.lacks(format_args!("none for {own} was built; binderperf vm build-kernel builds one"))
    };
    let name = need!(built.into_iter().next().ok_or_else(missing));
    let _guest = one_guest();
    let kernel = format!("built:{name}");
    let measure = [
        "throughput",
        "binder",
        "--driver=kernel",
        "--controls=none",
        "--benchmark_filter=/4$",
        "--benchmark_min_time=0.05s",
    ];
    let called =
        binderperf(&[&["vm", "--smp", "2", "--kernel", &kernel, "--"], &measure[..]].concat()).ended(0);
    // A patched kernel's name has a colon where its release has a dot.
    let release = name.replace(':', ".");
    called.printed("BM_sendVec_binder/4 ").complained(format!("kernel_release: {release}"));
    let probed = binderperf(&["vm", "--kernel", &kernel, "--", "guest-probe"]).ended(0);
    probed.printed(r#""devices":["binder","hwbinder","vndbinder"]"#);
}
