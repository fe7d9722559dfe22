//! Async clients and services on tokio, which [`interface!`](crate::interface) makes with the feature `tokio`.
//!
//! The driver's calls block. A client's call runs on one of tokio's threads for blocking work, a service's method on a thread of
//! the process's pool, which waits for its future.

use std::any::Any;

use tokio::runtime::Handle;

use crate::{CallError, StatusCode};

/// Runs a call on a thread that may block.
///
/// # Errors
/// The call's, and `UNKNOWN_ERROR` if the runtime shuts down.
///
/// # Panics
/// If the call does.
pub async fn blocking<T: Send + 'static>(
    call: impl FnOnce() -> Result<T, CallError> + Send + 'static,
) -> Result<T, CallError> {
    match tokio::task::spawn_blocking(call).await {
        Ok(outcome) => outcome,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(StatusCode::UNKNOWN_ERROR.into()),
        },
    }
}

/// Waits for a service's future, on another thread if this one drives a runtime.
///
/// # Panics
/// If the future does.
pub fn wait<F: Future<Output: Send> + Send>(runtime: &Handle, future: F) -> F::Output {
    if Handle::try_current().is_err() {
        return runtime.block_on(future);
    }
    let waits = || runtime.block_on(future);
    std::thread::scope(|scope| scope.spawn(waits).join())
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The values of `#[out]` and `#[inout]` arguments that came back, in their order.
#[derive(Debug, Default)]
pub struct Back(std::collections::VecDeque<Box<dyn Any + Send>>);

impl Back {
    /// Keeps the next one.
    pub fn keep<T: Send + 'static>(&mut self, value: T) {
        self.0.push_back(Box::new(value));
    }

    /// Hands over the next one.
    pub fn put<T: 'static>(&mut self, argument: &mut T) {
        if let Some(Ok(value)) = self.0.pop_front().map(|value| value.downcast::<T>()) {
            *argument = *value;
        }
    }
}

/// The async half of an interface's module.
#[doc(hidden)]
#[macro_export]
macro_rules! __asynchronous {
    ($({ $way:ident [$($doc:tt)*] $method:ident [$({[$($dir:ident)?] $arg:ident: $ty:ty})*] [$($result:ty)?] })*) => {
        /// [`Service`] with async methods.
        pub trait AsyncService: Send + Sync + 'static {
            $crate::interface! { @whole }

            $(
                $($doc)*
                ///
                /// # Errors
                /// Whatever the caller shall get instead of results.
                fn $method(
                    &self,
                    $($arg: $crate::interface! { @served [$($dir)?] $ty }),*
                ) -> impl ::core::future::Future<
                    Output = ::core::result::Result<$crate::interface! { @result $($result)? }, $crate::Status>,
                > + Send;
            )*
        }

        /// An async service as a [`Service`].
        #[derive(Debug)]
        pub struct AsyncServed<S> {
            service: S,
            runtime: $crate::tokio::runtime::Handle,
        }

        impl<S: AsyncService> AsyncServed<S> {
            /// Takes a service, whose methods run on the calling task's runtime. Others must drive that: threads of its own
            /// (`rt-multi-thread`), or one that stays in `block_on`. Without, a method that waits for a timer or a socket waits
            /// without end.
            ///
            /// # Panics
            /// Outside a runtime.
            pub fn new(service: S) -> Self {
                Self { service, runtime: $crate::tokio::runtime::Handle::current() }
            }
        }

        impl<S: AsyncService> Service for AsyncServed<S> {
            fn admit(&self, call: &$crate::Incoming<'_>) -> ::core::result::Result<(), $crate::Status> {
                self.service.admit(call)
            }

            fn extension(&self) -> ::core::option::Option<$crate::Binder> {
                self.service.extension()
            }

            fn dump(
                &self,
                to: &mut dyn ::std::io::Write,
                arguments: &[::std::string::String],
            ) -> ::std::io::Result<()> {
                self.service.dump(to, arguments)
            }

            fn shell_command(
                &self,
                command: $crate::ShellCommand,
            ) -> ::core::result::Result<i32, $crate::StatusCode> {
                self.service.shell_command(command)
            }

            $(
                fn $method(
                    &self,
                    $($arg: $crate::interface! { @served [$($dir)?] $ty }),*
                ) -> ::core::result::Result<$crate::interface! { @result $($result)? }, $crate::Status> {
                    let served = AsyncService::$method(&self.service, $($arg),*);
                    $crate::asynchronous::wait(&self.runtime, served)
                }
            )*
        }

        /// [`Client`] with async methods, for use on a runtime of tokio. A future that is dropped leaves its call running on a thread
        /// for blocking work, until the service answers.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct AsyncClient($crate::Binder);

        impl ::core::convert::From<Client> for AsyncClient {
            fn from(client: Client) -> Self {
                Self(client.0)
            }
        }

        impl ::core::convert::From<AsyncClient> for Client {
            fn from(client: AsyncClient) -> Self {
                Self(client.0)
            }
        }

        impl AsyncClient {
            /// The object.
            pub fn as_binder(&self) -> &$crate::Binder {
                &self.0
            }

            $($crate::__asynchronous! {
                @client $way [$($doc)*] $method [$({[$($dir)?] $arg: $ty})*] [$($result)?]
            })*
        }
    };
    (@client oneway [$($doc:tt)*] $method:ident [$({[] $arg:ident: $ty:ty})*] []) => {
        $($doc)*
        ///
        /// # Errors
        /// The driver does not take it. That it arrives is not known.
        pub async fn $method(
            &self,
            $($arg: <$ty as $crate::Value>::Given<'_>),*
        ) -> ::core::result::Result<$crate::Taken, $crate::CallError> {
            let mut request = self.0.request(DESCRIPTOR);
            $(<$ty as $crate::Value>::write($arg, &mut request)?;)*
            let object = self.0.clone();
            let call = move || ::core::result::Result::Ok(object.oneway(Method::$method.code(), request)?);
            $crate::asynchronous::blocking(call).await
        }
    };
    (@client $way:ident [$($doc:tt)*] $method:ident [$({[$($dir:ident)?] $arg:ident: $ty:ty})*] [$($result:ty)?]) => {
        $($doc)*
        ///
        /// # Errors
        /// See [`CallError`]($crate::CallError).
        pub async fn $method(
            &self,
            $($arg: $crate::interface! { @given [$($dir)?] $ty }),*
        ) -> ::core::result::Result<$crate::interface! { @result $($result)? }, $crate::CallError> {
            let mut request = self.0.request(DESCRIPTOR);
            $($crate::interface! { @send [$($dir)?] $ty, $arg, request })*
            let object = self.0.clone();
            let call = move || {
                let reply = object.call(Method::$method.code(), request)?;
                let mut results = reply.reader();
                let result = <$crate::interface! { @result $($result)? } as $crate::Value>::read(&mut results)?;
                let mut back = $crate::asynchronous::Back::default();
                $($crate::__asynchronous! { @keep [$($dir)?] $ty, results, back })*
                ::core::result::Result::Ok((result, back))
            };
            let (result, mut back) = $crate::asynchronous::blocking(call).await?;
            $($crate::__asynchronous! { @put [$($dir)?] $arg, back })*
            ::core::result::Result::Ok(result)
        }
    };
    (@keep [] $ty:ty, $results:ident, $back:ident) => {};
    (@keep [$dir:ident] $ty:ty, $results:ident, $back:ident) => {
        $back.keep(<$ty as $crate::Value>::read(&mut $results)?);
    };
    (@put [] $arg:ident, $back:ident) => {};
    (@put [$dir:ident] $arg:ident, $back:ident) => {
        $back.put($arg);
    };
}

