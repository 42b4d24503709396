/* Word vectors in JSON and digits in IDX files: what they say is read, and no other bytes are believed. */
#include "fetch/data.h"
#include "support/failing_alloc.h"
#include "support/one_env.h"

#include "support/owned.h"

static const char words[] =
    "{\"precision\":8,\"size\":2,\"dimensions\":2,\"words\":[\"a\",\"b\"],\"vectors\":{"
    "\"caf\\u00e9 \\\"x\\\"\":[3,4,5,1],\"-1\":[-0.5,1e0,1.11803399,0]},\"unkVector\":[0]}";

/* From a block that ends with the last byte. */
static cgam_status read_words(const char *text, size_t size, cgam_data_rows *rows)
{
    OWNED_BLOCK(char) bytes = malloc(size + (size == 0));
    assert_non_null(bytes);
    memcpy(bytes, text, size);
    cgam_file file = cgam_file_borrow(bytes, size);
    cgam_status status = cgam_data_read_words(env, "words", &file, rows);
    return status;
}

TEST_WITH(set_up, tear_down, a_word_has_the_row_of_its_rank)
{
    cgam_data_rows rows;
    CHECK_STATUS(env, read_words(words, strlen(words), &rows));
    assert_int_equal(rows.n, 2);
    assert_int_equal(rows.d, 2);
    assert_string_equal(rows.names[0], "-1");
    assert_string_equal(rows.names[1], "caf\xc3\xa9 \"x\"");
    assert_true(rows.x[0] == -0.5F && rows.x[1] == 1 && rows.x[2] == 3 && rows.x[3] == 4);
    cgam_data_rows_free(env, &rows);
    assert_null(rows.x);
}

TEST_WITH(set_up, tear_down, what_is_cut_short_is_refused)
{
    cgam_data_rows rows;
    const char *end = strstr(words, ",\"unk");
    for (size_t size = 0; size < (size_t)(end - words); size++) {
        CHECK_FAILS(env, CGAM_E_FORMAT, read_words(words, size, &rows));
        assert_null(rows.names);
    }
    /* and where the end is mended: only the last } may be ours */
    char text[sizeof words + 1];
    for (size_t size = 0; size < (size_t)(end - words); size++) {
        snprintf(text, sizeof text, "%.*s}", (int)size, words);
        const bool all = size + 1 == (size_t)(end - words);
        CHECK_FAILS(env, all ? CGAM_OK : CGAM_E_FORMAT, read_words(text, size + 1, &rows));
        cgam_data_rows_free(env, &rows);
    }
    CHECK_FAILS(env, CGAM_E_FORMAT, read_words(words, sizeof words, &rows)); /* with its NUL */
    CHECK_REFUSED(env, CGAM_E_FORMAT, "expected one JSON object", read_words("[1, {}", 6, &rows));
}

TEST_WITH(set_up, tear_down, lies_are_refused)
{
    static const struct {
        const char *from, *to, *message;
    } cases[] = {
        {"\"size\":2", "\"size\":3", "another word"},
        {"\"size\":2", "\"size\":1", "a rank is missing"},
        {"\"size\":2", "\"size\":9e99", "out of range"},
        {"\"dimensions\":2", "\"dimensions\":3", "numbers of a word"},
        {"3,4,5,1]", "3,4,5,0]", "a rank is missing"},
        {"3,4,5,1]", "3,4,5,.5]", "numbers of a word"},
        {"3,4,5,1]", "3,4,5.1,1]", "the norm"},
        {"3,4,5,1]", "3,nan,5,1]", "numbers of a word"},
        {"3,4,5,1]", "3,4,5,-1]", "a rank is missing"},
        {"caf\\u00e9", "caf\\u000a", "not a word"},
        {"3,4,5,1]", "3,4,5,0.5]", "a rank is missing"},
        {"3,4,5,1]", "3,4,5,1,", "numbers of a word"},
        {"3,4,5,1]", "3,4;5,1]", "numbers of a word"},
        {"\":[3", "\";[3", "numbers of a word"},
        {"\":[3", "\":{3", "numbers of a word"},
        {"\"caf", "caf", "expected a word"},
        {"]},\"unk", "],\"c\":[3,4,5,1]},\"unk", "more words than were announced"},
        {"\"size\":2", "\"sizes\":2", "expected size, dimensions and vectors"},
        {"\"size\":2", "\"size\":\"2\"", "expected size, dimensions and vectors"},
        {"\"dimensions\":2", "\"dimension\":2", "expected size, dimensions and vectors"},
        {"\"dimensions\":2", "\"dimensions\":null", "expected size, dimensions and vectors"},
        {"\"vectors\":{", "\"vectors\":[", "expected size, dimensions and vectors"},
        {"\"size\":2", "\"size\":0", "out of range"},
        {"\"dimensions\":2", "\"dimensions\":-2", "out of range"},
        {"\"dimensions\":2", "\"dimensions\":100001", "out of range"},
        {"caf\\u00e9", "caf\\q0e9", "not a word"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        cgam_data_rows rows;
        const char *at = strstr(words, cases[i].from);
        assert_non_null(at);
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - words), words, cases[i].to,
                 at + strlen(cases[i].from));
        CHECK_REFUSED(env, CGAM_E_FORMAT, cases[i].message, read_words(text, strlen(text), &rows));
    }
}

