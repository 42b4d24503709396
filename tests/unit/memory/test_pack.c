/* Packed banks: the answers of the rows they were made from, bit for bit; changed, the file that packing anew would give;
 * damaged, refused or harmless.
 * ctest: timeout=240 */
#include "io/array.h"
#include "memory/bank.h"
#include "memory/pack.h"
#include "support/check.h"
#include "support/dense.h"
#include "support/failing_alloc.h"
#include "support/objects.h"
#include "unit/io/scratch.h"

#include <cgam/bank.h>
#include <cgam/io.h>
#include <sys/wait.h>

#include "support/owned.h"

enum { N = 60, D = 9, MORE = 5, QUERIES = 3, TOP = 4 };
static const double alphas[] = {0.05, 2.5};

static const char *rows_file(const char *name, int64_t n, const double *Z)
{
    OWNED(cgam_env) env = new_env();
    const char *path = scratch(name);
    CHECK_STATUS(env, cgam_npy_write(env, path, CGAM_F64, 2, (int64_t[]){n, D}, Z));
    return path;
}

static const char *names_file(const char *name, char letter, int64_t n)
{
    char text[4096];
    int used = 0;
    for (int64_t i = 0; i < n; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, "%c%d\n", letter, (int)i % 50);
    return put(name, text, (size_t)used);
}

static cgam_pack_opts all_parts(const char *names)
{
    cgam_pack_opts o = cgam_pack_opts_default();
    o.alphas = 2;
    o.alpha = alphas;
    o.names = names;
    return o;
}

typedef struct answer {
    cgam_result results[QUERIES];
    int64_t index[QUERIES * TOP];
    double top_p[QUERIES * TOP], readout[QUERIES * D];
} answer;

static cgam_status ask(const cgam_bank *bank, const cgam_recall_opts *o, const double *q,
                       const double *c, answer *out)
{
    OWNED(cgam_recall) plan = NULL;
    TRY(cgam_recall_new(bank, o, &plan));
    cgam_recall_in in = {.queries = QUERIES, .q = q, .c = c};
    cgam_recall_out to = {.results = out->results,
                          .top = TOP,
                          .top_index = out->index,
                          .top_p = out->top_p,
                          .readout = o->fast ? NULL : out->readout};
    memset(out, 0, sizeof *out);
    TRY(cgam_recall_run(plan, &in, &to));
    return CGAM_OK;
}

/* The t-th way to recall. */
static cgam_recall_opts way(int t)
{
    cgam_recall_opts o = cgam_recall_opts_default();
    o.mode = (cgam_mode[]){CGAM_FIRST, CGAM_COUPLED, CGAM_FIRST, CGAM_FLOW, CGAM_ANNEAL}[t % 5];
    o.alpha = t % 3 == 0 ? 0 : o.mode == CGAM_FIRST && t % 2 ? alphas[1] : alphas[0];
    o.beta = 3;
    o.t_max = 3;
    o.fast = o.mode == CGAM_FIRST && t % 10 < 5;
    o.none = o.mode == CGAM_FIRST && t % 4 == 2;
    return o;
}

TEST(a_packed_bank_answers_as_its_rows)
{
    OWNED(cgam_env) env = object_env(2);
    for (int t = 0; t < 48; t++) {
        cgam_rng rng = cgam_rng_stream(60, (uint64_t)t);
        dense_kind kind = (dense_kind)(t % DENSE_KINDS);
        int64_t n = t % 7 == 6 ? 6 : N; /* fewer rows than columns: dense inside */
        double *Z = dense_bank(&rng, kind, n, D);
        double *q = dense_normals(&rng, QUERIES * D, 1), *c = dense_normals(&rng, D, 1);
        const char *from = rows_file("Z.npy", n, Z), *packed = scratch("Z.safetensors");
        cgam_bank_opts how = {.normalize = t % 4 == 1 && kind != DENSE_ZEROS};
        cgam_pack_opts o = all_parts(NULL);
        o.normalize = how.normalize;
        CHECK_STATUS(env, cgam_pack(env, from, &o, packed));
        OWNED(cgam_bank) plain = NULL;
        OWNED(cgam_bank) bank = NULL;
        CHECK_STATUS(env, cgam_bank_load(env, from, &how, &plain));
        CHECK_STATUS(env, cgam_bank_load(env, packed, NULL, &bank));
        assert_true(cgam_bank_describe(bank).sketch && cgam_bank_describe(bank).mapped);
        assert_int_equal(cgam_pack_describe(bank).alphas, 2);
        cgam_recall_opts recall = way(t);
        static answer got, want;
        cgam_status status = ask(plain, &recall, q, c, &want);
        assert_int_equal(ask(bank, &recall, q, c, &got), status);
        if (status == CGAM_OK) assert_memory_equal(&got, &want, sizeof got);
        dense_reset();
    }
}

