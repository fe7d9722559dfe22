//! Tests of a table in each form.

use super::*;

fn table() -> Table {
    Table::new(["Case", "calls", "note", "p99"]).titled("Costs").notes(["a note".to_owned()]).rows([
        cells!["a\u{1b}", 5_u64, None::<String>, "1.00 us"],
        Row::words("long name", "FAILED: it | broke"),
        Row::Rule("limit".to_owned()),
        cells!["b", None::<u64>, "", Cell::from("2.00 us").look(Look::Slower).hint("twice")],
    ])
}

#[test]
fn a_text_is_aligned_and_an_empty_column_is_left_out() {
    let expected = "\
Costs
Case       calls      p99
-------------------------
a\\u001b        5  1.00 us
long name  FAILED: it | broke
--------- limit ---------
b                 2.00 us
a note
";
    assert_eq!(table().text(), expected);
}

#[test]
fn words_are_aligned_at_their_begin_up_to_a_width_and_without_heads_there_is_no_rule() {
    let rows = [cells!["what", "long long", "x"], cells!["w", "short", "y"]];
    let table = Table::of_words(["", "", ""]).rows(rows).indented(2).widest(6);
    assert_eq!(table.text(), "  what  long long  x\n  w     short   y\n");
}

#[test]
fn markdown_escapes_and_aligns_numbers() {
    let expected = "
## Costs

| Case | calls | p99 |
|---|--:|--:|
| a\\\\u001b | 5 | 1.00 us |
| long name | FAILED: it \\| broke |
| b |  | 2.00 us |

- a note
";
    assert_eq!(table().markdown(), expected);
    let looks = [Look::Strong, Look::Code, Look::Plain].map(|look| Cell::from("a|b").look(look));
    let looks = Table::of_words(["", "", ""]).rows([Row::Cells(looks.into())]).markdown();
    assert!(looks.ends_with("\n| **a\\|b** | `a\\|b` | a\\|b |\n"), "{looks}");
}

#[test]
fn a_page_has_the_head_of_each_number_and_escapes_all() {
    let page =
        table().groups(["", "counts", "counts", "times"]).html("a \"label\"").expect("a sound template");
    for part in [
        "aria-label=\"a &quot;label&quot;\"",
        "<tr><th class=\"group\" colspan=\"1\"></th><th class=\"group\" colspan=\"1\">counts</th>",
        "<td data-head=\"calls\">5</td>",
        "<th scope=\"row\">long name</th><td class=\"words\" colspan=\"2\">FAILED: it | broke</td></tr>",
        "<td data-head=\"p99\" class=\"slower\" title=\"twice\">2.00 us</td>",
        "<p class=\"faint\">a note</p>",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("note</th>") && !page.contains("limit"), "{page}");
    let bad = Table::new(["a"]).rows([cells![Cell::from("x").look(Look::Bad)]]).html("").expect("sound");
    assert!(bad.contains("<tr class=\"bad\">"), "{bad}");
    let hostile = Table::new(["<b>"]).rows([cells!["<i>"]]).html("").expect("sound");
    assert!(!hostile.contains("<b>") && !hostile.contains("<i>"), "{hostile}");
}

#[test]
fn words_are_shown_where_no_row_has_numbers() {
    let table = Table::new(["Case", "p99"]).rows([Row::words("a", "not run")]);
    assert_eq!(table.text(), "Case\n----\na     not run\n");
    assert_eq!(table.markdown(), "\n| Case |  |\n|---|---|\n| a | not run |\n");
    let page = table.html("").expect("a sound template");
    assert!(page.contains("<td class=\"words\" colspan=\"1\">not run</td>"), "{page}");
}
