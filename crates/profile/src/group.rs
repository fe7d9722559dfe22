//! Groups of the kernel's work that a driver's author thinks in: waking up, copying, locks.
//! Not here: the stacks (`super::stacks`).
//!
//! The group of an instruction is that of the outermost function on its stack that has one: a lock that is taken on the way
//! of a wake-up belongs to the wake-up.

/// A group with the beginnings of its functions' names, and parts of them.
struct Group {
    name: &'static str,
    begins: &'static [&'static str],
    holds: &'static [&'static str],
}

/// The groups, in the order in which a function is looked for.
const GROUPS: [Group; 8] = [
    Group {
        name: "interrupts",
        begins: &[
            "asm_sysvec_",
            "asm_common_interrupt",
            "sysvec_",
            "irq_exit",
            "el1h_64_irq",
            "el1_interrupt",
            "handle_softirqs",
        ],
        holds: &[],
    },
    Group {
        name: "waking up",
        begins: &[
            "__wake_up",
            "try_to_wake_up",
            "wake_up",
            "autoremove_wake_function",
            "default_wake_function",
            "ep_poll_callback",
        ],
        holds: &["CondVar", "::wakeup", "notify_one", "notify_sync", "notify_all"],
    },
    Group {
        name: "going to sleep, switching",
        begins: &[
            "schedule",
            "__schedule",
            "prepare_to_wait",
            "finish_wait",
            "preempt_schedule",
            "__cond_resched",
        ],
        holds: &[],
    },
    Group {
        name: "copying",
        begins: &[
            "copy_from_user",
            "_copy_from_user",
            "copy_to_user",
            "_copy_to_user",
            "rep_movs",
            "memcpy",
            "__memcpy",
            "memset",
            "__memset",
            "__arch_copy_",
            "copy_user",
            "binder_alloc_copy",
            "binder_alloc_do_buffer_copy",
            "__get_user",
            "__put_user",
            "clear_page",
            "copy_page",
        ],
        holds: &["UserSliceReader", "UserSliceWriter", "copy_into", "::write_all"],
    },
    Group {
        name: "memory",
        begins: &[
            "kmalloc",
            "__kmalloc",
            "kfree",
            "kmem_cache",
            "__kmem_cache",
            "kvmalloc",
            "kvfree",
            "___slab",
            "__slab",
            "krealloc",
            "binder_alloc_new_buf",
            "binder_alloc_free_buf",
            "binder_alloc_prepare_to_free",
            "binder_insert_free_buffer",
        ],
        holds: &["::alloc::", "range_alloc", "page_range", "Allocation as", "krealloc"],
    },
    Group {
        name: "locks",
        begins: &[
            "_raw_spin_",
            "_raw_read_",
            "_raw_write_",
            "mutex_",
            "__mutex",
            "queued_spin",
            "rt_spin_",
            "rt_mutex_",
            "native_queued_spin",
        ],
        holds: &["SpinLockBackend", "::lock::"],
    },
    Group {
        name: "descriptors",
        begins: &["fget", "fput", "__fget", "__fput", "fdget", "__fdget"],
        holds: &[],
    },
    Group { name: "driver", begins: &["binder_", "rust_binder"], holds: &["rust_binder"] },
];

/// Instructions of programs.
pub(crate) const USER_SPACE: &str = "user space";
/// Instructions of no other group: entry of system calls, return from them.
const REST: &str = "system call entry and rest";

/// The group of a stack, outermost function first.
pub(crate) fn of<'n>(stack: impl Iterator<Item = &'n str> + Clone) -> &'static str {
    if stack.clone().next() == Some(USER_SPACE) {
        return USER_SPACE;
    }
    let mut in_driver = false;
    for function in stack {
        match named(function) {
            // What it calls may have a group of its own.
            Some("driver") => in_driver = true,
            Some(group) => return group,
            None => {}
        }
    }
    if in_driver { "driver" } else { REST }
}

fn named(function: &str) -> Option<&'static str> {
    let fits = |group: &&Group| {
        group.begins.iter().any(|begin| function.starts_with(begin))
            || group.holds.iter().any(|part| function.contains(part))
    };
    GROUPS.iter().find(fits).map(|group| group.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(stack: &str) -> &'static str {
        of(stack.split(';'))
    }

    #[test]
    fn the_outermost_function_with_a_group_decides() {
        for (stack, want) in [
            ("user space", "user space"),
            ("entry_SYSCALL_64;do_syscall_64", "system call entry and rest"),
            ("entry_SYSCALL_64;binder_ioctl;binder_thread_write", "driver"),
            ("entry_SYSCALL_64;binder_ioctl;_raw_spin_lock", "locks"),
            ("entry_SYSCALL_64;binder_ioctl;__wake_up_sync;try_to_wake_up;_raw_spin_lock", "waking up"),
            (
                "entry_SYSCALL_64;binder_ioctl;schedule;__schedule;pick_next_task_fair",
                "going to sleep, switching",
            ),
            (
                "entry_SYSCALL_64;binder_ioctl;binder_alloc_copy_user_to_buffer;rep_movs_alternative",
                "copying",
            ),
            ("entry_SYSCALL_64;binder_ioctl;binder_alloc_new_buf;_raw_spin_lock", "memory"),
            ("entry_SYSCALL_64;<rust_binder_main::thread::Thread>::write", "driver"),
            ("entry_SYSCALL_64;asm_sysvec_apic_timer_interrupt;try_to_wake_up", "interrupts"),
        ] {
            assert_eq!(group(stack), want, "{stack}");
        }
    }
}
