/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Kernel interface of programs that a control group attaches to the events of its TCP sockets.
 *
 * Source: Linux include/uapi/linux/bpf.h; Linux include/uapi/linux/tcp.h
 */
#ifndef AIRPACE_SOCKOPS_H
#define AIRPACE_SOCKOPS_H

#include "kernel.h"

/* The context of the programs. */
struct bpf_sock_ops {
	ap_u32 op;
	ap_u32 args[4];
	ap_u32 family;
	ap_u32 unused[15];
	ap_u32 bpf_sock_ops_cb_flags;
	ap_u32 unused_too[5];
	ap_u32 snd_una;
	ap_u32 and_these[18];
	struct sock *sk;
	void *skb_data;
	void *skb_data_end;
	ap_u32 skb_len;
	ap_u32 skb_tcp_flags;
};

_Static_assert(__builtin_offsetof(struct bpf_sock_ops, bpf_sock_ops_cb_flags) == 84, "as the kernel has it");
_Static_assert(__builtin_offsetof(struct bpf_sock_ops, snd_una) == 108, "as the kernel has it");
_Static_assert(__builtin_offsetof(struct bpf_sock_ops, sk) == 184, "as the kernel has it");
_Static_assert(__builtin_offsetof(struct bpf_sock_ops, skb_tcp_flags) == 212, "as the kernel has it");

enum {
	BPF_SOCK_OPS_TCP_CONNECT_CB = 3,
	BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB = 4,
	BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB = 5,
	BPF_SOCK_OPS_TCP_LISTEN_CB = 11,
	BPF_SOCK_OPS_PARSE_HDR_OPT_CB = 13,
	BPF_SOCK_OPS_HDR_OPT_LEN_CB = 14,
	BPF_SOCK_OPS_WRITE_HDR_OPT_CB = 15,
};
enum { STATE = 4, PARSE_UNKNOWN = 0x20, WRITE = 0x40 };
enum { BPF_LOAD_HDR_OPT_TCP_SYN = 1 };
enum { BPF_WRITE_HDR_TCP_CURRENT_MSS = 1, BPF_WRITE_HDR_TCP_SYNACK_COOKIE = 2 };
enum { SOL_TCP = 6, TCP_WINDOW_CLAMP = 10, TCP_CONGESTION = 13, TCP_SAVE_SYN = 27 };
enum { FLAG_FIN = 1, FLAG_SYN = 2, FLAG_ACK = 16 };

/*
 * All programs share the callback flags of a connection: if one program clears a flag, all programs lose the callback.
 * A program that observes a connection therefore also sets the flag STATE, whose callbacks are rare. This flag shows
 * other programs that another program observes the connection.
 */
#define FOLLOWS STATE

static long (*const bpf_setsockopt)(void *ctx, int level, int name, void *value, int length) = (void *)49;
static long (*const bpf_sock_ops_cb_flags_set)(void *ctx, int flags) = (void *)59;
static long (*const bpf_load_hdr_opt)(void *ctx, void *found, ap_u32 length, ap_u64 flags) = (void *)142;
static long (*const bpf_store_hdr_opt)(void *ctx, const void *from, ap_u32 length, ap_u64 flags) = (void *)143;
static long (*const bpf_reserve_hdr_opt)(void *ctx, ap_u32 length, ap_u64 flags) = (void *)144;

#endif
