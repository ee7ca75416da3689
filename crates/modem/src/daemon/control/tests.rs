use std::sync::mpsc;

use rustix::event::{EventfdFlags, eventfd};

use super::*;

/// Returns a host with `capacity` slots, and the channel of the orders to the data thread.
fn host(capacity: u32) -> (KpiHost, Receiver<Order>) {
    let (board, _) = Board::create(capacity).expect("a board");
    let (orders, told) = mpsc::channel();
    let host = KpiHost {
        board,
        orders,
        wake: Arc::new(eventfd(0, EventfdFlags::NONBLOCK).expect("an event")),
        metrics: Arc::new(Metrics::new(capacity)),
        pinned: vec![],
        published: vec![],
        has_changed: false,
    };
    (host, told)
}

#[test]
fn every_kpi_of_the_list_can_be_subscribed_to_of_both_radios() {
    let (mut host, _told) = host(2 * KPIS.len() as u32);
    for kpi in KPIS {
        for name in [kpi.name.to_owned(), format!("{}@2", kpi.name)] {
            let slot = host.subscribe(&name).unwrap_or_else(|refusal| panic!("{name}: {}", refusal.text));
            assert_eq!(
                host.board.name(slot),
                Some(name),
                "it is on the board by the name that was asked for"
            );
        }
    }
}

#[test]
fn a_refusal_says_what_does_not_fit() {
    let (mut host, _told) = host(1);
    host.subscribe("lte.rsrp").expect("there is room for one");
    let refused = host.subscribe("lte.rsrq").expect_err("there is no room for two");
    assert_eq!((refused.errno, &*refused.text), (Errno::NOSPC, "the board has no room for another KPI"));
}

#[test]
fn subscriptions_that_ended_leave_room_for_others() {
    let (mut host, told) = host(4);
    let kept = host.subscribe("lte.rsrp").expect("there is room");
    let others = KPIS.iter().flat_map(|kpi| (2..=4).map(move |radio| format!("{}@{radio}", kpi.name)));
    for name in others {
        let slot = host.subscribe(&name).expect("the one before was given back");
        assert_ne!(slot, kept, "a place with a subscription is nobody else's");
        host.unsubscribed(slot);
    }
    let slot = host.subscribe("lte.pci").expect("all others were given back");
    host.tell_changes();
    let Ok(Order::Follow(subscription, places)) = told.try_recv() else { panic!("the data thread is told") };
    let names: Vec<_> = subscription.iter().map(ToString::to_string).collect();
    assert_eq!(names, ["lte.rsrp", "lte.pci"]);
    assert_eq!(places, [(kept, 0), (slot, host.board.generation(slot))], "also whose turn it is at a place");
    assert!(places[1].1 > 0, "others had it before");
    let labels = host.metrics.kpis.lock().expect("not poisoned");
    assert_eq!(labels[slot.0 as usize].name, "lte.pci", "metrics name who has the place now");
}
