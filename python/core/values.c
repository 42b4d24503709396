/* values.c: arrays in and out, and structs as dicts. */
#include "core.h"

#include <math.h>
#include <string.h>

static Py_buffer *acquire(arrays *a, PyObject *object, const char *name, int flags)
{
    if (a->count == ARRAYS) {
        PyErr_SetString(PyExc_SystemError, "too many arrays in one call");
        return NULL;
    }
    if (object == Py_None) {
        PyErr_Format(PyExc_ValueError, "%s is missing", name);
        return NULL;
    }
    Py_buffer *view = &a->view[a->count];
    if (PyObject_GetBuffer(object, view, flags | PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) != 0) {
        if (PyErr_ExceptionMatches(PyExc_MemoryError)) return NULL;
        PyErr_Clear();
        PyErr_Format(PyExc_ValueError, "%s: expected a contiguous array%s", name,
                     flags & PyBUF_WRITABLE ? " to write into" : "");
        return NULL;
    }
    a->count++;
    if (view->itemsize > 0 && (uintptr_t)view->buf % (size_t)view->itemsize != 0) {
        PyErr_Format(PyExc_ValueError, "%s: its numbers are not aligned", name);
        return NULL;
    }
    return view;
}

bool is_tuple(PyObject *object, const char *name)
{
    if (PyTuple_Check(object)) return true;
    PyErr_Format(PyExc_TypeError, "%s: expected a tuple", name);
    return false;
}

const char *text_of(PyObject *object, const char *name)
{
    Py_ssize_t size;
    if (!PyUnicode_Check(object)) {
        PyErr_Format(PyExc_TypeError, "%s: expected a str", name);
        return NULL;
    }
    const char *text = PyUnicode_AsUTF8AndSize(object, &size);
    if (!text || (size_t)size == strlen(text)) return text;
    PyErr_Format(PyExc_ValueError, "%s: the text contains a NUL", name);
    return NULL;
}

void arrays_release(arrays *a)
{
    while (a->count > 0) PyBuffer_Release(&a->view[--a->count]);
}

static bool is_double(const Py_buffer *v)
{
    return v->itemsize == 8 && v->format &&
           (strcmp(v->format, "d") == 0 || strcmp(v->format, "=d") == 0);
}

int64_t numbers(int64_t rows, int64_t columns)
{
    int64_t count;
    if (rows < 0 || columns < 0 || __builtin_mul_overflow(rows, columns, &count)) return INT64_MAX;
    return count;
}

static int check_size(const char *name, const Py_buffer *v, int64_t size)
{
    if (size < 0 || v->len / v->itemsize == size) return 0;
    PyErr_Format(PyExc_ValueError, "%s: %lld numbers, expected %lld", name,
                 (long long)(v->len / v->itemsize), (long long)size);
    return -1;
}

/* Names row and column, like the library's messages about files. */
static void raise_not_finite(const char *name, const Py_buffer *v, int64_t i)
{
    int64_t columns = v->ndim > 1 ? v->shape[v->ndim - 1] : 0;
    const char *what = isnan(((const double *)v->buf)[i]) ? "NaN" : "an infinity";
    if (columns > 0)
        PyErr_Format(PyExc_ValueError, "%s: row %lld, column %lld is %s", name,
                     (long long)(i / columns), (long long)(i % columns), what);
    else PyErr_Format(PyExc_ValueError, "%s: number %lld is %s", name, (long long)i, what);
}

const double *array_in(arrays *a, PyObject *object, const char *name, int64_t size, int64_t *got)
{
    const Py_buffer *v = acquire(a, object, name, PyBUF_SIMPLE);
    if (!v) return NULL;
    if (!is_double(v)) {
        PyErr_Format(PyExc_ValueError, "%s: expected f64, the buffer has format '%s'", name,
                     v->format ? v->format : "B");
        return NULL;
    }
    if (check_size(name, v, size) != 0) return NULL;
    const double *x = v->buf;
    int64_t count = v->len / 8;
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(x[i])) {
            raise_not_finite(name, v, i);
            return NULL;
        }
    if (got) *got = count;
    return x;
}

double *array_out(arrays *a, PyObject *object, const char *name, int64_t size)
{
    const Py_buffer *v = acquire(a, object, name, PyBUF_WRITABLE);
    if (!v) return NULL;
    if (!is_double(v)) {
        PyErr_Format(PyExc_ValueError, "%s: expected f64", name);
        return NULL;
    }
    return check_size(name, v, size) == 0 ? v->buf : NULL;
}

const double *array_in_or_none(arrays *a, PyObject *object, const char *name, int64_t size)
{
    return object == Py_None ? NULL : array_in(a, object, name, size, NULL);
}

