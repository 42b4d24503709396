/* completion.c: scripts that let shells complete what the table of verbs holds: verbs by their
 * words, options, choices, files and folders. */
#include "app/verb.h"

#include <string.h>

typedef enum what { NOTHING, WORDS, FILES, FOLDERS, VERBS } what; /* a value can be */

static what value_of(const cgam_param *p)
{
    size_t length;
    if (p->kind == CGAM_FLAG) return NOTHING;
    if (cgam_param_word(p, NULL, &length)) return WORDS;
    if (strcmp(p->value, "VERB") == 0) return VERBS;
    if (strstr(p->value, "DIR")) return FOLDERS;
    return strstr(p->value, "FILE") ? FILES : NOTHING;
}

static void put_words(FILE *to, const cgam_param *p)
{
    size_t length;
    const char *word = NULL;
    for (int k = 0; (word = cgam_param_word(p, word, &length)); k++)
        fprintf(to, "%s%.*s", k ? " " : "", (int)length, word);
}

/* The first word of verb v, NULL where a verb before it has the same. */
static const char *first_word(int v, char word[32])
{
    snprintf(word, 32, "%.*s", (int)strcspn(cgam_verbs[v]->name, " "), cgam_verbs[v]->name);
    for (int i = 0; i < v; i++)
        if (strcmp(cgam_verbs[i]->name, word) == 0 || cgam_verb_in(cgam_verbs[i], word))
            return NULL;
    return word;
}

static void put_first_words(FILE *to)
{
    char word[32];
    for (int v = 0; cgam_verbs[v]; v++)
        if (first_word(v, word)) fprintf(to, "%s%s", v ? " " : "", word);
}

/* The second words of the verbs of a group. */
static void put_second_words(FILE *to, const char *group)
{
    for (int v = 0, k = 0; cgam_verbs[v]; v++)
        if (cgam_verb_in(cgam_verbs[v], group))
            fprintf(to, "%s%s", k++ ? " " : "", cgam_verbs[v]->name + strlen(group) + 1);
}

/* Text between single quotes, `special` characters behind a backslash, cut where it grows long. */
static void quoted(FILE *to, const char *text, const char *special)
{
    size_t length = strcspn(text, ";\n");
    bool cut = length > 72;
    if (cut)
        for (length = 72; text[length] != ' ' && length > 40;) length--;
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '\'') fputs("'\\''", to);
        else fprintf(to, strchr(special, text[i]) ? "\\%c" : "%c", text[i]);
    }
    if (cut) fputs(" ..", to);
}

/* What a first word stands for: a verb, or several. */
static void put_about(FILE *to, int v, const char *word)
{
    if (strcmp(cgam_verbs[v]->name, word) == 0) quoted(to, cgam_verbs[v]->summary, "");
    else put_second_words(to, word);
}

/* ---- bash ------------------------------------------------------------------------------------- */

static void bash_value(FILE *to, const cgam_param *p)
{
    switch (value_of(p)) {
    case NOTHING: break;
    case WORDS:
        fputs("_cgam_words '", to);
        put_words(to, p);
        fputs("'", to);
        break;
    case FILES: fputs("_cgam_files -f", to); break;
    case FOLDERS: fputs("_cgam_files -d", to); break;
    case VERBS: fputs("_cgam_words \"$verbs\"", to); break;
    }
}

static void bash_verb(FILE *to, const cgam_verb *verb)
{
    const cgam_param *p, *argument = NULL;
    fprintf(to, "    '%s')\n        case $before in\n", verb->name);
    for (int i = 0; (p = cgam_verb_param(verb, i)); i++) {
        if (cgam_param_positional(p) && !argument) argument = p;
        if (cgam_param_positional(p) || p->kind == CGAM_FLAG) continue;
        fprintf(to, "        --%s) ", p->name);
        bash_value(to, p);
        fputs(value_of(p) == NOTHING ? "return ;;\n" : "; return ;;\n", to);
    }
    fputs("        esac\n        case $word in\n        -*) _cgam_words '", to);
    for (int i = 0; (p = cgam_verb_param(verb, i)); i++)
        if (!cgam_param_positional(p)) fprintf(to, "--%s ", p->name);
    fputs("--help' ;;\n", to);
    if (argument && value_of(argument) != NOTHING) {
        fputs("        *) ", to);
        bash_value(to, argument);
        fputs(" ;;\n", to);
    }
    fputs("        esac\n        ;;\n", to);
}

