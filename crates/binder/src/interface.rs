//! The macro that makes an interface's two sides out of its methods.
//! Not here: the types that they may have ([`crate::Value`]).

/// Makes the two sides of an AIDL interface from its methods: nobody types a method's number or the descriptor again.
///
/// Methods have the numbers 1, 2, ... in their order, as `aidl` gives them, or one more than what follows `=`, as in `.aidl` files.
/// Arguments and results are [`Value`](crate::Value)s. `oneway` methods have no result, and their callers do not wait. An argument
/// that is `#[out]` is a reference that the service fills in, one that is `#[inout]` also brings a value. An `out List<T>` of AIDL,
/// which does not bring its length as an `out T[]` does, is `#[out_list]`.
///
/// The module has `DESCRIPTOR`; the trait `Service` for who serves, whose methods get arguments by value; `Served`, an
/// [`Object`](crate::Object) over such a service; and `Client` for who calls, whose methods take strings and arrays by
/// reference. `Client` is a [`Value`](crate::Value): methods take and return interfaces. A second block, if there is one, has further
/// items of the module, such as constants.
///
/// ```
/// use binder::{Binder, Process, Status};
///
/// binder::interface! {
///     /// A counter.
///     pub mod counter = "example.ICounter" {
///         /// Adds to it, and returns the sum.
///         fn add(amount: i32) -> i32;
///         /// Names it.
///         oneway name(name: String);
///         /// Calls the listener with each sum from now on.
///         fn follow(listener: listener::Client, #[out] so_far: Vec<i32>);
///     }
/// }
///
/// binder::interface! {
///     pub mod listener = "example.IListener" {
///         oneway on_sum(sum: i32);
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
///
///     fn follow(&self, listener: listener::Client, so_far: &mut Vec<i32>) -> Result<(), Status> {
///         so_far.push(self.add(0)?);
///         listener.on_sum(self.add(0)?)?;
///         Ok(())
///     }
/// }
///
/// struct Listener;
///
/// impl listener::Service for Listener {
///     fn on_sum(&self, sum: i32) -> Result<(), Status> {
///         println!("{sum}");
///         Ok(())
///     }
/// }
///
/// fn count(process: &Process, object: Binder) -> Result<i32, binder::CallError> {
///     let counter = counter::Client::from(object);
///     counter.name("sheep")?;
///     counter.follow(&listener::Client::publish(process, Listener), &mut Vec::new())?;
///     counter.add(2)
/// }
/// # fn main() {
/// #     let _ = (counter::Served(Counter::default()), count);
/// # }
/// ```
#[macro_export]
macro_rules! interface {
    (
        $(#[$meta:meta])* $vis:vis mod $name:ident = $descriptor:literal {
            $(
                $(#[$doc:meta])*
                $way:ident $method:ident($($(#[$dir:ident])? $arg:ident: $ty:ty),* $(,)?)
                $(-> $result:ty)? $(= $number:literal)?;
            )*
        }
        $({ $($item:item)* })?
    ) => {
        $(#[$meta])*
        #[allow(
            dead_code, unreachable_pub, unused_imports, unused_mut, unused_variables, unused_attributes, unreachable_code, non_snake_case, private_interfaces,
            clippy::enum_variant_names, clippy::too_many_arguments,
            reason = "not every interface and program needs all of it; names are AIDL's"
        )]
        $vis mod $name {
            use super::*;

            $($($item)*)?

            /// The interface's name.
            pub const DESCRIPTOR: &str = $descriptor;

            /// The methods in the order of their numbers.
            #[allow(non_camel_case_types, reason = "they are methods' names")]
            #[derive(Clone, Copy)]
            enum Method {
                $($method $(= $number)?,)*
            }

            impl Method {
                const fn code(self) -> u32 {
                    self as u32 + 1
                }
            }

            /// An object of the interface. Its methods run on any pool thread, several at once; [`Caller`]($crate::Caller) says
            /// for whom.
            pub trait Service: Send + Sync + 'static {
                $crate::interface! { @whole }

                $(
                    $(#[$doc])*
                    ///
                    /// # Errors
                    /// Whatever the caller shall get instead of results.
                    fn $method(
                        &self,
                        $($arg: $crate::interface! { @served [$($dir)?] $ty }),*
                    ) -> ::core::result::Result<$crate::interface! { @result $($result)? }, $crate::Status>;
                )*
            }

            /// A service that somebody else has as well.
            impl<S: Service + ?Sized> Service for ::std::sync::Arc<S> {
                fn admit(&self, call: &$crate::Incoming<'_>) -> ::core::result::Result<(), $crate::Status> {
                    (**self).admit(call)
                }

                fn extension(&self) -> ::core::option::Option<$crate::Binder> {
                    (**self).extension()
                }

                fn dump(
                    &self,
                    to: &mut dyn ::std::io::Write,
                    arguments: &[::std::string::String],
                ) -> ::std::io::Result<()> {
                    (**self).dump(to, arguments)
                }

                fn shell_command(
                    &self,
                    command: $crate::ShellCommand,
                ) -> ::core::result::Result<i32, $crate::StatusCode> {
                    (**self).shell_command(command)
                }

                $(
                    fn $method(
                        &self,
                        $($arg: $crate::interface! { @served [$($dir)?] $ty }),*
                    ) -> ::core::result::Result<$crate::interface! { @result $($result)? }, $crate::Status> {
                        Service::$method(&**self, $($arg),*)
                    }
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
                            $(let mut $arg = $crate::interface! { @receive [$($dir)?] $ty, call };)*
                            let result =
                                Service::$method(&self.0, $($crate::interface! { @pass [$($dir)?] $arg }),*)?;
                            <$crate::interface! { @result $($result)? } as $crate::Value>::write(
                                $crate::Value::given(&result),
                                reply,
                            )?;
                            $($crate::interface! { @return [$($dir)?] $ty, $arg, reply })*
                        })*
                        _ => return ::core::result::Result::Err($crate::Status::UNKNOWN_TRANSACTION),
                    }
                    ::core::result::Result::Ok(())
                }

                fn extension(&self) -> ::core::option::Option<$crate::Binder> {
                    self.0.extension()
                }

                fn dump(
                    &self,
                    to: &mut dyn ::std::io::Write,
                    arguments: &[::std::string::String],
                ) -> ::std::io::Result<()> {
                    self.0.dump(to, arguments)
                }

                fn shell_command(
                    &self,
                    command: $crate::ShellCommand,
                ) -> ::core::result::Result<i32, $crate::StatusCode> {
                    self.0.shell_command(command)
                }
            }

            /// The interface of another object, to call.
            #[derive(Clone, Debug, PartialEq, Eq)]
            pub struct Client($crate::Binder);

            impl ::core::convert::From<$crate::Binder> for Client {
                /// Takes an object for one of this interface. Another answers calls with `BAD_TYPE`.
                fn from(object: $crate::Binder) -> Self {
                    Self(object)
                }
            }

            impl ::core::convert::From<Client> for $crate::Binder {
                fn from(client: Client) -> Self {
                    client.0
                }
            }

            $crate::interface! { @value Client }

            impl Client {
                /// Offers a service from a process, for others to call.
                pub fn publish(process: &$crate::Process, service: impl Service) -> Self {
                    Self(process.publish(Served(service)))
                }

                /// Offers a service under a name; while the result is kept, again to each new service manager.
                ///
                /// # Errors
                /// See [`Registration::of_binder`]($crate::Registration::of_binder).
                pub fn register(
                    process: &$crate::Process,
                    name: &str,
                    service: impl Service,
                ) -> ::core::result::Result<$crate::Registration, $crate::CallError> {
                    $crate::Registration::of_binder(process, name, &Self::publish(process, service).0)
                }

                /// Finds the service of a name; waits some seconds for the service manager, and for it.
                ///
                /// # Errors
                /// The context has no service manager, or nobody serves the name.
                pub fn find(
                    process: &$crate::Process,
                    name: &str,
                ) -> ::core::result::Result<Self, $crate::CallError> {
                    ::core::result::Result::Ok(Self($crate::Services::find(process, name)?))
                }

                /// The object.
                pub fn as_binder(&self) -> &$crate::Binder {
                    &self.0
                }

                $($crate::interface! {
                    @client $way [$(#[$doc])*] $method [$({[$($dir)?] $arg: $ty})*] [$($result)?]
                })*
            }

            $crate::__asynchronous! {
                $({ $way [$(#[$doc])*] $method [$({[$($dir)?] $arg: $ty})*] [$($result)?] })*
            }
        }
    };
    // Methods for the object as a whole.
    (@whole) => {
        /// Admits or refuses the caller before each method of the interface: `Err` is what it gets. `dump`, `shell_command`
        /// and `extension` are asked all the same; they have [`Caller::current`]($crate::Caller::current).
        ///
        /// # Errors
        /// Whatever the caller shall get instead of results.
        fn admit(&self, call: &$crate::Incoming<'_>) -> ::core::result::Result<(), $crate::Status> {
            ::core::result::Result::Ok(())
        }

        /// The object that extends this one, for clients that know of it.
        fn extension(&self) -> ::core::option::Option<$crate::Binder> {
            ::core::option::Option::None
        }

        /// Describes the object's state to a person: `binderperf services dump`, Android's `dumpsys`.
        ///
        /// # Errors
        /// Writing fails; ignored.
        fn dump(
            &self,
            to: &mut dyn ::std::io::Write,
            arguments: &[::std::string::String],
        ) -> ::std::io::Result<()> {
            ::std::writeln!(to, "{DESCRIPTOR}")
        }

        /// Runs a command that a person typed: Android's `cmd SERVICE WORD...`. The result is the command's exit status.
        ///
        /// # Errors
        /// [`StatusCode::INVALID_OPERATION`]($crate::StatusCode::INVALID_OPERATION): it has no commands.
        fn shell_command(
            &self,
            command: $crate::ShellCommand,
        ) -> ::core::result::Result<i32, $crate::StatusCode> {
            ::core::result::Result::Err($crate::StatusCode::INVALID_OPERATION)
        }
    };
    (@result) => { () };
    (@result $result:ty) => { $result };
    // An argument at its service: its type, how it comes, how the method gets it, how it goes back.
    (@served [] $ty:ty) => { $ty };
    (@served [$dir:ident] $ty:ty) => { &mut $ty };
    (@receive [out_list] $ty:ty, $call:ident) => { <$ty as ::core::default::Default>::default() };
    (@receive [out] $ty:ty, $call:ident) => { <$ty as $crate::value::Out>::prepare($call)? };
    (@receive [$($dir:ident)?] $ty:ty, $call:ident) => { <$ty as $crate::Value>::read($call)? };
    (@pass [] $arg:ident) => { $arg };
    (@pass [$dir:ident] $arg:ident) => { &mut $arg };
    (@return [] $ty:ty, $arg:ident, $reply:ident) => {};
    (@return [$dir:ident] $ty:ty, $arg:ident, $reply:ident) => {
        <$ty as $crate::Value>::write($crate::Value::given(&$arg), $reply)?;
    };
    // An argument at its caller: its type, how it goes, how it comes back.
    (@given [] $ty:ty) => { <$ty as $crate::Value>::Given<'_> };
    (@given [$dir:ident] $ty:ty) => { &mut $ty };
    (@send [] $ty:ty, $arg:ident, $request:ident) => { <$ty as $crate::Value>::write($arg, &mut $request)?; };
    (@send [out] $ty:ty, $arg:ident, $request:ident) => {
        <$ty as $crate::value::Out>::announce($arg, &mut $request);
    };
    (@send [out_list] $ty:ty, $arg:ident, $request:ident) => {};
    (@send [inout] $ty:ty, $arg:ident, $request:ident) => {
        <$ty as $crate::Value>::write($crate::Value::given($arg), &mut $request)?;
    };
    (@take [] $ty:ty, $arg:ident, $results:ident) => {};
    (@take [$dir:ident] $ty:ty, $arg:ident, $results:ident) => {
        *$arg = <$ty as $crate::Value>::read(&mut $results)?;
    };
    (@client fn [$($doc:tt)*] $method:ident [$({[$($dir:ident)?] $arg:ident: $ty:ty})*] [$($result:ty)?]) => {
        $($doc)*
        ///
        /// # Errors
        /// See [`CallError`]($crate::CallError).
        pub fn $method(
            &self,
            $($arg: $crate::interface! { @given [$($dir)?] $ty }),*
        ) -> ::core::result::Result<$crate::interface! { @result $($result)? }, $crate::CallError> {
            let mut request = self.0.request(DESCRIPTOR);
            $($crate::interface! { @send [$($dir)?] $ty, $arg, request })*
            let reply = self.0.call(Method::$method.code(), request)?;
            let mut results = reply.reader();
            let result = <$crate::interface! { @result $($result)? } as $crate::Value>::read(&mut results)?;
            $($crate::interface! { @take [$($dir)?] $ty, $arg, results })*
            ::core::result::Result::Ok(result)
        }
    };
    (@client oneway [$($doc:tt)*] $method:ident [$({[] $arg:ident: $ty:ty})*] []) => {
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
            ::core::result::Result::Ok(self.0.oneway(Method::$method.code(), request)?)
        }
    };
    (@client oneway $($rest:tt)*) => {
        ::core::compile_error!("a oneway method has no result and no `#[out]` or `#[inout]` argument");
    };
    (@client $way:ident $($rest:tt)*) => {
        ::core::compile_error!("a method begins with `fn` or `oneway`");
    };
    // An interface as argument, result and field.
    (@value $client:ident) => {
        impl $crate::Value for $client {
            type Given<'a> = &'a Self;

            fn write(
                given: &Self,
                parcel: &mut $crate::Parcel,
            ) -> ::core::result::Result<(), $crate::StatusCode> {
                <$crate::Binder as $crate::Value>::write(&given.0, parcel)
            }

            fn read(reader: &mut $crate::Reader<'_>) -> ::core::result::Result<Self, $crate::StatusCode> {
                <$crate::Binder as $crate::Value>::read(reader).map(Self)
            }

            fn given(&self) -> &Self {
                self
            }
        }

        impl $crate::value::Element for $client {}

        impl $crate::value::Nullable for $client {
            fn write_nullable(
                given: ::core::option::Option<&Self>,
                parcel: &mut $crate::Parcel,
            ) -> ::core::result::Result<(), $crate::StatusCode> {
                let object = given.map(Self::as_binder);
                <$crate::Binder as $crate::value::Nullable>::write_nullable(object, parcel)
            }

            fn read_nullable(
                reader: &mut $crate::Reader<'_>,
            ) -> ::core::result::Result<::core::option::Option<Self>, $crate::StatusCode> {
                let object = <$crate::Binder as $crate::value::Nullable>::read_nullable(reader)?;
                ::core::result::Result::Ok(object.map(Self))
            }
        }
    };
}

#[cfg(test)]
mod tests;
