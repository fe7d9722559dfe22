//! Permissions of a machine, as a table.
//! Not here: the document (`crate::permissions`).

use super::table::{Row, Table, cells};
use crate::permissions::{Permission, Permissions, TestPermission};

/// The whole text: the machine, what was tried, what each test can do.
pub fn text(permissions: &Permissions) -> String {
    let Permissions { machine, tried, tests, denials } = permissions;
    let test = |test: &TestPermission| {
        let instead = test.instead.as_ref().map_or(String::new(), |instead| format!("; instead: {instead}"));
        cells![&test.test, test.answer.name(), format!("needs {}{instead}", test.needs)]
    };
    let mut parts = vec![
        table("This machine", machine.iter().map(of_permission)),
        table("Is it allowed?", tried.iter().map(of_permission)),
        table("What can run", tests.iter().map(test)),
    ];
    match denials.as_deref() {
        None => parts.push(
            "Denials of SELinux meanwhile cannot be told: the kernel's log cannot be read.\n".to_owned(),
        ),
        Some([]) => {}
        Some(denials) => {
            parts.push(table("Denied by SELinux meanwhile", denials.iter().map(|line| cells![line])))
        }
    }
    parts.join("\n")
}

fn of_permission(permission: &Permission) -> Row {
    cells![&permission.what, permission.answer.name(), &permission.why]
}

fn table(title: &str, rows: impl Iterator<Item = Row>) -> String {
    Table::of_words(["", "", ""]).titled(title).indented(2).rows(rows).text()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::permissions::Answer;

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
