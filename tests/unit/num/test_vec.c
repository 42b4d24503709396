/* ctest: labels=threads */
/* Vectors and reductions: the plain loops over all rows, the same bits on two ranks, NaN and a status where a link breaks. */
#include "num/ranks.h"
#include "support/two_ranks.h"

#include "support/one_env.h"

#include <pthread.h>

#include "support/owned.h"

enum { N = 2600, D = 2, NUMBERS = 40 };
static double x[N], y[N];

static void fill_vectors(void)
{
    for (int i = 0; i < N; i++) {
        x[i] = sin(7.0 * i) * exp(cos(3.0 * i));
        y[i] = cos(11.0 * i) + 0.3;
    }
    x[40] = x[2500] = 9; /* a largest number in each half */
    y[2000] = -0.0;
}

/* What every rank is to get: numbers of all kinds. */
static cgam_status reduce_all(cgam_env *e, const cgam_rows *Z, double *out)
{
    int k = 0;
    double total, top, low;
    cgam_sum2 exact;
    cgam_peak peak;
    const int64_t rows[] = {N - 1, 3, 1700};
    double *work = cgam_vec_new(e, Z, 2), *second = work ? cgam_vec_next(Z, work) : NULL;
    if (!work) return CGAM_E_NOMEM;
    cgam_vec_copy(Z, work, x);
    cgam_vec_scale(Z, work, 3);
    cgam_vec_fill(Z, second, -2);
    cgam_vec_put(Z, second, 3, rows, (const double[]){5, 6, 7});
    out[k++] = cgam_vec_sum(Z, x);
    out[k++] = cgam_vec_dot(Z, work, y);
    out[k++] = cgam_vec_norm(Z, x);
    out[k++] = cgam_vec_max(Z, x);
    out[k++] = cgam_vec_min(Z, x);
    out[k++] = cgam_vec_max_abs(Z, second);
    out[k++] = cgam_vec_max_diff(Z, x, y);
    out[k] = (double)cgam_vec_max_row(Z, x, &out[k + 1]);
    k += 2;
    CGAM_REDUCE(Z, i, CGAM_MAX(top), CGAM_SUM(total), CGAM_MIN(low), CGAM_SUM2(exact),
                CGAM_PEAK(peak)) {
        top = fmax(top, y[i]);
        low = fmin(low, x[i] * y[i]);
        total += x[i] * x[i];
        cgam_sum2_add(&exact, x[i]);
        cgam_peak_take(&peak, -fabs(y[i]), i);
    }
    out[k++] = top;
    out[k++] = total;
    out[k++] = low;
    out[k++] = exact.high + exact.low;
    out[k++] = peak.value;
    out[k++] = peak.row;
    cgam_status status = cgam_vec_pick(Z, second, 3, rows, out + k);
    k += 3;
    if (status == CGAM_OK)
        status = cgam_vec_pick_row(Z, 1700, 3, (const double *[]){x, NULL, second}, out + k);
    k += 3;
    double *all = malloc(N * sizeof *all);
    if (status == CGAM_OK) status = all ? cgam_vec_gather(Z, second, all) : CGAM_E_NOMEM;
    for (int i = 0; i < 3 && status == CGAM_OK; i++) out[k + i] = all[rows[i] - (i == 2)];
    free(all);
    cgam_vec_free(e, Z, work);
    return status == CGAM_OK ? cgam_rows_status(Z) : status;
}

static cgam_rows rows_of(void)
{
    return (cgam_rows){.dtype = CGAM_F64, .n = N, .d = D, .stride = D, .cpu = cgam_cpu_best()};
}

