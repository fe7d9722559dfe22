//! Permissions of a machine, as a table.
//! Not here: the document (`crate::permissions`).

use super::printable;
use crate::permissions::{Permission, Permissions};

/// The whole text: the machine, what was tried, what each test can do.
pub fn text(permissions: &Permissions) -> String {
    let Permissions { machine, tried, tests, denials } = permissions;
    let mut text = String::from("This machine\n");
    text += &table(machine.iter().map(of_permission));
    text += "\nIs it allowed?\n";
    text += &table(tried.iter().map(of_permission));
    text += "\nWhat can run\n";
    text += &table(tests.iter().map(|test| {
        let instead = test.instead.as_ref().map_or(String::new(), |instead| format!("; instead: {instead}"));
        [test.test.clone(), test.answer.name().to_owned(), format!("needs {}{instead}", test.needs)]
    }));
    match denials.as_deref() {
        None => text += "\nDenials of SELinux meanwhile cannot be told: the kernel's log cannot be read.\n",
        Some([]) => {}
        Some(denials) => {
            text += "\nDenied by SELinux meanwhile\n";
            text.extend(denials.iter().map(|line| format!("  {}\n", printable(line))));
        }
    }
    text
}

fn of_permission(permission: &Permission) -> [String; 3] {
    [permission.what.clone(), permission.answer.name().to_owned(), permission.why.clone()]
}

/// Lines with two aligned columns and free text behind them.
fn table(rows: impl Iterator<Item = [String; 3]>) -> String {
    let rows: Vec<[String; 3]> = rows.map(|row| row.map(|cell| printable(&cell).into_owned())).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let (first, second) = (width(0), width(1));
    let line = |[what, answer, why]: &[String; 3]| format!("  {what:<first$}  {answer:<second$}  {why}");
    rows.iter().map(|row| line(row).trim_end().to_owned() + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::permissions::{Answer, TestPermission};

    #[test]
    fn each_row_has_its_answer_and_reason() {
        let permission = |what: &str, answer| Permission {
            what: what.to_owned(),
            answer,
            why: "because\u{1b}".to_owned(),
        };
        let permissions = Permissions {
            machine: vec![permission("root", Answer::No)],
            tried: vec![permission("SCHED_FIFO", Answer::Yes), permission("perfetto", Answer::Unknown)],
            tests: vec![TestPermission {
                test: "latency binder".to_owned(),
                needs: "a context".to_owned(),
                answer: Answer::No,
                instead: Some("latency ping".to_owned()),
            }],
            denials: Some(vec!["avc: denied { add }".to_owned()]),
        };
        let shown = text(&permissions);
        for line in [
            "  SCHED_FIFO  yes             because\\u001b\n",
            "  perfetto    cannot be told  because",
            "  latency binder  no  needs a context; instead: latency ping\n",
            "  avc: denied { add }\n",
        ] {
            assert!(shown.contains(line), "{line}: {shown}");
        }
        let hidden = Permissions { denials: None, ..permissions };
        assert!(text(&hidden).contains("cannot be read"));
    }

    #[test]
    fn answers_are_joined_by_what_is_known() {
        use Answer::{No, Unknown, Yes};
        assert_eq!([Yes.or(No), No.or(Unknown), No.or(No)], [Yes, Unknown, No]);
        assert_eq!([Yes.and(No), Yes.and(Unknown), Yes.and(Yes), No.and(Unknown)], [No, Unknown, Yes, No]);
    }
}
