/* recall.c: plans and runs. */
#include "core.h"

#include <string.h>

/* Count of numbers that a call reads in well under a millisecond. */
enum { BRIEF = 1 << 20 };

/* Returns a matrix that the plan borrows; the handle keeps it alive. */
static const double *borrow(handle *h, PyObject *object, const char *name, int64_t rows,
                            int64_t *columns)
{
    if (object == Py_None) return NULL;
    arrays a = {0};
    int64_t size;
    const double *x = array_in(&a, object, name, -1, &size);
    if (!x) {
        arrays_release(&a);
        return NULL;
    }
    h->view[h->views++] = a.view[0];
    *columns = size / rows;
    if (a.view[0].ndim == 2 && a.view[0].shape[0] == rows && *columns > 0) return x;
    PyErr_Format(PyExc_ValueError, "%s: expected shape (%lld, d_c)", name, (long long)rows);
    return NULL;
}

/* plan_new(bank, mode, projection, gate_weights, options) */
static PyObject *plan_new(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    (void)self;
    if (count != 5) return PyErr_Format(PyExc_TypeError, "plan_new takes 5 arguments");
    handle *bank = handle_of(args[0], BANK);
    if (!bank) return NULL;
    cgam_recall_opts opts = cgam_recall_opts_default();
    if (args[1] != Py_None) {
        const char *mode = text_of(args[1], "mode");
        if (!mode) return NULL;
        int found = cgam_word_find(cgam_mode_words, mode);
        if (found < 0)
            return PyErr_Format(
                PyExc_ValueError, "invalid mode '%s' (valid: %s, %s, %s, %s)", mode,
                cgam_word(cgam_mode_words, CGAM_FIRST), cgam_word(cgam_mode_words, CGAM_COUPLED),
                cgam_word(cgam_mode_words, CGAM_FLOW), cgam_word(cgam_mode_words, CGAM_ANNEAL));
        opts.mode = (cgam_mode)found;
    }
    if (args[4] != Py_None && fields_set(cgam_fields("recall_opts"), args[4], &opts) != 0)
        return NULL;
    bank->box->refs++;
    handle *h = handle_new(PLAN, bank->box, args[0]);
    if (!h) return NULL;
    cgam_bank_info info = cgam_bank_describe(bank->it);
    opts.P = borrow(h, args[2], "projection", info.d, &opts.d_c);
    if (!PyErr_Occurred()) opts.W = borrow(h, args[3], "gate_weights", info.n, &opts.d_c);
    cgam_recall *plan = NULL;
    if (!PyErr_Occurred()) {
        call c;
        call_begin(&c);
        cgam_status status = cgam_recall_new(bank->it, &opts, &plan);
        call_end(&c);
        h->it = plan;
        h->brief = opts.mode == CGAM_FIRST;
        h->d_c = opts.P || opts.W ? opts.d_c : info.d;
        if (status == CGAM_OK) return (PyObject *)h;
        raise_status(bank->box->env, status);
    }
    Py_DECREF(h);
    return NULL;
}

/* The arguments of plan_run, in this order. */
enum { PLAN_, QUERIES, TOP, Q, C, TARGET, RESULTS, TOP_INDEX, TOP_P, TOP_LOG_P, P, S, R, READOUT };
enum { RUN_ARGS = READOUT + 1 };

int context_in(arrays *a, PyObject *object, int64_t d_c, cgam_recall_in *in)
{
    int64_t size = 0, B = in->queries;
    if (object == Py_None) return 0;
    in->c = array_in(a, object, "context", -1, &size);
    if (!in->c) return -1;
    in->c_per_query = size == B * d_c;
    if (size == d_c || size == B * d_c) return 0;
    PyErr_Format(PyExc_ValueError, "context: %lld numbers, expected (%lld) or (%lld, %lld)",
                 (long long)size, (long long)d_c, (long long)B, (long long)d_c);
    return -1;
}

