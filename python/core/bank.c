/* bank.c: banks over buffers and files. */
#include "core.h"

#include <string.h>

/* Checks that the rows of the view have the library's layout: two axes, adjacent elements, and a row stride
 * of a whole number of elements. Otherwise sets a ValueError. */
static int check_rows(const Py_buffer *v, cgam_dtype dtype, int64_t *stride)
{
    const char *why = NULL;
    if (v->ndim != 2) why = "expected two axes, (N, d)";
    else if (v->itemsize != (Py_ssize_t)cgam_dtype_size(dtype))
        why = "the element size does not match";
    else if (v->shape[0] < 1 || v->shape[1] < 1) why = "the array is empty";
    else if (v->shape[1] > 1 && v->strides[1] != v->itemsize)
        why = "the numbers of a row are not side by side (Fortran order?); copy=True copies them";
    else if (v->shape[0] > 1 &&
             (v->strides[0] < v->shape[1] * v->itemsize || v->strides[0] % v->itemsize != 0))
        why = "its rows run backwards or overlap; copy=True copies them";
    else if ((uintptr_t)v->buf % (size_t)v->itemsize != 0)
        why = "its numbers are not aligned; copy=True copies them";
    if (why) {
        PyErr_Format(PyExc_ValueError, "bank: %s", why);
        return -1;
    }
    *stride = v->shape[0] > 1 ? v->strides[0] / v->itemsize : v->shape[1];
    return 0;
}

/* bank_new(array, dtype, normalize, threads): borrows the array; the bank keeps it alive. */
static PyObject *bank_new(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *array;
    const char *name;
    int normalize, threads;
    if (!PyArg_ParseTuple(args, "Ospi:bank_new", &array, &name, &normalize, &threads)) return NULL;
    int dtype = cgam_word_find(cgam_dtype_words, name);
    if (dtype < 0) return PyErr_Format(PyExc_ValueError, "bank: dtype %s", name);
    env_box *box = env_take(threads);
    handle *h = box ? handle_new(BANK, box, NULL) : NULL;
    if (!h) return NULL;
    cgam_bank_opts opts = cgam_bank_opts_default();
    opts.normalize = normalize != 0;
    cgam_bank *bank = NULL;
    if (PyObject_GetBuffer(array, &h->view[0], PyBUF_STRIDES) != 0) goto failed;
    h->views = 1;
    if (check_rows(&h->view[0], dtype, &opts.stride) != 0) goto failed;
    call c;
    call_begin(&c);
    cgam_status status = cgam_bank_new(box->env, h->view[0].buf, dtype, h->view[0].shape[0],
                                       h->view[0].shape[1], &opts, &bank);
    call_end(&c);
    h->it = bank;
    if (status == CGAM_OK) return (PyObject *)h;
    raise_status(box->env, status);
failed:
    Py_DECREF(h);
    return NULL;
}

/* bank_load(path, normalize, threads) */
static PyObject *bank_load(PyObject *self, PyObject *args)
{
    (void)self;
    const char *path;
    int normalize, threads;
    if (!PyArg_ParseTuple(args, "spi:bank_load", &path, &normalize, &threads)) return NULL;
    env_box *box = env_take(threads);
    handle *h = box ? handle_new(BANK, box, NULL) : NULL;
    if (!h) return NULL;
    cgam_bank_opts opts = cgam_bank_opts_default();
    opts.normalize = normalize != 0;
    cgam_bank *bank = NULL;
    call c;
    call_begin(&c);
    cgam_status status = cgam_bank_load(box->env, path, &opts, &bank);
    call_end(&c);
    h->it = bank;
    if (status == CGAM_OK) return (PyObject *)h;
    raise_status(box->env, status);
    Py_DECREF(h);
    return NULL;
}

static PyObject *bank_info(PyObject *self, PyObject *object)
{
    (void)self;
    const cgam_bank *bank = handle_it(object, BANK);
    if (!bank) return NULL;
    cgam_bank_info info = cgam_bank_describe(bank);
    return fields_dict(cgam_fields("bank_info"), &info);
}

/* One pass over the bank: out = Z x, or Z' w. */
typedef cgam_status (*product)(const cgam_bank *, const double *, double *);
static PyObject *run_product(PyObject *args, product f, bool score)
{
    PyObject *object, *in, *out;
    if (!PyArg_ParseTuple(args, "OOO", &object, &in, &out)) return NULL;
    handle *h = handle_of(object, BANK);
    if (!h) return NULL;
    cgam_bank_info info = cgam_bank_describe(h->it);
    arrays a = {0};
    const double *x = array_in(&a, in, score ? "x" : "w", score ? info.d : info.n, NULL);
    double *y = x ? array_out(&a, out, "out", score ? info.n : info.d) : NULL;
    cgam_status status = CGAM_OK;
    if (x && y) {
        call c;
        call_begin(&c);
        status = f(h->it, x, y);
        call_end(&c);
    }
    arrays_release(&a);
    if (PyErr_Occurred()) return NULL;
    if (status != CGAM_OK) return raise_status(h->box->env, status);
    Py_RETURN_NONE;
}

