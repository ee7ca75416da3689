/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The active flows of a device, whatever sends them: those that sent bytes in the last tenth of a second. And, where the
 * policy asks for them, active applications and the bytes that moved lately.
 *
 * Time is cut into slots. Each flow keeps the slot of its last packet, and a ring counts the flows that have each slot as
 * their last. A packet in a new slot takes its flow from one count to another; one in the same slot changes nothing, and
 * costs a look. A flow that falls silent stays in the count of its last slot, which falls out of the sum by itself.
 *
 * The rule is that of crates/cc/src/registry.rs. Error: a flow counts for 100 ms after its last packet, and for up to a slot
 * longer; a test compares the two.
 */
#ifndef AIRPACE_ACTIVE_H
#define AIRPACE_ACTIVE_H

#include "intf.h"

/* Chosen: a count of flows that is an eighth of its span late is as good as the span itself. */
#define ACTIVE_SLOTS 8
#define ACTIVE_SLOT (AP_COUNT_EVERY / ACTIVE_SLOTS)
#define ACTIVE_RING AP_HOST_RING

/* A count in the ring: the slot that it is of, and the flows. */
#define ACTIVE_BITS 16
#define ACTIVE_FLOWS ((1ULL << ACTIVE_BITS) - 1)

/* Counts that change under one's hands. After so many tries, the change is lost, until the flow's next slot. */
#define ACTIVE_TRIES 8

AP_FN ap_u64 active_slot(ap_u64 now)
{
	return now / ACTIVE_SLOT;
}

/* One flow more or less that has this slot as its last. */
AP_FN void active_change(struct ap_host *h, ap_u64 slot, int is_more)
{
	ap_u64 *count = &h->ring[slot & (ACTIVE_RING - 1)], was, flows;
	int tries;

	for (tries = 0; tries < ACTIVE_TRIES; tries++) {
		was = *(volatile ap_u64 *)count;
		/* Its place belongs to a later slot already. */
		if (was >> ACTIVE_BITS > slot)
			return;
		flows = was >> ACTIVE_BITS == slot ? was & ACTIVE_FLOWS : 0;
		flows = is_more ? ap_min(flows + 1, ACTIVE_FLOWS) : ap_less(flows, 1);
		if (__sync_val_compare_and_swap(count, was, slot << ACTIVE_BITS | flows) == was)
			return;
	}
}

/* The flows whose last slot is this one or of those before it that lie within the tenth of a second. */
AP_FN void active_sum(struct ap_host *h, ap_u64 slot)
{
	ap_u64 flows = 0, count;
	int i;

	for (i = 0; i <= ACTIVE_SLOTS; i++) {
		count = *(volatile ap_u64 *)&h->ring[(slot - i) & (ACTIVE_RING - 1)];
		if (count >> ACTIVE_BITS == slot - i)
			flows += count & ACTIVE_FLOWS;
	}
	*(volatile ap_u64 *)&h->flows = ap_min(flows, AP_MOST_FLOWS);
	*(volatile ap_u64 *)&h->until = (slot + 1 + ACTIVE_SLOTS) * ACTIVE_SLOT;
}

/*
 * A flow whose last slot was `*last` sends bytes. A new flow has zero there. Returns what it was, and AP_NONE if nothing has
 * changed.
 */
AP_FN ap_u64 active_sends(struct ap_host *h, ap_u64 *last, ap_u64 now)
{
	ap_u64 slot = active_slot(now), was;

	if (*(volatile ap_u64 *)last == slot)
		return AP_NONE;
	/* If two processors send for the same flow, one of them takes it out of the slot where it was. */
	was = __sync_lock_test_and_set(last, slot);
	if (was == slot)
		return AP_NONE;
	if (was)
		active_change(h, was, 0);
	active_change(h, slot, 1);
	active_sum(h, slot);
	return was;
}

/* How many are active as of the last packet; zero if that was so long ago that none is. */
AP_FN ap_u64 active_now(const struct ap_host *h, ap_u64 now)
{
	ap_u64 flows = *(const volatile ap_u64 *)&h->flows;

	return now < *(const volatile ap_u64 *)&h->until ? flows : 0;
}

/* A flow: its last slot, and its application. */
struct active_flow {
	ap_u64 last;
	ap_u64 app;
};

/* An application: the last slot of all its flows, and those that are active. */
struct active_app {
	ap_u64 last;
	struct ap_host flows;
};

/*
 * The same for applications, when the flow's last slot has changed from `was`. `app` is the application `name`; `before` is
 * the one that the flow was last seen with, and absent if that is forgotten.
 */
AP_FN void active_app_sends(struct ap_host *apps, struct active_flow *flow, ap_u64 name, struct active_app *app,
			    struct active_app *before, ap_u64 was, ap_u64 now)
{
	ap_u64 slot = active_slot(now);

	if (was && before)
		active_change(&before->flows, was, 0);
	if (before && flow->app != name)
		active_sum(&before->flows, slot);
	flow->app = name;
	active_change(&app->flows, slot, 1);
	active_sum(&app->flows, slot);
	active_sends(apps, &app->last, now);
}

/* Bytes are counted in slots of this length. Source: crates/cc/src/registry.rs (USE_SLOT) */
#define ACTIVE_USE_SLOT (250 * AP_MS)

/* A word has the slot that it is of in its upper half, and bytes below. */
#define ACTIVE_USE_BITS 32
#define ACTIVE_USE_BYTES ((1ULL << ACTIVE_USE_BITS) - 1)

AP_FN void active_use(struct ap_use *use, ap_u64 now, ap_u64 bytes)
{
	ap_u64 slot = now / ACTIVE_USE_SLOT, *word = &use->slots[slot & 1], was, moved;
	int tries;

	for (tries = 0; tries < ACTIVE_TRIES; tries++) {
		was = *(volatile ap_u64 *)word;
		if (was >> ACTIVE_USE_BITS > slot)
			return;
		moved = was >> ACTIVE_USE_BITS == slot ? was & ACTIVE_USE_BYTES : 0;
		moved = ap_min(moved + bytes, ACTIVE_USE_BYTES);
		if (__sync_val_compare_and_swap(word, was, slot << ACTIVE_USE_BITS | moved) == was)
			return;
	}
}

/* Bytes of the present slot and of the one before. */
AP_FN ap_u64 active_used(const struct ap_use *use, ap_u64 now)
{
	ap_u64 slot = now / ACTIVE_USE_SLOT, used = 0, word;
	int i;

	for (i = 0; i < 2; i++) {
		word = *(const volatile ap_u64 *)&use->slots[(slot - i) & 1];
		if (word >> ACTIVE_USE_BITS == slot - i)
			used += word & ACTIVE_USE_BYTES;
	}
	return used;
}

#endif