int target_in(arrays *a, PyObject *object, cgam_recall_in *in)
{
    int64_t size = 0;
    if (object == Py_None) return 0;
    in->target = array_raw_in(a, object, "target", 8, &size);
    if (!in->target) return -1;
    if (size == in->queries) return 0;
    PyErr_Format(PyExc_ValueError, "target: %lld indices for %lld queries", (long long)size,
                 (long long)in->queries);
    return -1;
}

static int run_in(arrays *a, PyObject *const *args, int64_t B, int64_t d, int64_t d_c,
                  cgam_recall_in *in)
{
    in->queries = B;
    in->q = array_in(a, args[Q], "query", numbers(B, d), NULL);
    return in->q && context_in(a, args[C], d_c, in) == 0 && target_in(a, args[TARGET], in) == 0
               ? 0
               : -1;
}

/* The result of one query without arrays: the result and the leaders in one block of bytes, which
 * result_dict decodes on first access. */
typedef struct block {
    cgam_result result;
    int64_t numbers[]; /* [top] indices, [top] p, [top] log p */
} block;

static PyObject *block_new(int64_t top, cgam_recall_out *out)
{
    PyObject *bytes = PyBytes_FromStringAndSize(
        NULL, (Py_ssize_t)sizeof(block) + (Py_ssize_t)(3 * top) * (Py_ssize_t)sizeof(int64_t));
    if (!bytes) return NULL;
    block *b = (block *)PyBytes_AsString(bytes);
    out->results = &b->result;
    out->top_index = b->numbers;
    out->top_p = (double *)(b->numbers + top);
    out->top_log_p = out->top_p + top;
    return bytes;
}

static int run_out(arrays *a, PyObject *const *args, int64_t B, int64_t n, int64_t d,
                   cgam_recall_out *out)
{
    if (args[RESULTS] != Py_None) {
        out->results =
            array_raw(a, args[RESULTS], "results", numbers(B, (int64_t)sizeof *out->results));
        if (out->results)
            out->top_index = array_raw(a, args[TOP_INDEX], "top_index", B * out->top * 8);
        if (out->top_index) out->top_p = array_out(a, args[TOP_P], "top_p", B * out->top);
        if (out->top_p) out->top_log_p = array_out(a, args[TOP_LOG_P], "top_log_p", B * out->top);
    }
    if (!PyErr_Occurred()) out->p = array_out_or_none(a, args[P], "p", B * n);
    if (!PyErr_Occurred()) out->s = array_out_or_none(a, args[S], "s", B * n);
    if (!PyErr_Occurred()) out->r = array_out_or_none(a, args[R], "r", B * n);
    if (!PyErr_Occurred()) out->readout = array_out_or_none(a, args[READOUT], "readout", B * d);
    return PyErr_Occurred() ? -1 : 0;
}

/* Runs queries; outputs are arrays to fill, or None. One query without `results` returns a block. */
static PyObject *plan_run(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    (void)self;
    if (count != RUN_ARGS)
        return PyErr_Format(PyExc_TypeError, "plan_run takes %d arguments", RUN_ARGS);
    handle *h = handle_of(args[PLAN_], PLAN);
    if (!h) return NULL;
    int64_t B = PyLong_AsLongLong(args[QUERIES]), top = PyLong_AsLongLong(args[TOP]);
    if (PyErr_Occurred()) return NULL;
    cgam_bank_info info = cgam_bank_describe(((handle *)h->keep)->it);
    bool single = args[RESULTS] == Py_None;
    if (B < 1 || top < 0 || top > info.n || (single && B > 1))
        return PyErr_Format(PyExc_ValueError, "invalid sizes: %lld queries, top %lld", (long long)B,
                            (long long)top);
    cgam_recall_in in = {0};
    cgam_recall_out out = {.top = top};
    arrays a = {0};
    cgam_status status = CGAM_OK;
    PyObject *answer = single ? block_new(top, &out) : Py_NewRef(Py_None);
    if (answer && run_in(&a, args, B, info.d, h->d_c, &in) == 0 &&
        run_out(&a, args, B, info.n, info.d, &out) == 0) {
        bool brief = h->brief && info.n * info.d <= BRIEF / B;
        call c;
        (brief ? call_begin_brief : call_begin)(&c);
        status = cgam_recall_run(h->it, &in, &out);
        (brief ? call_end_brief : call_end)(&c);
        if (status != CGAM_OK) raise_status(h->box->env, status);
    } else Py_CLEAR(answer);
    arrays_release(&a);
    if (status != CGAM_OK) Py_CLEAR(answer);
    return answer;
}

