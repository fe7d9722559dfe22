//! Checks of the driver's state text after the traffic has stopped.
//! Not here: reading the text (`driver_state`).
//! Facts: contract section 19 (DBG-01..DBG-03, DBG-06).

use std::collections::BTreeMap;

/// An idle process, which holds nothing but its registered nodes.
pub(super) struct IdleProcess {
    pub(super) pid: u32,
    /// Name for failure messages.
    pub(super) name: String,
    /// Nodes that other processes may hold.
    pub(super) nodes: usize,
    /// References, not counting the one to the context manager.
    pub(super) refs: usize,
}

/// Splits the text into lines per pid.
fn blocks(text: &str) -> BTreeMap<u32, Vec<&str>> {
    let mut blocks: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
    let mut current = None;
    for line in text.lines() {
        if let Some(pid) = line.strip_prefix("proc ") {
            current = pid.trim().parse().ok();
            if let Some(pid) = current {
                blocks.entry(pid).or_default();
            }
        } else if let Some(pid) = current {
            blocks.entry(pid).or_default().extend(entries(line));
        }
    }
    blocks
}

/// Splits a line into entries. The Rust driver does not end the line after a reference (contract DBG-06); the next
/// entry begins with two blanks.
fn entries(line: &str) -> impl Iterator<Item = &str> {
    line.split("  ").filter(|entry| !entry.trim().is_empty())
}

/// Leaks: things that processes still hold but should not.
pub(super) fn left_over(text: &str, processes: &[IdleProcess]) -> Vec<String> {
    let blocks = blocks(text);
    let mut complaints = Vec::new();
    for process in processes {
        let Some(lines) = blocks.get(&process.pid) else {
            complaints.push(format!("{} ({}) is not in the state", process.name, process.pid));
            continue;
        };
        complaints
            .extend(left_by(lines, process).into_iter().map(|what| format!("{}: {what}", process.name)));
    }
    complaints
}

fn left_by(lines: &[&str], process: &IdleProcess) -> Vec<String> {
    let is = |line: &str, kind: &str| line.trim_start().starts_with(kind);
    let wrong = |line: &&&str| {
        let to_manager = line.contains(" desc 0 ");
        is(line, "buffer ")
            || line.contains(" transaction ")
            || is(line, "ref ") && (line.contains(" dead ") || process.refs == 0 && !to_manager)
    };
    let mut complaints: Vec<String> = lines.iter().filter(wrong).map(|line| line.trim().to_owned()).collect();
    // "node work" lines are notifications for the node's owner.
    let nodes = lines.iter().filter(|line| is(line, "node ") && !is(line, "node work ")).count();
    if nodes != process.nodes {
        complaints.push(format!("{nodes} nodes instead of {}", process.nodes));
    }
    let refs = lines.iter().filter(|line| is(line, "ref ") && !line.contains(" desc 0 ")).count();
    if refs != process.refs && process.refs != 0 {
        complaints.push(format!("{refs} references instead of {}", process.refs));
    }
    complaints
}

/// Everything in the state text except the asking process itself.
pub(super) fn besides(text: &str, asker: u32) -> Vec<String> {
    let mut complaints: Vec<String> = blocks(text)
        .into_iter()
        .filter(|(pid, _)| *pid != asker)
        .map(|(pid, lines)| format!("process {pid} is still there: {}", lines.join(" / ")))
        .collect();
    if text.lines().any(|line| line == "dead nodes:") {
        complaints.push("nodes of dead processes are still there".to_owned());
    }
    let own = blocks(text).remove(&asker).unwrap_or_default();
    let holds =
        |line: &&&str| ["node ", "ref ", "buffer "].iter().any(|kind| line.trim_start().starts_with(kind));
    complaints
        .extend(own.iter().filter(holds).map(|line| format!("the one that asks holds {}", line.trim())));
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "binder state:\nproc 10\ncontext binder\n  thread 10: l 12 need_return 0 tr 0\n\
                        \x20 node 1: u0001 c0001 hs 1 hw 1 ls 0 lw 0 is 1 iw 1 tr 0 proc 11\n\
                        \x20 ref 2: desc 0 node 9 s 1 w 1 d 0\n";

    fn quiet(nodes: usize, refs: usize) -> Vec<IdleProcess> {
        vec![IdleProcess { pid: 10, name: "0.0".to_owned(), nodes, refs }]
    }

    #[test]
    fn a_quiet_process_is_found_quiet() {
        assert_eq!(left_over(TEXT, &quiet(1, 0)), [""; 0]);
        assert_eq!(left_over(TEXT, &quiet(2, 0)), ["0.0: 1 nodes instead of 2"]);
        assert_eq!(left_over(TEXT, &quiet(1, 3)), ["0.0: 0 references instead of 3"]);
        assert_eq!(left_over("binder state:\n", &quiet(1, 0)).len(), 1, "it must be there");
    }

    #[test]
    fn whatever_is_left_is_noticed() {
        for line in [
            "  buffer 7: 40 size 4:0:0 delivered",
            "    outgoing transaction 3: 0 from 10:10 to 11:0 code 1 flags 10 pri 0 a0 r0 elapsed 1ms",
            "    pending async transaction 3: 0 from 10:10 to 11:0 code 1 flags 11 pri 0 a1 r0 elapsed 1ms",
            "  ref 3: desc 1 node 4 s 1 w 1 d 0",
            "  ref 3: desc 0 dead node 4 s 1 w 1 d 0",
        ] {
            let text = format!("{TEXT}{line}\n");
            assert_eq!(left_over(&text, &quiet(1, 0)), [format!("0.0: {}", line.trim())], "{line}");
        }
        assert_eq!(left_over(&format!("{TEXT}  ref 3: desc 1 node 4 s 1 w 1 d 0\n"), &quiet(1, 1)), [""; 0]);
    }

    #[test]
    fn references_on_one_line_are_counted_and_hide_nothing() {
        let text = "binder state:\nproc 10\ncontext b\n  node 1: u01 c01 hs true hw true cs 1 cw 0 proc 11\n\
                    \x20 ref 4: desc 0 node 0 s 1 w 0  ref 5: desc 1 node 2 s 1 w 0  ref 6: desc 2 node 3 s 1 w 0\n\
                    \x20   node work 1: u01 c01\n\n";
        assert_eq!(left_over(text, &quiet(1, 2)), [""; 0]);
        assert_eq!(left_over(text, &quiet(1, 3)), ["0.0: 2 references instead of 3"]);
        let buffer = "buffer 0: 8 size 8 pid 11 oneway true allocated";
        let text = text.replace("node 3 s 1 w 0", &format!("node 3 s 1 w 0  {buffer}"));
        assert_eq!(left_over(&text, &quiet(1, 2)), [format!("0.0: {buffer}")]);
    }

    #[test]
    fn an_empty_account_has_nothing_besides_the_asker() {
        assert_eq!(
            besides("binder state:\nproc 5\ncontext binder\n  thread 5: l 00 need_return 0 tr 0\n", 5),
            [""; 0]
        );
        assert_eq!(besides(TEXT, 5).len(), 1);
        assert_eq!(besides(TEXT, 10).len(), 2);
        assert_eq!(besides("binder state:\ndead nodes:\n  node 1: u1\nproc 5\n", 5).len(), 1);
    }
}
