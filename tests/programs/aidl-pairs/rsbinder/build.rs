//! Makes the Rust of `../aidl` by rsbinder's generator.

fn main() {
    rsbinder_aidl::Builder::new()
        .source(std::path::PathBuf::from("../aidl/pairs"))
        .output(std::path::PathBuf::from("pairs.rs"))
        .generate()
        .expect("rsbinder-aidl takes the files");
}
