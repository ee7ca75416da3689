/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Counts the flows that this host sends, or the flows that this host receives. The program is attached to the root
 * control group and processes each packet of each socket: a sent packet before segmentation, a received packet on
 * arrival. Flows are distinguished by addresses, ports and protocol. TCP and UDP packets count if they carry payload;
 * pure ACKs do not count. Packets to this host itself do not count.
 *
 * An application is the process that created the socket. A socket that a server accepts belongs to the creator of its
 * listening socket. If a socket is older than this program, only the user of the socket is known, and all such sockets
 * of a user form one application. `options()` returns the options of BISCAY.
 *
 * Chosen: an application is a process, as in BISCAY §A.5.2, and not a user, because all programs of a Linux desktop
 * have the same user. On Android, where each app is a user, an app with sockets in several processes counts once for
 * each process.
 */
#ifndef AIRPACE_COUNT_H
#define AIRPACE_COUNT_H

#include "active.h"
#include "kernel.h"
#include "split.h"

struct ap_host host SEC(".data.host");
struct ap_shares shares SEC(".data.shares");

/* Return value: the programs accept every packet and every socket. */
enum { PASS = 1 };

/* Fields that distinguish flows. */
struct flow_key {
	ap_u32 local[4];
	ap_u32 remote[4];
	/* Source and destination ports, in the byte order of the packet. */
	ap_u32 ports;
	ap_u32 protocol;
};

/*
 * If the map is full, the flow that was idle longest is evicted.
 *
 * Chosen: twice the maximum number of counted flows, because the kernel finds the oldest entry only approximately.
 */
struct {
	MAP_INT(type, BPF_MAP_TYPE_LRU_HASH);
	MAP_INT(max_entries, 2 * AP_MAX_FLOWS);
	MAP_TYPE(key, struct flow_key);
	MAP_TYPE(value, struct active_flow);
} device_flows SEC(".maps");

/* Applications by name. The name is a process number, or OF_A_USER with a user number. */
struct {
	MAP_INT(type, BPF_MAP_TYPE_LRU_HASH);
	MAP_INT(max_entries, AP_MAX_FLOWS);
	MAP_TYPE(key, ap_u64);
	MAP_TYPE(value, struct active_app);
} device_apps SEC(".maps");

#define OF_A_USER (1ULL << 32)

/* State of a socket. */
struct owned {
	/* The socket's application; zero if not yet determined. */
	ap_u64 app;
	struct ap_use use;
};

/* An accepted socket inherits its listener's entry. */
struct {
	MAP_INT(type, BPF_MAP_TYPE_SK_STORAGE);
	MAP_INT(map_flags, BPF_F_NO_PREALLOC | BPF_F_CLONE);
	MAP_TYPE(key, int);
	MAP_TYPE(value, struct owned);
} owners SEC(".maps");

/* Source: Linux include/uapi/linux/bpf.h */
struct __sk_buff {
	ap_u32 len;
	ap_u32 before_ifindex[9];
	ap_u32 ifindex;
	ap_u32 before_data[8];
	ap_u32 data;
	ap_u32 data_end;
	ap_u32 before_sk[21];
	/* The socket of the packet. */
	void *sk;
};

_Static_assert(__builtin_offsetof(struct __sk_buff, data_end) == 80, "as the kernel has it");
_Static_assert(__builtin_offsetof(struct __sk_buff, sk) == 168, "as the kernel has it");

/* Records the process that creates a socket. */
SEC("cgroup/sock_create")
int count_owner(void *sk)
{
	struct owned *owned = bpf_sk_storage_get(&owners, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);

	if (owned)
		owned->app = bpf_get_current_pid_tgid() >> 32;
	return PASS;
}

/* The state of a packet's socket; null if the packet has no socket. */
AP_FN struct owned *owned_by(struct __sk_buff *skb)
{
	void *sk = skb->sk;

	return sk ? bpf_sk_storage_get(&owners, sk, 0, BPF_SK_STORAGE_GET_F_CREATE) : 0;
}

