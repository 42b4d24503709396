/* case.h: reads the oracle's cases, for the tests beside it.
 *
 * A case is a folder of data/ with inputs as .npy and right answers in expect.json; README.md has
 * the schema. A test walks over all cases that have the section it is about:
 *
 *     static void about_one(oracle_case *k) { ... }
 *     oracle_each("first", about_one);
 *
 * Every comparison names the case and the entry it belongs to (k->where). */
#ifndef CGAM_TESTS_ORACLE_CASE_H
#define CGAM_TESTS_ORACLE_CASE_H

#include <dirent.h>
#include <float.h>
#include <jansson.h>

#include <cgam/cgam.h>

#include "support/check.h"

typedef struct oracle_case {
    cgam_env *env;
    cgam_bank *bank; /* NULL for a case without one */
    json_t *doc;
    char name[64];
    char where[160]; /* case and entry, for messages */
    int64_t n, d, d_c, queries;
    double *Q; /* [queries, d] */
    double *C; /* [queries, d_c], or [d_c] when shared */
    bool c_shared;
    double *P, *W, *x; /* [d, d_c], [n, d_c], [n]; NULL where the case has none */
    int64_t *target;   /* [queries] */
} oracle_case;

/* ---- JSON --------------------------------------------------------------------------------- */
static inline const json_t *oracle_key(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    if (!value) fail_msg("expect.json has no key %s", key);
    return value;
}

static inline double oracle_number(const json_t *object, const char *key)
{
    const json_t *value = oracle_key(object, key);
    return json_is_null(value) ? NAN : json_number_value(value);
}

static inline int64_t oracle_int(const json_t *object, const char *key)
{
    return (int64_t)json_integer_value(oracle_key(object, key));
}

static inline bool oracle_is_null(const json_t *object, const char *key)
{
    return json_is_null(oracle_key(object, key));
}

static inline const char *oracle_text(const json_t *object, const char *key)
{
    return json_string_value(oracle_key(object, key));
}

/* A vector of the case; free() it. */
static inline double *oracle_values(const json_t *array, int64_t n)
{
    assert_int_equal(json_array_size(array), n);
    double *out = calloc((size_t)n + 1, sizeof *out);
    assert_non_null(out);
    for (int64_t i = 0; i < n; i++) out[i] = json_number_value(json_array_get(array, (size_t)i));
    return out;
}

static inline double *oracle_vector(const json_t *object, const char *key, int64_t n)
{
    return oracle_values(oracle_key(object, key), n);
}

static inline double oracle_max_abs(const double *x, int64_t n)
{
    double top = 0.0;
    for (int64_t i = 0; i < n; i++) top = fmax(top, fabs(x[i]));
    return top;
}

static inline double *oracle_zeros(int64_t n)
{
    double *out = calloc((size_t)n + 1, sizeof *out);
    assert_non_null(out);
    return out;
}

/* ---- comparisons that name their place ---------------------------------------------------- */
static inline const char *oracle_label(const oracle_case *k, const char *what)
{
    static char text[512];
    snprintf(text, sizeof text, "%s: %s", k->where, what);
    return text;
}

