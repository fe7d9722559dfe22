//! No text makes the generator panic, recurse without end or take more than its share.

use proptest::prelude::*;

use binderperf_aidl::generate_from_text;

use super::{made, refused};

#[test]
fn deep_and_wide_texts_end() {
    for open in ["(", "{", "["] {
        let error = refused(&format!("interface I {{ const int A = {}1; }}", open.repeat(100_000)));
        assert!(error.contains("more than 64 brackets inside each other; write it flatter"), "{error}");
    }
    let behind_a_quote = format!("const char C = '\"'; const int A = {}1;", "(".repeat(100_000));
    assert!(refused(&format!("interface I {{ {behind_a_quote} }}")).contains("more than 64"));
    assert!(refused(&"parcelable P { ".repeat(100_000)).contains("more than 64"));
    assert!(refused(&format!("interface I {{ {}", "List<".repeat(100_000))).contains("more than 64"));
    assert!(
        made(&format!("interface I {{ const int A = 1 {}; }}", "+ 1".repeat(100_000))).contains("= 100001;")
    );
    assert!(made(&format!("interface I {{ const int A = {}1; }}", "- ".repeat(100_000))).contains("= 1;"));
    assert!(refused(&"@nullable(1) ".repeat(100_000)).contains("the file ends too early"));
    let many: String = (0..2_000).map(|number| format!("A{number} = A{number}x + 1, A{number}x,")).collect();
    assert!(
        refused(&format!("@Backing(type=\"int\") enum E {{ A = 1, {many} }}"))
            .contains("the constant needs itself")
    );
}

#[test]
fn long_names_and_many_faults_take_their_length_in_time() {
    let name = "a.".repeat(5_000);
    for text in
        ["package a.a; parcelable P { NAME.A a; }", "package NAME.a; parcelable P {}", "import NAME.a;"]
    {
        let error = refused(&text.replace("NAME", &name[..name.len() - 1]));
        assert!(
            error.contains("a name of more than 32 words; put the type into a package of fewer"),
            "{error}"
        );
    }
    assert!(made(&format!("package {}z; parcelable P {{}}", "a.".repeat(31))).contains("mod z {"));
    let fields: String = (0..30_000).map(|number| format!("Nowhere\nf{number};")).collect();
    let error = refused(&format!("parcelable P {{ /* é */ {fields} }}"));
    assert_eq!(error.lines().count(), 30_000);
    assert!(
        error.starts_with("x.aidl:1:24: `Nowhere`") && error.contains("\nx.aidl:30000:8: `Nowhere`"),
        "{error:.200}"
    );
}

#[test]
fn constants_that_double_do_not_explode() {
    let chain = |first: &str, each: fn(usize) -> String| {
        let rest: String = (1..60).map(each).collect();
        format!("interface I {{ {first} {rest} }}")
    };
    let sums = chain("const long A0 = 1L;", |n| format!("const long A{n} = A{} + A{};", n - 1, n - 1));
    assert!(made(&sums).contains(" = 576460752303423488;"));
    let texts =
        chain("const String A0 = \"x\";", |n| format!("const String A{n} = A{} + A{};", n - 1, n - 1));
    assert!(refused(&texts).contains("a string of more than 65536 bytes; make it shorter"));
    let lists =
        chain("const int[] A0 = {1, 1};", |n| format!("const int[] A{n} = {{A{}, A{}}};", n - 1, n - 1));
    assert!(refused(&lists).contains("an array where an int is needed"));
    let backwards: String = (0..5_000).map(|n| format!("const int A{n} = A{};", n + 1)).collect();
    let error = refused(&format!("interface I {{ {backwards} const int A5000 = 1; }}"));
    assert!(error.contains("more than 64 constants and brackets need each other"), "{error}");
    let inside: String = (0..1_000).map(|n| format!("parcelable P{n} {{ P{} p; }}", n + 1)).collect();
    assert!(refused(&format!("{inside} parcelable P1000 {{ P0 p; }}")).contains("contains itself"));
}

/// Words that AIDL's texts are made of, and some that it has none of.
const WORDS: [&str; 52] = [
    "interface",
    "parcelable",
    "union",
    "enum",
    "const",
    "oneway",
    "in",
    "out",
    "inout",
    "import",
    "package",
    "int",
    "String",
    "byte",
    "IBinder",
    "List",
    "void",
    "I",
    "P",
    "p",
    "A",
    "B",
    "x",
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    "<",
    ">",
    ";",
    ",",
    ".",
    "=",
    "+",
    "-",
    "<<",
    "~",
    "1",
    "0xff",
    "2.5f",
    "true",
    "\"a\"",
    "'a'",
    "@nullable",
    "@Backing(type=\"int\")",
    "/** d */",
    "/*",
    "//",
    "\n",
    "é",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_words_make_it_panic(words in prop::collection::vec(prop::sample::select(&WORDS[..]), 0..60)) {
        let _ = generate_from_text("x.aidl", &words.join(" "));
        let _ = generate_from_text("x.aidl", &format!("interface I {{ {} }}", words.join(" ")));
        let _ = generate_from_text("x.aidl", &format!("interface I {{ const int A = {}; }}", words.join("")));
    }

    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,80}") {
        let _ = generate_from_text("x.aidl", &text);
    }
}
