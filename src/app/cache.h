/* cache.h: what the verbs of a semantic cache share. */
#ifndef CGAM_SRC_APP_CACHE_H
#define CGAM_SRC_APP_CACHE_H

#include "app/key.h"
#include "app/lm.h"

#define CGAM_PARAM_CACHE(required_, writes_)                                                       \
    CGAM_PARAM_TEXT("cache", "FILE.safetensors", "the cache; the first change makes it",           \
                    .required = required_, .writes = writes_, .input = CGAM_INPUT_CACHE)
#define CGAM_PARAMS_CACHE_MODEL CGAM_PARAM_LM_MODEL, CGAM_PARAM_EMBED_LAYER, CGAM_PARAM_EMBED_POOL

/* The time in seconds since 1970: --now, else the clock's. */
double cgam_cache_now(const cgam_call *call);
/* Opens --cache. A server's cache that nothing was put into yet is NULL. */
CGAM_NODISCARD cgam_status cgam_cache_open(cgam_call *call, cgam_semcache **out);
/* How texts become vectors: --layer and --pool, else as for the keys of the cache, which may be NULL. No model yet. */
cgam_semcache_maker cgam_cache_maker(const cgam_call *call, const cgam_semcache *cache);

#endif
