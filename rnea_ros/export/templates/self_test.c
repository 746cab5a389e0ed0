/* Golden numbers of the Python library: exit code 0 if the functions give them, up to the roundings of this processor. */
#include <math.h>
#include <stdio.h>

#include "$name/$name.h"

static int failures = 0;
static int exact = 1;

static void check(const char *what, int count, const double *found, const double *wanted)
{
    double scale = 1.0, worst = 0.0;
    for (int k = 0; k < count; ++k) {
        if (fabs(wanted[k]) > scale)
            scale = fabs(wanted[k]);
        if (!(fabs(found[k] - wanted[k]) <= worst))
            worst = fabs(found[k] - wanted[k]);
        exact = exact && found[k] == wanted[k];
    }
    if (!(worst <= $tolerance * scale)) {
        printf("%s is off by %g of %g\n", what, worst, scale);
        ++failures;
    }
}

int main(void)
{
$checks
    printf(failures ? "%d arrays are wrong\n" : "all as in the Python library, %d wrong\n", failures);
    printf(exact ? "to the last bit\n" : "up to rounding\n");
    return failures != 0;
}
