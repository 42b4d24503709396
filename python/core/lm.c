/* lm.c: language models - tokens, states, text, the lens, vectors. One thread at a time may use a model;
 * the Python side sees to that. */
#include "core.h"

#include <string.h>

static field info_fields[] = {
    {"layers", 'q', offsetof(cgam_lm_info, layers), NULL, NULL},
    {"width", 'q', offsetof(cgam_lm_info, width), NULL, NULL},
    {"vocab", 'q', offsetof(cgam_lm_info, vocab), NULL, NULL},
    {"context", 'q', offsetof(cgam_lm_info, context), NULL, NULL},
    {"parameters", 'q', offsetof(cgam_lm_info, parameters), NULL, NULL},
    {"tied", 'b', offsetof(cgam_lm_info, tied), NULL, NULL},
    {"exact", 'b', offsetof(cgam_lm_info, exact), NULL, NULL},
    {NULL, 0, 0, NULL, NULL},
};

/* model_open(path or None, threads) */
static PyObject *model_open(PyObject *self, PyObject *args)
{
    (void)self;
    const char *path;
    int threads;
    if (!PyArg_ParseTuple(args, "zi:model_open", &path, &threads)) return NULL;
    env_box *box = env_take(threads);
    handle *h = box ? handle_new(MODEL, box, NULL) : NULL;
    if (!h) return NULL;
    cgam_lm *lm = NULL;
    call c;
    call_begin(&c);
    cgam_status status = cgam_lm_open(box->env, path, &lm);
    call_end(&c);
    h->it = lm;
    if (status == CGAM_OK) return (PyObject *)h;
    raise_status(box->env, status);
    Py_DECREF(h);
    return NULL;
}

static PyObject *model_info(PyObject *self, PyObject *object)
{
    (void)self;
    const cgam_lm *lm = handle_it(object, MODEL);
    if (!lm) return NULL;
    cgam_lm_info info = cgam_lm_describe(lm);
    PyObject *dict = fields_dict(info_fields, &info);
    const char *const texts[][2] = {
        {"name", info.name}, {"architecture", info.architecture}, {"file", info.file}};
    for (int i = 0; dict && i < 3; i++) {
        PyObject *text =
            PyUnicode_DecodeUTF8(texts[i][1], (Py_ssize_t)strlen(texts[i][1]), "replace");
        if (!text || PyDict_SetItemString(dict, texts[i][0], text) != 0) Py_CLEAR(dict);
        Py_XDECREF(text);
    }
    return dict;
}

static PyObject *tokens_list(cgam_lm *lm, int32_t *tokens, int64_t count)
{
    PyObject *list = PyList_New(0);
    for (int64_t i = 0; list && i < count; i++) {
        PyObject *token = PyLong_FromLong(tokens[i]);
        if (!token || PyList_Append(list, token) != 0) Py_CLEAR(list);
        Py_XDECREF(token);
    }
    cgam_lm_tokens_free(lm, tokens);
    return list;
}

/* tokenize(model, text, begin) */
static PyObject *tokenize(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *object;
    const char *text;
    int begin;
    int32_t *tokens = NULL;
    int64_t count = 0;
    if (!PyArg_ParseTuple(args, "Osp:tokenize", &object, &text, &begin)) return NULL;
    handle *h = handle_of(object, MODEL);
    if (!h) return NULL;
    call c;
    call_begin_brief(&c);
    cgam_status status = cgam_lm_tokenize(h->it, text, begin != 0, &tokens, &count);
    call_end_brief(&c);
    return status == CGAM_OK ? tokens_list(h->it, tokens, count)
                             : raise_status(h->box->env, status);
}

/* chat(model, ((role, text), ..)) -> tokens, by the model's own template */
static PyObject *chat(PyObject *self, PyObject *args)
{
    (void)self;
    enum { MESSAGES = 64 };
    PyObject *object, *given;
    cgam_lm_message messages[MESSAGES];
    int32_t *tokens = NULL;
    int64_t count = 0;
    if (!PyArg_ParseTuple(args, "OO!:chat", &object, &PyTuple_Type, &given)) return NULL;
    handle *h = handle_of(object, MODEL);
    Py_ssize_t n = PyTuple_Size(given);
    if (!h) return NULL;
    if (n < 1 || n > MESSAGES) return PyErr_Format(PyExc_ValueError, "%zd messages", n);
    for (Py_ssize_t i = 0; i < n; i++)
        if (!PyArg_ParseTuple(PyTuple_GetItem(given, i), "ss", &messages[i].role,
                              &messages[i].text))
            return NULL;
    call c;
    call_begin_brief(&c);
    cgam_status status = cgam_lm_chat(h->it, n, messages, &tokens, &count);
    call_end_brief(&c);
    return status == CGAM_OK ? tokens_list(h->it, tokens, count)
                             : raise_status(h->box->env, status);
}

