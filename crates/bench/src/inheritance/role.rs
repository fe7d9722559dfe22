//! Worker roles of the scenes: the controller and its servers.
//! Not here: their work (`controller`, `server`).

use procgroup::Role;
use procgroup::role::tell_ready;

use super::controller::{self, Controller};
use super::parameters::InheritanceRole;
use super::{scenes, server};

impl Role for InheritanceRole {
    const NAME: &'static str = "inheritance";

    fn title(&self) -> String {
        match self {
            Self::PlayScenes { .. } => "scenes".to_owned(),
            Self::Serve(server) => server.title.clone(),
        }
    }

    fn run(self) -> Result<(), String> {
        // Far more than any scene needs; the kernel ends the process of a thread that exceeds it.
        const RUNNING_US: (u64, u64) = (2_000_000, 3_000_000);
        // Refused only where the limit is already lower.
        let _ = sys::limits::set_realtime_us(RUNNING_US.0, RUNNING_US.1);
        // Waiting threads are SCHED_OTHER, whatever policy this program was started with. The kernel may
        // refuse the change from SCHED_IDLE, which then shows in every hop.
        let _ = sys::sched::set_policy(0, sys::sched::Policy::Other);
        match self {
            Self::PlayScenes { address, servers, dialect, inherit_rt, rule } => {
                let rule = rule.as_ref().map(|rule| rule.parse()).transpose()?;
                controller::mark_scene();
                let controller = Controller::start(&address, &servers, dialect.parse()?, inherit_rt, rule)?;
                let hops = scenes::play(&controller);
                let text = serde_json::to_string(&hops).map_err(|error| error.to_string())?;
                tell_ready(&text).map_err(|error| sys::errno::describe(&error))
            }
            Self::Serve(parameters) => {
                controller::mark_scene();
                server::serve(&parameters)
            }
        }
    }
}
