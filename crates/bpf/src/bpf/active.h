/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Counts the active flows of a device, independent of the program that sends them. A flow is active if it sent bytes in
 * the last 100 ms. If the split policy requires it, active applications and recently moved bytes are counted too.
 *
 * Time is divided into slots. Each flow stores the slot of its last packet, and a ring contains the number of flows for
 * each last slot. A packet in a new slot moves its flow from one count to another; a packet in the same slot changes
 * nothing and costs one comparison. An idle flow stays in the count of its last slot, and this count leaves the sum
 * when the slot expires.
 *
 * The rule is the rule of crates/cc/src/registry.rs, with one difference: a flow may count for up to one slot longer
 * than 100 ms after its last packet. A test compares both counts.
 */
#ifndef AIRPACE_ACTIVE_H
#define AIRPACE_ACTIVE_H

#include "intf.h"

/*
 * Chosen: eight slots per counting interval, so that a flow may count for an eighth of the interval too long. The
 * length of the interval itself is not more precise than this.
 */
#define ACTIVE_SLOTS 8
#define ACTIVE_SLOT (AP_COUNT_EVERY / ACTIVE_SLOTS)
#define ACTIVE_RING AP_HOST_RING

/* A count in the ring: the slot in the upper bits, the number of flows in the lower bits. */
#define ACTIVE_BITS 16
#define ACTIVE_FLOWS ((1ULL << ACTIVE_BITS) - 1)

/*
 * Maximum number of attempts to update a count that other processors change at the same time. If all attempts fail, the
 * flow is not counted until its next slot.
 */
#define ACTIVE_TRIES 8

AP_FN ap_u64 active_slot(ap_u64 now)
{
	return now / ACTIVE_SLOT;
}

/* Adds or removes one flow whose last slot is `slot`. */
AP_FN void active_change(struct ap_host *h, ap_u64 slot, int is_more)
{
	ap_u64 *count = &h->ring[slot & (ACTIVE_RING - 1)], was, flows;
	int tries;

	for (tries = 0; tries < ACTIVE_TRIES; tries++) {
		was = *(volatile ap_u64 *)count;
		/* The entry of the ring already belongs to a later slot. */
		if (was >> ACTIVE_BITS > slot)
			return;
		flows = was >> ACTIVE_BITS == slot ? was & ACTIVE_FLOWS : 0;
		flows = is_more ? ap_min(flows + 1, ACTIVE_FLOWS) : ap_less(flows, 1);
		if (__sync_val_compare_and_swap(count, was, slot << ACTIVE_BITS | flows) == was)
			return;
	}
}

/* Sums the flows whose last slot is within the last 100 ms. */
AP_FN void active_sum(struct ap_host *h, ap_u64 slot)
{
	ap_u64 flows = 0, count;
	int i;

	for (i = 0; i <= ACTIVE_SLOTS; i++) {
		count = *(volatile ap_u64 *)&h->ring[(slot - i) & (ACTIVE_RING - 1)];
		if (count >> ACTIVE_BITS == slot - i)
			flows += count & ACTIVE_FLOWS;
	}
	*(volatile ap_u64 *)&h->flows = ap_min(flows, AP_MAX_FLOWS);
	*(volatile ap_u64 *)&h->until = (slot + 1 + ACTIVE_SLOTS) * ACTIVE_SLOT;
}

/*
 * A flow whose last slot was `*last` (zero for a new flow) sends bytes. Returns the previous last slot, or AP_NONE if
 * nothing changed.
 */
AP_FN ap_u64 active_sends(struct ap_host *h, ap_u64 *last, ap_u64 now)
{
	ap_u64 slot = active_slot(now), was;

	if (*(volatile ap_u64 *)last == slot)
		return AP_NONE;
	/* If two processors send for the same flow, only one of them removes it from its previous slot. */
	was = __sync_lock_test_and_set(last, slot);
	if (was == slot)
		return AP_NONE;
	if (was)
		active_change(h, was, 0);
	active_change(h, slot, 1);
	active_sum(h, slot);
	return was;
}

/* Number of active flows as of the last packet; zero if this number has expired. */
AP_FN ap_u64 active_now(const struct ap_host *h, ap_u64 now)
{
	ap_u64 flows = *(const volatile ap_u64 *)&h->flows;

	return now < *(const volatile ap_u64 *)&h->until ? flows : 0;
}

/* A flow: the slot of its last packet, and its application. */
struct active_flow {
	ap_u64 last;
	ap_u64 app;
};

/* An application: the latest slot of any of its flows, and the number of its active flows. */
struct active_app {
	ap_u64 last;
	struct ap_host flows;
};

/*
 * Updates the counts of applications after the flow's last slot changed from `was`. `app` is the application `name`.
 * `before` is the flow's previous application, or null if that application is no longer stored.
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

/* Duration of the slots in which bytes are counted. Source: crates/cc/src/registry.rs (USE_SLOT) */
#define ACTIVE_USE_SLOT (250 * AP_MS)

/* A word contains its slot in the upper half and a byte count in the lower half. */
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

/* Number of bytes of the current slot and of the previous slot. */
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
