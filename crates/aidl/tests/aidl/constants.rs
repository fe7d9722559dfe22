//! Values of constant expressions, by AIDL's widths.

use super::{made, refused};

fn constant(ty: &str, value: &str) -> String {
    format!("interface I {{ const {ty} X = {value}; const int ONE = 1; }} enum E {{ A, B = 7 }}")
}

#[test]
fn expressions_have_the_values_that_aidl_gives_them() {
    for (ty, value, want) in [
        ("int", "1 + 2 * 3 - 4 / 2 % 3", "5"),
        ("int", "(1 + 2) * 3", "9"),
        ("int", "10 - 3 - 2", "5"),
        ("int", "1 << 4 | 1 << 2 & 12 ^ 3", "23"),
        ("int", "1 << 31", "-2147483648"),
        ("int", "16 >> 2 << 1", "8"),
        ("int", "1 << -1", "0"),
        ("int", "1 >> -3", "8"),
        ("int", "0xffffffff", "-1"),
        ("long", "0xffffffffL", "4294967295"),
        ("long", "0x7fffffff * 2L", "4294967294"),
        ("long", "2147483648", "2147483648"),
        ("long", "-9223372036854775807L - 1", "-9223372036854775808"),
        ("byte", "255u8", "-1"),
        ("byte", "-128", "-128"),
        ("int", "010", "10"),
        ("long", "1_0L + 0x8000_0000", "-2147483638"),
        ("int", "- - - ~ +5", "6"),
        ("int", "!7 + !0", "1"),
        ("int", "true + true", "2"),
        ("int", "E.B + ONE", "8"),
        ("boolean", "1 < 2 == true && !(3 >= 4 || 2 != 2)", "true"),
        ("boolean", "7", "true"),
        ("char", "'\"'", "'\"' as u16"),
        ("float", "-1.5f", "-1.5"),
        ("double", ".5e-3", "0.0005"),
        ("double", "1f", "1.0"),
        ("String", "\"a\" + \"b'\" + \"\"", "\"ab'\""),
        ("String", "(\"// no comment\")", "\"// no comment\""),
        ("int[]", "{}", "&[]"),
        ("long[]", "{1, E.B, ONE,}", "&[1, 7, 1]"),
        ("byte[]", "{0, -1, 128u8}", "&[0, 255, 128]"),
        ("int[2][1]", "{{1}, {2}}", "[[1], [2]]"),
        ("String[]", "{\"a\"}", "&[\"a\"]"),
    ] {
        let rust = made(&constant(ty, value));
        assert!(rust.contains(&format!(" = {want};\n")), "{value}: {rust}");
    }
}

#[test]
fn what_has_no_value_is_refused() {
    for (ty, value, want) in [
        ("int", "2147483647 + 1", "too large or the division has no result"),
        ("long", "9223372036854775808", "too large"),
        ("int", "-(-2147483647 - 1)", "too large"),
        ("byte", "-(-128)", "too large"),
        ("int", "1 / 0", "the division has no result"),
        ("int", "(-2147483647 - 1) / -1", "too large"),
        ("long", "(-9223372036854775807L - 1) % -1", "too large"),
        ("int", "1 << 32", "too large"),
        ("int", "-1 << 1", "too large"),
        ("int", "-1 >> 1", "too large"),
        ("int", "256u8", "too large"),
        ("int", "2147483648", "2147483648 is too large for an int; use a wider type"),
        ("byte", "128", "128 is too large for a byte"),
        ("double", "1e999", "a floating-point number where a floating-point number"),
        ("int", "X", "the constant needs itself; give one of the circle a number"),
        ("int", "NOWHERE", "`NOWHERE` is no constant"),
        ("int", "E.C", "`E.C` is no constant"),
        ("int", "\"a\"", "a string where an int is needed"),
        ("int", "1 + \"a\"", "a string where an operand of `+` is needed"),
        ("int", "{1}", "an array where an int is needed"),
        ("int[]", "1", "an integer where an array is needed"),
        ("int[2]", "{1}", "1 elements in an array of 2"),
        ("boolean", "~true", "a boolean where an integer is needed"),
        ("boolean", "!'a'", "a character where a number is needed"),
        ("String", "\"a\" - \"b\"", "a string where an operand of `-` is needed"),
        ("String", "\"\\n\"", "a character outside printable ASCII"),
        ("char", "'é'", "a character outside printable ASCII"),
        ("IBinder", "1", "`X` is a constant of a type that has none"),
        ("E", "E.A", "`X` is a constant of a type that has none"),
    ] {
        let error = refused(&constant(ty, value));
        assert!(error.contains(want), "{value}: {error}");
    }
}
