/* npy.c: reads .npy, versions 1 to 3.
 *
 *   6 bytes  \x93NUMPY        2 bytes  version
 *   2 bytes (version 1) or 4  length of the header, little-endian
 *   header   a Python dictionary of 'descr', 'fortran_order' and 'shape', blanks, a newline
 *   data
 *
 * Source: NumPy Enhancement Proposal 1 and numpy/lib/format. The dictionary is read by a parser
 * that knows these three keys, each once and in any order, and nothing else of Python.
 */
#include "io/npy.h"

#include "base/env.h"
#include "io/safetensors.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

static const char magic[] = "\x93NUMPY";
enum { MAGIC = 6 };

static bool is_npy(const cgam_file *file)
{
    return file->size >= MAGIC && memcmp(file->bytes, magic, MAGIC) == 0;
}

cgam_status cgam_npy_data_offset(cgam_env *env, const char *name, const uint8_t *bytes, size_t have,
                                 uint64_t total, size_t *offset)
{
    if (memcmp(bytes, magic, have < MAGIC ? have : MAGIC) != 0)
        return cgam_fail(env, CGAM_E_FORMAT,
                         "%s: not a .npy file: it does not begin with \\x93NUMPY", name);
    size_t prefix = have > MAGIC && bytes[MAGIC] == 1 ? 10 : CGAM_NPY_PREFIX;
    if (have > MAGIC + 1 && (bytes[MAGIC] < 1 || bytes[MAGIC] > 3 || bytes[MAGIC + 1] != 0))
        return cgam_fail(env, CGAM_E_UNSUPPORTED,
                         "%s: unsupported .npy version %d.%d at byte 6 (supported: 1.0, 2.0, 3.0)",
                         name, bytes[MAGIC], bytes[MAGIC + 1]);
    if (have < prefix)
        return cgam_fail(env, CGAM_E_FORMAT,
                         "%s: truncated: the header starts at byte %zu, the file has %zu bytes",
                         name, prefix, have);
    uint64_t length = 0;
    for (size_t i = prefix; i-- > MAGIC + 2;) length = length << 8 | bytes[i];
    if (length > CGAM_NPY_HEADER_MAX)
        return cgam_fail(env, CGAM_E_UNSUPPORTED,
                         "%s: a header of %" PRIu64 " bytes at byte %zu; at most %d are read", name,
                         length, prefix, CGAM_NPY_HEADER_MAX);
    if (length > total - prefix)
        return cgam_fail(env, CGAM_E_FORMAT,
                         "%s: truncated: the header has %" PRIu64 " bytes from byte %zu, the file "
                         "has %" PRIu64,
                         name, length, prefix, total);
    *offset = prefix + (size_t)length;
    return CGAM_OK;
}

/* ---- the dictionary ------------------------------------------------------------------------ */

typedef struct cursor {
    cgam_env *env;
    const char *name;
    const uint8_t *bytes; /* of the file, so that a place is a place in the file */
    size_t at, end;
} cursor;

static cgam_status fail_expected(cursor *c, const char *what)
{
    return cgam_fail(c->env, CGAM_E_FORMAT, "%s: header, byte %zu: expected %s", c->name, c->at,
                     what);
}

/* The byte at the cursor, blanks skipped; -1 at the end. */
static int peek(cursor *c)
{
    while (c->at < c->end && (c->bytes[c->at] == ' ' || c->bytes[c->at] == '\n')) c->at++;
    return c->at < c->end ? c->bytes[c->at] : -1;
}

static bool accept(cursor *c, int byte)
{
    if (peek(c) != byte) return false;
    c->at++;
    return true;
}

static bool accept_word(cursor *c, const char *word)
{
    size_t length = strlen(word);
    peek(c);
    if (c->end - c->at < length || memcmp(c->bytes + c->at, word, length) != 0) return false;
    c->at += length;
    return true;
}

