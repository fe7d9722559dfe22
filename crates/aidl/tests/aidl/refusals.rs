//! Refusals, each with its place, the fault and what to do.

use std::path::Path;

use binderperf_aidl::Build;

use super::refused;

#[test]
fn each_refusal_names_its_place_and_what_to_do() {
    let type_of_a_field = [
        ("Map", "x.aidl:1:27: `Map` is Java's alone; send two arrays, or an array of a parcelable"),
        ("Map<String, String>", "`Map` is Java's alone"),
        ("CharSequence", "`CharSequence` is Java's alone; use String"),
        ("ParcelableHolder", "`ParcelableHolder` holds what its reader need not know; use a union"),
        ("Nowhere", "`Nowhere` is not found; import it, add its folder by `include`, or mend its name"),
        ("P<int>", "`P` with type arguments; only List has them"),
        ("List", "a List without the type of its elements; write `List<T>`"),
        ("List<int>", "a List of numbers, booleans or enums; write `T[]`"),
        ("List<List<String>>", "a List of lists or arrays"),
        ("List<String>[]", "a List of lists or arrays"),
        ("int[][]", "an array of arrays that does not say all sizes; write all sizes"),
        ("int[2][]", "an array of arrays that does not say all sizes"),
        ("int[0]", "an array of no elements or of more than 16384; give it another size, or write `T[]`"),
        ("int[128][129]", "an array of no elements or of more than 16384"),
        (
            "int[4097]",
            "`P` has 16388 bytes, and a value has at most 16384; write `T[]` for its largest `T[N]`",
        ),
        ("@nullable String[683]", "`P` has 16392 bytes"),
        ("int[\"a\"]", "a string where a size is needed"),
        ("void", "`f` is void; give it a type"),
        ("void[]", "an array of void"),
        ("FileDescriptor[]", "an array of FileDescriptor; use ParcelFileDescriptor"),
        ("@nullable int", "`@nullable` of a type that has no null; remove it"),
        ("@nullable FileDescriptor", "`@nullable` of FileDescriptor; use ParcelFileDescriptor"),
        ("@nullable(heap=true) String", "`@nullable(heap=true)` of what is no parcelable or union"),
        ("@nullable(stack=true) String", "`stack` of `@nullable`; write `heap=true`"),
        ("@Odd int", "x.aidl:1:27: `@Odd` is an annotation that is not known; remove it, or mend its name"),
        ("@Backing(type=\"int\") int", "`@Backing` belongs to a declaration"),
        ("P", "`p.P` contains itself, or another type that does; write `@nullable(heap=true)`"),
        ("@nullable P", "`p.P` contains itself"),
        ("P[2]", "`p.P` contains itself"),
    ]
    .map(|(ty, want)| (format!("package p; parcelable P {{ {ty} f; }}"), want));
    let declarations = [
        ("parcelable P;", "x.aidl:1:23: `P` has no body here: its contents are written in another language; declare its members"),
        ("parcelable P cpp_header \"p.h\" ndk_header \"n.h\";", "`P` has no body here"),
        ("interface I;", "`I` has no body here"),
        ("parcelable P<T> { T x; }", "`P` has type parameters; declare a type for each use"),
        ("parcelable P {} parcelable P {}", "x.aidl:1:39: `p.P` is declared twice; leave one"),
        ("parcelable Vec {}", "`Vec` is a type of Rust's own; give it another name"),
        ("parcelable p { parcelable Q {} }", "`p` is the name of a module or of another type as well"),
        ("parcelable P { int a; int a; }", "x.aidl:1:38: `a` is there twice; give one another name"),
        ("parcelable P { int aB; int a_b; }", "`a_b` and `aB` are both `a_b` in Rust"),
        ("union U { int aB; int a_b; }", "`a_b` and `aB` are both `AB` in Rust"),
        ("interface I { void f(); int f(); }", "`f` is there twice"),
        ("interface I { void f(int a, int a); }", "`a` is there twice"),
        ("interface I { const int A = 1; const int A = 2; }", "`A` is there twice"),
        ("enum E { A, A }", "`A` is there twice"),
        ("interface I { const int A = B; const int B = A; }", "the constant needs itself"),
        ("enum E { A = B, B = A }", "the constant needs itself"),
        ("interface I { void f() = 1; void g(); }", "`g` has no number, and other methods have one; give a number to all or to none"),
        ("interface I { void f() = 1; void g() = 01; }", "x.aidl:1:51: `01` is the number of another method as well; write another one"),
        ("interface I { void f() = 16777115; }", "`16777115` is no number of a method; write one from 0 to 16777114"),
        ("interface I { oneway int f(); }", "`f` is oneway and has a result"),
        ("interface I { oneway void f(out int[] a); }", "`a` is filled in by a oneway method"),
        ("interface I { void f(out int a); }", "`a` has a type that is only sent; make it `in`"),
        ("interface I { void f(inout String a); }", "`a` has a type that is only sent"),
        ("interface I { void f(out @nullable int[2] a); }", "`a` has a type of which a service has no value to begin with"),
        ("interface I { void f(void a); }", "`a` is void"),
        ("interface I { void f(in byte[128][128] a, in long[2049] b); }", "x.aidl:1:68: `b` has 16392 bytes"),
        ("interface I { P[5] f(); } parcelable P { long[400] a; long[100] b; Q[] c; } parcelable Q { P[4] p; }",
         "x.aidl:1:31: `f` has 20120 bytes"),
        ("union U { byte[9000] a; byte[16384] b; }", "`U` has 16392 bytes"),
        ("union U { const int Ab = 1; int ab; }", "`ab` and `Ab` are both `Ab` in Rust; give one another name"),
        ("union U {}", "`U` is a union without members"),
        ("union U { IBinder a; }", "`a` is the first member and has no default; put another one first"),
        ("union U { ParcelFileDescriptor a; int b; }", "`a` is the first member and has no default"),
        ("union U { int a; int b = 1; }", "`b` has a default and is not the first member"),
        ("union U { int a; } parcelable P { U.Tag tag; }", "`U.Tag` is not made; declare an enum for it"),
        ("enum E { A = 128 }", "128 is too large for a byte"),
        ("enum E { A = 127, B }", "too large for a byte"),
        ("enum E { A = \"a\", B }", "a string where an integer is needed"),
        ("@Backing(type=\"char\") enum E { A }", "`type` of `@Backing` is not known; write \"byte\", \"int\" or \"long\""),
        ("@Backing enum E { A }", "`@Backing` without `type=`; add it"),
        ("@Descriptor(value=1) parcelable P {}", "`value` of `@Descriptor` is no string"),
        ("@nullable parcelable P {}", "`@nullable` belongs to the type of a member"),
        ("@SensitiveData interface I {}", "`@SensitiveData` is not kept: nobody clears what was sent"),
        ("@RustDerive(Serialize=true) parcelable P {}", "`Serialize` of `@RustDerive` is not known"),
        ("@FixedSize parcelable P { String s; }", "`s` has no fixed size"),
        ("@FixedSize parcelable P { Q q; } parcelable Q {}", "`q` has no fixed size"),
        ("@FixedSize parcelable P { int[] a; }", "`a` has no fixed size"),
        ("parcelable P { E e = 1; } enum E { A }", "an integer where a member of that enum is needed"),
        ("parcelable P { E e = F.A; } enum E { A } enum F { A }", "a member of an enum where a member of that enum is needed"),
        ("parcelable P { IBinder b = 1; }", "a default for a type that has no constants; remove it"),
        ("import q.Q;", "`q.Q` is not found; add the folder that has q/Q.aidl by `include`"),
    ]
    .map(|(text, want)| (format!("package p; {text}").replace("package p; import", "package p;\nimport"), want));
    for (text, want) in type_of_a_field.into_iter().chain(declarations) {
        let error = refused(&text);
        assert!(error.contains(want), "{text}: {error}");
    }
}

