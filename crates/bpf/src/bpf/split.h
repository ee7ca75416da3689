/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * How a device's bandwidth is divided among its flows: the twin of crates/cc/src/biscay/split.rs.
 *
 * Error: a part is a fraction of whole numbers. That of an application is exact up to a denominator of 2^24, and that of
 * recent use is right to 2^-26.
 */
#ifndef AIRPACE_SPLIT_H
#define AIRPACE_SPLIT_H

#include "intf.h"

/* The denominator of a part by recent use. Its product with a rate fits. */
#define SPLIT_WHOLE (1ULL << 27)

/* No denominator is above this. */
#define SPLIT_MOST ((1ULL << 24) - 1)

/* Of a part by recent use, a quarter does not depend on use. */
#define SPLIT_EQUALITY 4

/* What a device knows about its flows, for one of them. */
struct split_view {
	ap_u64 flows;
	ap_u64 apps;
	ap_u64 app_flows;
	/* Bytes that it moved lately, and that all moved. */
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