/* piece(model, token) -> bytes */
static PyObject *piece(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *object;
    int token;
    char text[512];
    if (!PyArg_ParseTuple(args, "Oi:piece", &object, &token)) return NULL;
    const cgam_lm *lm = handle_it(object, MODEL);
    if (!lm) return NULL;
    if (token < 0 || token >= cgam_lm_describe(lm).vocab)
        return PyErr_Format(PyExc_ValueError, "token %d, there are %lld", token,
                            (long long)cgam_lm_describe(lm).vocab);
    return PyBytes_FromString(cgam_lm_piece(lm, token, text, sizeof text));
}

/* ---- what a run needs ------------------------------------------------------------------------- */

enum { EDITS = ARRAYS - 4 };

/* From a tuple of (layer, replace, where, from, to, scale, vector f32). */
static int edits_of(const cgam_lm *lm, PyObject *tuple, arrays *a, cgam_lm_edit *edits)
{
    Py_ssize_t count = PyTuple_Size(tuple);
    if (count > EDITS) {
        PyErr_Format(PyExc_ValueError, "edits: %zd, at most %d go into a call", count, EDITS);
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *vector;
        const char *where;
        long long layer, from, to;
        int replace;
        int64_t size;
        cgam_lm_edit *e = &edits[i];
        *e = cgam_lm_edit_default();
        if (!PyArg_ParseTuple(PyTuple_GetItem(tuple, i), "LpsLLdO", &layer, &replace, &where, &from,
                              &to, &e->scale, &vector))
            return -1;
        bool known = cgam_lm_where_find(where, &e->where);
        e->vector = array_raw_in(a, vector, "vector", sizeof(float), &size);
        if (!e->vector || !known || size != cgam_lm_describe(lm).width) {
            if (!PyErr_Occurred())
                PyErr_Format(PyExc_ValueError, "edit %zd: %s", i,
                             known ? "the vector has another width" : "no such positions");
            return -1;
        }
        e->layer = layer;
        e->kind = replace ? CGAM_LM_REPLACE : CGAM_LM_ADD;
        e->from = from;
        e->to = to;
    }
    return (int)count;
}

/* Where the states of prompts go: out[which] [layers, tokens, width]. */
typedef struct collector {
    int64_t layers, width, count;
    Py_buffer *out;
    const cgam_lm_prompt *prompts;
    bool all;
} collector;

static cgam_status collect(void *user, const cgam_lm_span *span)
{
    const collector *k = user;
    int64_t tokens = k->all ? k->prompts[span->which].count : 1, first = k->all ? span->first : 0;
    float *to = k->out[span->which].buf;
    for (int64_t l = 0; l < k->layers; l++)
        memcpy(to + (l * tokens + first) * k->width, span->states + l * span->count * k->width,
               (size_t)(span->count * k->width) * sizeof *to);
    return CGAM_OK;
}

static void release_all(Py_buffer *views, int64_t count)
{
    for (int64_t i = 0; i < count; i++) PyBuffer_Release(&views[i]);
}

/* Buffers of a list of arrays, each of so many bytes (bytes NULL: any); how many were taken. */
static int64_t acquire_list(PyObject *list, Py_buffer *views, int flags, Py_ssize_t itemsize)
{
    Py_ssize_t count = PyList_Size(list);
    for (Py_ssize_t i = 0; i < count; i++) {
        if (PyObject_GetBuffer(PyList_GetItem(list, i), &views[i],
                               flags | PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) != 0)
            return i;
        if (views[i].itemsize == itemsize) continue;
        PyErr_SetString(PyExc_ValueError, "an array of another type");
        return i + 1;
    }
    return count;
}

static int check_outputs(const collector *k)
{
    for (int64_t i = 0; i < k->count; i++) {
        int64_t tokens = k->all ? k->prompts[i].count : 1;
        if (k->prompts[i].count < 1 ||
            k->out[i].len != k->layers * tokens * k->width * (int64_t)sizeof(float)) {
            PyErr_Format(PyExc_ValueError, "prompt %lld: no tokens, or no room for them",
                         (long long)i);
            return -1;
        }
    }
    return 0;
}