#[test]
fn an_import_that_cannot_be_read_is_named() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    std::fs::write(folder.join("IUser.aidl"), "import Latin; interface IUser {}").expect("written");
    std::fs::write(folder.join("Latin.aidl"), b"/* \xe9 */ parcelable Latin {}").expect("written");
    let error =
        Build::new().include(folder).file(folder.join("IUser.aidl")).generate().expect_err("no UTF-8");
    let want = format!("{}: stream did not contain valid UTF-8", folder.join("Latin.aidl").display());
    assert_eq!(error.to_string(), want);
}

#[test]
fn what_is_no_aidl_is_refused_where_it_begins() {
    for (text, want) in [
        ("interface I {\n  void f()\n}", "x.aidl:3:1: unexpected `}`; "),
        ("interface I { void f(", "x.aidl:1:22: the file ends too early; "),
        ("interface I { int in; }", "unexpected `in`; here may stand a name"),
        ("interface I { void f(int out x); }", "unexpected `out`; "),
        ("parcelable P { int x = ; }", "unexpected `;`; here may stand a value"),
        ("enum E {}", "unexpected `}`; "),
        ("interface I { const int A = 1x; }", "unexpected `1x`"),
        ("package p", "the file ends too early"),
        ("interface I { /* never closed", "unexpected `/`"),
        ("import a.b;\npackage p;", "x.aidl:2:1: unexpected `package`; "),
        ("oneway parcelable P {}", "unexpected `parcelable`"),
        ("\u{feff}interface I {}", "x.aidl:1:1: unexpected `\\u{feff}`"),
        ("interface I { void f(); } é", "x.aidl:1:27: unexpected `é`"),
    ] {
        let error = refused(text);
        assert!(error.contains(want), "{text}: {error}");
    }
}

#[test]
fn all_faults_are_named_in_order() {
    let error = refused(
        "parcelable P { Map a; Nowhere b; int c = 1 / 0; }\ninterface I { int d(void e) = 99999999; }",
    );
    let places: Vec<&str> = error.lines().filter_map(|line| line.split(": ").next()).collect();
    assert_eq!(
        places,
        ["x.aidl:1:16", "x.aidl:1:23", "x.aidl:1:44", "x.aidl:2:26", "x.aidl:2:31"],
        "{error}"
    );
}
