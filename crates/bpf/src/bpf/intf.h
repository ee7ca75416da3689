/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Memory that user space and the programs in the kernel share: the mapped arrays. C and Rust use the same layouts: C
 * compiles this file, the Rust layouts are in feed.rs and twin.rs, and a test compares sizes and offsets.
 */
#ifndef AIRPACE_INTF_H
#define AIRPACE_INTF_H

#include "fixed.h"

/* Version of the layout. A loader refuses programs with another version. */
#define AP_LAYOUT 2

/* Maximum age of a radio's bandwidth. A flow with an older bandwidth changes to FALLBACK at once. */
#define AP_FEED_MAX_AGE (100 * AP_MS)

/* Length of the counting interval. A flow counts as active if it sent bytes in the last interval. */
#define AP_COUNT_EVERY (100 * AP_MS)

/* One record of the feeder. */
struct ap_told {
	/* CLOCK_MONOTONIC at the time of writing, ns; zero: never written. */
	ap_u64 time;
	/* Bandwidth of the device's uplink in bit/s; AP_NONE if unknown. */
	ap_u64 bandwidth;
	/* Maximum rate granted over a frame of 10 ms, in bit/s; zero if unknown. */
	ap_u64 burst;
	/*
	 * Each flow's part of the bandwidth is share_num / share_den, both below 2^24. If share_num is 0, the programs
	 * compute the part from the number of flows.
	 */
	ap_u32 share_num;
	ap_u32 share_den;
};

/*
 * The mapped array `feed`. The valid record is told[sequence % 2]. The writer fills the other record and then
 * increments the sequence, so that a writer that is interrupted or dies leaves the previous record valid. If the
 * sequence has changed after a reader has read the record, the reader reads again.
 */
struct ap_feed {
	ap_u64 sequence;
	ap_u64 reserved;
	struct ap_told told[2];
};

/* Flags of the cell's state, in `flags` of struct ap_pbe_told: */
/* enough PRBs are idle, so that the cell has no queue for the device; */
#define AP_PBE_IDLE 1
/* the cell cannot have a queue for the device, because PRBs are idle or for another reason; */
#define AP_PBE_ELSEWHERE 2
/* the option is on with which full subframes count as the explanation of a delay. */
#define AP_PBE_EXPLAINS 4

/* One record for PBE-CC's receiver: the rates that the cell could give to all flows of the device together. */
struct ap_pbe_told {
	/* CLOCK_MONOTONIC, ns: time of writing, and arrival time of the last radio report; zero: never. */
	ap_u64 time;
	ap_u64 heard;
	/* Ct and Cf in bit/s; AP_NONE if unknown. */
	ap_u64 capacity;
	ap_u64 fair_share;
	/* Number of the last subframe in `full`. */
	ap_u64 newest;
	ap_u32 flags;
	/* Number of active carriers, and total number of carrier activations, modulo 256. */
	unsigned char carriers;
	unsigned char activations;
	unsigned char reserved[2];
};

/* Number of subframes whose state is stored. */
#define AP_SUBFRAMES 1024

/* The mapped array `feed` of PBE-CC. `told` is used as in struct ap_feed. */
struct ap_pbe_feed {
	ap_u64 sequence;
	/*
	 * The RTprop that a sender last reported, ns; zero before the first report. The programs in the kernel write
	 * this member.
	 */
	ap_u64 rtprop;
	struct ap_pbe_told told[2];
	/*
	 * One bit per subframe, indexed by the subframe's number: set if the subframe had no idle PRBs. The bits are
	 * updated in place.
	 */
	ap_u64 full[AP_SUBFRAMES / 64];
};

/* Properties of the kernel that the loader found. */
struct ap_kernel {
	/* Index of the argument of cong_control that is the rate sample: 3, or 1 before Linux 6.10. */
	ap_u32 sample_argument;
	/* Whether programs can call the kernel's own BBR. */
	ap_u32 has_bbr;
};

/* Counters over all flows of a scheme: `totals`. */
struct ap_totals {
	ap_u64 interval;
	/* Number of flows that sent in an interval, indexed by the interval's number modulo 4. */
	ap_u64 active[4];
	ap_u64 flows;
	ap_u64 acks;
	ap_u64 sends;
	ap_u64 fallbacks;
	ap_u64 returns;
	/* Number of fallbacks that occurred because the radio stopped reporting. */
	ap_u64 silences;
	/* Number of PBE-CC flows whose peer confirmed that it reports the measurements of its radio. */
	ap_u64 confirmed;
	/* Number of ACKs on which PBE-CC's option replaced a SACK block. */
	ap_u64 rooms;
	/* Number of times that a PBE-CC receiver located the bottleneck outside its cell. */
	ap_u64 elsewhere;
};

