//! The macro that makes an interface's two sides out of its methods.
//! Not here: the types that they may have ([`crate::Value`]).

/// Makes the two sides of an AIDL interface from its methods: nobody types a method's number or the descriptor again.
///
/// Methods have the numbers 1, 2, ... in the order in which they stand, as `aidl` gives them. Arguments and results are
/// [`Value`](crate::Value)s. `oneway` methods have no result, and their callers do not wait.
///
/// The module has `DESCRIPTOR`; the trait `Service` for who serves, whose methods get arguments by value; `Served`, an
/// [`Object`](crate::Object) over such a service; and `Client` for who calls, whose methods take strings and arrays by
/// reference.
///
/// ```
/// use binder::{Binder, Status};
///
/// binder::interface! {
///     /// A counter.
///     pub mod counter = "example.ICounter" {
///         /// Adds to it, and returns the sum.
///         fn add(amount: i32) -> i32;
///         /// Names it.
///         oneway fn name(name: String);
///     }
/// }
///
/// #[derive(Default)]
/// struct Counter(std::sync::atomic::AtomicI32);
///
/// impl counter::Service for Counter {
///     fn add(&self, amount: i32) -> Result<i32, Status> {
///         if amount < 0 {
///             return Err(Status::illegal_argument("it only goes up"));
///         }
///         Ok(self.0.fetch_add(amount, std::sync::atomic::Ordering::Relaxed) + amount)
///     }
///
///     fn name(&self, _name: String) -> Result<(), Status> {
///         Ok(())
///     }
/// }
///
/// fn count(object: Binder) -> Result<i32, binder::CallError> {
///     let counter = counter::Client::from(object);
///     counter.name("sheep")?;
///     counter.add(2)
/// }
/// # let _ = (counter::Served(Counter::default()), count);
/// ```
#[macro_export]
macro_rules! interface {
    ($(#[$meta:meta])* $vis:vis mod $name:ident = $descriptor:literal { $($methods:tt)* }) => {
        $crate::interface! { @methods [$(#[$meta])* $vis mod $name = $descriptor] [] $($methods)* }
    };
    (
        @methods $head:tt [$($done:tt)*]
        $(#[$meta:meta])* oneway fn $method:ident($($arg:ident: $ty:ty),* $(,)?); $($rest:tt)*
    ) => {
        $crate::interface! {
            @methods $head [$($done)* {[$(#[$meta])*] oneway $method($($arg: $ty),*) -> ()}] $($rest)*
        }
    };
    (
        @methods $head:tt [$($done:tt)*]
        $(#[$meta:meta])* fn $method:ident($($arg:ident: $ty:ty),* $(,)?); $($rest:tt)*
    ) => {
        $crate::interface! {
            @methods $head [$($done)* {[$(#[$meta])*] twoway $method($($arg: $ty),*) -> ()}] $($rest)*
        }
    };
    (
        @methods $head:tt [$($done:tt)*]
        $(#[$meta:meta])* fn $method:ident($($arg:ident: $ty:ty),* $(,)?) -> $result:ty; $($rest:tt)*
    ) => {
        $crate::interface! {
            @methods $head [$($done)* {[$(#[$meta])*] twoway $method($($arg: $ty),*) -> $result}] $($rest)*
        }
    };
    (
        @methods [$(#[$meta:meta])* $vis:vis mod $name:ident = $descriptor:literal]
        [$({[$($doc:tt)*] $way:ident $method:ident($($arg:ident: $ty:ty),*) -> $result:ty})*]
    ) => {
        $(#[$meta])*
        #[allow(
            dead_code, unreachable_pub, unused_imports, unused_mut,
            reason = "not every interface and program needs all of it"
        )]
        $vis mod $name {
            use super::*;

            /// The interface's name.
            pub const DESCRIPTOR: &str = $descriptor;

            /// The methods in the order of their numbers.
            #[allow(non_camel_case_types, clippy::enum_variant_names, reason = "they are methods' names")]
            #[derive(Clone, Copy)]
            enum Method {
                $($method,)*
            }

            impl Method {
                const fn code(self) -> u32 {
                    self as u32 + 1
                }
            }

            /// An object of the interface. Its methods run on any pool thread, several at once.
            pub trait Service: Send + Sync + 'static {
                /// Whether the caller may, before any method: `Err` is what it gets.
                ///
                /// # Errors
                /// Whatever the caller shall get instead of results.
                fn admit(&self, call: &$crate::Incoming<'_>) -> ::core::result::Result<(), $crate::Status> {
                    let _ = call;
                    Ok(())
                }

                $(
                    $($doc)*
                    ///
                    /// # Errors
                    /// Whatever the caller shall get instead of results.
                    fn $method(&self, $($arg: $ty),*) -> ::core::result::Result<$result, $crate::Status>;
                )*
            }

            /// A service as an object to publish.
            #[derive(Debug)]
            pub struct Served<S>(pub S);

            impl<S: Service> $crate::Object for Served<S> {
                fn descriptor(&self) -> &str {
                    DESCRIPTOR
                }

                fn on_transact(
                    &self,
                    call: &mut $crate::Incoming<'_>,
                    reply: &mut $crate::Parcel,
                ) -> ::core::result::Result<(), $crate::Status> {
                    self.0.admit(call)?;
                    match call.code() {
                        $(code if code == Method::$method.code() => {
                            $(let $arg = <$ty as $crate::Value>::read(call)?;)*
                            let result: $result = self.0.$method($($arg),*)?;
                            <$result as $crate::Value>::write($crate::Value::given(&result), reply)?;
                        })*
                        _ => return Err($crate::Status::UNKNOWN_TRANSACTION),
                    }
                    Ok(())
                }
            }

            /// The interface of another object, to call.
            #[derive(Clone, Debug, PartialEq, Eq)]
            pub struct Client($crate::Binder);

            impl From<$crate::Binder> for Client {
                /// Takes an object for one of this interface. Another answers calls with `BAD_TYPE`.
                fn from(object: $crate::Binder) -> Self {
                    Self(object)
                }
            }

            impl Client {
                /// The object.
                pub fn as_binder(&self) -> &$crate::Binder {
                    &self.0
                }

                $($crate::interface! { @client $way [$($doc)*] $method($($arg: $ty),*) -> $result })*
            }
        }
    };
    (@client twoway [$($doc:tt)*] $method:ident($($arg:ident: $ty:ty),*) -> $result:ty) => {
        $($doc)*
        ///
        /// # Errors
        /// See [`CallError`]($crate::CallError).
        pub fn $method(
            &self,
            $($arg: <$ty as $crate::Value>::Given<'_>),*
        ) -> ::core::result::Result<$result, $crate::CallError> {
            let mut request = self.0.request(DESCRIPTOR);
            $(<$ty as $crate::Value>::write($arg, &mut request)?;)*
            let reply = self.0.call(Method::$method.code(), request)?;
            Ok(<$result as $crate::Value>::read(&mut reply.reader())?)
        }
    };
    (@client oneway [$($doc:tt)*] $method:ident($($arg:ident: $ty:ty),*) -> $result:ty) => {
        $($doc)*
        ///
        /// # Errors
        /// The driver does not take it. That it arrives is not known.
        pub fn $method(
            &self,
            $($arg: <$ty as $crate::Value>::Given<'_>),*
        ) -> ::core::result::Result<$crate::Taken, $crate::CallError> {
            let mut request = self.0.request(DESCRIPTOR);
            $(<$ty as $crate::Value>::write($arg, &mut request)?;)*
            Ok(self.0.oneway(Method::$method.code(), request)?)
        }
    };
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use crate::{Binder, CallError, Object, Parcel, Status};

    crate::interface! {
        /// Every form of a method.
        mod forms = "example.IForms" {
            /// Nothing either way.
            fn nothing();
            /// Several arguments.
            fn join(words: Vec<String>, between: String, end: Option<String>) -> String;
            /// No answer.
            oneway fn note(text: String);
            fn object(object: Binder) -> Option<Binder>;
        }
    }

    struct Forms(Mutex<Vec<String>>);

    impl forms::Service for Forms {
        fn admit(&self, call: &crate::Incoming<'_>) -> Result<(), Status> {
            if call.code() == 4 { Err(Status::illegal_argument("not you")) } else { Ok(()) }
        }

        fn nothing(&self) -> Result<(), Status> {
            Ok(())
        }

        fn join(&self, words: Vec<String>, between: String, end: Option<String>) -> Result<String, Status> {
            Ok(words.join(&between) + &end.ok_or_else(|| Status::illegal_argument("no end"))?)
        }

        fn note(&self, text: String) -> Result<(), Status> {
            self.0.lock().expect("no panic").push(text);
            Ok(())
        }

        fn object(&self, object: Binder) -> Result<Option<Binder>, Status> {
            Ok(Some(object))
        }
    }

    /// Methods are numbered as they stand: a caller that types the numbers by hand is understood.
    #[test]
    fn numbers_and_bytes_are_those_of_aidl() {
        let context = crate::find("embedded:private", "binder").expect("the embedded driver");
        let process = crate::Process::open(&context, crate::ProcessOptions::default()).expect("it opens");
        let object = process.publish(forms::Served(Forms(Mutex::default())));
        let mut request = object.request("example.IForms");
        request.write_str_slice(&["a", "b"]);
        request.write_str("-");
        request.write_nullable_str(Some("!"));
        let reply = object.call(2, request).expect("join");
        assert_eq!(reply.reader().read_str().expect("a string"), "a-b!");

        let client = forms::Client::from(object.clone());
        client.nothing().expect("it does nothing");
        let words = ["x".to_owned(), "y".to_owned()];
        assert_eq!(client.join(&words, "+", Some(".")).expect("joined"), "x+y.");
        let refused = client.join(&words, "+", None).expect_err("no end");
        assert!(refused.to_string().contains("no end"), "{refused}");
        client.note("one").expect("taken");
        let refused = client.object(&object).expect_err("not admitted");
        assert!(refused.to_string().contains("not you"), "{refused}");
        let unknown = object.call(5, object.request("example.IForms"));
        assert!(matches!(unknown, Err(CallError::Status(Status::UNKNOWN_TRANSACTION))), "{unknown:?}");
    }

    #[test]
    fn a_oneway_method_is_served() {
        let forms = std::sync::Arc::new(forms::Served(Forms(Mutex::default())));
        assert_eq!(forms.descriptor(), forms::DESCRIPTOR);
        let context = crate::find("embedded:private", "binder").expect("the embedded driver");
        let process = crate::Process::open(&context, crate::ProcessOptions::default()).expect("it opens");
        let client = forms::Client::from(process.publish(forms.clone()));
        client.note("heard").expect("taken");
        assert_eq!(*forms.0.0.lock().expect("no panic"), ["heard"]);
        assert_eq!(Parcel::new().data(), [0; 0]);
    }
}
