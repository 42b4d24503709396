/* last_words.h: libllama ends the process where it finds itself in a place it did not foresee: a failed assertion of ggml, a C++
 * exception that nobody catches. A door that has the process to itself may say what happened before it does. */
#ifndef CGAM_SRC_LM_LAST_WORDS_H
#define CGAM_SRC_LM_LAST_WORDS_H

/* From the next time libllama is loaded: `say` is called with what it said, on one line, on whatever thread; the process
 * ends when it returns. Before other threads are started; for programs, not for libraries. */
void cgam_llama_last_words(void (*say)(const char *words));

#endif