static void same_bytes(const char *a, const char *b)
{
    size_t size_a, size_b;
    uint8_t *x = get(a, &size_a), *y = get(b, &size_b);
    assert_int_equal(size_a, size_b);
    assert_memory_equal(x, y, size_a);
    free(x);
    free(y);
}

TEST(changes_give_the_file_that_packing_anew_gives)
{
    OWNED(cgam_env) env = object_env(2);
    cgam_rng rng = cgam_rng_stream(61, 0);
    double *Z = dense_bank(&rng, DENSE_NORMS, N + MORE, D);
    double *two = dense_normals(&rng, 2 * D, 3); /* longer: the sketch has other units */
    const char *bank = scratch("bank.safetensors"), *anew = scratch("anew.safetensors");
    cgam_pack_opts o = all_parts(names_file("all.names", 'a', N + MORE));
    CHECK_STATUS(env, cgam_pack(env, rows_file("all.npy", N + MORE, Z), &o, anew));
    /* add: the names of the added rows go on where those of the others end */
    char text[256] = "";
    for (int i = N; i < N + MORE; i++) snprintf(text + strlen(text), 8, "a%d\n", i % 50);
    o.names = names_file("some.names", 'a', N);
    CHECK_STATUS(env, cgam_pack(env, rows_file("some.npy", N, Z), &o, bank));
    CHECK_STATUS(env, cgam_pack_add(env, bank, rows_file("more.npy", MORE, Z + N * D),
                                    put_text("more.names", text)));
    same_bytes(bank, anew);
    /* put */
    CHECK_STATUS(env, cgam_pack_put(env, bank, rows_file("two.npy", 2, two), 2, (int64_t[]){N, 7}));
    memcpy(Z + N * D, two, D * sizeof *Z);
    memcpy(Z + 7 * D, two + D, D * sizeof *Z);
    o.names = scratch("all.names");
    CHECK_STATUS(env, cgam_pack(env, rows_file("all.npy", N + MORE, Z), &o, anew));
    same_bytes(bank, anew);
    /* drop, and pack from what is left */
    uint64_t mask[2] = {UINT64_C(1) << 7 | UINT64_C(1) << 30, 1};
    CHECK_STATUS(env, cgam_pack_drop(env, bank, N + MORE, mask));
    int64_t live = 0;
    char kept[4096] = "";
    for (int i = 0; i < N + MORE; i++) {
        if (i == 7 || i == 30 || i == 64) continue;
        memmove(Z + live++ * D, Z + i * D, D * sizeof *Z);
        snprintf(kept + strlen(kept), 8, "a%d\n", i % 50);
    }
    cgam_bank *dropped;
    CHECK_STATUS(env, cgam_bank_load(env, bank, NULL, &dropped));
    assert_int_equal(cgam_bank_describe(dropped).n, live);
    assert_int_equal(cgam_bank_describe(dropped).whole, N + MORE);
    assert_int_equal(cgam_bank_number(dropped, 7), 8);
    cgam_row_names *names;
    CHECK_STATUS(env, cgam_pack_names(dropped, &names));
    assert_string_equal(cgam_row_names_at(names, 8), "a8");
    assert_string_equal(cgam_row_names_at(names, 7), "");
    assert_int_equal(cgam_row_names_find(names, "a7"), 57);
    assert_int_equal(cgam_row_names_find(names, ""), -1);
    cgam_row_names_free(names);
    cgam_bank_free(dropped);
    o.names = NULL;
    const char *compact = scratch("compact.safetensors");
    CHECK_STATUS(env, cgam_pack(env, bank, &o, compact));
    o.names = put_text("kept.names", kept);
    CHECK_STATUS(env, cgam_pack(env, rows_file("kept.npy", live, Z), &o, anew));
    same_bytes(compact, anew);
    /* the numbers of what is added after a drop go on from the largest ever given */
    CHECK_STATUS(env, cgam_pack_add(env, bank, scratch("more.npy"), scratch("more.names")));
    CHECK_STATUS(env, cgam_bank_load(env, bank, NULL, &dropped));
    assert_int_equal(cgam_bank_describe(dropped).whole, N + 2 * MORE);
    assert_int_equal(cgam_bank_number(dropped, live), N + MORE);
    cgam_bank_free(dropped);
    dense_reset();
}