TEST_WITH(set_up, tear_down, digits_are_pixels_and_labels)
{
    uint8_t images[] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 0, 255, 7, 128};
    uint8_t labels[] = {0, 0, 8, 1, 0, 0, 0, 2, 9, 0};
    cgam_file image_file = cgam_file_borrow(images, sizeof images);
    cgam_file label_file = cgam_file_borrow(labels, sizeof labels);
    cgam_data_rows rows;
    CHECK_STATUS(env, cgam_data_read_digits(env, "digits", &image_file, &label_file, &rows));
    assert_true(rows.n == 2 && rows.d == 2 && rows.x[1] == 255 && rows.x[3] == 128);
    assert_string_equal(rows.names[0], "9");
    cgam_data_rows_free(env, &rows);
    for (size_t size = 0; size < sizeof images; size++) {
        image_file.size = size;
        CHECK_FAILS(env, CGAM_E_FORMAT,
                    cgam_data_read_digits(env, "digits", &image_file, &label_file, &rows));
    }
    image_file.size = sizeof images;
    label_file.size--;
    CHECK_FAILS(env, CGAM_E_FORMAT,
                cgam_data_read_digits(env, "digits", &image_file, &label_file, &rows));
    label_file.size = 7;
    CHECK_FAILS(env, CGAM_E_FORMAT,
                cgam_data_read_digits(env, "digits", &image_file, &label_file, &rows));
    label_file.size = sizeof labels;
    const struct {
        uint8_t *at, to;
        const char *message;
    } lies[] = {
        {images + 3, 1, "not IDX files of images and labels"},
        {labels + 3, 3, "not IDX files of images and labels"},
        {labels + 7, 3, "2 images of 2 pixels do not match a file of 20 bytes or its labels"},
        {images + 7, 3, "3 images of 2 pixels do not match a file of 20 bytes or its labels"},
        {images + 13, 2, "2 images of 131074 pixels do not match a file of 20 bytes or its labels"},
        {labels + 8, 10, "label 10"},
    };
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        const uint8_t was = *lies[i].at;
        *lies[i].at = lies[i].to;
        CHECK_REFUSED(env, CGAM_E_FORMAT, lies[i].message,
                      cgam_data_read_digits(env, "digits", &image_file, &label_file, &rows));
        assert_null(rows.names);
        *lies[i].at = was;
    }
    memset(images + 4, 255, 12); /* as many of everything as can be written */
    CHECK_FAILS(env, CGAM_E_FORMAT,
                cgam_data_read_digits(env, "digits", &image_file, &label_file, &rows));
    /* files that agree on nothing at all, or on images without pixels */
    memset(images + 4, 0, 12);
    memset(labels + 4, 0, 4);
    image_file.size = 16;
    label_file.size = 8;
    CHECK_REFUSED(env, CGAM_E_FORMAT, "digits: unsupported size: 0 rows of 0 numbers",
                  cgam_data_read_digits(env, "digits", &image_file, &label_file, &rows));
    images[7] = labels[7] = 2;
    label_file.size = 10;
    CHECK_REFUSED(env, CGAM_E_FORMAT, "digits: unsupported size: 2 rows of 0 numbers",
                  cgam_data_read_digits(env, "digits", &image_file, &label_file, &rows));
}

static int read_all(cgam_env *on, void *arg)
{
    (void)arg;
    cgam_data_rows rows;
    cgam_file file = cgam_file_borrow(words, strlen(words));
    cgam_status status = cgam_data_read_words(on, "words", &file, &rows);
    cgam_data_rows_free(on, &rows);
    return status;
}

TEST(survives_every_failed_allocation) { check_every_allocation(read_all, NULL); }

TEST_WITH(set_up, tear_down, sets_have_names)
{
    cgam_data_set set;
    cgam_data got;
    assert_true(cgam_data_set_find("mnist", &set) && set == CGAM_DATA_MNIST);
    assert_false(cgam_data_set_find("cifar", &set));
    CHECK_FAILS(env, CGAM_E_ARG, cgam_data_fetch(env, (cgam_data_set)7, NULL, &got));
}