/* observe(model, [tokens i32], layers i64 or None, all, exact, edits, [out f32]) */
static PyObject *observe(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *object, *tokens_in, *layers_in, *edits_in, *out_in;
    int all, exact;
    if (!PyArg_ParseTuple(args, "OO!OppO!O!:observe", &object, &PyList_Type, &tokens_in, &layers_in,
                          &all, &exact, &PyTuple_Type, &edits_in, &PyList_Type, &out_in))
        return NULL;
    handle *h = handle_of(object, MODEL);
    Py_ssize_t count = PyList_Size(tokens_in);
    if (!h) return NULL;
    if (count < 1 || PyList_Size(out_in) != count)
        return PyErr_Format(PyExc_ValueError, "prompts: there are none");
    Py_buffer *views = PyMem_Calloc((size_t)count * 2, sizeof *views);
    cgam_lm_prompt *prompts = PyMem_Calloc((size_t)count, sizeof *prompts);
    cgam_lm_edit edits[EDITS];
    arrays a = {0};
    cgam_status status = CGAM_OK;
    int64_t tokens = 0, outs = 0;
    if (!views || !prompts) PyErr_NoMemory();
    else tokens = acquire_list(tokens_in, views, PyBUF_SIMPLE, 4);
    if (!PyErr_Occurred()) outs = acquire_list(out_in, views + count, PyBUF_WRITABLE, 4);
    if (!PyErr_Occurred()) {
        cgam_lm_info info = cgam_lm_describe(h->it);
        cgam_lm_observe_opts o = cgam_lm_observe_opts_default();
        for (Py_ssize_t i = 0; i < count; i++)
            prompts[i] = (cgam_lm_prompt){views[i].buf, views[i].len / 4};
        o.layers = array_raw_in(&a, layers_in, "layers", 8, &o.layers_count);
        o.all_tokens = all != 0;
        o.run.exact = exact != 0;
        o.run.edits.edit = edits;
        o.run.edits.count = PyErr_Occurred() ? -1 : edits_of(h->it, edits_in, &a, edits);
        collector k = {o.layers ? o.layers_count : info.layers + 1,
                       info.width,
                       count,
                       views + count,
                       prompts,
                       all != 0};
        if (o.run.edits.count >= 0 && check_outputs(&k) == 0) {
            call c;
            call_begin(&c);
            status = cgam_lm_observe(h->it, count, prompts, &o, collect, &k);
            call_end(&c);
        }
    }
    arrays_release(&a);
    if (views) {
        release_all(views, tokens);
        release_all(views + count, outs);
    }
    PyMem_Free(views);
    PyMem_Free(prompts);
    if (PyErr_Occurred()) return NULL;
    if (status != CGAM_OK) return raise_status(h->box->env, status);
    Py_RETURN_NONE;
}

/* ---- text ------------------------------------------------------------------------------------- */

static field generate_fields[] = {
    {"exact", 'b', offsetof(cgam_lm_generate_opts, exact), NULL, NULL},
    {"max_tokens", 'q', offsetof(cgam_lm_generate_opts, max_tokens), NULL, NULL},
    {"temperature", 'd', offsetof(cgam_lm_generate_opts, temperature), NULL, NULL},
    {"top_p", 'd', offsetof(cgam_lm_generate_opts, top_p), NULL, NULL},
    {"seed", 'q', offsetof(cgam_lm_generate_opts, seed), NULL, NULL},
    {NULL, 0, 0, NULL, NULL},
};

static PyObject *text_tuple(const cgam_lm_text *text)
{
    PyObject *tokens = PyList_New(0);
    for (int64_t i = 0; tokens && i < text->count; i++) {
        PyObject *one = Py_BuildValue("idd", (int)text->tokens[i].id, text->tokens[i].log_p,
                                      text->tokens[i].neff);
        if (!one || PyList_Append(tokens, one) != 0) Py_CLEAR(tokens);
        Py_XDECREF(one);
    }
    return tokens ? Py_BuildValue("yNs", text->text ? text->text : "", tokens,
                                  cgam_lm_stop_name(text->stop))
                  : NULL;
}