/* A quoted string without escapes; what does not fit into text is cut off. */
static cgam_status parse_string(cursor *c, const char *what, char text[CGAM_TYPE_MAX])
{
    int quote = peek(c);
    if (quote != '\'' && quote != '"') return fail_expected(c, what);
    size_t used = 0;
    for (c->at++; c->at < c->end; c->at++) {
        uint8_t byte = c->bytes[c->at];
        if (byte == quote) {
            text[used] = 0;
            c->at++;
            return CGAM_OK;
        }
        if (byte < ' ' || byte > '~' || byte == '\\') break;
        if (used + 1 < CGAM_TYPE_MAX) text[used++] = (char)byte;
    }
    return fail_expected(c, "the end of a string of plain characters");
}

/* A list of fields makes a structured type. Only its end matters, since it is not opened. */
static cgam_status skip_fields(cursor *c)
{
    int depth = 0;
    char text[CGAM_TYPE_MAX];
    do {
        int byte = peek(c);
        if (byte < 0) return fail_expected(c, "']'");
        if (byte == '\'' || byte == '"') {
            cgam_status status = parse_string(c, "a string", text);
            if (status != CGAM_OK) return status;
            continue;
        }
        depth += (byte == '[' || byte == '(') - (byte == ']' || byte == ')');
        c->at++;
    } while (depth > 0);
    return CGAM_OK;
}

static const char known[] = "supported are floats of 8, 4 and 2 bytes, integers and booleans";

static const struct {
    char letter;
    const char *text;
} kinds[] = {
    {'f', "a float of another width"},
    {'i', "an integer of another width"},
    {'u', "an integer of another width"},
    {'b', "booleans"},
    {'c', "complex numbers"},
    {'O', "Python objects"},
    {'S', "byte strings"},
    {'a', "byte strings"},
    {'U', "text"},
    {'V', "raw bytes"},
    {'M', "dates"},
    {'m', "time spans"},
};

/* Describes the kind of NumPy type in words; NULL if it is not a type. */
static const char *describe_type(const char *descr)
{
    if (!descr[0] || !strchr("<>|=", descr[0])) return NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (kinds[i].letter == descr[1]) return kinds[i].text;
    return NULL;
}

static cgam_status parse_descr(cursor *c, cgam_layout *out)
{
    out->dtype = -1;
    if (peek(c) == '[') {
        snprintf(out->type, sizeof out->type, "structured");
        return skip_fields(c);
    }
    cgam_status status = parse_string(c, "a type in quotes after 'descr'", out->type);
    if (status != CGAM_OK) return status;
    for (const cgam_tensor_type *type = cgam_tensor_types; type->name; type++)
        if (*out->type && strcmp(out->type, type->numpy) == 0) {
            out->dtype = type->dtype;
            out->whole = type->whole;
            out->item = type->item;
        }
    if (out->dtype < 0 && !describe_type(out->type))
        return cgam_fail(c->env, CGAM_E_FORMAT,
                         "%s: header: 'descr' is '%s', which is not a "
                         "NumPy type",
                         c->name, out->type);
    return CGAM_OK;
}

static cgam_status parse_order(cursor *c, cgam_layout *out)
{
    out->fortran = accept_word(c, "True");
    if (!out->fortran && !accept_word(c, "False"))
        return fail_expected(c, "True or False after 'fortran_order'");
    return CGAM_OK;
}

static cgam_status parse_dimension(cursor *c, int64_t *out)
{
    int byte = peek(c);
    if (byte == '-')
        return cgam_fail(c->env, CGAM_E_FORMAT, "%s: header, byte %zu: a negative dimension",
                         c->name, c->at);
    if (byte < '0' || byte > '9') return fail_expected(c, "a dimension or ')'");
    size_t start = c->at;
    *out = 0;
    for (; c->at < c->end && isdigit(c->bytes[c->at]); c->at++)
        if (__builtin_mul_overflow(*out, 10, out) ||
            __builtin_add_overflow(*out, c->bytes[c->at] - '0', out))
            return cgam_fail(c->env, CGAM_E_FORMAT,
                             "%s: header, byte %zu: a dimension above 2^63 - 1", c->name, start);
    if (byte == '0' && c->at - start > 1) return fail_expected(c, "a number without leading zeros");
    return CGAM_OK;
}

