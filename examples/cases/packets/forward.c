/* Forwards the packets of a capture from a fast line to a slow one.
 *
 *     forward IN.pcap [OUT.pcap] [NS_PER_BYTE]
 *
 * A packet is buffered in malloc'ed memory of exactly its size when it comes and
 * leaves, first in first out, when the slow line is free: after NS_PER_BYTE (80,
 * that is 100 Mbit/s) for each of its bytes. Time is that of the capture. In
 * between the packet is routed: its header is checked, its hardware addresses
 * are replaced, its time to live and checksum renewed (RFC 1624). At the end one
 * line of figures goes to standard output.
 *
 * All else is in static memory, descriptors too, as in a driver: what the heap is
 * asked for is the packets alone. Input is copied in and out, so each packet is
 * written once and read once, as by a processor that moves it between devices.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SNAP = 65535, DESCRIPTORS = 4096, BUFFER = 1 << 17 };

struct descriptor {
    uint8_t *packet;
    uint32_t size;
    uint64_t departure;
};

/* Buffered packets, oldest first, from `sent` to `received`. */
static struct descriptor ring[DESCRIPTORS];
static uint64_t received, sent, peak, dropped, bytes_sent;

static uint8_t input[BUFFER], output[BUFFER];
static size_t input_begin, input_end, output_end;
static int in = -1, out = -1;

static void fail(const char *what, const char *why)
{
    char text[512];
    int length = snprintf(text, sizeof text, "forward: %s: %s\n", what, why);
    if (write(2, text, (size_t)length) < 0) {
        /* There is nowhere left to complain to. */
    }
    _exit(2);
}

static void flush(void)
{
    size_t done = 0;
    while (out >= 0 && done < output_end) {
        ssize_t count = write(out, output + done, output_end - done);
        if (count < 0)
            fail("cannot write", strerror(errno));
        done += (size_t)count;
    }
    output_end = 0;
}

static uint8_t *reserve(size_t size)
{
    if (BUFFER - output_end < size)
        flush();
    output_end += size;
    return output + output_end - size;
}

/* Makes `size` bytes of the input available; 0 at its end. */
static int available(size_t size)
{
    while (input_end - input_begin < size) {
        memmove(input, input + input_begin, input_end - input_begin);
        input_end -= input_begin;
        input_begin = 0;
        ssize_t count = read(in, input + input_end, BUFFER - input_end);
        if (count < 0)
            fail("cannot read", strerror(errno));
        if (count == 0)
            return 0;
        input_end += (size_t)count;
    }
    return 1;
}

static uint32_t word(size_t place)
{
    const uint8_t *at = input + input_begin + place;
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static void put_word(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

static unsigned half(const uint8_t *at) { return (unsigned)at[0] << 8 | at[1]; }

/* Checks and rewrites the header; 0 if the packet cannot be forwarded. */
static int route(uint8_t *packet, uint32_t size)
{
    uint8_t *ip = packet + 14;
    if (size < 34 || half(packet + 12) != 0x0800 || ip[0] != 0x45 || half(ip + 2) != size - 14)
        return 0;
    uint32_t sum = 0;
    for (int i = 0; i < 20; i += 2)
        sum += half(ip + i);
    sum = (sum & 0xffff) + (sum >> 16);
    if (sum != 0xffff || ip[8] == 0)
        return 0;
    uint8_t station = (uint8_t)(ip[15] ^ ip[19]);
    const uint8_t addresses[12] = {2, 0, 0, 0, 1, station, 2, 0, 0, 0, 0, 2};
    memcpy(packet, addresses, sizeof addresses);
    ip[8]--;
    uint32_t check = half(ip + 10) + 0x100;
    check = (check & 0xffff) + (check >> 16);
    ip[10] = (uint8_t)(check >> 8);
    ip[11] = (uint8_t)check;
    return 1;
}

/* Sends what the slow line has taken by `now`. */
static void leave(uint64_t now)
{
    while (sent < received && ring[sent % DESCRIPTORS].departure <= now) {
        struct descriptor *oldest = &ring[sent++ % DESCRIPTORS];
        uint8_t *at = reserve(16 + oldest->size);
        put_word(at, (uint32_t)(oldest->departure / 1000000000));
        put_word(at + 4, (uint32_t)(oldest->departure % 1000000000));
        put_word(at + 8, oldest->size);
        put_word(at + 12, oldest->size);
        memcpy(at + 16, oldest->packet, oldest->size);
        bytes_sent += oldest->size;
        free(oldest->packet);
    }
}

int main(int argc, char **argv)
{
    if (argc < 2 || argc > 4)
        fail("usage", "forward IN.pcap [OUT.pcap] [NS_PER_BYTE]");
    uint64_t ns_per_byte = argc > 3 ? strtoull(argv[3], NULL, 10) : 80;
    in = open(argv[1], O_RDONLY);
    if (in < 0)
        fail(argv[1], strerror(errno));
    if (argc > 2 && (out = open(argv[2], O_WRONLY | O_CREAT | O_TRUNC, 0666)) < 0)
        fail(argv[2], strerror(errno));
    if (!available(24) || (word(0) != 0xa1b23c4d && word(0) != 0xa1b2c3d4))
        fail(argv[1], "no little-endian pcap capture");
    uint64_t unit = word(0) == 0xa1b23c4d ? 1 : 1000;
    uint8_t *head = reserve(24);
    memcpy(head, input + input_begin, 24);
    put_word(head, 0xa1b23c4d);
    input_begin += 24;

    uint64_t line_free = 0;
    while (available(16)) {
        uint64_t arrival = word(0) * 1000000000ull + word(4) * unit;
        uint32_t size = word(8);
        if (size > SNAP)
            fail(argv[1], "a packet is longer than 65535 bytes");
        input_begin += 16;
        if (!available(size))
            fail(argv[1], "the capture ends inside a packet");
        leave(arrival);
        if (received - sent == DESCRIPTORS)
            fail(argv[1], "more than 4096 packets wait; is the line too slow?");
        uint8_t *packet = malloc(size);
        if (packet == NULL) {
            dropped++;
        } else {
            memcpy(packet, input + input_begin, size);
            if (route(packet, size)) {
                uint64_t from = arrival > line_free ? arrival : line_free;
                line_free = from + size * ns_per_byte;
                ring[received++ % DESCRIPTORS] = (struct descriptor){packet, size, line_free};
                if (received - sent > peak)
                    peak = received - sent;
            } else {
                free(packet);
                dropped++;
            }
        }
        input_begin += size;
    }
    leave(UINT64_MAX);
    flush();
    char text[160];
    int length = snprintf(text, sizeof text,
                          "%llu packets, %llu bytes forwarded; at most %llu buffered; %llu dropped\n",
                          (unsigned long long)sent, (unsigned long long)bytes_sent,
                          (unsigned long long)peak, (unsigned long long)dropped);
    return write(1, text, (size_t)length) == length ? 0 : 2;
}