/* Counts the flow's application as active. */
AP_FN void count_app(struct __sk_buff *skb, struct active_flow *flow, ap_u64 was, ap_u64 now)
{
	struct owned *owned = owned_by(skb);
	struct active_app none = {}, *app, *before = 0;
	ap_u64 name = owned ? owned->app : 0;

	if (!name) {
		name = OF_A_USER | bpf_get_socket_uid(skb);
		if (owned)
			owned->app = name;
	}
	app = bpf_map_lookup_elem(&device_apps, &name);
	if (!app) {
		bpf_map_update_elem(&device_apps, &name, &none, BPF_NOEXIST);
		app = bpf_map_lookup_elem(&device_apps, &name);
	}
	if (flow->app)
		before = bpf_map_lookup_elem(&device_apps, &flow->app);
	if (app)
		active_app_sends(&shares.apps, flow, name, app, before, was, now);
}

/* Interface index of the loopback device in every network namespace. Source: Linux include/net/flow.h (LOOPBACK_IFINDEX) */
enum { LOOPBACK = 1 };

enum { PROTOCOL_TCP = 6, PROTOCOL_UDP = 17 };

/* Header lengths in bytes. Source: RFC 791 §3.1; RFC 8200 §3; RFC 9293 §3.1; RFC 768 */
enum { MIN_IPV4 = 20, IPV6_BYTES = 40, MIN_TCP = 20, UDP_BYTES = 8 };

/* Counts a packet. */
AP_FN int count_packet(struct __sk_buff *skb)
{
	ap_u8 *at = (ap_u8 *)(unsigned long)skb->data, *end = (ap_u8 *)(unsigned long)skb->data_end;
	struct flow_key key = {};
	ap_u32 headers, i;
	struct active_flow *flow, none = {};
	ap_u64 now, was, bytes;
	struct owned *owned;

	if (skb->ifindex == LOOPBACK || at + MIN_IPV4 > end)
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
		if (at + MIN_TCP > end)
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
	bytes = skb->len - headers;
	key.ports = *(ap_u32 *)at;
	now = bpf_ktime_get_ns();
	flow = bpf_map_lookup_elem(&device_flows, &key);
	if (!flow) {
		/* If another processor has inserted the entry first, the lookup finds that entry. */
		bpf_map_update_elem(&device_flows, &key, &none, BPF_NOEXIST);
		flow = bpf_map_lookup_elem(&device_flows, &key);
	}
	if (!flow)
		return PASS;
	was = active_sends(&host, &flow->last, now);
	if (options()->split == AP_SPLIT_APP && was != AP_NONE)
		count_app(skb, flow, was, now);
	if (options()->split == AP_SPLIT_PROPORTIONAL) {
		owned = owned_by(skb);
		if (owned)
			active_use(&owned->use, now, bytes);
		active_use(&shares.all, now, bytes);
	}
	return PASS;
}

/*
 * Computes a flow's part of the bandwidth from the host's flows. Returns whether flows are counted and at least one was
 * active recently.
 */
AP_FN int host_part(struct sock *sk, struct split_part *part, ap_u64 now)
{
	struct split_view seen = { .flows = active_now(&host, now) };
	struct owned *owned;
	struct active_app *app;

	if (!seen.flows)
		return 0;
	if (options()->split != AP_SPLIT_EQUAL) {
		owned = bpf_sk_storage_get(&owners, sk, 0, 0);
		if (options()->split == AP_SPLIT_APP && owned) {
			seen.apps = active_now(&shares.apps, now);
			app = bpf_map_lookup_elem(&device_apps, &owned->app);
			if (app)
				seen.app_flows = active_now(&app->flows, now);
		}
		if (options()->split == AP_SPLIT_PROPORTIONAL && owned) {
			seen.used = active_used(&owned->use, now);
			seen.moved = active_used(&shares.all, now);
		}
	}
	split_part(part, options()->split, &seen);
	return 1;
}

#endif