#[cfg(test)]
mod tests {
    use crate::{CallError, Process, ProcessOptions, Status};

    crate::interface! {
        mod sums = "example.ISums" {
            /// Adds, and leaves the larger one.
            fn add(a: i32, b: i32, #[out] largest: Vec<i32>, #[inout] calls: Vec<i64>) -> i32;
            oneway note(text: String);
            fn call_back(other: super::sums::Client) -> String;
        }
    }

    struct Sums;

    impl sums::AsyncService for Sums {
        async fn add(
            &self,
            a: i32,
            b: i32,
            largest: &mut Vec<i32>,
            calls: &mut Vec<i64>,
        ) -> Result<i32, Status> {
            tokio::task::yield_now().await;
            largest.push(a.max(b));
            calls.push(1);
            a.checked_add(b).ok_or_else(|| Status::illegal_argument("too much"))
        }

        async fn note(&self, _text: String) -> Result<(), Status> {
            Ok(())
        }

        async fn call_back(&self, other: sums::Client) -> Result<String, Status> {
            let sum = sums::AsyncClient::from(other).add(2, 2, &mut Vec::new(), &mut Vec::new()).await?;
            Ok(format!("it says {sum}"))
        }
    }

    #[test]
    fn clients_and_services_run_on_a_runtime() {
        let context = crate::find("embedded:private", "binder").expect("the embedded driver");
        let process = Process::open(&context, ProcessOptions::default()).expect("it opens");
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let client = sums::Client::publish(&process, sums::AsyncServed::new(Sums));
            let sums = sums::AsyncClient::from(client.clone());
            let (mut largest, mut calls) = (vec![0; 1], vec![7]);
            assert_eq!(sums.add(3, 4, &mut largest, &mut calls).await.expect("a sum"), 7);
            assert_eq!((largest, calls), (vec![0, 4], vec![7, 1]));
            let refused =
                sums.add(i32::MAX, 1, &mut Vec::new(), &mut Vec::new()).await.expect_err("too much");
            assert!(matches!(&refused, CallError::Status(status) if status.to_string().contains("too much")));
            sums.note("heard").await.expect("taken");
            assert_eq!(sums.call_back(&client).await.expect("called back"), "it says 4");
            // A blocking call on the thread that drives the runtime.
            assert_eq!(client.add(1, 2, &mut Vec::new(), &mut Vec::new()).expect("a sum"), 3);
            assert_eq!(sums::Client::from(sums.clone()), client);
        });
    }
}
