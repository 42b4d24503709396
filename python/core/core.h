/* core.h: the extension module cgam._core - the C API as functions over buffers.
 *
 * The public classes are in Python (python/cgam); this side takes arrays of the right shape and type,
 * releases the interpreter's lock, calls the library and returns plain values. It uses only the stable
 * ABI of CPython 3.11, so one file works with every later version.
 */
#ifndef CGAM_PYTHON_CORE_H
#define CGAM_PYTHON_CORE_H

#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030B0000
#endif
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <cgam/cgam.h>

#include <locale.h>
#include <signal.h>

/* ---- calls ------------------------------------------------------------------------------------ */
/* Between call_begin and call_end the interpreter's lock is released, Ctrl-C stops the library (main
 * thread only, as everywhere in Python), BLAS has one thread, and numbers are written with a point.
 * Code between the two must not use Python objects. */
typedef struct call {
    PyThreadState *thread;
    locale_t locale;
    bool catching;
    struct sigaction old;
} call;
void call_begin(call *c);
void call_end(call *c);
/* The same without the handling of Ctrl-C, for work of microseconds, too short to interrupt. */
void call_begin_brief(call *c);
void call_end_brief(call *c);

/* Raises the exception for a status, with the env's message; returns NULL, so that the caller can return
 * it. env may be NULL. An exception that is already set, by a Python callback, takes precedence. */
PyObject *raise_status(cgam_env *env, cgam_status status);

/* ---- envs and handles ------------------------------------------------------------------------- */
/* Objects share an env, which lives as long as any of them. An object with an explicit number of threads
 * has a separate env. */
typedef struct env_box {
    cgam_env *env;
    int refs;
    bool shared;
} env_box;
env_box *env_take(int threads); /* 0 = the shared one; NULL: an exception is set */
void env_drop(env_box *box);    /* NULL is fine */

typedef enum kind { BANK, PLAN, GATE, SPECTRUM, NET, MODEL, LENS, KINDS } kind;

/* An object of the library. Its destructor frees the object, then releases what the object borrows. */
typedef struct handle {
    PyObject_HEAD kind what;
    unsigned born; /* value of the fork counter when it was made */
    void *it;
    env_box *box;
    bool brief;     /* a plan of mode first: a query takes no longer than a pass over the bank */
    int64_t d_c;    /* of a plan: length of a context */
    PyObject *keep; /* other handles, callbacks; or NULL */
    int views;
    Py_buffer view[3];
} handle;
/* Takes ownership of the box, also on failure. Keeps a reference to `keep`, which may be NULL. */
handle *handle_new(kind what, env_box *box, PyObject *keep);
/* The library's object of a handle of that kind; NULL: an exception is set. */
void *handle_it(PyObject *object, kind what);
handle *handle_of(PyObject *object, kind what);
int handle_setup(PyObject *module);

/* ---- values ----------------------------------------------------------------------------------- */
/* Returns rows * columns, or a number larger than any array if that is not a valid size. */
int64_t numbers(int64_t rows, int64_t columns);
/* Buffers of one call, released together. */
enum { ARRAYS = 32 };
typedef struct arrays {
    int count;
    Py_buffer view[ARRAYS];
} arrays;
/* Contiguous doubles: `size` numbers, or any count if size is negative; *got is then the count. Returns NULL
 * with an exception set, also for None and for a number that is not finite, which the exception locates. */
const double *array_in(arrays *a, PyObject *object, const char *name, int64_t size, int64_t *got);
double *array_out(arrays *a, PyObject *object, const char *name, int64_t size);
/* The same for optional arrays: None gives NULL without an exception. */
const double *array_in_or_none(arrays *a, PyObject *object, const char *name, int64_t size);
double *array_out_or_none(arrays *a, PyObject *object, const char *name, int64_t size);
void *array_raw(arrays *a, PyObject *object, const char *name, int64_t bytes); /* to write into */
const void *array_raw_in(arrays *a, PyObject *object, const char *name, int64_t itemsize,
                         int64_t *count);
void arrays_release(arrays *a);
/* Checks the argument of PyArg_ParseTuple, which must be a tuple; false: an exception is set. */
bool is_tuple(PyObject *object, const char *name);
/* The text of a str without NUL characters; NULL: an exception is set. */
const char *text_of(PyObject *object, const char *name);

/* Fields of the library's structs, read with the tables that describe them (cgam/base.h). */
PyObject *fields_dict(const cgam_field *rows, const void *from);
int fields_into(PyObject *dict, const cgam_field *rows,
                const void *from); /* -1: an exception is set */
/* Sets options from a dict; an unknown name raises a TypeError. */
int fields_set(const cgam_field *rows, PyObject *dict, void *into);
PyObject *fields_layout(const cgam_field *rows, size_t size); /* for a structured dtype */
/* A row of a table used only by Python: struct, member, kind, type. */
#define FIELD(of_, member_, kind_, type_)                                                          \
    {                                                                                              \
        .name = #member_, .member = #member_, .kind = kind_, .type = CGAM_TYPE_##type_,            \
        .offset = offsetof(of_, member_)                                                           \
    }
#define FIELDS_END                                                                                 \
    {                                                                                              \
        .name = NULL                                                                               \
    }

/* ---- the functions, by file ------------------------------------------------------------------- */
extern PyMethodDef bank_methods[], recall_methods[], learn_methods[], landscape_methods[],
    gate_methods[], theory_methods[], run_methods[], net_methods[], lm_methods[], lens_methods[];
/* Sets in->c from None, (d_c,) or (queries, d_c); in->queries must be set. -1: an exception is set. */
int context_in(arrays *a, PyObject *object, int64_t d_c, cgam_recall_in *in);
/* The same for in->target: None, or one index for each query. */
int target_in(arrays *a, PyObject *object, cgam_recall_in *in);

/* ---- nets, between net.c, op.c and flow.c ------------------------------------------------------- */
/* Weights as an operator that lives with the net: a matrix, or a tuple for a convolution. NULL: an
 * exception is set. */
const cgam_op *net_op(handle *net, PyObject *weights, const char *name);
/* Like call_begin and call_end, for calls that may call Python functions of a net: an exception of one on this thread
 * is raised after net_call_end, whatever the status. */
typedef struct net_call {
    call call;
    struct net_call *outer;
    PyObject *error[3]; /* type, value, traceback */
} net_call;
void net_call_begin(net_call *c);
void net_call_end(net_call *c);
PyObject *net_raise(handle *net, cgam_status status);
PyObject *net_flow(PyObject *self, PyObject *args);

#endif
