//! Who called the method that a thread runs at the moment.
//! Not here: the call itself (`incoming`).

use std::cell::RefCell;

thread_local! {
    static CURRENT: RefCell<Option<Caller>> = const { RefCell::new(None) };
}

/// The caller of the AIDL method that this thread runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Its process id; 0 for oneway calls and for callers outside this pid namespace.
    pub pid: i32,
    /// The effective uid of the calling thread at the time of the call.
    pub euid: u32,
    /// The call's flags: `TF_*` of the UAPI header.
    pub flags: u32,
    /// Its security context, if the node asked for it.
    pub security_context: Option<String>,
}

impl Caller {
    /// The caller, if this thread runs a method. A method that another one of this thread calls has its own.
    #[must_use]
    pub fn current() -> Option<Self> {
        CURRENT.with_borrow(Clone::clone)
    }

    /// Runs a method for this caller.
    pub(crate) fn runs<T>(self, method: impl FnOnce() -> T) -> T {
        let _outer = Outer(CURRENT.replace(Some(self)));
        method()
    }
}

/// The caller of the method that waits for this one, put back at the end.
struct Outer(Option<Caller>);

impl Drop for Outer {
    fn drop(&mut self) {
        // Without local storage, at a thread's end, nobody asks.
        let _ = CURRENT.try_with(|current| current.replace(self.0.take()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(pid: i32) -> Caller {
        Caller { pid, euid: 0, flags: 0, security_context: None }
    }

    #[test]
    fn each_method_has_its_own_caller() {
        let pid = || Caller::current().map(|caller| caller.pid);
        assert_eq!(pid(), None);
        caller(1).runs(|| {
            caller(2).runs(|| assert_eq!(pid(), Some(2)));
            assert_eq!(pid(), Some(1));
            let panicked = std::panic::catch_unwind(|| caller(3).runs(|| panic!("in a method")));
            assert!(panicked.is_err());
            assert_eq!(pid(), Some(1));
        });
        assert_eq!(pid(), None);
    }
}