static PyObject *bank_score(PyObject *self, PyObject *args)
{
    (void)self;
    return run_product(args, cgam_bank_score, true);
}

static PyObject *bank_combine(PyObject *self, PyObject *args)
{
    (void)self;
    return run_product(args, cgam_bank_combine, false);
}

/* bank_row(bank, i, out) */
static PyObject *bank_row(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *object, *out;
    long long i;
    if (!PyArg_ParseTuple(args, "OLO:bank_row", &object, &i, &out)) return NULL;
    handle *h = handle_of(object, BANK);
    if (!h) return NULL;
    arrays a = {0};
    double *y = array_out(&a, out, "out", cgam_bank_describe(h->it).d);
    cgam_status status = y ? cgam_bank_row(h->it, i, y) : CGAM_OK;
    arrays_release(&a);
    if (PyErr_Occurred()) return NULL;
    if (status != CGAM_OK) return raise_status(h->box->env, status);
    Py_RETURN_NONE;
}

/* bank_inspect(bank, alpha, beta, lam): None = the default of a recall. */
static PyObject *bank_inspect(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *object, *given[3];
    if (!PyArg_ParseTuple(args, "OOOO:bank_inspect", &object, &given[0], &given[1], &given[2]))
        return NULL;
    handle *h = handle_of(object, BANK);
    if (!h) return NULL;
    cgam_recall_opts usual = cgam_recall_opts_default();
    double value[3] = {usual.alpha, usual.beta, usual.lambda};
    for (int i = 0; i < 3; i++) {
        if (given[i] != Py_None) value[i] = PyFloat_AsDouble(given[i]);
        if (PyErr_Occurred()) return NULL;
    }
    cgam_inspection in;
    call c;
    call_begin(&c);
    cgam_status status = cgam_bank_inspect(h->it, value[0], value[1], value[2], &in);
    call_end(&c);
    if (status != CGAM_OK) return raise_status(h->box->env, status);
    PyObject *dict = Py_BuildValue("{s:d,s:d}", "beta", value[1], "lam", value[2]);
    if (dict && (fields_into(dict, cgam_fields("bank_info"), &in.bank) != 0 ||
                 fields_into(dict, cgam_fields("gram_info"), &in.gram) != 0 ||
                 fields_into(dict, cgam_fields("gate_info"), &in.gate) != 0 ||
                 fields_into(dict, cgam_fields("inspection"), &in) != 0))
        Py_CLEAR(dict);
    return dict;
}

/* bank_only(bank, mask u64) -> a bank of the memories whose bits are set */
static PyObject *bank_only(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *object, *mask_in;
    if (!PyArg_ParseTuple(args, "OO:bank_only", &object, &mask_in)) return NULL;
    handle *bank = handle_of(object, BANK);
    if (!bank) return NULL;
    arrays a = {0};
    int64_t words, n = cgam_bank_describe(bank->it).whole;
    const uint64_t *mask = array_raw_in(&a, mask_in, "mask", 8, &words);
    if (mask && words != cgam_mask_words(n))
        PyErr_Format(PyExc_ValueError, "mask: %lld words, expected %lld", (long long)words,
                     (long long)cgam_mask_words(n));
    handle *h = NULL;
    if (!PyErr_Occurred()) {
        bank->box->refs++;
        h = handle_new(BANK, bank->box, object);
    }
    if (h) {
        cgam_bank *some = NULL;
        call c;
        call_begin(&c);
        cgam_status status = cgam_bank_only(bank->it, mask, &some);
        call_end(&c);
        h->it = some;
        if (status != CGAM_OK) {
            raise_status(bank->box->env, status);
            Py_CLEAR(h);
        }
    }
    arrays_release(&a);
    return (PyObject *)h;
}

/* Takes over a bank made from that of `from`, or raises the status. */
static PyObject *bank_from(handle *from, cgam_status status, cgam_bank *made)
{
    if (status != CGAM_OK) return raise_status(from->box->env, status);
    from->box->refs++;
    handle *h = handle_new(BANK, from->box, (PyObject *)from);
    if (h) h->it = made;
    else cgam_bank_free(made);
    return (PyObject *)h;
}

