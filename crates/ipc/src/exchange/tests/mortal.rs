//! A remote object that dies on demand, for tests of death links.

use abi::Cookie;
use abi::codes::bc;

use super::script::{Script, Step};
use super::{acquisition, on, proxy};
use crate::process::Process;
use crate::runtime::Runtime;
use crate::runtime::proxy::Proxy;
use crate::runtime::target::Binder;

/// The first registration that a process makes.
const FIRST: Cookie = Cookie(1);

/// The object and the process that knows it.
pub(crate) struct Mortal {
    proxy: Proxy,
    process: Process<Script>,
}

impl Mortal {
    /// One that lives, and that nobody has a link to yet.
    pub(crate) fn new() -> Self {
        let process = on(vec![acquisition(), Step::write(&[bc::REQUEST_DEATH_NOTIFICATION])]);
        Self { proxy: proxy(&process), process }
    }

    pub(crate) fn binder(&self) -> Binder {
        Binder::Remote(self.proxy.clone())
    }

    /// What a looper does with the notification of it: when this returns, every link has been told.
    pub(crate) fn die(&self) {
        let inner = &self.process.inner;
        inner.shared.deaths.notify(&inner.thread(), FIRST);
    }
}
