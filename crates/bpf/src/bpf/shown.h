/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Iterates over all sockets that have a scheme's storage, in all network namespaces, and writes the state of each flow.
 * The program only needs CPU time when a process reads its file.
 *
 * Source: Linux net/core/bpf_sk_storage.c (struct bpf_iter__bpf_sk_storage_map); Linux include/linux/bpf.h (struct
 * bpf_iter_meta)
 */
#ifndef AIRPACE_SHOWN_H
#define AIRPACE_SHOWN_H

#include "sock.h"

static long (*const bpf_seq_write)(void *seq, const void *data, ap_u32 length) = (void *)127;

struct bpf_iter_meta {
	void *seq;
} CORE;

struct bpf_iter__bpf_sk_storage_map {
	struct bpf_iter_meta *meta;
	void *map;
	struct sock *sk;
	void *value;
};

/* The fields of a socket that contain its addresses and ports. */
struct ns_common {
	ap_u32 inum;
} CORE;

struct net {
	struct ns_common ns;
} CORE;

struct sock_common___ends {
	ap_u32 skc_daddr;
	ap_u32 skc_rcv_saddr;
	ap_u16 skc_dport;
	ap_u16 skc_num;
	struct {
		struct net *net;
	} skc_net;
	struct {
		unsigned char bytes[16];
	} skc_v6_daddr;
	struct {
		unsigned char bytes[16];
	} skc_v6_rcv_saddr;
} CORE;

struct sock___owner {
	/* Null if no process owns the socket any more. */
	void *sk_socket;
} CORE;

struct tcp_congestion_ops___name {
	char name[16];
} CORE;

struct inet_connection_sock___ops {
	struct tcp_congestion_ops___name *icsk_ca_ops;
} CORE;

/* Copies the addresses in network byte order. IPv4 addresses use the first four bytes. */
AP_FN void show_ends(struct ap_shown *shown, const struct sock_common___ends *ends, ap_u16 family)
{
	ap_u32 bytes = family == AF_INET6 ? 16 : 4;

	shown->family = family;
	shown->local_port = ends->skc_num;
	shown->remote_port = __builtin_bswap16(ends->skc_dport);
	shown->netns = ends->skc_net.net->ns.inum;
	if (family == AF_INET6 && FIELD_EXISTS(ends->skc_v6_daddr)) {
		bpf_probe_read_kernel(shown->local, bytes, &ends->skc_v6_rcv_saddr);
		bpf_probe_read_kernel(shown->remote, bytes, &ends->skc_v6_daddr);
		return;
	}
	*(ap_u32 *)shown->local = ends->skc_rcv_saddr;
	*(ap_u32 *)shown->remote = ends->skc_daddr;
}

/* Writes one flow, if a process still owns its socket. */
AP_FN int show_flow(struct bpf_iter__bpf_sk_storage_map *ctx, const struct tcp_sock *tp, ap_u32 state, ap_u64 rate,
		    ap_u64 window, ap_u64 rtt)
{
	const struct inet_connection_sock___ops *connection = (const void *)tp;
	const struct sock___owner *owner = (const void *)tp;
	struct ap_shown shown = { .state = state, .rate = rate, .window = window, .rtt = rtt };

	if (!owner->sk_socket)
		return 0;
	show_ends(&shown, (const void *)tp, ((const struct sock *)tp)->__sk_common.skc_family);
	bpf_probe_read_kernel(shown.scheme, sizeof(shown.scheme), &connection->icsk_ca_ops->name);
	bpf_seq_write(ctx->meta->seq, &shown, sizeof(shown));
	return 0;
}

/* Writes a sender's flow from the kernel's state of its socket. */
AP_FN int show_sender(struct bpf_iter__bpf_sk_storage_map *ctx, ap_u32 state, ap_u64 rtt)
{
	struct sock *sk = ctx->sk;
	const struct tcp_sock *tp = sk ? bpf_skc_to_tcp_sock(sk) : 0;
	ap_u64 rate = AP_NONE;

	if (!tp)
		return 0;
	/* A socket has no pacing rate before its peer's first ACK, or if it has sent nothing. */
	if (tp->srtt_us && tp->bytes_sent)
		rate = ((const struct sock *)tp)->sk_pacing_rate;
	return show_flow(ctx, tp, state, rate, (ap_u64)tp->snd_cwnd * tp->mss_cache, rtt);
}

#endif
