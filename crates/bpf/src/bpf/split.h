/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Division of a device's bandwidth among its flows: the C port of crates/cc/src/biscay/split.rs.
 *
 * Error: a flow's part is a fraction of integers. The part of an application is exact up to a denominator of 2^24. The part
 * by recent use is exact to 2^-26.
 */
#ifndef AIRPACE_SPLIT_H
#define AIRPACE_SPLIT_H

#include "intf.h"

/* Denominator of a part by recent use. Its product with a rate fits into 64 bits. */
#define SPLIT_WHOLE (1ULL << 27)

/* Maximum denominator of the other policies. */
#define SPLIT_MOST ((1ULL << 24) - 1)

/* A quarter (1/SPLIT_EQUALITY) of a part by recent use does not depend on use. */
#define SPLIT_EQUALITY 4

/* The device's view of its flows, from one of them. */
struct split_view {
	ap_u64 flows;
	ap_u64 apps;
	ap_u64 app_flows;
	/* Bytes that this flow, and that all flows, moved within the last 250 to 500 ms. */
	ap_u64 used;
	ap_u64 moved;
};

struct split_part {
	ap_u64 num;
	ap_u64 den;
};

AP_FN void split_part(struct split_part *part, ap_u32 policy, const struct split_view *seen)
{
	ap_u64 flows = ap_max(seen->flows, 1), used = SPLIT_WHOLE;

	part->num = 1;
	part->den = ap_min(flows, SPLIT_MOST);
	if (policy == AP_SPLIT_APP) {
		part->den = ap_min(ap_max(seen->apps, 1) * ap_max(seen->app_flows, 1), SPLIT_MOST);
	} else if (policy == AP_SPLIT_PROPORTIONAL) {
		if (seen->moved)
			used = ap_min(seen->used, seen->moved) * SPLIT_WHOLE / seen->moved;
		used = (SPLIT_EQUALITY - 1) * used + SPLIT_WHOLE / flows;
		part->num = ap_max((used + SPLIT_EQUALITY / 2) / SPLIT_EQUALITY, 1);
		part->den = SPLIT_WHOLE;
	}
}

#endif