/* A bank with rows dropped against a plain one that has no others. */
TEST(a_dropped_memory_takes_no_part)
{
    OWNED(cgam_env) env = object_env(2);
    for (int t = 0; t < 20; t++) {
        cgam_rng rng = cgam_rng_stream(62, (uint64_t)t);
        double *Z = dense_bank(&rng, DENSE_NORMS, N, D), *few = dense_room(N * D);
        double *q = dense_normals(&rng, QUERIES * D, 1), *c = dense_normals(&rng, D, 1);
        uint64_t mask[1] = {0};
        int64_t number[N], live = 0;
        for (int64_t i = 0; i < N; i++) {
            if (cgam_rng_below(&rng, 3) == 0) mask[0] |= UINT64_C(1) << i;
            else {
                memcpy(few + live * D, Z + i * D, D * sizeof *few);
                number[live++] = i;
            }
        }
        const char *packed = scratch("Z.safetensors");
        cgam_pack_opts o = all_parts(NULL);
        CHECK_STATUS(env, cgam_pack(env, rows_file("Z.npy", N, Z), &o, packed));
        CHECK_STATUS(env, cgam_pack_drop(env, packed, N, mask));
        OWNED(cgam_bank) bank = NULL;
        OWNED(cgam_bank) plain = object_bank(env, live, D, few);
        CHECK_STATUS(env, cgam_bank_load(env, packed, NULL, &bank));
        cgam_recall_opts recall = way(t);
        static answer got, want;
        cgam_status status = ask(plain, &recall, q, c, &want);
        assert_int_equal(ask(bank, &recall, q, c, &got), status);
        if (status == CGAM_OK) {
            for (int k = 0; k < QUERIES; k++) {
                cgam_result *r = &want.results[k];
                if (r->winner >= 0) r->winner = number[r->winner];
                if (r->focus >= 0) r->focus = number[r->focus];
            }
            for (int k = 0; k < QUERIES * TOP; k++) want.index[k] = number[want.index[k]];
            assert_memory_equal(&got, &want, sizeof got);
        }
        dense_reset();
    }
}

TEST_ENV(rows_are_converted_and_shards_joined)
{
    cgam_rng rng = cgam_rng_stream(63, 0);
    double *Z = dense_bank(&rng, DENSE_GAUSS, N, D);
    float *Z32 = (float *)dense_room(N * D);
    for (int i = 0; i < N * D; i++) Z32[i] = (float)Z[i];
    int64_t first[] = {20, D}, second[] = {N - 20, D};
    const cgam_named_array a = {"x", CGAM_F32, 2, first, Z32};
    const cgam_named_array b = {"y", CGAM_F32, 2, second, Z32 + 20 * D};
    const cgam_named_array wide = {"z", CGAM_F64, 2, second, Z + 20 * D};
    CHECK_STATUS(env, cgam_arrays_write(env, scratch("1.safetensors"), 1, &a));
    CHECK_STATUS(env, cgam_arrays_write(env, scratch("2.safetensors"), 1, &b));
    CHECK_STATUS(env, cgam_arrays_write(env, scratch("3.safetensors"), 1, &wide));
    cgam_pack_opts o = cgam_pack_opts_default();
    const char *out = scratch("joined.safetensors"), *whole = scratch("whole.safetensors");
    const char *index = put_text("model.index.json",
                                 "{\"metadata\": {}, \"weight_map\": {\"x\": \"1.safetensors\", "
                                 "\"y\": \"2.safetensors\"}}");
    CHECK_STATUS(env, cgam_pack(env, index, &o, out));
    o.dtype = (int)CGAM_F32; /* rounds f64 as a cast does */
    CHECK_STATUS(env, cgam_pack(env, rows_file("Z.npy", N, Z), &o, whole));
    same_bytes(out, whole);
    char one[600];
    snprintf(one, sizeof one, "%s:y", index);
    CHECK_STATUS(env, cgam_pack(env, one, &o, out));
    cgam_bank *bank;
    CHECK_STATUS(env, cgam_bank_load(env, out, NULL, &bank));
    assert_int_equal(cgam_bank_describe(bank).n, N - 20);
    cgam_bank_free(bank);
    index = put_text("mixed.index.json", "{\"weight_map\": {\"x\": \"1.safetensors\", \"z\": "
                                         "\"3.safetensors\"}}");
    o.dtype = -1;
    CHECK_REFUSED(env, CGAM_E_ARG, "several types", cgam_pack(env, index, &o, out));
    o.dtype = (int)CGAM_F32;
    CHECK_STATUS(env, cgam_pack(env, index, &o, out));
    same_bytes(out, whole);
    index = put_text("up.index.json", "{\"weight_map\": {\"x\": \"../1.safetensors\"}}");
    CHECK_FAILS(env, CGAM_E_FORMAT, cgam_pack(env, index, &o, out));
    CHECK_FAILS(env, CGAM_E_FORMAT, cgam_pack(env, put_text("no.json", "{}"), &o, out));
    /* more than are converted at a time */
    enum { LONG = 5000 };
    double *many = dense_normals(&rng, LONG * D, 1);
    CHECK_STATUS(env, cgam_pack(env, rows_file("Z.npy", LONG, many), &o, out));
    CHECK_STATUS(env, cgam_bank_load(env, out, NULL, &bank));
    for (int64_t i = 0; i < LONG; i += 833) {
        double row[D];
        CHECK_STATUS(env, cgam_bank_row(bank, i, row));
        for (int j = 0; j < D; j++) assert_true(row[j] == (double)(float)many[i * D + j]);
    }
    cgam_bank_free(bank);
    dense_reset();
}