double *array_out_or_none(arrays *a, PyObject *object, const char *name, int64_t size)
{
    return object == Py_None ? NULL : array_out(a, object, name, size);
}

void *array_raw(arrays *a, PyObject *object, const char *name, int64_t bytes)
{
    const Py_buffer *v = acquire(a, object, name, PyBUF_WRITABLE);
    if (!v) return NULL;
    if (v->len == bytes) return v->buf;
    PyErr_Format(PyExc_ValueError, "%s: %zd bytes, expected %lld", name, v->len, (long long)bytes);
    return NULL;
}

const void *array_raw_in(arrays *a, PyObject *object, const char *name, int64_t itemsize,
                         int64_t *count)
{
    const Py_buffer *v = acquire(a, object, name, PyBUF_SIMPLE);
    if (!v) return NULL;
    if (v->itemsize != itemsize) {
        PyErr_Format(PyExc_ValueError, "%s: elements of %zd bytes, expected %lld", name,
                     v->itemsize, (long long)itemsize);
        return NULL;
    }
    *count = v->len / itemsize;
    return v->buf;
}

/* ---- structs ---------------------------------------------------------------------------------- */

/* Returns the name of a field in Python: as in C, or as in documents if it is nested in C. */
static const char *attribute(const cgam_field *f)
{
    return f->member && !strchr(f->member, '.') ? f->member : f->name;
}

/* False if an earlier row has the same attribute: some rows repeat a field under another name. */
static bool has_value(const cgam_field *rows, const cgam_field *f)
{
    for (; rows < f; rows++)
        if (rows->type && strcmp(attribute(rows), attribute(f)) == 0) return false;
    return f->type != CGAM_TYPE_NONE;
}

static PyObject *none_or(bool none, PyObject *it) { return Py_NewRef(none ? Py_None : it); }

/* Returns the word of an enum value, counted from 0. */
static PyObject *word_of(const char *words, int64_t value)
{
    for (; value > 0 && *words; value--) {
        words += strcspn(words, "|");
        words += *words == '|';
    }
    return PyUnicode_FromStringAndSize(words, (Py_ssize_t)strcspn(words, "|"));
}

static PyObject *field_value(const cgam_field *f, const void *at)
{
    int64_t integer = 0;
    switch (f->type) {
    case CGAM_TYPE_DOUBLE: return PyFloat_FromDouble(*(const double *)at);
    case CGAM_TYPE_CHARS: return PyUnicode_FromString(at);
    case CGAM_TYPE_BOOL: integer = *(const bool *)at; break;
    case CGAM_TYPE_INT: integer = *(const int *)at; break;
    case CGAM_TYPE_INT64: integer = *(const int64_t *)at; break;
    default: return PyErr_Format(PyExc_SystemError, "%s: unsupported type", f->name);
    }
    if (f->kind == CGAM_CHOICE && f->type == CGAM_TYPE_INT) return word_of(f->value, integer);
    if (f->kind == CGAM_MAYBE)
        return none_or(integer < 0 || (!integer && f->type == CGAM_TYPE_BOOL),
                       integer ? Py_True : Py_False);
    if (f->type == CGAM_TYPE_BOOL) return PyBool_FromLong((long)integer);
    if (f->kind == CGAM_INDEX && integer < 0) Py_RETURN_NONE;
    return PyLong_FromLongLong(integer);
}

int fields_into(PyObject *dict, const cgam_field *rows, const void *from)
{
    for (const cgam_field *f = rows; f->name && *f->name; f++) {
        if (!has_value(rows, f)) continue;
        PyObject *value = field_value(f, (const char *)from + f->offset);
        int failed = value ? PyDict_SetItemString(dict, attribute(f), value) : -1;
        Py_XDECREF(value);
        if (failed) return -1;
    }
    return 0;
}

PyObject *fields_dict(const cgam_field *rows, const void *from)
{
    PyObject *dict = PyDict_New();
    if (dict && fields_into(dict, rows, from) != 0) Py_CLEAR(dict);
    return dict;
}

/* Compares with an option's name in Python: underscores for dashes, and lam, because lambda is a keyword. */
static bool is_option(const cgam_field *f, const char *name)
{
    const char *have = f->name;
    if (strcmp(have, "lambda") == 0) return strcmp(name, "lam") == 0;
    if (f->find && strcmp(f->member, name) == 0) return true; /* given as a number */
    for (; *have && (*have == *name || (*have == '-' && *name == '_')); have++) name++;
    return !*have && !*name;
}

static int set_named(const cgam_field *f, PyObject *value, double *at)
{
    const char *name = text_of(value, f->name);
    if (!name) return -1;
    if (f->find(name, at)) return 0;
    PyErr_Format(PyExc_ValueError, "%s is '%s': %s", f->name, name, f->help);
    return -1;
}