/* bank_metric(bank, metric) -> the bank whose products with metric_queries are the metric */
static PyObject *bank_metric(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *object;
    const char *word;
    if (!PyArg_ParseTuple(args, "Os:bank_metric", &object, &word)) return NULL;
    handle *bank = handle_of(object, BANK);
    if (!bank) return NULL;
    int metric = cgam_word_find(cgam_metric_words, word);
    if (metric < 1)
        return PyErr_Format(PyExc_ValueError, "metric is '%.40s': expected dot, cosine or l2",
                            word);
    cgam_bank *made = NULL;
    call c;
    call_begin(&c);
    cgam_status status = cgam_bank_metric(bank->it, (cgam_metric)metric, &made);
    call_end(&c);
    return bank_from(bank, status, made);
}

/* metric_queries(bank, d, queries, out): d of the original bank */
static PyObject *metric_queries(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *object, *in, *to;
    long long d;
    if (!PyArg_ParseTuple(args, "OLOO:metric_queries", &object, &d, &in, &to)) return NULL;
    handle *bank = handle_of(object, BANK);
    if (!bank) return NULL;
    arrays a = {0};
    int64_t got = 0, all = cgam_bank_describe(bank->it).d;
    /* a bank of a metric keeps the original one */
    const cgam_bank *original = bank->keep ? handle_it(bank->keep, BANK) : bank->it;
    if (!original) return NULL;
    const double *q = array_in(&a, in, "query", -1, &got);
    double *out = NULL;
    if (q && (d != cgam_bank_describe(original).d || got % d != 0))
        PyErr_Format(PyExc_ValueError, "query: expected vectors of %lld numbers, got %lld",
                     (long long)cgam_bank_describe(original).d, (long long)got);
    else if (q) out = array_out(&a, to, "out", got / d * all);
    cgam_status status = out ? cgam_metric_queries(bank->it, got / d, q, out) : CGAM_OK;
    arrays_release(&a);
    if (PyErr_Occurred()) return NULL;
    if (status != CGAM_OK) return raise_status(bank->box->env, status);
    Py_RETURN_NONE;
}

/* bank_where(bank, file of columns or None, predicate) -> the mask as bytes, 64 memories a word */
static PyObject *bank_where(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *object;
    const char *file, *predicate;
    if (!PyArg_ParseTuple(args, "Ozs:bank_where", &object, &file, &predicate)) return NULL;
    handle *bank = handle_of(object, BANK);
    if (!bank) return NULL;
    const cgam_columns *columns = cgam_pack_columns(bank->it);
    cgam_columns *own = NULL;
    cgam_env *env = bank->box->env;
    int64_t n = cgam_bank_describe(bank->it).whole;
    uint64_t *mask = NULL;
    if (!file && !columns) return PyErr_Format(PyExc_ValueError, "where: the bank has no columns");
    call c;
    call_begin(&c);
    cgam_status status = file ? cgam_columns_load(env, file, n, &own) : CGAM_OK;
    if (status == CGAM_OK) status = cgam_columns_where(own ? own : columns, predicate, &mask);
    call_end(&c);
    cgam_columns_free(own);
    if (status != CGAM_OK) return raise_status(env, status);
    PyObject *bytes =
        PyBytes_FromStringAndSize((const char *)mask, (Py_ssize_t)cgam_mask_words(n) * 8);
    cgam_mask_free(env, mask);
    return bytes;
}

/* bank_names(bank) -> a list by memory number, or None */
static PyObject *bank_names(PyObject *self, PyObject *object)
{
    (void)self;
    handle *bank = handle_of(object, BANK);
    if (!bank) return NULL;
    cgam_row_names *names = NULL;
    int64_t n = cgam_bank_describe(bank->it).whole;
    cgam_status status = cgam_pack_names(bank->it, &names);
    if (status != CGAM_OK) return raise_status(bank->box->env, status);
    if (!names) Py_RETURN_NONE;
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (int64_t i = 0; list && i < n; i++) {
        const char *name = cgam_row_names_at(names, i);
        PyObject *text = PyUnicode_DecodeUTF8(name, (Py_ssize_t)strlen(name), "replace");
        if (text) (void)PyList_SetItem(list, (Py_ssize_t)i, text);
        else Py_CLEAR(list);
    }
    cgam_row_names_free(names);
    return list;
}

