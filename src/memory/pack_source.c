/* pack_source.c: opens a source of rows: a packed bank or files of arrays. */
#include "memory/pack_write.h"

void cgam_rows_source_close(cgam_env *env, cgam_rows_source *source)
{
    cgam_packed_free(source->packed);
    cgam_shards_close(env, &source->shards);
    *source = (cgam_rows_source){0};
}

cgam_status cgam_rows_source_open(cgam_env *env, const char *path, cgam_rows_source *out)
{
    *out = (cgam_rows_source){0};
    cgam_status status = cgam_packed_open(env, path, &out->packed);
    if (status == CGAM_OK && !out->packed) status = cgam_shards_open(env, path, &out->shards);
    if (status != CGAM_OK) return status;
    const cgam_packed *p = out->packed;
    const cgam_shards *s = &out->shards;
    out->rows = p ? p->live : s->rows;
    out->d = p ? p->d : s->d;
    out->dtype = p ? p->dtype : s->dtype;
    return CGAM_OK;
}
