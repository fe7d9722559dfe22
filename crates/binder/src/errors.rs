//! The macro that makes a service's own errors.

/// Makes the error numbers that a service defines (`EX_SERVICE_SPECIFIC`) an `enum`: at the service `?` makes a
/// [`Status`](crate::Status) of one, and at its caller `of` finds it in a [`CallError`](crate::CallError).
///
/// ```
/// use binder::{CallError, Status};
///
/// binder::errors! {
///     /// What a stack refuses.
///     pub enum StackError {
///         /// It has no room.
///         Full = 1: "the stack is full",
///         Empty = 2: "the stack is empty",
///     }
/// }
///
/// fn pop(stack: &mut Vec<i32>) -> Result<i32, Status> {
///     Ok(stack.pop().ok_or(StackError::Empty)?)
/// }
///
/// let error = CallError::from(pop(&mut Vec::new()).unwrap_err());
/// assert_eq!(StackError::of(&error), Some(StackError::Empty));
/// assert_eq!(error.to_string(), "the object answered SERVICE_SPECIFIC 2: the stack is empty");
/// ```
#[macro_export]
macro_rules! errors {
    (
        $(#[$meta:meta])* $vis:vis enum $name:ident {
            $($(#[$doc:meta])* $error:ident = $code:literal: $message:literal),* $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis enum $name {
            $($(#[$doc])* $error = $code,)*
        }

        #[allow(dead_code, unreachable_pub, reason = "a service or a caller needs half of it")]
        impl $name {
            /// The error in the answer to a call; `None` for other failures.
            pub fn of(error: &$crate::CallError) -> ::core::option::Option<Self> {
                match error.service_specific()? {
                    $($code => ::core::option::Option::Some(Self::$error),)*
                    _ => ::core::option::Option::None,
                }
            }
        }

        impl ::core::fmt::Display for $name {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.write_str(match self {
                    $(Self::$error => $message,)*
                })
            }
        }

        impl ::core::error::Error for $name {}

        impl ::core::convert::From<$name> for $crate::Status {
            fn from(error: $name) -> Self {
                $crate::Status::service_specific(error as i32, ::std::string::ToString::to_string(&error))
            }
        }
    };
}
