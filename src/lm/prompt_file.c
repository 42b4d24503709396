/* prompt_file.c: one prompt per line, or one JSON object per line. The texts of a prompt share one block,
 * with the label after the prompt. */
#include "lm/prompt_file.h"

#include "base/env.h"
#include "io/json.h"

#include <string.h>

enum { WHERE = 300 };

struct cgam_prompt_file {
    cgam_env *env;
    cgam_prompt_line *line; /* [capacity], of which count are filled */
    int64_t count, capacity;
};

void cgam_prompt_file_close(cgam_prompt_file *file)
{
    if (!file) return;
    for (int64_t i = 0; file->line && i < file->count; i++)
        cgam_free(file->env, (void *)(uintptr_t)file->line[i].text);
    cgam_free_all(file->env, file->line, file);
}

int64_t cgam_prompt_file_count(const cgam_prompt_file *file) { return file->count; }

cgam_prompt_line cgam_prompt_file_get(const cgam_prompt_file *file, int64_t i)
{
    return file->line[i];
}

/* The array is large enough: the lines of the file were counted. */
static cgam_status add_prompt(cgam_prompt_file *file, int64_t line, const char *text, size_t length,
                              const char *label)
{
    size_t more = label ? strlen(label) + 1 : 0;
    char *block = cgam_alloc(file->env, length + 1 + more, 1);
    if (!block) return cgam_fail_nomem(file->env, "a prompt");
    memcpy(block, text, length);
    block[length] = '\0';
    if (label) memcpy(block + length + 1, label, more);
    file->line[file->count++] = (cgam_prompt_line){block, label ? block + length + 1 : NULL, line};
    return CGAM_OK;
}

static cgam_status add_object(cgam_prompt_file *file, int64_t line, const char *where,
                              const char *text, size_t length)
{
    json_t *row;
    cgam_status status = cgam_json_parse(file->env, where, text, length, &row);
    if (status != CGAM_OK) return status;
    const json_t *prompt = json_object_get(row, "prompt"), *label = json_object_get(row, "label");
    if (!json_is_string(prompt) || json_string_length(prompt) == 0)
        status = cgam_fail(file->env, CGAM_E_FORMAT, "%s: no text under \"prompt\"", where);
    else if (label && !json_is_string(label) && !json_is_null(label))
        status = cgam_fail(file->env, CGAM_E_FORMAT, "%s: the label is not a string", where);
    else
        status = add_prompt(file, line, json_string_value(prompt), json_string_length(prompt),
                            json_string_value(label));
    json_decref(row);
    return status;
}

/* jansson makes no string of what is not UTF-8. */
static cgam_status add_text(cgam_prompt_file *file, int64_t line, const char *where,
                            const char *text, size_t length)
{
    json_t *probe = json_stringn(text, length);
    if (!probe || memchr(text, '\0', length)) {
        json_decref(probe);
        return cgam_fail(file->env, CGAM_E_FORMAT, "%s: not valid UTF-8", where);
    }
    json_decref(probe);
    return add_prompt(file, line, text, length, NULL);
}

static bool is_blank(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] > ' ') return false;
    return true;
}

static cgam_status read_lines(cgam_prompt_file *file, const char *name, const char *bytes,
                              size_t size)
{
    int64_t number = 0;
    bool objects = false;
    cgam_status status = CGAM_OK;
    for (size_t at = 0; at < size && status == CGAM_OK;) {
        char where[WHERE];
        const char *text = bytes + at, *end = memchr(text, '\n', size - at);
        size_t length = end ? (size_t)(end - text) : size - at;
        at += length + 1;
        snprintf(where, sizeof where, "%s:%lld", name, (long long)++number);
        if (length > 0 && text[length - 1] == '\r') length--;
        if (is_blank(text, length)) continue;
        if (file->count == 0) objects = text[strspn(text, " \t")] == '{';
        status = (objects ? add_object : add_text)(file, number, where, text, length);
        if (number % 4096 == 0 && cgam_interrupted(file->env) && status == CGAM_OK)
            status = CGAM_E_INTERRUPTED;
    }
    if (status == CGAM_OK && file->count == 0)
        status = cgam_fail(file->env, CGAM_E_FORMAT, "%s: no prompts", name);
    return status;
}

cgam_status cgam_prompt_file_read(cgam_env *env, const char *name, const cgam_file *file,
                                  cgam_prompt_file **out)
{
    *out = NULL;
    const char *bytes = (const char *)file->bytes;
    size_t size = file->size;
    if (size >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0) bytes += 3, size -= 3; /* its mark */
    cgam_prompt_file *made = cgam_zalloc(env, 1, sizeof *made);
    if (!made) return cgam_fail_nomem(env, "prompts");
    made->env = env;
    made->capacity = 1;
    for (size_t i = 0; i < size; i++) made->capacity += bytes[i] == '\n';
    made->line = cgam_alloc(env, (size_t)made->capacity, sizeof *made->line);
    cgam_status status =
        made->line ? read_lines(made, name, bytes, size) : cgam_fail_nomem(env, "prompts");
    if (status == CGAM_OK) *out = made;
    else cgam_prompt_file_close(made);
    return status;
}

cgam_status cgam_prompt_file_open(cgam_env *env, const char *path, cgam_prompt_file **out)
{
    cgam_file file;
    *out = NULL;
    cgam_status status = cgam_file_map(env, path, &file);
    if (status == CGAM_OK) status = cgam_prompt_file_read(env, cgam_file_name(path), &file, out);
    cgam_file_unmap(&file);
    return status;
}
