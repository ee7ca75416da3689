/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Division of a device's bandwidth among its flows: the C port of crates/cc/src/biscay/split.rs.
 *
 * A flow's part is a fraction of integers. The part of an application's flow is exact up to a denominator of 2^24. The
 * part by recent use has an error of up to 2^-26.
 */
#ifndef AIRPACE_SPLIT_H
#define AIRPACE_SPLIT_H

#include "intf.h"

/* Denominator of a part by recent use. The product of this denominator and a rate fits into 64 bits. */
#define SPLIT_WHOLE (1ULL << 27)

/* Maximum denominator of a part with the other policies. */
#define MAX_SPLIT ((1ULL << 24) - 1)

/* In a part by recent use, the equal share has the weight 1/SPLIT_EQUALITY. */
#define SPLIT_EQUALITY 4

/* The device's information about its flows, from the point of view of one flow. */
struct split_view {
	ap_u64 flows;
	ap_u64 apps;
	ap_u64 app_flows;
	/*
	 * Number of bytes that this flow moved within the last 250 to 500 ms. `moved` is the number of bytes of all
	 * flows in this time.
	 */
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
	part->den = ap_min(flows, MAX_SPLIT);
	if (policy == AP_SPLIT_APP) {
		part->den = ap_min(ap_max(seen->apps, 1) * ap_max(seen->app_flows, 1), MAX_SPLIT);
	} else if (policy == AP_SPLIT_PROPORTIONAL) {
		if (seen->moved)
			used = ap_min(seen->used, seen->moved) * SPLIT_WHOLE / seen->moved;
		used = (SPLIT_EQUALITY - 1) * used + SPLIT_WHOLE / flows;
		part->num = ap_max((used + SPLIT_EQUALITY / 2) / SPLIT_EQUALITY, 1);
		part->den = SPLIT_WHOLE;
	}
}

#endif
