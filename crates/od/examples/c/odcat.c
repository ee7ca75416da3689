/*
 * odcat: prints a modem's KPIs as they are published.
 *
 *     odcat [-d DIR] [-n COUNT] [NAME...]
 *
 * Without names, odcat lists the KPIs that the daemon offers. With names, it prints each reading of these KPIs that it
 * receives: name, value, unit, age and sequence number. It stops after COUNT readings or when the daemon stops.
 *
 * Build: cc odcat.c $(pkg-config --cflags --libs libod) -o odcat
 */
#define _POSIX_C_SOURCE 200809L /* getopt() */
#include <errno.h>
#include <od.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_NAMES 64

struct followed {
    const char *name;
    char unit[24];
    int kpi;
    uint64_t sequence; /* the last that was printed */
};

struct command {
    struct followed followed[MAX_NAMES];
    int names;
    long count;
};

static int die(const char *what)
{
    fprintf(stderr, "odcat: %s: %s\n", what, od_strerror(errno));
    return 1;
}

static int print_kpi(const struct od_kpi *kpi, void *context)
{
    (void)context;
    printf("%-24s %-6s %s\n", kpi->name, kpi->unit, kpi->about);
    return 0;
}

/* Stores the unit of a followed KPI. The KPI's name may end with "@RADIO" and "#CARRIER". */
static int note_unit(const struct od_kpi *kpi, void *context)
{
    struct command *command = context;
    size_t length = strlen(kpi->name);
    for (int i = 0; i < command->names; i++) {
        struct followed *followed = &command->followed[i];
        const char *rest = followed->name + length;
        if (strncmp(followed->name, kpi->name, length) == 0 && (*rest == '\0' || *rest == '@' || *rest == '#'))
            snprintf(followed->unit, sizeof followed->unit, "%s", kpi->unit);
    }
    return 0;
}

/* Prints the readings that were published since the last call; returns how many readings are still to be printed. */
static long print_news(const od *handle, struct followed *followed, long left)
{
    struct od_reading reading = OD_READING_INIT;
    if (left == 0 || od_latest(handle, followed->kpi, &reading) != 0 || reading.sequence == followed->sequence)
        return left;
    followed->sequence = reading.sequence;
    printf("%s %g %s age %.3f ms #%llu%s\n", followed->name, reading.value, followed->unit,
           (double)od_age_ns(&reading) / 1e6, (unsigned long long)reading.sequence,
           reading.flags & OD_AFTER_GAP ? " after a gap" : "");
    fflush(stdout);
    return left > 0 ? left - 1 : left;
}

static int follow(const od *handle, struct command *command)
{
    if (od_list(handle, note_unit, command) < 0)
        return die("list");
    for (int i = 0; i < command->names; i++) {
        struct followed *followed = &command->followed[i];
        followed->kpi = od_subscribe(handle, followed->name);
        if (followed->kpi < 0)
            return die(followed->name);
    }
    uint32_t batch = 0;
    for (;;) {
        for (int i = 0; i < command->names; i++)
            command->count = print_news(handle, &command->followed[i], command->count);
        if (command->count == 0)
            return 0;
        if (od_wait_any(handle, &batch, -1) != 0 && errno != EINTR)
            return die("wait");
    }
}

int main(int argc, char **argv)
{
    static struct command command = { .count = -1 };
    const char *dir = NULL;
    int option;
    while ((option = getopt(argc, argv, "d:n:")) != -1) {
        if (option == 'd')
            dir = optarg;
        else if (option == 'n')
            command.count = strtol(optarg, NULL, 10);
        else
            return 2;
    }
    if (argc - optind > MAX_NAMES) {
        fprintf(stderr, "odcat: %d names are more than the %d that it follows\n", argc - optind, MAX_NAMES);
        return 2;
    }
    for (int i = optind; i < argc; i++)
        command.followed[command.names++].name = argv[i];

    od *handle = od_open(dir);
    if (handle == NULL)
        return die("open");
    int status;
    if (command.names > 0)
        status = follow(handle, &command);
    else
        status = od_list(handle, print_kpi, NULL) < 0 ? die("list") : 0;
    od_close(handle);
    return status;
}
