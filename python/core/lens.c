/* lens.c: the unembedding as a bank, the lens, and vectors of directions. */
#include "core.h"

#include <string.h>

/* ---- the unembedding and the lens ------------------------------------------------------------- */

/* model_bank(model, lens, dtype) -> a bank */
static PyObject *model_bank(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *object;
    const char *lens_name, *dtype_name;
    if (!PyArg_ParseTuple(args, "Oss:model_bank", &object, &lens_name, &dtype_name)) return NULL;
    handle *model = handle_of(object, MODEL);
    if (!model) return NULL;
    int lens = cgam_word_find(cgam_lens_words, lens_name);
    int dtype = cgam_word_find(cgam_dtype_words, dtype_name);
    if (lens < 0 || dtype < 0)
        return PyErr_Format(PyExc_ValueError, "invalid lens '%s' or dtype '%s'", lens_name,
                            dtype_name);
    model->box->refs++;
    handle *h = handle_new(BANK, model->box, NULL);
    if (!h) return NULL;
    cgam_bank *bank = NULL;
    call c;
    call_begin(&c);
    cgam_status status = cgam_lm_bank(model->it, (cgam_lens_kind)lens, (cgam_dtype)dtype, &bank);
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
    int found = cgam_word_find(cgam_lens_words, lens_kind);
    if (found < 0) return PyErr_Format(PyExc_ValueError, "invalid lens '%s'", lens_kind);
    o.kind = (cgam_lens_kind)found;
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
    static const cgam_field cell[] = {
        FIELD(cgam_lens_cell, neff, CGAM_REAL, DOUBLE),
        FIELD(cgam_lens_cell, kl_final, CGAM_REAL, DOUBLE),
        FIELD(cgam_lens_cell, rank_final, CGAM_INT, INT64),
        FIELDS_END,
    };
    static const cgam_field word[] = {
        FIELD(cgam_lens_word, token, CGAM_INT, INT),
        FIELD(cgam_lens_word, p, CGAM_REAL, DOUBLE),
        FIELDS_END,
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

/* vector_save(path, rows, width, data f32, hint or None) -> number of layers that the format cannot store */
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
    if (data && size != numbers(rows, width))
        PyErr_SetString(PyExc_ValueError, "vectors: wrong size");
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
    if (!PyArg_ParseTuple(args, "LLLOs:contrast", &pairs, &rows, &width, &in, &name)) return NULL;
    int way = cgam_word_find(cgam_contrast_words, name);
    if (way < 0) return PyErr_Format(PyExc_ValueError, "invalid kind '%s'", name);
    env_box *box = env_take(0);
    if (!box) return NULL;
    arrays a = {0};
    cgam_vector *v = NULL;
    const float *x = array_raw_in(&a, in, "differences", sizeof(float), &size);
    if (x && (pairs < 1 || size != numbers(pairs, numbers(rows, width))))
        PyErr_SetString(PyExc_ValueError, "differences: wrong size");
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

PyMethodDef lens_methods[] = {
    {"model_bank", model_bank, METH_VARARGS, NULL},
    {"lens_new", lens_new, METH_O, NULL},
    {"lens_view", lens_view, METH_VARARGS, NULL},
    {"lens_layouts", lens_layouts, METH_NOARGS, NULL},
    {"vector_load", vector_load, METH_VARARGS, NULL},
    {"vector_save", vector_save, METH_VARARGS, NULL},
    {"contrast", contrast, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
