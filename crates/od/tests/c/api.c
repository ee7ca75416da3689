/*
 * Tests every function of od.h against its manual page, including failures.
 *
 *     api DIR
 *
 * The daemon offers lte.rsrp, lte.dl.grant and nr.snr, and has published 2 readings of lte.rsrp, the last -97.5. A line
 * on standard output asks the test to stop the daemon; a line on standard input confirms that the daemon has stopped.
 */
#define _POSIX_C_SOURCE 200809L /* nanosleep() */
#include <errno.h>
#include <od.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MS INT64_C(1000000)

/* Replaces assert(), which does not print errno. */
#define CHECK(is_so)                                                                                                   \
    do {                                                                                                               \
        if (!(is_so)) {                                                                                                \
            printf("line %d: not so: %s; errno %d, %s\n", __LINE__, #is_so, errno, od_strerror(errno));                \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

/* A call that must fail with this errno. */
#define FAILS(call, number)                                                                                            \
    do {                                                                                                               \
        errno = 0;                                                                                                     \
        CHECK((call) == -1);                                                                                           \
        CHECK(errno == (number));                                                                                      \
    } while (0)

static int count(const struct od_kpi *kpi, void *context)
{
    CHECK(kpi->size >= sizeof *kpi && strlen(kpi->name) > 0 && strlen(kpi->about) > 0);
    return ++*(int *)context == 2; /* enough after two */
}

static int ignore(const struct od_kpi *kpi, void *context)
{
    (void)kpi;
    (void)context;
    return 0;
}

static void arguments(od *handle)
{
    struct od_reading reading = OD_READING_INIT;
    struct od_reading unset;
    uint32_t seen = 0;
    memset(&unset, 0, sizeof unset);

    FAILS(od_close(NULL), EINVAL);
    FAILS(od_list(NULL, ignore, NULL), EINVAL);
    FAILS(od_list(handle, NULL, NULL), EINVAL);
    FAILS(od_subscribe(NULL, "lte.rsrp"), EINVAL);
    FAILS(od_subscribe(handle, NULL), EINVAL);
    FAILS(od_subscribe(handle, ""), EINVAL);
    FAILS(od_subscribe_carrier(NULL, "lte.rsrp", 0), EINVAL);
    FAILS(od_subscribe_carrier(handle, NULL, 0), EINVAL);
    FAILS(od_subscribe_carrier(handle, "lte.rsrp", -2), EINVAL);
    FAILS(od_subscribe_carrier(handle, "lte.rsqr", 0), ENOENT);
    CHECK(od_abi() == OD_ABI);
    FAILS(od_subscribe(handle, "\xFF\xFE"), EINVAL);
    FAILS(od_unsubscribe(NULL, 0), EINVAL);
    FAILS(od_latest(NULL, 0, &reading), EINVAL);
    FAILS(od_latest(handle, 0, NULL), EINVAL);
    FAILS(od_latest(handle, 0, &unset), EINVAL);
    FAILS(od_wait(handle, 0, 0, 0, &unset), EINVAL);
    FAILS(od_wait_any(handle, NULL, 0), EINVAL);
    FAILS(od_wait_any(NULL, &seen, 0), EINVAL);
    FAILS(od_age_ns(NULL), EINVAL);
    FAILS(od_alive(NULL), EINVAL);
    FAILS(od_subscribe(handle, "lte.rsqr"), ENOENT);
    CHECK(strcmp(od_strerror(ENOENT), "there is no KPI `lte.rsqr`") == 0);
    FAILS(od_subscribe(handle, "two words"), EINVAL);
    CHECK(strstr(od_strerror(EINVAL), "two words") != NULL);
    FAILS(od_close(NULL), EINVAL);
    CHECK(strstr(od_strerror(EINVAL), "two words") == NULL); /* that was another failure */
    for (int number = -5; number < 5000; number++)
        CHECK(strlen(od_strerror(number)) > 0);
    CHECK(strlen(od_version()) >= strlen("0.0.0"));
}

/* The machine's load may delay the heartbeat of a live daemon. */
static int turns_alive(const od *handle)
{
    const struct timespec nap = { 0, MS };
    int tries = 20000;
    while (od_alive(handle) == 0 && --tries > 0)
        nanosleep(&nap, NULL);
    return tries > 0;
}

static void subscriptions(od *handle)
{
    struct od_reading reading = OD_READING_INIT;
    int calls = 0;
    CHECK(od_list(handle, count, &calls) == 2 && calls == 2);
    CHECK(od_list(handle, ignore, NULL) == 3);

    /* Rows without a subscription, and one that only another handle has subscribed to. */
    FAILS(od_latest(handle, 0, &reading), EBADF);
    FAILS(od_latest(handle, -1, &reading), EBADF);
    FAILS(od_latest(handle, 1 << 30, &reading), EBADF);
    FAILS(od_unsubscribe(handle, 0), EBADF);

    int rsrp = od_subscribe(handle, "lte.rsrp");
    CHECK(rsrp >= 0 && od_subscribe(handle, "lte.rsrp") == rsrp);
    CHECK(od_latest(handle, rsrp, &reading) == 0);
    CHECK(reading.value == -97.5 && reading.sequence == 2 && reading.subframe == -1 && reading.flags == 0);
    CHECK(reading.size == sizeof reading && od_age_ns(&reading) >= 0 && turns_alive(handle));
    struct { struct od_reading reading; char more[64]; } later = { OD_READING_INIT, "untouched" };
    later.reading.size = sizeof later; /* as a program has it that was compiled with a later header */
    CHECK(od_latest(handle, rsrp, &later.reading) == 0 && later.reading.value == -97.5);
    CHECK(later.reading.size == sizeof reading && strcmp(later.more, "untouched") == 0);
    CHECK(od_unsubscribe(handle, rsrp) == 0 && od_latest(handle, rsrp, &reading) == 0);
    CHECK(od_unsubscribe(handle, rsrp) == 0);
    FAILS(od_latest(handle, rsrp, &reading), EBADF);

    /* Each carrier is a separate subscription. */
    int first = od_subscribe_carrier(handle, "lte.rsrp", 1);
    int all = od_subscribe_carrier(handle, "lte.rsrp@2", OD_ALL_CARRIERS);
    CHECK(first >= 0 && first == od_subscribe(handle, "lte.rsrp#1") && first != rsrp);
    CHECK(all >= 0 && all == od_subscribe(handle, "lte.rsrp@2#all") && all != first);
    FAILS(od_latest(handle, first, &reading), EAGAIN);
    CHECK(od_unsubscribe(handle, first) == 0 && od_unsubscribe(handle, first) == 0);
    CHECK(od_unsubscribe(handle, all) == 0 && od_unsubscribe(handle, all) == 0);
}

static void waiting(od *handle)
{
    struct od_reading reading = OD_READING_INIT;
    int rsrp = od_subscribe(handle, "lte.rsrp");
    int snr = od_subscribe(handle, "nr.snr");
    CHECK(rsrp >= 0 && snr >= 0);
    FAILS(od_latest(handle, snr, &reading), EAGAIN);
    CHECK(od_wait(handle, rsrp, 0, -1, &reading) == 0 && reading.sequence == 2);
    CHECK(od_wait(handle, rsrp, 1, 0, &reading) == 0 && reading.sequence == 2);
    FAILS(od_wait(handle, rsrp, 2, 0, &reading), ETIMEDOUT);
    FAILS(od_wait(handle, snr, 0, 20 * MS, &reading), ETIMEDOUT);
    CHECK(reading.sequence == 2); /* untouched by failures */
    uint32_t seen = 0;
    CHECK(od_wait_any(handle, &seen, -1) == 0 && seen == 2);
    FAILS(od_wait_any(handle, &seen, 5 * MS), ETIMEDOUT);
}

static void *subscribe_and_read(void *context)
{
    const od *handle = context;
    for (int i = 0; i < 200; i++) {
        struct od_reading reading = OD_READING_INIT;
        int rsrp = od_subscribe(handle, "lte.rsrp");
        CHECK(rsrp >= 0);
        CHECK(od_latest(handle, rsrp, &reading) == 0 && reading.value == -97.5);
        CHECK(od_unsubscribe(handle, rsrp) == 0);
    }
    return NULL;
}

static void threads(od *handle)
{
    pthread_t started[4];
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&started[i], NULL, subscribe_and_read, handle) == 0);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_join(started[i], NULL) == 0);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    CHECK(od_open("/nowhere") == NULL && errno == ENOENT);
    od *handle = od_open(argv[1]);
    CHECK(handle != NULL);
    arguments(handle);
    subscriptions(handle);
    threads(handle);
    waiting(handle);

    puts("stop the daemon");
    fflush(stdout);
    CHECK(getchar() == '\n');
    struct od_reading reading = OD_READING_INIT;
    uint32_t seen = 0;
    CHECK(od_alive(handle) == 0);
    CHECK(od_wait_any(handle, &seen, -1) == 0); /* what came before the end */
    FAILS(od_wait_any(handle, &seen, -1), ESTALE);
    FAILS(od_list(handle, ignore, NULL), ESTALE);
    FAILS(od_subscribe(handle, "lte.rsrp"), ESTALE);
    CHECK(od_latest(handle, 0, &reading) == 0 && reading.value == -97.5);
    CHECK(od_close(handle) == 0);
    puts("all is as the manual says");
    return 0;
}