/* Sets an enum, counted from 0, by its word. */
static int set_word(const cgam_field *f, PyObject *value, int *at)
{
    const char *text = text_of(value, f->name), *word = f->value;
    if (!text) return -1;
    for (int k = 0; word && *word; k++) {
        size_t length = strcspn(word, "|");
        if (strlen(text) == length && strncmp(word, text, length) == 0) {
            *at = k;
            return 0;
        }
        word += length + (word[length] == '|');
    }
    PyErr_Format(PyExc_ValueError, "%s: invalid value '%s' (valid: %s)", f->name, text, f->value);
    return -1;
}

static int set_field(const cgam_field *f, const char *name, PyObject *value, void *into)
{
    void *at = (char *)into + f->offset;
    bool by_number = f->find && strcmp(f->member, name) == 0;
    if (f->find && (PyUnicode_Check(value) || !by_number)) return set_named(f, value, at);
    if (f->kind == CGAM_CHOICE && f->type == CGAM_TYPE_INT && PyUnicode_Check(value))
        return set_word(f, value, at);
    switch (f->type) {
    case CGAM_TYPE_DOUBLE: *(double *)at = PyFloat_AsDouble(value); break;
    case CGAM_TYPE_INT64: *(int64_t *)at = PyLong_AsLongLong(value); break;
    case CGAM_TYPE_UINT64: *(size_t *)at = PyLong_AsSize_t(value); break;
    case CGAM_TYPE_INT: {
        long number = PyLong_AsLong(value);
        if (number != (int)number) PyErr_SetString(PyExc_OverflowError, "int");
        else *(int *)at = (int)number;
        break;
    }
    case CGAM_TYPE_BOOL: *(bool *)at = PyObject_IsTrue(value) > 0; break;
    default: PyErr_Format(PyExc_SystemError, "%s: unsupported type", f->name);
    }
    if (f->given) *(bool *)((char *)into + f->given) = true;
    if (!PyErr_Occurred()) return 0;
    if (PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear();
        PyErr_Format(PyExc_TypeError, "%s: expected %s", name,
                     f->type == CGAM_TYPE_DOUBLE ? "a number" : "an integer");
    } else if (PyErr_ExceptionMatches(PyExc_OverflowError)) {
        PyErr_Clear();
        PyErr_Format(PyExc_ValueError, "%s: the number is out of range", name);
    }
    return -1;
}

int fields_set(const cgam_field *rows, PyObject *dict, void *into)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    if (!PyDict_Check(dict)) {
        PyErr_SetString(PyExc_TypeError, "options: expected a dict");
        return -1;
    }
    while (PyDict_Next(dict, &at, &key, &value)) {
        const char *name = text_of(key, "option");
        const cgam_field *f = rows;
        if (!name) return -1;
        while (f->name && *f->name && !is_option(f, name)) f++;
        if (!f->name || !*f->name) {
            PyErr_Format(PyExc_TypeError, "no option '%s'", name);
            return -1;
        }
        if (value != Py_None && set_field(f, name, value, into) != 0) return -1;
    }
    return 0;
}

PyObject *fields_layout(const cgam_field *rows, size_t size)
{
    static const char *const formats_of[] = {[CGAM_TYPE_BOOL] = "?",
                                             [CGAM_TYPE_INT] = "i4",
                                             [CGAM_TYPE_INT64] = "i8",
                                             [CGAM_TYPE_UINT64] = "u8",
                                             [CGAM_TYPE_DOUBLE] = "f8"};
    PyObject *names = PyList_New(0), *formats = PyList_New(0), *offsets = PyList_New(0);
    bool fine = names && formats && offsets;
    for (const cgam_field *f = rows; fine && f->name && *f->name; f++) {
        if (!has_value(rows, f)) continue;
        PyObject *parts[] = {PyUnicode_FromString(attribute(f)),
                             PyUnicode_FromString(formats_of[f->type]),
                             PyLong_FromSize_t(f->offset)};
        PyObject *const lists[] = {names, formats, offsets};
        for (int i = 0; i < 3; i++) {
            fine = fine && parts[i] && PyList_Append(lists[i], parts[i]) == 0;
            Py_XDECREF(parts[i]);
        }
    }
    PyObject *out = fine ? Py_BuildValue("{s:O,s:O,s:O,s:n}", "names", names, "formats", formats,
                                         "offsets", offsets, "itemsize", (Py_ssize_t)size)
                         : NULL;
    Py_XDECREF(names);
    Py_XDECREF(formats);
    Py_XDECREF(offsets);
    return out;
}