static void bash(FILE *to)
{
    char group[32];
    fputs("# Completion of cgam for bash, made by `cgam completion bash`.\n\n"
          "# In a list the part behind the last comma is completed.\n"
          "_cgam_words() {\n"
          "    local done=${word%\"${word##*,}\"}\n"
          "    COMPREPLY=($(compgen -P \"$done\" -W \"$1\" -- \"${word##*,}\"))\n"
          "}\n\n"
          "_cgam_files() {\n"
          "    compopt -o filenames 2>/dev/null\n"
          "    local IFS=$'\\n'\n"
          "    COMPREPLY=($(compgen \"$1\" -- \"$word\"))\n"
          "}\n\n"
          "_cgam() {\n"
          "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}\n"
          "    local verb=${COMP_WORDS[1]} verbs='",
          to);
    put_first_words(to);
    fputs("'\n"
          "    COMPREPLY=()\n"
          "    # --name=value comes as three words.\n"
          "    if [ \"$word\" = = ]; then word=\n"
          "    elif [ \"$before\" = = ]; then before=${COMP_WORDS[COMP_CWORD - 2]}\n"
          "    fi\n"
          "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
          "        _cgam_words \"$verbs --help --version\"\n"
          "        return\n"
          "    fi\n"
          "    case $verb in\n",
          to);
    for (int v = 0; cgam_verbs[v]; v++) {
        if (!first_word(v, group) || !cgam_verb_group(group)) continue;
        fprintf(to, "    %s)\n        local second='", group);
        put_second_words(to, group);
        fputs("'\n        case \" $second \" in *\" ${COMP_WORDS[2]} \"*) "
              "[ \"$COMP_CWORD\" -gt 2 ] && verb+=\" ${COMP_WORDS[2]}\" ;; esac\n"
              "        if [ \"$COMP_CWORD\" -eq 2 ] && [[ $word != -* ]]; then\n"
              "            _cgam_words \"$second\"\n            return\n        fi\n        ;;\n",
              to);
    }
    fputs("    esac\n    case $verb in\n", to);
    for (int v = 0; cgam_verbs[v]; v++) bash_verb(to, cgam_verbs[v]);
    fputs("    esac\n}\n\ncomplete -F _cgam cgam\n", to);
}

/* ---- zsh -------------------------------------------------------------------------------------- */

static void zsh_value(FILE *to, const cgam_param *p)
{
    switch (value_of(p)) {
    case NOTHING: fputs(" ", to); break;
    case WORDS:
        fputs("(", to);
        put_words(to, p);
        fputs(")", to);
        break;
    case FILES: fputs("_files", to); break;
    case FOLDERS: fputs("_files -/", to); break;
    case VERBS:
        fputs("(", to);
        put_first_words(to);
        fputs(")", to);
        break;
    }
}

static void zsh_group(FILE *to, const char *group)
{
    fprintf(to, "    %s)\n        verbs=(\n", group);
    for (int v = 0; cgam_verbs[v]; v++)
        if (cgam_verb_in(cgam_verbs[v], group)) {
            fprintf(to, "            '%s:", cgam_verbs[v]->name + strlen(group) + 1);
            quoted(to, cgam_verbs[v]->summary, "");
            fputs("'\n", to);
        }
    fputs("        )\n        if (( CURRENT == 3 )) && [[ $PREFIX != -* ]]; then\n"
          "            _describe verb verbs\n            return\n        fi\n"
          "        if (( $verbs[(I)$words[3]:*] )); then\n"
          "            verb+=\" $words[3]\"\n            shift words\n"
          "            (( CURRENT-- ))\n        fi\n        ;;\n",
          to);
}

static void zsh_param(FILE *to, const cgam_param *p)
{
    bool argument = cgam_param_positional(p);
    fprintf(to, "        '%s", p->many ? "*" : "");
    if (!argument) {
        fprintf(to, "--%s%s[", p->name, p->kind == CGAM_FLAG ? "" : "=");
        quoted(to, p->help, "[]\\");
        fputs("]", to);
    }
    if (p->kind != CGAM_FLAG) {
        fputs(argument && !p->many && !p->required ? "::" : ":", to);
        quoted(to, argument ? p->name : p->value, ":[]\\");
        fputs(":", to);
        zsh_value(to, p);
    }
    fputs("'\n", to);
}

