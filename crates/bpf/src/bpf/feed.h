/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Reader of the feeder's last record. */
#ifndef AIRPACE_FEED_H
#define AIRPACE_FEED_H

#include "intf.h"

/* Copies the valid record once. Returns whether no writer changed the record during the copy. */
AP_FN int copy_told(volatile struct ap_feed *feed, struct ap_told *out)
{
	ap_u64 before = feed->sequence;
	volatile struct ap_told *told = &feed->told[before & 1];

	out->time = told->time;
	out->bandwidth = told->bandwidth;
	out->burst = told->burst;
	out->share_num = told->share_num;
	out->share_den = told->share_den;
	return feed->sequence == before;
}

/* Reads the valid record. Returns whether a record exists and is not too old. */
AP_FN int read_told(struct ap_feed *feed, ap_u64 now, struct ap_told *out)
{
	/* Three attempts are sufficient: a feeder writes once per millisecond, and a copy takes a few nanoseconds. */
	if (AP_RARE(!copy_told(feed, out)) && !copy_told(feed, out) && !copy_told(feed, out))
		return 0;
	/*
	 * A time far in the future is rejected, because it comes from a feeder with a wrong clock. A tolerance is
	 * needed because `now` is the time when the kernel started to process an ACK or a send, and the feeder may
	 * write after that time.
	 */
	return out->time && out->time <= now + AP_FEED_MAX_AGE && now <= out->time + AP_FEED_MAX_AGE;
}

#endif
