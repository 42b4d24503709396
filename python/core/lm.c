/* lm.c: language models - tokens, states, text. Models are not thread-safe; the Python side holds a lock. */
#include "core.h"

#include <string.h>

static const cgam_field info_fields[] = {
    FIELD(cgam_lm_info, layers, CGAM_INT, INT64),
    FIELD(cgam_lm_info, width, CGAM_INT, INT64),
    FIELD(cgam_lm_info, vocab, CGAM_INT, INT64),
    FIELD(cgam_lm_info, context, CGAM_INT, INT64),
    FIELD(cgam_lm_info, parameters, CGAM_INT, INT64),
    FIELD(cgam_lm_info, tied, CGAM_FLAG, BOOL),
    FIELD(cgam_lm_info, exact, CGAM_FLAG, BOOL),
    FIELD(cgam_lm_info, heads, CGAM_INT, INT64),
    FIELDS_END,
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
    if (n < 1 || n > MESSAGES)
        return PyErr_Format(PyExc_ValueError, "messages: %zd of them; the number is out of range",
                            n);
    for (Py_ssize_t i = 0; i < n; i++)
        if (!is_tuple(PyTuple_GetItem(given, i), "message") ||
            !PyArg_ParseTuple(PyTuple_GetItem(given, i), "ss:message", &messages[i].role,
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
        return PyErr_Format(PyExc_ValueError, "no token %d (there are %lld)", token,
                            (long long)cgam_lm_describe(lm).vocab);
    return PyBytes_FromString(cgam_lm_piece(lm, token, text, sizeof text));
}

/* ---- inputs of a run -------------------------------------------------------------------------- */

static const cgam_field edit_fields[] = {
    FIELD(cgam_lm_edit, scale, CGAM_REAL, DOUBLE),
    FIELDS_END,
};

/* edit_default() -> {"scale": .., "kind": .., "positions": ..} */
static PyObject *edit_default(PyObject *self, PyObject *none)
{
    (void)self, (void)none;
    cgam_lm_edit e = cgam_lm_edit_default();
    PyObject *dict = fields_dict(edit_fields, &e);
    PyObject *sort = PyUnicode_FromString(e.kind == CGAM_LM_ADD ? "add" : "replace");
    PyObject *where = PyUnicode_FromString(cgam_word(cgam_lm_where_words, e.where));
    if (!dict || !sort || !where || PyDict_SetItemString(dict, "kind", sort) != 0 ||
        PyDict_SetItemString(dict, "positions", where) != 0)
        Py_CLEAR(dict);
    Py_XDECREF(sort);
    Py_XDECREF(where);
    return dict;
}

static int edit_of(PyObject *words, Py_ssize_t i, cgam_lm_edit *e)
{
    const char *where;
    long long layer, from, to;
    int replace;
    if (!is_tuple(words, "edit") ||
        !PyArg_ParseTuple(words, "LpsLLd:edit", &layer, &replace, &where, &from, &to, &e->scale))
        return -1;
    int found = cgam_word_find(cgam_lm_where_words, where);
    if (found < 0) {
        PyErr_Format(PyExc_ValueError, "edit %zd: invalid positions", i);
        return -1;
    }
    e->where = (cgam_lm_where)found;
    e->layer = layer;
    e->kind = replace ? CGAM_LM_REPLACE : CGAM_LM_ADD;
    e->from = from;
    e->to = to;
    return 0;
}

/* From (((layer, replace, where, from, to, scale), ..), vectors f32 [count, width]). Free out->edit
 * with PyMem_Free, also after -1: an exception is set. */
static int edits_of(const cgam_lm *lm, PyObject *pair, arrays *a, cgam_lm_edits *out)
{
    PyObject *words, *vectors;
    int64_t size = 0, width = cgam_lm_describe(lm).width;
    if (!PyArg_ParseTuple(pair, "O!O:edits", &PyTuple_Type, &words, &vectors)) return -1;
    Py_ssize_t count = PyTuple_Size(words);
    if (count == 0) return 0;
    const float *v = array_raw_in(a, vectors, "edits", sizeof(float), &size);
    if (v && size != count * width)
        PyErr_Format(PyExc_ValueError, "edits: expected vectors of shape (%zd, %lld)", count,
                     (long long)width);
    if (PyErr_Occurred()) return -1;
    cgam_lm_edit *edits = PyMem_Calloc((size_t)count, sizeof *edits);
    out->edit = edits;
    if (!edits) return PyErr_NoMemory(), -1;
    for (Py_ssize_t i = 0; i < count; i++) {
        edits[i] = cgam_lm_edit_default();
        edits[i].vector = v + i * width;
        if (edit_of(PyTuple_GetItem(words, i), i, &edits[i]) != 0) return -1;
    }
    out->count = count;
    return 0;
}

/* Destination of the states of prompts: out[which] [layers, tokens, width]; of heads, [layers, tokens, heads, width]. */
typedef struct collector {
    int64_t layers, width, count;
    int64_t put_out; /* numbers that all heads put out; 0: the states are not of heads */
    cgam_lm *lm;
    const int64_t *of; /* [layers] blocks; NULL: 1 .. L */
    Py_buffer *out;
    const cgam_lm_prompt *prompts;
    bool all;
} collector;

static cgam_status collect(void *user, const cgam_lm_span *span)
{
    const collector *k = user;
    int64_t tokens = k->all ? k->prompts[span->which].count : 1, first = k->all ? span->first : 0;
    float *to = k->out[span->which].buf;
    cgam_status status = CGAM_OK;
    for (int64_t l = 0; l < k->layers && status == CGAM_OK; l++) {
        float *at = to + (l * tokens + first) * k->width;
        if (k->put_out > 0)
            status = cgam_lm_heads_project(k->lm, k->of ? k->of[l] : l + 1, span->count,
                                           span->states + l * span->count * k->put_out, at);
        else
            memcpy(at, span->states + l * span->count * k->width,
                   (size_t)(span->count * k->width) * sizeof *to);
    }
    return status;
}

static void release_all(Py_buffer *views, int64_t count)
{
    for (int64_t i = 0; i < count; i++) PyBuffer_Release(&views[i]);
}

/* Acquires the buffers of a list of arrays with elements of `itemsize` bytes; returns how many it acquired. */
static int64_t acquire_list(PyObject *list, Py_buffer *views, int flags, Py_ssize_t itemsize)
{
    Py_ssize_t count = PyList_Size(list);
    for (Py_ssize_t i = 0; i < count; i++) {
        if (PyObject_GetBuffer(PyList_GetItem(list, i), &views[i],
                               flags | PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) != 0)
            return i;
        bool aligned = (uintptr_t)views[i].buf % (size_t)itemsize == 0;
        if (views[i].itemsize == itemsize && aligned) continue;
        PyErr_SetString(PyExc_ValueError, aligned ? "an array has the wrong type"
                                                  : "the numbers of an array are not aligned");
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
            PyErr_Format(PyExc_ValueError, "prompt %lld: empty or too long", (long long)i);
            return -1;
        }
    }
    return 0;
}

/* observe(model, [tokens i32], layers i64 or None, all, exact, edits, [out f32], part) */
static PyObject *observe(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *object, *tokens_in, *layers_in, *edits_in, *out_in;
    int all, exact, part;
    const char *word;
    if (!PyArg_ParseTuple(args, "OO!OppO!O!s:observe", &object, &PyList_Type, &tokens_in,
                          &layers_in, &all, &exact, &PyTuple_Type, &edits_in, &PyList_Type, &out_in,
                          &word))
        return NULL;
    if ((part = cgam_word_find(cgam_lm_block_part_words, word)) < 0)
        return PyErr_Format(PyExc_ValueError, "part: invalid value '%s'", word);
    handle *h = handle_of(object, MODEL);
    Py_ssize_t count = PyList_Size(tokens_in);
    if (!h) return NULL;
    if (count < 1 || PyList_Size(out_in) != count)
        return PyErr_Format(PyExc_ValueError, "prompts: the list is empty");
    Py_buffer *views = PyMem_Calloc((size_t)count * 2, sizeof *views);
    cgam_lm_prompt *prompts = PyMem_Calloc((size_t)count, sizeof *prompts);
    cgam_lm_edits edits = {0};
    arrays a = {0};
    cgam_status status = CGAM_OK;
    int64_t tokens = 0, outs = 0;
    if (!views || !prompts) PyErr_NoMemory();
    else tokens = acquire_list(tokens_in, views, PyBUF_SIMPLE, 4);
    if (views && !PyErr_Occurred()) outs = acquire_list(out_in, views + count, PyBUF_WRITABLE, 4);
    if (views && prompts && !PyErr_Occurred()) {
        cgam_lm_info info = cgam_lm_describe(h->it);
        cgam_lm_observe_opts o = cgam_lm_observe_opts_default();
        for (Py_ssize_t i = 0; i < count; i++)
            prompts[i] = (cgam_lm_prompt){views[i].buf, views[i].len / 4};
        if (layers_in != Py_None)
            o.layers = array_raw_in(&a, layers_in, "layers", 8, &o.layers_count);
        o.all_tokens = all != 0;
        o.run.exact = exact != 0;
        o.part = (cgam_lm_block_part)part;
        bool of_heads = o.part == CGAM_LM_HEADS;
        collector k = {.layers =
                           o.layers ? o.layers_count : info.layers + (part == CGAM_LM_RESIDUAL),
                       .width = of_heads ? info.heads * info.width : info.width,
                       .count = count,
                       .put_out = of_heads ? info.heads * info.head_size : 0,
                       .lm = h->it,
                       .of = o.layers,
                       .out = views + count,
                       .prompts = prompts,
                       .all = all != 0};
        if (!PyErr_Occurred() && edits_of(h->it, edits_in, &a, &edits) == 0 &&
            check_outputs(&k) == 0) {
            o.run.edits = edits;
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
    PyMem_Free((void *)(uintptr_t)edits.edit);
    if (PyErr_Occurred()) return NULL;
    if (status != CGAM_OK) return raise_status(h->box->env, status);
    Py_RETURN_NONE;
}

/* ---- text ------------------------------------------------------------------------------------- */

static const cgam_field generate_fields[] = {
    FIELD(cgam_lm_generate_opts, exact, CGAM_FLAG, BOOL),
    FIELD(cgam_lm_generate_opts, max_tokens, CGAM_INT, INT64),
    FIELD(cgam_lm_generate_opts, temperature, CGAM_REAL, DOUBLE),
    FIELD(cgam_lm_generate_opts, top_p, CGAM_REAL, DOUBLE),
    FIELD(cgam_lm_generate_opts, seed, CGAM_INT, INT64),
    FIELDS_END,
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
                                  cgam_word(cgam_lm_stop_words, text->stop))
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
    cgam_lm_prompt prompt = {0};
    cgam_lm_text text = {0};
    arrays a = {0};
    if (fields_set(generate_fields, options, &o) != 0) return NULL;
    o.stop_count = PyTuple_Size(stop_in);
    if (o.stop_count > STOPS)
        return PyErr_Format(PyExc_ValueError, "stop: too many words (at most %d)", STOPS);
    for (int64_t i = 0; i < o.stop_count; i++)
        if (!(stop[i] = text_of(PyTuple_GetItem(stop_in, i), "stop"))) return NULL;
    o.stop = stop;
    prompt.tokens = array_raw_in(&a, tokens_in, "tokens", 4, &prompt.count);
    if (prompt.tokens && edits_of(h->it, edits_in, &a, &o.edits) == 0) {
        call c;
        call_begin(&c);
        cgam_status status = cgam_lm_generate(h->it, 1, &prompt, &o, &text);
        call_end(&c);
        if (status != CGAM_OK) raise_status(h->box->env, status);
        else if (text.stop == CGAM_LM_STOP_INTERRUPT) raise_status(h->box->env, CGAM_E_INTERRUPTED);
        else out = text_tuple(&text);
        cgam_lm_texts_free(h->it, 1, &text);
    }
    PyMem_Free((void *)(uintptr_t)o.edits.edit);
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
    Py_buffer views[CANDIDATES] = {0};
    if (!PyArg_ParseTuple(args, "OOO!pO:score", &object, &prompt_in, &PyList_Type, &list, &exact,
                          &out_in))
        return NULL;
    handle *h = handle_of(object, MODEL);
    Py_ssize_t count = PyList_Size(list);
    if (!h) return NULL;
    if (count < 1 || count > CANDIDATES)
        return PyErr_Format(PyExc_ValueError, "continuations: their number must be from 1 to %d",
                            CANDIDATES);
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

PyMethodDef lm_methods[] = {
    {"model_open", model_open, METH_VARARGS, NULL},
    {"model_info", model_info, METH_O, NULL},
    {"tokenize", tokenize, METH_VARARGS, NULL},
    {"chat", chat, METH_VARARGS, NULL},
    {"piece", piece, METH_VARARGS, NULL},
    {"observe", observe, METH_VARARGS, NULL},
    {"edit_default", edit_default, METH_NOARGS, NULL},
    {"generate", generate, METH_VARARGS, NULL},
    {"score", score, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
