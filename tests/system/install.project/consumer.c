/* consumer.c: a user's first program. It is valid C and valid C++, and is compiled as both. */
#include <cgam/base.h>

#include <stdio.h>
#include <string.h>

int main(void)
{
    cgam_env *env = NULL;
    if (cgam_env_new(NULL, &env) != CGAM_OK) return 1;
    cgam_env_free(env);
    if (strcmp(cgam_version(), CGAM_VERSION) != 0) return 1;
    printf("cgam %s\n", cgam_version());
    return 0;
}