TEST_ENV(what_does_not_fit_is_refused)
{
    cgam_rng rng = cgam_rng_stream(64, 0);
    double *Z = dense_bank(&rng, DENSE_GAUSS, N, D);
    const char *from = scratch("Z.npy"), *out = scratch("Z.safetensors");
    rows_file("Z.npy", N, Z);
    cgam_pack_opts o = all_parts(names_file("few.names", 'a', N - 1));
    CHECK_REFUSED(env, CGAM_E_SHAPE, "59 names for 60 rows", cgam_pack(env, from, &o, out));
    o.names = NULL;
    CHECK_FAILS(env, CGAM_E_ARG, cgam_pack(env, from, &o, scratch("Z.npz")));
    CHECK_STATUS(env, cgam_pack(env, from, &o, out));
    CHECK_REFUSED(env, CGAM_E_ARG, "not a packed bank", cgam_pack_add(env, from, from, NULL));
    CHECK_FAILS(env, CGAM_E_NOT_FOUND, cgam_pack_add(env, scratch("none.safetensors"), from, NULL));
    CHECK_FAILS(env, CGAM_E_ARG, cgam_pack_add(env, out, from, scratch("few.names")));
    CHECK_FAILS(env, CGAM_E_SHAPE, cgam_pack_put(env, out, from, 1, (int64_t[]){0}));
    CHECK_STATUS(env, cgam_npy_write(env, scratch("two.npy"), CGAM_F64, 2, (int64_t[]){2, D}, Z));
    CHECK_FAILS(env, CGAM_E_ARG, cgam_pack_put(env, out, scratch("two.npy"), 2, (int64_t[]){0, N}));
    CHECK_REFUSED(env, CGAM_E_ARG, "memory 3 is given twice",
                  cgam_pack_put(env, out, scratch("two.npy"), 2, (int64_t[]){3, 3}));
    CHECK_STATUS(env, cgam_npy_write(env, scratch("thin.npy"), CGAM_F64, 2, (int64_t[]){2, 3}, Z));
    CHECK_REFUSED(env, CGAM_E_SHAPE, "thin.npy: d = 3, the bank has d = 9",
                  cgam_pack_add(env, out, scratch("thin.npy"), NULL));
    cgam_bank *plain;
    const char *damaged;
    CHECK_STATUS(env, cgam_bank_load(env, from, NULL, &plain));
    CHECK_REFUSED(env, CGAM_E_ARG, "only packed banks have digests",
                  cgam_pack_check(plain, &damaged));
    cgam_bank_free(plain);
    uint64_t none[1] = {0}, all[1] = {UINT64_MAX};
    CHECK_REFUSED(env, CGAM_E_SHAPE, "the mask has 59 entries, the bank has 60 memories",
                  cgam_pack_drop(env, out, N - 1, none));
    CHECK_FAILS(env, CGAM_E_ARG, cgam_pack_drop(env, out, N, none));
    CHECK_FAILS(env, CGAM_E_ARG, cgam_pack_drop(env, out, N, all));
    Z[5 * D + 2] = NAN;
    CHECK_REFUSED(env, CGAM_E_VALUE, "nan at row 65, column 2",
                  cgam_pack_add(env, out, rows_file("nan.npy", N, Z), NULL));
    dense_reset();
}