/* generate(model, tokens i32, options, stop words, edits) -> (text, [(id, log_p, neff)], stop) */
static PyObject *generate(PyObject *self, PyObject *args)
{
    (void)self;
    enum { STOPS = 16 };
    PyObject *object, *tokens_in, *options, *stop_in, *edits_in, *out = NULL;
    const char *stop[STOPS];
    if (!PyArg_ParseTuple(args, "OOO!O!O!:generate", &object, &tokens_in, &PyDict_Type, &options,
                          &PyTuple_Type, &stop_in, &PyTuple_Type, &edits_in))
        return NULL;
    handle *h = handle_of(object, MODEL);
    if (!h) return NULL;
    cgam_lm_generate_opts o = cgam_lm_generate_opts_default();
    cgam_lm_edit edits[EDITS];
    cgam_lm_prompt prompt = {0};
    cgam_lm_text text = {0};
    arrays a = {0};
    if (fields_set(generate_fields, options, &o) != 0) return NULL;
    o.stop_count = PyTuple_Size(stop_in);
    if (o.stop_count > STOPS)
        return PyErr_Format(PyExc_ValueError, "stop: at most %d words", STOPS);
    for (int64_t i = 0; i < o.stop_count; i++)
        if (!(stop[i] = text_of(PyTuple_GetItem(stop_in, i)))) return NULL;
    o.stop = stop;
    o.edits.edit = edits;
    prompt.tokens = array_raw_in(&a, tokens_in, "tokens", 4, &prompt.count);
    o.edits.count = prompt.tokens ? edits_of(h->it, edits_in, &a, edits) : -1;
    if (o.edits.count >= 0) {
        call c;
        call_begin(&c);
        cgam_status status = cgam_lm_generate(h->it, 1, &prompt, &o, &text);
        call_end(&c);
        if (status != CGAM_OK) raise_status(h->box->env, status);
        else if (text.stop == CGAM_LM_STOP_INTERRUPT) raise_status(h->box->env, CGAM_E_INTERRUPTED);
        else out = text_tuple(&text);
        cgam_lm_texts_free(h->it, 1, &text);
    }
    arrays_release(&a);
    return out;
}

/* score(model, prompt i32, [continuation i32], exact, out f64) */
static PyObject *score(PyObject *self, PyObject *args)
{
    (void)self;
    enum { CANDIDATES = 256 };
    PyObject *object, *prompt_in, *list, *out_in;
    int exact;
    cgam_lm_candidate candidate[CANDIDATES];
    Py_buffer views[CANDIDATES];
    if (!PyArg_ParseTuple(args, "OOO!pO:score", &object, &prompt_in, &PyList_Type, &list, &exact,
                          &out_in))
        return NULL;
    handle *h = handle_of(object, MODEL);
    Py_ssize_t count = PyList_Size(list);
    if (!h) return NULL;
    if (count < 1 || count > CANDIDATES)
        return PyErr_Format(PyExc_ValueError, "continuations: 1 to %d", CANDIDATES);
    arrays a = {0};
    cgam_lm_prompt prompt = {0};
    cgam_status status = CGAM_OK;
    int64_t taken = acquire_list(list, views, PyBUF_SIMPLE, 4);
    if (!PyErr_Occurred()) prompt.tokens = array_raw_in(&a, prompt_in, "prompt", 4, &prompt.count);
    double *out = PyErr_Occurred() ? NULL : array_out(&a, out_in, "out", count);
    if (out) {
        cgam_lm_capture_opts o = cgam_lm_capture_opts_default();
        o.exact = exact != 0;
        for (Py_ssize_t i = 0; i < count; i++)
            candidate[i] = (cgam_lm_candidate){0, views[i].buf, views[i].len / 4};
        call c;
        call_begin(&c);
        status = cgam_lm_score(h->it, 1, &prompt, count, candidate, &o, out);
        call_end(&c);
    }
    arrays_release(&a);
    release_all(views, taken);
    if (PyErr_Occurred()) return NULL;
    if (status != CGAM_OK) return raise_status(h->box->env, status);
    Py_RETURN_NONE;
}

/* ---- the unembedding and the lens ------------------------------------------------------------- */

