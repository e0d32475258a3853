#include <stdio.h>

int main(void)
{
    printf("# Library version: 1.19.0\n# Git branch '', revision " REVISION "\n# Configured with: " OPTIONS "\n");
    return 0;
}