static cgam_status parse_shape(cursor *c, cgam_layout *out)
{
    if (!accept(c, '(')) return fail_expected(c, "'(' after 'shape'");
    bool comma = true; /* a tuple of one needs its comma: (3) is a number */
    for (out->ndim = 0; !accept(c, ')'); out->ndim++) {
        if (!comma) return fail_expected(c, "',' or ')' in the shape");
        if (out->ndim == CGAM_ARRAY_DIMS)
            return cgam_fail(c->env, CGAM_E_UNSUPPORTED,
                             "%s: header, byte %zu: more than %d dimensions", c->name, c->at,
                             CGAM_ARRAY_DIMS);
        cgam_status status = parse_dimension(c, &out->shape[out->ndim]);
        if (status != CGAM_OK) return status;
        comma = accept(c, ',');
    }
    if (out->ndim == 1 && !comma)
        return fail_expected(c, "a comma: a shape of one is written (n,)");
    return CGAM_OK;
}

static const struct {
    const char *key;
    cgam_status (*parse)(cursor *c, cgam_layout *out);
} keys[] = {{"descr", parse_descr}, {"fortran_order", parse_order}, {"shape", parse_shape}};
enum { KEYS = sizeof keys / sizeof keys[0] };

static cgam_status parse_dictionary(cursor *c, cgam_layout *out)
{
    bool seen[KEYS] = {false};
    if (!accept(c, '{')) return fail_expected(c, "'{'");
    bool comma = true;
    while (!accept(c, '}')) {
        if (!comma) return fail_expected(c, "',' or '}'");
        size_t start = c->at, k;
        char key[CGAM_TYPE_MAX];
        cgam_status status = parse_string(c, "a key in quotes or '}'", key);
        if (status != CGAM_OK) return status;
        for (k = 0; k < KEYS && strcmp(key, keys[k].key) != 0; k++) {
        }
        if (k == KEYS || seen[k])
            return cgam_fail(c->env, CGAM_E_FORMAT, "%s: header, byte %zu: %s key '%s'", c->name,
                             start, k == KEYS ? "unknown" : "second", key);
        seen[k] = true;
        if (!accept(c, ':')) return fail_expected(c, "':'");
        status = keys[k].parse(c, out);
        if (status != CGAM_OK) return status;
        comma = accept(c, ',');
    }
    for (size_t k = 0; k < KEYS; k++)
        if (!seen[k])
            return cgam_fail(c->env, CGAM_E_FORMAT, "%s: the header lacks '%s'", c->name,
                             keys[k].key);
    if (peek(c) >= 0) return fail_expected(c, "only blanks after '}'");
    return CGAM_OK;
}

cgam_status cgam_npy_parse(cgam_env *env, const char *name, const uint8_t *bytes, size_t offset,
                           uint64_t total, cgam_layout *out)
{
    *out = (cgam_layout){.dtype = -1};
    cursor c = {.env = env, .name = name, .bytes = bytes, .end = offset};
    c.at = bytes[MAGIC] == 1 ? 10 : CGAM_NPY_PREFIX;
    cgam_status status = parse_dictionary(&c, out);
    if (status != CGAM_OK) return status;
    if (out->dtype < 0) return cgam_layout_measure(env, name, out, 1);

    status = cgam_layout_measure(env, name, out, (size_t)out->item);
    if (status != CGAM_OK) return status;
    uint64_t rest = total - offset;
    if (rest == out->bytes) return CGAM_OK;
    return cgam_fail(env, CGAM_E_FORMAT,
                     "%s: %s: the header promises %" PRIu64
                     " bytes of data from offset %zu, the file has %" PRIu64,
                     name, rest < out->bytes ? "truncated" : "too long", out->bytes, offset, rest);
}

