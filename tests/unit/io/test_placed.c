/* Arrays that are written in any order. */
#include "lm/placed.h"
#include "support/check.h"
#include "support/failing_alloc.h"
#include "support/objects.h"

#include <unistd.h>

static char path[80];

static const char *name(const char *ending)
{
    snprintf(path, sizeof path, "/tmp/cgam-placed-%d%s", (int)getpid(), ending);
    return path;
}

TEST_ENV(stretches_find_their_places)
{
    float numbers[24];
    const int32_t words[] = {7, 8, 9};
    for (int i = 0; i < 24; i++) numbers[i] = (float)i;
    const cgam_named_array arrays[] = {{"a", CGAM_F32, 3, (const int64_t[]){2, 3, 4}, NULL},
                                       {"b", CGAM_I32, 1, (const int64_t[]){3}, NULL}};
    for (int count = 1; count <= 2; count++) {
        cgam_placed *p;
        CHECK_STATUS(env, cgam_placed_begin(env, name(count == 1 ? ".npy" : ".safetensors"), count,
                                            arrays, &p));
        CHECK_STATUS(env, cgam_placed_put(p, 0, 16, 8, numbers + 16));
        if (count == 2) CHECK_STATUS(env, cgam_placed_put(p, 1, 0, 3, words));
        CHECK_STATUS(env, cgam_placed_put(p, 0, 0, 4, numbers));
        CHECK_STATUS(env, cgam_placed_put(p, 0, 4, 12, numbers + 4));
        assert_int_not_equal(access(path, F_OK), 0); /* nothing before the end */
        CHECK_STATUS(env, cgam_placed_finish(p));
        cgam_array array;
        char member[96];
        snprintf(member, sizeof member, "%s%s", path, count == 1 ? "" : ":a");
        CHECK_STATUS(env, cgam_array_open(env, member, &array));
        assert_int_equal(array.ndim, 3);
        assert_int_equal(array.shape[1], 3);
        assert_memory_equal(array.data, numbers, sizeof numbers);
        cgam_array_close(env, &array);
        unlink(path);
    }
}

TEST_ENV(what_is_missing_or_beyond_is_named)
{
    const float number = 1;
    const cgam_named_array array = {"a", CGAM_F32, 1, (const int64_t[]){3}, NULL};
    const cgam_named_array twice[] = {array, array};
    cgam_placed *p;
    CHECK_STATUS(env, cgam_placed_begin(env, name(".npy"), 1, &array, &p));
    CHECK_FAILS(env, CGAM_E_SHAPE, cgam_placed_put(p, 0, 3, 1, &number));
    CHECK_FAILS(env, CGAM_E_SHAPE, cgam_placed_put(p, 0, -1, 1, &number));
    CHECK_FAILS(env, CGAM_E_SHAPE, cgam_placed_put(p, 0, 0, -1, &number));
    CHECK_STATUS(env, cgam_placed_put(p, 0, 1, 1, &number));
    CHECK_REFUSED(env, CGAM_E_SHAPE, "2 elements are missing", cgam_placed_finish(p));
    assert_int_not_equal(access(path, F_OK), 0);
    CHECK_FAILS(env, CGAM_E_ARG, cgam_placed_begin(env, name(".npy"), 2, twice, &p));
    CHECK_FAILS(env, CGAM_E_ARG, cgam_placed_begin(env, name(".txt"), 1, &array, &p));
    assert_int_not_equal(access(path, F_OK), 0);
}

static int put_one(cgam_env *env, void *ending)
{
    const float number = 1;
    const cgam_named_array array = {"a", CGAM_F32, 1, (const int64_t[]){1}, NULL};
    cgam_placed *p;
    cgam_status status = cgam_placed_begin(env, name(ending), 1, &array, &p);
    if (status == CGAM_OK) status = cgam_placed_put(p, 0, 0, 1, &number);
    if (status == CGAM_OK) status = cgam_placed_finish(p);
    if (status != CGAM_OK) assert_int_not_equal(access(path, F_OK), 0);
    unlink(path);
    return status;
}

TEST(running_out_of_memory_leaves_no_file)
{
    char npy[] = ".npy", safetensors[] = ".safetensors";
    assert_true(check_every_allocation(put_one, npy) >= 4);
    assert_true(check_every_allocation(put_one, safetensors) >= 4);
}

TEST_ENV(a_shape_that_is_none_is_refused_and_nothing_begun_may_be_abandoned)
{
    const cgam_named_array array = {"a", CGAM_F32, 1, (const int64_t[]){-3}, NULL};
    cgam_placed *p;
    CHECK_FAILS(env, CGAM_E_SHAPE, cgam_placed_begin(env, name(".npy"), 1, &array, &p));
    assert_null(p);
    cgam_placed_abandon(p);
}