/* bank_columns(bank) -> {name: type} */
static PyObject *bank_columns(PyObject *self, PyObject *object)
{
    (void)self;
    const cgam_bank *bank = handle_it(object, BANK);
    if (!bank) return NULL;
    const cgam_columns *columns = cgam_pack_columns(bank);
    PyObject *dict = PyDict_New();
    for (int k = 0; dict && columns && k < cgam_columns_count(columns); k++) {
        const char *type, *name = cgam_columns_at(columns, k, &type);
        PyObject *text = PyUnicode_FromString(type);
        if (!text || PyDict_SetItemString(dict, name, text) != 0) Py_CLEAR(dict);
        Py_XDECREF(text);
    }
    return dict;
}

static PyObject *bank_sketch(PyObject *self, PyObject *object)
{
    (void)self;
    handle *bank = handle_of(object, BANK);
    if (!bank) return NULL;
    call c;
    call_begin(&c);
    cgam_status status = cgam_bank_sketch(bank->it);
    call_end(&c);
    if (status != CGAM_OK) return raise_status(bank->box->env, status);
    Py_RETURN_NONE;
}

/* pack_add(bank, path, from, names or None, columns or None); the bank gives the env */
static PyObject *pack_add(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *object;
    const char *path, *from, *names, *columns;
    if (!PyArg_ParseTuple(args, "Osszz:pack_add", &object, &path, &from, &names, &columns))
        return NULL;
    handle *bank = handle_of(object, BANK);
    if (!bank) return NULL;
    call c;
    call_begin(&c);
    cgam_status status = cgam_pack_add_columns(bank->box->env, path, from, names, columns);
    call_end(&c);
    if (status != CGAM_OK) return raise_status(bank->box->env, status);
    Py_RETURN_NONE;
}

/* pack_put(bank, path, from, numbers i64); pack_drop(bank, path, bits, mask u64) */
static PyObject *pack_put(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *object, *rows;
    const char *path, *from;
    int64_t count = 0;
    if (!PyArg_ParseTuple(args, "OssO:pack_put", &object, &path, &from, &rows)) return NULL;
    handle *bank = handle_of(object, BANK);
    if (!bank) return NULL;
    arrays a = {0};
    const int64_t *number = array_raw_in(&a, rows, "rows", 8, &count);
    cgam_status status = CGAM_OK;
    if (number) {
        call c;
        call_begin(&c);
        status = cgam_pack_put(bank->box->env, path, from, count, number);
        call_end(&c);
    }
    arrays_release(&a);
    if (PyErr_Occurred()) return NULL;
    if (status != CGAM_OK) return raise_status(bank->box->env, status);
    Py_RETURN_NONE;
}

static PyObject *pack_drop(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *object, *mask_in;
    const char *path;
    long long bits;
    int64_t words = 0;
    if (!PyArg_ParseTuple(args, "OsLO:pack_drop", &object, &path, &bits, &mask_in)) return NULL;
    handle *bank = handle_of(object, BANK);
    if (!bank) return NULL;
    arrays a = {0};
    const uint64_t *mask = array_raw_in(&a, mask_in, "mask", 8, &words);
    if (mask && (bits < 1 || words != cgam_mask_words(bits)))
        PyErr_Format(PyExc_ValueError, "mask: %lld words for %lld memories", (long long)words,
                     bits);
    cgam_status status = CGAM_OK;
    if (!PyErr_Occurred()) {
        call c;
        call_begin(&c);
        status = cgam_pack_drop(bank->box->env, path, bits, mask);
        call_end(&c);
    }
    arrays_release(&a);
    if (PyErr_Occurred()) return NULL;
    if (status != CGAM_OK) return raise_status(bank->box->env, status);
    Py_RETURN_NONE;
}

PyMethodDef bank_methods[] = {
    {"bank_new", bank_new, METH_VARARGS, NULL},
    {"bank_load", bank_load, METH_VARARGS, NULL},
    {"bank_info", bank_info, METH_O, NULL},
    {"bank_score", bank_score, METH_VARARGS, NULL},
    {"bank_combine", bank_combine, METH_VARARGS, NULL},
    {"bank_row", bank_row, METH_VARARGS, NULL},
    {"bank_inspect", bank_inspect, METH_VARARGS, NULL},
    {"bank_only", bank_only, METH_VARARGS, NULL},
    {"bank_metric", bank_metric, METH_VARARGS, NULL},
    {"metric_queries", metric_queries, METH_VARARGS, NULL},
    {"bank_where", bank_where, METH_VARARGS, NULL},
    {"bank_names", bank_names, METH_O, NULL},
    {"bank_columns", bank_columns, METH_O, NULL},
    {"bank_sketch", bank_sketch, METH_O, NULL},
    {"pack_add", pack_add, METH_VARARGS, NULL},
    {"pack_put", pack_put, METH_VARARGS, NULL},
    {"pack_drop", pack_drop, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