bool cgam_npy_is_text(const cgam_layout *layout, int64_t *width)
{
    enum { WIDEST = 1 << 24 };
    const char *type = layout->type;
    int digits = 0;
    *width = 0;
    if (layout->dtype >= 0 || (strncmp(type, "<U", 2) != 0 && strncmp(type, "|S", 2) != 0))
        return false;
    for (; isdigit((unsigned char)type[2 + digits]) && *width < WIDEST; digits++)
        *width = 10 * *width + (type[2 + digits] - '0');
    return digits > 0 && !type[2 + digits] && *width < WIDEST;
}

cgam_status cgam_npy_openable(cgam_env *env, const char *name, const cgam_layout *layout)
{
    if (layout->dtype >= 0) return CGAM_OK;
    const char *kind = describe_type(layout->type);
    if (!kind)
        return cgam_fail(env, CGAM_E_UNSUPPORTED, "%s: structured types are not supported; %s",
                         name, known);
    if (layout->type[0] == '>')
        for (const cgam_tensor_type *type = cgam_tensor_types; type->name; type++)
            if (*type->numpy && strcmp(layout->type + 1, type->numpy + 1) == 0)
                return cgam_fail(env, CGAM_E_UNSUPPORTED,
                                 "%s: '%s' is big-endian; convert it with a.astype('%s')", name,
                                 layout->type, type->numpy);
    return cgam_fail(env, CGAM_E_UNSUPPORTED, "%s: type '%s' (%s) is not supported; %s", name,
                     layout->type, kind, known);
}

static cgam_status read_layout(cgam_env *env, const char *name, const cgam_file *file,
                               size_t *offset, cgam_layout *layout)
{
    cgam_status status =
        cgam_npy_data_offset(env, name, file->bytes, file->size, file->size, offset);
    if (status == CGAM_OK)
        status = cgam_npy_parse(env, name, file->bytes, *offset, file->size, layout);
    return status;
}

static cgam_status open_npy(cgam_env *env, const char *name, cgam_file *file, const char *member,
                            cgam_array *out)
{
    cgam_layout layout;
    size_t offset;
    cgam_status status = cgam_member_none(env, name, member);
    if (status == CGAM_OK) status = read_layout(env, name, file, &offset, &layout);
    if (status == CGAM_OK) status = cgam_npy_openable(env, name, &layout);
    if (status != CGAM_OK) return status;
    return cgam_array_place(env, name, &layout, file, file->bytes + offset, out);
}

const cgam_format cgam_format_npy = {.ending = ".npy", .recognise = is_npy, .open = open_npy};

cgam_status cgam_npy_header(cgam_env *env, const char *name, const cgam_layout *layout, char *bytes,
                            size_t *length)
{
    const char *descr = "";
    for (const cgam_tensor_type *type = cgam_tensor_types; type->name; type++)
        if (type->dtype == layout->dtype && type->whole == layout->whole) descr = type->numpy;
    if (!*descr)
        return cgam_fail(env, CGAM_E_UNSUPPORTED,
                         "%s: NumPy has no type for %s; write a .safetensors file", name,
                         cgam_word(cgam_dtype_words, (cgam_dtype)layout->dtype));
    memcpy(bytes, "\x93NUMPY\x01\x00", 8);
    size_t used = 10, capacity = CGAM_NPY_HEADER_OURS;
    cgam_text_add(bytes, capacity, &used, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                  descr);
    for (int k = 0; k < layout->ndim; k++)
        cgam_text_add(bytes, capacity, &used, "%s%" PRId64, k ? ", " : "", layout->shape[k]);
    cgam_text_add(bytes, capacity, &used, "%s), }", layout->ndim == 1 ? "," : "");

    size_t end = (used + 1 + 63) / 64 * 64;
    memset(bytes + used, ' ', end - used);
    bytes[end - 1] = '\n';
    bytes[8] = (char)((end - 10) & 0xff);
    bytes[9] = (char)((end - 10) >> 8);
    *length = end;
    return CGAM_OK;
}
