//! Server process of the scenes, with one serving thread.
//! Not here: its service (`service`), when it is started (`controller`).

use backend::AnyContext;
use procgroup::role::tell_ready;

use super::InheritanceOptions;
use super::parameters::{ServerParameters, node};
use super::service::Callee;
use crate::endpoint::Endpoint;

/// Address that servers open; `None` if a different inheritance was requested and the driver cannot do it.
pub(super) fn address(context: &AnyContext, options: &InheritanceOptions) -> Option<String> {
    match (context, options.servers_inherit) {
        (_, None) => Some(context.address()),
        (AnyContext::Embedded(context), Some(inherit)) => Some(context.with_inherit(inherit).address()),
        (AnyContext::Kernel(_), Some(_)) => None,
    }
}

/// Registers the service, reports readiness, and serves on this thread until the process is killed.
pub(super) fn serve(parameters: &ServerParameters) -> Result<(), String> {
    // Before the open: threads wait at the opener's nice (contract SCH-04). A refusal shows in the observed
    // waiting nice.
    let _ = sys::sched::set_nice(0, parameters.nice);
    let dialect = parameters.dialect.parse()?;
    let options = node(dialect, parameters.inherit_rt, parameters.least)?;
    let context = AnyContext::parse(&parameters.address);
    let endpoint = Endpoint::open(&context, dialect, 0).map_err(|error| error.to_string())?;
    let service = Callee::publish(&endpoint, options);
    endpoint.register(&parameters.name, service.as_binder()).map_err(|error| error.to_string())?;
    tell_ready("").map_err(|error| format!("telling that it serves: {}", sys::errno::describe(&error)))?;
    endpoint.serve().map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Dialect;
    use embedded::{EmbeddedContext, Inherit, Settings};
    use std::path::Path;

    #[test]
    fn only_servers_of_an_embedded_driver_can_drop_inheritance() {
        let fault = InheritanceOptions {
            servers_inherit: Some(Inherit::None),
            ..InheritanceOptions::usual(Dialect::Hwbinder)
        };
        let settings = Settings { inherit: Inherit::Rt, ..Settings::default() };
        let context = EmbeddedContext::at(Path::new("/x"), "hwbinder", settings);
        let dropping = address(&AnyContext::Embedded(context), &fault).expect("our own driver");
        let same = EmbeddedContext::parse(&dropping).expect("an address");
        assert_eq!(same.settings(), Settings { inherit: Inherit::None, ..settings });
        assert_eq!(address(&AnyContext::parse("/dev/hwbinder"), &fault), None);
        let usual = InheritanceOptions::usual(Dialect::Hwbinder);
        assert_eq!(address(&AnyContext::parse("/dev/hwbinder"), &usual).as_deref(), Some("/dev/hwbinder"));
    }
}