/* result_dict(block) -> its fields */
static PyObject *result_dict(PyObject *self, PyObject *bytes)
{
    (void)self;
    char *at;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(bytes, &at, &size) != 0) return NULL;
    if (size < (Py_ssize_t)sizeof(cgam_result))
        return PyErr_Format(PyExc_ValueError, "a result of %zd bytes has an unknown layout", size);
    return fields_dict(cgam_fields("result"), at);
}

/* plan_route(plan, queries, vectors) -> (path, precision, group) */
static PyObject *plan_route(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *object;
    long long queries;
    int vectors;
    if (!PyArg_ParseTuple(args, "OLp:plan_route", &object, &queries, &vectors)) return NULL;
    const cgam_recall *plan = handle_it(object, PLAN);
    if (!plan) return NULL;
    double unused;
    cgam_recall_in in = {.queries = queries};
    cgam_recall_out out = {.p = vectors ? &unused : NULL};
    cgam_route route = cgam_recall_route(plan, &in, &out);
    return Py_BuildValue("ssL", cgam_word(cgam_path_words, route.path),
                         cgam_word(cgam_dtype_words, route.precision), (long long)route.group);
}

static PyObject *result_layout(PyObject *self, PyObject *none)
{
    (void)self, (void)none;
    return fields_layout(cgam_fields("result"), sizeof(cgam_result));
}

/* fields(struct) -> [(name, kind, words)] of its table */
static PyObject *fields_of(PyObject *self, PyObject *of)
{
    (void)self;
    static const char *const kinds[] = {"flag",  "int",   "real",  "text",  "choice", "ints",
                                        "reals", "words", "index", "maybe", "proof",  "part"};
    const char *name = text_of(of, "fields");
    const cgam_field *f = name ? cgam_fields(name) : NULL;
    if (!name) return NULL;
    if (!f) return PyErr_Format(PyExc_ValueError, "unknown struct '%s'", name);
    PyObject *list = PyList_New(0);
    for (; list && f->name && *f->name; f++) {
        PyObject *row = Py_BuildValue("(sss)", f->name, kinds[f->kind], f->help);
        if (!row || PyList_Append(list, row) != 0) Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

static PyObject *end_names(PyObject *self, PyObject *none)
{
    (void)self, (void)none;
    PyObject *list = PyList_New(0);
    for (int end = 0; list && end <= CGAM_END_ROSE; end++) {
        PyObject *name = PyUnicode_FromString(cgam_word(cgam_end_words, (cgam_end)end));
        if (!name || PyList_Append(list, name) != 0) Py_CLEAR(list);
        Py_XDECREF(name);
    }
    return list;
}

static PyObject *plan_context_margin(PyObject *self, PyObject *object)
{
    (void)self;
    const cgam_recall *plan = handle_it(object, PLAN);
    return plan ? PyFloat_FromDouble(cgam_recall_context_margin(plan)) : NULL;
}

PyMethodDef recall_methods[] = {
    {"plan_new", (PyCFunction)(void (*)(void))plan_new, METH_FASTCALL, NULL},
    {"plan_run", (PyCFunction)(void (*)(void))plan_run, METH_FASTCALL, NULL},
    {"plan_route", plan_route, METH_VARARGS, NULL},
    {"plan_context_margin", plan_context_margin, METH_O, NULL},
    {"result_dict", result_dict, METH_O, NULL},
    {"result_layout", result_layout, METH_NOARGS, NULL},
    {"fields", fields_of, METH_O, NULL},
    {"end_names", end_names, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