TEST_WITH(set_up, tear_down, one_process_agrees_with_plain_loops)
{
    cgam_rows Z = rows_of();
    double got[NUMBERS] = {0}, sum = 0, dot = 0, square = 0, low = 0, top = y[0];
    long double exact = 0;
    for (int i = 0; i < N; i++) {
        sum += x[i], exact += x[i];
        dot += 3 * x[i] * y[i], square += x[i] * x[i];
        low = fmin(low, x[i] * y[i]), top = fmax(top, y[i]);
    }
    CHECK_STATUS(env, reduce_all(env, &Z, got));
    CHECK_CLOSE(got[0], sum, 1e-11);
    CHECK_CLOSE(got[1], dot, 1e-10);
    CHECK_REL(got[2], sqrt(square), 1e-13);
    CHECK_CLOSE(got[3], 9, 0);
    CHECK_CLOSE(got[5], 7, 0);
    CHECK_CLOSE(got[7], 40, 0); /* the first of two */
    CHECK_CLOSE(got[8], 9, 0);
    CHECK_CLOSE(got[9], top, 0);
    CHECK_CLOSE(got[10], square, 1e-10);
    CHECK_CLOSE(got[11], low, 0);
    CHECK_CLOSE(got[12], (double)exact, 0x1p-53 * fabs((double)exact));
    CHECK_CLOSE(got[14], 2000, 0);
    const double picked[] = {5, 6, 7, x[1700], 0, 7, 5, 6, -2};
    CHECK_CLOSE_ALL(got + 15, picked, 9, 0);
    double least = cgam_vec_min(&Z, x), most = 0;
    for (int i = 0; i < N; i++) most = fmax(most, fabs(x[i] - y[i])), assert_true(x[i] >= least);
    CHECK_CLOSE(got[6], most, 0);
    assert_true(isnan(cgam_vec_norm(&Z, (x[5] = NAN, x))));
    CHECK_CLOSE(cgam_vec_max(&Z, x), 9, 0); /* NaN is skipped */
    fill_vectors();
}

typedef struct part {
    seat seat;
    double got[NUMBERS];
    cgam_status status;
    int64_t size, bytes;
} part;

static void *work_of_rank(void *arg)
{
    part *p = arg;
    cgam_ranks ranks = ranks_of(&p->seat);
    OWNED(cgam_env) own = object_env(1);
    cgam_rows Z = rows_of();
    cgam_shard *shard = NULL;
    assert_int_equal(cgam_shard_new(own, &ranks, &Z, &shard), CGAM_OK);
    Z.shard = shard;
    p->size = cgam_vec_size(&Z);
    p->status = cgam_ranks_end(own, &ranks, reduce_all(own, &Z, p->got));
    p->bytes = ranks.traffic.bytes;
    leave(p->seat.line);
    cgam_shard_free(own, shard);
    return NULL;
}

static int64_t run_ranks(int64_t break_at, part *parts)
{
    pthread_t other;
    line link = {
        .lock = PTHREAD_MUTEX_INITIALIZER, .met = PTHREAD_COND_INITIALIZER, .at = break_at};
    for (int r = 0; r < RANKS; r++) parts[r] = (part){.seat = {&link, r}};
    assert_int_equal(pthread_create(&other, NULL, work_of_rank, parts + 1), 0);
    work_of_rank(parts);
    assert_int_equal(pthread_join(other, NULL), 0);
    assert_false(link.alone);
    return link.meetings;
}

TEST_WITH(set_up, tear_down, two_ranks_have_the_bits_of_one)
{
    cgam_rows Z = rows_of();
    double want[NUMBERS] = {0};
    part parts[RANKS];
    CHECK_STATUS(env, reduce_all(env, &Z, want));
    int64_t meetings = run_ranks(0, parts);
    for (int r = 0; r < RANKS; r++) {
        assert_int_equal(parts[r].status, CGAM_OK);
        assert_true(parts[r].size < N);
        assert_memory_equal(parts[r].got, want, sizeof want);
    }
    for (int64_t at = 1; at < meetings; at++) {
        run_ranks(at, parts);
        assert_int_equal(parts[0].status, CGAM_E_IO);
        assert_int_equal(parts[1].status, CGAM_E_IO);
    }
    run_ranks(1, parts);
    for (int r = 0; r < RANKS; r++)
        for (int k = 0; k < 7; k++) assert_true(isnan(parts[r].got[k]));
}

int main(void)
{
    fill_vectors();
    return check_run_tests();
}
