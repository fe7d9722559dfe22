//! The version with commit and target, and link options of the release binary, which make it a fifth smaller.
//!
//! The binary aborts on a panic, so it needs no tables for unwinding (`.eh_frame`); it is one static program, so it needs no
//! relocations at its start (`-no-pie`); and functions with the same code are folded into one, since nothing compares their
//! addresses. Only for rust-lld, which is rustc's default linker on this target.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=BINDERPERF_GIT");
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let commit = match variable("BINDERPERF_GIT") {
        unknown if unknown.is_empty() => "of an unknown commit".to_owned(),
        commit => format!("of commit {commit}"),
    };
    let version = format!("{} ({commit}, for {})", variable("CARGO_PKG_VERSION"), variable("TARGET"));
    println!("cargo:rustc-env=BINDERPERF_VERSION={version}");
    // A build for a dynamic loader, as `tools/shim-conformance` needs one, keeps its own options.
    let is_static = variable("CARGO_CFG_TARGET_FEATURE").split(',').any(|feature| feature == "crt-static");
    let is_shipped = variable("PROFILE") == "release" && variable("TARGET") == "x86_64-unknown-linux-gnu";
    if !is_shipped || !is_static {
        return;
    }
    let script = format!("{}/discard.ld", variable("OUT_DIR"));
    let text = "SECTIONS { /DISCARD/ : { *(.eh_frame) } } INSERT AFTER .text;\n";
    if let Err(error) = std::fs::write(&script, text) {
        panic!("{script}: {error}");
    }
    for option in ["-static", "-no-pie", "-Wl,--icf=all", "-Wl,--no-eh-frame-hdr"] {
        println!("cargo:rustc-link-arg-bins={option}");
    }
    println!("cargo:rustc-link-arg-bins=-Wl,-T,{script}");
}