/* Flips each byte in turn, into every eighth also each of its bits. */
TEST_ENV(no_damaged_byte_passes_a_check_or_crashes)
{
    cgam_rng rng = cgam_rng_stream(65, 0);
    enum { SMALL = 5, WIDE = 3 };
    double *Z = dense_bank(&rng, DENSE_DUPLICATES, SMALL, WIDE);
    double *q = dense_normals(&rng, WIDE, 1), *c = dense_normals(&rng, WIDE, 1);
    CHECK_STATUS(env,
                 cgam_npy_write(env, scratch("Z.npy"), CGAM_F64, 2, (int64_t[]){SMALL, WIDE}, Z));
    cgam_pack_opts o = all_parts(names_file("Z.names", 'n', SMALL));
    const char *path = scratch("Z.safetensors");
    CHECK_STATUS(env, cgam_pack(env, scratch("Z.npy"), &o, path));
    uint64_t one[1] = {4};
    CHECK_STATUS(env, cgam_pack_drop(env, path, SMALL, one));
    size_t size;
    uint8_t *bytes = get(path, &size);
    int refused = 0, found = 0, strange = 0;
    for (size_t i = 0; i < size; i++) {
        /* the header's padding is one like the other */
        if (bytes[i] == ' ' && i > 9 && bytes[i - 1] == ' ' && i % 512) continue;
        uint8_t flip = (uint8_t)(1u << i % 8), before = bytes[i];
        bytes[i] ^= i % 3 == 2 ? 0xff : flip;
        put("Z.safetensors", bytes, size);
        bytes[i] = before;
        OWNED(cgam_bank) bank = NULL;
        if (cgam_bank_load(env, path, NULL, &bank) != CGAM_OK) {
            refused++;
            continue;
        }
        const char *damaged;
        if (!cgam_pack_describe(bank).packed)
            refused++; /* the format's name itself: another file */
        else {
            CHECK_STATUS(env, cgam_pack_check(bank, &damaged));
            if (!damaged) fail_msg("byte %zu of %zu: not noticed", i, size);
            found++;
        }
        cgam_row_names *names;
        if (cgam_pack_names(bank, &names) == CGAM_OK) cgam_row_names_free(names);
        for (int t = 0; t < 4; t++) {
            cgam_recall_opts recall = cgam_recall_opts_default();
            cgam_result r;
            recall.alpha = (double[]){0, alphas[0], alphas[0], alphas[1]}[t];
            recall.mode = t == 1 ? CGAM_COUPLED : CGAM_FIRST;
            recall.fast = t == 3;
            if (cgam_bank_describe(bank).d != WIDE) break;
            cgam_status status = cgam_recall_once(bank, q, c, &recall, &r);
            if (status == CGAM_OK) assert_true(isfinite(r.p) || r.end != CGAM_END_DIRECT);
            else strange++;
        }
    }
    assert_true(refused > 100 && found > 1000 && strange > 10);
    free(bytes);
    dense_reset();
}

/* The header with one text in place of another; what it pads itself with gives the room. */
static uint8_t *reworded(const uint8_t *bytes, size_t size, const char *from, const char *to)
{
    uint64_t length;
    memcpy(&length, bytes, sizeof length);
    const size_t begin = sizeof length, end = begin + (size_t)length;
    const char *at = memmem(bytes + begin, length, from, strlen(from));
    assert_non_null(at);
    const size_t before = (size_t)(at - (const char *)bytes), after = before + strlen(to);
    uint8_t *out = malloc(size);
    assert_non_null(out);
    memcpy(out, bytes, size);
    memset(out + before, ' ', end - before);
    memcpy(out + before, to, strlen(to));
    size_t rest = end - before - strlen(from);
    while (after + rest > end) {
        assert_int_equal(((const uint8_t *)at)[strlen(from) + rest - 1], ' ');
        rest--;
    }
    memcpy(out + after, at + strlen(from), rest);
    return out;
}

