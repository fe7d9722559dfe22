//! Tests of objects and callbacks that die while they are registered.
//! Not here: the calls (`tests/on_driver`).

use super::*;
use crate::exchange::tests::Mortal;

/// Services under (interface, instance), as hwbinder has them.
enum Instances {}

type Key = (&'static str, &'static str);

impl Flavour for Instances {
    type Key = Key;
    type Service = Binder;

    fn binder(service: &Binder) -> &Binder {
        service
    }

    fn is_same_instance(one: &Key, other: &Key) -> bool {
        one.1 == other.1
    }

    fn matches(wanted: &Key, key: &Key) -> bool {
        wanted == key
    }

    fn tell(_: &Binder, _: &Key, _: &Binder, _: bool) {}
}

const CHAIN: [Key; 2] = [("IB", "default"), ("IA", "default")];

fn registry() -> Arc<Registry<Instances>> {
    Arc::default()
}

impl Registry<Instances> {
    fn keys(&self) -> Vec<Key> {
        self.services().into_iter().map(|(key, _)| key).collect()
    }

    fn callbacks(&self) -> usize {
        self.lock().callbacks.len()
    }
}

/// DTH-02, DTH-04: a link to what has just died succeeds and fires on any thread, at once.
#[test]
fn who_dies_between_link_and_entry_is_not_registered() {
    let (registry, mortal) = (registry(), Mortal::new());
    let entry = registry.linked(mortal.binder()).expect("alive");
    mortal.die();
    assert!(!registry.enter(&CHAIN, &entry), "it was dead");
    assert_eq!(registry.keys(), []);
    assert!(!registry.add(&CHAIN, mortal.binder()), "known to be dead");
}

#[test]
fn a_callback_that_dies_between_link_and_entry_does_not_stay() {
    for about_clients in [false, true] {
        let (registry, mortal) = (registry(), Mortal::new());
        let subject = match about_clients {
            true => Subject::ClientsOf(mortal.binder()),
            false => Subject::Registrations(CHAIN[0]),
        };
        let entry = registry.watching(subject.clone(), &mortal.binder()).expect("alive");
        mortal.die();
        assert!(!registry.listen(entry), "it was dead");
        assert_eq!(registry.callbacks(), 0);
        assert!(!registry.subscribe(subject, &mortal.binder()), "known to be dead");
    }
}

#[test]
fn who_dies_is_forgotten() {
    let (registry, mortal) = (registry(), Mortal::new());
    let binder = mortal.binder();
    assert!(registry.add(&CHAIN, binder.clone()));
    assert!(registry.subscribe(Subject::Registrations(("IC", "default")), &binder));
    let clients = Subject::ClientsOf(binder.clone());
    for _ in 0..2 {
        assert!(registry.subscribe(clients.clone(), &binder));
    }
    assert_eq!((registry.keys().len(), registry.callbacks()), (2, 2), "a client callback is there once");
    mortal.die();
    assert_eq!((registry.keys().len(), registry.callbacks()), (0, 0));
}

#[test]
fn client_callbacks_go_with_their_service() {
    let registry = registry();
    let mortals = [Mortal::new(), Mortal::new(), Mortal::new()];
    let [old, new, callback] = mortals.each_ref().map(Mortal::binder);
    assert!(registry.add(&CHAIN, old.clone()));
    assert!(registry.subscribe(Subject::ClientsOf(old), &callback));
    assert!(registry.add(&CHAIN[1..], new.clone()));
    assert_eq!((registry.keys(), registry.callbacks()), (vec![CHAIN[1]], 0), "replaced");
    assert!(registry.subscribe(Subject::ClientsOf(new), &callback));
    mortals[1].die();
    assert_eq!((registry.keys().len(), registry.callbacks()), (0, 0), "dead");
}
