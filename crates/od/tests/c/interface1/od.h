/*
 * libOD: a modem's key performance indicators (KPIs), read from shared memory as they come.
 *
 *     od *daemon = od_open(NULL);
 *     int rsrp = od_subscribe(daemon, "lte.rsrp");
 *     struct od_reading reading = OD_READING_INIT;
 *     while (od_wait(daemon, rsrp, reading.sequence, -1, &reading) == 0)
 *         printf("%g dBm\n", reading.value);
 *
 * Functions give -1 or NULL on failure and set errno; od_strerror() says it in words. Every function may be called by any
 * thread at any time, od_close() only when nobody uses the handle any more. od_latest(), od_age_ns() and od_alive()
 * make no system call, take no lock, and may be called in signal handlers. A child after fork() opens a handle of its own.
 *
 * All times but modem_ns are nanoseconds of CLOCK_BOOTTIME, which goes on while the machine sleeps.
 *
 * See libod(3). Licence: MIT OR Apache-2.0.
 */
#ifndef OD_H
#define OD_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The daemon, opened. */
typedef struct od od;

/* A KPI that the daemon offers. Valid during the call that it is given to. */
struct od_kpi {
    uint32_t size;     /* bytes of this struct in the library: later versions add to its end */
    uint32_t reserved; /* 0 */
    const char *name;  /* what to subscribe to */
    const char *unit;  /* unit of its values */
    const char *about; /* what it is, in a few words */
};

/* Readings were lost between this and the one before: the port was gone, or packets were. */
#define OD_AFTER_GAP 1u

/* What was said about a KPI at one time. */
struct od_reading {
    uint32_t size;         /* bytes of this struct in the program, set by OD_READING_INIT; later versions add to its end */
    uint32_t flags;        /* OD_AFTER_GAP, or 0 */
    double value;          /* in the KPI's unit */
    uint64_t sequence;     /* counts the readings of this KPI from 1 */
    uint64_t modem_ns;     /* when the modem measured it: since 1980-01-06, by its own clock; 0 if it did not say */
    uint64_t arrival_ns;   /* when the packet that holds it had come in whole */
    uint64_t published_ns; /* when it was published */
    int32_t subframe;      /* which subframe it is of: 10 * SFN + subframe; -1 if the packet does not say */
    uint8_t carrier;       /* index of the carrier, 0 the primary cell's */
    uint8_t radio;         /* which of the phone's radios (SIMs), from 1 */
    uint16_t reserved;     /* 0 */
    uint64_t gaps;         /* gaps before it since the daemon started: the same in two readings if none lies between */
};

#define OD_READING_INIT { sizeof(struct od_reading), 0, 0.0, 0, 0, 0, 0, -1, 0, 0, 0, 0 }

/* Opens the daemon whose folder is dir; NULL: $OD_DIR, else /run/airpace for root, $XDG_RUNTIME_DIR/airpace for others. */
od *od_open(const char *dir);

/* Closes it; its subscriptions end. */
int od_close(od *handle);

/* Calls each with every KPI that the daemon offers, until it gives something other than 0. Gives how many calls there
 * were. each must return: no longjmp(), no exception. */
int od_list(const od *handle, int (*each)(const struct od_kpi *kpi, void *context), void *context);

/* Subscribes to a KPI, "NAME" or "NAME@RADIO". Gives the number to read it by, 0 or more. Asks the daemon. */
int od_subscribe(const od *handle, const char *name);

/* Ends a subscription. Subscriptions are counted. Asks the daemon. */
int od_unsubscribe(const od *handle, int kpi);

/* Reads the latest reading; EAGAIN before the first. It may be old: see od_age_ns(). No system call. */
int od_latest(const od *handle, int kpi, struct od_reading *reading);

/* Waits for a reading beyond sequence number after (0: any), timeout_ns at most, for ever if negative. ETIMEDOUT if none
 * came, ESTALE when the daemon stops, or was silent for a second, EINTR by a signal. */
int od_wait(const od *handle, int kpi, uint64_t after, int64_t timeout_ns, struct od_reading *reading);

/* Waits until something was published after batch *seen (0: any), of whatever KPI, and sets *seen to the latest batch. For
 * those who follow several KPIs. Fails as od_wait() does. */
int od_wait_any(const od *handle, uint32_t *seen, int64_t timeout_ns);

/* How long ago the packet that holds a reading came in, in ns. No system call. */
int64_t od_age_ns(const struct od_reading *reading);

/* 1 if the daemon runs and gave a sign of life within the last 100 ms, else 0. No system call. */
int od_alive(const od *handle);

/* Says in words what errno means after a function of this library; never NULL. Valid until the thread's next failure. */
const char *od_strerror(int errnum);

/* The library's version, "MAJOR.MINOR.PATCH". */
const char *od_version(void);

#ifdef __cplusplus
}
#endif

#endif /* OD_H */