TEST_ENV(a_header_that_says_something_else_is_refused_with_its_reason)
{
#define ROWS "\"rows\":{\"dtype\":\"F64\",\"shape\":"
#define SKETCH "\"sketch.rows\":{\"dtype\":\"I8\",\"shape\":"
    static const struct {
        const char *from, *to, *message;
    } cases[] = {
        {"cgam bank 1", "cgam bank 2", "'cgam bank 2'"},
        {"\"n\":\"60\"", "\"m\":\"60\"", "of memories"},
        {"\"n\":\"60\"", "\"n\":\"0\"", "of memories"},
        {"\"n\":\"60\"", "\"n\":\"6o\"", "of memories"},
        {"\"n\":\"60\"", "\"n\":\"6000000000000000000\"", "of memories"},
        {"\"n\":\"60\"", "\"n\":\"61\"", "number is missing"},
        {"\"no\"", "\"on\"", "normalize is neither"},
        {"\"0.05\"", "\"-0.5\"", "alpha0 is no"},
        {"\"0.05\"", "\"inf\"", "alpha0 is no"},
        {"\"0.05\"", "\"\"", "alpha0 is no"},
        {"\"rows\":{", "\"cols\":{", "rows are missing"},
        {"\"rows\":{\"dtype\":\"F64\"", "\"rows\":{\"dtype\":\"I64\"", "rows are missing"},
        {ROWS "[60,9]", ROWS "[540]", "or number of dimensions"},
        {ROWS "[60,9]", ROWS "[9,60]", "norm2 does not have the size of the bank"},
        {SKETCH "[60,9]", SKETCH "[9,60]", "sketch.rows"},
        {SKETCH "[60,9]", SKETCH "[540]", "sketch.rows"},
        {"\"names\":{\"dtype\":\"U8\"", "\"names\":{\"dtype\":\"I8\"", "names has the wrong type"},
        {"\"twins.begin\":{\"dtype\":\"I64\"", "\"twins.begin\":{\"dtype\":\"F64\"",
         "twins.begin has the wrong type"},
        {"\"twins.member\":{", "\"twins.others\":{", "twins.member is missing"},
    };
    cgam_rng rng = cgam_rng_stream(68, 0);
    double *Z = dense_bank(&rng, DENSE_DUPLICATES, N, D);
    cgam_pack_opts o = all_parts(names_file("Z.names", 'n', N));
    const char *path = scratch("Z.safetensors");
    CHECK_STATUS(env, cgam_pack(env, rows_file("Z.npy", N, Z), &o, path));
    size_t size;
    uint8_t *bytes = get(path, &size);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t *other = reworded(bytes, size, cases[i].from, cases[i].to);
        put("Z.safetensors", other, size);
        free(other);
        cgam_bank *bank = NULL;
        CHECK_REFUSED(env, i ? CGAM_E_FORMAT : CGAM_E_UNSUPPORTED, cases[i].message,
                      cgam_bank_load(env, path, NULL, &bank));
        assert_null(bank);
    }
    free(bytes);
    dense_reset();
}

/* Writes x over number `index` of the rows. */
static void damage(const char *path, int64_t index, double x)
{
    uint64_t header;
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    assert_int_equal(fread(&header, sizeof header, 1, f), 1);
    assert_int_equal(
        fseek(f, (long)(sizeof header + header + (uint64_t)index * sizeof x), SEEK_SET), 0);
    assert_int_equal(fwrite(&x, sizeof x, 1, f), 1);
    assert_int_equal(fclose(f), 0);
}