/* State of one flow, as a program writes it for each flow: `flows`. */
struct ap_shown {
	/* Addresses in network byte order, ports in host byte order. */
	unsigned char local[16];
	unsigned char remote[16];
	/*
	 * Name of the socket's current congestion control. If the flow has changed to another scheme, this record is
	 * out of date.
	 */
	char scheme[16];
	/* Inode number of the flow's network namespace. */
	ap_u32 netns;
	ap_u32 family;
	unsigned short local_port;
	unsigned short remote_port;
	/* Number of the scheme's state. */
	ap_u32 state;
	/*
	 * Pacing rate of the payload in bytes per second; for a download with a limited window, rate of packets
	 * including headers in bit/s. AP_NONE if unknown.
	 */
	ap_u64 rate;
	/* Window in bytes; AP_NONE if no window is set. */
	ap_u64 window;
	/* Minimum round-trip time in ns; AP_NONE if unknown. */
	ap_u64 rtt;
};

/* Maximum number of flows of a device that are counted. Source: crates/cc/src/registry.rs (MAX_FLOWS) */
#define AP_MAX_FLOWS 4096

#define AP_HOST_RING 16

/* Active flows of the whole host: `host`. active.h documents how they are counted. */
struct ap_host {
	/*
	 * For each recent slot: the slot and the number of flows whose last packet was sent in this slot. The index is
	 * the slot modulo the ring size.
	 */
	ap_u64 ring[AP_HOST_RING];
	/* Number of active flows, and the time until which this number is valid (CLOCK_MONOTONIC, ns). */
	ap_u64 flows;
	ap_u64 until;
};

/* Bytes that a host's flows moved recently, by slots; see active.h. */
struct ap_use {
	ap_u64 slots[2];
};

/* Data for the split policies other than AP_SPLIT_EQUAL, in addition to `host`: `shares`. */
struct ap_shares {
	/* Active applications, counted in the same way as flows. */
	struct ap_host apps;
	struct ap_use all;
};

/* Policy that divides the bandwidth among a device's flows. Source: crates/cc/src/biscay/split.rs */
enum { AP_SPLIT_EQUAL, AP_SPLIT_APP, AP_SPLIT_PROPORTIONAL };

/* BISCAY's options, in the map `tuning`. crates/cc/src/biscay.rs documents meanings and defaults. */
struct ap_tuning {
	/* ns */
	ap_u64 slack;
	ap_u64 lag;
	ap_u64 stale_after;
	ap_u64 rtt_window;
	/* Number of packets added to the window, in addition to the slack. */
	ap_u32 packets;
	ap_u32 bunching;
	ap_u32 hold;
	/* the option `startup`: 0 is `first`, 1 is `full`, 2 is `bursts` */
	ap_u32 startup;
	/* Pacing gains in percent of one window per smoothed round-trip time: in STARTUP, and afterwards. */
	ap_u32 pacing_startup;
	ap_u32 pacing;
	ap_u32 margin;
	ap_u32 tolerance;
	/* The split policy, AP_SPLIT_… */
	ap_u32 split;
	ap_u32 reserved;
};

/* MORC's options, in the map `tuning` of MORC's programs. crates/cc/src/morc.rs documents meanings and defaults. */
struct ap_morc_tuning {
	/* times in ns; drain = 0 disables drains */
	ap_u64 target;
	ap_u64 octave;
	ap_u64 drain;
	/* maximum factor by which dry queues increase the target, in thousandths */
	ap_u32 dry_most;
	/* Fixed-point numbers with 16 fractional bits. For window_targets and drain_above, zero disables the rule. */
	ap_u32 ahead_loops;
	ap_u32 window_targets;
	ap_u32 memory_loops;
	ap_u32 drain_above;
	ap_u32 boost;
	ap_u32 overflow;
	ap_u32 rival;
};

/* PBE-CC's options; crates/cc/src/pbe.rs documents meanings and defaults. */
struct ap_pbe_tuning {
	/*
	 * Times in ns. slack = AP_NONE selects the slack that the receiver measures; `unmeasured` is the slack before
	 * the first measurement, and in the Internet state.
	 */
	ap_u64 slack;
	ap_u64 unmeasured;
	/*
	 * Options of the receiver, ns. least_span: minimum time over which consecutive late packets must arrive. span:
	 * time over which fewer than Npkt consecutive packets are sufficient (zero: never).
	 */
	ap_u64 least_span;
	ap_u64 span;
	/* Number of packets added to the window, in addition to the slack. */
	ap_u32 packets;
	ap_u32 bunching;
	ap_u32 btlbw_reset;
	ap_u32 from_zero;
	ap_u32 request_start;
	ap_u32 guard;
	/*
	 * In thousandths: gain of a probe, and, in the Internet state, the window gain and the fraction of BtlBw that
	 * is sent.
	 */
	ap_u32 probe_gain;
	ap_u32 window;
	ap_u32 sent;
	/* Options of the receiver. */
	ap_u32 return_needs_rate;
	ap_u32 device_split;
	/*
	 * Target of the queueing delay in the base station, in µs. AP_PBE_ADAPTIVE: the target is proportional to the
	 * variation of the capacity.
	 */
	ap_u32 buffer;
};

#define AP_PBE_ADAPTIVE 0xffffffffU

#endif
