//! Name of a process by its command line.
//! Facts: `proc_pid_cmdline(5)`: words end with NUL; a process that changed its title may have all of it in one word.

/// The name of a process whose command line (`/proc/PID/cmdline`) is this: the program's file, or a title such as
/// `sshd: user` as a whole. Empty for a kernel thread.
#[must_use]
pub fn process_name(command_line: &str) -> &str {
    let first = command_line.split('\0').next().unwrap_or_default();
    let program = first.split(' ').next().unwrap_or_default();
    if program.ends_with(':') { first } else { program.rsplit('/').next().unwrap_or_default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_a_name_and_a_path_is_none() {
        for (command_line, name) in [
            ("/usr/bin/cat\0/etc/passwd\0", "cat"),
            ("binderperf: server 0\0", "binderperf: server 0"),
            ("sshd: user@pts/0", "sshd: user@pts/0"),
            ("/system/bin/app_process64 -Xzygote", "app_process64"),
            ("com.android.systemui\0", "com.android.systemui"),
            ("", ""),
        ] {
            assert_eq!(process_name(command_line), name, "{command_line:?}");
        }
    }
}