#define ORACLE_CLOSE(k, got, want, allowed)                                                        \
    check_close((got), (want), (allowed), oracle_label((k), #got), __FILE__, __LINE__)
#define ORACLE_CLOSE_ALL(k, got, want, n, allowed)                                                 \
    check_close_all((got), (want), (n), (allowed), oracle_label((k), #got), __FILE__, __LINE__)
#define ORACLE_LE(k, a, b) check_le((a), (b), oracle_label((k), #a), #b, __FILE__, __LINE__)
#define ORACLE_TRUE(k, condition)                                                                  \
    do {                                                                                           \
        if (!(condition)) fail_msg("%s: %s does not hold", (k)->where, #condition);                \
    } while (0)
/* got is NAN where the oracle says null, else within allowed of it. */
#define ORACLE_MAYBE(k, got, want, allowed)                                                        \
    do {                                                                                           \
        if (isnan(want)) ORACLE_TRUE(k, isnan(got));                                               \
        else ORACLE_CLOSE(k, got, want, allowed);                                                  \
    } while (0)
#define ORACLE_RUN(k, call)                                                                        \
    do {                                                                                           \
        const cgam_status status_ = (call);                                                        \
        check_status(status_, CGAM_OK, (k)->env, oracle_label((k), #call), __FILE__, __LINE__);    \
    } while (0)

/* ---- loading ------------------------------------------------------------------------------ */
static inline const char *oracle_path(const oracle_case *k, const char *file)
{
    static char path[160];
    snprintf(path, sizeof path, "tests/oracle/data/%s/%s", k->name, file);
    return check_source_path(path);
}

static inline bool oracle_has(const oracle_case *k, const char *file)
{
    FILE *f = fopen(oracle_path(k, file), "rb");
    if (f) fclose(f);
    return f != NULL;
}

/* The array as doubles, NULL when the case has no such file; shape[2] is (1, n) for a vector. */
static inline double *oracle_array(oracle_case *k, const char *file, int64_t *shape, int *ndim)
{
    if (!oracle_has(k, file)) return NULL;
    cgam_array array;
    ORACLE_RUN(k, cgam_array_open(k->env, oracle_path(k, file), &array));
    assert_in_range(array.ndim, 1, 2);
    shape[0] = array.ndim == 2 ? array.shape[0] : 1;
    shape[1] = array.shape[array.ndim - 1];
    if (ndim) *ndim = array.ndim;
    double *out = oracle_zeros(array.size);
    ORACLE_RUN(k, cgam_array_read_f64(k->env, &array, file, out));
    cgam_array_close(k->env, &array);
    return out;
}

static inline void oracle_close(oracle_case *k)
{
    cgam_bank_free(k->bank);
    cgam_env_free(k->env);
    json_decref(k->doc);
    free(k->Q);
    free(k->C);
    free(k->P);
    free(k->W);
    free(k->x);
    free(k->target);
    memset(k, 0, sizeof *k);
}

static inline void oracle_open(const char *name, oracle_case *k)
{
    memset(k, 0, sizeof *k);
    snprintf(k->name, sizeof k->name, "%s", name);
    snprintf(k->where, sizeof k->where, "%s", name);
    assert_int_equal(cgam_env_new(NULL, &k->env), CGAM_OK);
    json_error_t error;
    k->doc = json_load_file(oracle_path(k, "expect.json"), JSON_REJECT_DUPLICATES, &error);
    if (!k->doc) fail_msg("%s/expect.json:%d: %s", name, error.line, error.text);
    assert_int_equal(oracle_int(k->doc, "schema"), 1);
    if (!oracle_has(k, "Z.npy")) return;

    const json_t *bank = oracle_key(k->doc, "bank");
    cgam_bank_opts opts = cgam_bank_opts_default();
    opts.normalize = json_is_true(oracle_key(bank, "normalize"));
    ORACLE_RUN(k, cgam_bank_load(k->env, oracle_path(k, "Z.npy"), &opts, &k->bank));
    k->n = cgam_bank_describe(k->bank).n;
    k->d = cgam_bank_describe(k->bank).d;
    assert_int_equal(k->n, oracle_int(bank, "n"));
    assert_int_equal(k->d, oracle_int(bank, "d"));

    int64_t shape[2];
    int ndim = 0;
    k->Q = oracle_array(k, "Q.npy", shape, NULL);
    k->queries = k->Q ? shape[0] : 0;
    k->C = oracle_array(k, "C.npy", shape, &ndim);
    k->c_shared = ndim == 1;
    k->d_c = k->C ? shape[1] : 0;
    k->P = oracle_array(k, "P.npy", shape, NULL);
    k->W = oracle_array(k, "W.npy", shape, NULL);
    k->x = oracle_array(k, "x.npy", shape, NULL);
    const json_t *targets = json_object_get(k->doc, "targets");
    if (!targets) return;
    assert_int_equal(json_array_size(targets), k->queries);
    k->target = calloc((size_t)k->queries, sizeof *k->target);
    assert_non_null(k->target);
    for (int64_t i = 0; i < k->queries; i++)
        k->target[i] = (int64_t)json_integer_value(json_array_get(targets, (size_t)i));
}

static inline int oracle_order(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Calls `each` for every case whose expect.json has the section, in the order of their names. */
static inline void oracle_each(const char *section, void (*each)(oracle_case *k))
{
    char *names[256];
    size_t count = 0;
    int64_t visited = 0;
    DIR *dir = opendir(check_source_path("tests/oracle/data"));
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir)) && count < 256;)
        if (entry->d_name[0] != '.') names[count++] = strdup(entry->d_name);
    closedir(dir);
    qsort(names, count, sizeof *names, oracle_order);
    for (size_t i = 0; i < count; i++) {
        oracle_case k;
        oracle_open(names[i], &k);
        if (json_object_get(k.doc, section)) {
            each(&k);
            visited++;
        }
        oracle_close(&k);
        free(names[i]);
    }
    assert_true(visited > 0);
}

/* ---- inputs and tolerances ---------------------------------------------------------------- */
/* Entry i of a section, with its place noted for messages. */
static inline const json_t *oracle_entry(oracle_case *k, const char *section, size_t i)
{
    const json_t *entry = json_array_get(oracle_key(k->doc, section), i);
    const json_t *name = json_object_get(entry, "alpha_name");
    snprintf(k->where, sizeof k->where, "%s, %s %zu%s%s", k->name, section, i,
             name ? ", alpha " : "", name ? json_string_value(name) : "");
    return entry;
}

/* u[n] of one query: W c, or Z P c. */
static inline double *oracle_input(oracle_case *k, int64_t query)
{
    const double *c = k->C + (k->c_shared ? 0 : query * k->d_c);
    double *u = oracle_zeros(k->n), *v = oracle_zeros(k->d);
    for (int64_t i = 0; k->W && i < k->n; i++)
        for (int64_t j = 0; j < k->d_c; j++) u[i] += k->W[i * k->d_c + j] * c[j];
    if (!k->W) {
        for (int64_t i = 0; i < k->d; i++)
            if (!k->P) v[i] = c[i];
            else
                for (int64_t j = 0; j < k->d_c; j++) v[i] += k->P[i * k->d_c + j] * c[j];
        ORACLE_RUN(k, cgam_bank_score(k->bank, v, u));
    }
    free(v);
    return u;
}

/* The rows as doubles [n, d], widened and normalised by the bank; free() it. */
static inline double *oracle_rows(oracle_case *k)
{
    double *Z = oracle_zeros(k->n * k->d);
    for (int64_t i = 0; i < k->n; i++) ORACLE_RUN(k, cgam_bank_row(k->bank, i, Z + i * k->d));
    return Z;
}

/* 1e-10 relative, and what rounding may do: `unit` bounds the effect of one unit of relative error
 * in every inner product (README.md); 8 of them for products of a few dozen terms. */
static inline double oracle_allowed(double size, double unit)
{
    return 1e-10 * fmax(1.0, size) + 8.0 * DBL_EPSILON * unit;
}

#endif
