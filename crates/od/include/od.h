/*
 * libOD: read a modem's key performance indicators (KPIs) from shared memory.
 *
 *     od *daemon = od_open(NULL);
 *     int rsrp = od_subscribe(daemon, "lte.rsrp");
 *     struct od_reading reading = OD_READING_INIT;
 *     while (od_wait(daemon, rsrp, reading.sequence, -1, &reading) == 0)
 *         printf("%g dBm\n", reading.value);
 *
 * On failure, functions return -1 or NULL and set errno; od_strerror() returns a text. Any thread may call any function at
 * any time, except od_close(), which requires that no thread uses the handle any more. od_latest(), od_age_ns() and
 * od_alive() make no system call, take no lock, and may be called in signal handlers. A child process must open its own
 * handle after fork().
 *
 * All times except modem_ns are in nanoseconds of CLOCK_BOOTTIME, which also counts while the machine is suspended.
 *
 * See libod(3). Licence: MIT OR Apache-2.0.
 */
#ifndef OD_H
#define OD_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version of this interface. Every addition increments it. Nothing is ever changed or removed, so programs compiled with an
 * earlier header still work. Additions per version:
 *   1  all declarations not listed below
 *   2  od_subscribe_carrier(), OD_ALL_CARRIERS, od_abi(); "NAME#CARRIER", "NAME#all" */
#define OD_ABI 2

/* Connection to a daemon. */
typedef struct od od;

/* A KPI that the daemon offers. Valid only during the callback of od_list(). */
struct od_kpi {
    uint32_t size;     /* size of this struct in the library, in bytes; later versions append fields */
    uint32_t reserved; /* 0 */
    const char *name;  /* name for od_subscribe() */
    const char *unit;  /* unit of the values */
    const char *about; /* short description */
};

/* Flag: readings may be missing before this one, because the connection to the port or packets were lost. */
#define OD_AFTER_GAP 1u

/* Value of a KPI at one time. */
struct od_reading {
    uint32_t size;         /* size of this struct in the program, in bytes (OD_READING_INIT); later versions append fields */
    uint32_t flags;        /* OD_AFTER_GAP, or 0 */
    double value;          /* in the KPI's unit */
    uint64_t sequence;     /* number of the reading within its KPI, from 1 */
    uint64_t modem_ns;     /* time of measurement since 1980-01-06, by the modem's clock; 0 if not reported */
    uint64_t arrival_ns;   /* time at which its packet was received completely */
    uint64_t published_ns; /* time of publication */
    int32_t subframe;      /* subframe of the measurement, 10 * SFN + subframe; -1 if not reported */
    uint8_t carrier;       /* index of the carrier; 0 is the primary cell */
    uint8_t radio;         /* index of the phone's radio (SIM), from 1 */
    uint16_t reserved;     /* 0 */
    uint64_t gaps;         /* number of gaps before it since the daemon started; equal numbers: no gap in between */
};

#define OD_READING_INIT { sizeof(struct od_reading), 0, 0.0, 0, 0, 0, 0, -1, 0, 0, 0, 0 }

/* Connects to the daemon whose folder is dir. NULL means $OD_DIR; if this is unset, /run/airpace for root and
 * $XDG_RUNTIME_DIR/airpace for other users. */
od *od_open(const char *dir);

/* Closes the handle; its subscriptions end. */
int od_close(od *handle);

/* Calls each() for every KPI that the daemon offers, until each() returns a non-zero value. Returns the number of calls.
 * each() must return normally: no longjmp(), no exception. */
int od_list(const od *handle, int (*each)(const struct od_kpi *kpi, void *context), void *context);

/* Subscribes to a KPI, "NAME" or "NAME@RADIO". Returns the identifier for reading it, 0 or more. Sends a request to the
 * daemon. For a KPI that exists per carrier, "NAME" is the primary carrier's KPI, "NAME#1" the first secondary carrier's,
 * and "NAME#all" contains the readings of all carriers. */
int od_subscribe(const od *handle, const char *name);

/* Argument of od_subscribe_carrier(): all carriers. */
#define OD_ALL_CARRIERS (-1)

/* Subscribes to the KPI of one carrier (0 is the primary) or of OD_ALL_CARRIERS. If readings of several carriers arrive at
 * once, the primary carrier's reading is published last. */
int od_subscribe_carrier(const od *handle, const char *name, int carrier);

/* Ends a subscription. Subscriptions are counted. Sends a request to the daemon. */
int od_unsubscribe(const od *handle, int kpi);

/* Reads the latest reading; EAGAIN before the first. The reading may be old: see od_age_ns(). No system call. */
int od_latest(const od *handle, int kpi, struct od_reading *reading);

/* Waits for a reading with a sequence number above after (0: any), at most timeout_ns; a negative timeout is infinite.
 * ETIMEDOUT: no such reading arrived in time. ESTALE: the daemon has stopped, has sent no heartbeat for a second, or has
 * reused the KPI's row. EINTR: a signal arrived. */
int od_wait(const od *handle, int kpi, uint64_t after, int64_t timeout_ns, struct od_reading *reading);

/* Waits until readings of any KPI were published after batch *seen (0: any), and sets *seen to the latest batch. For
 * programs that follow several KPIs. Errors as for od_wait(). */
int od_wait_any(const od *handle, uint32_t *seen, int64_t timeout_ns);

/* Returns the time since the packet with this reading was received, in ns. No system call. */
int64_t od_age_ns(const struct od_reading *reading);

/* Returns 1 if the daemon runs and its last heartbeat is younger than 100 ms, else 0. No system call. */
int od_alive(const od *handle);

/* Returns a text for an errno value of this library; never NULL. Valid until the thread's next failure. */
const char *od_strerror(int errnum);

/* Returns the library's version, "MAJOR.MINOR.PATCH". */
const char *od_version(void);

/* Returns the library's interface version: it has all functions up to this OD_ABI. */
int od_abi(void);

#ifdef __cplusplus
}
#endif

#endif /* OD_H */