/* model_bank(model, lens, dtype) -> a bank */
static PyObject *model_bank(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *object;
    const char *lens_name, *dtype_name;
    cgam_lens_kind lens;
    cgam_dtype dtype;
    if (!PyArg_ParseTuple(args, "Oss:model_bank", &object, &lens_name, &dtype_name)) return NULL;
    handle *model = handle_of(object, MODEL);
    if (!model) return NULL;
    if (!cgam_lens_kind_find(lens_name, &lens) || !cgam_dtype_find(dtype_name, &dtype))
        return PyErr_Format(PyExc_ValueError, "lens '%s', dtype '%s'", lens_name, dtype_name);
    model->box->refs++;
    handle *h = handle_new(BANK, model->box, NULL);
    if (!h) return NULL;
    cgam_bank *bank = NULL;
    call c;
    call_begin(&c);
    cgam_status status = cgam_lm_bank(model->it, lens, dtype, &bank);
    call_end(&c);
    h->it = bank;
    if (status == CGAM_OK) return (PyObject *)h;
    raise_status(model->box->env, status);
    Py_DECREF(h);
    return NULL;
}

static PyObject *lens_new(PyObject *self, PyObject *object)
{
    (void)self;
    handle *model = handle_of(object, MODEL);
    if (!model) return NULL;
    model->box->refs++;
    handle *h = handle_new(LENS, model->box, object);
    if (!h) return NULL;
    cgam_lens *lens = NULL;
    call c;
    call_begin(&c);
    cgam_status status = cgam_lens_new(model->it, &lens);
    call_end(&c);
    h->it = lens;
    if (status == CGAM_OK) return (PyObject *)h;
    raise_status(model->box->env, status);
    Py_DECREF(h);
    return NULL;
}

static PyObject *view_dict(const cgam_lens_view *v)
{
    int64_t cells = v->tokens * v->layers;
    return Py_BuildValue("LLLy#y#y#", (long long)v->layers, (long long)v->tokens, (long long)v->top,
                         v->token, (Py_ssize_t)(v->tokens * (int64_t)sizeof *v->token), v->cells,
                         (Py_ssize_t)(cells * (int64_t)sizeof *v->cells), v->words,
                         (Py_ssize_t)(cells * v->top * (int64_t)sizeof *v->words));
}

/* lens_view(lens, text, kind, top, exact) -> (layers, tokens, top, ids, cells, words), the last three bytes */
static PyObject *lens_view(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *object;
    const char *text, *lens_kind;
    long long top;
    int exact;
    cgam_lens_view_opts o = cgam_lens_view_opts_default();
    if (!PyArg_ParseTuple(args, "OssLp:lens_view", &object, &text, &lens_kind, &top, &exact))
        return NULL;
    handle *h = handle_of(object, LENS);
    if (!h) return NULL;
    if (!cgam_lens_kind_find(lens_kind, &o.kind))
        return PyErr_Format(PyExc_ValueError, "lens '%s'", lens_kind);
    o.top = top;
    o.exact = exact != 0;
    cgam_lens_view view = {0};
    call c;
    call_begin(&c);
    cgam_status status = cgam_lens_view_make(((handle *)h->keep)->it, h->it, text, &o, &view);
    call_end(&c);
    PyObject *out = status == CGAM_OK ? view_dict(&view) : raise_status(h->box->env, status);
    cgam_lens_view_free(h->box->env, &view);
    return out;
}

/* Layouts of the structs in those bytes, for structured dtypes. */
static PyObject *lens_layouts(PyObject *self, PyObject *none)
{
    (void)self, (void)none;
    static const field cell[] = {
        {"neff", 'd', offsetof(cgam_lens_cell, neff), NULL, NULL},
        {"kl_final", 'd', offsetof(cgam_lens_cell, kl_final), NULL, NULL},
        {"rank_final", 'q', offsetof(cgam_lens_cell, rank_final), NULL, NULL},
        {NULL, 0, 0, NULL, NULL},
    };
    static const field word[] = {
        {"token", 'i', offsetof(cgam_lens_word, token), NULL, NULL},
        {"p", 'd', offsetof(cgam_lens_word, p), NULL, NULL},
        {NULL, 0, 0, NULL, NULL},
    };
    return Py_BuildValue("NN", fields_layout(cell, sizeof(cgam_lens_cell)),
                         fields_layout(word, sizeof(cgam_lens_word)));
}

/* ---- vectors ---------------------------------------------------------------------------------- */

static PyObject *vector_bytes(const cgam_vector *v)
{
    int64_t rows = cgam_vector_rows(v), width = cgam_vector_width(v);
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, rows * width * (Py_ssize_t)sizeof(float));
    float *to = bytes ? (float *)(void *)PyBytes_AsString(bytes) : NULL;
    for (int64_t l = 0; to && l < rows; l++)
        memcpy(to + l * width, cgam_vector_row(v, l), (size_t)width * sizeof *to);
    return bytes ? Py_BuildValue("LLN", (long long)rows, (long long)width, bytes) : NULL;
}

