/* gguf_write.c: files of vectors in the form of GGUF. */
#include "lm/gguf.h"

#include <string.h>

enum { ALIGN = 32 };

typedef struct writer {
    cgam_outfile *file;
    cgam_status status;
    uint64_t at;
} writer;

static void write_bytes(writer *w, const void *bytes, size_t size)
{
    if (w->status == CGAM_OK) w->status = cgam_outfile_write(w->file, bytes, size);
    w->at += size;
}

static void write_u32(writer *w, uint32_t value) { write_bytes(w, &value, sizeof value); }
static void write_u64(writer *w, uint64_t value) { write_bytes(w, &value, sizeof value); }

static void write_text(writer *w, const char *text)
{
    write_u64(w, strlen(text));
    write_bytes(w, text, strlen(text));
}

static void write_padding(writer *w)
{
    static const char zeros[ALIGN];
    write_bytes(w, zeros, (size_t)((ALIGN - w->at % ALIGN) % ALIGN));
}

cgam_status cgam_gguf_write(cgam_env *env, const char *path, int keys, const cgam_gguf_key *key,
                            int64_t count, int64_t width, const cgam_gguf_vector *vectors)
{
    writer w = {.status = CGAM_OK};
    w.status = cgam_outfile_begin(env, path, &w.file);
    if (w.status != CGAM_OK) return w.status;
    write_bytes(&w, "GGUF", 4);
    write_u32(&w, CGAM_GGUF_VERSION);
    write_u64(&w, (uint64_t)count);
    write_u64(&w, (uint64_t)keys);
    for (int i = 0; i < keys; i++) {
        write_text(&w, key[i].name);
        write_u32(&w, key[i].text ? CGAM_GGUF_TEXT : CGAM_GGUF_U32);
        if (key[i].text) write_text(&w, key[i].text);
        else write_u32(&w, key[i].number);
    }
    uint64_t one = ((uint64_t)width * sizeof(float) + ALIGN - 1) / ALIGN * ALIGN;
    for (int64_t i = 0; i < count; i++) {
        write_text(&w, vectors[i].name);
        write_u32(&w, 1); /* dimensions */
        write_u64(&w, (uint64_t)width);
        write_u32(&w, 0); /* f32 */
        write_u64(&w, (uint64_t)i * one);
    }
    write_padding(&w);
    for (int64_t i = 0; i < count; i++) {
        write_bytes(&w, vectors[i].data, (size_t)width * sizeof(float));
        write_padding(&w);
    }
    if (w.status == CGAM_OK) return cgam_outfile_commit(w.file);
    cgam_outfile_abandon(w.file);
    return w.status;
}
