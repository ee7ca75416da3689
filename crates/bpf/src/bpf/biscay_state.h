/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* State, inputs and constants of BISCAY's C port. biscay.h contains the rules. */
#ifndef AIRPACE_BISCAY_STATE_H
#define AIRPACE_BISCAY_STATE_H

#include "intf.h"

enum biscay_state { BISCAY_STARTUP, BISCAY_BISCAY, BISCAY_FALLBACK };

#define BISCAY_MIN_PACKETS 4
#define BISCAY_SPAN (100 * AP_MS)
#define BISCAY_SLOTS 128
#define BISCAY_SPAN_SLOTS 100
#define BISCAY_BUSY (60 * AP_MS)
#define BISCAY_RTT_SAMPLES 8
#define BISCAY_MAX_DRAIN AP_SECOND
#define BISCAY_BTLBW_ROUNDS 10
/* Unit of the factor of the terms by which the window exceeds one BDP: the factor is a multiple of 1/BISCAY_ONE. */
#define BISCAY_ONE (1ULL << 30)

/* Contents of one ACK. Byte counts include the packets' headers. */
struct biscay_ack {
	ap_u64 now;
	ap_u64 acked;
	ap_u64 prior_inflight;
	ap_u64 inflight;
	ap_u64 delivered;
	/* the value of `delivered` at the time when the newest acknowledged packet was sent */
	ap_u64 prior_delivered;
	/* round-trip time of the ACK, ns; AP_NONE if the ACK gives no sample */
	ap_u64 rtt;
	ap_u64 smoothed;
	ap_u64 rate;
	ap_u64 app_limited;
	/* window before this ACK, bytes */
	ap_u64 cwnd;
};

/* The last known state of the radio, read from struct ap_feed. */
struct biscay_radio {
	/* bandwidth in bit/s; AP_NONE if unknown or too old */
	ap_u64 bandwidth;
	ap_u64 burst;
	ap_u64 share_num;
	ap_u64 share_den;
};

/*
 * The members that every ACK uses are first, so that they share cache lines: a cache miss takes longer than the
 * arithmetic.
 */
struct biscay {
#ifndef __bpf__
	struct ap_tuning tuning;
#endif
	ap_u64 mss;
	ap_u32 state;
	/* flags */
	ap_u32 silenced;
	ap_u32 queue;
	ap_u32 is_draining;
	ap_u32 was_idle;
	ap_u32 rounds;
	ap_u32 round_samples;
	/* index of the current element of `buckets` below, and the rounds since it became current */
	ap_u32 bucket;
	ap_u32 bucket_rounds;
	ap_u32 reserved;
	/* The decision: window in bytes, BISCAY's own window in bytes, pacing rate in bit/s. */
	ap_u64 cwnd;
	ap_u64 own_cwnd;
	ap_u64 pacing;

	ap_u64 cellular;
	ap_u64 share_num;
	ap_u64 share_den;
	/*
	 * This flow's part of `cellular`, in bit/s; zero if `cellular` is unknown. `share_of` has the three inputs from
	 * which the part was computed.
	 */
	ap_u64 share;
	ap_u64 share_of[3];
	ap_u64 unsettled_until;
	ap_u64 end_to_end;
	ap_u64 smoothed;
	ap_u64 delivery_rate;
	ap_u64 extra;
	ap_u64 acked_in_round;
	ap_u64 lost_in_round;

	/* rounds, and BBR's model of the path */
	ap_u64 next_round;
	ap_u64 round_least;
	ap_u64 last_round_least;
	struct ap_window btlbw;

	/* minimum RTT, and drains */
	struct ap_window least;
	ap_u64 drained_at;
	/* `period_end` is the end of the renewal period of the minimum RTT that contains the time `period_of`. */
	ap_u64 period_of;
	ap_u64 period_end;

	/* ACK aggregation */
	ap_u64 epoch;
	ap_u64 epoch_acked;
	ap_u64 buckets[2];

	/*
	 * time since which the evidence has shown the bottleneck outside of the cell (in FALLBACK: in the cell again);
	 * AP_NONE without such evidence
	 */
	ap_u64 since;

	/* state of a drain */
	ap_u64 drain_until;
	ap_u64 drain_ends_with;
	ap_u64 drain_least;
	ap_u64 last_shown;

	/* detection of the end of STARTUP */
	ap_u64 lost_in_startup;
	ap_u64 baseline;
	ap_u64 flat_rounds;
	ap_u64 path_is_full;
	ap_u64 busy;
	ap_u64 busy_since;
	ap_u64 busy_delivered;
	ap_u64 carried;
	ap_u64 most_sent;
	ap_u64 sent_bytes;
	ap_u64 slot;
	ap_u32 slots[BISCAY_SLOTS];
};

/*
 * The options. In the kernel, all flows read the same read-only copy, so that the verifier can use its values as
 * constants.
 */
#ifdef __bpf__
AP_FN const struct ap_tuning *options(void);
#define biscay_options(b) ((void)(b), options())
#else
#define biscay_options(b) (&(b)->tuning)
#endif

#endif