/* vector_load(path) -> (rows, width, bytes of f32) */
static PyObject *vector_load(PyObject *self, PyObject *args)
{
    (void)self;
    const char *path;
    if (!PyArg_ParseTuple(args, "s:vector_load", &path)) return NULL;
    env_box *box = env_take(0);
    if (!box) return NULL;
    cgam_vector *v = NULL;
    call c;
    call_begin_brief(&c);
    cgam_status status = cgam_vector_open(box->env, path, &v);
    call_end_brief(&c);
    PyObject *out = status == CGAM_OK ? vector_bytes(v) : raise_status(box->env, status);
    cgam_vector_free(v);
    env_drop(box);
    return out;
}

/* vector_save(path, rows, width, data f32, hint or None) -> layers that had no place */
static PyObject *vector_save(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *data_in;
    const char *path, *hint;
    long long rows, width;
    int64_t size = 0;
    int left_out = 0;
    if (!PyArg_ParseTuple(args, "sLLOz:vector_save", &path, &rows, &width, &data_in, &hint))
        return NULL;
    env_box *box = env_take(0);
    if (!box) return NULL;
    arrays a = {0};
    cgam_vector *v = NULL;
    const float *data = array_raw_in(&a, data_in, "vectors", sizeof(float), &size);
    if (data && size != rows * width) PyErr_SetString(PyExc_ValueError, "vectors: another size");
    if (data && !PyErr_Occurred()) {
        call c;
        call_begin_brief(&c);
        cgam_status status = cgam_vector_new(box->env, rows, width, data, &v);
        if (status == CGAM_OK) status = cgam_vector_write(v, path, hint, &left_out);
        call_end_brief(&c);
        if (status != CGAM_OK) raise_status(box->env, status);
    }
    cgam_vector_free(v);
    arrays_release(&a);
    env_drop(box);
    return PyErr_Occurred() ? NULL : PyLong_FromLong(left_out);
}

/* contrast(pairs, rows, width, differences f32, kind) -> (rows, width, bytes of f32) */
static PyObject *contrast(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *in, *out = NULL;
    const char *name;
    long long pairs, rows, width;
    int64_t size = 0;
    cgam_contrast_kind way;
    if (!PyArg_ParseTuple(args, "LLLOs:contrast", &pairs, &rows, &width, &in, &name)) return NULL;
    if (!cgam_contrast_kind_find(name, &way))
        return PyErr_Format(PyExc_ValueError, "kind '%s'", name);
    env_box *box = env_take(0);
    if (!box) return NULL;
    arrays a = {0};
    cgam_vector *v = NULL;
    const float *x = array_raw_in(&a, in, "differences", sizeof(float), &size);
    if (x && (pairs < 1 || size != pairs * rows * width))
        PyErr_SetString(PyExc_ValueError, "differences: another size");
    if (x && !PyErr_Occurred()) {
        call c;
        call_begin(&c);
        cgam_status status = cgam_vector_contrast(box->env, pairs, rows, width, x, way, &v);
        call_end(&c);
        out = status == CGAM_OK ? vector_bytes(v) : raise_status(box->env, status);
    }
    cgam_vector_free(v);
    arrays_release(&a);
    env_drop(box);
    return out;
}

PyMethodDef lm_methods[] = {
    {"model_open", model_open, METH_VARARGS, NULL},
    {"model_info", model_info, METH_O, NULL},
    {"model_bank", model_bank, METH_VARARGS, NULL},
    {"tokenize", tokenize, METH_VARARGS, NULL},
    {"chat", chat, METH_VARARGS, NULL},
    {"piece", piece, METH_VARARGS, NULL},
    {"observe", observe, METH_VARARGS, NULL},
    {"generate", generate, METH_VARARGS, NULL},
    {"score", score, METH_VARARGS, NULL},
    {"lens_new", lens_new, METH_O, NULL},
    {"lens_view", lens_view, METH_VARARGS, NULL},
    {"lens_layouts", lens_layouts, METH_NOARGS, NULL},
    {"vector_load", vector_load, METH_VARARGS, NULL},
    {"vector_save", vector_save, METH_VARARGS, NULL},
    {"contrast", contrast, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
