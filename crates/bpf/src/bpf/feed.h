/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What a feeder told last. */
#ifndef AIRPACE_FEED_H
#define AIRPACE_FEED_H

#include "intf.h"

/* Copies it once. Returns whether nobody wrote meanwhile. */
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

/* Reads it. Returns whether there is anything, and it is not too old. */
AP_FN int read_told(struct ap_feed *feed, ap_u64 now, struct ap_told *out)
{
	/* A feeder writes every millisecond, and a copy takes some nanoseconds. */
	if (AP_RARE(!copy_told(feed, out)) && !copy_told(feed, out) && !copy_told(feed, out))
		return 0;
	/*
	 * A time in the future is of a feeder that has no clock, and is not believed. But `now` is when the kernel began with
	 * an ACK, or to send, and a process may be held up meanwhile.
	 */
	return out->time && out->time <= now + AP_FEED_MAX_AGE && now <= out->time + AP_FEED_MAX_AGE;
}

#endif
