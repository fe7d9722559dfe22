//! Each construct alone, and its line of Rust.

use super::made;

#[test]
fn each_type_is_its_own_in_rust() {
    for (aidl, rust) in [
        ("boolean", "bool"),
        ("byte", "i8"),
        ("char", "u16"),
        ("int", "i32"),
        ("long", "i64"),
        ("float", "f32"),
        ("double", "f64"),
        ("String", "String"),
        ("IBinder", "::binder::Binder"),
        ("ParcelFileDescriptor", "::binder::ParcelFileDescriptor"),
        ("android.os.ParcelFileDescriptor", "::binder::ParcelFileDescriptor"),
        ("FileDescriptor", "::std::os::fd::OwnedFd"),
        ("IFoo", "super::IFoo::Client"),
        ("a.b.IFoo", "super::IFoo::Client"),
        ("IFoo.Inner", "super::i_foo::Inner"),
        ("Colour", "super::Colour"),
        ("byte[]", "Vec<u8>"),
        ("int[]", "Vec<i32>"),
        ("int[2]", "[i32; 2]"),
        ("byte[2][3]", "[[u8; 3]; 2]"),
        ("List<String>", "Vec<String>"),
        ("IFoo[]", "Vec<super::IFoo::Client>"),
        ("@nullable String", "Option<String>"),
        ("@nullable IBinder", "Option<::binder::Binder>"),
        ("@nullable IFoo", "Option<super::IFoo::Client>"),
        ("@nullable int[]", "Option<Vec<i32>>"),
        ("@nullable Colour[]", "Option<Vec<super::Colour>>"),
        ("@nullable String[]", "Option<Vec<Option<String>>>"),
        ("@nullable List<IFoo>", "Option<Vec<Option<super::IFoo::Client>>>"),
        ("@nullable Data[2]", "Option<[Option<super::Data>; 2]>"),
        ("@nullable(heap=false) Data", "Option<super::Data>"),
        ("@nullable(heap=true) Data", "Option<Box<super::Data>>"),
        ("@utf8InCpp @nullable String", "Option<String>"),
    ] {
        let rust_text = made(&format!(
            "package a.b; interface IFoo {{ {aidl} f(in {aidl} x); parcelable Inner {{}} }}
             parcelable Data {{}} enum Colour {{ RED }}"
        ));
        let want = format!("            fn f(x: {rust}) -> {rust};\n");
        assert!(rust_text.contains(&want), "{aidl}: {rust_text}");
    }
}

#[test]
fn each_member_has_its_line() {
    for (text, line) in [
        ("interface I { oneway void fooBar(int aB); }", "oneway foo_bar(a_b: i32);"),
        ("oneway interface I { void f(); }", "oneway f();"),
        ("interface I { void f() = 0; void g() = 12; }", "fn g() = 12;"),
        (
            "interface I { void f(out int[] a, inout List<String> b); }",
            "#[out] a: Vec<i32>, #[inout] b: Vec<String>",
        ),
        (
            "interface I { void f(out @nullable IBinder[] a); }",
            "#[out] a: Option<Vec<Option<::binder::Binder>>>",
        ),
        ("interface I { void f(out IBinder[] a); }", "#[out] a: Vec<Option<::binder::Binder>>"),
        (
            "interface I { void f(out List<String> a, out List<IBinder> b); }",
            "#[out_list] a: Vec<String>, #[out_list] b: Vec<::binder::Binder>",
        ),
        (
            "interface I { void f(out @nullable java.util.List<String> a); }",
            "#[out_list] a: Option<Vec<Option<String>>>",
        ),
        ("interface I { void f(in int match, in int self); }", "fn f(r#match: i32, self_: i32);"),
        ("interface I { void publish(); }", "fn publish_();"),
        (
            "interface I { void tryInto(int a); int into(); }",
            "fn try_into_(a: i32);\n            fn into_() -> i32;",
        ),
        (
            "interface I { const char[] L = {'a', '''}; }",
            "pub const L: &[u16] = &['a' as u16, '\\'' as u16];",
        ),
        ("parcelable P { IBinder[2] pair; }", "pair: [::binder::Binder; 2] as required,"),
        ("parcelable P { IBinder[64] many; }", "many: [::binder::Binder; 64] as required,"),
        (
            "parcelable P { @nullable String[] s = {\"a\"}; }",
            "s: Option<Vec<Option<String>>> = Some(vec![Some(String::from(\"a\"))]),",
        ),
        (
            "parcelable P { int[33][2] x; }",
            "x: [[i32; 2]; 33] = ::std::array::from_fn(|_| ::std::array::from_fn(|_| ",
        ),
        ("@Descriptor(value=\"old.P\") parcelable P {}", "pub struct P = \"old.P\" {"),
        (
            "@RustDerive(Copy=true, Clone=false) parcelable P { int x; }",
            "#[derive(Clone, Copy, Debug, PartialEq)]",
        ),
        (
            "parcelable P { Q q; } parcelable Q { ParcelFileDescriptor[] f; }",
            "#[derive(Debug)]\n        pub struct P ",
        ),
        ("union U { int[] fooBar = {1}; Other O; } enum Other { A }", "FooBar(Vec<i32>) = vec![1],"),
        ("@Backing(type=\"long\") enum E { A = 1L << 40, B }", "B = 1099511627777,"),
        ("enum E { A = B + 1, B = 3, C }", "A = 4,"),
        ("enum E { ALL = 1, DESCRIPTOR }", "DESCRIPTOR_ = 2,"),
        ("/** One.\n *  Two. */ @Hide parcelable P { /** F. */ int x; }", "/// One.\n        /// Two.\n"),
    ] {
        let rust = made(&format!("package p; {text}"));
        assert!(rust.contains(line), "{text}: {rust}");
    }
}

#[test]
fn a_file_without_a_package_needs_no_module() {
    let rust = made("parcelable P { Q q; parcelable Q {} } enum E { A }");
    assert!(rust.contains("        q: p::Q,\n") && rust.contains("\npub mod p {"), "{rust}");
    assert!(
        rust.contains("    #[allow(dead_code"),
        "without a package there is no module to carry it: {rust}"
    );
}
