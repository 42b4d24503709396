/* semcache.h (inside): a semantic cache: texts by the vectors of their keys, one .safetensors file.
 *
 * The file is a packed bank (pack.h) of the keys, normalised, so that scores are cosines and every verb with --bank reads
 * it, and beside the rows
 *
 *   cache.begin   I64 [3 n + 1]   where key, value and tenant of each entry begin in
 *   cache.text    U8              their bytes; the key is empty if it was given as a vector
 *   cache.time    F64 [n, 2]      seconds since 1970 when it was put, and how long it lives (0: forever)
 *
 * and in the metadata "cache", "d", "model", "layer", "pool", "threshold". A look-up is a recall of mode first
 * among the entries of one tenant that are alive, with a ghost memory whose score is the threshold. Tenants are therefore
 * a filter: entries of others have no weight, no rank and no influence on any number of the answer.
 *
 * A change writes the file anew, without entries that have expired, and renames it over the old one, under a lock. So
 * readers see the cache before or after a change, and a killed writer leaves the old one. A change costs the file. */
#ifndef CGAM_SRC_MEMORY_SEMCACHE_H
#define CGAM_SRC_MEMORY_SEMCACHE_H

#include <cgam/recall.h>

#define CGAM_SEMCACHE_FORMAT "cgam cache 1"
#define CGAM_SEMCACHE_THRESHOLD 0.9 /* until one is calibrated */

/* How texts of keys become vectors; model "": keys are vectors. */
typedef struct cgam_semcache_maker {
    char model[256]; /* name of the file */
    int64_t layer;   /* of its blocks; -1: the last */
    char pool[8];    /* "last" or "mean" */
} cgam_semcache_maker;

typedef struct cgam_semcache_info {
    int64_t n, d; /* entries, also expired ones; columns, 0 in an empty cache */
    uint64_t bytes;
    double threshold; /* calibrated; else NAN */
    cgam_semcache_maker maker;
} cgam_semcache_info;

typedef struct cgam_semcache_entry {
    const char *key, *value, *tenant; /* key "": it was given as a vector */
    const float *vector;              /* [d] */
    double time, ttl;                 /* when it was put; 0 = lives forever */
} cgam_semcache_entry;

typedef struct cgam_semcache cgam_semcache;

/* Opens a cache for reading; it maps the file, so it stays as it was when it is replaced. CGAM_E_NOT_FOUND if there is
 * no file. */
CGAM_NODISCARD cgam_status cgam_semcache_open(cgam_env *env, const char *path, cgam_semcache **out);
void cgam_semcache_free(cgam_semcache *cache); /* NULL is allowed */
cgam_semcache_info cgam_semcache_describe(const cgam_semcache *cache);
cgam_semcache_entry cgam_semcache_at(const cgam_semcache *cache,
                                     int64_t i); /* borrowed from the cache */
bool cgam_semcache_lives(const cgam_semcache_entry *entry, double now);

/* Fails unless keys of `maker` can be compared with those of `old`: vectors of two models, or of two layers of one, have
 * nothing to do with each other. A vector that the user has made may be from the cache's model. */
CGAM_NODISCARD cgam_status cgam_semcache_fits(cgam_env *env, const char *name,
                                              const cgam_semcache_maker *old,
                                              const cgam_semcache_maker *maker);

typedef struct cgam_semcache_query {
    const float *vector; /* [d], not zero */
    const char *tenant;
    double now, threshold, beta;
} cgam_semcache_query;
typedef struct cgam_semcache_hit {
    int64_t among;           /* live entries of the tenant */
    int64_t best;            /* the entry with the largest score; -1: there is none */
    bool hit;                /* its score is at least the threshold */
    double score, p, p_none; /* of best; the weight of the ghost, 1 if there is no entry */
} cgam_semcache_hit;
/* Consumes the cache, whose entries stay readable until cgam_semcache_free; one query per open cache. */
CGAM_NODISCARD cgam_status cgam_semcache_get(cgam_semcache *cache, const cgam_semcache_query *query,
                                             cgam_semcache_hit *out);

/* What a change did. */
typedef struct cgam_semcache_change {
    int64_t replaced, dropped, expired; /* entries */
} cgam_semcache_change;

/* Adds an entry [d], in place of one of the same tenant and key; makes the file if necessary. The maker must be that of the
 * other entries. */
CGAM_NODISCARD cgam_status cgam_semcache_put(cgam_env *env, const char *path,
                                             const cgam_semcache_entry *entry, int64_t d,
                                             const cgam_semcache_maker *maker,
                                             cgam_semcache_change *done);
/* Which entries go: those that agree in all that is given. All NULL: only the expired ones. */
typedef struct cgam_semcache_choice {
    const char *tenant, *key;
    const float *vector; /* [d] */
    int64_t d;
} cgam_semcache_choice;
CGAM_NODISCARD cgam_status cgam_semcache_drop(cgam_env *env, const char *path,
                                              const cgam_semcache_choice *which, double now,
                                              cgam_semcache_change *done);
/* Keeps a calibrated threshold, and the maker it belongs to, in the cache; makes the file if necessary. */
CGAM_NODISCARD cgam_status cgam_semcache_set(cgam_env *env, const char *path, double threshold,
                                             const cgam_semcache_maker *maker, double now);

#endif
