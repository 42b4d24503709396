/* Any bytes as a sum of memories, rows:7*0.5+king. What is refused is refused in one line; of what is taken, every sum has finite
 * numbers, and one sum more after it changes none of those before: each ends where the next begins. */
#include "fuzz/readers.h"

#include "app/input.h"

enum { D = 2 };
static const char names[] = "king\nman\nwoman\nx-ray\nit's\n7\n;\n''\nof 8*2\n"; /* of 9 memories */

static cgam_call *asker(const cgam_bank **bank)
{
    static cgam_call call;
    static cgam_bank *one;
    if (!one) {
        static const char *const words[] = {"--bank", "b.npy", "--names", "n", "--query", "rows:0"};
        static const cgam_memory_file file = {"n", (const uint8_t *)names, sizeof names - 1};
        static const cgam_file_overlay overlay = {&file, 1, true};
        static const double Z[9 * D] = {1,  2,  3,  -4, 5,   6,  7,  8,  -9,
                                        10, 11, 12, 13, -14, 15, 16, 17, 18};
        cgam_args *args;
        int used;
        call = (cgam_call){.env = fuzz_env()};
        call.verb = cgam_verb_find(1, &(const char *){"recall"}, &used);
        must(cgam_args_parse(call.env, call.verb, 6, words, &args) == CGAM_OK);
        call.args = args;
        must(cgam_bank_new(call.env, Z, CGAM_F64, 9, D, NULL, &one) == CGAM_OK);
        cgam_file_overlay_set(&overlay);
    }
    *bank = one;
    return &call;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char more[] = ";7";
    const cgam_bank *bank;
    cgam_call *call = asker(&bank);
    size_t prefix = strlen(CGAM_ROWS_PREFIX);
    char *text = calloc(prefix + size + sizeof more, 1);
    must(text != NULL);
    memcpy(text, CGAM_ROWS_PREFIX, prefix);
    memcpy(text + prefix, data, size);
    cgam_matrix first, second;
    if (cgam_input_vectors(call, bank, "query", text, &first) != CGAM_OK) {
        must(!first.data);
        must_be_one_line(call->env);
    } else {
        memcpy(text + strlen(text), more, sizeof more);
        must(cgam_input_vectors(call, bank, "query", text, &second) == CGAM_OK);
        must(first.columns == D && second.columns == D && second.rows == first.rows + 1);
        must(first.vector == (first.rows == 1) && !second.vector);
        for (int64_t i = 0; i < first.rows * D; i++)
            must(first.data[i] - first.data[i] == 0 && first.data[i] == second.data[i]);
        must(second.data[first.rows * D] == 15 && second.data[first.rows * D + 1] == 16);
        cgam_free(call->env, first.data);
        cgam_free(call->env, second.data);
    }
    free(text);
    return 0;
}