static void zsh(FILE *to)
{
    char group[32];
    fputs("#compdef cgam\n# Completion of cgam for zsh, made by `cgam completion zsh`.\n\n"
          "_cgam() {\n    local verb=$words[2]\n    local -a verbs options\n    verbs=(\n",
          to);
    for (int v = 0; cgam_verbs[v]; v++)
        if (first_word(v, group)) {
            fprintf(to, "        '%s:", group);
            put_about(to, v, group);
            fputs("'\n", to);
        }
    fputs("    )\n    if (( CURRENT == 2 )); then\n        _describe verb verbs\n"
          "        return\n    fi\n    case $verb in\n",
          to);
    for (int v = 0; cgam_verbs[v]; v++)
        if (first_word(v, group) && cgam_verb_group(group)) zsh_group(to, group);
    fputs("    esac\n    shift words\n    (( CURRENT-- ))\n    case $verb in\n", to);
    for (int v = 0; cgam_verbs[v]; v++) {
        const cgam_param *p;
        fprintf(to, "    '%s') options=(\n", cgam_verbs[v]->name);
        for (int i = 0; (p = cgam_verb_param(cgam_verbs[v], i)); i++) zsh_param(to, p);
        fputs("    ) ;;\n", to);
    }
    fputs("    *) return ;;\n    esac\n    _arguments $options '(- *)--help[explain the verb]'\n"
          "}\n\nif [ \"$funcstack[1]\" = _cgam ]; then _cgam \"$@\"; else compdef _cgam cgam; fi\n",
          to);
}

/* ---- fish ------------------------------------------------------------------------------------- */

static void fish_param(FILE *to, const cgam_verb *verb, const cgam_param *p)
{
    what value = value_of(p);
    fprintf(to, "complete -c cgam -n '__cgam_verb %s'", verb->name);
    if (!cgam_param_positional(p)) {
        fprintf(to, " -l %s", p->name);
        if (p->kind != CGAM_FLAG) fputs(value == FILES || value == FOLDERS ? " -r" : " -x", to);
    }
    if (value == FILES) fputs(" -F", to);
    if (value == FOLDERS) fputs(" -a '(__fish_complete_directories)'", to);
    if (value == WORDS || value == VERBS) {
        fputs(" -a '", to);
        if (value == WORDS) put_words(to, p);
        else put_first_words(to);
        fputs("'", to);
    }
    fputs(" -d '", to);
    quoted(to, p->help, "");
    fputs("'\n", to);
}

static void fish(FILE *to)
{
    fputs("# Completion of cgam for fish, made by `cgam completion fish`.\n\n"
          "# Do the words before the cursor begin with these?\n"
          "function __cgam_verb\n"
          "    set -l words (commandline -opc)\n"
          "    set -l last (math 1 + (count $argv))\n"
          "    test (count $words) -ge $last; and test \"$words[2..$last]\" = \"$argv\"\n"
          "end\n\n"
          "# Is the cursor on this word?\n"
          "function __cgam_at\n"
          "    test (count (commandline -opc)) -eq $argv[1]\n"
          "end\n\n"
          "complete -c cgam -f\n"
          "complete -c cgam -n '__cgam_at 1' -l help -d 'explain'\n"
          "complete -c cgam -n '__cgam_at 1' -l version -d 'print the version'\n",
          to);
    for (int v = 0; cgam_verbs[v]; v++) {
        const cgam_verb *verb = cgam_verbs[v];
        const char *second = strchr(verb->name, ' ');
        const cgam_param *p;
        char word[32];
        if (first_word(v, word)) {
            fprintf(to, "complete -c cgam -n '__cgam_at 1' -a %s -d '", word);
            put_about(to, v, word);
            fputs("'\n", to);
        }
        if (second) {
            fprintf(to, "complete -c cgam -n '__cgam_at 2; and __cgam_verb %.*s' -a %s -d '",
                    (int)(second - verb->name), verb->name, second + 1);
            quoted(to, verb->summary, "");
            fputs("'\n", to);
        }
        for (int i = 0; (p = cgam_verb_param(verb, i)); i++) fish_param(to, verb, p);
    }
}

void cgam_help_completion(const char *shell, FILE *to)
{
    if (strcmp(shell, "bash") == 0) bash(to);
    else if (strcmp(shell, "zsh") == 0) zsh(to);
    else fish(to);
}
