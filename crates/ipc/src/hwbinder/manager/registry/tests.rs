//! Room: names, and what a registry does with objects that die at the worst moment.
//! Not here: the calls, which `tests/on_driver` makes.

use super::*;
use crate::runtime::tests::Mortal;

const OWN_PID: i32 = 7;

#[test]
fn names_can_be_told_apart() {
    for name in ["a.b@1.0::IFoo", "IFoo"] {
        assert!(is_interface(name), "{name}");
    }
    for name in ["", "a/b", "a b", "ä", "a\0"] {
        assert!(!is_interface(name), "{name}");
    }
    for name in ["default", "x-y_z", "legacy/0", "a b", "ä", "/"] {
        assert!(is_instance(name), "{name}");
    }
    for name in ["", "a\0"] {
        assert!(!is_instance(name), "{name:?}");
    }
}

#[test]
fn declared_instances_are_those_of_the_interface() {
    let registry = Registry::default();
    for (interface, instance) in [("a@1.0::IA", "b"), ("a@1.0::IA", "a"), ("a@1.0::IAB", "c")] {
        registry.declare(interface, instance);
    }
    assert_eq!(registry.declared("a@1.0::IA"), ["a", "b"]);
    assert!(registry.knows("a@1.0::IAB", "c") && !registry.knows("a@1.0::IAB", "a"));
    assert_eq!(registry.find("a@1.0::IA", "a"), None);
}

/// DTH-02, DTH-04: a link to what has just died succeeds and fires on any thread, at once.
#[test]
fn who_dies_between_link_and_entry_is_not_registered() {
    let registry = Arc::new(Registry::default());
    let mortal = Mortal::new();
    let object = HwBinder::from(mortal.binder());
    let service = registry.linked(&object, OWN_PID).expect("alive");
    mortal.die();
    assert!(!registry.enter("default", &["a@1.0::IA", "a@1.0::IB"], &service), "it was dead");
    assert!(registry.names().is_empty(), "{:?}", registry.names());
    assert!(!registry.add("default", &object, &["a@1.0::IA"], OWN_PID), "known to be dead");
}

#[test]
fn a_callback_that_dies_between_link_and_entry_does_not_stay() {
    let registry = Arc::new(Registry::default());
    let mortal = Mortal::new();
    let callback = HwBinder::from(mortal.binder());
    let watcher = registry.listening("a@1.0::IA", "", &callback).expect("alive");
    mortal.die();
    assert!(!registry.listen(watcher), "it was dead");
    assert!(registry.lock().watchers.is_empty());
    assert!(!registry.watch("", "", &callback), "known to be dead");
}

#[test]
fn a_client_callback_that_dies_does_not_stay() {
    let registry = Arc::new(Registry::default());
    let (service, mortal, early) = (Mortal::new(), Mortal::new(), Mortal::new());
    let [service, callback, gone] = [&service, &mortal, &early].map(|mortal| HwBinder::from(mortal.binder()));
    assert!(registry.add("default", &service, &["a@1.0::IA"], OWN_PID));
    for _ in 0..2 {
        assert!(registry.add_client_callback(&service, &callback));
    }
    assert_eq!(registry.lock().client_callbacks.len(), 1, "once");
    mortal.die();
    assert!(registry.lock().client_callbacks.is_empty());
    assert!(!registry.add_client_callback(&service, &callback), "known to be dead");
    let entry = registry.calling_back(&service, &gone).expect("alive");
    early.die();
    assert!(!registry.note(entry), "it was dead");
    assert!(registry.lock().client_callbacks.is_empty());
}

#[test]
fn client_callbacks_go_with_their_service() {
    let registry = Arc::new(Registry::default());
    let mortals = [Mortal::new(), Mortal::new(), Mortal::new()];
    let [old, new, callback] = mortals.each_ref().map(|mortal| HwBinder::from(mortal.binder()));
    let noted = || registry.lock().client_callbacks.len();
    assert!(registry.add("default", &old, &["a@1.1::IA", "a@1.0::IA"], OWN_PID));
    assert!(registry.add_client_callback(&old, &callback));
    assert!(registry.add("default", &new, &["a@1.0::IA"], OWN_PID));
    assert_eq!((registry.names(), noted()), (vec!["a@1.0::IA/default".to_owned()], 0), "replaced");
    assert!(registry.add_client_callback(&new, &callback));
    mortals[1].die();
    assert_eq!((registry.names().len(), noted()), (0, 0), "dead");
}

#[test]
fn who_dies_is_forgotten() {
    let registry = Arc::new(Registry::default());
    let mortal = Mortal::new();
    let object = HwBinder::from(mortal.binder());
    assert!(registry.add("default", &object, &["a@1.0::IA", "a@1.0::IB"], OWN_PID));
    assert!(registry.watch("a@1.0::IC", "", &object));
    mortal.die();
    assert!(registry.names().is_empty() && registry.lock().watchers.is_empty());
}
