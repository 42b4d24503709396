/* net_reader.h: reading a network from JSON. A *place* is a position in the document, so that every
 * error can name `$.synapses[1].weights`; an *extract* is an array of numbers, written there or
 * in another file. */
#ifndef CGAM_SRC_LAB_NET_READER_H
#define CGAM_SRC_LAB_NET_READER_H

#include <cgam/flow.h>
#include <cgam/io.h>

#include "lab/document.h"
#include "net/net.h"

typedef struct cgam_place {
    const struct cgam_place *up; /* NULL: the document itself */
    const char *key;             /* NULL: an element */
    size_t index;
} cgam_place;

typedef struct cgam_reader {
    cgam_env *env;
    const char *name; /* of the file, for messages */
    const char *dir;  /* where files it names are searched; NULL: nowhere */
    bool *complained; /* set by cgam_reader_fail */
} cgam_reader;

/* Reports "FILE: $.layers[2].tau: TEXT"; returns the status. The macro has the same purpose as that
 * of cgam_fail. */
cgam_status(cgam_reader_fail)(const cgam_reader *r, const cgam_place *at, cgam_status status,
                              const char *format, ...) CGAM_PRINTF(4, 5);
#define cgam_reader_fail(r, at, status, ...)                                                       \
    __extension__({                                                                                \
        const cgam_status reader_status_ = (status);                                               \
        (cgam_reader_fail)(r, at, reader_status_, __VA_ARGS__);                                    \
        reader_status_;                                                                            \
    })
/* Adds the same prefix to the message of a failed call. */
cgam_status cgam_reader_pass(const cgam_reader *r, const cgam_place *at, cgam_status status);

/* Members of an object, in the manner of json_unpack: "KEY:KIND KEY:KIND! .." and a pointer for each, which stays
 * unchanged where the member is absent; ! = must be there. Kinds: s const char *, i int64_t, b bool, f double, + double
 * above 0, 0 double of at least 0, l a list, v any value (both const json_t *). */
cgam_status cgam_read_members(const cgam_reader *r, const cgam_place *at, const json_t *object,
                              const char *format, ...);
/* The same, and the value must be an object with no other keys than those and `more` (NULL ends; may be NULL). */
cgam_status cgam_read_object(const cgam_reader *r, const cgam_place *at, const json_t *value,
                             const char *const *more, const char *format, ...);

/* Numbers: a list of lists of .. numbers, {"file": PATH} or {"rows": [[..]]}, these two optionally with
 * "normalize": true. A single number is an array without dimensions. Free with
 * cgam_extract_free, which accepts {0}. */
typedef struct cgam_extract {
    int ndim;
    int64_t shape[CGAM_ARRAY_DIMS];
    int64_t size;
    double *data;     /* [size] numbers of the document; NULL: they are in the file */
    cgam_array array; /* the open file */
    bool normalize;
} cgam_extract;
cgam_status cgam_extract_read(const cgam_reader *r, const cgam_place *at, const json_t *value,
                              cgam_extract *out);
void cgam_extract_free(cgam_env *env, cgam_extract *e);
/* All numbers as doubles; free *out with cgam_free. A single number fills `size`. */
cgam_status cgam_extract_fill(const cgam_reader *r, const cgam_place *at, cgam_extract *e,
                              int64_t size, double **out);
/* Reads and fills in one call: `size` numbers of a value. */
cgam_status cgam_read_numbers(const cgam_reader *r, const cgam_place *at, const json_t *value,
                              int64_t size, double **out);
/* Makes an operator of the network, [size / last dimension, last dimension]. Takes ownership of e. */
cgam_status cgam_extract_op(const cgam_reader *r, const cgam_place *at, cgam_net *net,
                            cgam_extract *e, const cgam_op **out);

/* One synapse of the document; `named` are the operators of its table "weights". */
typedef struct cgam_named_weights {
    struct cgam_named_op {
        const char *name;
        const cgam_op *op;
        int ndim;
        int64_t shape[CGAM_ARRAY_DIMS];
    } * list;
    int count;
} cgam_named_weights;
cgam_status cgam_read_synapse(const cgam_reader *r, const cgam_place *at, cgam_net *net,
                              const cgam_named_weights *named, const json_t *value);

/* A layer by its name, as a member of an object or as a value. */
cgam_status cgam_read_layer_name(const cgam_reader *r, const cgam_place *at, const cgam_net *net,
                                 const json_t *value, int *out);
/* Parameters of a Lagrangian given as members of the object. */
cgam_status cgam_read_params(const cgam_reader *r, const cgam_place *at, const json_t *object,
                             const cgam_lagr *lagr, double *param);
/* The Lagrangian that member "lagrangian" names; *out is unchanged if the member is absent. */
cgam_status cgam_read_lagr(const cgam_reader *r, const cgam_place *at, const json_t *object,
                           const cgam_lagr **out);

#endif
