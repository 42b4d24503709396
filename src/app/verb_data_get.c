/* verb_data_get.c: word vectors and digits, fetched once into the user's cache. */
#include "app/params.h"
#include "app/progress.h"
#include "app/verbs.h"

static const cgam_param params[] = {
    CGAM_PARAM_CHOICE("SET", "glove|mnist", NULL,
                      "glove: 341,479 words as 100 numbers each; mnist: 70,000 handwritten digits",
                      .required = true),
    CGAM_PARAM_END,
};

static cgam_status run(cgam_call *call)
{
    cgam_data_set set;
    cgam_data got;
    cgam_line line;
    (void)cgam_data_set_find(cgam_args_text(call->args, "SET"), &set);
    cgam_progress progress = cgam_line_begin(&line, call->progress);
    cgam_status status = cgam_data_fetch(call->env, set, &progress, &got);
    cgam_line_clear(&line);
    if (status != CGAM_OK) return status;
    json_t *banks = json_array();
    for (int64_t i = 0; i < got.count; i++) {
        json_t *bank = json_object();
        cgam_json_put_text(bank, "bank", got.bank[i].rows);
        cgam_json_put_text(bank, "names", got.bank[i].names);
        cgam_json_put_int(bank, "n", got.bank[i].n);
        cgam_json_put_int(bank, "d", got.bank[i].d);
        json_array_append_new(banks, bank);
    }
    cgam_json_put_text(call->doc, "set", cgam_data_set_name(set));
    cgam_json_put_bool(call->doc, "fetched", got.fetched);
    cgam_json_put(call->doc, "banks", banks);
    return CGAM_OK;
}

static void print(const json_t *doc, FILE *to)
{
    const json_t *banks = json_object_get(doc, "banks");
    bool fetched = json_is_true(json_object_get(doc, "fetched"));
    for (size_t i = 0; i < json_array_size(banks); i++) {
        const json_t *bank = json_array_get(banks, i);
        fprintf(to, "bank   %s (%lld x %lld, %s)\nnames  %s\n", cgam_json_get_text(bank, "bank"),
                (long long)cgam_json_get_int(bank, "n"), (long long)cgam_json_get_int(bank, "d"),
                fetched ? "fetched and checked" : "was there", cgam_json_get_text(bank, "names"));
    }
}

const cgam_verb cgam_verb_data_get = {
    .name = "data get",
    .local = true,
    .summary = "fetch a real bank into the cache: word vectors or digits",
    .about =
        "Fetches a set through npm at an exact version, checks its digest, and keeps it in "
        "$XDG_CACHE_HOME/cgam or ~/.cache/cgam as .npy with a file of names, one a line and "
        "row. What is there is left alone. A fetch that was interrupted goes on from there, in the "
        "middle of an archive where curl is at hand; two at once take turns.\n\n"
        "glove: GloVe word vectors (Pennington, Socher and Manning 2014), the most frequent word "
        "first, f32; 118 MB to fetch. mnist: MNIST (LeCun, Cortes and Burges), 10,000 digits of "
        "the test set in mnist.npy and 60,000 of the training set in mnist-train.npy, 784 pixels "
        "of 0 to 255 each, f16; names are the digits; 11 MB to fetch.",
    .example = "cgam data get mnist",
    .params = params,
    .run = run,
    .print = print,
};
