/* readers.h: what the fuzz targets of the array readers share. A reader is given the bytes as if
 * they were a file; whatever it makes of them, it must keep its promises. */
#ifndef CGAM_TESTS_FUZZ_READERS_H
#define CGAM_TESTS_FUZZ_READERS_H

#include "base/env.h"
#include "io/array.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline cgam_env *fuzz_env(void)
{
    static cgam_env *env; /* one for the whole run */
    cgam_env_opts opts = cgam_env_opts_default();
    opts.threads = 1;
    if (!env && cgam_env_new(&opts, &env) != CGAM_OK) abort();
    return env;
}

static inline void must(bool promise)
{
    if (!promise) abort();
}

static inline void must_be_one_line(const cgam_env *env)
{
    const char *message = cgam_env_message(env);
    must(message[0] && !strchr(message, '\n'));
}

/* The bytes of a file that a target has made itself. */
static inline uint8_t *fuzz_take(const char *path, size_t *size)
{
    cgam_file file;
    must(cgam_file_map(fuzz_env(), path, &file) == CGAM_OK);
    uint8_t *bytes = malloc(*size = file.size);
    must(bytes != NULL);
    memcpy(bytes, file.bytes, file.size);
    cgam_file_unmap(&file);
    return bytes;
}

/* A sound file with some of its bytes replaced, or any bytes at all. Input: an even first byte, then five bytes a replacement
 * (place, value); an odd one, then the file. *length: that of the sound file, and then of what comes back, which is for free(). */
static inline uint8_t *fuzz_damage(const uint8_t *data, size_t size, const uint8_t *sound,
                                   size_t *length)
{
    bool raw = data[0] & 1;
    if (raw) *length = size - 1;
    uint8_t *bytes = aligned_alloc(64, (*length + 64) / 64 * 64);
    must(bytes != NULL);
    memcpy(bytes, raw ? data + 1 : sound, *length);
    for (size_t i = 1; !raw && i + 5 <= size; i += 5) {
        uint32_t place;
        memcpy(&place, data + i, sizeof place);
        bytes[place % *length] = data[i + 4];
    }
    return bytes;
}

/* Opens one array and reads every element of it. */
static inline cgam_status fuzz_open(const cgam_format *format, const uint8_t *data, size_t size,
                                    const char *member, uint64_t most)
{
    cgam_env *env = fuzz_env();
    cgam_file file = cgam_file_borrow(data, size);
    cgam_array a = {0};
    cgam_status status = format->open(env, "fuzz", &file, member, &a);
    if (status != CGAM_OK) {
        must_be_one_line(env);
        must(!a.owner);
        return status;
    }
    int64_t count = 1;
    for (int k = 0; k < a.ndim; k++) count *= a.shape[k];
    size_t item = cgam_dtype_size(a.dtype);
    must(count == a.size && (uint64_t)count * item <= most);
    must((uintptr_t)a.data % item == 0);
    double *values = cgam_alloc(env, (size_t)a.size, sizeof *values);
    must(values != NULL);
    status = cgam_array_read_f64(env, &a, "fuzz", values);
    if (status != CGAM_OK) must_be_one_line(env);
    cgam_free(env, values);
    cgam_array_close(env, &a);
    return CGAM_OK;
}

/* Opens the array of the input, or, where there are several, one of those that the message names: the size says which. */
static inline int fuzz_reader(const cgam_format *format, const uint8_t *data, size_t size,
                              uint64_t most)
{
    if (size == 0) return 0; /* files without bytes are turned away before any reader */
    const cgam_file file = cgam_file_borrow(data, size);
    (void)format->recognise(&file);
    if (fuzz_open(format, data, size, NULL, most) != CGAM_E_ARG) return 0;
    char member[128];
    const char *at = strstr(cgam_env_message(fuzz_env()), " arrays (");
    must(at != NULL);
    at += strlen(" arrays (");
    for (size_t skip = size % 4; skip > 0 && strstr(at, ", "); skip--) at = strstr(at, ", ") + 2;
    snprintf(member, sizeof member, "%.*s", (int)strcspn(at, ",)"), at);
    (void)fuzz_open(format, data, size, member, most);
    return 0;
}

#endif
