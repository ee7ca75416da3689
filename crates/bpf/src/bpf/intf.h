/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What user space and the programs in the kernel share: the mapped arrays. Both sides compile this file; the Rust side
 * has the same layouts in feed.rs and twin.rs, and a test compares sizes and offsets.
 */
#ifndef AIRPACE_INTF_H
#define AIRPACE_INTF_H

#include "fixed.h"

/* No loader writes into programs of another layout. */
#define AP_LAYOUT 2

/* A radio's bandwidth that is older than this is not used: FALLBACK at once. */
#define AP_FEED_MAX_AGE (100 * AP_MS)

/* Flows count as active if they sent bytes in the last interval of this length. */
#define AP_COUNT_EVERY (100 * AP_MS)

/* What the feeder tells at one time. */
struct ap_told {
	/* CLOCK_MONOTONIC at the time of writing; zero: never written. */
	ap_u64 time;
	/* Bandwidth of the device's uplink in bit/s; AP_NONE if unknown. */
	ap_u64 bandwidth;
	/* The rate of the most that was granted in a frame of 10 ms, in bit/s; zero if unknown. */
	ap_u64 burst;
	/* Each flow's part of it is share_num / share_den, both below 2^24. share_num = 0: the programs count flows. */
	ap_u32 share_num;
	ap_u32 share_den;
};

/*
 * The mapped array `feed`. What is valid lies in told[sequence % 2]. The writer fills the other one and then
 * adds one to the sequence, so that a writer that is interrupted, or dies, leaves what was valid before. A reader that
 * finds another sequence afterwards reads again.
 */
struct ap_feed {
	ap_u64 sequence;
	ap_u64 reserved;
	struct ap_told told[2];
};

/* How the cell is, in `flags` of what is told to PBE-CC's receiver: */
/* so many PRBs are idle that the cell has no queue for the device, */
#define AP_PBE_IDLE 1
/* a queue cannot be in the cell, for that reason or another, */
#define AP_PBE_ELSEWHERE 2
/* and full subframes explain a delay. */
#define AP_PBE_EXPLAINS 4

/* What user space tells PBE-CC's receiver at one time: what the cell could give the device, all its flows together. */
struct ap_pbe_told {
	/* CLOCK_MONOTONIC, ns: when this was written, and when the last report came; zero: never. */
	ap_u64 time;
	ap_u64 heard;
	/* Ct and Cf in bit/s; AP_NONE if unknown. */
	ap_u64 capacity;
	ap_u64 fair_share;
	/* The number of the last subframe in `full`. */
	ap_u64 newest;
	ap_u32 flags;
	/* Active carriers, and their activations so far, modulo 256. */
	unsigned char carriers;
	unsigned char activations;
	unsigned char reserved[2];
};

/* The subframes whose state is remembered. */
#define AP_SUBFRAMES 1024

/* The mapped array `feed` of PBE-CC: `told` is as in struct ap_feed. */
struct ap_pbe_feed {
	ap_u64 sequence;
	/* Written by the programs: RTprop of the sender that told it last, ns; zero before that. */
	ap_u64 rtprop;
	struct ap_pbe_told told[2];
	/* A bit for each subframe by its number: whether the cell had nothing left to give. Written in place. */
	ap_u64 full[AP_SUBFRAMES / 64];
};

/* What the loader found out about the kernel. */
struct ap_kernel {
	/* Which argument of cong_control is the rate sample: 3, and 1 before Linux 6.10. */
	ap_u32 sample_argument;
	/* Whether programs can call the kernel's own BBR. */
	ap_u32 has_bbr;
};

/* What all flows of a scheme count together: `totals`. */
struct ap_totals {
	ap_u64 interval;
	/* Flows that sent in an interval, by its number modulo 4. */
	ap_u64 active[4];
	ap_u64 flows;
	ap_u64 acks;
	ap_u64 sends;
	ap_u64 fallbacks;
	ap_u64 returns;
	/* Of the fallbacks, those because the radio fell silent. */
	ap_u64 silences;
	/* Flows of PBE-CC whose peer confirmed that it tells what its radio measures. */
	ap_u64 confirmed;
	/* ACKs on which PBE-CC's option took the place of a SACK block. */
	ap_u64 rooms;
	/* Times that a receiver of PBE-CC found the bottleneck elsewhere than in its cell. */
	ap_u64 elsewhere;
};

