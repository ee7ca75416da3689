/*
 * A program for interface version 1, compiled with the header of this version and linked with the present library.
 *
 *     program DIR
 */
#include <errno.h>
#include <od.h>
#include <stdio.h>
#include <string.h>

#ifdef OD_ABI
#error "the first header had no number"
#endif

static int show(const struct od_kpi *kpi, void *context)
{
    (void)context;
    printf("%s %s\n", kpi->name, kpi->unit);
    return 0;
}

int main(int argc, char **argv)
{
    struct {
        struct od_reading reading;
        unsigned char behind[64];
    } room = {OD_READING_INIT, {0}};
    uint32_t seen = 0;
    int kpi;
    size_t at;
    od *handle = argc == 2 ? od_open(argv[1]) : NULL;

    if (!handle || od_list(handle, show, NULL) != 3)
        return 1;
    memset(room.behind, 0xA5, sizeof room.behind);
    kpi = od_subscribe(handle, "lte.rsrp");
    if (kpi < 0 || od_latest(handle, kpi, &room.reading) != 0)
        return 2;
    printf("%g dBm, reading %u of carrier %u, radio %u, %u gaps\n", room.reading.value, (unsigned)room.reading.sequence,
           (unsigned)room.reading.carrier, (unsigned)room.reading.radio, (unsigned)room.reading.gaps);
    for (at = 0; at < sizeof room.behind; at++)
        if (room.behind[at] != 0xA5)
            return 3; /* the library wrote more than this header has */
    if (room.reading.size != sizeof room.reading || od_wait(handle, kpi, 0, -1, &room.reading) != 0)
        return 4;
    printf("waited: %g\n", room.reading.value);
    if (od_wait(handle, kpi, room.reading.sequence, 1000000, &room.reading) == 0)
        return 5;
    printf("nothing newer: %s\n", strerror(errno));
    if (od_wait_any(handle, &seen, -1) != 0 || seen == 0)
        return 6;
    printf("alive %d, age is sound %d\n", od_alive(handle), od_age_ns(&room.reading) >= 0);
    return od_unsubscribe(handle, kpi) != 0 || od_close(handle) != 0 || !*od_version();
}
