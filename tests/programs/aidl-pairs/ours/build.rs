//! Makes the Rust of `../aidl`.

fn main() -> Result<(), binderperf_aidl::Error> {
    binderperf_aidl::Build::new().include("../aidl").file("../aidl/pairs/IPairs.aidl").write("pairs.rs")
}
