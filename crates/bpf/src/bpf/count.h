/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Counts what this host sends: a program at the root of its control groups, which sees each packet of each socket as it
 * leaves, before it is cut up. Its flows are told apart by addresses, ports and protocol. TCP and UDP count if they carry
 * bytes: ACKs alone do not. What goes to this host itself does not count.
 */
#ifndef AIRPACE_COUNT_H
#define AIRPACE_COUNT_H

#include "active.h"
#include "kernel.h"

struct ap_host host SEC(".data.host");

/* What tells flows apart. */
struct flow_key {
	ap_u32 local[4];
	ap_u32 remote[4];
	/* Both, as they lie in the packet. */
	ap_u32 ports;
	ap_u32 protocol;
};

/*
 * If it is full, the flow that was silent longest makes room.
 *
 * Chosen: twice what is counted, as the kernel finds only roughly which one that is.
 */
struct {
	MAP_INT(type, BPF_MAP_TYPE_LRU_HASH);
	MAP_INT(max_entries, 2 * AP_MOST_FLOWS);
	MAP_TYPE(key, struct flow_key);
	MAP_TYPE(value, ap_u64);
} device_flows SEC(".maps");

/* Source: Linux include/uapi/linux/bpf.h */
struct __sk_buff {
	ap_u32 len;
	ap_u32 before_ifindex[9];
	ap_u32 ifindex;
	ap_u32 before_data[8];
	ap_u32 data;
	ap_u32 data_end;
};

/* The loopback has this number in every network namespace. Source: Linux include/net/flow.h (LOOPBACK_IFINDEX) */
enum { LOOPBACK = 1 };

/* The program lets every packet pass. */
enum { PASS = 1 };

enum { PROTOCOL_TCP = 6, PROTOCOL_UDP = 17 };

/* Headers: where what counts lies in them. Source: RFC 791 §3.1; RFC 8200 §3; RFC 9293 §3.1; RFC 768 */
enum { IPV4_LEAST = 20, IPV6_BYTES = 40, TCP_LEAST = 20, UDP_BYTES = 8 };

SEC("cgroup_skb/egress")
int count_egress(struct __sk_buff *skb)
{
	ap_u8 *at = (ap_u8 *)(unsigned long)skb->data, *end = (ap_u8 *)(unsigned long)skb->data_end;
	struct flow_key key = {};
	ap_u32 headers, i;
	ap_u64 *last, now, none = 0;

	if (skb->ifindex == LOOPBACK || at + IPV4_LEAST > end)
		return PASS;
	if (at[0] >> 4 == 4) {
		headers = (at[0] & 15) * 4;
		key.protocol = at[9];
		key.local[0] = *(ap_u32 *)(at + 12);
		key.remote[0] = *(ap_u32 *)(at + 16);
	} else {
		if (at + IPV6_BYTES > end)
			return PASS;
		headers = IPV6_BYTES;
		key.protocol = at[6];
		for (i = 0; i < 4; i++) {
			key.local[i] = *(ap_u32 *)(at + 8 + 4 * i);
			key.remote[i] = *(ap_u32 *)(at + 24 + 4 * i);
		}
	}
	at += headers;
	if (key.protocol == PROTOCOL_TCP) {
		if (at + TCP_LEAST > end)
			return PASS;
		headers += (at[12] >> 4) * 4;
	} else if (key.protocol == PROTOCOL_UDP) {
		if (at + UDP_BYTES > end)
			return PASS;
		headers += UDP_BYTES;
	} else {
		return PASS;
	}
	if (skb->len <= headers)
		return PASS;
	key.ports = *(ap_u32 *)at;
	now = bpf_ktime_get_ns();
	last = bpf_map_lookup_elem(&device_flows, &key);
	if (!last) {
		/* Another processor may have been first: then this finds its entry. */
		bpf_map_update_elem(&device_flows, &key, &none, BPF_NOEXIST);
		last = bpf_map_lookup_elem(&device_flows, &key);
	}
	if (last)
		active_sends(&host, last, now);
	return PASS;
}

/* The active flows of this host; zero if nobody counts them, or nothing left lately. */
AP_FN ap_u64 host_flows(ap_u64 now)
{
	ap_u64 flows = *(volatile ap_u64 *)&host.flows;

	return now < *(volatile ap_u64 *)&host.until ? flows : 0;
}

#endif