/* A bank that is too large to be looked over when it is opened. */
TEST(a_score_that_is_not_finite_is_an_error)
{
    enum { LARGE = 30000, ROW = 20000 };
    OWNED(cgam_env) env = object_env(2);
    cgam_rng rng = cgam_rng_stream(66, 0);
    double *Z = dense_bank(&rng, DENSE_GAUSS, LARGE, D), *q = dense_normals(&rng, 8 * D, 1);
    for (int j = 0; j < D; j++)
        Z[ROW * D + j] *= 10; /* its own winner, so that a sketch leaves it open */
    const char *path = scratch("large.safetensors");
    cgam_pack_opts o = cgam_pack_opts_default();
    CHECK_STATUS(env, cgam_pack(env, rows_file("large.npy", LARGE, Z), &o, path));
    const double bad[] = {NAN, INFINITY, -INFINITY};
    double *p = dense_room(8 * LARGE);
    for (int t = 0; t < 15; t++) {
        OWNED(cgam_bank) bank = NULL;
        cgam_recall *plan = NULL;
        damage(path, ROW * D + 3, bad[t % 3]);
        CHECK_STATUS(env, cgam_bank_load(env, path, NULL, &bank));
        cgam_recall_opts recall = cgam_recall_opts_default();
        cgam_result r[8];
        recall.mode = t / 3 == 3 ? CGAM_COUPLED : CGAM_FIRST;
        recall.fast = t / 3 == 4;
        cgam_gate *gate = NULL;
        cgam_gate_opts cheap = cgam_gate_opts_default();
        cheap.critical = &(cgam_critical){.alpha = INFINITY, INFINITY, INFINITY, true};
        CHECK_STATUS(env, cgam_gate_new(bank, 0, &cheap, &gate));
        recall.gate = gate;
        CHECK_STATUS(env, cgam_recall_new(bank, &recall, &plan));
        cgam_recall_in in = {.queries = t / 3 == 1 ? 8 : 1, .q = recall.fast ? Z + ROW * D : q};
        cgam_recall_out out = {.results = r, .p = t / 3 == 2 ? p : NULL};
        CHECK_REFUSED(env, CGAM_E_VALUE, "is not finite", cgam_recall_run(plan, &in, &out));
        cgam_recall_free(plan);
        cgam_gate_free(gate);
        recall = cgam_recall_opts_default(); /* a gate that reads the rows itself */
        recall.alpha = 0.1;
        CHECK_FAILS(env, CGAM_E_VALUE, cgam_recall_once(bank, q, q, &recall, r));
    }
    /* a small one is looked over */
    rows_file("Z.npy", N, Z);
    CHECK_STATUS(env, cgam_pack(env, scratch("Z.npy"), &o, path));
    damage(path, 17 * D + 3, NAN);
    cgam_bank *bank;
    CHECK_REFUSED(env, CGAM_E_VALUE, "nan at row 17, column 3",
                  cgam_bank_load(env, path, NULL, &bank));
    dense_reset();
}

static int pack_and_change(cgam_env *env, void *arg)
{
    const char *const *files = arg;
    uint64_t one[1] = {2};
    cgam_pack_opts o = all_parts(files[1]);
    if (files[4]) o.dtype = (int)CGAM_F32;
    OWNED(cgam_bank) bank = NULL;
    OWNED(cgam_row_names) names = NULL;
    cgam_result r;
    const char *damaged;
    static const double q[D] = {1};
    cgam_recall_opts recall = cgam_recall_opts_default();
    recall.alpha = alphas[0];
    recall.mode = CGAM_COUPLED;
    TRY(cgam_pack(env, files[0], &o, files[2]));
    TRY(cgam_pack_add(env, files[2], files[0], files[1]));
    TRY(cgam_pack_drop(env, files[2], 2 * D, one));
    TRY(cgam_pack_put(env, files[2], files[3], 2, (int64_t[]){0, 5}));
    TRY(cgam_bank_load(env, files[2], NULL, &bank));
    TRY(cgam_pack_names(bank, &names));
    TRY(cgam_pack_check(bank, &damaged));
    TRY(cgam_recall_once(bank, q, NULL, &recall, &r));
    return CGAM_OK;
}

TEST(every_allocation_may_fail)
{
    cgam_rng rng = cgam_rng_stream(67, 0);
    for (int i = 0; i < 2; i++) { /* and with rows that are converted, some of them alike */
        double *Z = dense_bank(&rng, i ? DENSE_DUPLICATES : DENSE_NORMS, D, D);
        const char *files[] = {rows_file("Z.npy", D, Z), names_file("Z.names", 'a', D),
                               scratch("fail.safetensors"), rows_file("two.npy", 2, Z),
                               i ? "f32" : NULL};
        assert_true(check_every_allocation(pack_and_change, (void *)(uintptr_t)files) > 100);
        dense_reset();
    }
}

/* In memory where that can be had: hundreds of banks are synced. */
static int setup(void **state)
{
    folder_in_memory();
    return scratch_setup(state);
}

TEST_GROUP(setup, scratch_teardown)
