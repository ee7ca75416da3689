/* Prints sizes and offsets that the C compiler computes for od.h, one per line. A test compares them with the library. */
#include <od.h>
#include <stddef.h>
#include <stdio.h>

#define FIELD(type, field) \
    printf(#type "." #field " %zu %zu\n", offsetof(struct type, field), sizeof(((struct type *)0)->field))

int main(void)
{
    const struct od_reading reading = OD_READING_INIT;
    printf("od_kpi %zu\n", sizeof(struct od_kpi));
    FIELD(od_kpi, size);
    FIELD(od_kpi, reserved);
    FIELD(od_kpi, name);
    FIELD(od_kpi, unit);
    FIELD(od_kpi, about);
    printf("od_reading %zu\n", sizeof(struct od_reading));
    FIELD(od_reading, size);
    FIELD(od_reading, flags);
    FIELD(od_reading, value);
    FIELD(od_reading, sequence);
    FIELD(od_reading, modem_ns);
    FIELD(od_reading, arrival_ns);
    FIELD(od_reading, published_ns);
    FIELD(od_reading, subframe);
    FIELD(od_reading, carrier);
    FIELD(od_reading, radio);
    FIELD(od_reading, reserved);
    FIELD(od_reading, gaps);
    printf("OD_AFTER_GAP %u\n", OD_AFTER_GAP);
    printf("OD_ABI %d %d\n", OD_ABI, od_abi());
    printf("OD_ALL_CARRIERS %d\n", OD_ALL_CARRIERS);
    printf("OD_READING_INIT.size %u\n", (unsigned)reading.size);
    printf("OD_READING_INIT.subframe %d\n", (int)reading.subframe);
    return 0;
}