/* How one flow is, as a program tells of each: `flows`. */
struct ap_shown {
	/* Addresses in network order, ports in the host's. */
	unsigned char local[16];
	unsigned char remote[16];
	/* Of the control that its socket has now: what another has left says nothing. */
	char scheme[16];
	/* The inode of its network namespace. */
	ap_u32 netns;
	ap_u32 family;
	unsigned short local_port;
	unsigned short remote_port;
	/* The number of the scheme's state. */
	ap_u32 state;
	/* Payload that leaves, in bytes per second; of a download that is bounded, packets in bit/s. AP_NONE if unknown. */
	ap_u64 rate;
	/* Bytes. AP_NONE if none is set. */
	ap_u64 window;
	/* The least round-trip time in ns; AP_NONE if unknown. */
	ap_u64 rtt;
};

/* No more flows of a device count. Source: crates/cc/src/registry.rs (MOST_FLOWS) */
#define AP_MOST_FLOWS 4096

#define AP_HOST_RING 16

/* The active flows of the whole host: `host`. active.h says how they are counted. */
struct ap_host {
	/* By the slot of a flow's last packet, modulo the ring: the slot, and flows. */
	ap_u64 ring[AP_HOST_RING];
	/* Their number, and until when it says something: CLOCK_MONOTONIC. */
	ap_u64 flows;
	ap_u64 until;
};

/* What a host's flows moved lately: bytes by slots, as active.h has them. */
struct ap_use {
	ap_u64 slots[2];
};

/* Beside `host`, what policies other than equality need: `shares`. */
struct ap_shares {
	/* The active applications, counted as flows are. */
	struct ap_host apps;
	struct ap_use all;
};

/* How a device's flows share. Source: crates/cc/src/biscay/split.rs */
enum { AP_SPLIT_EQUAL, AP_SPLIT_APP, AP_SPLIT_PROPORTIONAL };

/* BISCAY's options, `tuning`; the meanings and defaults are those of crates/cc/src/biscay.rs. */
struct ap_tuning {
	/* ns */
	ap_u64 slack;
	ap_u64 lag;
	ap_u64 stale_after;
	ap_u64 rtt_window;
	/* Packets in the window beyond those of the slack. */
	ap_u32 packets;
	ap_u32 bunching;
	ap_u32 hold;
	/* 0: first, 1: full, 2: bursts */
	ap_u32 startup;
	/* Percent. */
	ap_u32 pacing_startup;
	ap_u32 pacing;
	ap_u32 margin;
	ap_u32 tolerance;
	/* AP_SPLIT_… */
	ap_u32 split;
	ap_u32 reserved;
};

/* MORC's options, `tuning` of its programs; the meanings and defaults are those of crates/cc/src/morc.rs. */
struct ap_morc_tuning {
	/* ns; drain: zero for never */
	ap_u64 target;
	ap_u64 octave;
	ap_u64 drain;
	/* in thousandths */
	ap_u32 dry_most;
	/* With 16 bits after the point; window_targets and drain_above: zero for not at all. */
	ap_u32 ahead_loops;
	ap_u32 window_targets;
	ap_u32 memory_loops;
	ap_u32 drain_above;
	ap_u32 boost;
	ap_u32 overflow;
	ap_u32 rival;
};

/* PBE-CC's options; the meanings and defaults are those of crates/cc/src/pbe.rs. */
struct ap_pbe_tuning {
	/* ns; slack: AP_NONE for what the receiver measures, and then unmeasured until it has, and in the Internet state */
	ap_u64 slack;
	ap_u64 unmeasured;
	/* The receiver's, in ns: late packets agree over at least, and few packets over, this time; span: zero for never. */
	ap_u64 least_span;
	ap_u64 span;
	/* Packets in the window beyond those of the slack. */
	ap_u32 packets;
	ap_u32 bunching;
	ap_u32 btlbw_reset;
	ap_u32 from_zero;
	ap_u32 request_start;
	ap_u32 guard;
	/* In thousandths: a probe's gain, and of the Internet state the window and what of BtlBw is sent. */
	ap_u32 probe_gain;
	ap_u32 window;
	ap_u32 sent;
	/* The receiver's. */
	ap_u32 return_needs_rate;
	ap_u32 device_split;
	/* The queue to keep in the base station, in µs; AP_PBE_ADAPTIVE: as much as the capacity varies. */
	ap_u32 buffer;
};

#define AP_PBE_ADAPTIVE 0xffffffffU

#endif
